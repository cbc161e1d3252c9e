"""Disorder: items that come out of order are put in order, late ones are handed out, with reasons.

A stream's *time* is the greatest stamp that was let in, its *watermark* trails that by `max_delay`.
An item stamped below the watermark is late (SEMANTICS.md section 10); the others are held until
the watermark, or that of all streams together, has come to them.

**The guard.** By that rule alone one bogus stamp in the future (a sensor that thinks it is 2099)
would make everything after it late. So an item that leaps ahead of the stream's time by more than
`max_delay + max_jump` is held aside, and the next item decides. Let `u` be the item held aside:

- The next item `v` is near `u`, or after it (`v >= u - max_delay - max_jump`): the gap was real.
  `u` is accepted, then `v` by the usual rule.
- `v` goes on below, within reach of the stream's time: two against one, `u` is rejected.
- `v` leaps, too, but is far below `u`: it is held aside as well, and what agrees with the one or
  with the other decides. Only so many are held aside; beyond that the highest is rejected.
- A late `v` says nothing of `u`.

Before the first item there is no time yet, so the first is held aside and the second decides, too:
a stream may *begin* with a bogus stamp. When the input ends, or `advance` says that time has come
so far, what is still aside is let in, from the lowest up.

**Nothing is lost by default.** Where a stream keeps its bound, each item has `v >= u - max_delay`
for all `u` before it, so each confirms what is held aside: no `max_jump`, however small, rejects
anything. Where it does not, either `u` or what comes after it must be given up. The default leap of
a day is longer than delays are that a `max_delay` forgot. `max_jump=None` switches the guard off.

What an item's fate is depends on the order of the items and not on how they are cut into chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from streamsparql.algebra.inputs import MAX_JUMP
from streamsparql.physical.batch import TRIPLE, Batch, BoolArray, IntArray
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.state.heap import Heap
from streamsparql.sources.chunk import Accounting, Chunk, Reject, Rejected

SINCE = ".since"
"""The column of releases of events: when each began, in milliseconds."""

_MOST_QUARANTINED = 16
_FEW = 8  # items, or leaps in a chunk, that are looked at one by one


@dataclass(slots=True)
class _Quarantined:
    """An item that leapt ahead; its row, and what to say of it, once its chunk has gone."""

    stamp: int
    place: int
    row: Batch | None = None
    reject: Reject | None = None


class Sorter:
    """Puts the items of one stream in order.

    >>> from streamsparql.physical.dictionary.term_dictionary import TermDictionary
    >>> from streamsparql.sources import read_stream
    >>> items = [("<a>", "<p>", "<b>", t) for t in (10, 30, 25, 12)]
    >>> sorter = Sorter("s", max_delay=10)
    >>> for chunk in read_stream(items, "s", TermDictionary()):
    ...     sorter.push(chunk)
    >>> sorter.watermark, sorter.release(20).start.tolist(), sorter.rejects[0].reason
    (20, [10], 'late by 8 ms')
    """

    def __init__(
        self,
        name: str,
        max_delay: int = 0,
        strict: bool = False,
        max_jump: int | None = MAX_JUMP,
        events: bool = False,
    ) -> None:
        self.name = name
        self.max_delay = max_delay
        self.strict = strict
        self.events = events
        """Whether releases have the column SINCE."""
        self.rejects: list[Reject] = []
        """What was rejected, late items among them, in the order in which that was known."""
        self.late = 0
        """How many items were late."""
        self._behind: Callable[[], Iterable[IntArray]] | None = None
        self._came = self._rejected = self._unmatched = self._rows_without_triples = 0
        self.seen = -1
        """The stream's time: the greatest stamp that was let in."""
        self.least = INFINITY
        """The least stamp that was let in."""
        self._reach = None if max_jump is None else max_delay + max_jump
        self._floor = 0
        self._quarantine: list[_Quarantined] = []  # each below those before it
        self._heap = Heap(TRIPLE)

    @property
    def watermark(self) -> int:
        """No item below it will be let in any more; it never falls."""
        return max(self._floor, self.seen - self.max_delay)

    @property
    def _time(self) -> int:
        """The stream's time, as far as it is known; -1 before."""
        return max(self.seen, self._floor or -1)

    @property
    def undecided(self) -> bool:
        """Whether an item is held aside, for the next to decide on."""
        return bool(self._quarantine)

    @property
    def accounting(self) -> Accounting:
        """What became of the items that are decided on: those that came, but those held aside."""
        read = self._came - sum(aside.row is not None for aside in self._quarantine)
        accepted = read - self.late - self._rejected
        return Accounting(
            read, accepted, self.late, self._rejected, self._unmatched, self._rows_without_triples
        )

    def drain(self) -> list[Reject]:
        """Hands out the rejects so far, and forgets them; what is counted stays."""
        rejects, self.rejects = self.rejects, []
        return rejects

    def __len__(self) -> int:
        """How many rows are held."""
        return len(self._heap) + sum(aside.row is not None for aside in self._quarantine)

    def held(self) -> Iterator[IntArray]:
        """The term ids of the rows that are held, here or in the source."""
        if self._behind is not None:
            yield from self._behind()
        yield from self._heap.retained_ids()
        for aside in self._quarantine:
            if aside.row is not None:
                yield from aside.row.columns.values()

    def release(self, until: int) -> Batch:
        """The rows stamped `until` or before, by stamp, those of one stamp as they came.

        Each holds over `[stamp, stamp + 1)`, as the access to a stream has it. `until` must be no
        more than the watermark, lest the next release start before this one ended.
        """
        batch = self._heap.release(until)
        released = batch.over(batch.start, batch.start + 1)
        return released.with_columns({SINCE: batch.end}) if self.events else released

    def advance(self, t: int) -> None:
        """Nothing stamped before `t` will come any more; INFINITY: the input has ended."""
        self._floor = max(self._floor, t)
        while self._quarantine and self._quarantine[-1].stamp <= t + (self._reach or 0):
            self._accept(self._quarantine.pop())

    def push(self, chunk: Chunk) -> None:
        """Takes in items in the order in which they came."""
        self._came += chunk.items
        self._behind = chunk.held
        self._unmatched += chunk.prefiltered
        self._rows_without_triples += chunk.rows_without_triples
        for reject in chunk.rejects:
            self._reject(reject)
        if len(chunk.stamps) and not self._in_order(chunk):
            _Pass(self, chunk).run()

    def _in_order(self, chunk: Chunk) -> bool:
        """Lets in a chunk that is as it should be, which takes no look at single items."""
        stamps = chunk.stamps
        least, seen = int(stamps[0]), int(stamps[-1])
        if self._quarantine or least < self.watermark or not (stamps[1:] >= stamps[:-1]).all():
            return False
        if self._reach is not None and (self._time < 0 or seen > self._time + self._reach):
            return False
        self.seen, self.least = max(self.seen, seen), min(self.least, least)
        self._heap.push(_rows(chunk))
        return True

    def _accept(self, aside: _Quarantined) -> None:
        """Lets in an item of an earlier chunk."""
        self.seen, self.least = max(self.seen, aside.stamp), min(self.least, aside.stamp)
        if aside.row is not None:
            self._heap.push(aside.row)

    def _reject(self, reject: Reject, late: bool = False) -> None:
        if late:
            self.late += 1
        else:
            self._rejected += 1
        reject = reject._replace(late=late)
        if self.strict:
            raise Rejected(reject)
        self.rejects.append(reject)


class _Pass:
    """One chunk on its way through a sorter: which of its items are let in."""

    def __init__(self, sorter: Sorter, chunk: Chunk) -> None:
        self._sorter = sorter
        self._chunk = chunk
        self._stamps = chunk.stamps
        self._let: BoolArray = np.zeros(len(chunk.stamps), np.bool_)

    def run(self) -> None:
        """Decides on each item, and hands the rows of those let in to the heap."""
        k, leaps, sorter = 0, 0, self._sorter
        while k < len(self._stamps):
            rest = len(self._stamps) - k
            unclear = sorter._quarantine or (sorter._reach is not None and self._sorter._time < 0)
            if unclear or rest <= _FEW or leaps > _FEW:
                self._one(k)
                k += 1
            else:
                k = self._many(k)
                leaps += 1
        for aside in sorter._quarantine:
            if aside.place >= 0:
                aside.reject = self._chunk.reject(aside.place, "", sorter.name)
                aside.row = self._row(aside.place)
                aside.place = -1
        self._hand_over()

    # -- By arrays ----------------------------------------------------------------------------

    def _many(self, first: int) -> int:
        """Decides on the items from `first` on, up to where one leaps; gives the place after."""
        sorter, stamps = self._sorter, self._stamps[first:]
        time = np.maximum.accumulate(stamps)
        np.maximum(time, self._sorter._time, out=time)
        earlier = np.concatenate([[self._sorter._time], time[:-1]])
        fine = stamps >= np.maximum(earlier - sorter.max_delay, sorter._floor)
        after = len(stamps)
        if sorter._reach is not None:
            leaps = np.flatnonzero(time - earlier > sorter._reach)
            if len(leaps) and not fine.all():
                after = int(leaps[0])
            elif len(leaps) and leaps[-1] == after - 1:
                after -= 1  # where all are within their bound, the next item confirms each leap
        for k in np.flatnonzero(~fine[:after]).tolist():
            bound = max(int(earlier[k]) - sorter.max_delay, sorter._floor)
            self._late(first + k, bound)
        if after:
            self._let[first : first + after] = fine[:after]
            let = stamps[:after][fine[:after]]
            sorter.seen = max(sorter.seen, int(let.max(initial=-1)))
            sorter.least = min(sorter.least, int(let.min(initial=INFINITY)))
        if after < len(stamps):
            self._one(first + after)
            after += 1
        return first + after

    # -- One by one -----------------------------------------------------------------------------

    def _one(self, k: int) -> None:
        """Decides on one item, and on those held aside: the rules at the head of this file."""
        sorter, stamp = self._sorter, int(self._stamps[k])
        if stamp < sorter.watermark:
            self._late(k, sorter.watermark)
            return
        reach = sorter._reach
        leaps = reach is not None and (self._sorter._time < 0 or stamp > self._sorter._time + reach)
        if reach is not None and sorter._quarantine:
            if stamp >= sorter._quarantine[-1].stamp - reach:
                while sorter._quarantine and sorter._quarantine[-1].stamp <= stamp + reach:
                    self._accept(sorter._quarantine.pop())
                self._give_up(len(sorter._quarantine))
                self._one(k)
                return
            self._give_up(
                int(len(sorter._quarantine) == _MOST_QUARANTINED)
                if leaps
                else len(sorter._quarantine)
            )
        aside = _Quarantined(stamp, k)
        if leaps:
            sorter._quarantine.append(aside)
        else:
            self._accept(aside)

    def _accept(self, aside: _Quarantined) -> None:
        self._sorter._accept(aside)
        if aside.place >= 0:
            self._let[aside.place] = True

    def _give_up(self, count: int) -> None:
        """Rejects the highest of those held aside."""
        given_up = self._sorter._quarantine[:count]
        del self._sorter._quarantine[:count]
        for aside in given_up:
            reason = f"ahead of all that came next: the timestamp {aside.stamp} is taken for wrong"
            if aside.place >= 0:
                self._reject(aside.place, reason)
            elif aside.row is not None and aside.reject is not None:
                self._sorter._reject(aside.reject._replace(reason=reason))

    def _late(self, k: int, bound: int) -> None:
        self._reject(k, f"late by {bound - int(self._stamps[k])} ms", late=True)

    def _reject(self, k: int, reason: str, late: bool = False) -> None:
        """Rejects an item of this chunk, if there is still a row of it."""
        if self._row_at(k) is not None:
            self._sorter._reject(self._chunk.reject(k, reason, self._sorter.name), late)

    # -- Rows -----------------------------------------------------------------------------------

    def _row_at(self, k: int) -> int | None:
        """Which row the item at a place is; None where it has none."""
        kept = self._chunk.kept
        if kept is None:
            return k
        row = int(np.searchsorted(kept, k))
        return row if row < len(kept) and kept[row] == k else None

    def _row(self, k: int) -> Batch | None:
        row = self._row_at(k)
        if row is None:
            return None
        return _rows(self._chunk).part(row, row + 1).take(np.zeros(1, np.int64))

    def _hand_over(self) -> None:
        kept = self._chunk.kept
        let = self._let if kept is None else self._let[kept]
        self._sorter._heap.push(_rows(self._chunk).where(let))


def _rows(chunk: Chunk) -> Batch:
    """The rows of a chunk; `end` has the starts of events until they are released."""
    columns = dict(zip(TRIPLE, (chunk.s, chunk.p, chunk.o), strict=True))
    end = chunk.end
    return Batch(columns, end, end if chunk.since is None else chunk.since)
