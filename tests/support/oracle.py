"""An independent oracle: pyoxigraph's result over the same static data, as a multiset of rows."""

from __future__ import annotations

import io
from collections import Counter

import pyoxigraph as ox

from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term, Triple

Row = frozenset[tuple[str, object]]


def store(default: set[Triple], graphs: dict[IRI, set[Triple]] | None = None) -> ox.Store:
    """Return a store with a default graph and named graphs."""
    quads = [(triple, "") for triple in default]
    quads += [(triple, f" {name}") for name, named in (graphs or {}).items() for triple in named]
    text = "".join(f"{triple}{graph} .\n" for triple, graph in quads)
    loaded = ox.Store()
    for name in graphs or {}:
        loaded.add_graph(ox.NamedNode(name.value))
    loaded.load(io.BytesIO(text.encode()), ox.RdfFormat.N_QUADS)
    return loaded


def answer(data: ox.Store, query: str) -> Counter[Row] | bool | set[Triple]:
    """Return a multiset of rows, a boolean, or a set of triples, with our terms."""
    result = data.query(query)
    if isinstance(result, ox.QueryBoolean):
        return bool(result)
    if isinstance(result, ox.QueryTriples):
        return {Triple(*(_term(term) for term in triple)) for triple in result}
    names = [variable.value for variable in result.variables]
    return Counter(
        frozenset((n, key(_term(solution[n]))) for n in names if solution[n] is not None)
        for solution in result
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
    """Return what a term is compared by: literals by value, all blank nodes as equal."""
    from streamsparql.algebra.xsd.values import value_of

    if isinstance(term, BlankNode):
        return BlankNode("any")
    if isinstance(term, Literal):
        value = value_of(term)
        if value is not None and not isinstance(value, str):
            return term.datatype, value
    return term
