"""The clock of several streams: their common watermark, and which stream to read next.

The common watermark is the least watermark of all streams. Streams that have ended are left out of
this minimum, as are idle ones: silent while the time of the others advanced by `idle`. When an idle
stream resumes, its items below the common watermark are late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import INFINITY
from streamsparql.sources.chunk import Chunk
from streamsparql.sources.disorder import Sorter

STEP_ROWS = 65_536
"""The number of rows, more or less, of the steps in which rows are processed that were retained."""


class StreamClock:
    """The common watermark of several streams.

    >>> clock = StreamClock(["a", "b"], idle=100)
    >>> clock.advance("a", 50); clock.advance("b", 20); clock.watermark()
    20
    >>> clock.advance("a", 150); clock.watermark(), clock.silent()
    (150, ['b'])
    """

    def __init__(self, names: Iterable[str], idle: int | None = None) -> None:
        self._marks = dict.fromkeys(names, 0)
        self._reported: dict[str, int] = {}
        """The time of the other streams when each stream last reported; if they had none then,
        their first time."""
        self._idle = idle
        self._watermark = 0

    @property
    def idle(self) -> int | None:
        """The milliseconds of silence after which a stream is left out; None for any."""
        return self._idle

    @property
    def ended(self) -> list[str]:
        """The streams that have ended."""
        return [name for name, mark in self._marks.items() if mark == INFINITY]

    def add(self, name: str) -> None:
        """Add a stream."""
        self._marks.setdefault(name, 0)

    def remove(self, name: str) -> None:
        """Remove a stream."""
        del self._marks[name]
        self._reported.pop(name, None)

    def advance(self, name: str, watermark: int) -> None:
        """Note that a stream reported: an item, or its watermark."""
        self._marks[name] = max(self._marks[name], watermark)
        self._reported.pop(name, None)
        if self._idle is not None:
            for other in self._marks.keys() - self._reported.keys():
                time = self._time_of_others(other)
                if time:
                    self._reported[other] = time

    def end(self, name: str) -> None:
        """Note that a stream has ended."""
        self._marks[name] = INFINITY

    def save(self) -> dict[str, Any]:
        """Return the times of the streams.

        >>> clock, other = StreamClock(["a"], idle=9), StreamClock(["a"], idle=9)
        >>> clock.advance("a", 50); other.load(clock.save()); other.watermark()
        50
        """
        marks, reported = dict(self._marks), dict(self._reported)
        return {"marks": marks, "reported": reported, "watermark": self._watermark}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore what `save` returned."""
        self._marks.update(saved["marks"])
        self._reported.update(saved["reported"])
        self._watermark = saved["watermark"]

    def watermark(self) -> int:
        """Return the common watermark: items below it are late. It never decreases."""
        silent = set(self.silent())
        awake = [mark for name, mark in self._marks.items() if name not in silent]
        self._watermark = max(self._watermark, min(awake, default=INFINITY))
        return self._watermark

    def silent(self) -> list[str]:
        """Return the streams that are left out of the watermark because they are idle."""
        if self._idle is None:
            return []
        return [
            name
            for name, mark in self._marks.items()
            if mark < INFINITY
            and name in self._reported
            and self._time_of_others(name) - self._reported[name] >= self._idle
        ]

    def behind(self) -> str | None:
        """Return the stream with the least watermark, to be read next; None when all have ended."""
        name = min(self._marks, key=self._marks.__getitem__, default=None)
        return None if name is None or self._marks[name] == INFINITY else name

    def _time_of_others(self, name: str) -> int:
        """Return the greatest watermark of the other streams, without those that have ended."""
        marks = (mark for other, mark in self._marks.items() if other != name)
        return max((mark for mark in marks if mark < INFINITY), default=0)


class InputStep(NamedTuple):
    """The items of several streams up to a common watermark, INFINITY in the last step."""

    batches: dict[str, Batch]
    watermark: int


def interleave(
    readers: Mapping[str, Iterator[Chunk]], sorters: Mapping[str, Sorter]
) -> Iterator[InputStep]:
    """Read several streams side by side, each through its sorter, the one that is behind first.

    So at most a chunk or two per stream are retained, however long the streams are and however
    unevenly their items are spread over time. A chunk with rejects is a step, even if the watermark
    is where it was, so that a reader of the rejects can drain them.

    >>> from streamsparql.physical.dictionary.term_dictionary import TermDictionary
    >>> from streamsparql.sources import read_stream
    >>> terms, items = TermDictionary(), [("<a>", "<p>", "<b>", t) for t in (3, 8)]
    >>> names = ["one", "two"]
    >>> readers = {name: read_stream(items, name, terms) for name in names}
    >>> steps = interleave(readers, {name: Sorter(name) for name in names})
    >>> [(len(r.batches["one"]), len(r.batches["two"]), r.watermark == INFINITY) for r in steps]
    [(2, 2, False), (0, 0, True)]
    """
    clock = StreamClock(list(readers))
    before = 0
    while (name := clock.behind()) is not None:
        sorter = sorters[name]
        rejects = len(sorter.rejects)
        chunk = next(readers[name], None)
        if chunk is None:
            sorter.advance(INFINITY)
            clock.end(name)
        else:
            sorter.push(chunk)
            clock.advance(name, sorter.watermark)
        watermark = clock.watermark()
        if watermark > before or len(sorter.rejects) > rejects:
            before = watermark
            yield InputStep({n: s.release(watermark) for n, s in sorters.items()}, watermark)
    for bound in _bounds(sorters) if before < INFINITY else ():
        yield InputStep({n: s.release(bound) for n, s in sorters.items()}, bound)


def _bounds(sorters: Mapping[str, Sorter]) -> Iterator[int]:
    """Yield instants that divide the rows that are left into steps; the last is INFINITY."""
    if sum(map(len, sorters.values())) > STEP_ROWS:
        stamps = np.sort(np.concatenate([sorter.stamps() for sorter in sorters.values()]))
        yield from np.unique(stamps[STEP_ROWS::STEP_ROWS]).tolist()
    yield INFINITY
