"""The measurements of a run, operator by operator, for `Query.analyze`.

The pipeline of a measured run adds up the time of each operator and reads the size of its state
after each step. Steps are not nested, so times are exclusive: they add up to the time of all
operators. A step processes thousands of items, so measuring costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

from streamsparql.compiled import CompiledQuery
from streamsparql.display import Description, describe
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.physical.pipeline import Pipeline
from streamsparql.physical.rule_closure import Feed, counts_of, with_inner
from streamsparql.physical.state.probe_orders import TakenOrder
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput
from streamsparql.run.replay import Replay
from streamsparql.run.reports import Reporting
from streamsparql.sources import Accounting
from streamsparql.sources.clock import InputStep


class OperatorMeasures(NamedTuple):
    """The measures of an operator of the physical plan.

    On Spark, rows, steps and seconds are sums over all slabs, and `state` is that of the slab that
    retained most.
    """

    description: Description
    inputs: tuple[int, ...]
    """The operators that it reads, as indexes into the list of all operators."""
    rows_in: tuple[int, ...]
    """Per input."""
    rows_out: int
    steps: int
    state: int
    """The maximal number of rows that it retained after a step."""
    seconds: float
    """The time of its steps, without those of its inputs."""
    share: float
    """Its fraction of the time of all operators."""
    orders: tuple[TakenOrder, ...] = ()
    """The orders in which rows met its inputs, where each row can have its own."""

    @property
    def kind(self) -> str:
        """The name of the operator."""
        return self.description.kind

    @property
    def title(self) -> str:
        """Its parameters, as the query writes them."""
        return self.description.title

    @property
    def computes(self) -> str:
        """The logical operator that it computes, if the name differs."""
        return self.description.computes

    @property
    def selectivity(self) -> float | None:
        """Rows out by rows in, of all inputs together; None without input."""
        return selectivity(self.rows_in, self.rows_out)

    @property
    def of_pairs(self) -> float | None:
        """Rows out by pairs of rows of two inputs; None for any other number of inputs."""
        return pair_selectivity(self.rows_in, self.rows_out)


def selectivity(rows_in: Sequence[int], rows_out: int | None) -> float | None:
    """Return rows out by rows in; None without input."""
    return rows_out / sum(rows_in) if sum(rows_in) and rows_out is not None else None


def pair_selectivity(rows_in: Sequence[int], rows_out: int | None) -> float | None:
    """Return rows out by pairs of rows of two inputs.

    >>> pair_selectivity((4, 5), 10), pair_selectivity((4,), 10)
    (0.5, None)
    """
    pairs = rows_in[0] * rows_in[1] if len(rows_in) == 2 else 0
    return rows_out / pairs if pairs and rows_out is not None else None


class ItemsRead(NamedTuple):
    """The number of items that the slabs of a run on Spark read, with repetitions."""

    read: int


class Times(NamedTuple):
    """The time of a run by phase, in seconds.

    On Spark `preparing` is the inspection of the sources; the next three are sums over all tasks,
    which run in parallel, so they may exceed `total`.
    """

    total: float
    preparing: float
    """Reading the static graphs, and lowering the plan over them."""
    reading: float
    """Reading and parsing the streams, and sorting their items."""
    computing: float
    """Evaluating the operators."""
    writing: float
    """Decoding the rows as Arrow tables."""


class Stage(NamedTuple):
    """A stage of a run on Spark: survey, exchange, slabs or merge, in this order."""

    name: str
    seconds: float
    rows_in: int | None = None
    rows_out: int | None = None


class Slab(NamedTuple):
    """A slab of a run on Spark, which is one task."""

    number: int
    items: int
    """Its items; an item that several slabs read counts in each."""
    rows: int
    """Its rows; a row that extends beyond the end of the slab was cut there."""
    seconds: float
    state: int
    """The maximal number of rows that its operators retained together."""


@dataclass(frozen=True)
class Cutting:
    """How a run on Spark was cut into tasks, and why."""

    sources: tuple[tuple[str, str], ...]
    """The streams, and how each is read."""
    statics: tuple[str, ...]
    """How each static graph is distributed."""
    reasons: tuple[str, ...]
    """The reasons for this cut."""
    slabs: tuple[tuple[str, str], ...]
    """The slabs, and an estimate of the items of each."""


@dataclass(frozen=True)
class Measurements:
    """The measures of a run of a query: a value that retains no part of the run."""

    query: CompiledQuery
    engine: str
    operators: tuple[OperatorMeasures, ...]
    """In the order of the plan: operators that read streams first, the sink last."""
    items: Accounting | ItemsRead
    """The numbers of items by outcome; on Spark, the number that the slabs read."""
    rows: int
    """Rows that were emitted; for reports, those of all reports together."""
    times: Times
    terms: int
    """Terms in the dictionary at the end; on Spark, in the slab with the most."""
    state: int
    """The maximal number of rows that all operators retained together; on Spark in one slab."""
    span: tuple[int, int] | None
    """From the first item's instant to the last one's; None without items."""
    stages: tuple[Stage, ...] = ()
    slabs: tuple[Slab, ...] = ()
    cut: Cutting | None = None
    graph_rejects: int = 0
    """Rejected triples of static graphs; on Spark, only of those that are sent to tasks."""
    schema: str = ""
    """The size of the schema for entailment; empty without entailment, and on Spark."""

    @property
    def rate(self) -> float:
        """Items read per second of the whole run."""
        return self.items.read / self.times.total if self.times.total else 0.0

    @property
    def skew(self) -> float | None:
        """The time of the slowest slab divided by that of the median one; None without slabs."""
        times = sorted(slab.seconds for slab in self.slabs)
        if not times or not times[len(times) // 2]:
            return None
        return times[-1] / times[len(times) // 2]


# -- measuring -------------------------------------------------------------------------------------


class MeasuredExecution(Execution):
    """An execution that measures its operators, and the time of reading and of computing."""

    def __init__(self, query: CompiledQuery, run_input: RunInput, **options: Any) -> None:
        super().__init__(query, run_input, measured=True, **options)
        self.reading = self.computing = 0.0
        """Seconds of reading and sorting items, and of the pipeline."""

    @override
    def input_steps(self) -> Iterator[InputStep]:
        steps = super().input_steps()
        while True:
            before = perf_counter()
            step = next(steps, None)
            self.reading += perf_counter() - before
            if step is None:
                return
            yield step

    @override
    def step(self, batches: Mapping[str, Batch], watermark: int, *, prompt: bool = False) -> Batch:
        before = perf_counter()
        try:
            return super().step(batches, watermark, prompt=prompt)
        finally:
            self.computing += perf_counter() - before

    def measures(self) -> tuple[OperatorMeasures, ...]:
        """Return the measures of all operators, inputs before their readers."""
        return operator_measures(self.pipeline, self.query.prefixes)


def operator_measures(
    pipeline: Pipeline, prefixes: Mapping[str, str]
) -> tuple[OperatorMeasures, ...]:
    """Return the measures of the operators of a pipeline, described with a query's prefixes."""
    measured = counts_of(pipeline)
    places = {operator: k for k, operator in enumerate(measured)}
    total = sum(counts.seconds for counts in pipeline.counts.values())
    return tuple(
        OperatorMeasures(
            describe(operator, prefixes),
            tuple(places[below] for below in operator.shown_inputs),
            tuple(counts.rows_in),
            counts.rows_out,
            counts.steps,
            counts.peak,
            counts.seconds,
            counts.seconds / total if total else 0.0,
            tuple(operator.orders()),
        )
        for operator, counts in measured.items()
    )


class MeasuredRun:
    """A run of a query in this process that is measured; `stop` ends it early.

    An `endless` run ends at the end of the horizon.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 1 MS FIXED {?s ?p ?o}")
    >>> MeasuredRun(query, RunInput({"s": [("<a>", "<p>", '"1"', 3)]})).run().rows
    1
    """

    def __init__(
        self,
        query: CompiledQuery,
        run_input: RunInput,
        report: Reporting | None = None,
        endless: bool = False,
    ) -> None:
        self._query = query
        self._began = perf_counter()
        self.replay = Replay(
            query, run_input, report=report, endless=endless, execution=MeasuredExecution
        )
        self._prepared = perf_counter()

    def stop(self) -> None:
        """End the run after its present step."""
        self.replay.stop()

    def run(self, after_step: Callable[[Replay], object] = lambda replay: None) -> Measurements:
        """Run to the end; call `after_step` after each step."""
        for _ in self.replay.tables():
            self.replay.drain()
            after_step(self.replay)
        ended = perf_counter()
        execution = self.replay.execution
        assert isinstance(execution, MeasuredExecution)
        total, preparing = ended - self._began, self._prepared - self._began
        writing = total - preparing - execution.reading - execution.computing
        first = execution.first_stamp
        return Measurements(
            self._query,
            "embedded",
            execution.measures(),
            self.replay.accounting,
            self.replay.rows,
            Times(total, preparing, execution.reading, execution.computing, max(writing, 0.0)),
            len(execution.terms),
            execution.pipeline.peak,
            None if first == INFINITY else (first, execution.last_stamp),
            graph_rejects=self.replay.graph_rejects,
            schema=execution.catalog.schema,
        )


def items_offered(operators: Sequence[Operator], measures: Sequence[OperatorMeasures]) -> int:
    """Return the number of items that the accesses to streams emitted; each stream counts once."""
    offered = {
        operator.stream: each.rows_out
        for operator, each in zip(with_inner(operators), measures, strict=True)
        if isinstance(operator, StreamAccess) and not isinstance(operator, Feed)
    }
    return sum(offered.values())
