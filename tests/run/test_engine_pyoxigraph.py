"""Hand-written queries over every feature: at each instant, the answer is another engine's answer.

The queries are in `cases/*.rq`, by dialect. For each the content of its windows is worked out at
each instant from the text of their clauses (`content` of support/window_content.py, which reads
SEMANTICS.md a second time), loaded into pyoxigraph, and the query asked there without its
streaming clauses, or another text in its place (support/store_cases.py).

Streams are random, and no triple comes twice in a query's streams where windows are bags: a store
holds sets. What this cannot see: duplicates; LIMIT without a total order; what pyoxigraph gets
wrong, which the queries step around (support/plain_queries.py lists it); how many decimal places
a quotient has.
"""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Context, Decimal
from random import Random

import pyoxigraph as ox
import pytest
from support import w3c
from support.engine import read
from support.oracle import store
from support.store_cases import ALL, Case, random_data, store_content
from support.w3c import Answer

import streamsparql
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term
from streamsparql.algebra.xsd.values import value_of

# -- Answers ------------------------------------------------------------------------------------


def theirs(asked: ox.Store, text: str, ordered: bool) -> Answer:
    """What pyoxigraph answers."""
    found = asked.query(text)
    if isinstance(found, ox.QueryBoolean):
        return Answer("boolean", ("answer",), ((bool(found),),))
    if isinstance(found, ox.QueryTriples):
        triples = {tuple(_cell(_theirs(x)) for x in triple) for triple in found}
        return Answer("graph", (), tuple(triples))
    names = sorted(variable.value for variable in found.variables)
    rows = tuple(
        tuple(None if row[n] is None else _cell(_theirs(row[n])) for n in names) for row in found
    )
    return Answer("solutions", tuple(names), rows, ordered)


def ours(query: streamsparql.Query, shown: object, ordered: bool) -> Answer:
    """A snapshot as users get it, as an answer."""
    rows = read(query, shown)
    if query.form == "ask":
        return Answer("boolean", ("answer",), ((rows[0],),))
    if query.form != "select":
        triples = [tuple(map(_cell, triple)) for triple in rows]  # type: ignore[call-overload]
        return Answer("graph", (), tuple(triples))
    names = sorted(query.variables)
    found = [dict(row) for row in rows]  # type: ignore[call-overload]
    return Answer(
        "solutions",
        tuple(names),
        tuple(tuple(_cell(row[n]) if n in row else None for n in names) for row in found),
        ordered,
    )


def _theirs(found: object) -> Term:
    match found:
        case ox.NamedNode():
            return IRI(found.value)
        case ox.BlankNode():
            return BlankNode(found.value)
        case ox.Literal():
            return Literal(found.value, IRI(found.datatype.value))
    raise AssertionError(found)


def _cell(value: Term) -> Hashable:
    """A term; a number by its value, a quotient to 15 digits."""
    found = value_of(value) if isinstance(value, Literal) else None
    if isinstance(found, Decimal):
        found = Context(prec=15).plus(found)
    if isinstance(value, Literal) and isinstance(found, int | Decimal):
        return value.datatype, found
    return value


# -- The test -----------------------------------------------------------------------------------


def check(case: Case, seed: int) -> None:
    """Our snapshot is pyoxigraph's answer, at every instant."""
    data = random_data(case, Random(seed))
    query = streamsparql.compile(case.text, optimize=seed % 2 == 0)
    assert query.dialect == case.dialect.replace("groups", "streaming"), query.dialect
    data = data.of(query, every_graph=False)
    result = query.run(data.streams, data.graph, data.graphs)
    ordered = "\nORDER BY" in case.text
    known: dict[object, Answer] = {}
    for t in range(min(data.stamps), max(data.stamps) + 30):
        default, graphs = store_content(case, data, t)
        content = default, frozenset(graphs.items())
        if content not in known:
            known[content] = theirs(store(set(default), dict(graphs)), case.plain, ordered)
        mine = ours(query, result.snapshot(t), ordered)
        assert w3c.agree(mine, known[content]), (
            f"{case.name}, seed {seed}, at {t}:\nours {mine.rows}\ntheirs {known[content].rows}"
        )
    assert len(known) > 1, "nothing happened"


def test_there_are_enough_queries() -> None:
    assert len(ALL) >= 60
    assert len({case.name for case in ALL}) == len(ALL)


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_each_snapshot_is_what_a_store_answers(case: Case) -> None:
    for seed in (0, 1):
        check(case, seed)


@pytest.mark.long
@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_each_snapshot_is_what_a_store_answers_over_many_streams(case: Case) -> None:
    for seed in range(2, 40):
        check(case, seed)
