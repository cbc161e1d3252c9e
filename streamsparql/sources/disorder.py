"""Disorder: the items of a stream are sorted by timestamp; late ones are listed with a reason.

A stream's *time* is the greatest stamp that was accepted, its *watermark* trails that by
`max_delay`. An item stamped below the watermark is late (SEMANTICS.md section 10); the others are
retained until the watermark, or that of all streams together, reaches them.

**The guard.** By that rule alone one bogus stamp in the future (a sensor that thinks it is 2099)
would make everything after it late. So an item that jumps ahead of the stream's time by more than
`max_delay + max_jump` is quarantined, and the next item decides. Let `u` be the quarantined item:

- The next item `v` is near `u`, or after it (`v >= u - max_delay - max_jump`): the gap was real.
  `u` is accepted, then `v` by the usual rule.
- `v` is below that, and within reach of the stream's time: two against one, `u` is rejected.
- `v` jumps ahead, too, but is far below `u`: it is quarantined as well, and the first item that
  agrees with one of them decides. The quarantine has a fixed size; when it is full, the
  item with the highest stamp is rejected.
- A late `v` decides nothing about `u`.

Before the first item the time is unknown, so the first item is quarantined and the second decides:
a stream may *begin* with a bogus stamp. When the input ends, or `advance` promises that time has
reached the quarantined items, they are accepted, from the lowest up.

**No item is lost by default.** If a stream keeps its bound, each item has `v >= u - max_delay` for
all `u` before it, so each confirms the quarantined items: no `max_jump`, however small, rejects any
item. If a stream violates its bound, either `u` or the items after it must be rejected. The default
of a day exceeds the delays that a user may have left out of `max_delay`. `max_jump=None` disables
the guard.

The fate of an item depends on the order of the items, not on how they are split into chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streamsparql.algebra.inputs import MAX_JUMP
from streamsparql.errors import SourceError
from streamsparql.physical.batch import TRIPLE, Batch, BoolArray, IntArray
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import since_of
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.parts import Tables, batch_of, table_of
from streamsparql.sources.chunk import (
    Accounting,
    Chunk,
    Reject,
    Rejected,
    restored_reject,
    saved_reject,
)
from streamsparql.text.numbers import lag

WHOLE_INPUT = INFINITY // 2
"""The `max_delay` of a sorter that retains all items until the input ends."""
MAX_SORTED = 20_000_000
"""The number of items that such a sorter retains at most: about 3 GB."""

_MAX_QUARANTINED = 16
_SMALL = 8
"""The last items of a chunk (up to this number), and those after more jumps, are decided singly."""


@dataclass(slots=True)
class _Quarantined:
    """An item that jumped ahead; its row and its reject are set at the end of its chunk."""

    stamp: int
    place: int
    row: Batch | None = None
    reject: Reject | None = None


class Sorter:
    """The sorter of one stream: it retains items until the watermark reaches them.

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
        most: int | None = None,
    ) -> None:
        self.name = name
        self.max_delay = max_delay
        self.strict = strict
        self.events = events
        """Whether releases have the column SINCE, the starts of occurrences."""
        self.rejects: list[Reject] = []
        """Rejected and late items, in the order of the decisions on them."""
        self.late = 0
        """The number of late items."""
        self.needed_delay = 0
        """The least `max_delay` with which none of the late items would have been late."""
        self._most = most
        """The number of rows that may be retained; None for any."""
        self._ids_of_source: Callable[[], Iterable[IntArray]] | None = None
        self.read = 0
        """The number of items that were read, with those that are quarantined."""
        self._rejected = self._unmatched = self._rows_without_triples = 0
        self.seen = -1
        """The stream's time: the greatest stamp that was accepted."""
        self.least = INFINITY
        """The least stamp that was accepted."""
        self._reach = None if max_jump is None else max_delay + max_jump
        self._floor = 0
        self._quarantine: list[_Quarantined] = []  # each below those before it
        self._heap = Heap(TRIPLE)

    @property
    def watermark(self) -> int:
        """The stamp below which no item is accepted any more; it never decreases."""
        return max(self._floor, self.seen - self.max_delay)

    @property
    def _time(self) -> int:
        """The stream's time, as far as it is known; -1 before the first item."""
        return max(self.seen, self._floor or -1)

    @property
    def undecided(self) -> bool:
        """Whether an item is quarantined until the next one decides."""
        return bool(self._quarantine)

    @property
    def accounting(self) -> Accounting:
        """The counts of the items that were read, without those in quarantine."""
        read = self.read - sum(item.row is not None for item in self._quarantine)
        accepted = read - self.late - self._rejected
        return Accounting(
            read, accepted, self.late, self._rejected, self._unmatched, self._rows_without_triples
        )

    def drain(self) -> list[Reject]:
        """Return the rejects since the last call; the counts are not reset."""
        rejects, self.rejects = self.rejects, []
        return rejects

    def __len__(self) -> int:
        """Return the number of rows that are retained."""
        return len(self._heap) + sum(item.row is not None for item in self._quarantine)

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the term ids of the rows that are retained, here or in the source."""
        if self._ids_of_source is not None:
            yield from self._ids_of_source()
        yield from self._heap.retained_ids()
        for item in self._quarantine:
            if item.row is not None:
                yield from item.row.columns.values()

    def release(self, until: int) -> Batch:
        """Return the rows stamped `until` or before, by stamp, equal stamps in order of arrival.

        Each row holds over `[stamp, stamp + 1)`, as the access to a stream defines it. `until` must
        not exceed the watermark; else the next release could start before this one ended.
        """
        batch = self._heap.release(until)
        released = batch.over(batch.start, batch.start + 1)
        return released.with_columns({SINCE: since_of(batch.end)}) if self.events else released

    def pending(self, until: int) -> Batch:
        """Return the rows that `advance` and `release` would return, without removing them.

        Quarantined rows are among them if they are stamped `until` or before.
        """
        quarantined = [item.row for item in self._quarantine[::-1] if item.row is not None]
        rows = Batch.concat([self._heap.rows(), *quarantined], TRIPLE).ordered()
        rows = rows.where(rows.start <= until)
        return rows.over(rows.start, rows.start + 1)

    @property
    def first_quarantined(self) -> int:
        """The least stamp in quarantine; INFINITY if it is empty."""
        return self._quarantine[-1].stamp if self._quarantine else INFINITY

    def advance(self, t: int) -> None:
        """Note that no item stamped before `t` follows; INFINITY: the input has ended."""
        self._floor = max(self._floor, t)
        while self._quarantine and self._quarantine[-1].stamp <= t + (self._reach or 0):
            self._accept(self._quarantine.pop())

    def push(self, chunk: Chunk) -> None:
        """Consume items in the order in which they arrived."""
        self.read += chunk.items
        self._ids_of_source = chunk.retained_ids
        self._unmatched += chunk.prefiltered
        self._rows_without_triples += chunk.rows_without_triples
        for reject in chunk.rejects:
            self._reject(reject)
        if len(chunk.stamps) and not self._accept_sorted(chunk):
            _Pass(self, chunk).run()
        if self._most is not None and len(self._heap) > self._most:
            raise SourceError(
                f"{self.name}: more than {self._most:,} items are too many to sort in memory; pass"
                " a max_delay, or sort the files once with streamsparql prepare"
            )

    # -- Saving and restoring

    _COUNTERS = (
        "late",
        "needed_delay",
        "read",
        "_rejected",
        "_unmatched",
        "_rows_without_triples",
        "seen",
        "least",
        "_floor",
    )

    def save(self) -> tuple[dict[str, Any], Tables]:
        """Return the counters and watermarks, and the rows that are retained.

        >>> from streamsparql.physical.dictionary.term_dictionary import TermDictionary
        >>> from streamsparql.sources import read_stream
        >>> items, terms = [("<a>", "<p>", "<b>", t) for t in (10, 30, 25)], TermDictionary()
        >>> sorter, other = Sorter("s", max_delay=10), Sorter("s", max_delay=10)
        >>> for chunk in read_stream(items, "s", terms):
        ...     sorter.push(chunk)
        >>> other.load(*sorter.save())
        >>> other.watermark, other.release(30).start.tolist(), other.accounting.read
        (20, [10, 25, 30], 3)
        """
        counters = {name.lstrip("_"): getattr(self, name) for name in self._COUNTERS}
        quarantine = [
            {
                "stamp": item.stamp,
                "row": item.row is not None,
                "reject": None if item.reject is None else saved_reject(item.reject),
            }
            for item in self._quarantine
        ]
        rows = [item.row for item in self._quarantine if item.row is not None]
        tables = {
            "items": table_of(self._heap.rows()),
            "quarantine": table_of(Batch.concat(rows, TRIPLE)),
        }
        return {**counters, "quarantine": quarantine}, tables

    def load(self, counters: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Restore what `save` returned in a new sorter with the same options."""
        for name in self._COUNTERS:
            setattr(self, name, int(counters[name.lstrip("_")]))
        rows, place = batch_of(tables["quarantine"]).project(TRIPLE), 0
        for item in counters["quarantine"]:
            reject = None if item["reject"] is None else restored_reject(item["reject"])
            row = rows.part(place, place + 1) if item["row"] else None
            place += item["row"]
            self._quarantine.append(_Quarantined(item["stamp"], -1, row, reject))
        self._heap.push(batch_of(tables["items"]))

    def stamps(self) -> IntArray:
        """Return the stamps of the rows that are retained, in order.

        The rows become one run, so that releases after this are slices of it.
        """
        self._heap.push(self._heap.release(INFINITY))
        return np.concatenate([rows.start for rows in self._heap.runs()] or [_NO_STAMPS])

    def _accept_sorted(self, chunk: Chunk) -> bool:
        """Accept a chunk that is in order and in time, without inspecting single items."""
        stamps = chunk.stamps
        least, seen = int(stamps[0]), int(stamps[-1])
        if self._quarantine or least < self.watermark or not (stamps[1:] >= stamps[:-1]).all():
            return False
        if self._reach is not None and (self._time < 0 or seen > self._time + self._reach):
            return False
        self.seen, self.least = max(self.seen, seen), min(self.least, least)
        self._heap.push(_rows(chunk))
        return True

    def _accept(self, item: _Quarantined) -> None:
        """Accept an item of an earlier chunk."""
        self.seen, self.least = max(self.seen, item.stamp), min(self.least, item.stamp)
        if item.row is not None:
            self._heap.push(item.row)

    def _reject(self, reject: Reject) -> None:
        if reject.late:
            self.late += 1
            self.needed_delay = max(self.needed_delay, reject.lateness)
        else:
            self._rejected += 1
        if self.strict:
            raise Rejected(reject)
        self.rejects.append(reject)


class _Pass:
    """A decision on the items of one chunk: which of them are accepted."""

    def __init__(self, sorter: Sorter, chunk: Chunk) -> None:
        self._sorter = sorter
        self._chunk = chunk
        self._stamps = chunk.stamps
        self._accepted: BoolArray = np.zeros(len(chunk.stamps), np.bool_)

    def run(self) -> None:
        """Decide on each item, and push the rows of the accepted ones to the heap."""
        k, jumps, sorter = 0, 0, self._sorter
        while k < len(self._stamps):
            rest = len(self._stamps) - k
            unclear = sorter._quarantine or (sorter._reach is not None and self._sorter._time < 0)
            if unclear or rest <= _SMALL or jumps > _SMALL:
                self._decide_one(k)
                k += 1
            else:
                k = self._decide_many(k)
                jumps += 1
        for item in sorter._quarantine:
            if item.place >= 0:
                item.reject = self._chunk.reject(item.place, "", sorter.name)
                item.row = self._row(item.place)
                item.place = -1
        self._push_accepted()

    # -- by arrays ----------------------------------------------------------------------------

    def _decide_many(self, first: int) -> int:
        """Decide on the items from `first` up to one that jumps; return the place after them."""
        sorter, stamps = self._sorter, self._stamps[first:]
        time = np.maximum.accumulate(stamps)
        np.maximum(time, self._sorter._time, out=time)
        earlier = np.concatenate([[self._sorter._time], time[:-1]])
        in_time = stamps >= np.maximum(earlier - sorter.max_delay, sorter._floor)
        after = len(stamps)
        if sorter._reach is not None:
            jumps = np.flatnonzero(time - earlier > sorter._reach)
            if len(jumps) and not in_time.all():
                after = int(jumps[0])
            elif len(jumps) and jumps[-1] == after - 1:
                after -= 1  # if all items keep their bound, the next item confirms each jump
        for k in np.flatnonzero(~in_time[:after]).tolist():
            self._late(first + k, int(earlier[k]))
        if after:
            self._accepted[first : first + after] = in_time[:after]
            accepted = stamps[:after][in_time[:after]]
            sorter.seen = max(sorter.seen, int(accepted.max(initial=-1)))
            sorter.least = min(sorter.least, int(accepted.min(initial=INFINITY)))
        if after < len(stamps):
            self._decide_one(first + after)
            after += 1
        return first + after

    # -- one by one -----------------------------------------------------------------------------

    def _decide_one(self, k: int) -> None:
        """Decide on one item, and on the quarantined ones, by the rules at the head of the file."""
        sorter, stamp = self._sorter, int(self._stamps[k])
        if stamp < sorter.watermark:
            self._late(k, sorter.seen)
            return
        reach = sorter._reach
        jumps = reach is not None and (self._sorter._time < 0 or stamp > self._sorter._time + reach)
        if reach is not None and sorter._quarantine:
            if stamp >= sorter._quarantine[-1].stamp - reach:
                while sorter._quarantine and sorter._quarantine[-1].stamp <= stamp + reach:
                    self._accept(sorter._quarantine.pop())
                self._reject_quarantined(len(sorter._quarantine))
                self._decide_one(k)
                return
            full = len(sorter._quarantine) == _MAX_QUARANTINED
            self._reject_quarantined(int(full) if jumps else len(sorter._quarantine))
        item = _Quarantined(stamp, k)
        if jumps:
            sorter._quarantine.append(item)
        else:
            self._accept(item)

    def _accept(self, item: _Quarantined) -> None:
        self._sorter._accept(item)
        if item.place >= 0:
            self._accepted[item.place] = True

    def _reject_quarantined(self, count: int) -> None:
        """Reject the highest items of the quarantine."""
        rejected = self._sorter._quarantine[:count]
        del self._sorter._quarantine[:count]
        for item in rejected:
            reason = f"implausible timestamp {item.stamp}: far ahead of the items that follow"
            if item.place >= 0:
                self._reject(item.place, reason)
            elif item.row is not None and item.reject is not None:
                self._sorter._reject(item.reject._replace(reason=reason))

    def _late(self, k: int, time: int) -> None:
        """Reject an item that arrives when the stream's time is `time`."""
        sorter, stamp = self._sorter, int(self._stamps[k])
        bound = max(time - sorter.max_delay, sorter._floor)
        lateness = 0 if sorter._floor else time - stamp  # no delay helps against `advance`
        self._reject(k, f"late by {lag(bound - stamp)}", True, lateness)

    def _reject(self, k: int, reason: str, late: bool = False, lateness: int = 0) -> None:
        """Reject an item of this chunk, if it has a row."""
        if self._row_at(k) is not None:
            reject = self._chunk.reject(k, reason, self._sorter.name)
            self._sorter._reject(reject._replace(late=late, lateness=lateness))

    # -- rows -----------------------------------------------------------------------------------

    def _row_at(self, k: int) -> int | None:
        """Return the row of the item at a place of `stamps`; None if it has no row."""
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

    def _push_accepted(self) -> None:
        kept = self._chunk.kept
        accepted = self._accepted if kept is None else self._accepted[kept]
        self._sorter._heap.push(_rows(self._chunk).where(accepted))


_NO_STAMPS: IntArray = np.empty(0, np.int64)


def _rows(chunk: Chunk) -> Batch:
    """Return the rows of a chunk; `end` carries the starts of events until their release."""
    columns = dict(zip(TRIPLE, (chunk.s, chunk.p, chunk.o), strict=True))
    end = chunk.end
    return Batch(columns, end, end if chunk.since is None else chunk.since)
