"""The guard of a run's state: what an exception cut short is never read again as if it were whole.

A step changes many structures: sorters, the dictionary, the states of operators. An exception in
the middle of it, such as that of Ctrl-C, can come between any two of these changes. So each change
is announced before it begins and confirmed once it has ended; in between nothing may be read.

While a change is under way, the meter of the run is active (`streamsparql.limits`), and changes by
other threads wait for its end.
"""

from __future__ import annotations

from threading import RLock
from types import TracebackType

from streamsparql.errors import EngineError
from streamsparql.limits import Meter, activate


class Guard:
    """The state of a run: whole, or cut short by an exception, after which every use is an error.

    >>> guard = Guard()
    >>> with guard:
    ...     pass
    >>> try:
    ...     with guard:
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     guard.broken, guard.reason
    (True, 'KeyboardInterrupt ended a step in the middle')
    >>> with guard:
    ...     pass
    Traceback (most recent call last):
    streamsparql.errors.EngineError: the query is unusable: KeyboardInterrupt ended a step in the \
middle, and rows may be missing; run or open it again
    """

    def __init__(self, meter: Meter | None = None) -> None:
        self.meter = meter
        """The meter of the run; None without limits."""
        self._outer: Meter | None = None
        self.error: BaseException | None = None
        """The first exception that ended a change in the middle, if it is known."""
        self._changing = False
        self.lock = RLock()
        """What a thread holds that changes the state."""

    @property
    def broken(self) -> bool:
        """Whether a change has begun and not ended."""
        return self._changing

    @property
    def reason(self) -> str:
        """Why the state is not whole."""
        if self.error is None:
            return "a step has not ended: it was interrupted, or its source calls again"
        named = type(self.error).__name__
        lines = str(self.error).splitlines()
        return f"{named}{f' ({lines[0]})' if lines else ''} ended a step in the middle"

    def verify(self) -> None:
        """Raise an error if a change was cut short."""
        if self._changing:
            with self.lock:  # another thread may be about to end the change
                if self._changing:
                    raise EngineError(
                        f"the query is unusable: {self.reason}, and rows may be missing;"
                        " run or open it again"
                    ) from self.error

    def __enter__(self) -> None:
        self.lock.acquire()
        if self._changing:
            self.lock.release()
            self.verify()
        self._changing = True
        self._outer = activate(self.meter)
        if self.meter is not None:
            self.meter.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            activate(self._outer)
            if error is not None:
                self.error = self.error or error
                return
            if self.meter is not None:
                self.meter.stop()
            self._changing = False
        finally:
            self.lock.release()
