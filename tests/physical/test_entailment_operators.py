"""The operators of entailment, directly: against the definitions, pattern by pattern.

Schemas and triples are random (support/schemas.py). Patterns have constants and variables at any
place, also the same variable twice, terms of the vocabulary, and terms that no data has. Operators
are stateless, so a batch is as good as any division into steps; test_saved_states.py drives them
step by step.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.schemas import NODES, VOCABULARY, P, Q, R, random_schema, random_triple, triples_of

from streamsparql.algebra import entailment as definition
from streamsparql.algebra.entailment import SUBCLASS, TYPE
from streamsparql.algebra.match import TriplePattern, match
from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, Triple
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.entailment.expansion import Expansion
from streamsparql.physical.entailment.hierarchy import Hierarchy, IdSet
from streamsparql.physical.entailment.matchers import matcher_of
from streamsparql.physical.entailment.membership import Membership
from streamsparql.physical.entailment.schema import NO_SCHEMA, Schema
from streamsparql.physical.operators.access import Always
from streamsparql.physical.operators.entailment import Entailed, EntailedMatching, Entailing

X, Y = Variable("x"), Variable("y")
RDF_TYPE, SUB = str(TYPE), str(SUBCLASS)


def parsed(words: list[tuple[str, str, str]]) -> list[Triple]:
    return [Triple(*(parse_term(word) for word in triple)) for triple in words]  # type: ignore[arg-type]


def random_pattern(random: Random) -> TriplePattern:
    def place(words: list[str], variables: float) -> object:
        if random.random() < variables:
            return random.choice([X, X, Y, Variable("z")])
        return parse_term(random.choice([*words, *words, "<http://e/unknown>"]))

    predicates = [RDF_TYPE, RDF_TYPE, P, Q, R, *VOCABULARY]
    subjects = [*NODES, P, RDF_TYPE]
    return TriplePattern(  # type: ignore[arg-type]
        place(subjects, 0.7), place(predicates, 0.2), place([*NODES, '"x"', P], 0.5)
    )


class Setting:
    """A random schema, and random triples that all hold."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.terms = TermDictionary()
        self.terms.encode([f"<http://e/{k}>" for k in range(self.random.choice([0, 40]))])
        statements = random_schema(self.random, 9)
        self.known = definition.schema_of(frozenset(parsed(statements)))
        self.schema = Schema(triples_of(self.terms, statements), self.terms)
        words = [random_triple(self.random) for _ in range(self.random.randint(0, 12))]
        self.triples = parsed(words)
        columns = [self.terms.encode(list(c)) for c in zip(*words, strict=True)]
        named = dict(zip(TRIPLE, columns or [np.empty(0, np.int64)] * 3, strict=True))
        self.always = Always.of(named, len(words))

    def entailed(self) -> list[frozenset[Triple]]:
        return [definition.entailed_by(triple, self.known) for triple in self.triples]

    def solutions(self, batch: Batch) -> Counter[object]:
        """Return rows as solutions of the algebra."""
        rows: Counter[object] = Counter()
        for k in range(len(batch)):
            ids = {name: self.terms.term_of(int(c[k])) for name, c in batch.columns.items()}
            rows[frozenset(ids.items())] += 1
        return rows


@settings(max_examples=400)
@given(st.integers(0, 2**32))
def test_matches_are_those_of_the_entailed_triples(seed: int) -> None:
    case = Setting(seed)
    for _ in range(4):
        pattern = random_pattern(case.random)
        operator = EntailedMatching(case.always, pattern, case.schema)
        expected: Counter[object] = Counter()
        for triples in case.entailed():
            solutions = [mu for triple in triples if (mu := match(pattern, triple)) is not None]
            expected.update(frozenset((v.name, x) for v, x in mu.items()) for mu in solutions)
        if len(case.always.rows):
            output = operator.apply(case.always.rows)
            assert case.solutions(output) == expected, pattern
        selecting = Entailing(case.always, pattern, case.schema)
        mask = [any(match(pattern, x) is not None for x in each) for each in case.entailed()]
        if len(case.always.rows):
            chosen = selecting.apply(case.always.rows)
            assert case.solutions(chosen) == case.solutions(case.always.rows.where(np.array(mask)))
        wanted = operator.matcher.predicates()
        ids = case.always.rows.columns[TRIPLE[1]].tolist()
        if wanted is not None:
            assert all(p in wanted for p, entails in zip(ids, mask, strict=True) if entails)


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_entailed_triples_are_those_of_the_definition(seed: int) -> None:
    case = Setting(seed)
    operator = Entailed(case.always, case.schema)
    expected: Counter[object] = Counter()
    for triples in case.entailed():
        expected.update(frozenset(zip(TRIPLE, x, strict=True)) for x in triples)
    if len(case.always.rows):
        assert case.solutions(operator.apply(case.always.rows)) == expected
    for predicate in (Q, RDF_TYPE, SUB):
        id_ = case.terms.encode([predicate])[0]
        wanted = case.schema.entailing(frozenset([int(id_)]))
        ids = case.always.rows.columns[TRIPLE[1]].tolist()
        for p, triples in zip(ids, case.entailed(), strict=True):
            assert p in wanted or all(str(x.predicate) != predicate for x in triples)


def test_output_is_ordered_by_start_and_keeps_counts_and_validities() -> None:
    terms = TermDictionary()
    schema = Schema(
        triples_of(terms, [(NODES[0], SUB, NODES[1]), (NODES[1], SUB, NODES[2])]), terms
    )
    words = [(f"<http://e/{k}>", RDF_TYPE, NODES[k % 3]) for k in range(9)]
    columns = [terms.encode(list(c)) for c in zip(*words, strict=True)]
    start = np.arange(9)
    batch = Batch(dict(zip(TRIPLE, columns, strict=True)), start, start + 5, np.arange(1, 10))
    pattern = TriplePattern(X, TYPE, Y)
    output = EntailedMatching(Always(batch), pattern, schema).apply(batch)
    assert output.start.tolist() == [0, 0, 0, 1, 1, 2, 3, 3, 3, 4, 4, 5, 6, 6, 6, 7, 7, 8]
    assert output.end.tolist() == [t + 5 for t in output.start.tolist()]
    assert output.counts().tolist() == [t + 1 for t in output.start.tolist()]


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        (TriplePattern(X, TYPE, IRI("http://e/c")), Membership),
        (TriplePattern(X, IRI("http://e/q"), Y), Membership),
        (TriplePattern(IRI("http://e/a"), TYPE, IRI("http://e/c")), Membership),
        (TriplePattern(X, TYPE, Y), Expansion),
        (TriplePattern(X, Variable("p"), Y), Expansion),
        (TriplePattern(X, SUBCLASS, Y), Expansion),
    ],
)
def test_membership_is_used_wherever_variables_are_ends_of_the_triple(
    pattern: TriplePattern, kind: type
) -> None:
    terms = TermDictionary()
    subproperty, domain = VOCABULARY[1:3]
    statements = [(NODES[0], SUB, NODES[2]), (P, subproperty, Q), (Q, domain, NODES[0])]
    schema = Schema(triples_of(terms, statements), terms)
    assert type(matcher_of(pattern, schema)) is kind


def test_a_schema_is_described() -> None:
    terms = TermDictionary()
    subclass, subproperty, domain, _ = VOCABULARY
    assert Schema(triples_of(terms, []), terms).describe() == NO_SCHEMA
    one = [(NODES[0], subclass, NODES[1]), (P, subproperty, Q), (P, domain, NODES[0])]
    text = "1 subclass, 1 subproperty, 1 domain"
    assert Schema(triples_of(terms, one), terms).describe() == text
    many = [(x, kind, NODES[0]) for kind in VOCABULARY for x in (P, Q)]
    text = "2 subclasses, 2 subproperties, 2 domains, 2 ranges"
    assert Schema(triples_of(terms, many), terms).describe() == text


def rows_of_pattern(
    statements: list[tuple[str, str, str]], triple: tuple[str, str, str], pattern: TriplePattern
) -> list[tuple[str, ...]]:
    """Return the matches of a pattern in what one triple entails, as text."""
    terms = TermDictionary()
    schema = Schema(triples_of(terms, statements), terms)
    always = Always(triples_of(terms, [triple]))
    output = EntailedMatching(always, pattern, schema).apply(always.rows)
    columns = [terms.texts(ids).to_pylist() for ids in output.columns.values()]
    return sorted(zip(*columns, strict=True))


def test_a_broader_literal_has_no_type() -> None:
    range_ = VOCABULARY[3]
    statements = [(NODES[0], SUB, '"x"'), (NODES[0], SUB, NODES[2]), (RDF_TYPE, range_, NODES[1])]
    rows = rows_of_pattern(statements, (NODES[3], RDF_TYPE, NODES[0]), TriplePattern(X, TYPE, Y))
    classes = [(NODES[k], NODES[1]) for k in (0, 1, 2)]
    assert rows == sorted([*classes, ("_:n", '"x"'), ("_:n", NODES[0]), ("_:n", NODES[2])])


def test_two_walks_to_one_triple_make_it_once() -> None:
    """A class that is its own instance has a literal as superclass, and as the range of types."""
    statements = [(NODES[0], SUB, '"x"'), (RDF_TYPE, VOCABULARY[3], '"x"')]
    rows = rows_of_pattern(statements, (NODES[0], RDF_TYPE, NODES[0]), TriplePattern(X, TYPE, Y))
    assert rows == sorted([(NODES[0], NODES[0]), (NODES[0], '"x"')])


def test_a_subproperty_of_subproperty_relates_properties() -> None:
    subproperty = VOCABULARY[1]
    statements = [(Q, subproperty, subproperty), (R, Q, P)]
    pattern = TriplePattern(X, IRI("http://e/p"), Y)
    assert rows_of_pattern(statements, (NODES[0], R, NODES[1]), pattern) == [tuple(NODES[:2])]


# -- hierarchies and sets --------------------------------------------------------------------------

EDGES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=14)


@given(EDGES, st.lists(st.integers(-3, 12), max_size=20), st.integers(0, 20))
def test_broader_terms_are_those_that_a_walk_reaches(
    edges: list[tuple[int, int]], column: list[int], cut: int
) -> None:
    """Broader terms are collected as they occur: a second column meets known and new ones."""
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    hierarchy = Hierarchy(pairs[:, 0], pairs[:, 1])
    above = {k: {b for a, b in edges if a == k} for k in range(-3, 13)}
    for _ in above:
        above = {k: up.union(*(above[x] for x in up)) for k, up in above.items()}
    for part in (column[:cut], column[cut:], column):
        places, terms = hierarchy.expand(np.array(part, np.int64))
        walks = ([one, *sorted(above[one] - {one})] for one in part)
        expected = [(k, x) for k, walk in enumerate(walks) for x in walk]
        assert list(zip(places.tolist(), terms.tolist(), strict=True)) == expected
    for one in range(-3, 13):
        assert hierarchy.above(one) == above[one] - {one}
        assert hierarchy.below(one) == {k for k in above if one in above[k]} - {one}


@given(st.sets(st.integers(-5, 30).filter(bool)), st.lists(st.integers(-40, 60), max_size=20))
def test_a_set_of_ids_tests_a_whole_column(ids: set[int], column: list[int]) -> None:
    assert IdSet(ids).mask(np.array(column, np.int64)).tolist() == [x in ids for x in column]
