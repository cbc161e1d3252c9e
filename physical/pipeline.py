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

from streamsparql.physical.access import StreamAccess
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.distinct import Distinct, LatestStamps
from streamsparql.physical.match import Equal, TriplePatternMatching
from streamsparql.physical.operator import INFINITY, Operator, Step
from streamsparql.physical.shape import Projection
from streamsparql.physical.terms import TermDictionary
from streamsparql.physical.union import Union
from streamsparql.physical.window import AlignToReports, TimeWindow

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


class Pipeline:
    """The operators below a root, in the order in which they are asked.

    >>> import numpy as np
    >>> from streamsparql.physical.union import Union
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
        self._given: dict[Operator, Step] = {o: (o.nothing(), BEFORE) for o in self.operators}
        self._seen: dict[Operator, tuple[int, ...]] = {}

    def step(
        self, offered: Mapping[str, Batch], watermarks: Mapping[str, int], cut: bool = False
    ) -> Step:
        """What the root gives once these items came and the streams' watermarks are these.

        A stream that is not offered has nothing new. With `cut`, all that holds is given up to the
        least watermark.
        """
        for operator in self.operators:
            if isinstance(operator, StreamAccess):
                batch = offered.get(operator.stream)
                operator.offer(
                    operator.nothing() if batch is None else batch.project(operator.names),
                    watermarks[operator.stream],
                )
            self._ask(operator, cut)
        rows, self.watermark = self._given[self.root]
        return rows, self.watermark

    def _ask(self, operator: Operator, cut: bool) -> None:
        taken = [self._given[below] for below in operator.inputs]
        batches = [batch for batch, _ in taken]
        marks = tuple(watermark for _, watermark in taken)
        nothing, last = operator.nothing(), self._given[operator][1]
        if operator.inputs and not any(map(len, batches)) and not operator.due():
            if marks == self._seen.get(operator) and (not cut or min(marks) == INFINITY):
                self._given[operator] = (nothing, last)
                return
        elif not operator.inputs and last == INFINITY:
            self._given[operator] = (nothing, last)
            return
        before = perf_counter() if self.observer is not None else 0.0
        given, watermark = operator.step(batches, marks, cut)
        self._given[operator] = (given, watermark)
        self._seen[operator] = marks
        counts = self.counts[operator]
        counts.rows_in += sum(map(len, batches))
        counts.rows_out += len(given)
        if self.observer is not None:
            self.observer.observe(operator, batches, given, perf_counter() - before)

    def recycle(self, others: Iterable[IntArray] = ()) -> None:
        """Lets the dictionary drop the terms that no state and none of `others` refers to."""
        if not self.terms.due():
            return
        held = [ids for operator in self.operators for ids in operator.held()]
        held += [ids for batch, _ in self._given.values() for ids in batch.columns.values()]
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


_WHOLE_TRIPLES = (TimeWindow, AlignToReports, Union, Distinct, LatestStamps, Projection)
