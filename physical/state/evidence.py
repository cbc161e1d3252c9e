"""Evidence: the rows of an optional side that decide which rows of the other side have a partner.

A row of the preserved side is *unmatched* if it has no partner when it becomes known. That is
decided once: all rows that could be a partner are known by then, and no later one counts. So a
preserved row waits until the watermark of the other side has passed it, and then probes a sweep
area, the evidence.

Pairs need whole rows, but only while they are short enough for the query. Evidence needs few
columns, but without a bound of its own it is needed for ever. Of rows that agree in these columns
the first suffices: what follows one of the others follows the first, too. So unbounded evidence has
one row per distinct key, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from streamsparql.overriding import override
from streamsparql.physical.batch import NEVER, Batch, BoolArray, IntArray
from streamsparql.physical.kernels.occurrences import static_rows
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.parts import NamedRows, Stateful
from streamsparql.physical.state.sweep_area import SweepArea
from streamsparql.physical.state.unions import DistinctRows

Accepted: TypeAlias = Callable[[Batch, IntArray, Batch, IntArray], BoolArray | None]
"""Whether row `i[k]` of the first batch and row `j[k]` of the second are partners; None: all."""

EVIDENCE, WAITING = "evidence", "undecided"
"""The names of these parts of a state."""


class EvidenceRows(Stateful):
    """The rows of an optional side, with the columns that decide whether there is a partner.

    If they are `endless`, of rows that agree in these columns only the first is retained.

    >>> evidence = EvidenceRows(["x"], ["x"], endless=True)
    >>> rows = Batch({"x": np.array([7, 7])}, np.array([3, 5]), np.full(2, 2**63 - 1))
    >>> evidence.insert(rows, 9)
    >>> evidence.size()
    1
    """

    def __init__(self, names: Sequence[str], shared: Sequence[str], endless: bool) -> None:
        self._area = SweepArea(names, shared)
        self._distinct = DistinctRows(names) if endless else None

    def take(self) -> Batch:
        """Remove and return the rows."""
        rows, self._area = self._area.rows(), self._area.another()
        if self._distinct is not None:
            self._distinct = DistinctRows(self._distinct.names)
        return rows

    def insert(self, rows: Batch, watermark: int) -> None:
        """Insert rows; no later row starts before the watermark."""
        if self._distinct is not None:
            rows = self._distinct.consume(rows, watermark)
        self._area.insert(rows)

    def partners(self, rows: Batch, accepted: Accepted) -> BoolArray:
        """Return which rows overlap a row of the evidence that is accepted as partner."""
        matched = np.zeros(len(rows), np.bool_)
        for probe, retained, place in self._area.query(rows):
            partner = accepted(rows, probe, retained, place)
            matched[probe if partner is None else probe[partner]] = True
        return matched

    def purge(self, t: int) -> None:
        """Evict the rows that end at `t` or before."""
        self._area.purge(t)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        distinct = {} if self._distinct is None else {"distinct": self._distinct}
        return {"rows": self._area, **distinct}

    @override
    def size(self) -> int:
        return len(self._area)

    @override
    def content_as(self, name: str) -> Iterator[NamedRows]:
        return self._area.content_as(name)


class Unmatched(Stateful):
    """The rows of a preserved side, until it is known whether they have a partner."""

    derived = (
        "_begin",
        "_earlier",
    )  # of a slab of time, whose state is never saved

    def __init__(self, names: Sequence[str], evidence: EvidenceRows, accepted: Accepted) -> None:
        self.evidence = evidence
        self._accepted = accepted
        self._waiting = Heap(names)
        self._begin = NEVER
        self._earlier: Batch | None = None  # the evidence that starts before `_begin`, at first

    def continue_with(self, evidence: Batch, t: int) -> None:
        """Begin with the evidence of earlier items: all that starts before `t`."""
        self._begin, self._earlier = t, evidence

    def consume(self, rows: Batch, evidence: Batch, watermarks: tuple[int, int]) -> Batch:
        """Consume preserved rows, over instants, and evidence; return the unmatched rows.

        A row is decided once the watermark of the evidence has passed its instant.
        """
        own, known = watermarks
        if self._begin > NEVER:
            evidence = evidence.where((evidence.start >= self._begin) | static_rows(evidence))
            if self._earlier is not None:
                evidence = Batch.concat([self._earlier, evidence]).ordered()
                self._earlier = None
        self.evidence.insert(evidence, max(known, self._begin))
        decided = self._waiting.through([rows], known - 1)
        if len(decided):
            decided = decided.where(~self.evidence.partners(decided, self._accepted))
        self.evidence.purge(min(own, known))
        return decided

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {EVIDENCE: self.evidence, WAITING: self._waiting}
