"""Instants as text: in milliseconds, in UTC, or in the local time of this machine."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa

from streamsparql.errors import EngineError
from streamsparql.physical.batch import IntArray
from streamsparql.physical.operator import INFINITY

_STYLES = ("ms", "iso", "local")


def check_style(style: str | None, default: str) -> str:
    """Return the style, or the default; raise EngineError for an unknown style."""
    if style is not None and style not in _STYLES:
        raise EngineError(f"timestamps must be {', '.join(_STYLES)}, not {style!r}")
    return style or default


def instant_texts(stamps: IntArray, style: str, blank: bool = False) -> pa.Array:
    """Return instants in a style; null for INFINITY.

    With `blank`, dates and times are separated by a blank and have no zone, as in tables for
    readers.

    >>> instant_texts(np.array([1_500, 60_000]), "iso").to_pylist()
    ['1970-01-01T00:00:01.500Z', '1970-01-01T00:01:00Z']
    >>> instant_texts(np.array([1_500, INFINITY]), "ms").to_pylist()
    ['1500', None]
    """
    never = stamps >= INFINITY
    if style == "ms":
        written = pa.array(stamps, mask=never).cast(pa.string())
    else:
        distinct, places = np.unique(np.where(never, 0, stamps), return_inverse=True)
        write = _utc if style == "iso" else _local
        texts = write(distinct, blank)
        written = pa.array(texts, pa.string()).take(pa.array(places, mask=never))
    return written


def _utc(stamps: IntArray, blank: bool) -> list[str]:
    """Return instants as in 2026-01-31T12:00:00Z, with milliseconds only if they are not zero."""
    zone = "" if blank else "Z"
    instants = stamps.astype("datetime64[ms]")
    seconds = np.datetime_as_string(instants, unit="s").tolist()
    thousandths = (stamps % 1000).tolist()
    texts = [
        f"{text}.{part:03}{zone}" if part else f"{text}{zone}"
        for text, part in zip(seconds, thousandths, strict=True)
    ]
    return [text.replace("T", " ") for text in texts] if blank else texts


def _local(stamps: IntArray, blank: bool) -> list[str]:
    """Return instants in the local time of this machine, with its offset from UTC."""
    quarters, places = np.unique(stamps // _QUARTER, return_inverse=True)
    offsets = [_offset(quarter * _QUARTER // 1000) for quarter in quarters.tolist()]
    shifts = np.array([shift for shift, _ in offsets], np.int64)
    texts = _utc(stamps + shifts[places] * 1000, blank=True)
    if blank:
        return texts
    zones = [offsets[place][1] for place in places.tolist()]
    return [text.replace(" ", "T") + zone for text, zone in zip(texts, zones, strict=True)]


_QUARTER = 900_000
"""The offset from UTC changes only at quarters of an hour."""


def _offset(second: int) -> tuple[int, str]:
    """Return the local offset from UTC at an instant, in seconds, and as text."""
    try:
        time = datetime.fromtimestamp(second).astimezone()
    except (OverflowError, ValueError, OSError):  # beyond the range of this machine's calendar
        return 0, "Z"
    ahead = time.utcoffset()
    return 0 if ahead is None else int(ahead.total_seconds()), time.isoformat()[19:]
