"""The calls of `on_row`: each row once, in order, after the step that emitted it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from types import CoroutineType
from typing import Any, NamedTuple

from streamsparql.errors import EngineError
from streamsparql.run.coroutines import Caller, is_async
from streamsparql.run.guard import Guard


class _Call(NamedTuple):
    on_row: Callable[[Any], object]
    row: Any
    query: str


class RowCalls:
    """The rows, or reports, that functions are still to be called with.

    >>> calls, rows = RowCalls(Guard()), []
    >>> calls.add(rows.append, [1, 2])
    >>> calls.call(), rows
    (None, [1, 2])
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._due: deque[_Call] = deque()
        self._caller = Caller(guard)

    def add(self, on_row: Callable[[Any], object], rows: Iterable[Any], query: str = "") -> None:
        """Let a function, which may be a coroutine function, be called with rows.

        The name of the query, if one is passed, is in a note of the function's errors.
        """
        if is_async(on_row):
            self._caller.due += ((on_row, row) for row in rows)
        else:
            self._due += (_Call(on_row, row, query) for row in rows)

    def call(self) -> None:
        """Call each function with its rows; once, whether or not it raises.

        A function that raises is not called again before its error has been raised, which is after
        those of other queries were called. Coroutine functions are awaited in a task.
        """
        if self._due:
            self._call()
        if self._caller.has_news:
            self._caller.start()

    @property
    def waiting(self) -> bool:
        """Whether functions are still to be called with rows."""
        return bool(self._due or self._caller.due)

    async def drain(self) -> None:
        """Wait until coroutine functions have handled all rows."""
        await self._caller.drain()

    def _call(self) -> None:
        errors: dict[str, Exception] = {}
        left: list[_Call] = []
        try:
            while self._due:
                on_row, _, query = self._due[0]
                if query in errors:
                    left.append(self._due.popleft())
                    continue
                try:
                    # In one line: between the two calls no exception could get lost with its row.
                    _reject_coroutine(on_row(self._next_row()))
                except Exception as error:
                    if query:
                        error.add_note(f"in on_row of the query {query!r}")
                    errors[query] = error
        finally:
            self._due.extendleft(reversed(left))
        if errors:
            first, *others = errors.values()
            for other in others:
                first.add_note(f"{type(other).__name__} {other}: {other.__notes__[-1]}")
            raise first

    def _next_row(self) -> Any:
        with self._guard:
            return self._due.popleft().row


def _reject_coroutine(result: object) -> None:
    """Raise an error if a plain function returned a coroutine, which nothing would await."""
    if isinstance(result, CoroutineType):
        result.close()
        raise EngineError("on_row returned a coroutine; pass the coroutine function itself")
