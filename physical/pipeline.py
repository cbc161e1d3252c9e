"""Runs a physical plan: a DAG of operators, step by step.

In a step the pipeline offers what came to the sources and asks each operator once, those below
before those above; an operator that several read is asked once for all of them. One to which
nothing happened (no rows, no news of the watermark, no cut) is passed over, and one whose inputs
have ended is asked no more: that is how a static subplan is evaluated once.

The pipeline counts rows and, when somebody observes it, takes the time; this one hook is what
`stats`, `explain --analyze` and traces are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import pyarrow as pa

from streamsparql.algebra.streams import INFINITY
from streamsparql.errors import EngineError
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.physical.operators.columns import SelectEqual
from streamsparql.physical.operators.join import Union
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.operators.report import Clip
from streamsparql.physical.operators.shape import Distinct, LatestStamps, Projection
from streamsparql.physical.operators.window import AlignToReports, TimeWindow
from streamsparql.physical.state.parts import Tables

BEFORE = -1
"""A watermark that says nothing: all instants are from 0 on."""


_STAGES = "stages"
_COUNTS = ("rows_in", "rows_out", "peak")
_TEXTS = pa.list_(pa.string())
_SIGNATURE = {"kind": "Pipeline", "version": "1"}


class Observer(Protocol):
    """Sees every step of every operator."""

    def observe(
        self, operator: Operator, inputs: Sequence[Batch], output: Batch, seconds: float
    ) -> None:
        """An operator has made a step."""


@dataclass
class Counts:
    """What passed an operator so far."""

    rows_in: int = 0
    rows_out: int = 0
    peak: int = 0
    """The most rows that its state held, as far as anybody asked."""


class _Stage:
    """An operator in a pipeline: what it reads, what it gave last, what it has seen."""

    __slots__ = ("counts", "inputs", "marks", "nothing", "operator", "output", "watermark")

    def __init__(self, operator: Operator, inputs: Sequence[_Stage], counts: Counts) -> None:
        self.operator, self.inputs, self.counts = operator, inputs, counts
        self.output = self.nothing = operator.nothing()
        self.watermark = BEFORE
        self.marks: list[int] = []

    def has_news(self, cut: bool) -> bool:
        """Whether anything happened that the operator could answer to; notes the watermarks."""
        if not self.inputs:
            return self.watermark != INFINITY
        came = False
        marks = []
        for below in self.inputs:
            came = came or len(below.output) > 0
            marks.append(below.watermark)
        moved = marks != self.marks
        self.marks = marks
        return moved or came or (cut and min(marks) != INFINITY) or self.operator.due()


class Pipeline:
    """The operators below a root, in the order in which they are asked.

    >>> import numpy as np
    >>> from streamsparql.physical.operators.join import Union
    >>> union = Union(one := StreamAccess("a"), StreamAccess("b"))
    >>> pipeline = Pipeline(union, TermDictionary())
    >>> rows, watermark = pipeline.step({}, {"a": 7, "b": 5})
    >>> len(rows), watermark
    (0, 5)
    """

    def __init__(
        self, root: Operator, terms: TermDictionary, observer: Observer | None = None
    ) -> None:
        self.root = root
        self.terms = terms
        self.observer = observer
        self.operators = _below_first(root)
        self.counts = {operator: Counts() for operator in self.operators}
        self.watermark = BEFORE
        stages: dict[Operator, _Stage] = {}
        for operator in self.operators:
            below = [stages[one] for one in operator.inputs]
            stages[operator] = _Stage(operator, below, self.counts[operator])
        self._stages = list(stages.values())

    def step(
        self, offered: Mapping[str, Batch], watermarks: Mapping[str, int], cut: bool = False
    ) -> StepResult:
        """What the root gives once these items came and the streams' watermarks are these.

        A stream that is not offered has nothing new. With `cut`, all that holds is given up to the
        least watermark.
        """
        for stage in self._stages:
            operator = stage.operator
            if isinstance(operator, StreamAccess):
                batch = offered.get(operator.stream)
                operator.offer(
                    stage.nothing if batch is None else batch.project(operator.names),
                    watermarks[operator.stream],
                )
            if stage.has_news(cut):
                self._ask(stage, cut)
            else:
                stage.output = stage.nothing
        last = self._stages[-1]
        self.watermark = last.watermark
        return last.output, last.watermark

    def _ask(self, stage: _Stage, cut: bool) -> None:
        operator, counts = stage.operator, stage.counts
        batches = [below.output for below in stage.inputs]
        before = perf_counter() if self.observer is not None else 0.0
        try:
            stage.output, stage.watermark = operator.step(batches, stage.marks, cut)
        except Exception as error:
            error.add_note(f"in {type(operator).__name__} {operator.facts()}".rstrip())
            raise
        for batch in batches:
            counts.rows_in += len(batch)
        counts.rows_out += len(stage.output)
        if self.observer is not None:
            self.observer.observe(operator, batches, stage.output, perf_counter() - before)

    def recycle(self, others: Iterable[IntArray] = ()) -> None:
        """Lets the dictionary drop the terms that no state and none of `others` refers to."""
        if not self.terms.due():
            return
        self.terms.recycle([*self.retained_ids(), *others])
        for operator in self.operators:
            operator.forget()

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the term ids that the states use, and those of the rows that were emitted last."""
        for stage in self._stages:
            yield from stage.operator.retained_ids()
            yield from stage.output.columns.values()

    def save(self) -> Tables:
        """Return the state of all operators as Arrow tables, and how far each of them is.

        The rows that were emitted last are not part of it: they are their reader's.
        """
        stages = {
            "operator": pa.array([type(stage.operator).__name__ for stage in self._stages]),
            "columns": pa.array([list(s.operator.names) for s in self._stages], _TEXTS),
            "watermark": pa.array([stage.watermark for stage in self._stages], pa.int64()),
            "marks": pa.array([stage.marks for stage in self._stages], pa.list_(pa.int64())),
        }
        for name in _COUNTS:
            counts = [getattr(stage.counts, name) for stage in self._stages]
            stages[name] = pa.array(counts, pa.int64())
        tables = {_STAGES: pa.table(stages).replace_schema_metadata(_SIGNATURE)}
        for k, stage in enumerate(self._stages):
            for name, table in stage.operator.save().items():
                tables[f"{k}/{name}"] = table
        return tables

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        """Take over a state that was saved; this pipeline is new, and of the same plan.

        The dictionary has been loaded before the plan was lowered, so that ids mean what they meant.
        """
        left = dict(tables)
        saved = left.pop(_STAGES, None)
        written = None if saved is None else saved.schema.metadata
        if written != {k.encode(): v.encode() for k, v in _SIGNATURE.items()}:
            raise EngineError("cannot restore the pipeline: this is no state of version 1")
        stages = saved.to_pylist()
        plan = [(type(s.operator).__name__, list(s.operator.names)) for s in self._stages]
        if [(row["operator"], row["columns"]) for row in stages] != plan:
            raise EngineError("cannot restore the pipeline: the state is that of another plan")
        for k, (stage, row) in enumerate(zip(self._stages, stages, strict=True)):
            own = [name for name in left if name.startswith(f"{k}/")]
            try:
                stage.operator.load({name[len(f"{k}/") :]: left.pop(name) for name in own})
            except EngineError as error:
                error.add_note(f"in {type(stage.operator).__name__} {stage.operator.facts()}")
                raise
            stage.watermark, stage.marks = row["watermark"], row["marks"]
            for name in _COUNTS:
                setattr(stage.counts, name, row[name])
        if left:
            raise EngineError(f"cannot restore the pipeline: unexpected part {next(iter(left))!r}")
        self.watermark = self._stages[-1].watermark

    def state(self) -> dict[Operator, int]:
        """Return how many rows each operator retains; note the most so far."""
        sizes = {operator: operator.size() for operator in self.operators}
        for operator, size in sizes.items():
            self.counts[operator].peak = max(self.counts[operator].peak, size)
        return sizes


def _below_first(root: Operator) -> list[Operator]:
    """Each operator once, after those that it reads; plans may be deep, so without recursion."""
    order: dict[Operator, None] = {}
    pending: list[tuple[Operator, bool]] = [(root, False)]
    while pending:
        operator, ready = pending.pop()
        if operator in order:
            continue
        if ready:
            order[operator] = None
        else:
            pending.append((operator, True))
            pending.extend((below, False) for below in reversed(operator.inputs))
    return list(order)


def wanted_predicates(root: Operator) -> dict[str, frozenset[int] | None]:
    """The predicates of each stream that some pattern can match; None where that may be any.

    A source need not look at the rest of other items. Where elements are counted, all count.

    >>> wanted_predicates(StreamAccess("s"))
    {'s': frozenset()}
    >>> wanted_predicates(Projection(StreamAccess("s"), [".o"]))
    {'s': None}
    """
    readers: dict[Operator, list[Operator]] = {}
    operators = _below_first(root)
    for operator in operators:
        for below in operator.inputs:
            readers.setdefault(below, []).append(operator)
    found: dict[str, frozenset[int] | None] = {}
    for operator in operators:
        if isinstance(operator, StreamAccess):
            predicates = _wanted_of(operator, readers)
            before = found.get(operator.stream, frozenset())
            every = predicates is None or before is None
            found[operator.stream] = None if every else before | predicates  # type: ignore[operator]
    return found


def _wanted_of(
    access: StreamAccess, readers: Mapping[Operator, Sequence[Operator]]
) -> frozenset[int] | None:
    wanted: set[int] = set()
    pending: list[Operator] = [access]
    while pending:
        for reader in readers.get(pending.pop(), ()):
            if isinstance(reader, _WHOLE_TRIPLES) and TRIPLE[1] in reader.names:
                pending.append(reader)
            elif isinstance(reader, TriplePatternMatching | SelectEqual):
                constants = [c for name, c in reader.constants() if name == TRIPLE[1]]
                if not constants:
                    return None
                wanted.update(constants)
            else:
                return None
    return frozenset(wanted)


_WHOLE_TRIPLES = (TimeWindow, AlignToReports, Clip, Union, Distinct, LatestStamps, Projection)
