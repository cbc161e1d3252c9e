"""Ctrl-C, or SIGTERM: what is known by then is given out, and the run ends.

An interrupt is heeded between two rounds of a run, where its state is whole; a run that waits for
an endless stream is told that it has ended. A second interrupt ends the process at once.
"""

from __future__ import annotations

import io
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, Self

from streamsparql.errors import SourceError
from streamsparql.overriding import override


class Waiting(io.RawIOBase):
    """A file without an end, which can be told to stop while somebody waits for more of it."""

    def __init__(self, file: Any, path: str) -> None:
        super().__init__()
        self.name = "standard input" if path == "-" else path
        self.alarm: int | None = None
        """What becomes readable when a signal comes."""
        self._file, self._own = file, path != "-"
        self._waits = False
        self._ended = False

    @classmethod
    def in_place_of_endless(cls, streams: dict[str, Any]) -> list[Waiting]:
        """Puts one in the place of each stream that has no end: standard input, and pipes."""
        from streamsparql.sources.mapping import Mapped
        from streamsparql.sources.paths import is_endless

        found = []
        for name, source in streams.items():
            table = source.source if isinstance(source, Mapped) else source
            if not isinstance(table, str) or not is_endless(table):
                continue
            waiting = cls(_opened(table), table)
            found.append(waiting)
            file = io.BufferedReader(waiting)
            streams[name] = source.over(file) if isinstance(source, Mapped) else file
        return found

    def end(self) -> None:
        """There is no more; called by a signal's handler, it ends a read that waits."""
        self._ended = True
        self._stop()

    def _stop(self) -> None:
        from streamsparql.run.replay import Stopped

        if self._waits and self._ended:
            raise Stopped

    @override
    def readinto(self, buffer: Any) -> int:
        try:
            self._waits = True
            self._stop()
            self._wait()
            count: int = self._file.readinto(buffer)
            return count
        finally:
            self._waits = False

    def _wait(self) -> None:
        """Waits until there is something to read, or an end.

        A signal that comes when a read is about to begin does not interrupt it: Python calls the
        handler once the read is over, which may be never. So there is the alarm beside the file.
        """
        if self.alarm is None or not _selectable(self._file):
            return
        while self._file not in select.select([self._file, self.alarm], [], [])[0]:
            os.read(self.alarm, 1)  # the handler has raised by now, if it ends the run

    @override
    def fileno(self) -> int:
        return int(self._file.fileno())

    @override
    def readable(self) -> bool:
        return True

    @override
    def close(self) -> None:
        if self._own:
            self._file.close()
        super().close()


def _selectable(file: Any) -> bool:
    """Whether the system can tell when there is something to read in a file."""
    try:
        return int(file.fileno()) >= 0
    except OSError:  # it is in memory
        return False


def _opened(path: str) -> Any:
    if path == "-":
        return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    try:
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None


_SAME = 0.5
"""So many seconds long another signal is the same: `timeout` and shells send some of them twice."""


class Interrupts:
    """Heeds the first interrupt by calling `stop`, while the `with` lasts."""

    def __init__(self, stop: Callable[[], None], waiting: Sequence[Waiting]) -> None:
        self.signal = 0
        """The number of the signal that came; 0 where none did."""
        self._stop, self._waiting = stop, waiting
        self._before: dict[signal.Signals, Any] = {}
        self._alarm: tuple[int, int] | None = None
        self._alarm_before = -1
        self._since = 0.0

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        if self._waiting and os.name != "nt":  # Windows selects among sockets only
            self._alarm = os.pipe()
            os.set_blocking(self._alarm[1], False)
            self._alarm_before = signal.set_wakeup_fd(self._alarm[1], warn_on_full_buffer=False)
            for waiting in self._waiting:
                waiting.alarm = self._alarm[0]
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
        if self._alarm is not None:
            for waiting in self._waiting:
                waiting.alarm = None
            signal.set_wakeup_fd(self._alarm_before)
            for end in self._alarm:
                os.close(end)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal:
            if monotonic() - self._since > _SAME:
                raise KeyboardInterrupt
            return
        self.signal, self._since = number, monotonic()
        self._stop()
        for waiting in self._waiting:
            waiting.end()
