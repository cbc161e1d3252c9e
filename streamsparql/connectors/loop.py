"""The loop from live sources to an open query, or a session, without a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from streamsparql.connectors.interface import LiveSource
from streamsparql.physical.operator import INFINITY

PATIENCE = 0.2
"""The seconds that a round waits if nothing has arrived."""


class Pushed(Protocol):
    """What items are pushed to: an open query, or a session."""

    def push_many(self, stream: str, source: Any) -> None:
        """Push the items of a source."""

    def advance(self, t: Any, stream: str | None = None) -> None:
        """Promise that no item before `t` will be pushed."""


def pump(
    engine: Pushed,
    sources: Mapping[str, LiveSource],
    step: Callable[[], object] = lambda: None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Push what live sources deliver until all have ended; close them.

    All streams are polled in turn, so that one that is silent holds up no other (whether their
    items wait for it is up to `idle`). After each round that delivers items `step` is called, which
    handles the rows so far; then the items are committed.
    """
    reading = dict(sources)
    pause = PATIENCE
    try:
        while reading and not stopped():
            delivered = []
            for name, source in list(reading.items()):
                deliveries = source.poll(pause / len(reading))
                for _, items in deliveries:
                    engine.push_many(name, items)
                if deliveries:
                    delivered.append(source)
                if source.ended:
                    engine.advance(INFINITY, name)
                    del reading[name]
                    delivered.append(source)
            if delivered:
                step()
            for source in dict.fromkeys(delivered):
                source.commit(source.position())
            pause = 0 if delivered else PATIENCE
    finally:
        for source in sources.values():
            source.close()
