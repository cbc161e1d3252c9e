"""The literals of random data: few in a draw, so that rows meet, and such as plans tell apart.

Most laws of expressions that are wrong are right for small whole numbers. So a plan that compares
or calculates gets numbers that are equal in other forms, negative ones and fractions too; one that
looks into texts gets texts of several lengths and languages; one that takes times apart gets times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from streamsparql.algebra.terms import IRI, XSD, Literal, Term, integer

PLAIN: tuple[Term, ...] = (integer(0), integer(1), integer(2), integer(7), Literal("a"))
"""What does where nothing looks into literals."""

_Kind = tuple[Term, ...]


def _typed(name: str, *texts: str) -> _Kind:
    return tuple(Literal(text, IRI(XSD + name)) for text in texts)


NUMBERS: _Kind = (
    *(integer(1), integer(4), integer(-4)),
    *_typed("integer", "01"),
    *_typed("decimal", "1.0", "2.5", "-2.5"),
    *_typed("double", "1.0E0", "-1.5E0"),
)
_TEXTS: _Kind = (
    *map(Literal, ("", "a", "ab", "abc", "aab")),
    *(Literal(text, language=tag) for text, tag in (("a", "en"), ("a", "de"), ("ab", "en-GB"))),
)
_TIMES: _Kind = _typed(
    "dateTime",
    "2019-12-31T23:30:00Z",
    "2020-01-01T00:30:00+01:00",  # the same instant
    "2020-02-29T12:00:05Z",
    "2021-07-01T06:15:30.5Z",
)
_MIXED: _Kind = (
    *(integer(1), integer(-4), Literal("a"), Literal("a", language="en"), Literal("1")),
    *_typed("decimal", "1.0"),
    *_typed("double", "2.0E0"),
    *_typed("boolean", "true", "false"),
    *_TIMES[:1],
)

_ABOUT_TEXTS = frozenset(
    """STRLEN SUBSTR UCASE LCASE STRSTARTS STRENDS CONTAINS STRBEFORE STRAFTER ENCODE_FOR_URI CONCAT
    LANG LANGMATCHES REGEX REPLACE STRLANG STRDT STR GROUP_CONCAT""".split()
)
_ABOUT_TIMES = frozenset("YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ".split())
_YEARS, _PARTS, _LENGTHS = range(1000, 10_000), range(1, 13), range(1, 9)
_MOST_DIGITS = 10
_LONGEST = 13  # of the regular expressions that texts are made of


def kinds(functions: frozenset[str], constants: Iterable[Term]) -> tuple[_Kind, ...]:
    """The kinds of values that a draw may be about, by the functions and constants of the plans.

    >>> kinds(frozenset(), []) == (PLAIN,)
    True
    >>> [str(term) for kind in kinds(frozenset(["STRLEN"]), [integer(2)]) for term in kind][-3:]
    ['"aa"', '"aaa"', '"aaaa"']
    """
    found: list[_Kind] = [PLAIN]
    whole = [n for n in map(whole_number, constants) if n is not None]
    if functions - _ABOUT_TEXTS - _ABOUT_TIMES:
        found += [NUMBERS, _MIXED]
    if functions & _ABOUT_TIMES:
        found.append((*_TIMES, *_typed("dateTime", *_times(whole))))
    if functions & _ABOUT_TEXTS:
        longer = (Literal("a" * k) for n in whole if n in _LENGTHS for k in range(n, n + 3))
        found.append((*_TEXTS, *longer))
    return tuple(found)


def _times(numbers: Iterable[int]) -> Iterator[str]:
    """Times of which some part is one of the numbers, or beside it."""
    for number in numbers:
        for n in (number - 1, number, number + 1):
            if n in _YEARS:
                yield f"{n}-01-01T00:00:00Z"
            elif n in _PARTS:
                yield f"2020-{n:02}-{n:02}T{n:02}:{n:02}:{n:02}Z"


def about(term: Term) -> list[Term]:
    """A term, and those that a comparison with it could take for it or put beside it.

    >>> [literal.lexical for literal in about(Literal("ab+"))]
    ['ab+', 'ab+', 'ab+a', 'aab+', 'AB+', 'ab+', 'ab', 'b', 'aab', 'a', 'abb']
    """
    if not isinstance(term, Literal):
        return [term]
    if is_number(term):
        try:
            value = float(term.lexical)
        except ValueError:
            return [term]
        if value.is_integer() and abs(value) < 1e15:
            same = Literal(f"{int(value)}.0", IRI(XSD + "decimal"))
            return [term, term, integer(int(value) - 1), integer(int(value) + 1), same]
        decimals = (Literal(f"{value + k:.6f}", IRI(XSD + "decimal")) for k in (-0.5, 0.5))
        return [term, term, *decimals]
    if term.language is None and term.datatype.value == XSD + "string":
        changed = (f"{term.lexical}a", f"a{term.lexical}", term.lexical.swapcase())
        plain = map(Literal, (*changed, *_matched(term.lexical)))
        found = list(plain)
        return [term, term, *found[:3], Literal(term.lexical, language="en"), *found[3:]]
    return [term]


def whole_number(term: Term) -> int | None:
    """The number that a literal's digits are, of a few of them; None for any other term.

    >>> whole_number(integer(7)), whole_number(Literal("²")), whole_number(integer(-1))
    (7, None, None)
    """
    text = term.lexical if isinstance(term, Literal) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS else None


def is_number(term: Term) -> bool:
    """Whether it is a literal of one of the usual number types."""
    return isinstance(term, Literal) and term.datatype.value in _NUMERIC


_NUMERIC = frozenset(XSD + name for name in ("integer", "decimal", "double", "float"))


def _matched(pattern: str) -> Iterator[str]:
    """Texts that a regular expression may match or just miss, if the text is one."""
    letters = re.sub(r"[\^$.*+?()\[\]|\\]", "", pattern)
    if letters != pattern and len(letters) < _LONGEST:
        yield letters
        for k in range(len(letters)):
            yield letters[:k] + letters[k + 1 :]
            yield letters[:k] + letters[k] + letters[k:]
