"""A source of messages: it decodes what a transport receives, and aligns its partitions.

Each partition has a clock, the greatest stamp that was received from it. A message is delivered
once the least of these clocks has reached it: so partitions that are read at different speeds make
no item late, and an item is as late as it is in its own partition. A partition whose messages were
all received holds the others back only until it is `idle`.

Messages that are held back are not part of the position: they are received again after a restart.
A partition that is far ahead is paused, so that their number is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from time import monotonic
from typing import Any

import numpy as np

from streamsparql.connectors.alignment import PartitionClock
from streamsparql.connectors.decoder import Block, Decoder
from streamsparql.connectors.interface import Delivery, Position
from streamsparql.connectors.message import Message, Transport
from streamsparql.errors import SourceError
from streamsparql.physical.batch import IntArray
from streamsparql.sources.decoded import Decoded

ALL = "*"
"""The partition of deliveries in which several are merged."""
MOST_HELD = 50_000
"""The number of messages of a partition that are held back; more pause it."""
IDLE = 1.0
"""The seconds after which a partition without messages holds the others back no longer."""


class _Partition:
    """The messages of a partition that are held back, and its clock."""

    def __init__(self, now: float) -> None:
        self.blocks: deque[tuple[Block, IntArray]] = deque()
        """What is held back, and the time that each message waits for."""
        self.clock = PartitionClock()
        self.held = 0
        self.heard = now
        """When it had messages last."""


class MessageSource:
    """A `Source` over a transport and a decoder."""

    def __init__(
        self,
        transport: Transport,
        decoder: Decoder,
        *,
        idle: float = IDLE,
        most_held: int = MOST_HELD,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._transport, self._decoder = transport, decoder
        self._idle, self._most_held, self._now = idle, most_held, clock
        self._partitions: dict[str, _Partition] = {}
        self._after: dict[str, Position] = {}
        """The position of each partition after the messages that were delivered."""

    @property
    def replayable(self) -> bool:
        """Whether `seek` can return to any earlier position."""
        return self._transport.replayable

    @property
    def ended(self) -> bool:
        """Whether the last message was delivered."""
        return self._transport.ended and not any(p.held for p in self._partitions.values())

    def poll(self, timeout: float) -> list[Delivery]:
        """Return what has arrived and is not held back."""
        full = [name for name, each in self._partitions.items() if each.held >= self._most_held]
        if len(full) < len(self._partitions) or not full:
            self._receive(self._transport.receive(timeout, full))
        bound = self._bound()
        parts: list[Decoded] = []
        times: list[IntArray] = []
        for name, partition in self._partitions.items():
            for block, waits in self._release(partition, bound):
                self._after[name] = block.messages[-1].after
                parts.append(block.decoded)
                times.append(block.item_times(waits))
        if len({part.names for part in parts}) < 2:
            return [Delivery(part.names[0], part) for part in parts]
        return [Delivery(ALL, whole) for whole in _merged(parts, times)]

    def position(self) -> Position:
        """Return the position of each partition."""
        return {"partitions": {**self._transport.positions(), **self._after}}

    def seek(self, position: Position) -> None:
        """Start at the positions of partitions."""
        if position is None:
            return
        try:
            self._after = dict(position["partitions"])
        except (TypeError, KeyError, ValueError):
            raise SourceError(f"not a position of a live source: {position!r:.80}") from None
        self._transport.seek(self._after)

    def commit(self, position: Position) -> None:
        """Acknowledge messages."""
        self._transport.commit(position["partitions"])

    def close(self) -> None:
        """Close the transport."""
        self._transport.close()

    # -- inside

    def _receive(self, messages: list[Message]) -> None:
        now = self._now()
        for name in self._transport.positions():
            if name not in self._partitions:
                self._partitions[name] = _Partition(now)
        messages.sort(key=_PARTITION)
        for name, run in groupby(messages, _PARTITION):
            partition = self._partitions.setdefault(name, _Partition(now))
            block = self._decoder.decode(list(run), self._transport.unit)
            partition.blocks.append((block, partition.clock.waits(block.stamps)))
            partition.held += len(block)
            partition.heard = now

    def _bound(self) -> int:
        """Return the stamp up to which messages are delivered."""
        if self._transport.ended or len(self._partitions) < 2:
            return _END
        silent = self._now() - self._idle
        return min(
            (
                partition.clock.time
                for name, partition in self._partitions.items()
                if partition.heard > silent or not self._transport.at_end(name)
            ),
            default=_END,
        )

    def _release(self, partition: _Partition, bound: int) -> list[tuple[Block, IntArray]]:
        """Return the messages of a partition that the bound has reached, and their times."""
        released: list[tuple[Block, IntArray]] = []
        while partition.blocks:
            block, waits = partition.blocks[0]
            count = int(np.searchsorted(waits, bound, "right"))
            if not count:
                break
            if count < len(block):
                block, others = block.split(count)
                partition.blocks[0] = others, waits[count:]
            else:
                partition.blocks.popleft()
            partition.held -= len(block)
            released.append((block, waits[:count]))
        return released


def _merged(parts: list[Decoded], times: list[IntArray]) -> Iterator[Decoded]:
    """Yield the items of partitions in the order of time; events apart from other items."""
    for kinds in {part.items.num_columns for part in parts}:
        same = [k for k, part in enumerate(parts) if part.items.num_columns == kinds]
        yield Decoded.merged([parts[k] for k in same], [times[k] for k in same])


_PARTITION: Callable[[Message], Any] = attrgetter("partition")
_END = (1 << 63) - 1
