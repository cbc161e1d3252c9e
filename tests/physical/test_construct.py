"""CONSTRUCT, DESCRIBE and ASK over batches, compared with the algebra at each instant.

Not covered: the operators below them (test_lowering.py, and tests of whole queries elsewhere).
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.generate import PREFIX, triples
from support.steps import (
    Bag,
    Case,
    Row,
    at_once,
    cases,
    check_snapshots,
    drive,
    one_by_one,
    rows_over,
)

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
construct_cases = cases(
    rows_over([st.sampled_from([0, *IDS]), st.sampled_from([0, *IDS]), st.sampled_from(NUMBERS)])
)
places = st.sampled_from([X, Y, P, BlankNode("b"), BlankNode("c"), Literal("o"), Variable("z")])
patterns = st.builds(TriplePattern, places, places, places)
NAMES = [["x", "y", ".number"]]


@given(construct_cases, patterns)
def test_a_pattern_is_instantiated_for_each_row(case: Case, pattern: TriplePattern) -> None:
    def definition(bag: Bag) -> Bag:
        triples_of_bag: Bag = Counter()
        for (x, y, number), n in bag.items():
            terms = ((v, TERMS.term_of(i)) for v, i in ((X, x), (Y, y)))
            row = Solution({v: term for v, term in terms if term is not None})
            for triple in graph.instantiate_template((pattern,), row, 1 + NUMBERS.index(number)):
                triples_of_bag[tuple(map(TERMS.id_of, triple))] += n
        return triples_of_bag

    def construct(source: Operator) -> Construct:
        return Construct(source, pattern, TERMS, ".number")

    for variant in (case, at_once(*case.inputs), one_by_one(*case.inputs, cut=True)):
        check_snapshots(drive(construct, NAMES, variant), case, definition)


def test_cutting_a_row_keeps_its_constructed_blank_node() -> None:
    pattern = TriplePattern(BlankNode("b"), P, X)
    row = (IDS[0], IDS[1], NUMBERS[0])
    whole, cut = [Row(row, 0, 9)], [Row(row, 0, 4), Row(row, 4, 9)]
    one, two = (
        drive(lambda source: Construct(source, pattern, TERMS, ".number"), NAMES, at_once(rows))
        for rows in (whole, cut)
    )
    assert {triple.ids for triple in one} == {triple.ids for triple in two}


@pytest.mark.parametrize(("sort", "kept"), [(IRI_SORT, IDS[:2]), (BLANK_SORT, IDS[2:3])])
def test_only_terms_of_the_sort_are_selected(sort: int, kept: list[int]) -> None:
    rows = [Row((i,), 0, 5) for i in (0, *IDS)]
    output = drive(lambda source: SelectSort(source, "x", sort, TERMS), [["x"]], at_once(rows))
    assert [row.ids for row in output] == [(i,) for i in kept]


@given(cases(rows_over([st.sampled_from(IDS)])))
def test_each_row_has_a_unique_tag(case: Case) -> None:
    rows = drive(lambda source: Tag(source, "..row", TERMS), [["x"]], case)
    assert len({row.ids[1] for row in rows}) == len(rows)
    untagged = [row._replace(ids=row.ids[:1]) for row in rows]
    check_snapshots(untagged, case, lambda bag: bag)


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
def test_a_query_form_agrees_with_its_definition(text: str) -> None:
    query = streamsparql.compile(PREFIX + text.replace("STREAM {", WINDOW))

    @given(triples(8), triples(3))
    @settings(max_examples=10)
    def check(items: list[tuple[str, str, str]], facts: list[tuple[str, str, str]]) -> None:
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
            actual = Counter(tuple(item) for item, start, end in rows if start <= t < end)
            entries = query.logical.at(t, inputs).entries
            expected = Counter({(x,) if query.form == "ask" else tuple(x): n for x, n in entries})
            assert actual == expected, f"at {t}"

    check()


def test_describe_follows_blank_nodes_while_the_connection_holds() -> None:
    query = streamsparql.compile(PREFIX + "DESCRIBE :a STREAM { }".replace("STREAM {", WINDOW))
    items = [
        ("<http://e/a>", "<http://e/p>", "_:n1", 0), ("_:n1", "<http://e/p>", "_:n2", 1),
        ("_:n2", "<http://e/p>", "_:n1", 2), ("_:n2", "<http://e/p>", "<http://e/b>", 3),
        ("<http://e/b>", "<http://e/p>", "<http://e/c>", 3),
    ]  # fmt: skip
    result = query.run({query.streams[0]: items})
    sizes = [len(list(result.snapshot(t))) for t in (0, 1, 2, 3, 4, 20)]
    assert sizes == [1, 2, 3, 4, 0, 0], "the triple that leads to the others expires first"


def test_construct_emits_triples_with_the_validity_and_count_of_rows() -> None:
    output = drive(
        lambda source: Construct(source, TriplePattern(X, P, Y), TERMS), [["x", "y"]],
        at_once([Row((IDS[0], IDS[3]), 2, 5, 3)]),
    )  # fmt: skip
    assert output == [Row((IDS[0], TERMS.id_of(P), IDS[3]), 2, 5, 3)]
