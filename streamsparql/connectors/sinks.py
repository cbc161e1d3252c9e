"""From a URL to a live sink of the rows of one query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from streamsparql.connectors.interface import Sink, is_transactional
from streamsparql.connectors.urls import connector, parse_url, scheme_of
from streamsparql.sinks.layout import Layout

SINKS = {
    "kafka": "kafka",
    "mqtt": "mqtt",
    "mqtts": "mqtt",
    "ws+listen": "websocket",
    "sse+listen": "sse",
    "http": "http",
    "https": "http",
}
"""The modules of sinks, by scheme; each has a function `sink`."""


def is_live_sink(target: Any) -> bool:
    """Return whether a target of rows is the URL of a live sink.

    >>> is_live_sink("kafka://broker/topic"), is_live_sink("rows.csv")
    (True, False)
    """
    return scheme_of(target) is not None


def open_live_sink(url: str, layout: Layout) -> Sink:
    """Open the live sink of a URL, for the rows of this layout."""
    parsed = parse_url(url)
    module = connector(parsed, SINKS, "sink")
    sink: Sink = module.sink(parsed, layout)
    try:
        parsed.check()
    except BaseException:
        sink.close()
        raise
    return sink


@contextmanager
def live_sink(url: str, layout: Layout) -> Iterator[Flushed]:
    """Open a live sink until the end of the `with`; commit what it has, each time it is flushed."""
    sink = Flushed(open_live_sink(url, layout))
    try:
        yield sink
    finally:
        sink.close()


class Flushed:
    """A sink without a checkpoint: rows become visible when it is flushed."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._transactional = is_transactional(sink)
        if self._transactional:
            sink.committed()
        self._written = False

    def write(self, rows: pa.Table) -> None:
        """Write rows."""
        self._sink.write(rows)
        self._written = True

    def flush(self) -> None:
        """Wait until the rows have arrived, and commit them."""
        self._sink.flush()
        if self._transactional and self._written:
            self._sink.commit("")
        self._written = False

    def close(self) -> None:
        """Write what is left."""
        self.flush()
        self._sink.close()
