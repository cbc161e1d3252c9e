"""Timestamps: from the values of sources to milliseconds since the epoch.

A timestamp is a number, a datetime, or a text: either of them as an RDF literal, plain digits, an
ISO date and time. A graph name whose last segment is a number,
`<http://example.org/t/1600000000000>`, is a timestamp too: N-Quads allows no literal as a graph
name, so a file that other tools can read has to write its stamps this way.

Numbers count seconds, milli-, micro- or nanoseconds since 1970. If the unit is not set, the first
timestamp of the stream decides: a number of the size that seconds, micro- or nanoseconds have in
our time is in that unit, any other in milliseconds. Times without an offset are those of a time
zone, UTC by default.

`StampReader.stamp_of` is the definition. Columns are converted by arrays if their entries have one
form, else by `stamp_of`, so once the unit is known the meaning of a value does not depend on its
neighbours.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import ROUND_FLOOR, Decimal
from operator import index
from time import time_ns
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.algebra.xsd.moments import DateTime
from streamsparql.algebra.xsd.numeric import EXACT
from streamsparql.algebra.xsd.values import value_of
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.sources.local_times import column_in_utc, in_utc, instant_of
from streamsparql.sources.stamp_texts import StampForm, iso_moment, stamp_form
from streamsparql.sources.term_texts import ntriples_text

LATEST = 2**62
"""Stamps are below this, so that the length of a window can be added to one."""

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many of a unit are a second."""
UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

ParsedStamps = tuple[IntArray, dict[int, str]]
"""Stamps, -1 if missing or invalid, and the reasons at those places."""

StampNumber = int | float | Decimal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DATE_TIME = IRI(XSD + "dateTime")
_DIGITS = re.compile(r"[+-]?[0-9]{1,19}")
_FRACTION = re.compile(r"[+-]?[0-9]{1,19}\.[0-9]{1,30}")
_NUMBERED = re.compile(r"<[^<>\s]*/([0-9]{1,19})>")
_SAMPLE = 8  # texts of a column whose form is tried


def unit_of_size(number: StampNumber) -> str:
    """Return the unit in which a number of this size is a time of our days.

    Seconds are those of the years 2001 to 2286, micro- and nanoseconds those since 1973; any other
    number counts milliseconds, as those of a clock that starts at 0 do.

    >>> [unit_of_size(14068515 * 10**k) for k in (0, 2, 5, 8, 11)]
    ['ms', 's', 'ms', 'us', 'ns']
    """
    if 10**9 <= number < 10**10:
        return "s"
    if 10**17 <= number < 1 << 63:
        return "ns"
    return "us" if 10**14 <= number < 10**17 else "ms"


class RecognisedUnit(NamedTuple):
    """A unit that the size of a stream's first timestamp shows, and that timestamp."""

    unit: str
    number: StampNumber
    stamp: int


class StampReader:
    """A reader of the timestamps of one stream: the unit of numbers, and a time zone.

    With the unit None, the first valid timestamp decides, for all later ones.

    >>> reader = StampReader(None)
    >>> reader.stamp_of(1_406_851_500), reader.unit, reader.stamp_of(7)
    (1406851500000, 's', 7000)
    """

    def __init__(self, unit: str | None = "ms", zone: tzinfo | None = None) -> None:
        self.unit, self.zone = unit, zone
        self.recognised: RecognisedUnit | None = None
        """The unit, if it was recognised and is not the millisecond."""

    def save(self) -> dict[str, Any]:
        """Return the unit, and how it was recognised.

        >>> reader, other = StampReader(None), StampReader(None)
        >>> stamp = reader.stamp_of(1_406_851_500)
        >>> other.load(reader.save()); other.recognised == reader.recognised, other.unit
        (True, 's')
        """
        known = self.recognised
        if known is None:
            return {"unit": self.unit, "recognised": None}
        number: Any = known.number
        if isinstance(number, Decimal):
            number = str(number)
        return {"unit": self.unit, "recognised": [known.unit, number, known.stamp]}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore what `save` returned."""
        self.unit = saved["unit"]
        if saved["recognised"] is not None:
            unit, number, stamp = saved["recognised"]
            number = Decimal(number) if isinstance(number, str) else number
            self.recognised = RecognisedUnit(unit, number, stamp)

    # -- one by one: the definition

    def stamp_of(self, value: Any) -> int:
        """Return the milliseconds that a timestamp denotes; raise ValueError with the reason.

        >>> reader = StampReader()
        >>> reader.stamp_of("1970-01-01T00:00:01Z"), reader.stamp_of(datetime(1970, 1, 1, 0, 0, 2))
        (1000, 2000)
        >>> reader.stamp_of('"7"^^<http://www.w3.org/2001/XMLSchema#integer>')
        7
        """
        if _is_missing(value):
            raise ValueError("missing timestamp")
        number = _number_of(value)
        if number is None:
            stamp = self._instant(value)
        else:
            if self.unit is None:
                self._decide_by([value])
            stamp = self._scaled(number, value)
        if stamp < 0:
            raise ValueError(f"the timestamp {value} is before 1970")
        if stamp >= LATEST:
            raise ValueError(f"the timestamp {value} is out of range")
        return stamp

    def check(self, value: Any) -> None:
        """Raise ValueError if a value is not a timestamp; it does not decide on the unit."""
        if type(value) is not int or not 0 <= value < 2**53:
            StampReader(self.unit, self.zone).stamp_of(value)

    def now(self) -> int | datetime:
        """Return the time of this machine's clock as a timestamp in any unit."""
        return time_ns() // 1_000_000 if self.unit in (None, "ms") else datetime.now(UTC)

    def _scaled(self, number: StampNumber, value: Any) -> int:
        """Return a number in milliseconds, rounded down."""
        unit = self.unit or "ms"
        if isinstance(number, int):
            return number * 1000 // PER_SECOND[unit]
        if math.isfinite(number):
            if unit == "s" and isinstance(number, Decimal):
                return int(EXACT.scaleb(number, 3).to_integral_value(ROUND_FLOOR))
            if unit == "s":  # to the nearest microsecond first: 0.123 is less than 123 ms
                return round(float(number) * 1e6) // 1000
            if number == int(number):
                return int(number) * 1000 // PER_SECOND[unit]
        raise ValueError(f"not a valid timestamp: {value!r}")

    def _instant(self, value: Any) -> int:
        """Return the milliseconds of a date and time."""
        if isinstance(value, datetime):
            zoned = value if value.tzinfo else instant_of(value, self.zone)
            return (zoned - _EPOCH) // _MILLISECOND
        if isinstance(value, date):
            return self._instant(datetime(value.year, value.month, value.day))
        if isinstance(value, np.datetime64):
            return in_utc(int(value.astype("datetime64[ms]").astype(np.int64)), self.zone)
        text = ntriples_text(value).strip()
        moment = _moment(text)
        if moment is None:
            raise ValueError(f"not a valid timestamp: {text or value!r}")
        stamp = math.floor(EXACT.scaleb(moment.instant, 3))
        return in_utc(stamp, self.zone) if moment.offset is None else stamp

    def _decide_by(self, values: Iterable[Any]) -> None:
        """Decide on the unit by the first valid timestamp."""
        for value in values:
            number = None if _is_missing(value) else _number_of(value)
            unit = "ms" if number is None else unit_of_size(number)
            try:
                stamp = StampReader(unit, self.zone).stamp_of(value)
            except ValueError:
                continue
            self.unit = unit
            if number is not None and unit != "ms":
                self.recognised = RecognisedUnit(unit, number, stamp)
            return

    # -- by arrays

    def of_values(self, values: Sequence[Any]) -> ParsedStamps:
        """Return the stamps of Python values.

        >>> stamps, why = StampReader().of_values([5, -1, "x"])
        >>> stamps.tolist(), why[2]
        ([5, -1, -1], "not a valid timestamp: 'x'")
        """
        if self.unit is None:
            self._decide_by(values)
        try:
            raw = np.frombuffer(struct.pack(f"{len(values)}q", *values), np.int64)
        except (struct.error, OverflowError):
            return self._of_mixed(values)
        stamps = self._scaled_array(raw)
        # The values 0 and 1 are checked one by one: they may be False or True.
        odd = (raw < 2) | (stamps >= LATEST)
        return self._one_by_one(stamps, values, np.flatnonzero(odd)) if odd.any() else (stamps, {})

    def _of_mixed(self, values: Sequence[Any]) -> ParsedStamps:
        """Return the stamps of values that are not all integers."""
        if set(map(type, values)) == {str}:
            try:
                return self.of_column(pa.array(values, pa.string()))
            except UnicodeError:
                pass
        return self._one_by_one(np.full(len(values), -1, np.int64), values, range(len(values)))

    def of_column(self, column: pa.Array) -> ParsedStamps:
        """Return the stamps of an Arrow column of numbers, times or texts."""
        if pa.types.is_dictionary(column.type):
            values = column.dictionary
            if pa.types.is_string_view(values.type):
                values = values.cast(pa.string())
            column = values.take(column.indices)
        kind = column.type
        if pa.types.is_union(kind):
            return self.of_values(column.to_pylist())
        if pa.types.is_date(kind):
            kind = pa.timestamp("ms")
            column = column.cast(kind)
        if pa.types.is_timestamp(kind):
            if self.unit is None and column.null_count < len(column):
                self.unit = "ms"
            return self._of_times(column, kind)
        if self.unit is None:
            self._decide_by(value.as_py() for value in column)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return self._of_texts(column.cast(pa.string()))
        if pa.types.is_string_view(kind):
            return self._of_texts(column.cast(pa.string()))
        if pa.types.is_floating(kind):
            return self._of_floats(column)
        if pa.types.is_integer(kind) and kind != pa.uint64():
            raw = _numpy(column.cast(pa.int64()), -1)
            stamps = self._scaled_array(raw)
            odd = (raw < 0) | (stamps >= LATEST)
            bad = np.flatnonzero(odd) if odd.any() else ()
            return self._one_by_one(stamps, column, bad) if len(bad) else (stamps, {})
        values = column.to_pylist()
        return self._one_by_one(np.full(len(values), -1, np.int64), values, range(len(values)))

    def _scaled_array(self, raw: IntArray) -> IntArray:
        """Return integers in milliseconds; those out of range are LATEST or more."""
        match self.unit:
            case "s":
                return np.clip(raw, -1, LATEST // 1000 + 1) * 1000
            case "us" | "ns":
                return raw // (PER_SECOND[self.unit] // 1000)
        return raw

    def _of_floats(self, column: pa.Array) -> ParsedStamps:
        values: npt.NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if self.unit == "s":
            good = (values >= 0) & (values < 2.0**33)
            micros = np.rint(np.where(good, values, 0.0) * 1e6).astype(np.int64)
            stamps = np.where(good, micros // 1000, -1)
        else:
            good = (values >= 0) & (values < 2.0**53) & (np.floor(values) == values)
            stamps = self._scaled_array(np.where(good, values, -1).astype(np.int64))
        return self._one_by_one(stamps, column, np.flatnonzero(~good))

    def _of_times(self, column: pa.Array, kind: pa.DataType) -> ParsedStamps:
        """Return times of any unit, rounded down to milliseconds."""
        raw = _numpy(column.cast(pa.timestamp(kind.unit)).cast(pa.int64()), -1)
        if kind.unit == "s":
            stamps = np.clip(raw, -1, LATEST // 1000 + 1) * 1000
        else:
            stamps = raw // (PER_SECOND[kind.unit] // 1000)
        missing = column.is_null().to_numpy(zero_copy_only=False)
        if kind.tz is None:
            stamps = column_in_utc(stamps, self.zone)
        bad = missing | (stamps < 0) | (stamps >= LATEST)
        if bad.any():
            stamps = np.where(bad, -1, stamps)
        reasons = ("the timestamp is out of range", "missing timestamp")
        return stamps, {int(k): reasons[int(missing[k])] for k in np.flatnonzero(bad)}

    def _of_texts(self, texts: pa.Array) -> ParsedStamps:
        """Return the stamps of texts: those of one form by arrays, the others singly."""
        stamps = np.full(len(texts), -1, np.int64)
        sample = texts[:_SAMPLE].to_pylist()
        form = next((form for form in map(stamp_form, filter(None, sample)) if form), None)
        if form is None:
            return self._one_by_one(stamps, texts, range(len(texts)))
        cores, good = _cores(texts, form)
        try:
            every = bool(good.all())
            read = (cores if every else cores.filter(pa.array(good))).cast(form.kind)
        except pa.ArrowInvalid:  # such as 30 February
            return self._one_by_one(stamps, texts, range(len(texts)))
        values = _numpy(read.cast(pa.int64()), -1)
        if pa.types.is_integer(form.kind):
            values = self._scaled_array(values)
        else:
            values = values // 1000
            values = column_in_utc(values, self.zone) if form.kind.tz is None else values
        stamps[good] = values
        bad = np.flatnonzero((stamps < 0) | (stamps >= LATEST))
        return self._one_by_one(stamps, texts, bad) if len(bad) else (stamps, {})

    def _one_by_one(
        self, stamps: IntArray, values: Sequence[Any] | pa.Array, places: Iterable[int] | IntArray
    ) -> ParsedStamps:
        """Return the stamps, with those at these places computed by the definition."""
        why = {}
        if not stamps.flags.writeable:
            stamps = stamps.copy()
        for k in map(int, places):
            value = values[k].as_py() if isinstance(values, pa.Array) else values[k]
            try:
                stamps[k] = self.stamp_of(value)
            except ValueError as error:
                stamps[k] = -1
                why[k] = str(error)
        return stamps, why


IN_MILLISECONDS = StampReader()
"""The reader of numbers in milliseconds and of times in UTC."""


def _is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, an empty text, NaN, NaT, NA."""
    try:
        return value is None or value == "" or bool(value != value)
    except (TypeError, ValueError):  # a value without a truth value, or an array
        return type(value).__name__ == "NAType"


def _number_of(value: Any) -> StampNumber | None:
    """Return the number that a value is or denotes, without its unit; None for other values."""
    if isinstance(value, datetime | np.datetime64 | bool):
        return None
    if hasattr(value, "__index__"):
        return index(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, Decimal):
        return value
    text = ntriples_text(value).strip()
    if _DIGITS.fullmatch(text):
        return int(text)
    if match := _NUMBERED.fullmatch(text):
        return int(match[1])
    if _FRACTION.fullmatch(text):
        return Decimal(text)
    literal = parse_term(text) if text.startswith('"') else None
    number = value_of(literal) if isinstance(literal, Literal) else None
    return number if isinstance(number, StampNumber) and not isinstance(number, bool) else None


def _moment(text: str) -> DateTime | None:
    """Return the date and time of a text: in ISO 8601, or an xsd:dateTime literal."""
    if not text.startswith('"'):
        return iso_moment(text)
    literal = parse_term(text)
    if not isinstance(literal, Literal):
        return None
    value = value_of(literal)
    if value is None and literal.datatype == _DATE_TIME:
        return iso_moment(literal.lexical)
    return value if type(value) is DateTime else None


def _cores(texts: pa.Array, form: StampForm) -> tuple[pa.Array, BoolArray]:
    """Return texts without the prefix and suffix of their form, and which of them have it."""
    if not form.before:
        return texts, _mask(pc.match_substring_regex(texts, form.pattern))
    cores = pc.utf8_slice_codeunits(texts, len(form.before), -len(form.after))
    good = _mask(pc.match_substring_regex(cores, form.pattern))
    alike = pc.and_(pc.starts_with(texts, form.before), pc.ends_with(texts, form.after))
    return cores, good & _mask(alike)


def _numpy(column: pa.Array, missing: int) -> IntArray:
    column = pc.fill_null(column, missing) if column.null_count else column
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def _mask(column: pa.Array) -> BoolArray:
    return np.array(pc.fill_null(column, False).to_numpy(zero_copy_only=False), np.bool_)
