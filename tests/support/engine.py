"""The engine, run in one of its many ways, beside the definition of what it has to give.

A `Mode` is a way to run a query: over its history or live, in chunks of this size, cut here, with
the plan rewritten or not, its items out of order or not. `run` runs a query so and gives its rows
as `Answers`, which know the snapshot of any instant; `Definition` is what the logical plan says of
the same data. `disagreement` compares the two wherever either can change.

Terms are compared as they are, blank nodes by label: the engine scopes labels to sources as
`streamsparql.inputs` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from hypothesis import strategies as st

import streamsparql
from streamsparql.algebra.functions import Run
from streamsparql.algebra.node import Node
from streamsparql.algebra.solutions import Solution
from streamsparql.algebra.streams import INFINITY, Element, coalesce
from streamsparql.algebra.terms import Literal, Triple
from streamsparql.algebra.window import Window
from streamsparql.rdflib_terms import term
from streamsparql.run.input import RunInput
from streamsparql.run.live import Live
from streamsparql.run.result import EmbeddedComputation, Result
from streamsparql.sources import read_stream

Item = tuple[tuple[str, str, str], int]
Cells = Hashable
"""A row: a set of pairs of a name and a term, a triple, or a boolean."""


class Data(NamedTuple):
    """What a query is asked over: streams in the order of arrival, the background, named graphs."""

    streams: Mapping[str, Sequence[Item]] = {}
    graph: Sequence[tuple[str, str, str]] = ()
    graphs: Mapping[str, Sequence[tuple[str, str, str]]] = {}

    def of(self, query: streamsparql.Query, every_graph: bool = True) -> Data:
        """The part that a query may be given; what it does not name is refused."""
        streams = {name: self.streams[name] for name in query.streams}
        asked = query.translation.dataset.graphs is None and every_graph
        named = {n: g for n, g in self.graphs.items() if n in query.graphs or asked}
        return Data(streams, self.graph, named)

    def moved(self, by: int) -> Data:
        """All items later by so much."""
        streams = {n: [(x, t + by) for x, t in items] for n, items in self.streams.items()}
        return self._replace(streams=streams)

    @property
    def stamps(self) -> list[int]:
        """All timestamps, in order."""
        return sorted(t for items in self.streams.values() for _, t in items)


class Mode(NamedTuple):
    """A way to run a query."""

    live: bool = False
    emit: str = "final"
    optimize: bool = True
    chunk: int = 65_536
    cut_after: int = 65_536
    """After so many items what operators hold open is cut."""
    max_delay: int = 0
    seed: int = 0
    """Of the disorder of items and, where live, of the order of calls."""


WHOLE = Mode()
"""The history in one chunk, by the rewritten plan."""

modes: st.SearchStrategy[Mode] = st.builds(
    Mode,
    live=st.booleans(),
    emit=st.sampled_from(["final", "eager"]),
    optimize=st.booleans(),
    chunk=st.sampled_from([1, 2, 3, 5, 65_536]),
    cut_after=st.sampled_from([1, 3, 65_536]),
    max_delay=st.sampled_from([0, 0, 2, 7]),
    seed=st.integers(0, 1_000_000),
)


class Answers(NamedTuple):
    """The rows of a run, with their validity."""

    rows: list[Element[Cells]]

    def at(self, t: int) -> Counter[Cells]:
        """The snapshot at an instant."""
        return Counter(item for item, start, end in self.rows if start <= t < end)

    @property
    def changes(self) -> set[int]:
        """Where a row starts or ends."""
        return {t for _, start, end in self.rows for t in (start, end) if t < INFINITY}

    @property
    def canonical(self) -> bool:
        """Whether the k-th of equal rows holds exactly where there are k of them or more."""
        return sorted(coalesce(self.rows), key=str) == sorted(self.rows, key=str)


class Definition:
    """What the logical plan says of the data, instant by instant."""

    def __init__(self, query: streamsparql.Query, data: Data) -> None:
        self.form, self.plan = query.form, query.logical
        self.inputs = streamsparql.inputs(data.streams, data.graph, data.graphs, Run())
        self._known: dict[int, list[Cells]] = {}

    @property
    def start(self) -> int:
        """Where the horizon begins."""
        return self.inputs.start

    def read(self, t: int) -> list[Cells]:
        """The snapshot at an instant, in the order in which it is read."""
        if t not in self._known:
            rows = (_cells(self.form, row) for row in self.plan.at(t, self.inputs))
            self._known[t] = list(rows)
        return self._known[t]

    def at(self, t: int) -> Counter[Cells]:
        """The snapshot at an instant."""
        return Counter(self.read(t))

    def borders(self) -> set[int]:
        """Where the content of some window changes: between these the answer stays the same."""
        found = {t for items in self.inputs.streams.values() for _, _, t in items}
        for window in windows(self.plan):
            validity = window.validity(window.input.elements(self.inputs))
            found.update(t for _, start, end in validity for t in (start, end))
        return {t for t in found | {self.start} if self.start <= t < INFINITY}


def windows(plan: Node) -> Iterator[Window]:
    """All windows of a plan, those of EXISTS among them."""
    return (node for node in plan.walk() if isinstance(node, Window))


def _cells(form: str, row: Any) -> Cells:
    if form == "ask":
        assert isinstance(row, Literal)
        return row.lexical == "true"
    if isinstance(row, Solution):
        return frozenset((variable.name, value) for variable, value in row.items())
    assert isinstance(row, Triple)
    return row


def cells(form: str, row: Mapping[str, Any]) -> Cells:
    """A row as users get it, in the form in which it is compared."""
    if form == "ask":
        return bool(row["answer"])
    if form == "select":
        return frozenset((n, term(value)) for n, value in row.items() if value is not None)
    return Triple(*(term(row[place]) for place in ("subject", "predicate", "object")))


def read(query: streamsparql.Query, shown: Any) -> list[Cells]:
    """A snapshot as users get it, in the form in which it is compared."""
    if query.form == "ask":
        return [shown]
    if query.form == "select":
        return [cells(query.form, row) for row in shown]
    return [Triple(*map(term, triple)) for triple in shown]


# -- Running ------------------------------------------------------------------------------------


def run(text: str, data: Data, mode: Mode = WHOLE, **options: Any) -> Answers:
    """The rows that a query gives over data, run in this way."""
    query = streamsparql.compile(text, optimize=mode.optimize)
    with in_pieces(mode):
        if mode.live:
            return Answers(_elements(query, pushed(query, data, mode, **options)))
        return Answers(_elements(query, result(query, data, mode, **options)))


def result(query: streamsparql.Query, data: Data, mode: Mode = WHOLE, **options: Any) -> Result:
    """The result over a history."""
    given = RunInput(*data, max_delay=mode.max_delay, started=0, **options)
    return Result(EmbeddedComputation(query, given))


def pushed(
    query: streamsparql.Query, data: Data, mode: Mode, each: Callable[[], object] = bool,
    report: str | None = None, every: int | None = None, **options: Any
) -> list[Any]:  # fmt: skip
    """What comes out of a live query, its calls in random order; `each` is called after each."""
    rest = data._replace(streams={})
    given = RunInput(*rest, max_delay=mode.max_delay, started=0, **options)
    live = Live(query, given, emit=mode.emit, report=report, every=every)
    random, rows = Random(mode.seed), []
    left = {name: list(items) for name, items in data.streams.items()}
    while waiting := [name for name in left if left[name]]:
        name = random.choice(waiting)
        match random.randrange(8):
            case 0:
                live.advance(_before(left[name], random), name)
            case 1:
                live.advance(_before([x for items in left.values() for x in items], random))
            case 2:
                rows += live.rows()
            case 3:
                some = random.randint(1, 5)
                live.push_many(name, left[name][:some])
                del left[name][:some]
            case _:
                live.push(name, *left[name].pop(0))
        each()
    if random.random() < 0.5:
        rows += live.rows()
    live.close()
    assert not live.late
    return rows + live.rows()


def _before(items: Iterable[Item], random: Random) -> int:
    """An instant that none of these items is before."""
    return max(min(t for _, t in items) - random.choice([0, 0, 1, 5]), 0)


def disordered(data: Data, delay: int, seed: int) -> Data:
    """The items in another order, in which none is late by more than `delay`."""
    random = Random(seed)

    def shuffled(items: Sequence[Item]) -> list[Item]:
        arrival = [(t + random.randint(0, delay), k) for k, (_, t) in enumerate(items)]
        return [items[k] for _, k in sorted(arrival)]

    return data._replace(streams={n: shuffled(items) for n, items in data.streams.items()})


@contextmanager
def in_pieces(mode: Mode) -> Iterator[None]:
    """Sources give chunks of this size, and operators are cut this often."""
    with (
        patch("streamsparql.run.execution.read_stream", partial(read_stream, chunk=mode.chunk)),
        patch("streamsparql.run.execution.CUT_AFTER", mode.cut_after),
    ):
        yield


def _elements(query: streamsparql.Query, rows: Iterable[Any]) -> list[Element[Cells]]:
    return [Element(cells(query.form, row), row.start, row.end) for row in rows]


# -- Comparing ----------------------------------------------------------------------------------


def disagreement(text: str, data: Data, mode: Mode = WHOLE) -> str:
    """Where the engine and the definition do not say the same; "" if nowhere."""
    data = disordered(data, mode.max_delay, mode.seed)
    query = streamsparql.compile(text)
    data = data.of(query)
    ours, definition = run(text, data, mode), Definition(query, data)
    found = differs(ours, definition)
    if not found and mode.emit == "final" and not ours.canonical:
        found = f"not canonical: {ours.rows}"
    return found and f"{found}\n{mode}\n{data}\n{text}"


def differs(ours: Answers, definition: Definition) -> str:
    """Where the snapshots are not the same, and how; "" if they are."""
    if any(not definition.start <= start < end for _, start, end in ours.rows):
        return f"rows outside of the horizon: {ours.rows}"
    changes = ours.changes
    instants = definition.borders() | changes | {t - 1 for t in changes}
    for t in sorted(t for t in instants if t >= definition.start):
        here, there = ours.at(t), definition.at(t)
        if here != there:
            return f"at {t} the engine gives {show(here)} for {show(there)}"
    return ""


def show(bag: Counter[Cells]) -> str:
    """A bag of rows to read."""
    texts = sorted(
        "{" + ", ".join(sorted(f"?{n}={x}" for n, x in row)) + "}"
        if isinstance(row, frozenset)
        else str(row)
        for row in bag.elements()
    )
    return "[" + " ".join(texts) + "]"
