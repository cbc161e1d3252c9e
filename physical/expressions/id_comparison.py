"""Comparisons of columns with constants and with each other, on the ids themselves.

Inlined integers are in the order of their ids, and inlined doubles too (`numbers`); so `?v > 22.5`
is one comparison of ids with that of the constant, and no number is looked at. Of IRIs, blank nodes
and strings, the ids tell which are equal. What is not as simple has no short cut here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from streamsparql.algebra.terms import XSD_STRING, Literal, Term
from streamsparql.algebra.xsd.numeric import Numeric, Single, double
from streamsparql.algebra.xsd.values import value_of
from streamsparql.physical.batch import UNBOUND, BoolArray, IntArray
from streamsparql.physical.dictionary.inline_ids import (
    DOUBLE,
    TAG_DOUBLE,
    TAG_INTEGER,
    TAG_OTHER,
    double_ids,
    inlined_numbers,
    integer_ids,
    tags,
)
from streamsparql.physical.dictionary.term_dictionary import LITERAL_SORT, TermDictionary
from streamsparql.physical.expressions.arithmetic import IS_ERROR, NOT_VECTORISED, TruthArray

MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""What a comparison is with its sides swapped."""

Compare = Callable[[IntArray, IntArray | int], BoolArray]
Threshold = tuple[Compare, int]


def against(symbol: str, ids: IntArray, term: Term, terms: TermDictionary) -> TruthArray | None:
    """`id symbol term` for each id, SLOW where an id does not tell; None where none does.

    >>> terms = TermDictionary()
    >>> ids = terms.of_integers(np.array([1, 2, 3]))
    >>> against(">", ids, terms.term_of(int(ids[1])), terms).tolist()
    [0, 0, 1]
    """
    if not len(ids):
        return np.zeros(0, np.int8)
    least, most = int(ids.min()), int(ids.max())
    if most < 0 and _tag(least) == _tag(most):
        found = _threshold(symbol, term, _tag(least))
        if found is not None:
            compare, bound = found
            return compare(ids, bound).view(np.int8)
    if least < 0 and (number := _number(term)) is not None:
        return _by_tag(symbol, ids, term, number)
    if symbol in ("=", "!="):
        return _equality(symbol, ids, term, terms, least, most)
    return None


def _by_tag(symbol: str, ids: IntArray, term: Term, number: Numeric) -> TruthArray:
    """Beside a number: the ids of each tag by themselves. Doubles that are written in an odd way
    are compared as doubles."""
    tagged = np.where(ids < 0, tags(ids), _UNTAGGED)
    odd = tagged == TAG_OTHER
    doubles = _threshold(symbol, term, TAG_DOUBLE)
    if doubles is not None and (odd | (tagged == TAG_DOUBLE)).all():
        compare, bound = doubles
        truth = compare(ids, bound).astype(np.int8)
        truth[odd] = _of_odd_doubles(symbol, ids[odd], number)
        return truth
    truth = np.full(len(ids), NOT_VECTORISED, np.int8)
    for tag in (TAG_INTEGER, TAG_DOUBLE, TAG_OTHER):
        here = np.flatnonzero(tagged == tag)
        if not len(here):
            continue
        if tag == TAG_OTHER:
            truth[here] = _of_odd_doubles(symbol, ids[here], number)
        elif (threshold := _threshold(symbol, term, tag)) is not None:
            compare, bound = threshold
            truth[here] = compare(ids[here], bound)
    return truth


def _of_odd_doubles(symbol: str, ids: IntArray, number: Numeric) -> TruthArray:
    """Doubles that are written in an odd way beside a number; SLOW for what is no double."""
    found = inlined_numbers(ids)
    compared = _COMPARE[symbol](found.values, double(number))
    truth: TruthArray = np.where(found.kinds == DOUBLE, compared, NOT_VECTORISED).astype(np.int8)
    return truth


_UNTAGGED = -1
"""Beside the tags: that of an entry of the dictionary, or of no term."""


def between(symbol: str, one: IntArray, other: IntArray) -> TruthArray | None:
    """`one symbol other` by row, where all are integers or all are doubles; None as above.

    >>> terms = TermDictionary()
    >>> ids = terms.of_integers(np.array([1, 2]))
    >>> between("<", ids, ids[::-1]).tolist()
    [1, 0]
    """
    if not len(one):
        return np.zeros(0, np.int8)
    ends = [int(end) for ids in (one, other) for end in (ids.min(), ids.max())]
    tag = _tag(ends[0])
    if max(ends) >= 0 or tag not in (TAG_INTEGER, TAG_DOUBLE) or any(_tag(e) != tag for e in ends):
        return None
    if tag == TAG_DOUBLE and ((one == _MINUS_ZERO).any() or (other == _MINUS_ZERO).any()):
        return None
    return _COMPARE[symbol](one, other).view(np.int8)


_MINUS_ZERO = int(double_ids(np.array([-0.0]))[0])
"""It equals another id, the one of zero."""


def among(ids: IntArray, options: Sequence[Term], terms: TermDictionary) -> TruthArray | None:
    """Whether each id equals one of the terms, all of which are known; None as above.

    >>> terms = TermDictionary()
    >>> from streamsparql.algebra.terms import IRI
    >>> ids = terms.ids_of([IRI("a"), IRI("b"), None])
    >>> among(ids, [IRI("a"), IRI("c")], terms).tolist()
    [1, 0, 2]
    """
    if not len(ids):
        return np.zeros(0, np.int8)
    least, most = int(ids.min()), int(ids.max())
    sought: list[int] = []
    if most < 0 and _tag(least) == _tag(most):
        for term in options:
            found = _threshold("=", term, _tag(least))
            if found is not None:
                sought.append(found[1])
            elif not _no_number(term):
                return None
        return _one_of(ids, sought).view(np.int8)
    if not all(map(_no_number, options)):
        return None
    if any(type(term) is Literal for term in options) and not _tell(ids, terms).all():
        return None
    truth = _one_of(ids, [terms.id_of(term) for term in options]).view(np.int8)
    truth[ids == UNBOUND] = IS_ERROR
    return truth


def _one_of(ids: IntArray, sought: Sequence[int]) -> BoolArray:
    if len(sought) > _FEW:
        return np.isin(ids, np.array(sought))
    found = np.zeros(len(ids), np.bool_)
    for one in sought:
        found |= ids == one
    return found


_FEW = 16


def _no_number(term: Term) -> bool:
    """Whether it is an IRI, a blank node or a string: no number equals it."""
    return type(term) is not Literal or term.datatype == XSD_STRING


def _tell(ids: IntArray, terms: TermDictionary) -> BoolArray:
    """Where an id tells whether a term equals a string: it is no literal, or has a value."""
    known: BoolArray = terms.plain_strings(ids) | (ids < 0) | (terms.sorts(ids) != LITERAL_SORT)
    return known


def _tag(term_id: int) -> int:
    return (term_id >> 61) & 3


def _equality(
    symbol: str, ids: IntArray, term: Term, terms: TermDictionary, least: int, most: int
) -> TruthArray | None:
    if not _no_number(term) or (type(term) is Literal and not _tell(ids, terms).all()):
        return None
    sought = terms.id_of(term)
    equal: BoolArray = ids == sought if symbol == "=" else ids != sought
    truth = equal.view(np.int8)
    if least <= UNBOUND <= most:
        truth[ids == UNBOUND] = IS_ERROR
    return truth


@lru_cache(maxsize=1 << 10)
def _threshold(symbol: str, term: Term, tag: int) -> Threshold | None:
    """How ids with a tag compare with a number, and with which id."""
    value = _number(term)
    if value is None:
        return None
    if tag == TAG_DOUBLE:
        bound = _double_bound(symbol, double(value))
    elif tag == TAG_INTEGER:
        bound = _integer_bound(symbol, value)
    else:
        return None
    return None if bound == UNBOUND else (_COMPARE[symbol], bound)


@lru_cache(maxsize=1 << 10)
def _number(term: Term) -> Numeric | None:
    """The number that a term is."""
    value = value_of(term)
    return value if isinstance(value, Numeric) and not isinstance(value, bool) else None


_COMPARE: dict[str, Callable[..., BoolArray]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
}


def _double_bound(symbol: str, number: float) -> int:
    if number == 0:  # there are two, and they are equal
        if symbol in ("=", "!="):
            return UNBOUND
        number = -0.0 if symbol in ("<", ">=") else 0.0
    return int(double_ids(np.array([number]))[0])


def _integer_bound(symbol: str, number: Numeric) -> int:
    """Beside integers, of a comparison with a number that need not be one."""
    if isinstance(number, float) and (isinstance(number, Single) or not abs(number) < 1 << 53):
        return UNBOUND  # integers are rounded before they are compared
    below, above = math.floor(number), math.ceil(number)
    if max(abs(below), abs(above)) >= 1 << 62 or (symbol in ("=", "!=") and below != above):
        return UNBOUND
    return int(integer_ids(np.array([above if symbol in ("<", ">=") else below]))[0])
