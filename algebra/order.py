"""The order of terms: ORDER BY's comparison, and its extension to a total order.

SPARQL 1.1 (section 15.1) orders unbound before blank nodes, IRIs and literals, and literals that
`<` compares; the rest is implementation-defined. This module defines it for all terms, so that all
engines sort rows alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term
from streamsparql.algebra.xsd.durations import DURATIONS, length_key
from streamsparql.algebra.xsd.moments import MOMENTS
from streamsparql.algebra.xsd.numeric import NUMERIC_TYPES
from streamsparql.algebra.xsd.values import value_of

SortKey = tuple[int | float | str | Decimal, ...]

_FAMILIES: list[tuple[Iterable[type], Callable[[Any], Any]]] = [
    (NUMERIC_TYPES, lambda value: value),
    ((str,), lambda value: value),
    ((bool,), int),
    *(((kind,), lambda value: value.instant) for kind in MOMENTS),
    (DURATIONS, length_key),
]
_ORDER = {kind: (rank, key) for rank, (kinds, key) in enumerate(_FAMILIES) for kind in kinds}
_STRINGS, _NAN, _NO_VALUE = _ORDER[str][0], len(_FAMILIES), len(_FAMILIES) + 1


def comparison_key(term: Term | None) -> SortKey:
    """Return the key by which ORDER BY compares a term (SPARQL 1.1, 15.1); equal keys are ties.

    The order is unbound, blank nodes, IRIs, literals. Literals sort by family: numbers; strings, a
    plain one before a language-tagged one; booleans; dateTime, date, time and the other moments,
    with a missing time zone read as UTC; durations, by the instant that they reach from 1696-09-01;
    NaN; literals without a value. Within a family they sort by exact value. That is consistent with
    `<`, although `<` rounds for promotion: if `a < b`, then `comparison_key(a) <
    comparison_key(b)`.

    >>> from streamsparql.algebra.terms import XSD
    >>> byte, integer = Literal("01", IRI(XSD + "byte")), Literal("1", IRI(XSD + "integer"))
    >>> comparison_key(byte) == comparison_key(integer)
    True
    """
    if term is None:
        return (0,)
    if isinstance(term, BlankNode):
        return (1, term.label)
    if isinstance(term, IRI):
        return (2, term.value)
    value = value_of(term)
    if type(value) is str or term.language is not None:
        return (3, _STRINGS, term.lexical, term.language or "")
    if value is None:
        return (3, _NO_VALUE, term.datatype.value, term.lexical)
    if value != value:
        return (3, _NAN)
    rank, key = _ORDER[type(value)]
    return (3, rank, key(value))


def order_key(term: Term | None) -> SortKey:
    """Return the key of a total order of terms: `comparison_key`, then datatype and lexical form.

    >>> sorted([Literal("b"), IRI("z"), None, Literal("a")], key=order_key)[:2]
    [None, IRI(value='z')]
    """
    key = comparison_key(term)
    return (*key, term.datatype.value, term.lexical) if isinstance(term, Literal) else key
