"""The written forms of timestamps: ISO dates and times, numbers, and RDF literals of both.

`iso_moment` is the definition of a date and time in a text. Columns of texts that have the form of
the first are parsed by arrays, as `stamp_form` describes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.algebra.xsd.moments import DateTime
from streamsparql.algebra.xsd.values import value_of

_DATE_TIME = IRI(XSD + "dateTime")
_ISO = re.compile(
    r"(?P<day>-?[0-9]{4,}-[0-9]{2}-[0-9]{2}|[0-9]{4}/[0-9]{2}/[0-9]{2})"
    r"(?:[Tt ](?P<minute>[0-9]{2}:[0-9]{2})(?P<second>:[0-9]{2}(?:[.,][0-9]+)?)?"
    r" ?(?P<zone>[Zz]|UTC|GMT|(?P<sign>[+-])(?P<hours>[0-9]{1,2})(?::?(?P<minutes>[0-9]{2}))?)?)?"
)


def iso_moment(text: str) -> DateTime | None:
    """Return the date and time that a text denotes in ISO 8601; None if it denotes none.

    A blank may stand for the T, seconds may be missing, the offset may be short, and a day alone
    denotes its beginning.

    >>> iso_moment("2014-08-01T10:00") == iso_moment("2014/08/01 10:00:00.0")
    True
    >>> print(iso_moment("2014-08-01 10:00:00,5 +2").zone, iso_moment("10:00"))
    +02:00 None
    """
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    second = (match["second"] or ":00").replace(",", ".")
    zone = match["zone"] or ""
    if match["sign"]:
        zone = f"{match['sign']}{match['hours']:0>2}:{match['minutes'] or '00'}"
    elif zone:
        zone = "Z"
    day = match["day"].replace("/", "-")
    value = value_of(Literal(f"{day}T{match['minute'] or '00:00'}{second}{zone}", _DATE_TIME))
    return value if type(value) is DateTime else None


class StampForm(NamedTuple):
    """The form of texts that are parsed by arrays: a common prefix and suffix, and the core."""

    before: str
    after: str
    pattern: str
    kind: pa.DataType
    """What Arrow casts the core to: integers, local times or instants."""


_WRITTEN = re.compile(r'(?P<open>"|<[^<>\s]*/|)(?P<core>[0-9][^"<>]*)(?P<close>"\^\^<[^<>\s]*>|>|)')
_PAIRS = {("", ""), ("<", ">"), ('"', '"')}
_NUMBERS = frozenset({"", ">", f'"^^<{XSD}integer>', f'"^^<{XSD}long>'})
_BARE = frozenset({""})
_TIMES = frozenset({"", f'"^^<{XSD}dateTime>'})
_STAMPS = frozenset({*_TIMES, f'"^^<{XSD}dateTimeStamp>'})
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MINUTE = "[0-9]{2}:[0-9]{2}"
_SECOND = rf"{_MINUTE}:[0-9]{{2}}(\.[0-9]{{1,6}})?"
_OFFSET = "[+-](0[0-9]|1[0-3]):[0-5][0-9]"
_LOCAL, _INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")


def _forms() -> Iterator[tuple[str, frozenset[str], pa.DataType]]:
    """Yield the pattern of each form's core, its suffixes, and what Arrow casts the core to."""
    yield "[0-9]{1,19}", _NUMBERS, pa.int64()
    yield _DAY, _BARE, _LOCAL
    for between, clock, local, zoned in (
        ("T", _SECOND, _TIMES, _STAMPS),
        ("T", _MINUTE, _TIMES, _TIMES),
        (" ", _SECOND, _BARE, _BARE),
        (" ", _MINUTE, _BARE, _BARE),
    ):
        yield f"{_DAY}{between}{clock}", local, _LOCAL
        for zone in ("Z", _OFFSET):
            yield f"{_DAY}{between}{clock}{zone}", zoned, _INSTANT


_FORMS = [(re.compile(pattern), pattern, *rest) for pattern, *rest in _forms()]


def stamp_form(text: str) -> StampForm | None:
    """Return the form of a text; None if texts of its form are not parsed by arrays.

    >>> stamp_form("12").pattern, stamp_form("<http://ex.org/t/12>").before, stamp_form("soon")
    ('^[0-9]{1,19}$', '<http://ex.org/t/', None)
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return None
    before, core, after = match.groups()
    if (before[:1], after[:1]) in _PAIRS:
        for compiled, pattern, ends, kind in _FORMS:
            if after in ends and compiled.fullmatch(core):
                return StampForm(before, after, f"^{pattern}$", kind)
    return None
