"""The results of a query: the last ones, numbered, and the tasks that wait for the next."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice

RETAINED = 10_000
"""The number of rows that are retained for those who come back, and for slow readers."""


class Results:
    """The last rows of a query as texts of JSON, numbered from 1.

    >>> results = Results(2)
    >>> results.add([b"a", b"b", b"c"])
    >>> results.after(1), results.first
    ([(2, b'b'), (3, b'c')], 2)
    """

    def __init__(self, most: int = RETAINED) -> None:
        self._rows: deque[bytes] = deque(maxlen=most)
        self._waiting: set[asyncio.Future[None]] = set()
        self.count = 0
        """The number of rows so far."""
        self.ended = False
        """Whether there will be no more."""

    def restore(self, count: int, rows: list[bytes]) -> None:
        """Continue after a number of rows, of which these are the last."""
        self._rows.extend(rows)
        self.count = count

    @property
    def retained(self) -> list[bytes]:
        """The rows that are retained."""
        return [*self._rows]

    @property
    def first(self) -> int:
        """The number of the first row that is retained."""
        return self.count - len(self._rows) + 1

    def add(self, rows: list[bytes]) -> None:
        """Add rows; wake those who wait."""
        self._rows.extend(rows)
        self.count += len(rows)
        self._wake()

    def end(self) -> None:
        """Note that there will be no more rows."""
        self.ended = True
        self._wake()

    def after(self, number: int, most: int = 1_000) -> list[tuple[int, bytes]]:
        """Return at most `most` of the rows that are retained after a number."""
        start = max(number + 1, self.first)
        rows = islice(self._rows, start - self.first, start - self.first + most)
        return [(start + k, row) for k, row in enumerate(rows)]

    async def wait(self, number: int, seconds: float | None = None) -> None:
        """Wait until there are rows after a number, or no more will come, or time is over."""
        if self.count > number or self.ended:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await asyncio.wait([future], timeout=seconds)
        finally:
            self._waiting.discard(future)

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()
