"""The conversion of rdflib terms and N-Triples strings to terms of the algebra, and back.

The package uses the terms of `streamsparql.algebra.terms`, which keep their lexical form. Users
pass rdflib terms or strings in N-Triples syntax. rdflib is imported only to construct its terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term
from streamsparql.errors import EngineError, SourceError

if TYPE_CHECKING:
    import rdflib.query
    from rdflib.term import Identifier


def term(value: Any, source: str = "") -> Term:
    """Convert a term of the algebra or of rdflib, or a string in N-Triples syntax.

    The labels of blank nodes are scoped to their source: `source` becomes a prefix of the label.

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
    if isinstance(value, str) and (parsed := parse_term(value, source)) is not None:
        return parsed
    raise SourceError(f"not an RDF term: {value!r}; pass a term of rdflib or an N-Triples string")


def to_rdflib(value: Term) -> Identifier:
    """Convert a term to one of rdflib, with the same lexical form.

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


def rdflib_result(form: str, names: Sequence[str], snapshot: Any) -> rdflib.query.Result:
    """Return a snapshot as a result of rdflib.

    >>> rdflib_result("ask", ["answer"], True).askAnswer
    True
    """
    from rdflib import Variable
    from rdflib.query import Result

    result = Result(form.upper())
    if form == "select":
        result.vars = [Variable(name) for name in names]
        bound = [{k: v for k, v in row.items() if v is not None} for row in snapshot]
        result.bindings = [{Variable(k): v for k, v in row.items()} for row in bound]
    elif form == "ask":
        if snapshot is None:
            raise EngineError("ASK has no answer at this instant, which is outside of the horizon")
        result.askAnswer = snapshot
    else:
        result.graph = snapshot
    return result
