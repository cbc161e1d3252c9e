"""Hand-written queries over every feature: at each instant, the answer is another engine's answer.

The queries are in `cases/*.rq`, by dialect. For each the content of its windows is worked out at
each instant from the text of their clauses (`content` of test_streams_against_pyoxigraph.py, which
reads SEMANTICS.md a second time), loaded into pyoxigraph, and the query asked there without its
streaming clauses. Where a store cannot read the query at all, because of a window in a group or an
operator of the dialect, the case has a second text for the store (`== store`), and names the graphs
that hold what such windows hold.

Streams are random, and no triple comes twice in a query's streams where windows are bags: a store
holds sets. What this cannot see: duplicates; LIMIT without a total order; what pyoxigraph gets
wrong, which the queries step around (test_against_pyoxigraph.py lists it); how many decimal places
a quotient has.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from decimal import Context, Decimal
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyoxigraph as ox
import pytest
import w3c
from engine import Data, Item, read
from oracle import store
from test_streams_against_pyoxigraph import Content, content
from w3c import Answer

import streamsparql
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term, Triple, integer
from streamsparql.algebra.values import value_of
from streamsparql.terms import term

CASES = Path(__file__).parent / "cases"
PREFIX = "PREFIX : <http://e/>\n"
HOME = "http://e/"


class Slot(NamedTuple):
    """A window: the graph of the store that has its content ("": the default graph).

    `matching` is the predicate of the only triples that it sees, or "". The static background is
    there beside it, where it is not `alone`.
    """

    graph: str
    stream: str
    window: Content
    matching: str = ""
    alone: bool = True


class Case(NamedTuple):
    """A query, what a store is asked instead, and what the store then holds."""

    name: str
    dialect: str
    text: str
    plain: str
    slots: tuple[Slot, ...]


def cases() -> Iterator[Case]:
    """All cases of all files."""
    for path in sorted(CASES.glob("*.rq")):
        dialect = path.stem
        _, *parts = path.read_text().split("\n## ")
        for part in parts:
            title, _, rest = part.partition("\n")
            yield _case(f"{dialect}: {title}", dialect, rest.strip())


def _case(name: str, dialect: str, text: str) -> Case:
    clause = r"^:(\w+) = :(\w+)( alone)?(?: matching :(\w+))? (WINDOW .*)\n"
    slots = [
        Slot(graph, stream, content(window, dialect), matching, bool(alone))
        for graph, stream, alone, matching, window in re.findall(clause, text, re.M)
    ]
    text = re.sub(r"^:\w+ = .*\n", "", text, flags=re.M)
    text, _, plain = text.partition("\n== store\n")
    slots += _slots(text, dialect)
    return Case(name, dialect, PREFIX + text, PREFIX + (plain or _plain(text)), tuple(slots))


def _slots(text: str, dialect: str) -> Iterator[Slot]:
    """The windows of a query's FROM lines, and of CQELS's blocks."""
    for named, stream, window in re.findall(r"^FROM (NAMED )?STREAM :(\w+) (.*)$", text, re.M):
        yield Slot(stream if named else "", stream, content(window, dialect))
    for name, stream, window in re.findall(r"^FROM NAMED WINDOW :(\w) ON :(\w+) (.*)$", text, re.M):
        yield Slot(name, stream, content(_milliseconds(window), dialect))
    for k, (stream, window) in enumerate(re.findall(r"STREAM :(\w+) (\[.*?\]) \{", text)):
        yield Slot(f"b{k}", stream, content(window, dialect))


def _milliseconds(window: str) -> str:
    """xsd:durations of milliseconds as bare numbers; [ELEMENTS n] as it is called elsewhere."""
    window = re.sub(r"PT0\.0*(\d+)S", r"\1", window)
    return window.replace("ELEMENTS", "TRIPLES")


def _plain(text: str) -> str:
    """The query with no streaming clause, nor static FROM: the store has just what counts."""
    text = re.sub(r"^(FROM|REGISTER) .*\n", "", text + "\n", flags=re.M)
    blocks = iter(range(100))
    text = re.sub(r"STREAM :\w+ \[.*?\] \{", lambda _: f"GRAPH :b{next(blocks)} {{", text)
    return re.sub(r"WINDOW ([:?]\w) \{", r"GRAPH \1 {", text)


# -- Data ---------------------------------------------------------------------------------------


def random_data(case: Case, random: Random) -> Data:
    """Streams, a background and named graphs; where windows are bags, no triple comes twice."""
    universe = _universe()
    random.shuffle(universe)
    graph, graphs = universe[:7], {HOME + g: random.sample(universe, 8) for g in ("g1", "g2")}
    rest = universe[7:]
    parts = {"s": rest[: len(rest) // 2], "t": rest[len(rest) // 2 :]}
    if case.dialect in ("csparql", "cqels", "rspql"):
        parts = {name: random.choices(universe, k=30) for name in parts}
    streams = {HOME + name: _timed(items, random) for name, items in parts.items()}
    return Data(streams, graph, graphs)


def _universe() -> list[tuple[str, str, str]]:
    nodes = [f"<{HOME}{name}>" for name in "abcd"]
    values = {
        "p": nodes,
        "q": nodes,
        "v": [str(integer(n)) for n in range(1, 5)],
        "n": ['"ab"', '"cd"', '"ef"'],
        "k": [f"<{HOME}K>", f"<{HOME}L>"],
    }
    return [(s, f"<{HOME}{p}>", o) for s in nodes for p, some in values.items() for o in some]


def _timed(items: list[tuple[str, str, str]], random: Random) -> list[Item]:
    t, timed = random.randint(0, 5), []
    for item in items:
        timed.append((item, t))
        t += random.choice([0, 0, 1, 1, 2, 3, 12])
    return timed


def held(case: Case, data: Data, t: int) -> tuple[frozenset[Triple], dict[IRI, frozenset[Triple]]]:
    """What a store holds for an instant: the default graph, and the named ones."""
    background = frozenset(map(_triple, data.graph))
    default, stamps = set(background), dict[Triple, int]()
    graphs: dict[str, frozenset[Triple]] = {}
    for name in ("g1", "g2"):
        if re.search(rf"FROM NAMED :{name}", case.text):
            graphs[name] = frozenset(map(_triple, data.graphs[HOME + name]))
    for slot in case.slots:
        items = [
            (_triple(item), stamp)
            for item, stamp in data.streams[HOME + slot.stream]
            if not slot.matching or item[1] == f"<{HOME}{slot.matching}>"
        ]
        places = slot.window([stamp for _, stamp in items], t)
        triples = {items[k][0] for k in places}
        if slot.graph:
            graphs[slot.graph] = frozenset(triples if slot.alone else triples | background)
        else:
            default |= triples
            stamps |= {items[k][0]: items[k][1] for k in places}
    if ":stamps" in case.plain:
        graphs["stamps"] = _reified(stamps)
    return frozenset(default), {IRI(HOME + name): found for name, found in graphs.items()}


def _triple(item: tuple[str, str, str]) -> Triple:
    return Triple(*map(term, item))


def _reified(stamps: dict[Triple, int]) -> frozenset[Triple]:
    """What says when each triple of the default graph came."""
    made: set[Triple] = set()
    for k, (triple, t) in enumerate(stamps.items()):
        about = {
            "of": triple.subject,
            "by": triple.predicate,
            "is": triple.object,
            "at": integer(t),
        }
        made |= {Triple(IRI(f"{HOME}r{k}"), IRI(HOME + name), x) for name, x in about.items()}
    return frozenset(made)


# -- Answers ------------------------------------------------------------------------------------


def theirs(asked: ox.Store, text: str, ordered: bool) -> Answer:
    """What pyoxigraph answers."""
    found = asked.query(text)
    if isinstance(found, ox.QueryBoolean):
        return Answer("boolean", ("answer",), ((bool(found),),))
    if isinstance(found, ox.QueryTriples):
        triples = {tuple(_cell(_theirs(x)) for x in triple) for triple in found}
        return Answer("graph", (), tuple(triples))
    names = sorted(variable.value for variable in found.variables)
    rows = tuple(
        tuple(None if row[n] is None else _cell(_theirs(row[n])) for n in names) for row in found
    )
    return Answer("solutions", tuple(names), rows, ordered)


def ours(query: streamsparql.Query, shown: object, ordered: bool) -> Answer:
    """A snapshot as users get it, as an answer."""
    rows = read(query, shown)
    if query.form == "ask":
        return Answer("boolean", ("answer",), ((rows[0],),))
    if query.form != "select":
        triples = [tuple(map(_cell, triple)) for triple in rows]  # type: ignore[call-overload]
        return Answer("graph", (), tuple(triples))
    names = sorted(query.variables)
    found = [dict(row) for row in rows]  # type: ignore[call-overload]
    return Answer(
        "solutions",
        tuple(names),
        tuple(tuple(_cell(row[n]) if n in row else None for n in names) for row in found),
        ordered,
    )


def _theirs(found: object) -> Term:
    match found:
        case ox.NamedNode():
            return IRI(found.value)
        case ox.BlankNode():
            return BlankNode(found.value)
        case ox.Literal():
            return Literal(found.value, IRI(found.datatype.value))
    raise AssertionError(found)


def _cell(value: Term) -> Hashable:
    """A term; a number by its value, a quotient to 15 digits."""
    found = value_of(value) if isinstance(value, Literal) else None
    if isinstance(found, Decimal):
        found = Context(prec=15).plus(found)
    if isinstance(value, Literal) and isinstance(found, int | Decimal):
        return value.datatype, found
    return value


# -- The test -----------------------------------------------------------------------------------


def check(case: Case, seed: int) -> None:
    """Our snapshot is pyoxigraph's answer, at every instant."""
    data = random_data(case, Random(seed))
    query = streamsparql.compile(case.text, optimize=seed % 2 == 0)
    assert query.dialect == case.dialect.replace("groups", "streaming"), query.dialect
    data = data.of(query, every_graph=False)
    result = query.run(data.streams, data.graph, data.graphs)
    ordered = "\nORDER BY" in case.text
    known: dict[object, Answer] = {}
    for t in range(min(data.stamps), max(data.stamps) + 30):
        default, graphs = held(case, data, t)
        content = default, frozenset(graphs.items())
        if content not in known:
            known[content] = theirs(store(set(default), dict(graphs)), case.plain, ordered)
        mine = ours(query, result.snapshot(t), ordered)
        assert w3c.agree(mine, known[content]), (
            f"{case.name}, seed {seed}, at {t}:\nours {mine.rows}\ntheirs {known[content].rows}"
        )
    assert len(known) > 1, "nothing happened"


ALL = list(cases())


def test_there_are_enough_queries() -> None:
    assert len(ALL) >= 60
    assert len({case.name for case in ALL}) == len(ALL)


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_each_snapshot_is_what_a_store_answers(case: Case) -> None:
    for seed in (0, 1):
        check(case, seed)


@pytest.mark.long
@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_each_snapshot_is_what_a_store_answers_over_many_streams(case: Case) -> None:
    for seed in range(2, 40):
        check(case, seed)
