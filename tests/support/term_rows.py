"""Rows of random terms, for the tests of sinks."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

from streamsparql.algebra.terms import IRI, XSD, BlankNode, Literal, Term
from streamsparql.physical.operator import INFINITY
from streamsparql.sinks import Layout

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
IRIS = st.text("abz0-_.é", min_size=1, max_size=5).map(
    lambda text: IRI(f"http://example.org/{text}")
)
TERMS = st.one_of(
    IRIS,
    st.text("abz09", min_size=1, max_size=4).map(lambda label: BlankNode(f"b{label}")),
    TEXTS.map(Literal),
    TEXTS.map(lambda text: Literal(text, language="en-gb")),
    st.builds(Literal, TEXTS, IRIS),
    st.integers(-(10**20), 10**20).map(lambda n: Literal(str(n), IRI(XSD + "integer"))),
)
ROWS = st.lists(
    st.tuples(
        st.none() | TERMS,
        st.none() | TERMS,
        st.integers(0, 10**13),
        st.just(INFINITY) | st.integers(10**13, 10**14),
    ),
    max_size=12,
)
TermRow = tuple[Term | None, Term | None, int, int]
"""The terms of two variables, the start and the end."""


def table(rows: list[TermRow], layout: Layout) -> pa.Table:
    """Return rows as `Result.to_arrow` does."""
    terms = [[None if row[k] is None else str(row[k]) for row in rows] for k in (0, 1)]
    times = [pa.array([row[k] for row in rows], pa.int64()) for k in (2, 3)]
    encoded = [pa.array(texts, pa.string()).dictionary_encode() for texts in terms]
    return pa.table(dict(zip((*layout.names, *layout.times), [*encoded, *times], strict=True)))


def plain_text(term: Term | None) -> str:
    """Return a term as in SPARQL's CSV results."""
    match term:
        case None:
            return ""
        case IRI(value):
            return value
        case Literal(lexical):
            return lexical
    return str(term)
