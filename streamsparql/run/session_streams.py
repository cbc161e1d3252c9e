"""The streams of a session: each is read, encoded and ordered once, for all queries that need it.

A source skips items that no query needs (their predicate matches no pattern). So a query that is
registered later may need items that were skipped, and that still wait for the watermark.
`StreamNeeds` knows from which stamp on the items that a query needs are complete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence

from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.run.input import RunInput
from streamsparql.run.open_input import PushedStream
from streamsparql.sources import Chunk, Wanted

EVERYTHING = Wanted(None)


class StreamNeeds:
    """What queries need of a stream, and from which stamps on it is complete.

    >>> needs, p = StreamNeeds(), Wanted(frozenset({1}))
    >>> needs.add("one", p)
    >>> needs.skip(7)
    >>> needs.complete_from(p), needs.complete_from(Wanted(frozenset({2})))
    (0, 8)
    """

    def __init__(self) -> None:
        self._of: dict[Hashable, Wanted] = {}
        self.all = Wanted(frozenset(), frozenset())
        """What some query needs."""
        self._complete = [(self.all, 0)]
        self._skipped = -1

    def add(self, query: Hashable, need: Wanted) -> None:
        """Add what a query needs."""
        since = max(self.complete_from(need), self.complete_from(self.all))
        self._of[query] = need
        both = joint(self.all, need)
        if both != self.all:
            self._complete.append((both, since))
            self.all = both

    def remove(self, query: Hashable) -> None:
        """Remove what a query needed."""
        if query not in self._of:
            return
        del self._of[query]
        fewer = Wanted(frozenset(), frozenset())
        for need in self._of.values():
            fewer = joint(fewer, need)
        if fewer != self.all:
            since = self.complete_from(fewer)
            kept = [each for each in self._complete if covers(fewer, each[0])]
            self._complete = [*kept, (fewer, since)]
            self.all = fewer

    def skip(self, stamp: int) -> None:
        """Note that items up to a stamp were skipped, wholly or in part: no query needs them."""
        self._skipped = max(self._skipped, stamp)

    def complete_from(self, need: Wanted) -> int:
        """Return the stamp from which on no item that is needed was skipped."""
        known = [since for covered, since in self._complete if covers(covered, need)]
        return min(known, default=self._skipped + 1)

    @property
    def complete(self) -> Sequence[tuple[Wanted, int]]:
        """What was needed at some time, and the stamps from which on it is complete."""
        return self._complete

    @property
    def skipped(self) -> int:
        """The greatest stamp of an item that was skipped, wholly or in part."""
        return self._skipped

    def restore(self, complete: Iterable[tuple[Wanted, int]], skipped: int) -> None:
        """Restore `complete` and `skipped`."""
        self._complete, self._skipped = [*complete], skipped

    def advance(self, mark: int) -> None:
        """Forget what only matters below the watermark."""
        if len(self._complete) > 1 and self._complete[-1][1] <= mark:
            self._complete = [self._complete[-1]]


def covers(one: Wanted, other: Wanted) -> bool:
    """Return whether one need includes another one."""
    predicates = one.predicates is None or (
        other.predicates is not None and one.predicates >= other.predicates
    )
    return predicates and one.places >= other.places


def joint(one: Wanted, other: Wanted) -> Wanted:
    """Return the need that includes two others.

    >>> joint(Wanted(frozenset({1})), Wanted(frozenset({2}), frozenset("s"))).predicates
    frozenset({1, 2})
    """
    predicates = None
    if one.predicates is not None and other.predicates is not None:
        predicates = one.predicates | other.predicates
    return Wanted(predicates, one.places | other.places)


class SessionStream(PushedStream):
    """A stream of a session: what queries need of it, and the items that are kept for others."""

    def __init__(self, name: str, number: int, run_input: RunInput, history: int) -> None:
        super().__init__(name, run_input.sorter(name), run_input.reading_of(name))
        self.scope = f"s{number}."
        """The prefix of the labels of its blank nodes."""
        self.tables_read = 0
        """The number of mapped tables that were read."""
        self.mark = 0
        """The instant before which all items were released."""
        self.needs = StreamNeeds()
        self.accesses: dict[str | None, StreamAccess] = {}
        """The operators of its items, by the column of their stamps."""
        self._history = history
        self._kept: deque[Batch] = deque()
        """The items of the last milliseconds, as they were released."""
        if history:
            self.needs.add(self, EVERYTHING)

    @property
    def touched(self) -> bool:
        """Whether an item was pushed to it, or its time was advanced."""
        return self.sorter.read > 0 or self.sorter.watermark > 0 or bool(self.buffer)

    @override
    def sort(self, chunk: Chunk) -> None:
        if chunk.prefiltered or len(self.needs.all.places) < 3:
            self.needs.skip(chunk.seen)
        super().sort(chunk)

    def release(self) -> Batch:
        """Return the items below the watermark, which then is the mark."""
        mark = max(self.mark, self.sorter.watermark)
        batch = self.sorter.release(mark if mark == INFINITY else mark - 1)
        self.mark = mark
        self.needs.advance(mark)
        for access in self.accesses.values():
            access.first, access.last = self.sorter.least, self.sorter.seen
        if self._history and len(batch):
            self._kept.append(batch)
            while self._kept and int(self._kept[0].start[-1]) < mark - self._history:
                self._kept.popleft()
        return batch

    @property
    def kept_from(self) -> int:
        """The stamp from which on all items are kept."""
        return max(self.mark - self._history, 0)

    def kept(self) -> Iterator[Batch]:
        """Yield the items that are kept, from `kept_from` on."""
        for batch in self._kept:
            yield batch.where(batch.start >= self.kept_from)

    def keep(self, items: Iterable[Batch]) -> None:
        """Keep items that were released by another process."""
        self._kept.extend(items)

    def size(self) -> int:
        """Return the number of items that wait, or that are kept."""
        return len(self.sorter) + sum(map(len, self._kept))

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the term ids of the items that wait, or that are kept."""
        yield from self.sorter.retained_ids()
        for batch in self._kept:
            yield from batch.columns.values()
