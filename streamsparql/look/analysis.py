"""What a run measured, operator by operator: `Query.analyze`, and `explain --analyze`.

A run is watched through the pipeline's one hook. After each step of an operator a `Watch` adds up
the rows that went in and came out and the time that it took, and looks at how much it holds. Steps
are not nested, so times are exclusive: they add up to what all operators took together. Steps take
in thousands of items at a time, so watching costs next to nothing.

What comes of it, an `Analysis`, is a value: it holds numbers and words and nothing of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.look.explain.analysis_text import explained, fragment
from streamsparql.look.explain.boxes.box import Box, Measures
from streamsparql.look.explain.boxes.phrases import with_prefixes
from streamsparql.look.explain.boxes.physical import computed, operator_box
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.run.execution import Execution, Reporting, RunInput, reports_asked
from streamsparql.run.replay import Replay
from streamsparql.sources.clock import Round

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamsparql.query import Query


class OperatorMeasures(NamedTuple):
    """An operator of the physical plan, and what a run measured of it.

    On Spark rows, steps and seconds are those of all slabs together, `state` is that of the slab
    that held most.
    """

    kind: str
    title: str
    """What it is given, in the query's words."""
    computes: str
    """The logical operator that it computes, where that is called otherwise."""
    inputs: tuple[int, ...]
    """The operators that it reads, by their places among the operators of the analysis."""
    rows_in: tuple[int, ...]
    """Per input."""
    rows_out: int
    steps: int
    """How often it was asked."""
    state: int
    """The most rows that it held after a step."""
    seconds: float
    """The time of its own steps."""
    share: float
    """Its part of the time of all operators."""
    box: Box
    """How it is drawn."""

    @property
    def selectivity(self) -> float | None:
        """Rows out by rows in, of all inputs together; None where none came in."""
        return self.measures.selectivity

    @property
    def of_pairs(self) -> float | None:
        """Of an operator with two inputs: rows out by the pairs of rows that could have met."""
        return self.measures.of_pairs

    @property
    def measures(self) -> Measures:
        """The numbers, as they are drawn."""
        return Measures(
            self.rows_in, self.rows_out, self.seconds, self.share, self.state, self.steps
        )


class Items(NamedTuple):
    """What became of the items of the streams: `read` is used, late and rejected ones together.

    On Spark just those are known that came to slabs. An item that several slabs look at counts in
    each.
    """

    read: int
    used: int
    unmatched: int | None = None
    """How many of the used ones no pattern of the query can match; they only tell the time."""
    late: int | None = None
    rejected: int | None = None


class Times(NamedTuple):
    """Where the time went, in seconds.

    On Spark `preparing` is the look at the sources; the next three are sums over all tasks, which
    ran side by side, so that they may be more than `total`.
    """

    total: float
    preparing: float
    """Reading the static graphs, and lowering the plan over them."""
    reading: float
    """Reading and parsing the streams, and putting them in order."""
    computing: float
    """In the operators, and between them."""
    writing: float
    """Making the rows that are given out, as Arrow tables."""


class Stage(NamedTuple):
    """A stage of a run on Spark; they follow each other: look, exchange, slabs, merge."""

    name: str
    seconds: float
    rows_in: int | None = None
    rows_out: int | None = None


class Slab(NamedTuple):
    """A part of a run on Spark, which is one task."""

    number: int
    items: int
    """Items that came to it; an item that several slabs look at came to each."""
    rows: int
    """Rows that it gave; what goes on over a border was cut there."""
    seconds: float
    state: int
    """The most rows that its operators held together."""


@dataclass(frozen=True)
class Cutting:
    """What the run on Spark said of itself, as `explain` shows it."""

    its_sources: tuple[tuple[str, str], ...]
    its_statics: tuple[str, ...]
    its_reasons: tuple[str, ...]
    its_slabs: tuple[tuple[str, str], ...]

    def sources(self) -> Sequence[tuple[str, str]]:
        """The streams, and how each is read."""
        return self.its_sources

    def statics(self) -> Sequence[str]:
        """What was done about the static graphs."""
        return self.its_statics

    def reasons(self) -> Sequence[str]:
        """Why the cut is as it is."""
        return self.its_reasons

    def slabs(self) -> Sequence[tuple[str, str]]:
        """The parts, and about how many items come in each."""
        return self.its_slabs


@dataclass(frozen=True, repr=False)
class Analysis:
    """What a run of a query measured.

    `print` it, or `explain` it in any format; `operators` has the numbers, those that read streams
    first, the one that gives the rows last.

    >>> import streamsparql
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }"
    >>> items = [("<a>", "<p>", "<b>", 3), ("<a>", "<q>", "<b>", 4)]
    >>> analysis = streamsparql.compile(text).analyze(items)
    >>> analysis.rows, analysis.items.read, analysis.items.unmatched
    (1, 2, 1)
    """

    query: Query
    engine: str
    operators: tuple[OperatorMeasures, ...]
    items: Items
    rows: int
    """Rows that were given; where reports were asked for, those of all reports together."""
    times: Times
    terms: int
    """Terms that the dictionary held in the end; on Spark, that of the slab that held most."""
    state: int
    """The most rows that all operators held together; on Spark in one slab."""
    span: tuple[int, int] | None
    """From the first item's instant to the last one's; None where there was none."""
    stages: tuple[Stage, ...] = ()
    slabs: tuple[Slab, ...] = ()
    cut: Cutting | None = field(default=None, compare=False)
    unread: int = 0
    """Triples of static graphs that were rejected; on Spark, of those that the tasks get."""

    @property
    def rate(self) -> float:
        """Items read per second of the whole run."""
        return self.items.read / self.times.total if self.times.total else 0.0

    @property
    def skew(self) -> float | None:
        """How much longer the slowest slab took than the median one; None without slabs."""
        times = sorted(slab.seconds for slab in self.slabs)
        if not times or not times[len(times) // 2]:
            return None
        return times[-1] / times[len(times) // 2]

    def explain(
        self,
        format: str = "text",  # noqa: A002 -- the public name, as of Query.explain
        stage: str = "all",
        *,
        color: bool = False,
        width: int = 100,
    ) -> str:
        """The plan with what was measured: text, json, dot, mermaid, svg or html.

        The stages are physical, spark where the run was on Spark, and all for what there is.
        `color` and `width` are those of a terminal.
        """
        return explained(self, format, stage, color, width)

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"<Analysis: {self.items.read} items, {self.rows} rows, {self.times.total:.3f} s>"

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        return fragment(self)


# -- watching --------------------------------------------------------------------------------------


class _Seen:
    """What passed an operator so far."""

    __slots__ = ("peak", "rows_in", "rows_out", "seconds", "state", "steps")

    def __init__(self, inputs: int) -> None:
        self.rows_in = [0] * inputs
        self.rows_out = self.steps = self.state = self.peak = 0
        self.seconds = 0.0


class Watch:
    """An observer of a pipeline that adds up what it sees.

    >>> from streamsparql.physical.operators.access import Always
    >>> import numpy as np
    >>> watch, one = Watch(), Always.of({"x": np.array([5, 6])}, 2)
    >>> watch.observe(one, [], one.rows, 0.5)
    >>> watch.measures([one], {})[0].rows_out
    2
    """

    def __init__(self) -> None:
        self.reading = self.computing = 0.0
        """Seconds of bringing items in order, and of the pipeline."""
        self.peak = 0
        """The most rows that all operators held together."""
        self._state = 0
        self._seen: dict[Operator, _Seen] = {}

    def observe(
        self, operator: Operator, inputs: Sequence[Batch], given: Batch, seconds: float
    ) -> None:
        """An operator has made a step."""
        seen = self._seen.get(operator)
        if seen is None:
            seen = self._seen[operator] = _Seen(len(inputs))
        for k, batch in enumerate(inputs):
            seen.rows_in[k] += len(batch)
        seen.rows_out += len(given)
        seen.steps += 1
        seen.seconds += seconds
        size = operator.size()
        self._state += size - seen.state
        seen.state = size
        seen.peak = max(seen.peak, size)
        self.peak = max(self.peak, self._state)

    def measures(
        self, operators: Sequence[Operator], prefixes: Mapping[str, str]
    ) -> tuple[OperatorMeasures, ...]:
        """What was seen of the operators of a pipeline, by the prefixes of its query."""
        write = with_prefixes(prefixes)
        places = {operator: k for k, operator in enumerate(operators)}
        total = sum(seen.seconds for seen in self._seen.values())
        found = []
        for operator in operators:
            seen = self._seen.get(operator) or _Seen(len(operator.inputs))
            box = operator_box(operator, write)
            found.append(
                OperatorMeasures(
                    box.kind,
                    box.title,
                    computed(operator),
                    tuple(places[below] for below in operator.inputs),
                    tuple(seen.rows_in),
                    seen.rows_out,
                    seen.steps,
                    seen.peak,
                    seen.seconds,
                    seen.seconds / total if total else 0.0,
                    box,
                )
            )
        return tuple(found)


class WatchedExecution(Execution):
    """A run that takes the time of reading and of computing."""

    def __init__(self, query: Query, given: RunInput, *, watch: Watch, **options: Any) -> None:
        super().__init__(query, given, observer=watch, **options)
        self._watch = watch

    @override
    def rounds(self) -> Iterator[Round]:
        rounds = super().rounds()
        while True:
            before = perf_counter()
            found = next(rounds, None)
            self._watch.reading += perf_counter() - before
            if found is None:
                return
            yield found

    @override
    def round(self, batches: Mapping[str, Batch], watermark: int) -> Batch:
        before = perf_counter()
        try:
            return super().round(batches, watermark)
        finally:
            self._watch.computing += perf_counter() - before


# -- running ---------------------------------------------------------------------------------------


class Analyzing:
    """A run of a query in this process that is measured; `stop` ends it early.

    One that is `endless` ends by itself where the horizon does.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 1 MS FIXED {?s ?p ?o}")
    >>> Analyzing(query, RunInput({"s": [("<a>", "<p>", '"1"', 3)]})).run().rows
    1
    """

    def __init__(
        self, query: Query, given: RunInput, report: Reporting | None = None, endless: bool = False
    ) -> None:
        self._query = query
        self._watch = Watch()
        self._begun = perf_counter()
        execution = partial(WatchedExecution, watch=self._watch)
        self.replay = Replay(query, given, report=report, endless=endless, execution=execution)
        self._prepared = perf_counter()

    def stop(self) -> None:
        """Ends the run when its present round is over."""
        self.replay.stop()

    def run(self, after_round: Callable[[Replay], object] = lambda replay: None) -> Analysis:
        """Runs to the end; `after_round` is called now and then."""
        for _ in self.replay.tables():
            self.replay.drain()
            after_round(self.replay)
        ended = perf_counter()
        run, watch = self.replay.execution, self._watch
        total, preparing = ended - self._begun, self._prepared - self._begun
        writing = total - preparing - watch.reading - watch.computing
        accounting = self.replay.accounting
        return Analysis(
            self._query,
            "embedded",
            watch.measures(run.pipeline.operators, self._query.prefixes),
            Items(
                accounting.items,
                accounting.used,
                accounting.unmatched,
                accounting.late,
                accounting.rejected,
            ),
            self.replay.rows,
            Times(total, preparing, watch.reading, watch.computing, max(writing, 0.0)),
            len(run.terms),
            watch.peak,
            _span(run),
            unread=self.replay.unread,
        )


def _span(run: Execution) -> tuple[int, int] | None:
    least = min((sorter.least for sorter in run.sorters.values()), default=INFINITY)
    return None if least == INFINITY else (least, run.last_stamp)


def analyzed(
    query: Query,
    given: RunInput,
    *,
    engine: str = "embedded",
    spark: SparkSession | None = None,
    slabs: int | None = None,
    report: str | None = None,
    every: int | None = None,
) -> Analysis:
    """Runs a query over data and gives what was measured; the rows are made and counted."""
    wanted = reports_asked(query, report, every)
    if engine == "embedded":
        return Analyzing(query, given, wanted).run()
    from streamsparql.spark.analyze import analyzed_on_spark

    return analyzed_on_spark(query, given, spark, slabs, wanted)


def items_offered(operators: Sequence[Operator], measures: Sequence[OperatorMeasures]) -> int:
    """The items that came to the accesses to streams, each stream's once."""
    found = {
        operator.stream: each.rows_out
        for operator, each in zip(operators, measures, strict=True)
        if isinstance(operator, StreamAccess)
    }
    return sum(found.values())
