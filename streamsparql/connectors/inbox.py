"""An inbox: messages that a thread receives, until they are polled. It is bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from threading import Condition
from time import monotonic

from streamsparql.connectors.interface import Position
from streamsparql.connectors.message import Message
from streamsparql.errors import SourceError

MOST_WAITING = 20_000
"""The number of messages that wait; a thread that receives more waits itself."""


class Inbox:
    """The messages of one partition, which is all of a connection, numbered as they arrive."""

    def __init__(self, partition: str, most: int = MOST_WAITING) -> None:
        self.partition = partition
        self._most = most
        self._messages: deque[Message] = deque()
        self._changed = Condition()
        self._number = 0
        self._closed = self.ended = False
        self._failure: str | None = None

    def put(
        self,
        payload: bytes,
        *,
        after: Position = None,
        stamp: int | None = None,
        topic: str = "",
        key: bytes | None = None,
    ) -> int:
        """Add a message, once there is room; return its number. Its position is that, or `after`.

        A message for a closed inbox is dropped: it was not acknowledged.
        """
        with self._changed:
            while len(self._messages) >= self._most and not self._closed:
                self._changed.wait()
            self._number += 1
            place = self._number if after is None else after
            message = Message(payload, self.partition, self._number, place, stamp, topic, key)
            if not self._closed:
                self._messages.append(message)
            self._changed.notify_all()
            return self._number

    def put_all(self, payloads: Sequence[bytes], patience: float) -> bool:
        """Add messages together; return False if there was no room in time, or none any more."""
        with self._changed:
            fits = lambda: self._closed or len(self._messages) < self._most  # noqa: E731
            if not self._changed.wait_for(fits, patience) or self._closed:
                return False
            for payload in payloads:
                self._number += 1
                message = Message(payload, self.partition, self._number, self._number)
                self._messages.append(message)
            self._changed.notify_all()
            return True

    def receive(self, timeout: float, paused: Collection[str], most: int = 5_000) -> list[Message]:
        """Return the messages that wait, at least one within `timeout` seconds if there is any."""
        until = monotonic() + timeout
        with self._changed:
            while not self._messages and not self.ended and self._failure is None:
                left = until - monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            if self._failure is not None and not self._messages:
                raise SourceError(self._failure)
            count = min(len(self._messages), most)
            taken = [self._messages.popleft() for _ in range(count)]
            self._changed.notify_all()
            return taken

    def start_at(self, number: int) -> None:
        """Go on after the message of this number."""
        self._number = number

    def end(self) -> None:
        """Note that there are no more messages."""
        with self._changed:
            self._closed = self.ended = True
            self._changed.notify_all()

    def fail(self, reason: str) -> None:
        """Raise an error once the messages before were received."""
        with self._changed:
            self._failure = reason
            self._changed.notify_all()

    def close(self) -> None:
        """Let threads that wait for room go on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def empty(self) -> bool:
        """Whether no message waits."""
        return not self._messages


class InboxTransport:
    """The base of transports of one partition whose messages a thread puts into an inbox."""

    unit = "message"
    replayable = False

    def __init__(self, partition: str) -> None:
        self.inbox = Inbox(partition)
        self._start: Position = 0

    @property
    def ended(self) -> bool:
        """Whether there are no more messages."""
        return self.inbox.ended and self.inbox.empty

    def receive(self, timeout: float, paused: Collection[str]) -> list[Message]:
        """Return the messages that wait."""
        return self.inbox.receive(timeout, paused)

    def positions(self) -> Mapping[str, Position]:
        """Return the number of messages before the first."""
        return {self.inbox.partition: self._start}

    def at_end(self, partition: str) -> bool:
        """Return whether no message waits."""
        return self.inbox.empty

    def seek(self, positions: Mapping[str, Position]) -> None:
        """Go on with the number of a position: what was acknowledged is not received again."""
        self._start = positions.get(self.inbox.partition, 0)
        self.inbox.start_at(self._start)

    def commit(self, positions: Mapping[str, Position]) -> None:
        """Acknowledge nothing."""

    def close(self) -> None:
        """Let the thread end."""
        self.inbox.close()
