"""OFFSET and LIMIT: ranks that change with time (SEMANTICS.md section 4, R8, R14).

The rows that hold are ranked by a sweep (state/ranked_rows.py). A row is emitted when it has left
the slice, or at a cut.

Of n equal rows over the same interval only the first few are ranked. Their ranks are consecutive as
long as they hold, so a row after `offset + limit` equal rows is never inside; and without a limit,
a row after `offset` equal rows is always inside. So a million duplicates cost as much as a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from streamsparql.algebra import shape
from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.sort_keys import Ranking, SortKeys
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.consolidate import consolidated
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.parts import TO_BE_EMITTED, TO_START, Memo, Stateful
from streamsparql.physical.state.ranked_rows import RankedRows


class Slice(Operator):
    """OFFSET and LIMIT: a row holds while its rank is in the slice. Section 4, R8.

    With `distinct`, of rows that agree in these columns only the first has a rank: DISTINCT over an
    order. With `partition`, rows that differ in these columns are ranked separately.

    >>> from streamsparql.physical.operators.access import Always
    >>> terms = TermDictionary()
    >>> rows = Batch({"x": terms.encode(["<b>", "<a>"])}, np.array([0, 5]), np.array([9, 7]))
    >>> first = Slice(Always.of({"x": rows.columns["x"]}, 2), Ranking((), ("x",)), terms, limit=1)
    >>> output, _ = first.step([rows], [INFINITY], False)
    >>> terms.texts(output.columns["x"]).to_pylist(), output.start.tolist(), output.end.tolist()
    (['<b>', '<a>', '<b>'], [0, 5, 7], [5, 7, 9])
    """

    implements = (shape.Slice,)
    state = "the rows that hold, ranked, and those that start later"

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        ranking: Ranking,
        terms: TermDictionary,
        offset: int = 0,
        limit: int | None = None,
        *,
        distinct: Sequence[str] | None = None,
        partition: Sequence[str] = (),
    ) -> None:
        super().__init__(input.names, input)
        self.ranking = ranking
        self.offset, self.limit = offset, limit
        end = self._end = None if limit is None else offset + limit
        self._distinct = distinct is not None
        self._keys = SortKeys(ranking, terms)
        self._ranks = RankedRows(self.names, self._keys.of, offset, end, distinct, partition)
        self._upcoming = Heap(self.names)
        self._ready = Heap(self.names)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"ranks": self._ranks, TO_START: self._upcoming, TO_BE_EMITTED: self._ready}

    @override
    def memos(self) -> Iterable[Memo]:
        return (self._keys,)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,) = batches, watermarks
        if self.limit != 0:
            self._upcoming.push(batch)
        new = self._ranked(self._upcoming.release(watermark - 1))
        finished = [self._ranks.sweep(new, watermark)]
        if cut or watermark == INFINITY:
            finished.append(self._ranks.cut(watermark))
        if watermark == INFINITY:
            self._ranks.clear()
        bound = min(watermark, self._ranks.first())
        return self._ready.through(finished, bound), bound

    def _ranked(self, new: Batch) -> Batch:
        """Return the rows to be ranked, without duplicates that are always or never inside.

        Equal events of one instant rank by their starts, in whatever order they arrived.
        """
        if SINCE in self.names:
            new = new.take(np.lexsort((new.columns[SINCE], new.start)))
        if len(new) > _FEW or new.count is not None:
            new = consolidated(new)
        if new.count is None:
            return new
        most = 1 if self._distinct else self._end
        if most is None:
            most = self.offset
            self._ready.push(_counted(new, new.count - most))
        return _counted(new, np.minimum(new.count, most)).expanded()

    @override
    def facts(self) -> str:
        limit = "" if self.limit is None else f"limit {self.limit}"
        return f"{limit} offset {self.offset}".strip() if self.offset else limit


_FEW = 64
"""Up to this number of rows, ranking is faster than consolidating first."""


def _counted(rows: Batch, count: IntArray) -> Batch:
    """Return rows with these multiplicities, except those with 0 or less."""
    kept = count > 0
    return Batch(rows.columns, rows.start, rows.end, count).where(kept)
