"""The literals of random data: few in an input, so that rows join, and of the relevant types.

Most wrong laws of expressions are right for small whole numbers. So plans with comparisons or
arithmetic get negative numbers, fractions, and equal numbers in several forms; plans with string
functions get strings of several lengths and languages; plans with functions of time get times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from streamsparql.algebra.terms import IRI, XSD, Literal, Term, integer

PLAIN_VALUES: tuple[Term, ...] = (integer(0), integer(1), integer(2), integer(7), Literal("a"))
"""The values for plans without functions of literals."""

_Pool = tuple[Term, ...]


def _typed(name: str, *lexical_forms: str) -> _Pool:
    return tuple(Literal(form, IRI(XSD + name)) for form in lexical_forms)


NUMBERS: _Pool = (
    *(integer(1), integer(4), integer(-4)),
    *_typed("integer", "01"),
    *_typed("decimal", "1.0", "2.5", "-2.5"),
    *_typed("double", "1.0E0", "-1.5E0"),
)
_STRINGS: _Pool = (
    *map(Literal, ("", "a", "ab", "abc", "aab")),
    *(Literal(string, language=tag) for string, tag in (("a", "en"), ("a", "de"), ("ab", "en-GB"))),
)
_TIMES: _Pool = _typed(
    "dateTime",
    "2019-12-31T23:30:00Z",
    "2020-01-01T00:30:00+01:00",  # the same instant
    "2020-02-29T12:00:05Z",
    "2021-07-01T06:15:30.5Z",
)
_MIXED: _Pool = (
    *(integer(1), integer(-4), Literal("a"), Literal("a", language="en"), Literal("1")),
    *_typed("decimal", "1.0"),
    *_typed("double", "2.0E0"),
    *_typed("boolean", "true", "false"),
    *_TIMES[:1],
)

_STRING_FUNCTIONS = frozenset(
    """STRLEN SUBSTR UCASE LCASE STRSTARTS STRENDS CONTAINS STRBEFORE STRAFTER ENCODE_FOR_URI CONCAT
    LANG LANGMATCHES REGEX REPLACE STRLANG STRDT STR GROUP_CONCAT""".split()
)
_TIME_FUNCTIONS = frozenset("YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ".split())
_YEARS, _PARTS, _LENGTHS = range(1000, 10_000), range(1, 13), range(1, 9)
_MAX_DIGITS = 10
_MAX_REGEX_LENGTH = 13


def value_pools(functions: frozenset[str], constants: Iterable[Term]) -> tuple[_Pool, ...]:
    """Return the pools of values for plans with these functions and constants, one for an input.

    >>> value_pools(frozenset(), []) == (PLAIN_VALUES,)
    True
    >>> [str(x) for pool in value_pools(frozenset(["STRLEN"]), [integer(2)]) for x in pool][-3:]
    ['"aa"', '"aaa"', '"aaaa"']
    """
    pools: list[_Pool] = [PLAIN_VALUES]
    whole = [n for n in map(small_whole_number, constants) if n is not None]
    if functions - _STRING_FUNCTIONS - _TIME_FUNCTIONS:
        pools += [NUMBERS, _MIXED]
    if functions & _TIME_FUNCTIONS:
        pools.append((*_TIMES, *_typed("dateTime", *_times(whole))))
    if functions & _STRING_FUNCTIONS:
        longer = (Literal("a" * k) for n in whole if n in _LENGTHS for k in range(n, n + 3))
        pools.append((*_STRINGS, *longer))
    return tuple(pools)


def _times(numbers: Iterable[int]) -> Iterator[str]:
    """Yield times with a year, or parts, equal to one of the numbers or next to it."""
    for number in numbers:
        for n in (number - 1, number, number + 1):
            if n in _YEARS:
                yield f"{n}-01-01T00:00:00Z"
            elif n in _PARTS:
                yield f"2020-{n:02}-{n:02}T{n:02}:{n:02}:{n:02}Z"


def variants_of(term: Term) -> list[Term]:
    """Return a term, with values just below and above it, equal to it, or that it matches.

    >>> [literal.lexical for literal in variants_of(Literal("ab+"))]
    ['ab+', 'ab+', 'ab+a', 'aab+', 'AB+', 'ab+', 'ab', 'b', 'aab', 'a', 'abb']
    """
    if not isinstance(term, Literal):
        return [term]
    if is_number_literal(term):
        try:
            value = float(term.lexical)
        except ValueError:
            return [term]
        if value.is_integer() and abs(value) < 1e15:
            equal = Literal(f"{int(value)}.0", IRI(XSD + "decimal"))
            return [term, term, integer(int(value) - 1), integer(int(value) + 1), equal]
        decimals = (Literal(f"{value + k:.6f}", IRI(XSD + "decimal")) for k in (-0.5, 0.5))
        return [term, term, *decimals]
    if term.language is None and term.datatype.value == XSD + "string":
        changed = (f"{term.lexical}a", f"a{term.lexical}", term.lexical.swapcase())
        strings = [*map(Literal, (*changed, *_near_matches(term.lexical)))]
        return [term, term, *strings[:3], Literal(term.lexical, language="en"), *strings[3:]]
    return [term]


def small_whole_number(term: Term) -> int | None:
    """Return the number of a literal that consists of a few digits; None for any other term.

    >>> [small_whole_number(term) for term in (integer(7), Literal("²"), integer(-1))]
    [7, None, None]
    """
    text = term.lexical if isinstance(term, Literal) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _MAX_DIGITS else None


def is_number_literal(term: Term) -> bool:
    """Return whether a term is an xsd:integer, decimal, double or float."""
    return isinstance(term, Literal) and term.datatype.value in _NUMBER_TYPES


_NUMBER_TYPES = frozenset(XSD + name for name in ("integer", "decimal", "double", "float"))


def _near_matches(pattern: str) -> Iterator[str]:
    """Yield strings that a regular expression may match or just fail to match."""
    letters = re.sub(r"[\^$.*+?()\[\]|\\]", "", pattern)
    if letters != pattern and len(letters) < _MAX_REGEX_LENGTH:
        yield letters
        for k in range(len(letters)):
            yield letters[:k] + letters[k + 1 :]
            yield letters[:k] + letters[k] + letters[k:]
