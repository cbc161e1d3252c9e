"""The engine with RDFS entailment: random queries and data in all modes, and known answers.

Three oracles: the definitions, for any query; pyoxigraph over the closure of each window's content,
with the rules as queries of its own (support/schemas.py); the W3C's tests of entailment.

Not tested here: the definitions themselves (tests/algebra/test_entailment.py); single operators
(tests/physical/test_entailment_operators.py); Spark (tests/spark/test_spark_entailment.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from _pytest.mark import ParameterSet
from hypothesis import given, settings
from hypothesis import strategies as st
from support import w3c
from support.engine import Data, Mode, disagreement, modes, read, result
from support.engine import _cells_of_definition as cells
from support.engine import cells as cells_of_row
from support.external_data import over_data
from support.families import FAMILIES, of_family
from support.generate import DIALECTS, EVERYTHING, queries
from support.oracle import answer, key, store
from support.plain_queries import PLAIN
from support.schemas import closed, entailing, entailing_history
from support.w3c import Case
from support.w3c_engine import NOW, STREAM, answer_of, labelled, streamed_text
from support.window_content import Content, content

import streamsparql
from streamsparql.algebra.entailment import SCHEMA_PREDICATES, SUBCLASS, SUBPROPERTY, TYPE
from streamsparql.algebra.terms import IRI
from streamsparql.errors import SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.run.input import RunInput
from streamsparql.run.result import EmbeddedComputation, Result

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

# -- random queries, in all modes ------------------------------------------------------------------


def check(text: str, over: Data, mode: Mode) -> None:
    """Check that the engine agrees with the definition."""
    difference = disagreement(text, over, mode._replace(entailment="rdfs"))
    assert not difference, difference


def agreement(dialect: str, examples: int) -> Any:
    features = replace(EVERYTHING, dialect=dialect, entailment=True)

    @settings(max_examples=examples)
    @given(queries(features), entailing, modes)
    def agrees(text: str, over: Data, mode: Mode) -> None:
        check(text, over, mode)

    return agrees


@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_query_agrees_with_the_definition(dialect: str) -> None:
    agreement(dialect, 40)()


@pytest.mark.long
@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_of_many_queries_agrees_with_the_definition(dialect: str) -> None:
    agreement(dialect, 2000)()


@pytest.mark.parametrize("family", FAMILIES)
def test_operators_over_entailed_triples_agree_with_the_definition(family: str) -> None:
    @settings(max_examples=8)
    @given(of_family(family), entailing, modes)
    def agrees(text: str, over: Data, mode: Mode) -> None:
        check(text, over, mode)

    agrees()


EVENTS = [
    "{ ?x a ?c } SEQ { ?y ?p ?c }",
    "{ ?x a :a FILTER(?x != :b) } EQUALS { ?x :p ?z }",
    "{ ?x a :a . ?x :p ?y } EQUALSOPTIONAL { ?x a ?c }",
    "{ ?x ?l ?y } OPTIONALSEQ { ?z a :a } FILTER(!BOUND(?y))",
    "{ ?x :q ?y OPTIONAL { ?x a ?c } } SEQ { ?z a :a }",
]


@pytest.mark.parametrize("pattern", EVENTS)
def test_patterns_of_events_agree_with_the_definition(pattern: str) -> None:
    text = f"PREFIX : <http://e/> SELECT * FROM STREAM :s {{ {pattern} }}"
    query = streamsparql.compile(text, "epsparql", entailment="rdfs")
    names = st.sampled_from([f"<http://e/{x}>" for x in "abpq"])
    links = st.sampled_from([f"<{x.value}>" for x in (TYPE, *SCHEMA_PREDICATES)]) | names
    triples = st.tuples(names, links, names)
    instants = st.integers(0, 5)
    items = st.lists(st.tuples(triples, instants), max_size=8).map(lambda x: sorted(x, key=_stamp))

    @settings(max_examples=40)
    @given(items, st.lists(triples, max_size=6))
    def agrees(stream: list[Any], graph: list[Any]) -> None:
        definition = streamsparql.inputs({"http://e/s": stream}, graph)
        rows = list(query.run(stream, graph))
        for t in range(definition.start, 6):
            expected = Counter(cells(query.form, x) for x in query.logical.at(t, definition))
            assert Counter(cells_of_row(query.form, x) for x in rows if x.end == t) == expected

    agrees()


def _stamp(item: Any) -> int:
    return int(item[1])


# -- another engine over the closure of windows ----------------------------------------------------

STREAMED = replace(
    PLAIN, streams=True, group_windows=False, named_graphs=False, entailment=True,
    aggregate_clauses=False, literals=("1", "2", '"x"'),
)  # fmt: skip
SETS = ["csparql", "cqels", "rspql"]


Windows = dict[str, tuple[str, Content]]
"""The stream and the content of windows, by the names of their graphs."""


def windows_of(text: str, dialect: str) -> tuple[str, Windows, set[str]]:
    """Return a query without its streams, its windows, and those of the default graph."""
    if dialect == "csparql":
        clauses = re.findall(r"FROM STREAM :(\w+) (\[.*?\])", text)
        plain = re.sub(r"FROM STREAM .*? (?=WHERE)", "", text)
        return plain, {s: (s, content(w, dialect)) for s, w in clauses}, {s for s, _ in clauses}
    if dialect == "rspql":
        clauses = re.findall(r"FROM NAMED WINDOW :(\w+) ON :s (\[.*?\])", text)
        plain = re.sub(r"FROM NAMED WINDOW .*? (?=WHERE)", "", text).replace(
            "WINDOW :w", "GRAPH :w"
        )
        return plain, {w: ("s", content(c, dialect)) for w, c in clauses}, set()
    if dialect == "cqels":
        windows = {}
        for k, clause in enumerate(re.findall(r"STREAM :s (\[.*?\])", text)):
            text = re.sub(r"STREAM :s \[.*?\]", f"GRAPH :b{k}", text, count=1)
            windows[f"b{k}"] = "s", content(clause, dialect)
        return text, windows, set()
    clauses = re.findall(r"FROM (?:NAMED )?STREAM :(\w+) (WINDOW .*?) (?=FROM|WHERE)", text)
    plain = re.sub(r"FROM (NAMED )?STREAM .*? (?=WHERE)", "", text)
    return plain, {s: (s, content(w, dialect)) for s, w in clauses}, {"s"}


def check_with_another_engine(text: str, dialect: str, seed: int) -> None:
    """Compare snapshots with pyoxigraph over the closure of the content; bags as sets."""
    query = streamsparql.compile(text, dialect, entailment="rdfs")
    data = entailing_history(seed).of(query, every_graph=False)
    plain, windows, default = windows_of(text, dialect)
    known = streamsparql.inputs(data.streams, data.graph)
    ours = query.run(data.streams, data.graph)
    answers: dict[object, object] = {}
    for t in range(known.start, known.start + 40, 3):
        held = {}
        for name, (stream, window) in windows.items():
            items = known.streams.get(IRI(f"http://e/{stream}"), ())
            positions = window([item.end for item in items], t)
            held[name] = frozenset(items[k].triple for k in positions)
        case = frozenset(held.items())
        if case not in answers:
            graph = known.graph.union(*(held[name] for name in default))
            named = {
                IRI(f"http://e/{name}"): closed(triples, known.graph)
                for name, triples in held.items()
                if name not in default
            }
            answers[case] = answer(store(closed(graph, known.graph), named), plain)
        mine, theirs = rows(query, ours.snapshot(t)), answers[case]
        if dialect == "streaming" and isinstance(theirs, Counter):
            mine, theirs = set(mine), set(theirs)  # type: ignore[call-overload]
        assert mine == theirs, f"seed {seed} at {t}: {text}\n{mine}\n{theirs}"


def rows(query: streamsparql.Query, snapshot: Any) -> object:
    """Return a snapshot in the form of `oracle.answer`."""
    if query.form == "ask":
        return snapshot
    return Counter(frozenset((n, key(x)) for n, x in row) for row in read(query, snapshot))  # type: ignore[attr-defined]


@pytest.mark.parametrize("dialect", SETS)
def test_snapshots_of_sets_agree_with_another_engine(dialect: str) -> None:
    @settings(max_examples=25)
    @given(queries(replace(STREAMED, dialect=dialect)), st.integers(0, 10_000))
    def agree(text: str, seed: int) -> None:
        check_with_another_engine(text, dialect, seed)

    agree()


@settings(max_examples=25)
@given(queries(replace(STREAMED, groups=False)), st.integers(0, 10_000))
def test_snapshots_of_bags_agree_with_another_engine_but_for_duplicates(
    text: str, seed: int
) -> None:
    check_with_another_engine(text, "streaming", seed)


# -- the W3C's tests -------------------------------------------------------------------------------

OTHER_RULES = {
    "paper-sparqldl-Q1-rdfs": "rdfs10: each class is a subclass of itself",
    "rdfs05": "rdfs10",
    "rdfs11": "rdfs6: each property is a subproperty of itself",
    "sparqldl-02": "rdfs10",
    "sparqldl-03": "rdfs10",
}
"""Tests of RDFS that depend on rules about single classes and properties, which are not applied."""


def rdfs_cases(data: Path) -> Iterator[ParameterSet]:
    for case, regimes in w3c.entailment_cases(data):
        name = case.name.rpartition("/")[2]
        if "RDFS" in regimes:
            marks = [pytest.mark.skip(reason=OTHER_RULES[name])] if name in OTHER_RULES else []
            yield pytest.param(case, id=name, marks=marks)


def test_cases_of_the_w3c_are_counted(data: Path) -> None:
    regimes = [regimes for _, regimes in w3c.entailment_cases(data)]
    of_rdfs = [one for one in regimes if "RDFS" in one]
    assert (len(regimes), len(of_rdfs), len(of_rdfs) - len(OTHER_RULES)) == (70, 36, 31)


@pytest.mark.parametrize("optimize", [True, False], ids=["rules", "plain"])
@pytest.mark.parametrize("case", over_data(rdfs_cases))
def test_the_w3cs_answers_follow_from_static_data(case: Case, optimize: bool) -> None:
    options = {"base": case.query, "optimize": optimize, "entailment": "rdfs"}
    query = streamsparql.compile(case.text, **options)
    data = labelled(w3c.inputs(case, query))
    run_input = RunInput({}, list(data.graph), started=NOW)
    ours = answer_of(query, Result(EmbeddedComputation(query, run_input)).snapshot(0))
    difference = w3c.difference(case, query, ours, w3c.expected(case))
    assert not difference, difference


@pytest.mark.parametrize("case", over_data(rdfs_cases))
def test_the_w3cs_answers_follow_from_a_stream_and_a_static_schema(case: Case) -> None:
    plain = streamsparql.compile(case.text, base=case.query)
    data = labelled(w3c.inputs(case, plain))
    query = streamsparql.compile(streamed_text(case, plain, {}), base=case.query, entailment="rdfs")
    triples = sorted(data.graph, key=str)
    statements = [x for x in triples if is_of_schema(x)]
    stream = [(x, 5 + k) for k, x in enumerate(x for x in triples if not is_of_schema(x))]
    run_input = RunInput({STREAM: stream}, statements, start=0, started=NOW)
    ours = answer_of(query, Result(EmbeddedComputation(query, run_input)).snapshot(1000))
    difference = w3c.difference(case, query, distinct(ours), distinct(w3c.expected(case)))
    assert not difference, difference


def is_of_schema(triple: Any) -> bool:
    """Return whether a triple is a statement of a schema, or about one of its properties."""
    return triple.predicate in SCHEMA_PREDICATES or "Property" in str(triple.object)


def distinct(ours: w3c.Answer) -> w3c.Answer:
    """Return an answer without duplicates: a bag counts an entailed triple once per statement."""
    return replace(ours, rows=tuple(dict.fromkeys(ours.rows)))


# -- one case at a time ----------------------------------------------------------------------------

S = "http://e/s"


def iri(name: str) -> str:
    return f"<http://e/{name}>"


RDF_TYPE, SUB, SUBPROP = map(str, (TYPE, SUBCLASS, SUBPROPERTY))
ANIMALS = [
    (iri("Dog"), SUB, iri("Mammal")),
    (iri("Mammal"), SUB, iri("Animal")),
    (iri("owns"), SUBPROP, iri("knows")),
]
QUERY = streamsparql.compile(
    "PREFIX : <http://e/> SELECT ?x FROM STREAM :s WINDOW RANGE 10 FIXED { ?x a :Animal }",
    entailment="rdfs",
)


def found(stream: list[Any], graph: Any, query: streamsparql.Query = QUERY) -> list[str]:
    return [str(row["x"]).removeprefix("http://e/") for row in query.run(stream, graph)]


def test_a_live_query_reads_the_schema_when_it_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "animals.nt"
    file.write_text("".join(f"{' '.join(x)} .\n" for x in ANIMALS))
    with QUERY.open(graph=str(file)) as live:
        file.write_text("")
        live.push(S, (iri("rex"), RDF_TYPE, iri("Dog")), 3)
        live.push(S, (iri("Cat"), SUB, iri("Animal")), 4)  # no schema
        live.push(S, (iri("tom"), RDF_TYPE, iri("Cat")), 5)
        live.advance(30)
        assert [str(row["x"]) for row in live.rows()] == ["http://e/rex"]


def test_a_source_keeps_the_items_that_entail_a_match_and_no_others() -> None:
    query = "PREFIX : <http://e/> SELECT * FROM STREAM :s WINDOW RANGE 9 FIXED { %s }"
    items = [
        ((iri("a"), iri(p), iri("b")), t) for t, p in enumerate(("owns", "knows", "hears", "owns"))
    ]
    for pattern, unmatched in (("?x :knows ?y", 1), ("?x :owns ?y", 2), ("?x ?p ?y", 0)):
        compiled = streamsparql.compile(query % pattern, entailment="rdfs")
        analysis = compiled.analyze(items, ANIMALS)
        assert analysis.items.unmatched == unmatched, pattern
    path = streamsparql.compile(query % "?x :knows+ ?y", entailment="rdfs")
    assert path.analyze(items, ANIMALS).items.unmatched == 1
    assert analysis.schema == "2 subclasses, 1 subproperty"


def test_domains_and_ranges_of_predicates_keep_their_items() -> None:
    domain = "<http://www.w3.org/2000/01/rdf-schema#domain>"
    schema = [*ANIMALS, (iri("owns"), domain.replace("domain", "range"), iri("Dog"))]
    stream = [((iri("ann"), iri("owns"), iri("rex")), 1), ((iri("ann"), iri("owns"), '"7"'), 2)]
    assert found(stream, schema) == ["rex"]
    found_ = found(stream, [*schema, (iri("owns"), domain, iri("Animal"))])
    assert sorted(found_) == ["ann", "ann", "rex"]


@pytest.mark.parametrize("statement", [(RDF_TYPE, SUBPROP, SUB), (RDF_TYPE, SUBPROP, SUBPROP)])
def test_a_schema_that_types_would_extend_is_refused(statement: tuple[str, str, str]) -> None:
    with pytest.raises(SourceError, match="declare rdf:type a subproperty of a property of the"):
        found([], [*ANIMALS, statement])


def test_terms_of_the_schema_survive_the_recycling_of_terms() -> None:
    """Terms of the stream get ids that others had; those of the schema keep theirs."""
    query = streamsparql.compile(
        "PREFIX : <http://e/> SELECT ?x ?c FROM STREAM :s WINDOW RANGE 10 FIXED { ?x a ?c }",
        entailment="rdfs",
    )
    seen: Counter[str] = Counter()
    with patch.object(TermDictionary, "due", lambda _: True), query.open(graph=ANIMALS) as live:
        for k in range(60):
            kind = "Dog" if k % 3 else f"other{k}"
            live.push(S, (iri(f"x{k}"), RDF_TYPE, iri(kind)), 20 * k)
            seen.update(str(row["c"]).removeprefix("http://e/") for row in live.rows())
        assert live.stats().terms < 40
    seen.update(str(row["c"]).removeprefix("http://e/") for row in live.rows())
    assert seen == {
        "Dog": 40,
        "Mammal": 40,
        "Animal": 40,
        **{f"other{k}": 1 for k in range(0, 60, 3)},
    }


def test_a_hierarchy_of_any_depth_is_read_without_recursion() -> None:
    chain = [(iri(f"C{k}"), SUB, iri(f"C{k + 1}")) for k in range(5000)]
    query = streamsparql.compile(
        "PREFIX : <http://e/> SELECT ?x FROM STREAM :s WINDOW RANGE 10 FIXED { ?x a :C5000 }",
        entailment="rdfs",
    )
    assert found([((iri("a"), RDF_TYPE, iri("C0")), 1)], chain, query) == ["a"]


# -- an instance check of EP-SPARQL's evaluation ---------------------------------------------------


def plants(classes: int = 40_080, depth: int = 8) -> list[tuple[str, str, str]]:
    """Return a hierarchy of classes; the lowest are `depth` steps below the top."""
    random = Random(5)
    levels = [[0]]
    sizes = [3, 20, 120, 700, 4000, 12_000, 15_000]
    sizes.append(classes - 1 - sum(sizes))
    assert len(sizes) == depth
    statements, number = [], 1
    for size in sizes:
        here = list(range(number, number + size))
        statements += [(f"<p:{k}>", SUB, f"<p:{random.choice(levels[-1])}>") for k in here]
        levels.append(here)
        number += size
    return statements


def test_instances_of_a_class_with_40080_subclasses_are_found() -> None:
    """WWW 2011, section 6, test 2: instance checks against a class hierarchy."""
    schema, random = plants(), Random(7)
    assert len(schema) == 40_079
    text = "SELECT ?x FROM STREAM <s> WINDOW RANGE 10 FIXED { ?x a <p:0> }"
    query = streamsparql.compile(text, entailment="rdfs")
    items = [
        ((f"<i:{k}>", RDF_TYPE, f"<{random.choice('pq')}:{random.randrange(40_080)}>"), k)
        for k in range(3000)
    ]
    expected = [item[0][0].strip("<>") for item in items if item[0][2].startswith("<p:")]
    result_ = query.run(items, schema)
    assert sorted(str(row["x"]) for row in result_) == sorted(expected)
    every = streamsparql.compile(text.replace("?x a <p:0>", "?x a ?c"), entailment="rdfs")
    parents = {one: other for one, _, other in schema}

    def above(name: str) -> int:
        return 1 + (above(parents[name]) if name in parents else 0)

    assert len(list(every.run(items[:300], schema))) == sum(above(x[0][2]) for x in items[:300])


def test_definition_and_engine_agree_on_unused_schemas() -> None:
    data = Data({S: [((iri("a"), RDF_TYPE, iri("Dog")), 3)]})
    mode = Mode(entailment="rdfs")
    assert not disagreement(QUERY.text, data, mode)
    assert list(result(QUERY, data)) == []
