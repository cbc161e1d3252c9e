"""Ctrl-C, or SIGTERM: what is known by then is given out, and the run ends.

An interrupt is heeded between two rounds of a run, where its state is whole; a run that waits for
an endless stream is told that it has ended. A second interrupt ends the process at once.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Self

from streamsparql.errors import SourceError


class Waiting:
    """A file without an end, which can be told to stop while somebody waits for more of it."""

    def __init__(self, file: Any, name: str) -> None:
        self.name = name
        self._file = file
        self._waits = False
        self._ended = False

    @classmethod
    def among(cls, streams: dict[str, Any]) -> list[Waiting]:
        """Puts one in the place of each stream that has no end: standard input, and pipes."""
        found = []
        for name, source in streams.items():
            mapped = hasattr(source, "over")
            table = source.source if mapped else source
            if not isinstance(table, str) or not _endless(table):
                continue
            waiting = cls._opened(table)
            found.append(waiting)
            streams[name] = source.over(waiting) if mapped else waiting
        return found

    @classmethod
    def _opened(cls, path: str) -> Waiting:
        if path == "-":
            return cls(sys.stdin.buffer, "standard input")
        try:
            return cls(open(path, "rb"), path)
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror}") from None

    def end(self) -> None:
        """There is no more; called by a signal's handler, it ends a read that waits."""
        self._ended = True
        self._stop()

    def _stop(self) -> None:
        from streamsparql.replay import Stopped

        if self._waits and self._ended:
            raise Stopped

    def _wait(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            self._waits = True
            self._stop()
            return read(size)
        finally:
            self._waits = False

    def read1(self, size: int = -1) -> bytes:
        """What is there, or comes next."""
        return self._wait(self._file.read1, size)

    def read(self, size: int = -1) -> bytes:
        """So many bytes, or all to the end."""
        return self._wait(self._file.read, size)

    def peek(self, size: int = 0) -> bytes:
        """What comes next, which stays there."""
        return self._wait(self._file.peek, size)

    @property
    def closed(self) -> bool:
        """Whether nobody can read it any more."""
        return bool(self._file.closed)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It comes once."""
        return False


def _endless(path: str) -> bool:
    """Whether a path is of something that is read as it comes."""
    if path == "-":
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


class Interrupts:
    """Heeds the first interrupt by calling `stop`, while the `with` lasts."""

    def __init__(self, stop: Callable[[], None], waiting: Sequence[Waiting]) -> None:
        self.signal = 0
        """The number of the signal that came; 0 where none did."""
        self._stop, self._waiting = stop, waiting
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal:
            raise KeyboardInterrupt
        self.signal = number
        self._stop()
        for waiting in self._waiting:
            waiting.end()
