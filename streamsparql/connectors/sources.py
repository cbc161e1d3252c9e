"""From a URL to a live source: its transport, the format of its messages, and their stamps."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from streamsparql.connectors.decoder import ARRIVAL, BROKER, GUESSED, Decoder
from streamsparql.connectors.message_source import IDLE, MessageSource
from streamsparql.connectors.urls import LIVE_SOURCES, ConnectorUrl, connector, parse_url, scheme_of
from streamsparql.errors import SourceError
from streamsparql.sources.local_times import zone_of
from streamsparql.sources.mapping import mapped
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import PER_SECOND, StampReader


def is_live_url(source: Any) -> bool:
    """Return whether a source of a stream is the URL of a live source.

    >>> is_live_url("kafka://broker/topic"), is_live_url("wind.nq"), is_live_url([])
    (True, False, False)
    """
    return scheme_of(source) is not None


def open_live_source(
    url: str, stream: str = "s", *, mapping: str | None = None, reading: Reading | None = None
) -> MessageSource:
    """Open the live source of a URL; `mapping` and `reading` hold unless the URL has others.

    >>> open_live_source("follow:wind.jsonl?untl=end")
    Traceback (most recent call last):
    streamsparql.errors.SourceError: follow:wind.jsonl: unknown option untl; did you mean until?...
    """
    parsed = parse_url(url)
    module = connector(parsed, LIVE_SOURCES, "source")
    decoder = _decoder(parsed, f"<{stream}>", mapping, reading or Reading(), module)
    idle = parsed.seconds("idle", IDLE)
    transport = module("transport")(parsed, decoder)
    try:
        parsed.check()
    except SourceError:
        transport.close()
        raise
    return MessageSource(transport, decoder, idle=idle)


def _decoder(
    url: ConnectorUrl,
    stream: str,
    mapping: str | None,
    reading: Reading,
    module: Callable[[str], Any],
) -> Decoder:
    """Return the decoder that a URL describes."""
    layout_of = module("layout")
    layout = {} if layout_of is None else layout_of(url)
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
    if name is None or name == GUESSED:
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
