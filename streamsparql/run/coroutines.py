"""Open queries in coroutines: tasks that wait for rows, and `on_row` as a coroutine function.

Pushing an item is a plain call: it computes for microseconds. What can wait is the reader of rows,
and the function that each row is passed to. Both run in the event loop in which items are pushed,
so that only one of them at a time uses the query. asyncio is imported when a task first waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from streamsparql.errors import EngineError
from streamsparql.physical.batch import Batch
from streamsparql.run.guard import Guard
from streamsparql.run.rows import Report

if TYPE_CHECKING:
    import asyncio

_T = TypeVar("_T")


def is_async(function: Any) -> bool:
    """Return whether a function, or an object that is called, is a coroutine function.

    >>> async def show(row): ...
    >>> is_async(show), is_async(print)
    (True, False)
    """
    from inspect import iscoroutinefunction

    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)


class Waiting:
    """The tasks that wait for rows: a future for each."""

    def __init__(self) -> None:
        self.futures: list[asyncio.Future[None]] = []
        self._thread = 0

    def check_thread(self) -> None:
        """Raise an error if a task of an event loop in another thread waits: it cannot be woken."""
        if self.futures and get_ident() != self._thread:
            raise EngineError(
                "a task of an event loop in another thread waits for rows;"
                " call loop.call_soon_threadsafe(live.push, ..)"
            )

    def wake(self) -> None:
        """Let all tasks look for rows, once the task that calls this waits itself."""
        futures, self.futures = self.futures, []
        for future in futures:
            if not future.done():
                future.set_result(None)

    async def wait(self) -> None:
        """Wait for the next call of `wake`."""
        import asyncio

        self._thread = get_ident()
        future = asyncio.get_running_loop().create_future()
        self.futures.append(future)
        try:
            await future
        finally:
            if future in self.futures:
                self.futures.remove(future)


class RowReader(Generic[_T]):
    """An asynchronous iterator over the rows of an open query, until it is closed.

    A row is taken from the query when it is returned, so a task that is cancelled while it waits
    loses none.
    """

    def __init__(
        self, next_row: Callable[[], _T | None], waiting: Waiting, closed: Callable[[], bool]
    ) -> None:
        self._next_row, self._waiting, self._closed = next_row, waiting, closed

    def __aiter__(self) -> RowReader[_T]:
        return self

    async def __anext__(self) -> _T:
        while True:
            row = self._next_row()
            if row is not None:
                return row
            if self._closed():
                raise StopAsyncIteration
            await self._waiting.wait()


class Offered(Generic[_T]):
    """Rows, or reports with their instants, that are returned one by one."""

    def __init__(self, rows: Batch, instants: list[int], decoded: list[_T]) -> None:
        self._rows, self._instants = rows, instants
        self._decoded = deque(decoded)
        self._count = 0

    @property
    def left(self) -> int:
        """The number of rows, or reports, that were not returned yet."""
        return len(self._decoded)

    @property
    def instants(self) -> list[int]:
        """The instants of the reports that were not returned yet."""
        return self._instants[self._count :]

    def pop(self) -> _T:
        """Return the next row, or report."""
        self._count += 1
        return self._decoded.popleft()

    def rest(self) -> Batch:
        """Return the rows that were not returned yet, in columns."""
        first = self._count
        if self._decoded and isinstance(self._decoded[0], Report):
            first = int(np.searchsorted(self._rows.start, self._decoded[0].instant, "left"))
        return self._rows.part(first, len(self._rows))


class Caller:
    """A task that awaits coroutine functions with emitted rows, one after the other."""

    def __init__(self, guard: Guard) -> None:
        self.due: deque[tuple[Any, Any]] = deque()
        """Functions, each with a row that it is still to be awaited with."""
        self._guard = guard
        self._task: asyncio.Task[None] | None = None
        self._error: Exception | None = None

    @property
    def has_news(self) -> bool:
        """Whether there are rows, or an error that ended the task."""
        return bool(self.due) or self._error is not None

    def start(self) -> None:
        """Start the task if there are rows; raise the error that ended the last one."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self.due and (self._task is None or self._task.done()):
            import asyncio

            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                raise EngineError(
                    "on_row is a coroutine function; push items in a running event loop"
                ) from None
            self._task = loop.create_task(self._call())

    async def drain(self) -> None:
        """Wait until all rows were handled; raise the error of the first call that failed."""
        import asyncio

        if self._task is not None and asyncio.current_task() is self._task:
            raise EngineError("on_row cannot wait for itself: call drain and aclose elsewhere")
        self.start()
        while self.due or (self._task is not None and not self._task.done()):
            self.start()
            assert self._task is not None
            await asyncio.wait([self._task])  # which does not cancel the task if it is cancelled
        self.start()

    async def _call(self) -> None:
        while self.due:
            try:
                with self._guard:
                    on_row, row = self.due.popleft()
                await on_row(row)
            except Exception as error:
                self._error = error
                return
