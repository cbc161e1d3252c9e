"""Terms of any library as texts in N-Triples syntax, which the term dictionary encodes."""

from __future__ import annotations

from operator import countOf
from typing import Any

from streamsparql.algebra.terms import IRI, BlankNode, Literal
from streamsparql.errors import SourceError
from streamsparql.rdflib_terms import term

_OURS = (IRI, BlankNode, Literal)


def is_term(kind: type) -> bool:
    """Return whether values of a type are terms of some library, and not just strings.

    >>> is_term(IRI), is_term(str)
    (True, False)
    """
    return issubclass(kind, _OURS) or kind.__module__.partition(".")[0] in ("rdflib", "pyoxigraph")


def ntriples_text(value: Any) -> str:
    """Return a term in N-Triples syntax; "" for a value that is not a term.

    >>> ntriples_text(IRI("http://example.org/a")), ntriples_text("<b>"), ntriples_text(None)
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


def ntriples_texts(values: list[Any]) -> list[str]:
    """Return terms in N-Triples syntax; each distinct one is converted once."""
    if countOf(map(type, values), str) == len(values):
        return values
    memo: dict[tuple[type, Any], str] = {}
    texts = []
    for value in values:
        try:
            key = type(value), value
            text = memo.get(key)
            if text is None:
                text = memo[key] = ntriples_text(value)
        except TypeError:  # not hashable, so not a term
            text = ""
        texts.append(text)
    return texts
