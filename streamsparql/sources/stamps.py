"""Timestamps: from what sources have to milliseconds since the epoch.

A timestamp is a whole number of milliseconds, a datetime (with no time zone: UTC), or a text: those
two as an RDF literal, as plain digits, as an ISO date and time. A graph name whose last segment is
a number, `<http://example.org/t/1600000000000>`, is one too: N-Quads allows no literal as a graph
name, so a file that other tools can read has to write its stamps like that.

`stamp_of` is the definition. Columns are read by arrays where their entries are of one form, and by
`stamp_of` where they are not, so that what an item means never hangs on its neighbours.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import index
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.algebra.xsd.values import milliseconds_of, value_of
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.sources.term_texts import text_of

LATEST = 2**62
"""Stamps stay below this, so that a window's length can be added to one."""

Stamps = tuple[IntArray, dict[int, str]]
"""Stamps, -1 where there is none, and why there is none at those places."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DATE_TIME = IRI(XSD + "dateTime")
_DIGITS = re.compile(r"[+-]?[0-9]{1,19}")
_DAY = re.compile(r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}")
_NUMBERED = re.compile(r"<[^<>\s]*/([0-9]{1,19})>")


def stamp_of(value: Any) -> int:
    """The milliseconds that a timestamp stands for; ValueError says why there are none.

    >>> stamp_of("1970-01-01T00:00:01Z"), stamp_of(datetime(1970, 1, 1, 0, 0, 2))
    (1000, 2000)
    >>> stamp_of('"7"^^<http://www.w3.org/2001/XMLSchema#integer>'), stamp_of("<http://x.org/t/8>")
    (7, 8)
    """
    stamp = _milliseconds(value)
    if stamp < 0:
        raise ValueError(f"the timestamp {value} is before 1970, where time starts")
    if stamp >= LATEST:
        raise ValueError(f"the timestamp {value} is beyond the end of time")
    return stamp


def _milliseconds(value: Any) -> int:
    if _is_none(value):
        raise ValueError("there is no timestamp")
    if isinstance(value, datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (zoned - _EPOCH) // _MILLISECOND
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[ms]").astype(np.int64))
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return index(value)
    if isinstance(value, float | np.floating | Decimal) and float(value).is_integer():
        return int(value)
    if text := text_of(value):
        return _of_text(text)
    raise ValueError(f"{value!r} is no timestamp")


def _is_none(value: Any) -> bool:
    """Whether a value says that there is none: None, an empty text, NaN, NaT, NA."""
    try:
        return value is None or value == "" or bool(value != value)
    except (TypeError, ValueError):  # whose truth is not known, or an array
        return type(value).__name__ == "NAType"


def _of_text(text: str) -> int:
    text = text.strip()
    if _DIGITS.fullmatch(text):
        return int(text)
    if found := _NUMBERED.fullmatch(text):
        return int(found[1])
    literal = parse_term(text) if text.startswith('"') else Literal(_iso(text), _DATE_TIME)
    if isinstance(literal, Literal):
        value = value_of(literal)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        try:
            return milliseconds_of(literal)
        except ExpressionError:
            pass
    raise ValueError(f"{text} is no timestamp")


def _iso(text: str) -> str:
    """What people write for a dateTime: a day alone, a blank between day and time."""
    if _DAY.fullmatch(text):
        return f"{text}T00:00:00"
    return text.replace(" ", "T", 1) if _DAY.match(text) else text


# -- Of many ------------------------------------------------------------------------------------


def of_values(values: Sequence[Any]) -> Stamps:
    """The stamps of Python values.

    >>> stamps, why = of_values([5, -1, "x"])
    >>> stamps.tolist(), why[2]
    ([5, -1, -1], 'x is no timestamp')
    """
    try:
        stamps = np.frombuffer(struct.pack(f"{len(values)}q", *values), np.int64)
    except (struct.error, OverflowError):
        return _of_any(values)
    # What stands for 0 or 1 may be False or True.
    odd = (stamps - 2).view(np.uint64) >= LATEST - 2
    return _one_by_one(stamps, values, np.flatnonzero(odd)) if odd.any() else (stamps, {})


def _of_any(values: Sequence[Any]) -> Stamps:
    """The stamps of values that are not whole numbers only."""
    if set(map(type, values)) == {str}:
        try:
            return of_column(pa.array(values, pa.string()))
        except UnicodeError:
            pass
    return _one_by_one(np.full(len(values), -1, np.int64), values, range(len(values)))


def of_column(column: pa.Array) -> Stamps:
    """The stamps of an Arrow column of numbers, times or texts."""
    if pa.types.is_dictionary(column.type):
        values = column.dictionary
        if pa.types.is_string_view(values.type):
            values = values.cast(pa.string())
        column = values.take(column.indices)
    kind = column.type
    if pa.types.is_union(kind):
        return of_values(column.to_pylist())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _of_texts(column.cast(pa.string()))
    if pa.types.is_floating(kind):
        return _of_floats(column)
    if pa.types.is_date(kind):
        kind = pa.timestamp("ms")
        column = column.cast(kind)
    if pa.types.is_timestamp(kind):
        return _of_times(column, kind.unit)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return _checked(_numpy(column.cast(pa.int64()), -1), column)
    values = column.to_pylist()
    return _one_by_one(np.full(len(values), -1, np.int64), values, range(len(values)))


def _numpy(column: pa.Array, missing: int) -> IntArray:
    column = pc.fill_null(column, missing) if column.null_count else column
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def _checked(stamps: IntArray, values: Sequence[Any] | pa.Array) -> Stamps:
    """Whole numbers are stamps as they are; those out of range are told why not."""
    bad = (stamps < 0) | (stamps >= LATEST)
    return _one_by_one(stamps, values, np.flatnonzero(bad)) if bad.any() else (stamps, {})


def _one_by_one(
    stamps: IntArray, values: Sequence[Any] | pa.Array, places: Iterable[int] | IntArray
) -> Stamps:
    """The stamps at some places, by their definition."""
    why = {}
    if not stamps.flags.writeable:
        stamps = stamps.copy()
    for k in map(int, places):
        value = values[k].as_py() if isinstance(values, pa.Array) else values[k]
        try:
            stamps[k] = stamp_of(value)
        except ValueError as error:
            stamps[k] = -1
            why[k] = str(error)
    return stamps, why


def _of_floats(column: pa.Array) -> Stamps:
    values: npt.NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    whole = (values >= 0) & (values < 2.0**53) & (np.floor(values) == values)
    stamps = np.where(whole, values, -1).astype(np.int64)
    return _one_by_one(stamps, column, np.flatnonzero(~whole))


def _of_times(column: pa.Array, unit: str) -> Stamps:
    """Times of any unit, rounded down to milliseconds; what has no time has no text either."""
    raw = _numpy(column.cast(pa.timestamp(unit)).cast(pa.int64()), -1)
    if unit == "s":
        stamps = np.clip(raw, -1, LATEST // 1000 + 1) * 1000
    else:
        stamps = raw // {"ms": 1, "us": 1000, "ns": 1_000_000}[unit]
    bad = (raw < 0) | (stamps >= LATEST)
    stamps[bad] = -1
    none = column.is_null().to_numpy(zero_copy_only=False)
    reasons = ("the timestamp is out of range", "there is no timestamp")
    return stamps, {int(k): reasons[int(none[k])] for k in np.flatnonzero(bad)}


# -- Texts of one form ----------------------------------------------------------------------------


class _Form(NamedTuple):
    """What texts look like that are read by arrays: what stands before and after, what between."""

    before: str
    after: str
    pattern: str
    kind: pa.DataType
    divisor: int


_WRITTEN = re.compile(r'(?P<open>"|<[^<>\s]*/|)(?P<core>[0-9][^"<>]*)(?P<close>"\^\^<[^<>\s]*>|>|)')
_NUMBERS = {"", ">", f'"^^<{XSD}integer>', f'"^^<{XSD}long>'}
_TIMES = {"", f'"^^<{XSD}dateTime>'}
_ZONED_TIMES = {*_TIMES, f'"^^<{XSD}dateTimeStamp>'}
_DAYS, _CLOCK = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_OFFSET = r"[+-](0[0-9]|1[0-3]):[0-5][0-9]"
_TIME, _ZONED_TIME = pa.timestamp("us"), pa.timestamp("us", "UTC")
_KINDS = (
    (re.compile(r"[0-9]+"), _NUMBERS, r"^[0-9]{1,18}$", pa.int64(), 1),
    *(
        kind
        for between, times, zoned in (("T", _TIMES, _ZONED_TIMES), (" ", {""}, {""}))
        for kind in (
            (
                re.compile(f"[^T ]*{between}.*Z"),
                zoned,
                f"^{_DAYS}{between}{_CLOCK}Z$",
                _ZONED_TIME,
                1000,
            ),
            (
                re.compile(f"[^T ]*{between}.*[+-]..:.."),
                zoned,
                f"^{_DAYS}{between}{_CLOCK}{_OFFSET}$",
                _ZONED_TIME,
                1000,
            ),
            (re.compile(f"[^T ]*{between}.*"), times, f"^{_DAYS}{between}{_CLOCK}$", _TIME, 1000),
        )
    ),
)
"""Which cores after which ends are read as what; of what matches, Arrow thinks as `stamp_of`."""


def _form_of(text: str) -> _Form | None:
    """The form of a text; None where it has none that is read by arrays.

    >>> _form_of("12").pattern, _form_of("<http://ex.org/t/12>").before, _form_of("soon")
    ('^[0-9]{1,18}$', '<http://ex.org/t/', None)
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    before, core, after = found.groups()
    if (before[:1], after[:1]) not in (("", ""), ("<", ">"), ('"', '"')):
        return None
    for shape, ends, pattern, kind, divisor in _KINDS:
        if after in ends and shape.fullmatch(core):
            return _Form(before, after, pattern, kind, divisor)
    return None


def _of_texts(texts: pa.Array) -> Stamps:
    """Takes the form of the first text to be that of all, and reads the others one by one."""
    stamps = np.full(len(texts), -1, np.int64)
    form = _form_of(texts[0].as_py() or "") if len(texts) else None
    if form is None:
        return _one_by_one(stamps, texts, range(len(texts)))
    cores = texts
    if form.before:
        cores = pc.utf8_slice_codeunits(texts, len(form.before), -len(form.after))
    good = _mask(pc.match_substring_regex(cores, form.pattern))
    if form.before:
        alike = pc.and_(pc.starts_with(texts, form.before), pc.ends_with(texts, form.after))
        good &= _mask(alike)
    try:
        every = bool(good.all())
        read = (cores if every else cores.filter(pa.array(good))).cast(form.kind)
    except pa.ArrowInvalid:  # a 30th of February
        return _one_by_one(stamps, texts, range(len(texts)))
    values = _numpy(read.cast(pa.int64()), -1)
    stamps[good] = values if form.divisor == 1 else values // form.divisor
    bad = np.flatnonzero(stamps < 0)
    return _one_by_one(stamps, texts, bad) if len(bad) else (stamps, {})


def _mask(column: pa.Array) -> BoolArray:
    return np.array(pc.fill_null(column, False).to_numpy(zero_copy_only=False), np.bool_)
