"""Random RDFS schemas, and histories whose triples entail others; their closure by another engine.

Schemas have cycles, diamonds and several parents, also literals as classes; properties of the
vocabulary itself have sub- and superproperties, domains and ranges. Classes and properties are the
terms of `support/generate.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import numpy as np
import pyoxigraph as ox
from hypothesis import strategies as st
from support.engine import Data, Item
from support.oracle import store

from streamsparql.algebra.entailment import (
    DOMAIN,
    RANGE,
    SCHEMA_PREDICATES,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
)
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term, Triple
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operators.access import Always

Words = tuple[str, str, str]

NODES = ["<http://e/a>", "<http://e/b>", "<http://e/c>", "_:n"]
P, Q, R = (f"<http://e/{name}>" for name in "pqr")
LITERALS = ['"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"x"']
VOCABULARY = list(map(str, SCHEMA_PREDICATES))


def random_schema(random: Random, size: int) -> list[Words]:
    """Return statements about classes and properties; one in six is about the vocabulary."""
    return [_statement(random) for _ in range(random.randint(0, size))]


def _statement(random: Random) -> Words:
    kind = random.choice([SUBCLASS, SUBCLASS, SUBPROPERTY, DOMAIN, RANGE])
    rare = random.random() < 0.16
    if kind == SUBPROPERTY:
        # :p is above rdf:type, and q and r below the vocabulary: the reverse is refused
        one = random.choice([str(TYPE), *VOCABULARY] if rare else [Q, Q, R])
        above = [P] if one == str(TYPE) else [P, Q, R, "_:n"]
        also = [] if one == str(TYPE) or random.random() < 0.7 else [str(TYPE), *VOCABULARY]
        return one, str(kind), random.choice(also or above)
    owners = [str(TYPE), *VOCABULARY] if rare else [P, Q, R]
    one = random.choice(NODES if kind == SUBCLASS else owners)
    return one, str(kind), random.choice([*NODES, LITERALS[0]])


def random_triple(random: Random) -> Words:
    """Return a triple that a schema may entail others from."""
    predicate = random.choice([str(TYPE), str(TYPE), P, Q, R, *VOCABULARY[:2]])
    pool = NODES if predicate == str(TYPE) or random.random() < 0.6 else [P, Q, R, *LITERALS]
    return random.choice(NODES), predicate, random.choice(pool)


def entailing_history(seed: int) -> Data:
    """Draw two streams, and static graphs with schemas."""
    random = Random(seed)

    def items() -> list[Item]:
        t, stream = random.randint(0, 4), []
        for _ in range(random.randint(0, 14)):
            stream.append((random_triple(random), t))
            t += random.choice([0, 0, 1, 1, 2, 3, 5])
        return stream

    def graph(statements: int) -> list[Words]:
        about = [random_triple(random) for _ in range(random.randint(0, 3))]
        return [*random_schema(random, statements), *about]

    graphs = {f"http://e/g{k}": graph(2) for k in (1, 2)}
    return Data({"http://e/s": items(), "http://e/g1": items()}, graph(6), graphs)


entailing: st.SearchStrategy[Data] = st.integers(0, 2**32).map(entailing_history)
"""Histories over which patterns match entailed triples."""


def triples_of(terms: TermDictionary, words: Iterable[Words]) -> Batch:
    """Return triples that always hold, as a batch whose terms are kept."""
    columns = [terms.encode(list(column)) for column in zip(*words, strict=True)] or [_NONE] * 3
    for ids in columns:
        terms.keep(ids)
    return Always.of(dict(zip(TRIPLE, columns, strict=True)), len(columns[0])).rows


_NONE = np.empty(0, np.int64)


# -- the closure by another engine -----------------------------------------------------------------

_PREFIXES = """
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
"""
_BLANK = "urn:blank:"
_RULES = {
    "rdfs2": "CONSTRUCT { ?x a ?c } { GRAPH <schema:> { ?p rdfs:domain ?c } ?x ?p ?y }",
    "rdfs3": "CONSTRUCT { ?y a ?c } { GRAPH <schema:> { ?p rdfs:range ?c } ?x ?p ?y }",
    "rdfs5": "CONSTRUCT { ?p rdfs:subPropertyOf ?r }"
    " { GRAPH <schema:> { ?q rdfs:subPropertyOf ?r } ?p rdfs:subPropertyOf ?q }",
    "rdfs7": "CONSTRUCT { ?x ?q ?y } { GRAPH <schema:> { ?p rdfs:subPropertyOf ?q } ?x ?p ?y"
    f" FILTER(!STRSTARTS(STR(?q), '{_BLANK}')) }}",
    "rdfs9": "CONSTRUCT { ?x a ?d } { GRAPH <schema:> { ?c rdfs:subClassOf ?d } ?x a ?c }",
    "rdfs11": "CONSTRUCT { ?c rdfs:subClassOf ?e }"
    " { GRAPH <schema:> { ?d rdfs:subClassOf ?e } ?c rdfs:subClassOf ?d }",
}
"""The rules of RDF 1.1 Semantics, section 9.2.1, as queries over a graph of the schema."""


def closed(triples: Iterable[Triple], static: Iterable[Triple] | None = None) -> set[Triple]:
    """Return triples with all that they entail with the schema in static triples.

    Without static triples, those of the schema are among the triples themselves.
    """
    known = {Triple(*map(_named, triple)) for triple in triples}
    fixed = None
    if static is not None:
        fixed = {Triple(*map(_named, triple)) for triple in _schema(closed(static))}
    while True:
        schema = _schema(known) if fixed is None else fixed
        content = store(known, {IRI("schema:"): schema})
        new = {
            Triple(*(_term(x) for x in (triple.subject, triple.predicate, triple.object)))
            for rule in _RULES.values()
            for triple in content.query(_PREFIXES + rule)
        }
        if new <= known:
            return {Triple(*map(_blank, triple)) for triple in known}
        known |= new


def _schema(triples: Iterable[Triple]) -> set[Triple]:
    return {triple for triple in triples if triple.predicate in SCHEMA_PREDICATES}


def _named(term: Term) -> Term:
    """Replace a blank node by an IRI, since the store renames blank nodes."""
    return IRI(_BLANK + term.label) if isinstance(term, BlankNode) else term


def _blank(term: Term) -> Term:
    """Return the blank node that was replaced by an IRI."""
    if isinstance(term, IRI) and term.value.startswith(_BLANK):
        return BlankNode(term.value.removeprefix(_BLANK))
    return term


def _term(value: object) -> Term:
    if isinstance(value, ox.NamedNode):
        return IRI(value.value)
    assert isinstance(value, ox.Literal)
    if value.language is not None:
        return Literal(value.value, language=value.language)
    return Literal(value.value, IRI(value.datatype.value))
