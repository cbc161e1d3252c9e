"""Interrupts (Ctrl-C, SIGTERM, SIGHUP): the run ends early and emits the rows that are final.

A run handles an interrupt between two steps, where its state is consistent; if it waits for an
endless stream, the stream ends. A second interrupt ends the process at once.
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
from typing import TYPE_CHECKING, Any, Self

from streamsparql.errors import SourceError
from streamsparql.limits import active_meter
from streamsparql.overriding import override

if TYPE_CHECKING:
    from streamsparql.connectors.live_stream import LiveStream


class EndlessInput(io.RawIOBase):
    """An endless file; `end` ends it, even while a read waits for more data."""

    def __init__(self, file: Any, path: str) -> None:
        super().__init__()
        self.name = "standard input" if path == "-" else path
        self.alarm: int | None = None
        """A file descriptor that becomes readable when a signal arrives."""
        self._file, self._owned = file, path != "-"
        self._reading = False
        self._ended = False

    @classmethod
    def replace_endless(cls, streams: dict[str, Any]) -> list[EndlessInput | EndlessSource]:
        """Replace each endless stream (standard input, pipes, URLs) in `streams`; return them."""
        from streamsparql.connectors.live_stream import LiveStream
        from streamsparql.sources.mapping import Mapped
        from streamsparql.sources.paths import is_endless

        inputs: list[EndlessInput | EndlessSource] = []
        for name, source in streams.items():
            live = LiveStream.of(source)
            if isinstance(live, LiveStream):
                streams[name] = live
                inputs.append(EndlessSource(live))
                continue
            table = source.source if isinstance(source, Mapped) else source
            if not isinstance(table, str) or not is_endless(table):
                continue
            endless = cls(_open_unbuffered(table), table)
            inputs.append(endless)
            file = io.BufferedReader(endless)
            streams[name] = source.over(file) if isinstance(source, Mapped) else file
        return inputs

    def end(self) -> None:
        """End the input. Called in a signal handler, it also ends a read that waits."""
        self._ended = True
        self._raise_if_ended()

    def _raise_if_ended(self) -> None:
        from streamsparql.run.replay import Stopped

        if self._reading and self._ended:
            raise Stopped

    @override
    def readinto(self, buffer: Any) -> int:
        try:
            self._reading = True
            self._raise_if_ended()
            self._wait()
            if (meter := active_meter()) is not None:
                meter.restart()
            count: int = self._file.readinto(buffer)
            return count
        finally:
            self._reading = False

    def _wait(self) -> None:
        """Wait until there is data to read, or the input ends.

        A signal that arrives just before a read does not interrupt it: Python calls the handler
        after the read, which may never return. So this waits for the file or the alarm.
        """
        if self.alarm is None or not _selectable(self._file):
            return
        while self._file not in select.select([self._file, self.alarm], [], [])[0]:
            os.read(self.alarm, 1)  # a handler that ended the run has raised already

    @override
    def fileno(self) -> int:
        return int(self._file.fileno())

    @override
    def readable(self) -> bool:
        return True

    @override
    def close(self) -> None:
        if self._owned:
            self._file.close()
        super().close()


class EndlessSource:
    """A live source, whose polls end after a moment."""

    def __init__(self, live: LiveStream) -> None:
        self.alarm: int | None = None
        """A file descriptor as that of an `EndlessInput`; it is not needed."""
        self._live = live

    def end(self) -> None:
        """End the source at its next poll."""
        from streamsparql.run.replay import Stopped

        self._live.stop_by(Stopped)


def _selectable(file: Any) -> bool:
    """Return whether a file has a descriptor that `select` can wait for."""
    try:
        return int(file.fileno()) >= 0
    except OSError:  # a file in memory
        return False


def _open_unbuffered(path: str) -> Any:
    if path == "-":
        return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    try:
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None


_SAME_SIGNAL = 0.5
"""Seconds within which a second signal is a repetition: `timeout` and shells may send two."""


_HANGUP = getattr(signal, "SIGHUP", None)
"""The terminal was closed; Windows has no such signal."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([] if _HANGUP is None else [_HANGUP]))


class Interrupts:
    """A context manager that calls `stop` at the first interrupt, and ends the endless inputs."""

    def __init__(
        self, stop: Callable[[], None], endless: Sequence[EndlessInput | EndlessSource]
    ) -> None:
        self.signal = 0
        """The number of the signal that arrived, else 0."""
        self._stop, self._endless = stop, endless
        self._old_handlers: dict[signal.Signals, Any] = {}
        self._alarm: tuple[int, int] | None = None
        self._old_wakeup = -1
        self._arrived = 0.0

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        if self._endless and os.name != "nt":  # on Windows, select only accepts sockets
            self._alarm = os.pipe()
            os.set_blocking(self._alarm[1], False)
            self._old_wakeup = signal.set_wakeup_fd(self._alarm[1], warn_on_full_buffer=False)
            for endless in self._endless:
                endless.alarm = self._alarm[0]
        for number in _SIGNALS:
            if number != _HANGUP or signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
                self._old_handlers[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        if self._alarm is not None:
            for endless in self._endless:
                endless.alarm = None
            signal.set_wakeup_fd(self._old_wakeup)
            for end in self._alarm:
                os.close(end)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal:
            if monotonic() - self._arrived > _SAME_SIGNAL:
                raise KeyboardInterrupt
            return
        self.signal, self._arrived = number, monotonic()
        self._stop()
        for endless in self._endless:
            endless.end()
