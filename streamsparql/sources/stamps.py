"""Timestamps: from the values of sources to milliseconds since the epoch.

A timestamp is an integer of milliseconds, a datetime (without time zone: UTC), or a text: either of
them as an RDF literal, plain digits, an ISO date and time. A graph name whose last segment is a
number, `<http://example.org/t/1600000000000>`, is a timestamp too: N-Quads allows no literal as a
graph name, so a file that other tools can read has to write its stamps this way.

`stamp_of` is the definition. Columns are converted by arrays if their entries have one form,
else by `stamp_of`, so the meaning of a value never depends on its neighbours.
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
from streamsparql.sources.term_texts import ntriples_text

LATEST = 2**62
"""Stamps are below this, so that the length of a window can be added to one."""

ParsedStamps = tuple[IntArray, dict[int, str]]
"""Stamps, -1 if missing or invalid, and the reasons at those places."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DATE_TIME = IRI(XSD + "dateTime")
_DIGITS = re.compile(r"[+-]?[0-9]{1,19}")
_DAY = re.compile(r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}")
_NUMBERED = re.compile(r"<[^<>\s]*/([0-9]{1,19})>")


def stamp_of(value: Any) -> int:
    """Return the milliseconds that a timestamp denotes; raise ValueError with the reason if none.

    >>> stamp_of("1970-01-01T00:00:01Z"), stamp_of(datetime(1970, 1, 1, 0, 0, 2))
    (1000, 2000)
    >>> stamp_of('"7"^^<http://www.w3.org/2001/XMLSchema#integer>'), stamp_of("<http://x.org/t/8>")
    (7, 8)
    """
    stamp = _milliseconds(value)
    if stamp < 0:
        raise ValueError(f"the timestamp {value} is before 1970")
    if stamp >= LATEST:
        raise ValueError(f"the timestamp {value} is out of range")
    return stamp


def _milliseconds(value: Any) -> int:
    if _is_missing(value):
        raise ValueError("missing timestamp")
    if isinstance(value, datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (zoned - _EPOCH) // _MILLISECOND
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[ms]").astype(np.int64))
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return index(value)
    if isinstance(value, float | np.floating | Decimal) and float(value).is_integer():
        return int(value)
    if text := ntriples_text(value):
        return _stamp_of_text(text)
    raise ValueError(f"not a valid timestamp: {value!r}")


def _is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, an empty text, NaN, NaT, NA."""
    try:
        return value is None or value == "" or bool(value != value)
    except (TypeError, ValueError):  # a value without a truth value, or an array
        return type(value).__name__ == "NAType"


def _stamp_of_text(text: str) -> int:
    text = text.strip()
    if _DIGITS.fullmatch(text):
        return int(text)
    if match := _NUMBERED.fullmatch(text):
        return int(match[1])
    literal = parse_term(text) if text.startswith('"') else Literal(_iso(text), _DATE_TIME)
    if isinstance(literal, Literal):
        value = value_of(literal)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        try:
            return milliseconds_of(literal)
        except ExpressionError:
            pass
    raise ValueError(f"not a valid timestamp: {text!r}")


def _iso(text: str) -> str:
    """Return a date and time in the form of xsd:dateTime: a day alone, a space for the T."""
    if _DAY.fullmatch(text):
        return f"{text}T00:00:00"
    return text.replace(" ", "T", 1) if _DAY.match(text) else text


# -- columns --------------------------------------------------------------------------------------


def stamps_of_values(values: Sequence[Any]) -> ParsedStamps:
    """Return the stamps of Python values.

    >>> stamps, why = stamps_of_values([5, -1, "x"])
    >>> stamps.tolist(), why[2]
    ([5, -1, -1], "not a valid timestamp: 'x'")
    """
    try:
        stamps = np.frombuffer(struct.pack(f"{len(values)}q", *values), np.int64)
    except (struct.error, OverflowError):
        return _stamps_of_mixed(values)
    # The values 0 and 1 are checked one by one: they may be False or True.
    odd = (stamps - 2).view(np.uint64) >= LATEST - 2
    return _one_by_one(stamps, values, np.flatnonzero(odd)) if odd.any() else (stamps, {})


def _stamps_of_mixed(values: Sequence[Any]) -> ParsedStamps:
    """Return the stamps of values that are not all integers."""
    if set(map(type, values)) == {str}:
        try:
            return stamps_of_column(pa.array(values, pa.string()))
        except UnicodeError:
            pass
    return _one_by_one(np.full(len(values), -1, np.int64), values, range(len(values)))


def stamps_of_column(column: pa.Array) -> ParsedStamps:
    """Return the stamps of an Arrow column of numbers, times or texts."""
    if pa.types.is_dictionary(column.type):
        values = column.dictionary
        if pa.types.is_string_view(values.type):
            values = values.cast(pa.string())
        column = values.take(column.indices)
    kind = column.type
    if pa.types.is_union(kind):
        return stamps_of_values(column.to_pylist())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _stamps_of_texts(column.cast(pa.string()))
    if pa.types.is_floating(kind):
        return _stamps_of_floats(column)
    if pa.types.is_date(kind):
        kind = pa.timestamp("ms")
        column = column.cast(kind)
    if pa.types.is_timestamp(kind):
        return _stamps_of_times(column, kind.unit)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return _stamps_of_integers(_numpy(column.cast(pa.int64()), -1), column)
    values = column.to_pylist()
    return _one_by_one(np.full(len(values), -1, np.int64), values, range(len(values)))


def _numpy(column: pa.Array, missing: int) -> IntArray:
    column = pc.fill_null(column, missing) if column.null_count else column
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def _stamps_of_integers(stamps: IntArray, values: Sequence[Any] | pa.Array) -> ParsedStamps:
    """Return integers as stamps, -1 with a reason for those out of range."""
    bad = (stamps < 0) | (stamps >= LATEST)
    return _one_by_one(stamps, values, np.flatnonzero(bad)) if bad.any() else (stamps, {})


def _one_by_one(
    stamps: IntArray, values: Sequence[Any] | pa.Array, places: Iterable[int] | IntArray
) -> ParsedStamps:
    """Return the stamps, with those at these places computed by the definition."""
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


def _stamps_of_floats(column: pa.Array) -> ParsedStamps:
    values: npt.NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    whole = (values >= 0) & (values < 2.0**53) & (np.floor(values) == values)
    stamps = np.where(whole, values, -1).astype(np.int64)
    return _one_by_one(stamps, column, np.flatnonzero(~whole))


def _stamps_of_times(column: pa.Array, unit: str) -> ParsedStamps:
    """Return times of any unit, rounded down to milliseconds."""
    raw = _numpy(column.cast(pa.timestamp(unit)).cast(pa.int64()), -1)
    if unit == "s":
        stamps = np.clip(raw, -1, LATEST // 1000 + 1) * 1000
    else:
        stamps = raw // {"ms": 1, "us": 1000, "ns": 1_000_000}[unit]
    bad = (raw < 0) | (stamps >= LATEST)
    stamps[bad] = -1
    missing = column.is_null().to_numpy(zero_copy_only=False)
    reasons = ("the timestamp is out of range", "missing timestamp")
    return stamps, {int(k): reasons[int(missing[k])] for k in np.flatnonzero(bad)}


# -- texts of one form ----------------------------------------------------------------------------


class _Form(NamedTuple):
    """The form of texts that are parsed by arrays: a common prefix and suffix, and the core."""

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
"""Each form: its core, its suffixes, and how Arrow parses it, in agreement with `stamp_of`."""


def _form_of(text: str) -> _Form | None:
    """Return the form of a text; None if texts of its form are not parsed by arrays.

    >>> _form_of("12").pattern, _form_of("<http://ex.org/t/12>").before, _form_of("soon")
    ('^[0-9]{1,18}$', '<http://ex.org/t/', None)
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return None
    before, core, after = match.groups()
    if (before[:1], after[:1]) not in (("", ""), ("<", ">"), ('"', '"')):
        return None
    for shape, ends, pattern, kind, divisor in _KINDS:
        if after in ends and shape.fullmatch(core):
            return _Form(before, after, pattern, kind, divisor)
    return None


def _stamps_of_texts(texts: pa.Array) -> ParsedStamps:
    """Return the stamps of texts: those in the form of the first by arrays, the others singly."""
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
    except pa.ArrowInvalid:  # such as 30 February
        return _one_by_one(stamps, texts, range(len(texts)))
    values = _numpy(read.cast(pa.int64()), -1)
    stamps[good] = values if form.divisor == 1 else values // form.divisor
    bad = np.flatnonzero(stamps < 0)
    return _one_by_one(stamps, texts, bad) if len(bad) else (stamps, {})


def _mask(column: pa.Array) -> BoolArray:
    return np.array(pc.fill_null(column, False).to_numpy(zero_copy_only=False), np.bool_)
