"""The resolution of names in a query: BASE, PREFIX and the terms written with them."""

from __future__ import annotations

from difflib import get_close_matches

from streamsparql.algebra.iri import resolve_iri
from streamsparql.algebra.terms import IRI, Literal
from streamsparql.errors import QueryError
from streamsparql.translator import syntax as s

WELL_KNOWN = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "prov": "http://www.w3.org/ns/prov#",
    "time": "http://www.w3.org/2006/time#",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "schema": "https://schema.org/",
    "saref": "https://saref.etsi.org/core/",
    "qudt": "http://qudt.org/schema/qudt/",
    "unit": "http://qudt.org/vocab/unit/",
}
"""Prefixes that a hint can spell out. None of them is predeclared."""


class Names:
    """The prefixes and the base of one query. A BASE applies to the declarations after it."""

    def __init__(self, declarations: tuple[s.Declaration, ...], base: str) -> None:
        self.base = base
        self.prefixes: dict[str, str] = {}
        for declaration in declarations:
            iri = resolve_iri(self.base, declaration.iri.value)
            if declaration.prefix is None:
                self.base = iri
            else:
                self.prefixes[declaration.prefix] = iri

    def iri(self, node: s.Iri) -> IRI:
        """Return the IRI of a syntax node; raise `QueryError` for an undeclared prefix."""
        if node.prefix is None:
            return IRI(resolve_iri(self.base, node.value))
        if node.prefix not in self.prefixes:
            raise QueryError(
                f"undeclared prefix {node.prefix}:", node.span, hint=self._prefix_hint(node.prefix)
            )
        return IRI(self.prefixes[node.prefix] + node.value)

    def _prefix_hint(self, prefix: str) -> str:
        """Return the declaration of a well-known prefix, or the prefix that is meant."""
        if prefix not in WELL_KNOWN:
            if near := get_close_matches(prefix, self.prefixes, 1, 0.6):
                return f"did you mean {near[0]}:?"
            if near := get_close_matches(prefix, WELL_KNOWN, 1, 0.6):
                return f"did you mean PREFIX {near[0]}: <{WELL_KNOWN[near[0]]}>?"
        return f"put PREFIX {prefix}: <{WELL_KNOWN.get(prefix, 'http://example.org/')}> first"

    def knows(self, node: s.Iri, iri: str) -> bool:
        """Return whether a syntax node denotes this IRI; False if its prefix is not declared."""
        declared = node.prefix is None or node.prefix in self.prefixes
        return declared and self.iri(node).value == iri

    def literal(self, node: s.Lit) -> Literal:
        """Return the literal of a syntax node."""
        if node.language is not None:
            return Literal(node.lexical, language=node.language)
        return (
            Literal(node.lexical, self.iri(node.datatype))
            if node.datatype
            else Literal(node.lexical)
        )
