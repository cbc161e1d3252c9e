"""The operators of SPARQL on literals: `=`, `<`, arithmetic, and effective boolean values.

Each operator is a table from the types of its operands to a Python function: SPARQL 1.1's operator
mapping (section 17.3), extended by that of XPath (F&O), as 17.3.1 allows. A pair of types that is
not in the table is a type error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import product
from typing import Any

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.terms import IRI, XSD, Literal, Term
from streamsparql.algebra.xsd.durations import (
    DURATIONS,
    add_durations,
    divide_duration,
    is_shorter,
    multiply_duration,
    subtract_durations,
)
from streamsparql.algebra.xsd.moments import (
    MOMENTS,
    Date,
    DateTime,
    Time,
    moment_minus_duration,
    moment_plus_duration,
    seconds_between,
    subtract_moments,
)
from streamsparql.algebra.xsd.numeric import (
    EXACT,
    INTEGERS,
    NUMERIC_TYPES,
    Numeric,
    Single,
    ieee_quotient,
    quotient,
)
from streamsparql.algebra.xsd.values import literal_of, numeric_value, value_of

# -- Tables by type -----------------------------------------------------------------------------

_Operation = Callable[[Any, Any], Any]
_Table = dict[tuple[type, type], _Operation]


def _numeric(*by_type: _Operation) -> _Table:
    """Return the table of an operator on numbers, which promotes operands to the wider type."""

    promotions = list(NUMERIC_TYPES.values())

    def promoted(wide: int) -> _Operation:
        apply, to = by_type[wide], promotions[wide]
        return lambda x, y: apply(to(x), to(y))

    pairs = product(enumerate(NUMERIC_TYPES), repeat=2)
    return {
        (left, right): by_type[i] if i == j else promoted(max(i, j))
        for (i, left), (j, right) in pairs
    }


def _to_single(apply: _Operation) -> _Operation:
    # A double has more than twice the digits of a single, so rounding twice equals rounding once.
    return lambda x, y: Single.nearest(apply(x, y))


def _pairs(lefts: Iterable[type], rights: Iterable[type], apply: _Operation) -> _Table:
    return dict.fromkeys(product(lefts, rights), apply)


_EQUAL: _Table = {
    **_numeric(*[operator.eq] * 4),
    (str, str): operator.eq,
    (bool, bool): operator.eq,
    **{(kind, kind): lambda x, y: not seconds_between(x, y) for kind in MOMENTS},
    **_pairs(DURATIONS, DURATIONS, lambda x, y: (x.months, x.seconds) == (y.months, y.seconds)),
}
_LESS: _Table = {
    **_numeric(*[operator.lt] * 4),
    (str, str): operator.lt,
    (bool, bool): operator.lt,
    **{(kind, kind): lambda x, y: seconds_between(x, y) > 0 for kind in MOMENTS},
    **_pairs(DURATIONS, DURATIONS, is_shorter),
}
_ADD: _Table = {
    **_numeric(operator.add, EXACT.add, _to_single(operator.add), operator.add),
    **_pairs((DateTime, Date, Time), DURATIONS, moment_plus_duration),
    **_pairs(DURATIONS, (DateTime, Date, Time), lambda x, y: moment_plus_duration(y, x)),
    **_pairs(DURATIONS, DURATIONS, add_durations),
}
_SUBTRACT: _Table = {
    **_numeric(operator.sub, EXACT.subtract, _to_single(operator.sub), operator.sub),
    **_pairs((DateTime, Date, Time), DURATIONS, moment_minus_duration),
    **{(kind, kind): subtract_moments for kind in (DateTime, Date, Time)},
    **_pairs(DURATIONS, DURATIONS, subtract_durations),
}
_MULTIPLY: _Table = {
    **_numeric(operator.mul, EXACT.multiply, _to_single(operator.mul), operator.mul),
    **_pairs(DURATIONS, NUMERIC_TYPES, multiply_duration),
    **_pairs(NUMERIC_TYPES, DURATIONS, lambda x, y: multiply_duration(y, x)),
}
_DIVIDE: _Table = {
    **_numeric(quotient, quotient, _to_single(ieee_quotient), ieee_quotient),
    **_pairs(DURATIONS, NUMERIC_TYPES, divide_duration),
}
_NEGATE: dict[type, Callable[[Any], Numeric]] = {
    int: operator.neg,
    Decimal: Decimal.copy_negate,
    Single: lambda value: Single(-value),
    float: operator.neg,
}


# -- The operators ------------------------------------------------------------------------------


def _apply(table: _Table, symbol: str, a: Term, b: Term) -> Any:
    x, y = value_of(a), value_of(b)
    operation = table.get((type(x), type(y)))
    if operation is None:
        raise ExpressionError(f"{a} {symbol} {b} is not defined")
    return operation(x, y)


def equal(a: Term, b: Term) -> bool:
    """Return whether `a = b` (SPARQL 1.1, 17.3 and 17.4.1.7).

    Literals of known datatypes with disjoint value spaces differ. A literal without a value equals
    itself and differs from language-tagged strings; all other comparisons with it are errors.

    >>> equal(Literal("1", IRI(XSD + "integer")), Literal("1.0", IRI(XSD + "decimal")))
    True
    """
    x, y = value_of(a), value_of(b)
    if x is None or y is None:
        return _same_term(a, b)
    operation = _EQUAL.get((type(x), type(y)))
    return operation is not None and bool(operation(x, y))


def _same_term(a: Term, b: Term) -> bool:
    if a == b:
        return True
    if type(a) is Literal and type(b) is Literal and a.language is None and b.language is None:
        raise ExpressionError(f"cannot decide whether {a} equals {b}: unknown or ill-typed literal")
    return False


def less(a: Term, b: Term) -> bool:
    """Return whether `a < b` (SPARQL 1.1, 17.3), for all datatypes that XSD orders.

    >>> less(Literal("P1D", IRI(XSD + "dayTimeDuration")), Literal("P1M", IRI(XSD + "duration")))
    True
    """
    return bool(_apply(_LESS, "<", a, b))


def add(a: Term, b: Term) -> Literal:
    """Return `a + b` for numbers, for a moment and a duration, and for two durations.

    >>> add(Literal("2020-01-31", IRI(XSD + "date")), Literal("P1M", IRI(XSD + "duration"))).lexical
    '2020-02-29'
    """
    return literal_of(_apply(_ADD, "+", a, b))


def subtract(a: Term, b: Term) -> Literal:
    """Return `a - b` for numbers, two moments, a moment and a duration, and two durations.

    >>> subtract(Literal("2020-03-01", IRI(XSD + "date")), Literal("2020-02-01", IRI(XSD + "date")))
    ... # doctest: +ELLIPSIS
    Literal(lexical='P29D', datatype=...#dayTimeDuration'), language=None)
    """
    return literal_of(_apply(_SUBTRACT, "-", a, b))


def multiply(a: Term, b: Term) -> Literal:
    """Return `a * b` for numbers, and for a duration and a number.

    >>> multiply(Literal("1.10", IRI(XSD + "decimal")), Literal("3", IRI(XSD + "integer"))).lexical
    '3.3'
    """
    return literal_of(_apply(_MULTIPLY, "*", a, b))


def divide(a: Term, b: Term) -> Literal:
    """Return `a / b` for numbers, and for a duration and a number; a decimal for two integers.

    >>> divide(Literal("1", IRI(XSD + "integer")), Literal("8", IRI(XSD + "integer"))).lexical
    '0.125'
    """
    return literal_of(_apply(_DIVIDE, "/", a, b))


def negate(a: Term) -> Literal:
    """Return `-a` for a number.

    >>> negate(Literal("1", IRI(XSD + "integer"))).lexical
    '-1'
    """
    return literal_of(_NEGATE[type(number := numeric_value(a))](number))


def unary_plus(a: Term) -> Literal:
    """Return `+a` for a number.

    >>> unary_plus(Literal("01", IRI(XSD + "byte"))).lexical
    '1'
    """
    return literal_of(numeric_value(a))


# -- Conditions ---------------------------------------------------------------------------------

TRUTH: dict[type, Callable[[Any], bool]] = {
    bool: bool,
    str: bool,
    **dict.fromkeys(NUMERIC_TYPES, lambda value: value == value and value != 0),  # NaN is false
}
"""The effective boolean value, by type; for the other types it is an error."""

_FALSE_IF_ILL_TYPED = {
    IRI(XSD + name) for name in (*INTEGERS, "boolean", "decimal", "float", "double")
}


def effective_boolean_value(term: Term) -> bool:
    """Return the effective boolean value of a term (SPARQL 1.1, 17.2.2).

    >>> effective_boolean_value(Literal("")), effective_boolean_value(Literal("no"))
    (False, True)
    """
    value = value_of(term)
    truth = TRUTH.get(type(value))
    if truth is not None:
        return truth(value)
    if type(term) is Literal:
        if term.language is not None:
            return term.lexical != ""
        if value is None and term.datatype in _FALSE_IF_ILL_TYPED:
            return False
    raise ExpressionError(f"{term} has no effective boolean value")
