"""What depends on how often equal rows hold: DISTINCT, the canonical form, and numbering.

`Distinct` is the union of the validities of equal rows (SEMANTICS.md section 5). A new element
`[ts, te)` of a row that is covered until `c` adds `[max(ts, c), te)`, if that is not empty, and
this is known at once. So a row that comes again and again, as in a sliding window, is given in
adjoining pieces. `Coalesce` puts such pieces together; `Number` tells equal rows apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamsparql.algebra import shape
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.canonical import LEVEL, Canonical
from streamsparql.physical.heap import Heap
from streamsparql.physical.intervals import firsts, running_max
from streamsparql.physical.operator import INFINITY, Operator, Step
from streamsparql.physical.slots import Slots, grown, order_by
from streamsparql.physical.terms import TermDictionary

NEVER = -INFINITY
"""What is covered until then is not covered."""


class Distinct(Operator):
    """The union of validities of each distinct row of these columns."""

    implements = (shape.Distinct,)
    state = "per distinct row that holds, until when it is covered"

    def __init__(self, input: Operator, columns: Sequence[str]) -> None:  # noqa: A002 -- the role
        super().__init__(columns, input)
        self._coming, self._ready = Heap(self.names), Heap(self.names)
        self._slots = Slots(len(self.names))
        self._covered = np.full(self._slots.capacity, NEVER)
        self._watermark = NEVER

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        """What is newly covered, as far as no earlier start can come."""
        self._coming.push(batches[0].project(self.names))
        (self._watermark,) = watermarks
        batch = self._coming.release(self._watermark)
        if len(batch):
            self._ready.push(self._newly_covered(batch))
        if len(self._slots):
            self._slots.keep(self._covered > self._watermark)
        return self._ready.release(self._watermark), self._watermark

    def _newly_covered(self, batch: Batch) -> Batch:
        slots = self._slots.of(list(batch.columns.values()), len(batch))
        capacity = self._slots.capacity
        if len(self._covered) < capacity:
            self._covered = grown(self._covered, capacity, NEVER)
        order = order_by(slots, capacity)
        slots, start, end = slots[order], batch.start[order], batch.end[order]
        covered = self._covered[slots]
        first = firsts(slots)
        if first.all():
            self._covered[slots] = np.maximum(covered, end)
        else:
            until = running_max(np.cumsum(first) - 1, end)
            last = np.append(first[1:], True)
            self._covered[slots[last]] = np.maximum(covered, until)[last]
            covered[1:] = np.where(first[1:], covered[1:], np.maximum(covered[1:], until[:-1]))
        new = end > covered
        order = order[new]
        pieces = Batch(batch.columns, batch.start, batch.end).take(order)
        return pieces.over(np.maximum(start, covered)[new], pieces.end).ordered()

    def size(self) -> int:
        """Rows that hold, and those that are still to start."""
        live = int(np.count_nonzero(self._covered > self._watermark))
        return live + len(self._coming) + len(self._ready)

    def held(self) -> Iterator[IntArray]:
        """The ids of those rows."""
        yield from self._slots.held(self._covered > self._watermark)
        yield from self._coming.held()
        yield from self._ready.held()


class Coalesce(Operator):
    """The canonical form by level sets (algebra/streams.py), the same for all that have one `phi`.

    It is made to be the sink: a row is given when it can change no more, so that one may start
    before others that were given in earlier steps. Within a step rows are ordered by start.
    """

    state = "the rows that a later row could still extend"

    def __init__(self, input: Operator) -> None:  # noqa: A002 -- the role
        super().__init__(input.names, input)
        self._rows = Canonical(self.names, self.names)

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        """What ended before the watermark; with a cut, all that holds before it."""
        rows = self._rows.take(batches[0], watermarks[0], cut)
        return rows.project(self.names), watermarks[0]

    def size(self) -> int:
        """Rows that are held."""
        return len(self._rows.rows)

    def held(self) -> Iterator[IntArray]:
        """Their ids."""
        return self._rows.held()


class Number(Operator):
    """Adds a column that numbers equal rows: k for the k-th level of a row."""

    implements = (shape.Number,)
    state = "the rows that a later row could still extend"

    def __init__(self, input: Operator, variable: str, terms: TermDictionary) -> None:  # noqa: A002
        super().__init__((*input.names, variable), input)
        self.variable = variable
        self._terms = terms
        self._rows = Canonical(input.names, input.names)
        self._ready = Heap(self.names)

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        """The levels that are known, as far as none that starts earlier is still open."""
        rows = self._rows.take(batches[0], watermarks[0], cut)
        if len(rows):
            number = self._terms.of_integers(rows.columns[LEVEL])
            self._ready.push(rows.with_columns({self.variable: number}).project(self.names))
        bound = min(watermarks[0], self._rows.rows.first_start())
        return self._ready.release(bound), bound

    def size(self) -> int:
        """Rows that are held."""
        return len(self._rows.rows) + len(self._ready)

    def held(self) -> Iterator[IntArray]:
        """Their ids."""
        yield from self._rows.held()
        yield from self._ready.held()
