"""What triples entail with the schema of static graphs, and which patterns match it, by definition.

The closure is compared with that of pyoxigraph, to which the rules are queries (support/schemas.py).
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import Data
from support.plans import plan
from support.rewriting import check_whole, inputs_of, instants
from support.schemas import closed, entailing, entailing_history

import streamsparql
from streamsparql import StreamSparqlError, UnsupportedFeature
from streamsparql.algebra.entailment import (
    DOMAIN,
    RANGE,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    Entailing,
    entailed_by,
    schema_of,
)
from streamsparql.algebra.inputs import DEFAULT_STREAM, Inputs
from streamsparql.algebra.rewrite import rewrite
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term, Triple

A, B, C, D, E, P, Q, R = map(IRI, "abcdepqr")
ONE, NODE = Literal("one"), BlankNode("n")


# -- the rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "schema", "triple", "entailed"),
    [
        ("rdfs2", [(P, DOMAIN, C)], (A, P, B), [(A, TYPE, C)]),
        ("rdfs2 of a literal", [(P, DOMAIN, C)], (A, P, ONE), [(A, TYPE, C)]),
        ("rdfs3", [(P, RANGE, C)], (A, P, B), [(B, TYPE, C)]),
        ("rdfs3 of a literal", [(P, RANGE, C)], (A, P, ONE), []),
        ("rdfs3 of a blank node", [(P, RANGE, C)], (A, P, NODE), [(NODE, TYPE, C)]),
        ("rdfs7", [(P, SUBPROPERTY, Q)], (A, P, ONE), [(A, Q, ONE)]),
        ("rdfs7 of a blank node", [(P, SUBPROPERTY, NODE)], (A, P, B), []),
        ("rdfs9", [(C, SUBCLASS, D)], (A, TYPE, C), [(A, TYPE, D)]),
        ("rdfs5", [(Q, SUBPROPERTY, R)], (P, SUBPROPERTY, Q), [(P, SUBPROPERTY, R)]),
        ("rdfs11", [(D, SUBCLASS, E)], (C, SUBCLASS, D), [(C, SUBCLASS, E)]),
        ("no rule", [(P, DOMAIN, C)], (A, Q, B), []),
        (
            "a chain",
            [(P, SUBPROPERTY, Q), (Q, DOMAIN, C), (C, SUBCLASS, D)],
            (A, P, B),
            [(A, Q, B), (A, TYPE, C), (A, TYPE, D)],
        ),
        ("a cycle", [(C, SUBCLASS, D), (D, SUBCLASS, C)], (A, TYPE, C), [(A, TYPE, D)]),
        (
            "a diamond",
            [(B, SUBCLASS, C), (B, SUBCLASS, D), (C, SUBCLASS, E), (D, SUBCLASS, E)],
            (A, TYPE, B),
            [(A, TYPE, C), (A, TYPE, D), (A, TYPE, E)],
        ),
        (
            "a property of the vocabulary",
            [(TYPE, SUBPROPERTY, P), (TYPE, RANGE, E)],
            (A, TYPE, C),
            [(A, P, C), (C, TYPE, E), (C, P, E), (E, TYPE, E), (E, P, E)],
        ),
    ],
)
def test_a_triple_entails_others(
    rule: str,
    schema: list[tuple[Term, Term, Term]],
    triple: tuple[Term, Term, Term],
    entailed: list[tuple[Term, Term, Term]],
) -> None:
    known = schema_of(frozenset(Triple(*one) for one in schema))
    assert entailed_by(Triple(*triple), known) == {Triple(*one) for one in [triple, *entailed]}


def test_a_subproperty_of_the_vocabulary_contributes_to_the_schema() -> None:
    graph = frozenset([Triple(P, SUBPROPERTY, SUBCLASS), Triple(C, P, D)])
    assert Triple(C, SUBCLASS, D) in schema_of(graph)


@given(st.integers(0, 2**32).map(entailing_history))
def test_the_closure_is_that_of_another_engine(data: Data) -> None:
    inputs = inputs_of(data)
    schema = schema_of(inputs.graph)
    ours = {x for triple in inputs.graph for x in entailed_by(triple, schema)}
    assert ours == closed(inputs.graph)
    items = {item.triple for stream in inputs.streams.values() for item in stream}
    ours = {x for triple in items for x in entailed_by(triple, schema)}
    assert ours == closed(items, inputs.graph)


# -- the sources of patterns -----------------------------------------------------------------------

PREFIXES = "PREFIX : <> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
BASE = "http://e/"
DOG_IS_ANIMAL = (IRI(BASE + "Dog"), SUBCLASS, IRI(BASE + "Animal"))
CAT_IS_ANIMAL = (IRI(BASE + "Cat"), SUBCLASS, IRI(BASE + "Animal"))


def node(name: str) -> IRI:
    return IRI(BASE + name)


def answers(
    text: str,
    t: int,
    stream: list[tuple[tuple[Term, Term, Term], int]] | None = None,
    graph: list[tuple[Term, Term, Term]] | None = None,
    graphs: dict[str, list[tuple[Term, Term, Term]]] | None = None,
    entailment: str | None = "rdfs",
) -> list[str]:
    """Return the rows of a snapshot as text; all streams have the same items."""
    query = streamsparql.compile(PREFIXES + text, base=BASE, entailment=entailment)
    items = [(tuple(map(str, x)), at) for x, at in stream or []]
    data = streamsparql.inputs(
        dict.fromkeys((BASE + "s", BASE + "t", DEFAULT_STREAM.value), items),
        [tuple(map(str, x)) for x in graph or []],
        {BASE + name: [tuple(map(str, x)) for x in g] for name, g in (graphs or {}).items()},
    )
    snapshot = query.logical.at(t, data)
    if query.form in ("construct", "describe"):
        return sorted(str(triple).replace(BASE, "") for triple in snapshot)
    return sorted(
        " ".join(str(x).replace(BASE, "") for v, x in sorted(row.items(), key=str) if not v.hidden)
        for row in snapshot
    )


REX, TOM = node("rex"), node("tom")
ITEMS = [((REX, TYPE, node("Dog")), 3), ((TOM, TYPE, node("Cat")), 5)]
ANIMALS = [DOG_IS_ANIMAL, CAT_IS_ANIMAL]
PATTERN = "{ ?x a :Animal }"
WINDOWS = [
    "FROM STREAM :s WINDOW RANGE 10 FIXED { ?x a :Animal }",
    "FROM STREAM :s WINDOW RANGE 99 FIXED { ?x a :Animal WINDOW RANGE 10 FIXED }",
    "FROM NAMED STREAM :s WINDOW RANGE 10 FIXED { GRAPH :s { ?x a :Animal } }",
    "FROM STREAM :s [RANGE 10ms STEP 1ms] { ?x a :Animal }",
    "{ STREAM :s [RANGE 10ms] { ?x a :Animal } }",
    "FROM NAMED WINDOW :w ON :s [RANGE 4ms STEP 2ms] { WINDOW :w { ?x a :Animal } }",
]


@pytest.mark.parametrize("text", WINDOWS)
def test_a_window_of_any_dialect_matches_what_its_elements_entail(text: str) -> None:
    text = f"SELECT ?x {text}"
    assert answers(text, 6, ITEMS, ANIMALS) == ["<rex>", "<tom>"]
    assert answers(text, 6, ITEMS, ANIMALS, entailment=None) == []
    assert answers(text, 6, ITEMS, [DOG_IS_ANIMAL]) == ["<rex>"]


def test_events_match_what_items_entail() -> None:
    text = "SELECT ?x ?y { { ?x a :Animal } SEQ { ?y a :Animal } }"
    assert answers(text, 5, ITEMS, ANIMALS) == ["<rex> <tom>"]
    assert answers(text, 5, ITEMS, [CAT_IS_ANIMAL]) == []


def test_a_rule_that_entailment_could_feed_with_its_own_absence_is_refused() -> None:
    text = "CONSTRUCT { ?x :new ?y } { ?x :p ?y OPTIONAL { ?x :q ?z } FILTER(!BOUND(?z)) }"
    streamsparql.compile(PREFIXES + text, "epsparql")
    with pytest.raises(UnsupportedFeature, match="its absence would depend on itself"):
        streamsparql.compile(PREFIXES + text, "epsparql", entailment="rdfs")


def test_a_bag_has_an_entailed_triple_once_per_statement_and_a_set_once() -> None:
    schema = [
        (node("p"), SUBPROPERTY, node("q")),
        (node("r"), SUBPROPERTY, node("q")),
        (node("q"), DOMAIN, node("C")),
        (node("p"), DOMAIN, node("C")),
    ]
    stream = [((REX, node(p), TOM), t) for t, p in enumerate("prp")]
    bag = "SELECT ?x ?y FROM STREAM :s WINDOW RANGE 10 FIXED { ?x :q ?y }"
    assert len(answers(bag, 4, stream, schema)) == 3
    typed = "SELECT ?x FROM STREAM :s WINDOW RANGE 10 FIXED { ?x a :C }"
    assert len(answers(typed, 4, stream, schema)) == 3  # not once per way to entail it
    of_set = "SELECT ?x ?y FROM STREAM :s [RANGE 10ms STEP 1ms] { ?x :q ?y }"
    assert len(answers(of_set, 4, stream, schema)) == 1


def test_static_graphs_entail_a_triple_once() -> None:
    graph = [*ANIMALS, (REX, TYPE, node("Dog")), (REX, TYPE, node("Cat"))]
    for sources in (
        "",
        "FROM STREAM :s WINDOW RANGE 10 FIXED ",
        "FROM STREAM :s [RANGE 9s STEP 1s]",
    ):
        assert answers(f"SELECT ?x {sources} {PATTERN}", 6, [], graph) == ["<rex>"]


def test_schema_on_a_stream_is_no_schema() -> None:
    stream = [*ITEMS, (DOG_IS_ANIMAL, 4)]
    for text in WINDOWS:
        assert answers(f"SELECT ?x {text}", 6, stream, [CAT_IS_ANIMAL]) == ["<tom>"]
    text = "SELECT ?c FROM STREAM :s WINDOW RANGE 10 FIXED { ?c rdfs:subClassOf ?d }"
    assert answers(text, 6, stream) == ["<Dog>"]  # though it is a triple like any other


def test_the_schema_is_that_of_the_default_graph_and_of_the_active_graph() -> None:
    inside = {"g": [DOG_IS_ANIMAL, (REX, TYPE, node("Dog"))], "h": [(TOM, TYPE, node("Dog"))]}
    text = "SELECT ?x { GRAPH %s { ?x a :Animal } }"
    assert answers(text % ":g", 0, graphs=inside) == ["<rex>"]
    assert answers(text % ":h", 0, graphs=inside) == []
    assert answers(text % "?n", 0, graphs=inside) == ["<rex>"]
    assert answers(text % ":h", 0, graph=[DOG_IS_ANIMAL], graphs=inside) == ["<tom>"]
    text = "SELECT ?x { ?x a :Animal }"
    assert answers(text, 0, graph=[(TOM, TYPE, node("Dog"))], graphs=inside) == []
    assert answers("SELECT ?x FROM :g { ?x a :Animal }", 0, graphs=inside) == ["<rex>"]
    stream = "SELECT ?x FROM STREAM :s WINDOW RANGE 9 FIXED FROM %s { ?x a :Animal }"
    assert answers(stream % ":g", 6, ITEMS, graphs=inside) == ["<rex>", "<rex>"]
    assert answers(stream % "NAMED :g", 6, ITEMS, graphs=inside) == []


def test_a_window_that_counts_elements_counts_statements() -> None:
    stream = [((node(name), TYPE, node("Dog")), t) for t, name in enumerate("abcd")]
    chain = [DOG_IS_ANIMAL, (node("Animal"), SUBCLASS, node("Thing"))]
    in_from = "SELECT ?x ?c FROM STREAM :s WINDOW ELEMS 2 { ?x a ?c }"
    in_group = "SELECT ?x ?c FROM STREAM :s WINDOW RANGE 99 FIXED { ?x a ?c WINDOW ELEMS 2 }"
    for text in (in_from, in_group):
        rows = answers(text, 9, stream, chain)
        assert sorted({row.split()[1] for row in rows}) == ["<c>", "<d>"]
        assert len(rows) == 6
    others = [((REX, node("likes"), TOM), 9 + k) for k in range(3)]
    assert answers(in_from, 20, stream + others, chain) == []
    assert len(answers(in_group, 20, stream + others, chain)) == 6  # it counts what matches


def test_a_group_window_selects_the_elements_that_entail_a_match() -> None:
    text = "SELECT ?x FROM STREAM :s WINDOW RANGE 9 FIXED { ?x a :Animal WINDOW ELEMS 2 }"
    query = streamsparql.compile(PREFIXES + text, base=BASE, entailment="rdfs")
    assert [type(x) for x in query.logical.walk() if isinstance(x, Entailing)] == [Entailing]


def test_a_path_follows_entailed_triples() -> None:
    schema = [(node("p"), SUBPROPERTY, node("q"))]
    stream = [((node("a"), node("p"), node("b")), 1), ((node("b"), node("q"), node("c")), 2)]
    text = "SELECT ?y FROM STREAM :s WINDOW RANGE 9 FIXED { :a :q+ ?y }"
    assert answers(text, 3, stream, schema) == ["<b>", "<c>"]


def test_describe_includes_entailed_triples_and_construct_adds_none() -> None:
    stream = [((REX, TYPE, node("Dog")), 1)]
    type_ = f"<{TYPE.value}>"
    described = answers("DESCRIBE :rex FROM STREAM :s WINDOW RANGE 9 FIXED", 3, stream, ANIMALS)
    assert described == [f"<rex> {type_} <{c}>" for c in ("Animal", "Dog")]
    text = "CONSTRUCT { ?x a :Dog } FROM STREAM :s WINDOW RANGE 9 FIXED { ?x a :Animal }"
    assert answers(text, 3, stream, ANIMALS) == [f"<rex> {type_} <Dog>"]


def test_a_timestamp_is_that_of_the_latest_statement_that_entails_the_triple() -> None:
    stream = [((REX, TYPE, node("Dog")), 1), ((REX, TYPE, node("Cat")), 4), (ITEMS[1][0], 5)]
    text = "SELECT ?x (timestamp(?x) AS ?t) FROM STREAM :s [RANGE 9ms STEP 1ms] { ?x a :Animal }"
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format
    assert answers(text, 6, stream, ANIMALS) == [f"{number(4)} <rex>", f"{number(5)} <tom>"]
    assert answers(text, 3, stream, ANIMALS) == [f"{number(1)} <rex>"]


def test_exists_sees_entailed_triples() -> None:
    text = "SELECT ?x FROM STREAM :s WINDOW RANGE 9 FIXED { ?x a ?c FILTER %s { ?c a :Class } }"
    schema = [(TYPE, RANGE, node("Class"))]
    assert answers(text % "EXISTS", 3, ITEMS[:1], schema) != []
    assert "<rex>" not in answers(text % "NOT EXISTS", 3, ITEMS[:1], schema)


@pytest.mark.parametrize("unknown", ["owl", "RDFS", "", "rdf"])
def test_an_unknown_entailment_is_refused(unknown: str) -> None:
    with pytest.raises(StreamSparqlError, match=f"unknown entailment '{unknown}'; expected rdfs"):
        streamsparql.compile("ASK {}", entailment=unknown)
    with pytest.raises(TypeError, match="entailment must be of type str"):
        streamsparql.compile("ASK {}", entailment=True)  # type: ignore[arg-type]


# -- rewriting -------------------------------------------------------------------------------------

EVENTS = [
    "{ ?x a ?c } SEQ { ?y :q ?c }",
    "{ ?x a :a FILTER(?x != :b) } EQUALS { ?x :p ?z }",
    "{ ?x a :a . ?x :p ?y } EQUALSOPTIONAL { ?x a ?c }",
]


@pytest.mark.parametrize("pattern", EVENTS)
def test_plans_of_events_keep_their_snapshots_when_they_are_rewritten(pattern: str) -> None:
    before = plan(f"PREFIX : <http://e/> SELECT * {{ {pattern} }}", "epsparql", "rdfs")
    after = rewrite(before).plan

    @settings(max_examples=15)
    @given(entailing.map(inputs_of))
    def check(data: Inputs) -> None:
        check_whole(before, after, data, instants(before, data)[:12])

    check()
