"""Broadcasts: rows that are sent to all who listen, each at its own speed."""

from __future__ import annotations

from collections import deque
from itertools import islice
from threading import Condition, Thread
from typing import Any

import pyarrow as pa

from streamsparql.connectors.interface import Position
from streamsparql.connectors.row_messages import RowMessage, RowMessages

MOST_RETAINED = 10_000
"""The number of messages that are retained for slow listeners, and for those who come back."""
_MOST_TAKEN = 1_000


class Broadcast:
    """The last messages, numbered from 1.

    >>> broadcast = Broadcast(2)
    >>> broadcast.publish([RowMessage(k, b"") for k in "abc"])
    >>> [number for number, _ in broadcast.after(1, 0)], broadcast.after(0, 0)
    ([2, 3], None)
    """

    def __init__(self, most: int = MOST_RETAINED) -> None:
        self._retained: deque[tuple[int, RowMessage]] = deque(maxlen=most)
        self._changed = Condition()
        self.number = 0
        """The number of the last message."""
        self.closed = False

    def publish(self, messages: list[RowMessage]) -> None:
        """Send messages to all who listen."""
        with self._changed:
            for message in messages:
                self.number += 1
                self._retained.append((self.number, message))
            self._changed.notify_all()

    def after(self, number: int, timeout: float) -> list[tuple[int, RowMessage]] | None:
        """Return messages after one; none if there are none in time.

        None if they are not retained any more, or if there will be none.
        """
        with self._changed:
            if self.number <= number and not self.closed:
                self._changed.wait(timeout)
            if self.closed and self.number <= number:
                return None
            missing = self._retained and self._retained[0][0] > number + 1
            if missing or number > self.number:
                return None
            first = max(0, len(self._retained) - (self.number - number))
            return list(islice(self._retained, first, first + _MOST_TAKEN))

    def number_of(self, key: str) -> int | None:
        """Return the number of the message with a key; None if it is not retained."""
        with self._changed:
            return next((n for n, message in reversed(self._retained) if message.key == key), None)

    def close(self) -> None:
        """End the listening."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()


class BroadcastSink:
    """A sink that serves a broadcast. Who is not connected, or too slow, misses rows."""

    def __init__(self, messages: RowMessages, broadcast: Broadcast, server: Any) -> None:
        self._messages, self._broadcast, self.server = messages, broadcast, server
        self._thread = Thread(target=server.serve_forever, daemon=True)
        self._thread.start()

    def write(self, rows: pa.Table) -> None:
        """Send rows."""
        self._broadcast.publish(self._messages.of(rows))

    def flush(self) -> None:
        """Do nothing: rows are sent as they are written."""

    def position(self) -> Position:
        """Return None: rows that were sent cannot be removed."""
        return None

    def truncate(self, position: Position) -> None:
        """Remove nothing."""

    def close(self) -> None:
        """Let those who listen receive what is left, and end the server."""
        self._broadcast.close()
        self.server.shutdown()
        self._thread.join(5)
        close = getattr(self.server, "server_close", None)
        if close is not None:
            close()
