"""Random sessions: queries that are registered and removed while items are pushed in any batching.

`run` executes a script of random calls and returns each query with all that it returned. Each is then
compared with the query alone: rows with the definition, at each instant from its start to its end,
over the items that count for it (`Registered.since`); reports with an open query over these items.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from support.engine import Answers, Data, Definition, Item, cells, disordered, show

import streamsparql
from streamsparql.algebra.rules.properties import is_static
from streamsparql.algebra.streams import INFINITY, Element
from streamsparql.algebra.terms import BlankNode
from streamsparql.translator.parameters import parameters_of

Reports = list[tuple[int, Any]]


class Returned(NamedTuple):
    """A query of a session, its text, its options, and what it has returned."""

    query: Any
    text: str
    options: dict[str, Any]
    rows: list[Any]


class Ran(NamedTuple):
    """The queries of a session, the data without the items from before a query has read their
    stream, and the watermarks before the session was closed."""

    queries: list[Returned]
    data: Data
    watermarks: Mapping[str, int]


def variants(text: str, random: Random, count: int) -> list[str]:
    """Return texts that differ from a text in constants and in the names of variables."""
    texts = [text, *(_variant(text, random) for _ in range(count - 1))]
    return [each for each in texts if compiles(each)]


def _variant(text: str, random: Random) -> str:
    constants, shift = [":a", ":b", ":c"], random.randint(0, 2)
    swapped = dict(zip(constants, random.sample(constants, 3), strict=True))
    text = re.sub(r":[abc]\b(?!\s+\[)", lambda m: swapped[m[0]], text)
    if random.random() < 0.5:
        text = re.sub(r"(?<=[\s(,])([123])(?=[\s),])", lambda m: str(int(m[1]) + shift), text)
    return re.sub(r"\?x\b", "?renamed", text) if random.random() < 0.5 else text


def compiles(text: str) -> bool:
    """Return whether a text is a query, also with its parameters."""
    try:
        query = streamsparql.compile(text)
        parameters_of(query.translation.syntax, text)
    except streamsparql.StreamSparqlError:
        return False
    return True


def run(
    texts: Sequence[str],
    data: Data,
    seed: int,
    names: Mapping[str, str] | None = None,
    **options: Any,
) -> Ran:
    """Register queries, push items, remove queries: in random order, at random instants.

    `names` are those of some texts, which are not removed.
    """
    names = names or {}
    random = Random(seed)
    delay = random.choice([0, 0, 2, 7])
    data = disordered(data, delay, seed)
    session = streamsparql.Session(
        data.graph, data.graphs, max_jump=None, max_delay=delay, **options
    )
    waiting, registered = list(texts), list[Returned]()
    left = {name: list(items) for name, items in data.streams.items()}
    pushed: dict[str, list[Item]] = {name: [] for name in left}
    if random.random() < 0.6:
        for text in waiting:
            registered.append(_register(session, text, random, names.get(text)))
        waiting = []
    while waiting or any(left.values()):
        match random.randrange(10):
            case 0 | 1 if waiting:
                text = waiting.pop()
                registered.append(_register(session, text, random, names.get(text)))
            case 2 if registered and random.random() < 0.3:
                each = random.choice(registered)
                if not each.query.closed and each.text not in names:
                    each.query.close()
            case 3 if registered:
                _read(random.choice(registered))
            case 4:
                _advance(session, left, random)
            case _:
                _push(session, left, pushed, random)
    if random.random() < 0.5:
        for each in registered:
            _read(each)
    watermarks = session.watermarks
    session.close()
    for each in registered:
        _read(each)
    assert not session.late
    return Ran(registered, data._replace(streams=pushed), watermarks)


def _register(session: Any, text: str, random: Random, name: str | None = None) -> Returned:
    options: dict[str, Any] = {}
    if random.random() < 0.4:
        options["report"] = random.choice(["rstream", "istream", "dstream"])
        if random.random() < 0.5:
            options["every"] = random.randint(1, 7)
    rows: list[Any] = []
    on_row: Callable[[Any], object] | None = rows.append if random.random() < 0.3 else None
    query = session.register(text, name, on_row=on_row, **options)
    return Returned(query, text, options, rows)


def _read(each: Returned) -> None:
    each.rows.extend(each.query.rows())


def _advance(session: Any, left: dict[str, list[Item]], random: Random) -> None:
    known = [name for name in left if name in session.watermarks]
    if not known:
        return
    name = random.choice(known)
    if left[name]:
        least = min(t for _, t in left[name])
        session.advance(max(least - random.choice([0, 0, 1, 5]), 0), name)


def _push(
    session: Any, left: dict[str, list[Item]], pushed: dict[str, list[Item]], random: Random
) -> None:
    ready = [name for name in left if left[name]]
    if not ready:
        return
    name = random.choice(ready)
    if name not in session.watermarks:
        left[name].pop(0)  # no query has read the stream yet
        return
    size = random.choice([1, 1, 2, 5])
    pushed[name] += left[name][:size]
    if random.random() < 0.5:
        session.push_many(name, left[name][:size])
    else:
        for triple, t in left[name][:size]:
            session.push(name, triple, t)
    del left[name][:size]


# -- Instances of parameters ---------------------------------------------------------------------


class Instance(NamedTuple):
    """The part of a registered query that is one instance, in the form of a query."""

    session: Any
    start: int | None
    end: int | None
    since: dict[str, int]


def run_instances(text: str, data: Data, seed: int) -> tuple[list[Returned], Data]:
    """Register a text with `:a` as a parameter; add and remove instances while items arrive.

    Return the instances, each with the text that has its term, and the data.
    """
    random = Random(seed)
    session = streamsparql.Session(data.graph, data.graphs, max_jump=None)
    query = session.register(re.sub(r":a\b", "$who", text))
    left = {name: list(items) for name, items in data.streams.items()}
    pushed: dict[str, list[Item]] = {name: [] for name in left}
    returned: dict[int, Returned] = {}

    def add() -> None:
        names = random.choices("abc", k=random.choice([1, 1, 3]))
        rows = [{"who": f"<http://e/{name}>"} for name in names]
        keys = query.add_many(rows) if len(names) > 1 else [query.add(**rows[0])]
        for name, key in zip(names, keys, strict=True):
            own = re.sub(r":a\b", f":{name}", text)
            instance = Instance(session, query.start_of(key), None, query.since_of(key))
            returned[key] = Returned(instance, own, {}, [])

    def read() -> None:
        for key, own in query.rows().items():
            returned[key].rows.extend(own)

    def remove() -> None:
        open_keys = [key for key, each in returned.items() if each.query.end is None]
        if open_keys:
            key = random.choice(open_keys)
            query.remove(key)
            ended = returned[key].query._replace(end=query.watermark)
            returned[key] = returned[key]._replace(query=ended)

    for _ in range(random.choice([0, 0, 1, 2])):
        add()
    while any(left.values()):
        random.choice([add, read, remove, *[lambda: _push(session, left, pushed, random)] * 5])()
    session.close()
    read()
    return list(returned.values()), data._replace(streams=pushed)


# -- Comparing with the query alone -------------------------------------------------------------


def difference(each: Returned, data: Data) -> str:
    """Describe where a query of a session differs from the query alone; return "" if they agree."""
    query, registered = streamsparql.compile(each.text), each.query
    own = read_by(each, data)
    if each.options:
        different = _different_reports(each, query, own)
    else:
        different = _different_rows(each, query, own)
    ends = f"start {registered.start}, end {registered.end}, since {registered.since}"
    return different and f"{different}\n{ends}, {each.options}\n{own}\n{each.text}"


def read_by(each: Returned, data: Data) -> Data:
    """Return the data that count for a query."""
    query, since = streamsparql.compile(each.text), each.query.since
    own = data.of(query, every_graph=False)._replace(graphs=data.graphs)
    streams = {
        name: [item for item in items if item[1] >= since.get(name, 0)]
        for name, items in own.streams.items()
    }
    return own._replace(streams=streams)


Cell = Any


def _renamed(cell: Cell, streams: Sequence[str]) -> Cell:
    """Return a row, or a snapshot, in which the blank nodes of a stream have its name."""
    if isinstance(cell, BlankNode):
        scope = re.match(r"s(\d+)(\..*)", cell.label)
        return cell if scope is None else BlankNode(streams[int(scope[1])] + scope[2])
    if isinstance(cell, Counter):
        return Counter(_renamed(row, streams) for row in cell.elements())
    if isinstance(cell, tuple | frozenset | set):
        renamed = [_renamed(part, streams) for part in cell]
        return tuple(renamed) if isinstance(cell, tuple) else frozenset(renamed)
    return cell


def _different_rows(each: Returned, query: streamsparql.Query, data: Data) -> str:
    definition = Definition(query, data)
    scopes = list(each.query.session.watermarks)
    rows = [
        Element(_renamed(cells(query.form, row), scopes), row.start, row.end) for row in each.rows
    ]
    ours, start, end = Answers(rows), each.query.start, each.query.end
    begin = definition.start if start is None else start
    items = [t for items in data.streams.values() for _, t in items]
    if start is None and end is not None and data.streams and min(items, default=end) >= end:
        return f"rows before the first item: {rows}" if rows else ""
    end = INFINITY if end is None else end
    if is_static(query.optimized):  # its rows are final at once, and may be read before its end
        rows = [row._replace(end=min(row.end, end)) for row in rows if row.start < end]
        ours = Answers(rows)
    if any(a < begin or b > end for _, a, b in rows):
        return f"rows outside of its time: {rows}"
    if not ours.canonical:
        return f"not canonical: {rows}"
    instants = {begin} | definition.borders() | ours.changes | {t - 1 for t in ours.changes}
    for t in sorted(t for t in instants if begin <= t < end):
        there = Counter(map(_visible, definition.at(t).elements()))
        here, there = ours.at(t), _renamed(there, [*data.streams])
        if here != there:
            return f"at {t} the session has {show(here)}, expected {show(there)}"
    return ""


def _visible(row: Any) -> Any:
    if isinstance(row, frozenset):
        return frozenset((name, term) for name, term in row if not name.startswith("."))
    return row


def _different_reports(each: Returned, query: streamsparql.Query, data: Data) -> str:
    alone = _without_repetitions(_reports_alone(query, data, each), each)
    scopes = list(each.query.session.watermarks)
    reports = [(instant, _renamed(_bag(query, shown), scopes)) for instant, shown in each.rows]
    ours = _without_repetitions(reports, each)
    if ours != alone:
        return f"the session reports {ours}\nalone it reports {alone}"
    return ""


def _without_repetitions(reports: Reports, each: Returned) -> Reports:
    """Return reports without those at the end that show no change.

    Their number depends on where rows that hold were cut, so on the batching, and on how far time
    advanced without items.
    """
    rstream = each.options.get("report") in (None, "rstream")
    while reports:
        before = reports[-2][1] if rstream and len(reports) > 1 else None
        if reports[-1][1] != before and (before is not None or reports[-1][1]):
            break
        reports = reports[:-1]
    return reports


def _reports_alone(query: streamsparql.Query, data: Data, each: Returned) -> list[Any]:
    from streamsparql.run.input import RunInput
    from streamsparql.run.live import Live

    static = data._replace(streams={})
    run_input = RunInput(*static, start=each.query.start, max_jump=None, max_delay=1_000)
    live = Live(query, run_input, **each.options)
    end = each.query.end
    for name, items in data.streams.items():
        live.push_many(name, [item for item in items if end is None or item[1] < end])
    if end is None:
        live.close()
    else:
        live.advance(end)
    names = [*data.streams]
    return [(instant, _renamed(_bag(query, shown), names)) for instant, shown in live.rows()]


def _bag(query: streamsparql.Query, shown: Any) -> Any:
    if query.form == "ask":
        return shown
    if query.form == "select":
        return Counter(cells(query.form, row) for row in shown)
    return frozenset(cells(query.form, dict(zip(_TRIPLE, triple, strict=True))) for triple in shown)


_TRIPLE = ("subject", "predicate", "object")
