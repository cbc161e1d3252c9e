"""What a live source and a live sink do: the interface between connectors and the loops over them.

A loop polls its sources, pushes what they deliver into an open query or a session, and writes the
rows that are emitted. With a checkpoint it does, between two steps:

1. `sink.flush()`: the rows of all items that were pushed have arrived, or are in the transaction;
2. `state = save()`, `positions = source.position()` for each source, `sink.position()`: one unit;
3. `sink.prepare(name)` if the sink is transactional; the unit is made durable under that name;
4. `sink.commit(name)`, then `source.commit(position)`.

After a restart it reads the last durable unit: if `sink.committed()` names another one, that one.
Then `source.seek(position)` for each source, `sink.truncate(position)` for sinks with a position,
both before the first poll and the first write. What a source delivered after its position, it
delivers again, with the same items in the same order per partition, if it is `replayable`.

Without a checkpoint a loop calls `sink.flush()` and `source.commit(source.position())` after each
step: each item is processed at least once.

All methods are called from one thread. They raise `SourceError` or `EngineError`; failures of a
connection are not raised: a connector connects again, with pauses.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

Position: TypeAlias = Any
"""A value of JSON: where a source, or a sink, was. It means something only to the connector that
returned it, and to later versions of that; `None` is the place at which a new connector starts."""


class Delivery(NamedTuple):
    """Items of one partition of a source, in its order, or of several (`*`), merged by time.

    `items` is what `push_many` of an open query, or of a session, accepts. Messages that could not
    be decoded are among them, as rejects, so that the accounting of the stream counts them.
    """

    partition: str
    items: Any


class Source(Protocol):
    """A live source of the items of one stream."""

    replayable: bool
    """Whether `seek` can return to any earlier position. MQTT and WebSocket cannot: a broker
    delivers again what was not committed, at best."""

    def poll(self, timeout: float) -> list[Delivery]:
        """Return what has arrived, after at most `timeout` seconds; nothing if nothing has.

        Items are aligned: no partition runs ahead of the others by more than their disorder, so
        that one watermark serves all (partitions that are idle do not count). What is held back for
        that is not delivered, and not part of the position.
        """

    @property
    def ended(self) -> bool:
        """Whether the source has delivered its last item; most never end."""

    def position(self) -> Position:
        """Return the place after the items that were delivered so far."""

    def seek(self, position: Position) -> None:
        """Deliver from a position on; called at most once, before the first poll."""

    def commit(self, position: Position) -> None:
        """Note that what was delivered before this position is processed and durable.

        A broker may forget it: MQTT acknowledges, Kafka shows it as the lag of the group.
        """

    def close(self) -> None:
        """Release the connection. What was delivered and not committed stays uncommitted."""


class Sink(Protocol):
    """A live sink of the rows of one query, whose `Layout` it was opened with."""

    def write(self, rows: pa.Table) -> None:
        """Write rows, as `to_arrow()` returns them; possibly with a delay, in their order.

        It waits, instead of dropping rows or retaining them without bound.
        """

    def flush(self) -> None:
        """Wait until all rows have arrived, or are part of the transaction."""

    def position(self) -> Position:
        """Return the place after the rows so far, called after `flush`; None without places."""

    def truncate(self, position: Position) -> None:
        """Remove what was written after a position; called before the first write.

        A sink without positions ignores it: its rows have stable keys, so that a row that is
        written again differs from a new one.
        """

    def close(self) -> None:
        """Write what is left, and release the connection; a transaction is left uncommitted."""


class TransactionalSink(Sink, Protocol):
    """A sink whose rows become visible together, when they are committed."""

    def prepare(self, checkpoint: str) -> None:
        """Finish the transaction of the rows so far, so that only `commit` is left to do."""

    def commit(self, checkpoint: str) -> None:
        """Make the rows since the last commit visible, atomically with the checkpoint's name."""

    def committed(self) -> str | None:
        """Return the name of the last checkpoint that was committed, by any process; end any
        transaction that an earlier process left open. None if there is none."""


def is_transactional(sink: Sink) -> bool:
    """Return whether a sink is a `TransactionalSink`.

    >>> class Plain:
    ...     def write(self, rows): ...
    >>> is_transactional(Plain())
    False
    """
    return hasattr(sink, "prepare") and hasattr(sink, "committed")
