"""Sets of event solutions: duplicates, and rows that lead to no other results, are removed.

The solutions of a pattern are a set (SEMANTICS.md 7), so it suffices that `Detect` removes the
duplicates. The other operators remove rows early where many can be equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from streamsparql.algebra import event as algebra
from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.occurrence import with_times
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.keys import grouped
from streamsparql.physical.kernels.occurrences import (
    after,
    at_instant,
    instants,
    since_of,
    static_rows,
    watermark_after,
)
from streamsparql.physical.operator import Operator, Stateless, StepResult
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.once import Once
from streamsparql.physical.state.parts import Stateful
from streamsparql.physical.state.unions import DistinctRows


class Detect(Operator):
    """The event solutions, each once, over the instants at which they become known.

    Solutions without an occurrence become known at the start of the horizon. `times` are the
    columns of times that the operators above read.
    """

    implements = (algebra.Detect,)
    state = "the solutions of the present instant"
    scalars = ("begin", "_waits")

    def __init__(self, input: Operator, times: Sequence[str], terms: TermDictionary) -> None:  # noqa: A002 -- the role
        variables = [name for name in input.names if name != SINCE]
        super().__init__((*variables, *times, SINCE), input)
        self.begin: int | None = None
        """The start of the horizon; None until it is known."""
        self._waits = False  # whether the last step waited for it
        self._times, self._terms = tuple(times), terms
        self._waiting = Heap(input.names)
        self._known = Once(input.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,) = batches, watermarks
        self._waits = self.begin is None
        if self.begin is None:
            self._waiting.push(batch)
            return self.nothing(), -1
        if len(self._waiting):
            self._waiting.push(batch)
            batch = self._waiting.release(INFINITY)
        static = static_rows(batch)
        if static.any():
            first = at_instant(batch.where(static), self.begin)
            batch = Batch.concat([first, batch.where(~static)]).ordered()
        return self._shown(self._known.consume(batch, watermark)), watermark

    def _shown(self, rows: Batch) -> Batch:
        """Return solutions with the times that are read; static ones start when they are known."""
        if not len(rows):
            return self.nothing()
        rows = with_times(rows, self._times, self._terms)
        since = np.where(static_rows(rows), since_of(rows.start), rows.columns[SINCE])
        return rows.with_columns({SINCE: since}).project(self.names)

    @override
    def due(self) -> bool:
        return self._waits and self.begin is not None

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"start unknown": self._waiting, "known": self._known}


class DistinctEvents(Operator):
    """The event solutions, each once; after a projection, many can be equal."""

    family = "event"
    state = "the solutions of the present instant"
    monotone = True

    def __init__(self, input: Operator) -> None:  # noqa: A002 -- the role
        super().__init__(input.names, input)
        self._known = Once(self.names)
        self._at_once = False  # whether only equal rows of one step are removed

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,) = batches, watermarks
        until = INFINITY if self._at_once else watermark
        return self._known.consume(batch, until), watermark

    @override
    def emit_at_once(self) -> None:
        self._at_once = True

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"known": self._known}


class Occurring(Stateless):
    """The event solutions that occur, with times as columns: rules derive nothing from others.

    >>> from streamsparql.physical.kernels.occurrences import with_since
    >>> from streamsparql.physical.operators.access import Always
    >>> rows = with_since(Always.of({}, 1).rows)
    >>> len(Occurring(Always(rows), (), TermDictionary()).apply(rows))
    0
    """

    family = "event"

    def __init__(self, input: Operator, times: Sequence[str], terms: TermDictionary) -> None:  # noqa: A002 -- the role
        super().__init__((*input.names, *times), input)
        self._times, self._terms = tuple(times), terms

    @override
    def apply(self, batch: Batch) -> Batch:
        rows = batch.where(~static_rows(batch))
        return with_times(rows, self._times, self._terms).project(self.names)


class FirstToEnd(Operator):
    """Of left rows of SEQ that differ only in their ends, the first: it precedes the most events.

    The pairs of the others have the same variables and the same occurrence as pairs of the first.
    """

    family = "event"
    state = "per distinct row without its end, whether there was one, within the bound"
    monotone = True

    def __init__(self, input: Operator, bound: int = INFINITY) -> None:  # noqa: A002 -- the role
        super().__init__(input.names, input)
        self.within = bound
        self._firsts = DistinctRows(self.names)
        self._at_once = False  # whether all rows pass: a later one may be the first to end

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,) = batches, watermarks
        if self._at_once:
            return batch, watermark
        firsts = self._firsts.consume(after(batch, self.within), watermark_after(watermark))
        return instants(firsts.over(firsts.start - 1, firsts.end)), watermark

    @override
    def emit_at_once(self) -> None:
        self._at_once = True

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"first rows": self._firsts}


class LastToStart(Stateless):
    """Of right rows of SEQ that differ only in their starts, the last: it follows the most events.

    >>> from streamsparql.physical.kernels.occurrences import starts_of
    >>> from streamsparql.physical.operators.access import Always
    >>> since, at = since_of(np.array([2, 4])), np.array([5, 5])
    >>> rows = Batch({"x": np.array([7, 7]), SINCE: since}, at, at + 1)
    >>> last = LastToStart(Always(rows)).apply(rows)
    >>> starts_of(last.columns[SINCE]).tolist()
    [4]
    """

    family = "event"

    def __init__(self, input: Operator) -> None:  # noqa: A002 -- the role
        super().__init__(input.names, input)

    @override
    def apply(self, batch: Batch) -> Batch:
        variables = [batch.columns[name] for name in self.names if name != SINCE]
        order, first = grouped([*variables, batch.start], len(batch))
        since = batch.columns[SINCE][order]
        last = np.repeat(np.maximum.reduceat(since, first), np.diff(np.append(first, len(batch))))
        return batch.take(np.sort(order[since == last]))


class PointEvents(Stateless):
    """The rows as events that take no time: DISTINCT makes one row of several events.

    >>> from streamsparql.physical.kernels.occurrences import starts_of
    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Batch({}, np.array([5]), np.array([6]))
    >>> starts_of(PointEvents(Always.of({}, 0)).apply(rows).columns[SINCE]).tolist()
    [5]
    """

    family = "event"

    def __init__(self, input: Operator) -> None:  # noqa: A002 -- the role
        super().__init__((*input.names, SINCE), input)

    @override
    def apply(self, batch: Batch) -> Batch:
        return batch.with_columns({SINCE: since_of(batch.start)})
