"""Terms of any library as texts in N-Triples syntax: what the term dictionary reads."""

from __future__ import annotations

from operator import countOf
from typing import Any

from streamsparql.algebra.terms import IRI, BlankNode, Literal
from streamsparql.errors import SourceError
from streamsparql.rdflib_terms import term

_OURS = (IRI, BlankNode, Literal)


def is_term(kind: type) -> bool:
    """Whether values of a type are terms of some library, and not just strings.

    >>> is_term(IRI), is_term(str)
    (True, False)
    """
    return issubclass(kind, _OURS) or kind.__module__.partition(".")[0] in ("rdflib", "pyoxigraph")


def text_of(value: Any) -> str:
    """A term in N-Triples syntax; "" for what is no term.

    >>> text_of(IRI("http://example.org/a")), text_of("<b>"), text_of(None)
    ('<http://example.org/a>', '<b>', '')
    """
    if isinstance(value, _OURS):
        return str(value)
    library = type(value).__module__.partition(".")[0]
    if library == "rdflib":
        try:
            return str(term(value))
        except SourceError:
            return ""
    if isinstance(value, str):
        return str.__str__(value)
    return str(value) if library == "pyoxigraph" else ""


def texts_of(values: list[Any]) -> list[str]:
    """Terms in N-Triples syntax; each distinct one is written once."""
    if countOf(map(type, values), str) == len(values):
        return values
    memo: dict[tuple[type, Any], str] = {}
    found = []
    for value in values:
        try:
            key = type(value), value
            text = memo.get(key)
            if text is None:
                text = memo[key] = text_of(value)
        except TypeError:  # not hashable, so no term of anyone
            text = ""
        found.append(text)
    return found
