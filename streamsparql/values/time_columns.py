"""Columns of dates, times, durations and booleans."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.terms import XSD
from streamsparql.algebra.xsd.durations import XsdDuration
from streamsparql.algebra.xsd.moments import Date, DateTime, Time, XsdMoment
from streamsparql.algebra.xsd.numeric import EXACT
from streamsparql.algebra.xsd.values import XsdValue
from streamsparql.physical.batch import IntArray
from streamsparql.physical.operator import INFINITY
from streamsparql.values.native_column import ZONE_KEY, NativeColumn

INSTANT = pa.timestamp("ms", "UTC")
"""The type of the validity of rows, and of the instants of reports."""


def instant_column(stamps: IntArray) -> pa.Array:
    """Return instants as timestamps in UTC; null for INFINITY.

    >>> import numpy as np
    >>> instant_column(np.array([1500, INFINITY])).cast(pa.string()).to_pylist()
    ['1970-01-01 00:00:01.500Z', None]
    """
    never = stamps >= INFINITY
    return pa.array(stamps, mask=never if never.any() else None).cast(INSTANT)


class Family(NamedTuple):
    """Values that share an Arrow type, which may have a coarse and a fine unit."""

    name: str
    types: tuple[pa.DataType, ...]
    seconds: Callable[[Any], Decimal]


def _instant(value: XsdMoment) -> Decimal:
    return value.instant


def _local(value: XsdMoment) -> Decimal:
    return value.local


def _length(value: XsdDuration) -> Decimal:
    return value.seconds


_ZONED = Family("dateTime", (pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")), _instant)
_UNZONED = Family("dateTime without time zone", (pa.timestamp("us"), pa.timestamp("ns")), _local)
_DATE = Family("date", (pa.date32(),), _local)
_DATED = (_ZONED, _UNZONED, _DATE)
_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800
_CLOCK = Family("time", (pa.time64("us"), pa.time64("ns")), _local)
_DURATION = Family("duration", (pa.duration("us"), pa.duration("ns")), _length)
_BOOLEAN = Family("boolean", (pa.bool_(),), Decimal)


def family_of(value: XsdValue | None) -> Family | None:
    """Return the family of a value that is not a number; None if Arrow has no type for it.

    >>> family_of(True).name, family_of("text")
    ('boolean', None)
    """
    if type(value) is bool:
        return _BOOLEAN
    if isinstance(value, XsdDuration):
        return None if value.months else _DURATION
    if type(value) is DateTime:
        return _UNZONED if value.offset is None else _ZONED
    return {Date: _DATE, Time: _CLOCK}.get(type(value))  # type: ignore[arg-type]


def value_column(values: Sequence[XsdValue | None]) -> NativeColumn | None:
    """Return values as a column; None if they are not of one family, or do not fit exactly."""
    family = family_of(values[0])
    if family is None or any(family_of(value) is not family for value in values):
        return None
    if family is _BOOLEAN:
        return NativeColumn.of(pa.array(values, pa.bool_()), [family.name])
    zone = ""
    if family in (_DATE, _CLOCK):
        zones = {value.zone for value in values if isinstance(value, XsdMoment)}
        if len(zones) > 1:
            return None
        (zone,) = zones
    seconds = [family.seconds(value) for value in values]
    if family in _DATED and not all(_YEAR_1 <= x < _YEAR_10000 for x in seconds):
        return None  # Arrow counts further, but most libraries fail on such a date
    for kind in family.types:
        counted = _counted(seconds, kind)
        if counted is not None:
            column = NativeColumn.of(counted, [family.name])
            return column._replace(metadata=column.metadata | ({ZONE_KEY: zone} if zone else {}))
    return None


def _counted(seconds: Sequence[Decimal], kind: pa.DataType) -> pa.Array | None:
    """Return seconds in the unit of a type; None if one of them is not a whole number of units."""
    if kind == pa.date32():
        integers, bits = pa.int32(), 31
        counts = [x / 86_400 for x in seconds]
    else:
        integers, bits = pa.int64(), 63
        counts = [EXACT.scaleb(x, {"us": 6, "ns": 9}[kind.unit]) for x in seconds]
    if any(x != x.to_integral_value() or abs(x) >= 1 << bits for x in counts):
        return None
    return pa.array([int(x) for x in counts], integers).view(kind)


# -- dateTimes in the usual form -------------------------------------------------------------------

_END = f'"^^<{XSD}dateTime>'
_USUAL = r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_OFFSET = r"(?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])"


def usual_time_column(texts: pa.Array) -> NativeColumn | None:
    """Return the texts of dateTimes in the usual form as a column; None if there are others.

    >>> column = usual_time_column(pa.array([f'"2026-03-01T08:00:00Z{_END}']))
    >>> str(column.values.type)
    'timestamp[us, tz=UTC]'
    """
    if not pc.all(pc.ends_with(texts, _END)).as_py():
        return None
    lexical = pc.binary_slice(texts.view(pa.binary()), 1, -len(_END)).view(pa.string())
    zoned = re.search(f"{_OFFSET}$", lexical[0].as_py()) is not None
    pattern = f"^{_USUAL}{_OFFSET if zoned else ''}$"
    if not pc.all(pc.match_substring_regex(lexical, pattern)).as_py():
        return None
    family = _ZONED if zoned else _UNZONED
    try:
        return NativeColumn.of(lexical.cast(family.types[0]), [family.name])
    except pa.ArrowInvalid:  # such as 30 February, or 24:00:00
        return None
