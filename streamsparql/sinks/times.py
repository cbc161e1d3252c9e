"""Instants as texts: milliseconds, UTC, or the time of this machine."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa

from streamsparql.errors import EngineError
from streamsparql.physical.batch import IntArray
from streamsparql.physical.operator import INFINITY

STYLES = ("ms", "iso", "local")


def checked(style: str | None, default: str) -> str:
    """The style, where it is one that there is."""
    if style is not None and style not in STYLES:
        raise EngineError(f"timestamps are written {', '.join(STYLES)}, not {style!r}")
    return style or default


def texts_of(stamps: IntArray, style: str, blank: bool = False) -> pa.Array:
    """Instants in a style; null for an end that never comes.

    With `blank`, dates and times are apart and have no zone, as tables for readers have them.

    >>> texts_of(np.array([1_500, 60_000]), "iso").to_pylist()
    ['1970-01-01T00:00:01.500Z', '1970-01-01T00:01:00Z']
    >>> texts_of(np.array([1_500, INFINITY]), "ms").to_pylist()
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
    """As in 2026-01-31T12:00:00Z; with thousandths where there are some."""
    zone = "" if blank else "Z"
    instants = stamps.astype("datetime64[ms]")
    seconds = np.datetime_as_string(instants, unit="s").tolist()
    thousandths = (stamps % 1000).tolist()
    made = [
        f"{text}.{part:03}{zone}" if part else f"{text}{zone}"
        for text, part in zip(seconds, thousandths, strict=True)
    ]
    return [text.replace("T", " ") for text in made] if blank else made


def _local(stamps: IntArray, blank: bool) -> list[str]:
    """The same by the clock on this machine's wall, with its distance from UTC."""
    quarters, places = np.unique(stamps // _QUARTER, return_inverse=True)
    found = [_offset(quarter * _QUARTER // 1000) for quarter in quarters.tolist()]
    shifts = np.array([shift for shift, _ in found], np.int64)
    texts = _utc(stamps + shifts[places] * 1000, blank=True)
    if blank:
        return texts
    zones = [found[place][1] for place in places.tolist()]
    return [text.replace(" ", "T") + zone for text, zone in zip(texts, zones, strict=True)]


_QUARTER = 900_000
"""Clocks are set at quarters of an hour, and no sooner."""


def _offset(second: int) -> tuple[int, str]:
    """How far the clock here is ahead of UTC then, in seconds, and as it is written."""
    try:
        time = datetime.fromtimestamp(second).astimezone()
    except (OverflowError, ValueError, OSError):  # beyond what this machine's clock can show
        return 0, "Z"
    ahead = time.utcoffset()
    return 0 if ahead is None else int(ahead.total_seconds()), time.isoformat()[19:]
