"""The constructor functions of XSD, such as `xsd:integer(?x)` (SPARQL 1.1, 17.5; F&O 19).

Each maps the type of a value to a Python function. Strings are parsed as lexical forms of the
target instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.terms import IRI, XSD, XSD_STRING, BlankNode, Literal, Term
from streamsparql.algebra.xsd.durations import (
    DURATIONS,
    DayTimeDuration,
    XsdDuration,
    YearMonthDuration,
)
from streamsparql.algebra.xsd.literal_operators import TRUTH
from streamsparql.algebra.xsd.moments import Date, DateTime, Time, XsdMoment
from streamsparql.algebra.xsd.numeric import INTEGERS, NUMERIC_TYPES, Single, double
from streamsparql.algebra.xsd.values import XsdValue, literal_of, value_of

Conversions = dict[type, Callable[[Any], XsdValue]]


def _finite(number: float) -> float:
    if math.isfinite(number):
        return number
    raise ExpressionError(f"{number} cannot be cast to a decimal or an integer")


def _as_duration(kind: type[XsdDuration], months: bool, seconds: bool) -> Conversions:
    def convert(value: XsdDuration) -> XsdDuration:
        return kind(value.months if months else 0, value.seconds if seconds else Decimal(0))

    return dict.fromkeys(DURATIONS, convert)


def _as_moment(kind: type[XsdMoment], *sources: type[XsdMoment]) -> Conversions:
    return dict.fromkeys(sources, lambda value: kind.at(value.local, value.offset))


def _as_number(*to: Callable[[Any], XsdValue]) -> Conversions:
    return dict(zip((bool, *NUMERIC_TYPES), to, strict=True))


_TO_INTEGER = _as_number(int, int, int, *[lambda number: int(_finite(number))] * 2)
_TO_DECIMAL = _as_number(*[Decimal] * 3, *[lambda number: Decimal(_finite(number))] * 2)
_CASTS: dict[str, Conversions] = {
    "boolean": {kind: truth for kind, truth in TRUTH.items() if kind is not str},
    **dict.fromkeys(INTEGERS, _TO_INTEGER),
    "decimal": _TO_DECIMAL,
    "float": _as_number(*[Single.nearest] * 5),
    "double": _as_number(*[double] * 5),
    "dateTime": _as_moment(DateTime, DateTime, Date),
    "date": _as_moment(Date, DateTime, Date),
    "time": _as_moment(Time, DateTime, Time),
    "duration": _as_duration(XsdDuration, months=True, seconds=True),
    "dayTimeDuration": _as_duration(DayTimeDuration, months=False, seconds=True),
    "yearMonthDuration": _as_duration(YearMonthDuration, months=True, seconds=False),
}
_CONVERSIONS = {IRI(XSD + name): conversions for name, conversions in _CASTS.items()}

CAST_TARGETS = frozenset({XSD_STRING, *_CONVERSIONS})
"""The target datatypes of `cast`."""


def cast(term: Term, datatype: IRI) -> Literal:
    """Cast a term to a datatype by its constructor function (SPARQL 1.1, 17.5; F&O 19).

    >>> cast(Literal(" 1.90 "), IRI(XSD + "decimal")).lexical
    '1.9'
    >>> cast(Literal("1.9", IRI(XSD + "decimal")), IRI(XSD + "integer")).lexical
    '1'
    """
    if datatype == XSD_STRING:
        return Literal(_as_string(term))
    value, conversions = value_of(term), _CONVERSIONS.get(datatype, {})
    if type(value) is str and conversions:  # F&O 19.2: white space around a string is ignored
        result = value_of(Literal(value.strip(" \t\n\r"), datatype))
    else:
        convert = conversions.get(type(value))
        result = None if convert is None else convert(value)
    if result is not None:
        literal = Literal(literal_of(result).lexical, datatype)
        if value_of(literal) is not None:  # a derived integer type has a range
            return literal
    raise ExpressionError(f"{term} cannot be cast to {datatype}")


def _as_string(term: Term) -> str:
    if isinstance(term, BlankNode):
        raise ExpressionError("a blank node cannot be cast to a string")
    if isinstance(term, IRI):
        return term.value
    value = value_of(term)
    return term.lexical if value is None else literal_of(value).lexical
