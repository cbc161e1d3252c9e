"""The execution of physical plans: a DAG of operators, step by step.

In a step the pipeline offers new items to the stream accesses and calls each operator once, inputs
before readers; an operator with several readers is called once for all of them. An operator without
news (no rows, no new watermark, no cut) is skipped, and so is one whose inputs have ended: a static
subplan is evaluated once.

A pipeline has one root or many, which may share operators. Roots are added and removed between
steps; an operator goes with its last reader, and its state with it.

The pipeline counts rows and steps per operator and, in a measured run, time and state: the numbers
of `stats` and `analyze`. An observer receives every step: traces are built on it. Under limits, the
meter counts what each operator consumes, emits and retains. The state of a pipeline is saved as
Arrow tables (state/parts.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from time import perf_counter
from typing import Protocol

import pyarrow as pa

from streamsparql.algebra.streams import INFINITY
from streamsparql.errors import EngineError, LimitExceeded
from streamsparql.limits import Meter, active_meter, bytes_of_rows
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import outer_column
from streamsparql.physical.operator import Operator, StepResult, inputs_first
from streamsparql.physical.operators.access import Clock, StreamAccess
from streamsparql.physical.operators.columns import SelectEqual
from streamsparql.physical.operators.entailment import Entailed, EntailedMatching, Entailing
from streamsparql.physical.operators.join import Union
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.operators.outputs import Since
from streamsparql.physical.operators.queries import QueryTable
from streamsparql.physical.operators.report import Clip
from streamsparql.physical.operators.shape import Distinct, LatestStamps, Projection
from streamsparql.physical.operators.window import AlignToReports, TimeWindow
from streamsparql.physical.state.parts import Tables

BEFORE = -1
"""The watermark before the first step: all instants are from 0 on."""


_STAGES = "stages"
_COUNTS = {
    "rows_in": pa.list_(pa.int64()),
    "rows_out": pa.int64(),
    "steps": pa.int64(),
    "peak": pa.int64(),
}
_SIGNATURE = {"kind": "Pipeline", "version": "1"}


class Observer(Protocol):
    """A receiver of every step of every operator."""

    def observe(self, operator: Operator, inputs: Sequence[Batch], output: Batch) -> None:
        """Receive the inputs and the output of a step."""


@dataclass
class OperatorCounts:
    """The work of an operator so far."""

    rows_in: list[int] = field(default_factory=list)
    """The number of rows of each input."""
    rows_out: int = 0
    steps: int = 0
    seconds: float = 0.0
    """The time of its steps, in a measured run."""
    state: int = 0
    """The rows that it retained when its state was last measured."""
    peak: int = 0
    """The most rows that it retained when its state was measured."""


class _Stage:
    """An operator in a pipeline: its inputs, its last output, the watermarks that it has seen."""

    __slots__ = (
        "bytes",
        "counts",
        "cuts",
        "inputs",
        "marks",
        "nothing",
        "operator",
        "output",
        "readers",
        "watermark",
    )

    def __init__(
        self, operator: Operator, inputs: Sequence[_Stage], counts: OperatorCounts
    ) -> None:
        self.operator, self.inputs, self.counts = operator, inputs, counts
        self.output = self.nothing = operator.nothing()
        self.watermark = BEFORE
        self.marks: list[int] = []
        self.bytes = 0
        """Under limits, the size of its state and of its output."""
        self.readers = 0
        """The number of operators that read it; a root has one reader more."""
        self.cuts = 0
        """The number of roots above it for which each step is a cut."""

    def has_news(self, cut: bool) -> bool:
        """Return whether a step can change anything; note the watermarks of the inputs."""
        if not self.inputs:
            return self.watermark != INFINITY
        new_rows = False
        marks = []
        for below in self.inputs:
            new_rows = new_rows or len(below.output) > 0
            marks.append(below.watermark)
        moved = marks != self.marks
        self.marks = marks
        return moved or new_rows or (cut and min(marks) != INFINITY) or self.operator.due()


class Pipeline:
    """The operators below a root, in the order in which they are called.

    >>> import numpy as np
    >>> from streamsparql.physical.operators.join import Union
    >>> union = Union(one := StreamAccess("a"), StreamAccess("b"))
    >>> pipeline = Pipeline(union, TermDictionary())
    >>> rows, watermark = pipeline.step({}, {"a": 7, "b": 5})
    >>> len(rows), watermark
    (0, 5)
    """

    def __init__(
        self,
        root: Operator | None,
        terms: TermDictionary,
        observer: Observer | None = None,
        *,
        measured: bool = False,
    ) -> None:
        self.terms = terms
        self.observer = observer
        self.measured = measured
        """Whether the time and the state of each step are measured."""
        self.roots: dict[Operator, bool] = {}
        """The roots, and whether each step is a cut for the operators below."""
        self.counts: dict[Operator, OperatorCounts] = {}
        self._retained = 0
        self.peak = 0
        """The most rows that all operators retained together, when their states were measured."""
        self._bytes = 0
        """Under limits, the size of all states and outputs."""
        self._stage_of: dict[Operator, _Stage] = {}
        self._fed: dict[Operator, StepResult] = {}
        if root is not None:
            self.add(root)

    @property
    def root(self) -> Operator:
        """The root that was added first."""
        return next(iter(self.roots))

    @property
    def operators(self) -> list[Operator]:
        """The operators, in the order in which they are called."""
        return [*self._stage_of]

    @property
    def watermark(self) -> int:
        """The watermark of the root that was added first."""
        return self._stage_of[self.root].watermark

    def add(
        self,
        root: Operator,
        cut: bool = False,
        warmed: Pipeline | None = None,
        fed: Mapping[Operator, StepResult] | None = None,
    ) -> None:
        """Add a root with the operators below it; those that are known already are shared.

        With `cut`, each step is a cut for these operators. Operators that another pipeline has
        `warmed` continue from their last step there. Operators that are `fed` make no step, but
        have this output in the next one.

        >>> stream = StreamAccess("s")
        >>> pipeline = Pipeline(Projection(stream, [".s"]), TermDictionary())
        >>> pipeline.add(other := Projection(stream, [".o"]))
        >>> len(pipeline.operators)
        3
        >>> len(pipeline.remove(other)), len(pipeline.operators)
        (1, 2)
        """
        assert root not in self.roots, "a root is added once"
        self._fed.update(fed or {})
        for operator in inputs_first(root, without_inputs=self._fed):
            if operator not in self._stage_of:
                self._add_stage(operator, {} if warmed is None else warmed._stage_of)
        self.roots[root] = False
        self._stage_of[root].readers += 1
        self.cut_below(root, cut)

    def _add_stage(self, operator: Operator, known: Mapping[Operator, _Stage]) -> None:
        inputs = () if operator in self._fed else operator.inputs
        below = [self._stage_of[one] for one in inputs]
        stage = known.get(operator)
        if stage is None:
            stage = _Stage(operator, below, OperatorCounts([0] * len(below)))
        stage.inputs, stage.readers, stage.cuts = below, 0, 0
        self._stage_of[operator], self.counts[operator] = stage, stage.counts
        for each in below:
            each.readers += 1

    def remove(self, root: Operator) -> list[Operator]:
        """Remove a root, and the operators that no other operator reads; return these."""
        self.cut_below(root, False)
        del self.roots[root]
        removed: list[Operator] = []
        pending = [self._stage_of[root]]
        while pending:
            stage = pending.pop()
            stage.readers -= 1
            if not stage.readers:
                del self._stage_of[stage.operator]
                self._retained -= self.counts.pop(stage.operator).state
                self._bytes -= stage.bytes
                removed.append(stage.operator)
                pending += stage.inputs
        return removed

    def cut_below(self, root: Operator, cut: bool) -> None:
        """Set whether each step is a cut for the operators below a root."""
        if self.roots[root] != cut:
            self.roots[root] = cut
            for operator in inputs_first(root, without_inputs=self._fed):
                self._stage_of[operator].cuts += 1 if cut else -1

    def replace(self, old: Operator, new: Operator) -> None:
        """Let the readers of an operator read another one from the next step on."""
        for operator in self._stage_of:
            if old in operator.inputs:
                operator.inputs = tuple(new if one is old else one for one in operator.inputs)
        before, self._stage_of, self.counts = self._stage_of, {}, {}
        roots, self.roots = self.roots, {}
        for root, cut in roots.items():
            for operator in inputs_first(root):
                if operator not in self._stage_of:
                    self._add_stage(operator, before)
            self.add(root, cut)

    def output(self, operator: Operator) -> Batch:
        """Return the rows that an operator emitted in the last step."""
        return self._stage_of[operator].output

    def step(
        self, offered: Mapping[str, Batch], watermarks: Mapping[str, int], cut: bool = False
    ) -> StepResult:
        """Offer new items and the watermarks of the streams; return the output of the first root.

        A stream that is not offered has no new items. With `cut`, rows that hold are emitted up to
        the least watermark.
        """
        meter = active_meter()
        if meter is not None:
            meter.retained = self._bytes
        for operator, stage in self._stage_of.items():
            if operator in self._fed:
                stage.output, stage.watermark = self._fed[operator]
                continue
            if isinstance(operator, StreamAccess):
                batch = offered.get(operator.stream)
                operator.offer(
                    stage.nothing if batch is None else batch.project(operator.names),
                    watermarks[operator.stream],
                )
            cuts = cut or stage.cuts > 0
            if stage.has_news(cuts):
                self._call(stage, cuts, meter)
            else:
                stage.output = stage.nothing
                if stage.bytes:
                    self._weigh(stage)
        if not self.roots:
            return Batch.empty(()), INFINITY
        first = self._stage_of[self.root]
        return first.output, first.watermark

    def watermark_of(self, operator: Operator) -> int:
        """Return the watermark of the last output of an operator."""
        return self._stage_of[operator].watermark

    def _call(self, stage: _Stage, cut: bool, meter: Meter | None) -> None:
        operator, counts = stage.operator, stage.counts
        batches = [below.output for below in stage.inputs]
        before = perf_counter() if self.measured else 0.0
        try:
            if meter is None:
                stage.output, stage.watermark = operator.step(batches, stage.marks, cut)
            else:
                self._step_within_limits(stage, batches, cut, meter)
        except LimitExceeded as error:
            error.inside(operator.label())
            raise
        except Exception as error:
            error.add_note(f"in {operator.label()}")
            raise
        if self.measured:
            counts.seconds += perf_counter() - before
            self._measure_state(operator, counts)
        for k, batch in enumerate(batches):
            counts.rows_in[k] += len(batch)
        counts.rows_out += len(stage.output)
        counts.steps += 1
        if self.observer is not None:
            self.observer.observe(operator, batches, stage.output)

    def _step_within_limits(
        self, stage: _Stage, batches: Sequence[Batch], cut: bool, meter: Meter
    ) -> None:
        """Call an operator; raise an error if its work, its output or its state exceeds a limit."""
        operator, limits = stage.operator, meter.limits
        meter.begin(sum(map(len, batches)))
        retained = operator.size()
        stage.output, stage.watermark = operator.step(batches, stage.marks, cut)
        meter.end(len(stage.output) if operator.inputs else 0, retained)
        if limits.state is not None or limits.memory is not None:
            self._measure_state(operator, stage.counts)
            if limits.state is not None and self._retained > limits.state:
                most = max(self._stage_of.values(), key=lambda each: each.counts.state)
                raise meter.exceeded("state").inside(most.operator.label())
            self._weigh(stage)
            meter.retained = self._bytes
        meter.check()

    def _weigh(self, stage: _Stage) -> None:
        """Measure the size of the state and the output of a stage."""
        rows = stage.counts.state + len(stage.output)
        self._bytes -= stage.bytes
        stage.bytes = bytes_of_rows(rows, len(stage.operator.names))
        self._bytes += stage.bytes

    def recycle(self, others: Iterable[IntArray] = ()) -> None:
        """Recycle the terms of the dictionary that neither a state nor `others` use."""
        if not self.terms.due():
            return
        self.terms.recycle([*self.retained_ids(), *others])
        for operator in self.operators:
            operator.forget()

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the term ids in the states and in the last outputs."""
        for stage in self._stage_of.values():
            yield from stage.operator.retained_ids()
            yield from stage.output.columns.values()

    def save(self) -> Tables:
        """Return the states of all operators as Arrow tables, with their watermarks and counts.

        The last output is not part of it: the caller of `step` has it.
        """
        own = [*self._stage_of.values()]
        place = {stage.operator: k for k, stage in enumerate(own)}
        stages = {
            "operator": pa.array([_described(stage.operator) for stage in own]),
            "watermark": pa.array([stage.watermark for stage in own], pa.int64()),
            "marks": pa.array([stage.marks for stage in own], pa.list_(pa.int64())),
            "inputs": pa.array(
                [[place[below.operator] for below in stage.inputs] for stage in own],
                pa.list_(pa.int64()),
            ),
        }
        for name, kind in _COUNTS.items():
            stages[name] = pa.array([getattr(stage.counts, name) for stage in own], kind)
        tables = {_STAGES: pa.table(stages).replace_schema_metadata(_SIGNATURE)}
        for k, stage in enumerate(own):
            for name, table in stage.operator.save().items():
                tables[f"{k}/{name}"] = table
        return tables

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        """Restore a saved state in a new pipeline of the same plan.

        The dictionary is loaded before the plan is lowered, so that ids keep their meaning.
        """
        left = dict(tables)
        saved = left.pop(_STAGES, None)
        written = None if saved is None else saved.schema.metadata
        if written != {k.encode(): v.encode() for k, v in _SIGNATURE.items()}:
            raise EngineError("cannot restore the pipeline: not a state of version 1")
        stages = saved.to_pylist()
        _verify([row["operator"] for row in stages], self.operators)
        for k, (stage, row) in enumerate(zip(self._stage_of.values(), stages, strict=True)):
            own = [name for name in left if name.startswith(f"{k}/")]
            try:
                stage.operator.load({name[len(f"{k}/") :]: left.pop(name) for name in own})
            except EngineError as error:
                error.add_note(f"in {stage.operator.label()}")
                raise
            stage.watermark, stage.marks = row["watermark"], row["marks"]
            for name in _COUNTS:
                setattr(stage.counts, name, row[name])
        if left:
            raise EngineError(f"cannot restore the pipeline: unexpected part {next(iter(left))!r}")

    def adopt(self, operators: Iterable[Operator], roots: Mapping[Operator, bool]) -> None:
        """Take operators in an empty pipeline, in this order, which has inputs first.

        `roots` are the roots, and whether each step is a cut for the operators below.
        """
        assert not self._stage_of, "only an empty pipeline adopts operators"
        for operator in operators:
            self._add_stage(operator, {})
        for root, cut in roots.items():
            self.roots[root] = False
            self._stage_of[root].readers += 1
            self.cut_below(root, cut)

    def state(self) -> dict[Operator, int]:
        """Return the number of rows that each operator retains; update the peaks."""
        for operator, counts in self.counts.items():
            self._measure_state(operator, counts)
        return {operator: counts.state for operator, counts in self.counts.items()}

    def _measure_state(self, operator: Operator, counts: OperatorCounts) -> None:
        operator.measure()
        size = operator.size()
        self._retained += size - counts.state
        counts.state = size
        counts.peak = max(counts.peak, size)
        self.peak = max(self.peak, self._retained)


_ROW = re.compile(re.escape(outer_column(0))[:-1] + "([0-9]+)")


def _described(operator: Operator) -> str:
    """Return the class, parameters and columns of an operator, which its saved state must match."""
    columns = ", ".join(operator.names)
    facts = "" if isinstance(operator, QueryTable) else operator.facts()  # the number of queries
    return f"{type(operator).__name__} {facts} [{columns}]"


class SavedPlans:
    """The operators of a saved pipeline, as new ones take their places plan by plan.

    Plans are lowered one by one; where the saved plans shared an operator, so do the new ones.
    """

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        stages = tables.get(_STAGES)
        if stages is None or not {"operator", "inputs"} <= set(stages.column_names):
            raise EngineError("cannot restore the pipeline: not a state of version 1")
        self._described: list[str] = stages["operator"].to_pylist()
        self._inputs: list[list[int]] = stages["inputs"].to_pylist()
        self._operators: dict[int, Operator] = {}

    def place(self, root: Operator, number: int) -> dict[Operator, Operator]:
        """Put a new plan in the place of a saved one, whose root has this number.

        Return the operators of earlier plans that take the places of some of its own.
        """
        places = self._places(root, number)
        shared: dict[Operator, Operator] = {}
        new: list[Operator] = []
        for operator in inputs_first(root):
            known = self._operators.setdefault(places[operator], operator)
            if known is not operator:
                shared[operator] = known
            else:
                new.append(operator)
        for operator in new:
            operator.inputs = tuple(shared.get(below, below) for below in operator.inputs)
            for name, value in vars(operator).items():
                if isinstance(value, Operator) and value in shared:
                    setattr(operator, name, shared[value])
        return shared

    def row_numbers(self, root: Operator, number: int) -> dict[int, int]:
        """Return the numbers that the saved plan has for the sets of outer rows of a new one.

        They are parts of the names of columns, and depend on the plans that were lowered before.
        """
        numbers: dict[int, int] = {}
        pending, seen = [(root, number)], set[Operator]()
        while pending:
            operator, place = pending.pop()
            if operator in seen or not 0 <= place < len(self._described):
                continue
            seen.add(operator)
            own = _ROW.findall(_described(operator))
            saved = _ROW.findall(self._described[place])
            numbers.update(zip(map(int, own), map(int, saved), strict=False))
            pending += zip(operator.inputs, self._inputs[place], strict=False)
        return numbers

    def _places(self, root: Operator, number: int) -> dict[Operator, int]:
        """Return the place of each operator below a root; raise an error if plans differ."""
        places: dict[Operator, int] = {}
        pending = [(root, number)]
        while pending:
            operator, place = pending.pop()
            if operator in places:
                if places[operator] != place:
                    raise EngineError(
                        f"cannot restore the pipeline: the plan shares {operator.label()}, the"
                        " state does not"
                    )
                continue
            places[operator] = place
            if not 0 <= place < len(self._described):
                raise EngineError(f"cannot restore the pipeline: no operator {place}")
            saved, own = self._described[place], _described(operator)
            inputs = self._inputs[place]
            if saved != own or len(inputs) != len(operator.inputs):
                raise EngineError(
                    f"cannot restore the pipeline: the state has {saved}, where the plan has {own}"
                )
            pending += zip(operator.inputs, inputs, strict=True)
        return places

    def operator(self, number: int) -> Operator:
        """Return the new operator in the place of a saved one."""
        if number not in self._operators:
            name = self._described[number] if 0 <= number < len(self._described) else number
            raise EngineError(f"cannot restore the pipeline: the plans do not have {name}")
        return self._operators[number]

    def operators(self) -> list[Operator]:
        """Return the new operators in the order of the saved ones."""
        return [self.operator(number) for number in range(len(self._described))]


def _verify(saved: Sequence[str], operators: Sequence[Operator]) -> None:
    """Raise an error unless a saved state is that of these operators."""
    plan = list(map(_described, operators))
    for one, other in zip_longest(saved, plan, fillvalue="no operator"):
        if one != other:
            raise EngineError(
                f"cannot restore the pipeline: the state has {one}, where the plan has {other}"
            )


def wanted_predicates(*roots: Operator) -> dict[str, frozenset[int] | None]:
    """Return the predicates of each stream that a pattern can match; None for all predicates.

    A source can skip items with other predicates. Windows that count elements need all of them.

    >>> wanted_predicates(StreamAccess("s"))
    {'s': frozenset()}
    >>> wanted_predicates(Projection(StreamAccess("s"), [".o"]))
    {'s': None}
    """
    readers: dict[Operator, list[Operator]] = {}
    operators = inputs_first(*roots)
    for operator in operators:
        for below in operator.inputs:
            readers.setdefault(below, []).append(operator)
    wanted: dict[str, frozenset[int] | None] = {}
    for operator in operators:
        if isinstance(operator, StreamAccess):
            predicates = _wanted_of(operator, readers)
            before = wanted.get(operator.stream, frozenset())
            every = predicates is None or before is None
            wanted[operator.stream] = None if every else before | predicates  # type: ignore[operator]
    return wanted


_Readers = Mapping[Operator, Sequence[Operator]]


def _wanted_of(source: Operator, readers: _Readers) -> frozenset[int] | None:
    """Return the predicates of the triples of an operator that readers of it can match."""
    wanted: set[int] = set()
    pending = [source]
    while pending:
        for reader in readers.get(pending.pop(), ()):
            if isinstance(reader, Clock):
                continue  # it reads watermarks only
            if isinstance(reader, _WHOLE_TRIPLES) and TRIPLE[1] in reader.names:
                pending.append(reader)
                continue
            predicates = _predicates_read(reader, readers)
            if predicates is None:
                return None
            wanted.update(predicates)
    return frozenset(wanted)


def _predicates_read(reader: Operator, readers: _Readers) -> frozenset[int] | None:
    """Return the predicates of the triples that a reader selects; None if it reads all."""
    match reader:
        case TriplePatternMatching() | SelectEqual():
            constants = [c for name, c in reader.constants() if name == TRIPLE[1]]
            return frozenset(constants) if constants else None
        case EntailedMatching() | Entailing():
            return reader.matcher.predicates()
        case Entailed():
            entailed = _wanted_of(reader, readers)
            return None if entailed is None else reader.schema.entailing(entailed)
    return None


_WHOLE_TRIPLES = (
    TimeWindow,
    AlignToReports,
    Clip,
    Union,
    Distinct,
    LatestStamps,
    Projection,
    Since,
)
