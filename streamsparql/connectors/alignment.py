"""The clock of a partition, by which its messages wait for those of the other partitions.

The clock is the greatest stamp so far. One bogus stamp in the future must not advance it, or the
messages behind it would wait for ever: a stamp that jumps ahead by more than a day counts once the
next message is near it, too. Else it keeps its place in the partition, and the sorter of the stream
judges it there (sources/disorder.py).
"""

from __future__ import annotations

import numpy as np

from streamsparql.algebra.inputs import MAX_JUMP
from streamsparql.physical.batch import IntArray


class PartitionClock:
    """The clock of one partition.

    >>> clock = PartitionClock()
    >>> clock.waits(np.array([5, 3, 10**12, 7])).tolist(), clock.time
    ([5, 5, 5, 7], 7)
    """

    def __init__(self) -> None:
        self.time = -1
        """The greatest stamp so far; -1 before the first."""
        self._jump = -1
        """The stamp of the last message, if it jumped ahead and no other one has decided on it."""
        self._undecided: IntArray = np.empty(0, np.int64)
        """The wait of that message, and of those after it without a stamp."""

    def waits(self, stamps: IntArray) -> IntArray:
        """Return for each message the time that the other partitions must have reached before it.

        The last of them may be changed by the next call.
        """
        waits = np.maximum.accumulate(np.maximum(stamps, self.time))
        steps = np.diff(waits, prepend=self.time)
        if self._jump < 0 and (steps <= MAX_JUMP).all() and self.time >= 0:
            self.time = int(waits[-1])
            return waits
        stamped = np.flatnonzero(stamps >= 0)
        first = 0
        for k, stamp in zip(stamped.tolist(), stamps[stamped].tolist(), strict=True):
            self._decide(stamp)
            waits[first:k] = self.time
            first = k
            if stamp > self.time + MAX_JUMP:
                self._jump, self._undecided = stamp, waits[k:]
                self._undecided[:] = stamp
            else:
                self.time = max(self.time, stamp)
                waits[k:] = self.time
        return waits

    def _decide(self, stamp: int) -> None:
        """Decide on the message that jumped ahead by the stamp of the next one."""
        if self._jump < 0:
            return
        if stamp >= self._jump - MAX_JUMP:
            self.time = self._jump
        else:
            self._undecided[:] = np.minimum(self._undecided, max(self.time, stamp))
        self._jump = -1
