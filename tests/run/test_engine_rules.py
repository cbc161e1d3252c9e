"""CONSTRUCT rules run as they are defined (SEMANTICS.md section 7).

Random sets of rules, with sequences, absence and recursion, are compared with the definition of the
closure, over histories and live. The queries of the paper are in tests/translator/test_papers.py.
"""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import count, groupby
from random import Random
from typing import Any

import pytest
from support.engine import Mode, cells, settings_of, show
from support.engine import _cells_of_definition as cells_of_definition
from support.events import PREFIX, SOURCES, random_events
from support.rule_writers import RecursiveWriter, RuleWriter
from test_engine_events import (
    check_many,
    disordered,
    quoted,
    rows_of_history,
    rows_of_live_query,
)

import streamsparql
from streamsparql.algebra import event
from streamsparql.algebra.entailment import SUBPROPERTY
from streamsparql.algebra.functions import Run
from streamsparql.algebra.inputs import DEFAULT_STREAM
from streamsparql.errors import (
    EngineError,
    LimitExceeded,
    QueryError,
    TextError,
    UnsupportedFeature,
)
from streamsparql.physical import rule_closure
from streamsparql.run.input import RunInput

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

WAYS = [0, 1 << 30]
"""Values of FEW_ROWS with which rules are evaluated by column, and row by row."""


def check_recursive_rules(random: Random) -> None:
    check_rules(random, RecursiveWriter(random))


def check_rules(random: Random, writer: RuleWriter | None = None) -> None:
    writer = writer or RuleWriter(random)
    rules = [PREFIX + writer.rule() for _ in range(random.randint(1, 3))]
    where = writer.pick("{ ?x ?l ?y }", "{ ?x :r ?y }", writer.chain(), writer.where(2))
    text = f"{PREFIX}SELECT * {SOURCES}{where}"
    if random.random() < 0.3:
        text = PREFIX + writer.rule()
    options: dict[str, Any] = {"optimize": random.random() < 0.7}
    if random.random() < 0.2:
        options["entailment"] = "rdfs"
    try:
        query = streamsparql.compile(text, "epsparql", rules=rules, **options)
    except UnsupportedFeature as error:
        assert "would depend on itself" in str(error)
        return
    data = random_events(random, random.choice([5, 14]))
    streams = {
        name: [
            ((s, "<http://e/r>" if random.random() < 0.3 else p, o), start, end)
            for (s, p, o), start, end in quoted(data.streams[name])
        ]
        for name in query.streams
    }
    static = [tuple(f"<{word}>" for word in text.split()) for text in data.static]
    if "entailment" in options:
        static.append(("<http://e/q>", f"<{SUBPROPERTY.value}>", "<http://e/r>"))
    definition = streamsparql.inputs(streams, static, run=Run())
    delay = random.choice([0, 0, 2, 5])
    arrived = {name: disordered(items, delay, random) for name, items in streams.items()}
    run_input = RunInput(arrived, static, max_delay=delay, started=0)
    mode = Mode(chunk=random.choice([1, 2, 3, 65_536]), cut_after=random.choice([1, 3, 65_536]))
    way = random.choice(["by column", "by row", "changing"])
    with settings_of(mode), pytest.MonkeyPatch.context() as patch:
        if way == "changing":
            changes = lambda *_: random.random() < 0.5  # noqa: E731
            patch.setattr(rule_closure.RuleClosure, "_changes", changes)
        else:
            patch.setattr(rule_closure, "FEW_ROWS", 0 if way == "by column" else 64)
        if random.random() < 0.5:
            rows = rows_of_history(query, run_input)
        else:
            rows = rows_of_live_query(query, run_input, random)
    about_events = event.returns_events(query.optimized)
    described = "\n".join([way, *rules, text, str(arrived), str(static)])
    for t in range(definition.start, 13):
        expected = Counter(
            cells_of_definition(query.form, x) for x in query.logical.at(t, definition)
        )
        here = (r for r in rows if (r.end == t if about_events else r.start <= t < r.end))
        detections = Counter(cells(query.form, row) for row in here)
        detections = Counter(set(detections)) if query.form == "construct" else detections
        assert detections == expected, (
            f"at {t}: {show(detections)}, not {show(expected)}\n{described}"
        )


def test_rules_agree_with_the_definition_in_all_modes() -> None:
    check_many(150, check_rules)


def test_recursive_rules_agree_with_the_definition_in_all_modes() -> None:
    check_many(100, check_recursive_rules)


@pytest.mark.long
def test_many_rules_agree_with_the_definition_in_all_modes() -> None:
    check_many(20_000, check_rules)
    check_many(20_000, check_recursive_rules)


# -- cases ------------------------------------------------------------------------------------------

STEPS = [(("<a>", "<p>", "<b>"), 1), (("<b>", "<p>", "<c>"), 3), (("<c>", "<p>", "<d>"), 5)]


def ends(text: str, items: Any, rules: Any = (), **options: Any) -> list[tuple[str, int, int]]:
    """Return the values of the rows of a query, with their occurrences."""
    rows = streamsparql.compile(text, "epsparql", rules=rules).run(items, **options)
    return sorted((" ".join(map(str, row.values())), row.start, row.end) for row in rows)


def test_rules_are_a_pipeline() -> None:
    rules = [
        "CONSTRUCT { ?x <q> ?z } { { ?x <p> ?y } SEQ { ?y <p> ?z } }",
        "CONSTRUCT { ?x <r> ?w } { { ?x <q> ?z } SEQ { ?z <p> ?w } }",
    ]
    text = "SELECT ?x ?w { ?x <r> ?w }"
    assert ends(text, STEPS, rules) == [("a d", 1, 5)]
    assert ends(text, STEPS, ["\n".join(reversed(rules))]) == [("a d", 1, 5)]
    assert ends(text, STEPS, rules[1:]) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_transitive_rule_finds_all_increasing_paths(seed: int) -> None:
    random = Random(seed)
    edges = [(random.randrange(6), random.randrange(6), t) for t in range(25)]
    items = [((f"<{x}>", "<next>", f"<{y}>"), t) for x, y, t in edges]
    paths = {(x, y, t, t) for x, y, t in edges}
    while True:
        longer = {(x, w, a, d) for x, y, a, b in paths for z, w, c, d in paths if y == z and b < c}
        if longer <= paths:
            break
        paths |= longer
    rule = "CONSTRUCT { ?x <next> ?z } { { ?x <next> ?y } SEQ { ?y <next> ?z } }"
    paths_of_engine = ends("SELECT ?x ?y { ?x <next> ?y }", items, [rule])
    assert paths_of_engine == sorted((f"{x} {y}", a, b) for x, y, a, b in paths)


def test_a_rule_derives_its_own_premise_once() -> None:
    rule = "CONSTRUCT { ?x <p> ?y } { ?x <p> ?y }"
    assert ends("SELECT * { ?x <p> ?y }", STEPS, [rule]) == ends("SELECT * { ?x <p> ?y }", STEPS)


def test_a_blank_node_of_a_rule_is_one_node_per_solution() -> None:
    rule = "CONSTRUCT { _:n <of> ?x . _:n <at> ?y } { ?x <p> ?y }"
    text = "SELECT ?x ?y { ?n <of> ?x . ?n <at> ?y }"
    assert [values for values, *_ in ends(text, STEPS, [rule])] == ["a b", "b c", "c d"]


def test_static_solutions_derive_nothing() -> None:
    rule = "CONSTRUCT { ?x <q> ?y } { ?x <static> ?y }"
    graph = [("<a>", "<static>", "<b>")]
    assert ends("SELECT * { ?x <q> ?y }", STEPS, [rule], graph=graph) == []


def test_absence_of_what_another_rule_derives_is_known_at_once() -> None:
    rules = [
        "CONSTRUCT { ?x <big> 1 } { ?x <size> ?n FILTER(?n > 5) }",
        "CONSTRUCT { ?x <small> 1 } { ?x <size> ?n OPTIONAL { ?x <big> ?b } FILTER(!BOUND(?b)) }",
    ]
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    items = [(("<a>", "<size>", number.format(3)), 1), (("<b>", "<size>", number.format(7)), 1)]
    live = streamsparql.compile("SELECT ?x { ?x <small> 1 }", "epsparql", rules=rules).open()
    for item in items:
        live.push(DEFAULT_STREAM.value, *item)
    live.advance(2)
    assert [str(row["x"]) for row in live.rows()] == ["a"]
    live.close()


def test_rules_that_require_their_own_absence_are_refused_with_the_cycle() -> None:
    rules = [
        "CONSTRUCT { ?x <q> 1 } { ?x <p> ?y OPTIONAL { ?x <r> ?k } FILTER(!BOUND(?k)) }",
        "CONSTRUCT { ?x <r> ?y } { ?x <q> ?y }",
    ]
    with pytest.raises(UnsupportedFeature) as caught:
        streamsparql.compile("SELECT * { ?x <q> ?y }", rules=rules)
    expected = "optional in rule 1, and rule 1 feeds rule 2, rule 2 feeds rule 1"
    assert expected in str(caught.value)
    assert caught.value.line == 1


def test_rules_without_end_are_named_with_the_instant(monkeypatch: Any) -> None:
    monkeypatch.setattr("streamsparql.algebra.closure.MAX_CLOSURE_ROUNDS", 20)
    rules = ["CONSTRUCT { ?y <p> _:n } { ?x <p> ?y }"]
    query = streamsparql.compile("SELECT * { ?x <p> ?y }", "epsparql", rules=rules)
    expected = r"instant 1: after 20 rounds .* \?y <p> _:"
    with pytest.raises(EngineError, match=expected):
        list(query.run(STEPS))
    live = query.open()
    live.push_many(DEFAULT_STREAM.value, STEPS)
    with pytest.raises(EngineError, match=expected):
        live.rows()


NEW_TERMS = {
    "a rule that doubles the triples": "CONSTRUCT { _:a <p> ?y . _:b <p> ?y } { ?x <p> ?y }",
    "a rule that squares the triples": "CONSTRUCT { _:a <p> ?y } { ?x <p> ?y . ?z ?p ?w }",
    "numbers": "CONSTRUCT { ?x <p> ?z . ?x <p> ?w }"
    " { SELECT ?x ?z AS ?y * 2 ?w AS ?y * 2 + 1 { ?x <p> ?y } }",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NEW_TERMS)
def test_rules_that_make_ever_more_terms_are_named_before_the_memory_is_full(
    name: str, way: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr(rule_closure, "FEW_ROWS", way)
    monkeypatch.setattr("streamsparql.algebra.closure.MAX_CLOSURE_TRIPLES", 200)
    monkeypatch.setattr(
        "streamsparql.physical.rules_by_column._PAIRS", streamsparql.Limits(rows=800)
    )
    query = streamsparql.compile("SELECT * { ?x <p> ?y }", "epsparql", rules=[NEW_TERMS[name]])
    items = [*STEPS, (("<d>", "<p>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'), 5)]
    with pytest.raises(EngineError, match=r"instant [15]: more than 200 triples of CONSTRUCT"):
        list(query.run(items))
    with pytest.raises(EngineError, match=r"instant [15]: more than 200 triples of CONSTRUCT"):
        query.logical.at(
            6, streamsparql.inputs({DEFAULT_STREAM.value: items[:1] + items[3:]}, run=Run())
        )


@pytest.mark.parametrize("way", WAYS)
def test_triples_that_double_at_each_instant_are_named(way: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(rule_closure, "FEW_ROWS", way)
    monkeypatch.setattr("streamsparql.algebra.closure.MAX_CLOSURE_TRIPLES", 2_000)
    rules = ["CONSTRUCT { _:a <p> ?y } { { ?x <p> ?y } SEQ { ?z <q> ?y } }"]
    items = [(("<a>", "<p>", "<b>"), 0), *((("<a>", "<q>", "<b>"), t) for t in range(1, 40))]
    with pytest.raises(EngineError, match=r"instant (12|39): more than 2,000 triples of CONSTRUCT"):
        list(streamsparql.compile("SELECT * { ?x <p> ?y }", "epsparql", rules=rules).run(items))


CHAIN = [(f"<{n}>", "<next>", f"<{n + 1}>", n) for n in range(150)]
PATHS = "CONSTRUCT { ?x <next> ?z } { { ?x <next> ?y } SEQ { ?y <next> ?z } }"


@pytest.mark.parametrize(
    "limits",
    [
        streamsparql.Limits(rows=3_000),
        streamsparql.Limits(state=3_000),
        streamsparql.Limits(memory=1 << 18),
        streamsparql.Limits(time=60.0),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_rules_meet_any_limit(limits: streamsparql.Limits, way: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(rule_closure, "FEW_ROWS", way)
    query = streamsparql.compile("SELECT * { ?x <next> ?y }", rules=[PATHS])
    assert query.optimized
    clock = count()
    monkeypatch.setattr("streamsparql.limits.perf_counter", lambda: next(clock))
    result = query.run(CHAIN, limits=limits)
    for _ in range(2):  # the same error again
        with pytest.raises(LimitExceeded) as raised:
            result.to_arrow()
        assert getattr(limits, raised.value.limit) == raised.value.value
        assert raised.value.operator
    live = query.open(limits=limits)
    live.push_many(DEFAULT_STREAM.value, CHAIN)
    with pytest.raises(LimitExceeded):
        live.rows()
    monkeypatch.undo()
    monkeypatch.setattr(rule_closure, "FEW_ROWS", way)
    assert len(list(query.run(CHAIN, limits=streamsparql.Limits(rows=1 << 20, time=1e6)))) == 11_325


@pytest.mark.parametrize("way", WAYS)
def test_a_derivation_over_many_instants_may_take_more_rounds_than_an_instant(
    way: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr(rule_closure, "FEW_ROWS", way)
    monkeypatch.setattr("streamsparql.algebra.closure.MAX_CLOSURE_ROUNDS", 5)
    rule = "CONSTRUCT { ?x <path> ?z } { { ?x <path> ?y } SEQ { ?y <next> ?z } }"
    items = [("<0>", "<path>", "<1>", 0), *((x, p, y, t + 1) for x, p, y, t in CHAIN[1:60])]
    rows = streamsparql.compile("SELECT ?y { <0> <path> ?y }", "epsparql", rules=[rule]).run(items)
    assert [str(row["y"]) for row in rows] == [str(n) for n in range(1, 61)]


def test_an_open_query_changes_between_rows_and_columns() -> None:
    bound = 'FILTER(getDURATION() < "PT0.5S"^^<http://www.w3.org/2001/XMLSchema#duration>)'
    rule = f"{PATHS[:-2]} {bound} }}"
    query = streamsparql.compile("SELECT * { ?x <next> ?y }", rules=[rule])
    edges = [(f"<{t * 7 % 97}>", "<next>", f"<{t * 5 % 97}>", t) for t in range(3_000)]
    ways, rows = [], []
    with query.open() as live:
        operators = live._execution.pipeline.operators
        (closure,) = (x for x in operators if isinstance(x, rule_closure.RuleClosure))
        first = 0
        for size in [1] * 40 + [2_000] + [1] * 600 + [360]:
            live.push_many(DEFAULT_STREAM.value, edges[first : first + size])
            rows += live.rows()
            ways.append(closure._by_row)
            first += size
        live.advance(4_000)
        rows += live.rows()
    assert [way for way, _ in groupby(ways)] == [True, False, True, False]
    expected = [(str(row["x"]), str(row["y"]), row.start, row.end) for row in query.run(edges)]
    events = [(str(row["x"]), str(row["y"]), row.start, row.end) for row in rows]
    assert sorted(events) == sorted(expected)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("SELECT * { ?x ?y ?z }", "rule 1: a rule is a CONSTRUCT, not a SELECT"),
        ("CONSTRUCT { ?x <q> 1 } { ?x <p> ?y } LIMIT 1", "rule 1: a rule's triples become part"),
        ("CONSTRUCT { ?x <q> 1 } FROM STREAM <s> { ?x <p> ?y }", "rule 1 derives triples of the"),
        ("CONSTRUCT { ?x <q> }", "rule 1: "),
    ],
)
def test_what_is_no_rule_is_refused(rule: str, message: str) -> None:
    with pytest.raises(TextError, match=message):
        streamsparql.compile("SELECT * { ?x <p> ?y }", rules=[rule])


def test_rules_of_one_text_have_their_places_and_the_prefixes_before_them() -> None:
    text = """PREFIX : <http://e/>  # CONSTRUCT
        CONSTRUCT { ?x :construct "CONSTRUCT {" } WHERE { ?x :p ?y }
        BASE <http://b/>
        CONSTRUCT { ?x <q> ?y } WHERE { ?x :construct ?y }
        CONSTRUCT { ?x <r> ?y } WHERE { ?x <q ?y }"""
    with pytest.raises(TextError, match=r"line 5.*rule 3"):
        streamsparql.compile("SELECT * { ?x ?y ?z }", rules=[text])
    items = [(("<http://e/1>", "<http://e/p>", "<x>"), 1)]
    query = "SELECT ?y { ?x <http://b/q> ?y }"
    assert [values for values, *_ in ends(query, items, [text[: text.rindex("CONSTRUCT")]])] == [
        "CONSTRUCT {"
    ]


def test_rules_are_for_events_only() -> None:
    with pytest.raises(QueryError, match="rules derive events, but C-SPARQL"):
        streamsparql.compile("SELECT * { ?x ?y ?z }", "csparql", rules=["CONSTRUCT {} {}"])
    with pytest.raises(TypeError, match="rules must be a list of texts"):
        streamsparql.compile("SELECT * { ?x ?y ?z }", rules="CONSTRUCT {} {}")


def test_rules_without_a_bound_have_a_warning_in_their_own_text() -> None:
    rule = "CONSTRUCT { ?x <q> ?z } { { ?x <p> ?y } SEQ { ?y <p> ?z } }"
    (warning,) = streamsparql.compile("SELECT * { ?x <q> ?y }", rules=[rule]).check()
    assert (warning.code, warning.text) == ("unbounded-state", rule)


def test_rules_are_part_of_a_pickled_query() -> None:
    rules = ["CONSTRUCT { ?x <q> ?y } { ?x <p> ?y }"]
    query = pickle.loads(pickle.dumps(streamsparql.compile("SELECT * { ?x <q> ?y }", rules=rules)))
    assert len(list(query.run(STEPS))) == 3


def test_state_of_bounded_rules_is_flat() -> None:
    bound = 'FILTER(getDURATION() < "PT0.01S"^^<http://www.w3.org/2001/XMLSchema#duration>)'
    rule = f"CONSTRUCT {{ ?x <p> ?z }} {{ {{ ?x <p> ?y }} SEQ {{ ?y <p> ?z }} {bound} }}"
    text = f"SELECT ?x {{ ?x <p> ?x {bound} }}"
    live = streamsparql.compile(text, "epsparql", rules=[rule]).open()
    sizes = []
    for t in range(0, 600, 3):
        live.push(DEFAULT_STREAM.value, (f"<{t % 7}>", "<p>", f"<{(t + 3) % 7}>"), t)
        live.rows()
        sizes.append(live.stats().state)
    live.close()
    assert max(sizes[20:]) <= max(sizes[:20])
