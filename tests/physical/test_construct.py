"""Graphs out of batches: CONSTRUCT, DESCRIBE and ASK, held to the algebra at every instant.

What it cannot see: how the rows below come about (test_lowering.py, and whole queries elsewhere).
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.generate import PREFIX, triples
from support.steps import Bag, Case, Row, agrees, at_once, cases, drive, one_by_one, rows_over

import streamsparql
from streamsparql.algebra import graph
from streamsparql.algebra.functions import Run
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term, integer
from streamsparql.physical.dictionary.term_dictionary import BLANK_SORT, IRI_SORT, TermDictionary
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.columns import Tag
from streamsparql.physical.operators.graph import Construct, SelectSort
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput

TERMS = TermDictionary()
KINDS: list[Term] = [IRI("http://e/a"), IRI("http://e/b"), BlankNode("n"), Literal("x"), integer(1)]
IDS = [TERMS.id_of(term) for term in KINDS]
ONE, TWO = integer(1), integer(2)
NUMBERS = [TERMS.id_of(ONE), TERMS.id_of(TWO)]
X, Y, P = Variable("x"), Variable("y"), IRI("http://e/p")
some = cases(
    rows_over([st.sampled_from([0, *IDS]), st.sampled_from([0, *IDS]), st.sampled_from(NUMBERS)])
)
places = st.sampled_from([X, Y, P, BlankNode("b"), BlankNode("c"), Literal("o"), Variable("z")])
patterns = st.builds(TriplePattern, places, places, places)
NAMES = [["x", "y", ".number"]]


@given(some, patterns)
def test_a_pattern_is_instantiated_for_each_row(case: Case, pattern: TriplePattern) -> None:
    def defined(bag: Bag) -> Bag:
        made: Bag = Counter()
        for (x, y, number), n in bag.items():
            found = ((v, TERMS.term_of(i)) for v, i in ((X, x), (Y, y)))
            row = Solution({v: term for v, term in found if term is not None})
            for triple in graph.instantiate_template((pattern,), row, 1 + NUMBERS.index(number)):
                made[tuple(map(TERMS.id_of, triple))] += n
        return made

    def construct(source: Operator) -> Construct:
        return Construct(source, pattern, TERMS, ".number")

    for played in (case, at_once(*case.inputs), one_by_one(*case.inputs, cut=True)):
        agrees(drive(construct, NAMES, played), case, defined)


def test_a_constructed_blank_node_outlives_the_cuts_of_its_row() -> None:
    pattern = TriplePattern(BlankNode("b"), P, X)
    row = (IDS[0], IDS[1], NUMBERS[0])
    whole, cut = [Row(row, 0, 9)], [Row(row, 0, 4), Row(row, 4, 9)]
    one, two = (
        drive(lambda source: Construct(source, pattern, TERMS, ".number"), NAMES, at_once(rows))
        for rows in (whole, cut)
    )
    assert {made.ids for made in one} == {made.ids for made in two}


@pytest.mark.parametrize(("sort", "kept"), [(IRI_SORT, IDS[:2]), (BLANK_SORT, IDS[2:3])])
def test_terms_of_a_sort(sort: int, kept: list[int]) -> None:
    rows = [Row((i,), 0, 5) for i in (0, *IDS)]
    made = drive(lambda source: SelectSort(source, "x", sort, TERMS), [["x"]], at_once(rows))
    assert [row.ids for row in made] == [(i,) for i in kept]


@given(cases(rows_over([st.sampled_from(IDS)])))
def test_tags_tell_all_rows_apart(case: Case) -> None:
    rows = drive(lambda source: Tag(source, "..row", TERMS), [["x"]], case)
    assert len({row.ids[1] for row in rows}) == len(rows)
    untagged = [row._replace(ids=row.ids[:1]) for row in rows]
    agrees(untagged, case, lambda bag: bag)


# -- Whole queries

QUERIES = [
    "CONSTRUCT { ?x :q ?y . _:b :of ?x . _:b :to _:c } STREAM { ?x :p ?y }",
    "CONSTRUCT { ?x ?y ?x } STREAM { ?x :p ?y OPTIONAL { ?y :q ?z } }",
    "CONSTRUCT { _:b :of ?x } STREAM { ?x :p ?y } ORDER BY ?y LIMIT 2",
    "CONSTRUCT { } STREAM { ?x :p ?y }",
    "CONSTRUCT { :a :b 1 } STREAM { FILTER NOT EXISTS { ?x :p ?y } }",
    "DESCRIBE ?x STREAM { ?x :p ?y }",
    "DESCRIBE :a ?y STREAM { ?x :p ?y }",
    "DESCRIBE * STREAM { ?x :p ?y }",
    "DESCRIBE :a STREAM { }",
    "DESCRIBE :a STREAM { ?x :p 1 } LIMIT 0",
    "DESCRIBE ?nothing STREAM { ?x :p ?y }",
    "ASK STREAM { ?x :p ?y }",
    "ASK STREAM { }",
    "ASK STREAM { ?x :p ?y FILTER(?y > 5) }",
    "ASK STREAM { { SELECT (COUNT(*) AS ?n) { ?x :p ?y } } FILTER(?n > 1) }",
]
WINDOW = "FROM STREAM :s WINDOW RANGE 5 MS SLIDE 2 MS {"


@pytest.mark.parametrize("text", QUERIES)
def test_a_form_gives_what_is_defined(text: str) -> None:
    query = streamsparql.compile(PREFIX + text.replace("STREAM {", WINDOW))

    @given(triples(8), triples(3))
    @settings(max_examples=10)
    def right(items: list[tuple[str, str, str]], facts: list[tuple[str, str, str]]) -> None:
        stamped = [(*triple, k // 2) for k, triple in enumerate(items)]
        streams = dict.fromkeys(query.streams, stamped)
        run = Execution(query, RunInput(streams, facts))
        rows = [
            ([run.terms.term_of(i) for i in ids], start, end)
            for batch in run.replay()
            for *ids, start, end in zip(
                *(batch.columns[n].tolist() for n in run.columns),
                batch.start.tolist(), batch.end.tolist(), strict=True,
            )
        ]  # fmt: skip
        inputs = streamsparql.inputs(streams, facts, {}, Run())
        for t in range(14):
            here = Counter(tuple(item) for item, start, end in rows if start <= t < end)
            found = query.logical.at(t, inputs).entries
            there = Counter({(x,) if query.form == "ask" else tuple(x): n for x, n in found})
            assert here == there, f"at {t}"

    right()


def test_a_description_follows_blank_nodes_as_long_as_they_lead_on() -> None:
    query = streamsparql.compile(PREFIX + "DESCRIBE :a STREAM { }".replace("STREAM {", WINDOW))
    items = [
        ("<http://e/a>", "<http://e/p>", "_:n1", 0), ("_:n1", "<http://e/p>", "_:n2", 1),
        ("_:n2", "<http://e/p>", "_:n1", 2), ("_:n2", "<http://e/p>", "<http://e/b>", 3),
        ("<http://e/b>", "<http://e/p>", "<http://e/c>", 3),
    ]  # fmt: skip
    result = query.run({query.streams[0]: items})
    held = [len(list(result.snapshot(t))) for t in (0, 1, 2, 3, 4, 20)]
    assert held == [1, 2, 3, 4, 0, 0], "what leads to the others is the first to go"


def test_columns_of_a_construct() -> None:
    made = drive(
        lambda source: Construct(source, TriplePattern(X, P, Y), TERMS), [["x", "y"]],
        at_once([Row((IDS[0], IDS[3]), 2, 5, 3)]),
    )  # fmt: skip
    assert made == [Row((IDS[0], TERMS.id_of(P), IDS[3]), 2, 5, 3)]
