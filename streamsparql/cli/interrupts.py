"""Ctrl-C, or SIGTERM: what is known by then is given out, and the run ends.

An interrupt is heeded between two rounds of a run, where its state is whole; a run that waits for
standard input is told that there is no more of it. A second interrupt ends the process at once.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import IO, Any, Self


class Waiting:
    """Standard input as a file that can be told to end while somebody waits for more of it."""

    name = "standard input"

    def __init__(self, file: IO[bytes]) -> None:
        self._file: Any = file
        self._waits = False
        self._ended = False

    @classmethod
    def of(cls, streams: dict[str, Any]) -> Waiting | None:
        """Puts one in the place of `-`, where that is among the streams."""
        for name, source in streams.items():
            if isinstance(source, str) and source == "-":
                streams[name] = waiting = cls(sys.stdin.buffer)
                return waiting
            file = getattr(source, "source", None)
            if isinstance(file, str) and file == "-":  # a table with its mapping
                waiting = cls(sys.stdin.buffer)
                streams[name] = source.over(waiting)
                return waiting
        return None

    def end(self) -> None:
        """There is no more; called by a signal's handler, it ends a read that waits."""
        self._ended = True
        if self._waits:
            raise _Ended

    def _wait(self, read: Callable[[int], bytes], size: int) -> bytes:
        if self._ended:
            return b""
        try:
            self._waits = True
            try:
                return read(size)
            finally:
                self._waits = False
        except _Ended:
            return b""

    def read1(self, size: int = -1) -> bytes:
        """What is there, or comes next."""
        return self._wait(self._file.read1, size)

    def read(self, size: int = -1) -> bytes:
        """So many bytes, or all to the end."""
        return self._wait(self._file.read, size)

    def peek(self, size: int = 0) -> bytes:
        """What comes next, which stays there."""
        return self._wait(self._file.peek, size)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It comes once."""
        return False


class _Ended(Exception):
    """Somebody interrupts a read."""


class Interrupts:
    """Heeds the first interrupt by calling `stop`, while the `with` lasts."""

    def __init__(self, stop: Callable[[], None], waiting: Waiting | None) -> None:
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
        if self._waiting is not None:
            self._waiting.end()
