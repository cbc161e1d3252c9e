"""From a URL to a live source: its transport, the format of its messages, and their stamps."""

from __future__ import annotations

import os
import re
from typing import Any

from streamsparql.connectors.decoder import ARRIVAL, AUTO, BROKER, Decoder
from streamsparql.connectors.message_source import IDLE, MessageSource
from streamsparql.connectors.urls import ConnectorUrl, connector, parse_url, scheme_of
from streamsparql.errors import SourceError
from streamsparql.sources.local_times import zone_of
from streamsparql.sources.mapping import mapped
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import PER_SECOND, StampReader

SOURCES = {
    "kafka": "kafka",
    "mqtt": "mqtt",
    "mqtts": "mqtt",
    "ws": "websocket",
    "wss": "websocket",
    "sse+http": "sse",
    "sse+https": "sse",
    "http+listen": "http",
    "follow": "follow",
}
"""The modules of sources, by scheme; each has a function `transport`."""


def is_live(source: Any) -> bool:
    """Return whether a source of a stream is the URL of a live source.

    >>> is_live("kafka://broker/topic"), is_live("wind.nq"), is_live([])
    (True, False, False)
    """
    return scheme_of(source) is not None


def open_source(
    url: str, stream: str = "s", *, mapping: str | None = None, reading: Reading | None = None
) -> MessageSource:
    """Open the live source of a URL; `mapping` and `reading` hold unless the URL has others.

    >>> open_source("mail://host/inbox")
    Traceback (most recent call last):
    streamsparql.errors.SourceError: mail://host/inbox: unknown source mail:; there are follow:
    """
    parsed = parse_url(url)
    module = connector(parsed, SOURCES, "source")
    decoder = _decoder(parsed, f"<{stream}>", mapping, reading or Reading(), module)
    idle = parsed.seconds("idle", IDLE)
    transport = module.transport(parsed, decoder)
    try:
        parsed.check()
    except SourceError:
        transport.close()
        raise
    return MessageSource(transport, decoder, idle=idle)


def _decoder(
    url: ConnectorUrl, stream: str, mapping: str | None, reading: Reading, module: Any
) -> Decoder:
    """Return the decoder that a URL describes."""
    layout = module.layout(url) if hasattr(module, "layout") else {}
    mapping = _mapping(url) or mapping
    kind = url.text("format") or layout.get("format") or ("json" if mapping else None)
    if kind is None:
        raise SourceError(f"{url.shown}: missing format of its messages: add ?format=json, nq, ..")
    stamp = url.text("stamp")
    outside = stamp if stamp in (BROKER, ARRIVAL) else None
    place = None if outside else stamp or reading.stamp_from
    if place is not None and re.match(r"[a-z]+://|urn:", place):
        place = f"<{place}>"
    unit = url.text("unit", among=tuple(PER_SECOND))
    zone = url.text("zone")
    stamps = reading.stamps
    if unit or zone:
        stamps = StampReader(unit or stamps.unit, zone_of(zone) if zone else stamps.zone)
    columns = [name for name in (url.text("columns") or "").split(",") if name]
    delimiter = {"tab": "\t"}.get(url.text("delimiter", ","), url.text("delimiter", ","))
    try:
        return Decoder(
            stream,
            kind,
            mapping,
            outside,
            columns or layout.get("columns", ()),
            layout.get("delimiter", delimiter),
            Reading(stamps, place, reading.cells),
        )
    except SourceError as error:
        raise SourceError(f"{url.shown}: {error}") from None


def _mapping(url: ConnectorUrl) -> str | None:
    """Return the text of the mapping that a URL names: a file, a CONSTRUCT, or `auto`."""
    name: str | None = url.text("map")
    if name is None or name == AUTO:
        return name
    if "{" not in name and not os.path.exists(name):
        raise SourceError(f"{url.shown}: map={name}: no such file")
    try:
        if "{" not in name:
            with open(name, encoding="utf-8") as file:
                name = file.read()
        return mapped([], name).mapping
    except (SourceError, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{url.shown}: map: {error}") from None
