"""Comparisons of columns with constants and with each other, by ids.

Inlined integers are in the order of their ids, and so are inlined doubles (inline_ids.py): `?v >
22.5` is a single comparison of ids with the id of the constant, without decoding numbers. IRIs,
blank nodes and strings are equal if their ids are. Other comparisons are left to arithmetic.py.
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
"""The comparisons with swapped sides."""

Compare = Callable[[IntArray, IntArray | int], BoolArray]
Threshold = tuple[Compare, int]


def against(symbol: str, ids: IntArray, term: Term, terms: TermDictionary) -> TruthArray | None:
    """Return `id symbol term` for each id, or None; NOT_VECTORISED for undecided ids.

    >>> terms = TermDictionary()
    >>> ids = terms.of_integers(np.array([1, 2, 3]))
    >>> against(">", ids, terms.term_of(int(ids[1])), terms).tolist()
    [0, 0, 1]
    """
    if not len(ids):
        return np.zeros(0, np.int8)
    least, most = int(ids.min()), int(ids.max())
    if most < 0 and _tag(least) == _tag(most):
        threshold = _threshold(symbol, term, _tag(least))
        if threshold is not None:
            compare, bound = threshold
            return compare(ids, bound).view(np.int8)
    if least < 0 and (number := _number(term)) is not None:
        return _by_tag(symbol, ids, term, number)
    if symbol in ("=", "!="):
        return _equality(symbol, ids, term, terms, least, most)
    return None


def _by_tag(symbol: str, ids: IntArray, term: Term, number: Numeric) -> TruthArray:
    """Compare ids with a number, tag by tag; doubles that are not canonical by their values."""
    tagged = np.where(ids < 0, tags(ids), _UNTAGGED)
    plain = tagged == TAG_OTHER
    doubles = _threshold(symbol, term, TAG_DOUBLE)
    if doubles is not None and (plain | (tagged == TAG_DOUBLE)).all():
        compare, bound = doubles
        truth = compare(ids, bound).astype(np.int8)
        truth[plain] = _of_plain_doubles(symbol, ids[plain], number)
        return truth
    truth = np.full(len(ids), NOT_VECTORISED, np.int8)
    for tag in (TAG_INTEGER, TAG_DOUBLE, TAG_OTHER):
        here = np.flatnonzero(tagged == tag)
        if not len(here):
            continue
        if tag == TAG_OTHER:
            truth[here] = _of_plain_doubles(symbol, ids[here], number)
        elif (threshold := _threshold(symbol, term, tag)) is not None:
            compare, bound = threshold
            truth[here] = compare(ids[here], bound)
    return truth


def _of_plain_doubles(symbol: str, ids: IntArray, number: Numeric) -> TruthArray:
    """Compare doubles that are not canonical with a number; NOT_VECTORISED for booleans."""
    values, kinds = inlined_numbers(ids)
    compared = _COMPARE[symbol](values, double(number))
    truth: TruthArray = np.where(kinds == DOUBLE, compared, NOT_VECTORISED).astype(np.int8)
    return truth


_UNTAGGED = -1
"""The tag of ids without one: entries of the dictionary and 0."""


def between(symbol: str, one: IntArray, other: IntArray) -> TruthArray | None:
    """Return `one symbol other` by row if all are integers or all are doubles, else None.

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
"""The id of -0.0, which equals 0.0 although their ids differ."""


def among(ids: IntArray, options: Sequence[Term], terms: TermDictionary) -> TruthArray | None:
    """Return whether each id equals one of the terms, or None if ids do not decide.

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
            threshold = _threshold("=", term, _tag(least))
            if threshold is not None:
                sought.append(threshold[1])
            elif not _not_a_number(term):
                return None
        return _one_of(ids, sought).view(np.int8)
    if not all(map(_not_a_number, options)):
        return None
    if any(type(term) is Literal for term in options) and not _decide(ids, terms).all():
        return None
    truth = _one_of(ids, [terms.id_of(term) for term in options]).view(np.int8)
    truth[ids == UNBOUND] = IS_ERROR
    return truth


def _one_of(ids: IntArray, sought: Sequence[int]) -> BoolArray:
    if len(sought) > _FEW:
        return np.isin(ids, np.array(sought))
    equal = np.zeros(len(ids), np.bool_)
    for one in sought:
        equal |= ids == one
    return equal


_FEW = 16


def _not_a_number(term: Term) -> bool:
    """Return whether a term is an IRI, a blank node or a string, which no number equals."""
    return type(term) is not Literal or term.datatype == XSD_STRING


def _decide(ids: IntArray, terms: TermDictionary) -> BoolArray:
    """Return where an id decides equality with a string: not a literal, or one with a value."""
    known: BoolArray = terms.plain_strings(ids) | (ids < 0) | (terms.sorts(ids) != LITERAL_SORT)
    return known


def _tag(term_id: int) -> int:
    return (term_id >> 61) & 3


def _equality(
    symbol: str, ids: IntArray, term: Term, terms: TermDictionary, least: int, most: int
) -> TruthArray | None:
    if not _not_a_number(term) or (type(term) is Literal and not _decide(ids, terms).all()):
        return None
    sought = terms.id_of(term)
    equal: BoolArray = ids == sought if symbol == "=" else ids != sought
    truth = equal.view(np.int8)
    if least <= UNBOUND <= most:
        truth[ids == UNBOUND] = IS_ERROR
    return truth


@lru_cache(maxsize=1 << 10)
def _threshold(symbol: str, term: Term, tag: int) -> Threshold | None:
    """Return the operation and the id that compare ids of a tag with a number, or None."""
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
    """Return the number that a term denotes, or None."""
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
    if number == 0:  # 0.0 and -0.0 are equal
        if symbol in ("=", "!="):
            return UNBOUND
        number = -0.0 if symbol in ("<", ">=") else 0.0
    return int(double_ids(np.array([number]))[0])


def _integer_bound(symbol: str, number: Numeric) -> int:
    """Return the id with which integers are compared, for any number."""
    if isinstance(number, float) and (isinstance(number, Single) or not abs(number) < 1 << 53):
        return UNBOUND  # integers are rounded before they are compared
    below, above = math.floor(number), math.ceil(number)
    if max(abs(below), abs(above)) >= 1 << 62 or (symbol in ("=", "!=") and below != above):
        return UNBOUND
    return int(integer_ids(np.array([above if symbol in ("<", ">=") else below]))[0])
