"""The term of the data that a term of a query probably means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from streamsparql.algebra.terms import IRI, Literal, Term

_COMPARED = 2_000
"""The number of terms that are compared by edit distance."""


def nearest(term: Term, seen: Iterable[Term]) -> Term | None:
    """Return the term that is most like another one; None if none is like it.

    IRIs may differ in the scheme, in case, in `#` and `/`, in the namespace, or by a few letters.
    Literals may differ in the datatype, the language, in case, or by a few letters.

    >>> names = [IRI("http://e.org/heat#value"), IRI("http://e.org/heat#door")]
    >>> for text in ("https://e.org/heat/Value", "http://e.org/heat#vlue"):
    ...     print(nearest(IRI(text), names))
    <http://e.org/heat#value>
    <http://e.org/heat#value>
    >>> print(nearest(Literal("20"), [IRI("20"), Literal("20", IRI("http://e.org/int"))]))
    "20"^^<http://e.org/int>
    """
    others = [other for other in seen if other != term]
    if isinstance(term, IRI):
        return _nearest_iri(term, [o for o in others if isinstance(o, IRI)]) or _same_text(
            _local(term.value), others
        )
    if isinstance(term, Literal):
        return _nearest_literal(term, others)
    return None


def _nearest_iri(term: IRI, others: list[IRI]) -> IRI | None:
    for key in (_plain, lambda iri: _local(iri).casefold()):
        same = [other for other in others if key(other.value) == key(term.value)]
        if same:
            return _closest(term.value, same)
    home = _namespace(term.value)
    at_home = [other for other in others if _namespace(other.value) == home]
    for group, cutoff in ((at_home, 0.6), (others, 0.75)):
        by_name = {_local(other.value).casefold(): other for other in group[:_COMPARED]}
        if close := get_close_matches(_local(term.value).casefold(), by_name, 1, cutoff):
            return by_name[close[0]]
    return None


def _closest(text: str, others: list[IRI]) -> IRI:
    by_text = {other.value: other for other in others}
    return by_text[(get_close_matches(text, by_text, 1, 0.0) or [others[0].value])[0]]


def _plain(iri: str) -> str:
    """Return an IRI without what is often written in another way."""
    return re.sub(r"^https?://(www\.)?", "", iri.casefold()).replace("#", "/").rstrip("/")


def _local(iri: str) -> str:
    """Return the last part of an IRI.

    >>> _local("http://e.org/heat#value"), _local("http://e.org/heat/")
    ('value', 'heat')
    """
    return re.split(r"[/#:]", iri.rstrip("/#"))[-1]


def _namespace(iri: str) -> str:
    return iri[: len(iri.rstrip("/#")) - len(_local(iri))]


def _nearest_literal(term: Literal, others: list[Term]) -> Term | None:
    same = _same_text(term.lexical, others)
    if same is not None:
        return same
    literals = [other for other in others if isinstance(other, Literal)]
    if (value := _number(term)) is not None:
        return next((other for other in literals if _number(other) == value), None)
    by_text = {other.lexical.casefold(): other for other in literals[:_COMPARED]}
    close = get_close_matches(term.lexical.casefold(), by_text, 1, 0.7)
    return by_text[close[0]] if close else None


def _same_text(text: str, others: list[Term]) -> Term | None:
    """Return a literal with this text, or an IRI that ends with it."""
    for other in others:
        if isinstance(other, Literal) and other.lexical.strip().casefold() == text.casefold():
            return other
    ends = (
        o for o in others if isinstance(o, IRI) and _local(o.value).casefold() == text.casefold()
    )
    return next(ends, None)


def _number(term: Literal) -> float | None:
    try:
        return float(term.lexical)
    except ValueError:
        return None
