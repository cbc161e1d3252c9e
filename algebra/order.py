"""The order of terms: what ORDER BY sorts by, extended until no two terms share a place.

SPARQL 1.1 (section 15.1) orders unbound, blank nodes, IRIs and literals, and two literals where `<`
does; the rest it leaves open. Here it is settled once, so that sorting gives the same rows on every
engine.
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
    """What ORDER BY (SPARQL 1.1, 15.1) compares: where two are the same, its next key decides.

    Unbound, blank nodes, IRIs, literals. Literals go by family: numbers; strings, where a
    language-tagged one follows the plain one; booleans; dateTime, date, time and the other moments,
    a missing time zone read as UTC; durations, by where they lead from 1696-09-01; NaN; literals
    without a value. Within a family they go by value, exactly: where `<` rounds to promote, it does
    not contradict that. So wherever `a < b` is true, `comparison_key(a) < comparison_key(b)`.

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
    """A total order in which no two terms share a place: `comparison_key`, then how it is written.

    >>> sorted([Literal("b"), IRI("z"), None, Literal("a")], key=order_key)[:2]
    [None, IRI(value='z')]
    """
    key = comparison_key(term)
    return (*key, term.datatype.value, term.lexical) if isinstance(term, Literal) else key
