"""Queries over static data that pyoxigraph answers as SPARQL 1.1 does, and our answers to them."""

from __future__ import annotations

from collections import Counter

from support.generate import Features
from support.oracle import key

import streamsparql
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.solutions import Solution

# Queries and data avoid what pyoxigraph evaluates differently from SPARQL 1.1: "x"@en has an
# effective boolean value (section 17.2.2, plain literals); false < true is true (17.3.1); a path of
# length zero matches a term of the query that is not in the graph (18.4, ZeroLengthPath); a pair that
# both sides of p|q, or of !(p|^q), connect counts twice (18.4, AlternativePath); a MINUS in an EXISTS
# or a GRAPH ?g compares the variables of its own patterns, not those of the outer row or ?g (18.6,
# substitute and Graph); GRAPH ?g binds ?g even if its group has no triple pattern (18.6, Graph).
PLAIN = Features(
    booleans_compare=False,
    alternatives=False,
    nested_minus=False,
    bare_graphs=False,
    reduced=False,  # may remove duplicates or not
    forms=("select", "select", "ask"),
    named_graphs=True,
    literals=("1", "2", "3", '"x"', '"y"', "1.5", "true"),
)

KNOWN = [
    ("<http://e/a>", "<http://e/known>", f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>')
    for n in (1, 2)
] + [("<http://e/b>", "<http://e/known>", "<http://e/c>")]


def ours(query: streamsparql.Query, data: Inputs, t: int = 0) -> object:
    """Return our answer at an instant, in the form of `oracle.answer`."""
    snapshot = query.logical.at(t, data)
    if query.form == "ask":
        (value,) = snapshot
        return value.lexical == "true"
    rows: Counter[object] = Counter()
    for row, n in snapshot.entries:
        assert isinstance(row, Solution)
        rows[frozenset((v.name, key(term)) for v, term in row.items())] += n
    return rows
