"""Hand-written queries over every feature: at each instant, the result agrees with another engine.

The queries are in `cases/*.rq`, by dialect. For each, the content of its windows at each instant is
computed from the text of their clauses (`content` of support/window_content.py, which implements
SEMANTICS.md a second time) and loaded into pyoxigraph, which evaluates the query without its
streaming clauses, or another text in its place (support/store_cases.py).

Streams are random, and no triple occurs twice in a query's streams if windows are bags: a store
holds sets. Not tested here: duplicates; LIMIT without a total order; errors of pyoxigraph, which
the queries avoid (support/plain_queries.py lists them); the number of decimal places of a quotient.
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

# -- answers ------------------------------------------------------------------------------------


def theirs(content: ox.Store, text: str, ordered: bool) -> Answer:
    """Return pyoxigraph's answer."""
    answer = content.query(text)
    if isinstance(answer, ox.QueryBoolean):
        return Answer("boolean", ("answer",), ((bool(answer),),))
    if isinstance(answer, ox.QueryTriples):
        triples = {tuple(_cell(_term(x)) for x in triple) for triple in answer}
        return Answer("graph", (), tuple(triples))
    names = sorted(variable.value for variable in answer.variables)
    rows = tuple(
        tuple(None if row[n] is None else _cell(_term(row[n])) for n in names) for row in answer
    )
    return Answer("solutions", tuple(names), rows, ordered)


def ours(query: streamsparql.Query, shown: object, ordered: bool) -> Answer:
    """Return a snapshot, as users read it, as an answer."""
    rows = read(query, shown)
    if query.form == "ask":
        return Answer("boolean", ("answer",), ((rows[0],),))
    if query.form != "select":
        triples = [tuple(map(_cell, triple)) for triple in rows]  # type: ignore[call-overload]
        return Answer("graph", (), tuple(triples))
    names = sorted(query.variables)
    solutions = [dict(row) for row in rows]  # type: ignore[call-overload]
    return Answer(
        "solutions",
        tuple(names),
        tuple(tuple(_cell(row[n]) if n in row else None for n in names) for row in solutions),
        ordered,
    )


def _term(value: object) -> Term:
    match value:
        case ox.NamedNode():
            return IRI(value.value)
        case ox.BlankNode():
            return BlankNode(value.value)
        case ox.Literal():
            return Literal(value.value, IRI(value.datatype.value))
    raise AssertionError(value)


def _cell(term: Term) -> Hashable:
    """Return a term; for a number its value, with 15 digits of a quotient."""
    value = value_of(term) if isinstance(term, Literal) else None
    if isinstance(value, Decimal):
        value = Context(prec=15).plus(value)
    if isinstance(term, Literal) and isinstance(value, int | Decimal):
        return term.datatype, value
    return term


# -- the test -----------------------------------------------------------------------------------


def check(case: Case, seed: int) -> None:
    """Check that each snapshot agrees with pyoxigraph."""
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


def test_cases_are_many_and_named_uniquely() -> None:
    assert len(ALL) >= 60
    assert len({case.name for case in ALL}) == len(ALL)


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
def test_each_snapshot_agrees_with_pyoxigraph(case: Case) -> None:
    for seed in (0, 1):
        check(case, seed)


@pytest.mark.long
@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
def test_each_snapshot_agrees_with_pyoxigraph_over_many_streams(case: Case) -> None:
    for seed in range(2, 40):
        check(case, seed)
