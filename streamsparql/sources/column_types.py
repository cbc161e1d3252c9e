"""The types of columns, guessed from their first values, and the column with the timestamps.

Columns of text contain numbers, booleans, dates or times if all their values can be read as such;
`n/a` and other marks of missing values are not counted. A column with the timestamps is found by
its name and by its content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.algebra.xsd.values import value_of
from streamsparql.sources.stamp_texts import iso_moment
from streamsparql.sources.stamps import StampReader, unit_of_size

MISSING = frozenset(
    {"na", "n/a", "nan", "null", "none", "nil", "-", "--", "?", "unknown", "missing"}
)
"""Marks of missing values, in lower case."""

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")
_BOOLEAN = re.compile(r"true|false", re.I)
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?")
_DAY_FIRST = re.compile(
    r"([0-9]{1,2})([/.])([0-9]{1,2})\2([0-9]{4})(?:[ T]+([0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?))?"
)
_XSD_DATE_TIME = IRI(XSD + "dateTime")
_EXACT_NAMES = re.compile(
    r"timestamp|datetime|time|ts|t|date|epoch|eventtime|resulttime|phenomenontime|observedat"
    r"|measuredat|recordedat|createdat|updatedat|updatetime|datum|zeit|zeitstempel",
    re.I,
)
_LIKELY_NAMES = re.compile(r"time|date|stamp|epoch|(?:^|_)(?:ts|at)(?:_|$)|_ms$", re.I)


@dataclass(frozen=True)
class Column:
    """A column and what its first values show."""

    name: str
    """Its name in the table, or the path in a record."""
    variable: str
    kind: str
    """string, integer, double, decimal, boolean, date, dateTime or time."""
    values: tuple[str, ...]
    """The texts of the values that are not empty."""
    rows: int
    """The number of values, with the empty ones."""
    typed: bool
    """Whether the table stores the type."""
    seconds: bool = True
    """Of times in texts, whether they have seconds."""

    @property
    def examples(self) -> tuple[str, ...]:
        """The first distinct values."""
        return tuple(dict.fromkeys(self.values))

    @property
    def varies(self) -> bool:
        """Whether there are different values."""
        return len(set(self.values)) > 1


def kind_of_texts(values: Sequence[str]) -> str:
    """Return the type of a column of text.

    >>> kind_of_texts(["1", "2", "n/a"]), kind_of_texts(["1", "2.5"]), kind_of_texts(["007", "1"])
    ('integer', 'double', 'string')
    >>> kind_of_texts(["2014-08-01 10:00"]), kind_of_texts(["10:00"]), kind_of_texts([])
    ('dateTime', 'time', 'string')
    """
    known = [value.strip() for value in values if value.strip().lower() not in MISSING]
    if not known:
        return "string"
    for kind, fits in _TESTS.items():
        if all(map(fits, known)):
            return kind
    return "string"


def _is_double(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None and not _LEADING_ZERO.match(value)


def _is_date_time(value: str) -> bool:
    """Return whether a text is a time that the mapping of `date_time_expression` can cast."""
    text = value.replace(" ", "T", 1)
    text = text if len(text) != 16 else f"{text}:00"
    return value_of(Literal(text, _XSD_DATE_TIME)) is not None


_TESTS: dict[str, Callable[[str], object]] = {
    "integer": _INTEGER.fullmatch,
    "double": _is_double,
    "boolean": _BOOLEAN.fullmatch,
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch,
    "dateTime": _is_date_time,
    "time": _CLOCK.fullmatch,
}


# -- the column with the timestamps ---------------------------------------------------------------


@dataclass(frozen=True)
class TimeColumn:
    """The column with the timestamps, and how it was found."""

    column: Column
    reason: str
    form: str
    """iso, number, day-first, month-first, or typed."""
    clock: Column | None = None
    """The column with the time of the day, if that is another one."""


def time_column(columns: Sequence[Column]) -> TimeColumn | None:
    """Return the column with the timestamps; None if there is none.

    Columns with equal values in all rows come last; names decide between the others, then whether
    the times are in order.
    """
    times = [each for each in map(_as_time, columns) if each is not None]
    if not times:
        return None
    best = max(times, key=_rank)
    if best.column.kind in ("date", "string") and not _has_clock(best):
        clock = next((c for c in columns if c.kind == "time" and c.varies), None)
        if clock is not None:
            return TimeColumn(best.column, best.reason, best.form, clock)
    return best


def _rank(time: TimeColumn) -> tuple[bool, int, bool]:
    column = time.column
    plain = column.name.replace("_", "").replace(" ", "").rpartition(".")[2]
    named = 2 if _EXACT_NAMES.fullmatch(plain) else int(bool(_LIKELY_NAMES.search(column.name)))
    return column.varies or column.rows == 1, named, _in_order(column)


def _in_order(column: Column) -> bool:
    stamps = StampReader(None).of_values(column.values)[0]
    return bool((stamps[1:] >= stamps[:-1]).all())


def _as_time(column: Column) -> TimeColumn | None:
    """Return a column as one with timestamps; None if it has none."""
    exact = _EXACT_NAMES.fullmatch(column.name.replace("_", "").rpartition(".")[2])
    named = exact or _LIKELY_NAMES.search(column.name)
    because = "by its name and its content" if named else "by its content"
    known = [value for value in column.values if value.lower() not in MISSING]
    if not known:
        return None
    if column.typed and column.kind in ("dateTime", "date"):
        return TimeColumn(column, because, "typed")
    if column.kind in ("integer", "double"):
        if named and (exact or _looks_like_epoch(known)):
            return TimeColumn(column, because, "number")
        return None
    if all(iso_moment(value.strip()) for value in known):
        return TimeColumn(column, because, "iso")
    form = day_order(known)
    return None if form is None else TimeColumn(column, because, form)


def _looks_like_epoch(values: Sequence[str]) -> bool:
    """Return whether all numbers have the size of times of our days."""
    return all(
        unit_of_size(float(value)) != "ms" or 10**11 <= float(value) < 10**14 for value in values
    )


def day_order(values: Sequence[str]) -> str | None:
    """Return the order of the day and the month in dates such as 31/12/2014; None if unknown.

    If both may be either, the order in which the dates do not fall decides.

    >>> day_order(["31/12/2014"]), day_order(["12/31/2014"]), day_order(["1/2/2014"])
    ('day-first', 'month-first', None)
    >>> day_order(["1/2/2014", "2/2/2014", "1/3/2014"]), day_order(["1.2.2014 10:00"])
    ('day-first', 'day-first')
    """
    matches = [_DAY_FIRST.fullmatch(value.strip()) for value in values]
    if not all(matches):
        return None
    first, second = ([int(m[k]) for m in matches if m] for k in (1, 3))
    if matches[0] is not None and matches[0][2] == ".":
        return "day-first"
    if max(first) > 12:
        return "day-first" if max(second) <= 12 else None
    if max(second) > 12:
        return "month-first"
    years = [(m[4], m[5] or "") for m in matches if m]
    falls = {
        "day-first": _falls([(y, b, a, c) for (y, c), a, b in zip(years, first, second)]),
        "month-first": _falls([(y, a, b, c) for (y, c), a, b in zip(years, first, second)]),
    }
    if falls["day-first"] == falls["month-first"]:
        return None
    return min(falls, key=falls.__getitem__)


def _falls(dates: Sequence[Any]) -> int:
    """Return how often a date is before the previous one."""
    return sum(after < before for before, after in pairwise(dates))


def _has_clock(time: TimeColumn) -> bool:
    return any(":" in value for value in time.column.values)
