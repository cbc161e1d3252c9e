"""The aggregates of SPARQL 1.1 over a bag of terms (section 18.5.1).

Results depend on the bag alone, not on the order of its terms: a sum is exact and rounded once,
GROUP_CONCAT concatenates in ORDER BY order, SAMPLE returns the first term in that order. The
engine's incremental aggregates must agree with these definitions, which compute from scratch.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.functions import string_value
from streamsparql.algebra.order import order_key
from streamsparql.algebra.terms import Literal, Term, integer
from streamsparql.algebra.xsd.literal_operators import divide
from streamsparql.algebra.xsd.numeric import EXACT, NUMERIC_TYPES
from streamsparql.algebra.xsd.values import literal_of, numeric_value
from streamsparql.limits import check_string

Bag = list[tuple[Term | None, int]]
"""Terms with their multiplicities; None for a row whose expression raised an error."""


def aggregate(name: str, values: Bag, distinct: bool = False, separator: str | None = None) -> Term:
    """Evaluate an aggregate over the values of an expression in a group.

    `name` is in upper case. COUNT(*) is COUNT of a term that is never None. The default separator
    is a space.

    >>> bag: Bag = [(integer(2), 3), (integer(1), 1)]
    >>> aggregate("SUM", bag).lexical, aggregate("SUM", bag, distinct=True).lexical
    ('7', '3')
    >>> aggregate("GROUP_CONCAT", bag, separator="+").lexical
    '1+2+2+2'
    """
    if distinct:
        values = [(term, 1) for term in dict.fromkeys(term for term, _ in values)]
    return _AGGREGATES[name](values, " " if separator is None else separator)


def _count(bag: Bag, separator: str) -> Term:
    return integer(sum(n for term, n in bag if term is not None))


_RANK = {kind: rank for rank, kind in enumerate(NUMERIC_TYPES)}


def _sum(bag: Bag, separator: str) -> Literal:
    """Promote all numbers to the widest type that occurs, add exactly, and round the total."""
    numbers = [(numeric_value(term), n) for term, n in _without_errors(bag)]
    widest = max((type(number) for number, _ in numbers), key=_RANK.__getitem__, default=int)
    promote = NUMERIC_TYPES[widest]
    total = Decimal(0)
    for number, n in numbers:
        total = EXACT.fma(Decimal(promote(number)), Decimal(n), total)
    return literal_of(promote(total))


def _average(bag: Bag, separator: str) -> Term:
    total = _sum(bag, separator)
    return divide(total, _count(bag, separator)) if bag else total


def _minimum(bag: Bag, separator: str) -> Term:
    return min(_nonempty(_without_errors(bag)), key=order_key)


def _maximum(bag: Bag, separator: str) -> Term:
    return max(_nonempty(_without_errors(bag)), key=order_key)


def _sample(bag: Bag, separator: str) -> Term:
    return min(_nonempty([(term, n) for term, n in bag if term is not None]), key=order_key)


def _concatenation(bag: Bag, separator: str) -> Term:
    ordered = sorted(_without_errors(bag), key=lambda item: order_key(item[0]))
    parts = [(string_value(term) + separator, n) for term, n in ordered]
    check_string(sum(len(part) * n for part, n in parts) - len(separator))
    text = "".join(part * n for part, n in parts)
    return Literal(text[: len(text) - len(separator)] if parts else "")


def _without_errors(bag: Bag) -> list[tuple[Term, int]]:
    """Return the bag; raise if a value is an error (W3C test agg-err-01)."""
    terms = [(term, n) for term, n in bag if term is not None]
    if len(terms) < len(bag):
        raise ExpressionError("the aggregated expression is an error for some row")
    return terms


def _nonempty(terms: list[tuple[Term, int]]) -> list[Term]:
    if not terms:
        raise ExpressionError("MIN, MAX and SAMPLE need at least one value")
    return [term for term, _ in terms]


_AGGREGATES: dict[str, Callable[[Bag, str], Term]] = {
    "COUNT": _count,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _minimum,
    "MAX": _maximum,
    "SAMPLE": _sample,
    "GROUP_CONCAT": _concatenation,
}
