"""The clock of several streams: how far they have come together, and which one to read next.

What is known for sure is what lies below the least watermark of all streams. A stream that has
ended holds nobody back. Nor does one that is silent: one that was not heard of while the time of
the others went on by `idle`. When it speaks again, what it says below the common watermark is late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import INFINITY
from streamsparql.sources.chunk import Chunk
from streamsparql.sources.disorder import Sorter


class Clock:
    """The common watermark of several streams.

    >>> clock = Clock(["a", "b"], idle=100)
    >>> clock.advance("a", 50); clock.advance("b", 20); clock.watermark()
    20
    >>> clock.advance("a", 150); clock.watermark(), clock.silent()
    (150, ['b'])
    """

    def __init__(self, names: Iterable[str], idle: int | None = None) -> None:
        self._marks = dict.fromkeys(names, 0)
        self._heard: dict[str, int] = {}
        """What the time of the others was when each stream was last heard of; where they had none
        by then, what it was first."""
        self._idle = idle
        self._watermark = 0

    def advance(self, name: str, watermark: int) -> None:
        """A stream was heard of: it said something, or how far it has come."""
        self._marks[name] = max(self._marks[name], watermark)
        self._heard.pop(name, None)
        if self._idle is not None:
            for other in self._marks.keys() - self._heard.keys():
                time = self._others(other)
                if time:
                    self._heard[other] = time

    def end(self, name: str) -> None:
        """A stream has ended."""
        self._marks[name] = INFINITY

    def watermark(self) -> int:
        """No stream will bring anything below it that is not late; it never falls."""
        silent = set(self.silent())
        awake = [mark for name, mark in self._marks.items() if name not in silent]
        self._watermark = max(self._watermark, min(awake, default=INFINITY))
        return self._watermark

    def silent(self) -> list[str]:
        """The streams that hold nobody back because they were not heard of for so long."""
        if self._idle is None:
            return []
        return [
            name
            for name, mark in self._marks.items()
            if mark < INFINITY
            and name in self._heard
            and self._others(name) - self._heard[name] >= self._idle
        ]

    def behind(self) -> str | None:
        """The stream that has come least far: the one to read next; None when all have ended."""
        name = min(self._marks, key=self._marks.__getitem__, default=None)
        return None if name is None or self._marks[name] == INFINITY else name

    def _others(self, name: str) -> int:
        """The time of the streams beside this one; those that have ended have none."""
        marks = (mark for other, mark in self._marks.items() if other != name)
        return max((mark for mark in marks if mark < INFINITY), default=0)


class InputStep(NamedTuple):
    """The items of several streams up to a common watermark, INFINITY in the last step."""

    batches: dict[str, Batch]
    watermark: int


def interleave(
    readers: Mapping[str, Iterator[Chunk]], sorters: Mapping[str, Sorter]
) -> Iterator[InputStep]:
    """Reads several streams side by side, each by its sorter, the one that is behind first.

    So what is held is a chunk or two of each stream, however long they are and however much of one
    falls into the time of a little of another.

    >>> from streamsparql.physical.dictionary.term_dictionary import TermDictionary
    >>> from streamsparql.sources import read_stream
    >>> terms, items = TermDictionary(), [("<a>", "<p>", "<b>", t) for t in (3, 8)]
    >>> names = ["one", "two"]
    >>> readers = {name: read_stream(items, name, terms) for name in names}
    >>> steps = interleave(readers, {name: Sorter(name) for name in names})
    >>> [(len(r.batches["one"]), len(r.batches["two"]), r.watermark == INFINITY) for r in steps]
    [(2, 2, False), (0, 0, True)]
    """
    clock = Clock(list(readers))
    before = 0
    while (name := clock.behind()) is not None:
        sorter = sorters[name]
        chunk = next(readers[name], None)
        if chunk is None:
            sorter.advance(INFINITY)
            clock.end(name)
        else:
            sorter.push(chunk)
            clock.advance(name, sorter.watermark)
        watermark = clock.watermark()
        if watermark > before:
            before = watermark
            yield InputStep({n: s.release(watermark) for n, s in sorters.items()}, watermark)
    if before < INFINITY:
        yield InputStep({n: s.release(INFINITY) for n, s in sorters.items()}, INFINITY)
