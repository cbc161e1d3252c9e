"""A comparison of the engine, in all its modes of execution, with the definitions.

A `Mode` is a way to run a query: over a history or live, with chunks of some size, cut after some
items, with the optimized or the logical plan, with chains of joins computed together or by cost,
with items in order or not. `run` executes a query in a mode and returns its rows as `Answers`, which
have a snapshot at each instant. `Definition` evaluates the logical plan over the same data.
`disagreement` compares both at each instant at which either can change.

Terms are compared by their lexical form, blank nodes by label: the engine scopes labels to sources
like `streamsparql.inputs`.
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
from streamsparql.limits import Limits
from streamsparql.rdflib_terms import term
from streamsparql.run.input import RunInput
from streamsparql.run.live import Live
from streamsparql.run.result import EmbeddedComputation, Result
from streamsparql.sources import read_stream

Item = tuple[tuple[str, str, str], int]
Cells = Hashable
"""A row: a set of pairs of a name and a term, a triple, or a boolean."""


class Data(NamedTuple):
    """The data of a query: streams in the order of arrival, the default graph, named graphs."""

    streams: Mapping[str, Sequence[Item]] = {}
    graph: Sequence[tuple[str, str, str]] = ()
    graphs: Mapping[str, Sequence[tuple[str, str, str]]] = {}

    def of(self, query: streamsparql.Query, every_graph: bool = True) -> Data:
        """Return the part that a query accepts: names that the query does not use are errors."""
        streams = {name: self.streams[name] for name in query.streams}
        unrestricted = query.translation.dataset.graphs is None and every_graph
        named = {n: g for n, g in self.graphs.items() if n in query.graphs or unrestricted}
        return Data(streams, self.graph, named)

    def shifted(self, by: int) -> Data:
        """Return the data with all timestamps increased by a number of milliseconds."""
        streams = {n: [(x, t + by) for x, t in items] for n, items in self.streams.items()}
        return self._replace(streams=streams)

    @property
    def stamps(self) -> list[int]:
        """All timestamps, sorted."""
        return sorted(t for items in self.streams.values() for _, t in items)


class Mode(NamedTuple):
    """A way to run a query."""

    live: bool = False
    emit: str = "final"
    optimize: bool = True
    joins: str = "by cost"
    """How chains of joins are computed."""
    chunk: int = 65_536
    cut_after: int = 65_536
    """The number of items after which open rows are cut."""
    max_delay: int = 0
    seed: int = 0
    """The seed for the disorder of items and, in live mode, for the order of calls."""
    entailment: str | None = None
    limited: bool = False
    """Whether there are limits, which the run does not reach."""

    def compile(self, text: str) -> streamsparql.Query:
        """Compile a query as this mode requires."""
        return streamsparql.compile(text, optimize=self.optimize, entailment=self.entailment)


WHOLE = Mode()
"""The history in one chunk, with the optimized plan."""

modes: st.SearchStrategy[Mode] = st.builds(
    Mode,
    live=st.booleans(),
    emit=st.sampled_from(["final", "eager"]),
    optimize=st.booleans(),
    joins=st.sampled_from(["by cost", "together"]),
    chunk=st.sampled_from([1, 2, 3, 5, 65_536]),
    cut_after=st.sampled_from([1, 3, 65_536]),
    max_delay=st.sampled_from([0, 0, 2, 7]),
    seed=st.integers(0, 1_000_000),
    limited=st.booleans(),
    entailment=st.none(),
)

AMPLE = Limits(time=1e6, memory=1 << 40, state=1 << 40, rows=1 << 40)


class Answers(NamedTuple):
    """The rows of an execution, with their validity."""

    rows: list[Element[Cells]]

    def at(self, t: int) -> Counter[Cells]:
        """Return the snapshot at an instant."""
        return Counter(item for item, start, end in self.rows if start <= t < end)

    @property
    def changes(self) -> set[int]:
        """The instants at which a row starts or ends."""
        return {t for _, start, end in self.rows for t in (start, end) if t < INFINITY}

    @property
    def canonical(self) -> bool:
        """Whether the k-th of equal rows holds exactly where the multiplicity is at least k."""
        return sorted(coalesce(self.rows), key=str) == sorted(self.rows, key=str)


class Definition:
    """The logical plan, evaluated over the data at any instant."""

    def __init__(self, query: streamsparql.Query, data: Data) -> None:
        self.form, self.plan = query.form, query.logical
        self.inputs = streamsparql.inputs(data.streams, data.graph, data.graphs, Run())
        self._snapshots: dict[int, list[Cells]] = {}

    @property
    def start(self) -> int:
        """The start of the horizon."""
        return self.inputs.start

    def read(self, t: int) -> list[Cells]:
        """Return the rows of the snapshot at an instant, in the order of the query."""
        if t not in self._snapshots:
            rows = (_cells_of_definition(self.form, row) for row in self.plan.at(t, self.inputs))
            self._snapshots[t] = list(rows)
        return self._snapshots[t]

    def at(self, t: int) -> Counter[Cells]:
        """Return the snapshot at an instant."""
        return Counter(self.read(t))

    def borders(self) -> set[int]:
        """Return the instants at which the content of a window changes, and so the snapshot can."""
        instants = {t for items in self.inputs.streams.values() for _, _, t in items}
        for window in windows(self.plan):
            validity = window.validity(window.input.elements(self.inputs))
            instants.update(t for _, start, end in validity for t in (start, end))
        return {t for t in instants | {self.start} if self.start <= t < INFINITY}


def windows(plan: Node) -> Iterator[Window]:
    """Return all windows of a plan, including those inside EXISTS."""
    return (node for node in plan.walk() if isinstance(node, Window))


def _cells_of_definition(form: str, row: Any) -> Cells:
    if form == "ask":
        assert isinstance(row, Literal)
        return row.lexical == "true"
    if isinstance(row, Solution):
        return frozenset((variable.name, value) for variable, value in row.items())
    assert isinstance(row, Triple)
    return row


def cells(form: str, row: Mapping[str, Any]) -> Cells:
    """Convert a row of a result to the form that is compared."""
    if form == "ask":
        return bool(row["answer"])
    if form == "select":
        return frozenset((n, term(value)) for n, value in row.items() if value is not None)
    return Triple(*(term(row[place]) for place in ("subject", "predicate", "object")))


def read(query: streamsparql.Query, snapshot: Any) -> list[Cells]:
    """Convert a snapshot of a result to the form that is compared."""
    if query.form == "ask":
        return [snapshot]
    if query.form == "select":
        return [cells(query.form, row) for row in snapshot]
    return [Triple(*map(term, triple)) for triple in snapshot]


# -- Running ------------------------------------------------------------------------------------


def run(text: str, data: Data, mode: Mode = WHOLE, **options: Any) -> Answers:
    """Execute a query over data in a mode; return its rows."""
    query = mode.compile(text)
    with settings_of(mode):
        if mode.live:
            return Answers(_elements(query, live_rows(query, data, mode, **options)))
        return Answers(_elements(query, result(query, data, mode, **options)))


def result(query: streamsparql.Query, data: Data, mode: Mode = WHOLE, **options: Any) -> Result:
    """Return the result over a history."""
    options.setdefault("limits", AMPLE if mode.limited else None)
    run_input = RunInput(*data, max_delay=mode.max_delay, started=0, **options)
    return Result(EmbeddedComputation(query, run_input))


def live_rows(
    query: streamsparql.Query, data: Data, mode: Mode, each: Callable[[], object] = bool,
    report: str | None = None, every: int | None = None, **options: Any
) -> list[Any]:  # fmt: skip
    """Return the rows of a live query after calls in random order; call `each` after each call."""
    options.setdefault("limits", AMPLE if mode.limited else None)
    static = data._replace(streams={})
    run_input = RunInput(*static, max_delay=mode.max_delay, started=0, **options)
    live = Live(query, run_input, emit=mode.emit, report=report, every=every)
    random, rows = Random(mode.seed), []
    left = {name: list(items) for name, items in data.streams.items()}
    while waiting := [name for name in left if left[name]]:
        name = random.choice(waiting)
        match random.randrange(8):
            case 0:
                live.advance(_not_after(left[name], random), name)
            case 1:
                live.advance(_not_after([x for items in left.values() for x in items], random))
            case 2:
                rows += live.rows()
            case 3:
                size = random.randint(1, 5)
                live.push_many(name, left[name][:size])
                del left[name][:size]
            case _:
                live.push(name, *left[name].pop(0))
        each()
    if random.random() < 0.5:
        rows += live.rows()
    live.close()
    assert not live.late
    return rows + live.rows()


def _not_after(items: Iterable[Item], random: Random) -> int:
    """Return a random instant that is not after any of the items."""
    return max(min(t for _, t in items) - random.choice([0, 0, 1, 5]), 0)


def disordered(data: Data, delay: int, seed: int) -> Data:
    """Shuffle the items so that none is late by more than `delay`."""
    random = Random(seed)

    def shuffled(items: Sequence[Item]) -> list[Item]:
        arrival = [(t + random.randint(0, delay), k) for k, (_, t) in enumerate(items)]
        return [items[k] for _, k in sorted(arrival)]

    return data._replace(streams={n: shuffled(items) for n, items in data.streams.items()})


@contextmanager
def settings_of(mode: Mode) -> Iterator[None]:
    """Patch the size of chunks, the number of items between cuts, and the choice of joins."""
    with (
        patch("streamsparql.physical.lowering.lower_joins.MODE", mode.joins),
        patch("streamsparql.run.engine.read_stream", partial(read_stream, chunk=mode.chunk)),
        patch("streamsparql.run.execution.CUT_AFTER", mode.cut_after),
    ):
        yield


def _elements(query: streamsparql.Query, rows: Iterable[Any]) -> list[Element[Cells]]:
    return [Element(cells(query.form, row), row.start, row.end) for row in rows]


# -- Comparing ----------------------------------------------------------------------------------


def disagreement(text: str, data: Data, mode: Mode = WHOLE) -> str:
    """Describe where the engine and the definition differ; return "" if they agree."""
    data = disordered(data, mode.max_delay, mode.seed)
    query = mode.compile(text)
    data = data.of(query)
    ours, definition = run(text, data, mode), Definition(query, data)
    difference = first_difference(ours, definition)
    if not difference and mode.emit == "final" and not ours.canonical:
        difference = f"not canonical: {ours.rows}"
    return difference and f"{difference}\n{mode}\n{data}\n{text}"


def first_difference(ours: Answers, definition: Definition) -> str:
    """Describe the first instant at which the snapshots differ; return "" if they are equal."""
    if any(not definition.start <= start < end for _, start, end in ours.rows):
        return f"rows outside the horizon: {ours.rows}"
    changes = ours.changes
    instants = definition.borders() | changes | {t - 1 for t in changes}
    for t in sorted(t for t in instants if t >= definition.start):
        here, there = ours.at(t), definition.at(t)
        if here != there:
            return f"at {t} the engine has {show(here)}, expected {show(there)}"
    return ""


def show(bag: Counter[Cells]) -> str:
    """Format a multiset of rows for a message."""
    texts = sorted(
        "{" + ", ".join(sorted(f"?{n}={x}" for n, x in row)) + "}"
        if isinstance(row, frozenset)
        else str(row)
        for row in bag.elements()
    )
    return "[" + " ".join(texts) + "]"
