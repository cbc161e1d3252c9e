"""A live source as the source of a stream: it is polled while a run reads its items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamsparql.connectors.sources import is_live, open_source
from streamsparql.sources import Mapped
from streamsparql.sources.chunk import Chunk
from streamsparql.sources.encoder import Encoder

PATIENCE = 0.2
"""The seconds that a poll waits; a run that is stopped ends after them."""


class LiveStream:
    """The URL of a live source, and the mapping of its records; it is opened when it is read.

    >>> LiveStream.of("wind.nq"), LiveStream.of("follow:wind.nq")
    ('wind.nq', LiveStream('follow:wind.nq'))
    """

    def __init__(self, url: str, mapping: str | None = None) -> None:
        self.url, self.mapping = url, mapping
        self._stopped: type[Exception] | None = None

    @classmethod
    def of(cls, source: Any) -> Any:
        """Return the live stream of a URL, or of a mapping over one; any other source as it is."""
        if isinstance(source, Mapped) and is_live(source.source):
            return cls(source.source, source.mapping or "auto")
        return cls(source) if is_live(source) else source

    def chunks(self, encoder: Encoder, size: int) -> Iterator[Chunk]:
        """Yield the items as they arrive, until the source ends.

        What was yielded is acknowledged when the next items are asked for: then it was processed.
        """
        stream = encoder.stream.removeprefix("<").removesuffix(">")
        source = open_source(self.url, stream, mapping=self.mapping, reading=encoder.reading)
        try:
            while not source.ended:
                if self._stopped is not None:
                    raise self._stopped
                deliveries = source.poll(PATIENCE)
                for _, items in deliveries:
                    yield from items.chunks(encoder, size)
                if deliveries:
                    source.commit(source.position())
        finally:
            source.close()

    def stop_by(self, exception: type[Exception]) -> None:
        """End a read that waits with an exception."""
        self._stopped = exception

    def __repr__(self) -> str:
        return f"LiveStream({self.url.partition('?')[0]!r})"
