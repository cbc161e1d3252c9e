"""An outside oracle: pyoxigraph's answer to a query over the same static data, as a bag of rows."""

from __future__ import annotations

import io
from collections import Counter

import pyoxigraph as ox

from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term, Triple

Row = frozenset[tuple[str, object]]


def store(default: set[Triple], graphs: dict[IRI, set[Triple]] | None = None) -> ox.Store:
    """A store that holds these graphs."""
    quads = [(triple, "") for triple in default]
    quads += [(triple, f" {name}") for name, found in (graphs or {}).items() for triple in found]
    text = "".join(f"{triple}{graph} .\n" for triple, graph in quads)
    made = ox.Store()
    for name in graphs or {}:
        made.add_graph(ox.NamedNode(name.value))
    made.load(io.BytesIO(text.encode()), ox.RdfFormat.N_QUADS)
    return made


def answer(data: ox.Store, query: str) -> Counter[Row] | bool | set[Triple]:
    """A bag of rows, a boolean, or a set of triples, with our terms."""
    found = data.query(query)
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    if isinstance(found, ox.QueryTriples):
        return {Triple(*(_term(term) for term in triple)) for triple in found}
    names = [variable.value for variable in found.variables]
    return Counter(
        frozenset((n, key(_term(solution[n]))) for n in names if solution[n] is not None)
        for solution in found
    )


def _term(term: object) -> Term:
    match term:
        case ox.NamedNode(value=value):
            return IRI(value)
        case ox.BlankNode():
            return BlankNode("any")
        case ox.Literal() as literal:
            if literal.language:
                return Literal(literal.value, language=literal.language)
            return Literal(literal.value, IRI(literal.datatype.value))
    raise AssertionError(term)


def key(term: Term) -> object:
    """A term for comparison: derived numbers by value, blank nodes all alike."""
    from streamsparql.algebra.xsd.values import value_of

    if isinstance(term, BlankNode):
        return BlankNode("any")
    if isinstance(term, Literal):
        value = value_of(term)
        if value is not None and not isinstance(value, str):
            return term.datatype, value
    return term
