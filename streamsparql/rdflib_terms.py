"""Terms at the border: rdflib's and N-Triples' to ours, and back.

Inside, terms are those of `streamsparql.algebra.terms`, which keep their lexical form. Users have
rdflib terms, or strings in N-Triples syntax; rdflib is imported only when one of its terms is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term
from streamsparql.errors import SourceError

if TYPE_CHECKING:
    from rdflib.term import Identifier


def term(value: Any, source: str = "") -> Term:
    """Our term for one of ours, one of rdflib's, or a string in N-Triples syntax.

    A blank node's label is scoped to its source: `source` becomes a part of it.

    >>> print(term("<http://example.org/a>"), term('"1"^^<http://www.w3.org/2001/XMLSchema#integer>'))
    <http://example.org/a> "1"^^<http://www.w3.org/2001/XMLSchema#integer>
    """
    if isinstance(value, BlankNode):
        return BlankNode(source + value.label)
    if isinstance(value, IRI | Literal):
        return value
    kind = type(value).__name__
    if kind == "URIRef":
        return IRI(str(value))
    if kind == "BNode":
        return BlankNode(source + str(value))
    if kind == "Literal":
        datatype = IRI(str(value.datatype)) if value.datatype else None
        if value.language:
            return Literal(str(value), language=value.language)
        return Literal(str(value), datatype) if datatype else Literal(str(value))
    if isinstance(value, str) and (found := parse_term(value, source)) is not None:
        return found
    raise SourceError(f"{value!r} is no RDF term: give rdflib's, or a string as in N-Triples")


def to_rdflib(value: Term) -> Identifier:
    """rdflib's term for one of ours, its lexical form kept.

    >>> to_rdflib(IRI("http://example.org/a"))
    rdflib.term.URIRef('http://example.org/a')
    """
    import rdflib

    if isinstance(value, IRI):
        return rdflib.URIRef(value.value)
    if isinstance(value, BlankNode):
        return rdflib.BNode(value.label)
    plain = value.datatype.value.endswith(("#string", "#langString"))
    return rdflib.Literal(
        value.lexical,
        lang=value.language,
        datatype=None if plain else rdflib.URIRef(value.datatype.value),
        normalize=False,
    )
