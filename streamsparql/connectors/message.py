"""Messages, and the transports that receive them: what differs between brokers, sockets, files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from streamsparql.connectors.interface import Position


class Message(NamedTuple):
    """What a transport received: one item, or a small graph, to be decoded."""

    payload: bytes
    partition: str
    place: int
    """Its number in the partition, such as its offset; it grows."""
    after: Position
    """The position in the partition after it."""
    stamp: int | None = None
    """The time of the broker, in milliseconds; None without one."""
    topic: str = ""
    key: bytes | None = None


class Transport(Protocol):
    """A connection that receives messages. It connects again if it breaks."""

    unit: str
    """The unit of places in messages."""
    replayable: bool
    """Whether `seek` can return to any earlier position."""
    ended: bool
    """Whether there are no more messages."""

    def receive(self, timeout: float, paused: Collection[str]) -> list[Message]:
        """Return messages of partitions that are not paused, after at most `timeout` seconds."""

    def positions(self) -> Mapping[str, Position]:
        """Return the partitions, each with the position at which it starts."""

    def at_end(self, partition: str) -> bool:
        """Return whether all messages of a partition that exist were received."""

    def seek(self, positions: Mapping[str, Position]) -> None:
        """Start at these positions; new partitions start at their beginning."""

    def commit(self, positions: Mapping[str, Position]) -> None:
        """Acknowledge the messages before these positions."""

    def close(self) -> None:
        """Release the connection."""
