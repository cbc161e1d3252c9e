"""Durations as people write them: `5s`, `1 h 30 min`, `PT5S`, milliseconds, or a timedelta."""

from __future__ import annotations

import re
from decimal import Decimal
from operator import index
from typing import Any

from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.algebra.xsd.durations import XsdDuration
from streamsparql.algebra.xsd.numeric import EXACT
from streamsparql.algebra.xsd.values import value_of

LONGEST_TIME = 1 << 62
"""The greatest number of milliseconds, of a duration or since 1970."""
_UNITS = {"ms": 1, "s": 1000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PART = re.compile(rf"({_NUMBER})\s*({'|'.join(_UNITS)})\s*")
_PARTS = re.compile(rf"(?:{_PART.pattern})+")
_DURATION = IRI(XSD + "duration")


def parse_duration(value: Any) -> int:
    """Return the milliseconds of a duration; raise ValueError with the reason if it is not one.

    >>> [parse_duration(text) for text in ("500ms", "1.5 m", "1 h 30 min", "PT5S", "10")]
    [500, 90000, 5400000, 5000, 10]
    >>> from datetime import timedelta
    >>> parse_duration(250), parse_duration(timedelta(seconds=5))
    (250, 5000)
    """
    if isinstance(value, str):
        milliseconds = _milliseconds_of_text(value.strip())
    elif (number := whole_number(value)) is not None:
        milliseconds = Decimal(number)
    else:
        milliseconds = _milliseconds_of_timedelta(value)
    if milliseconds != milliseconds.to_integral_value():
        raise ValueError(f"not a whole number of milliseconds: {value!r:.60}")
    if not 0 <= milliseconds <= LONGEST_TIME:
        raise ValueError(f"duration out of range: {value!r:.60}")
    return int(milliseconds)


def _milliseconds_of_text(text: str) -> Decimal:
    if re.fullmatch(_NUMBER, text):
        return Decimal(text)
    if _PARTS.fullmatch(text):
        return sum((Decimal(n) * _UNITS[unit] for n, unit in _PART.findall(text)), Decimal(0))
    duration = value_of(Literal(text, _DURATION))
    if not isinstance(duration, XsdDuration):
        raise ValueError(
            f"not a valid duration: {text!r:.60}; write it as 500ms, 10s, 5m, 1h, 2d or PT5S"
        )
    if duration.months:
        raise ValueError(f"years and months have no fixed length: {text!r}; write it in days")
    return EXACT.scaleb(duration.seconds, 3)


def _milliseconds_of_timedelta(value: Any) -> Decimal:
    from datetime import timedelta

    if not isinstance(value, timedelta):
        raise ValueError(
            f"not a valid duration: {value!r:.60}; pass milliseconds, a text such as '5s', or a"
            " timedelta"
        )
    return Decimal(value // timedelta(microseconds=1)) / 1000


def whole_number(value: Any) -> int | None:
    """Return a value that is a whole number, of any library; None for others.

    >>> whole_number(5), whole_number(True), whole_number(5.0)
    (5, None, None)
    """
    return index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None
