"""Local times: times without an offset, in a time zone with summer time.

A local time that occurs twice, when clocks are set back, is the first of the two instants. One that
is skipped, when clocks are set forward, is read with the offset before the change: 02:30 is half an
hour after the change. These are the rules of iCalendar (RFC 5545) and of JavaScript's Temporal.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from streamsparql.errors import EngineError
from streamsparql.physical.batch import IntArray

_DAY = 86_400_000
_EPOCH = datetime(1970, 1, 1)
_MILLISECOND = timedelta(milliseconds=1)


def zone_of(name: str | tzinfo | None) -> tzinfo | None:
    """Return the time zone of a name, such as `Europe/Copenhagen`; None for UTC.

    >>> zone_of("UTC"), zone_of("Mars/Olympus")
    Traceback (most recent call last):
    streamsparql.errors.EngineError: unknown time zone 'Mars/Olympus'; write UTC or a name such as \
Europe/Copenhagen
    """
    if name is None or name == "UTC" or name is UTC:
        return None
    if isinstance(name, tzinfo):
        return name
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        raise EngineError(
            f"unknown time zone {name!r}; write UTC or a name such as Europe/Copenhagen"
        ) from None


def instant_of(local: datetime, zone: tzinfo | None) -> datetime:
    """Return the instant of a date and time without an offset; its `fold` is respected.

    >>> print(instant_of(datetime(2014, 3, 30, 2, 30), zone_of("Europe/Copenhagen")))
    2014-03-30 01:30:00+00:00
    """
    moment = local.replace(tzinfo=zone or UTC)
    offset = moment.utcoffset()
    assert offset is not None
    return (local - offset).replace(tzinfo=UTC, fold=0)


def in_utc(local: int, zone: tzinfo | None) -> int:
    """Return the milliseconds since 1970 of a local time, itself in milliseconds.

    >>> in_utc(7_200_000, zone_of("Europe/Copenhagen"))
    3600000
    """
    if zone is None:
        return local
    try:
        return local - _offset(local, zone)
    except OverflowError:  # beyond the calendar of Python, no time zone is known
        return local


def _offset(local: int, zone: tzinfo) -> int:
    """Return the milliseconds by which a local time is ahead of UTC."""
    offset = (_EPOCH + timedelta(milliseconds=local)).replace(tzinfo=zone).utcoffset()
    return 0 if offset is None else offset // _MILLISECOND


def column_in_utc(local: IntArray, zone: tzinfo | None) -> IntArray:
    """Return `in_utc` of many local times; the offset of most days is computed once.

    >>> column_in_utc(np.array([0, 7_200_000]), zone_of("Europe/Copenhagen")).tolist()
    [-3600000, 3600000]
    """
    if zone is None or not len(local):
        return local
    days, places = np.unique(local // _DAY, return_inverse=True)
    offsets = np.zeros(len(days), np.int64)
    changing = np.zeros(len(days), np.bool_)
    for k, day in enumerate(days.tolist()):
        try:
            offsets[k] = _offset(day * _DAY, zone)
            changing[k] = offsets[k] != _offset((day + 1) * _DAY, zone)
        except OverflowError:
            changing[k] = True
    result: IntArray = local - offsets[places]
    for k in np.flatnonzero(changing[places]).tolist():
        result[k] = in_utc(int(local[k]), zone)
    return result
