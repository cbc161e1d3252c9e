"""Connections that break: a warning once for each outage, and pauses that grow between attempts."""

from __future__ import annotations

import random

from streamsparql.errors import warn

_FIRST, _LONGEST = 0.2, 30.0


class Outage:
    """The state of a connection: whether it is broken, and how long to wait before an attempt.

    >>> import warnings
    >>> outage = Outage("mqtt://broker/t")
    >>> with warnings.catch_warnings(record=True) as said:
    ...     pauses = [outage.pause("connection refused") for _ in range(9)]
    >>> len(said), pauses[0] < pauses[5], max(pauses) <= 30
    (1, True, True)
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._attempts = 0

    def report(self, reason: object) -> None:
        """Warn that the connection broke; once, until it is repaired."""
        if not self._attempts:
            warn(f"{self._name}: {reason}; connecting again until it succeeds")
        self._attempts += 1

    def pause(self, reason: object) -> float:
        """Report a failed attempt; return the seconds to wait before the next one."""
        self.report(reason)
        self._attempts -= 1
        return self.silent_pause()

    def silent_pause(self) -> float:
        """Note a failed attempt, which is reported elsewhere; return the seconds to wait."""
        self._attempts += 1
        longest: float = min(_LONGEST, _FIRST * 2.0 ** min(self._attempts - 1, 10))
        return longest * random.uniform(0.5, 1.0)

    def repaired(self) -> None:
        """Note that the connection works."""
        self._attempts = 0
