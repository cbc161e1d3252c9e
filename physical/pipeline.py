"""Runs a physical plan: a DAG of operators, step by step.

In a step the pipeline offers what came to the sources and asks each operator once, those below
before those above; an operator that several read is asked once for all of them. One to which
nothing happened (no rows, no news of the watermark, no cut) is passed over, and one whose inputs
have ended is asked no more: that is how a static subplan is evaluated once.

The pipeline counts rows and, when somebody observes it, takes the time; this one hook is what
`stats`, `explain --analyze` and traces are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY, Operator, Step
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.physical.operators.columns import Equal
from streamsparql.physical.operators.join import Union
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.operators.report import Clip
from streamsparql.physical.operators.shape import Distinct, LatestStamps, Projection
from streamsparql.physical.operators.window import AlignToReports, TimeWindow

BEFORE = -1
"""A watermark that says nothing: all instants are from 0 on."""


class Observer(Protocol):
    """Sees every step of every operator."""

    def observe(
        self, operator: Operator, inputs: Sequence[Batch], given: Batch, seconds: float
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

    __slots__ = ("counts", "given", "inputs", "marks", "nothing", "operator", "watermark")

    def __init__(self, operator: Operator, inputs: Sequence[_Stage], counts: Counts) -> None:
        self.operator, self.inputs, self.counts = operator, inputs, counts
        self.given = self.nothing = operator.nothing()
        self.watermark = BEFORE
        self.marks: list[int] = []

    def has_news(self, cut: bool) -> bool:
        """Whether anything happened that the operator could answer to; notes the watermarks."""
        if not self.inputs:
            return self.watermark != INFINITY
        came = False
        marks = []
        for below in self.inputs:
            came = came or len(below.given) > 0
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
    ) -> Step:
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
                stage.given = stage.nothing
        last = self._stages[-1]
        self.watermark = last.watermark
        return last.given, last.watermark

    def _ask(self, stage: _Stage, cut: bool) -> None:
        operator, counts = stage.operator, stage.counts
        batches = [below.given for below in stage.inputs]
        before = perf_counter() if self.observer is not None else 0.0
        try:
            stage.given, stage.watermark = operator.step(batches, stage.marks, cut)
        except Exception as error:
            error.add_note(f"in {type(operator).__name__} {operator.facts()}".rstrip())
            raise
        for batch in batches:
            counts.rows_in += len(batch)
        counts.rows_out += len(stage.given)
        if self.observer is not None:
            self.observer.observe(operator, batches, stage.given, perf_counter() - before)

    def recycle(self, others: Iterable[IntArray] = ()) -> None:
        """Lets the dictionary drop the terms that no state and none of `others` refers to."""
        if not self.terms.due():
            return
        held = [ids for operator in self.operators for ids in operator.held()]
        held += [ids for stage in self._stages for ids in stage.given.columns.values()]
        self.terms.recycle([*held, *others])
        for operator in self.operators:
            operator.forget()

    def state(self) -> dict[Operator, int]:
        """How many rows each operator's state holds."""
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
            elif isinstance(reader, TriplePatternMatching | Equal):
                constants = [c for name, c in reader.constants() if name == TRIPLE[1]]
                if not constants:
                    return None
                wanted.update(constants)
            else:
                return None
    return frozenset(wanted)


_WHOLE_TRIPLES = (TimeWindow, AlignToReports, Clip, Union, Distinct, LatestStamps, Projection)
