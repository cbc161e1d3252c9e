"""The grammar: one language for five dialects, without conflicts; and known ambiguities."""

from __future__ import annotations

import logging
import re

import pytest
from lark import Lark, logger
from support.accepted_queries import ACCEPTED

from streamsparql.errors import QuerySyntaxError
from streamsparql.translator import build
from streamsparql.translator import syntax as s
from streamsparql.translator.grammar.make_parse_table import (
    LAYERS,
    TARGET,
    grammar_text,
    module_text,
)
from streamsparql.translator.lalr_parser import ParseTable, load_table, parse_text
from streamsparql.translator.parse import parse


@pytest.mark.parametrize("layers", [LAYERS[:1], LAYERS], ids=["SPARQL 1.1", "all"])
def test_the_grammar_has_no_conflict(layers, caplog):
    """Lark resolves conflicts silently; only its debug log reports them."""
    with caplog.at_level(logging.DEBUG, logger.name):
        Lark(grammar_text(layers), parser="lalr", debug=True, maybe_placeholders=False)
    assert not [record for record in caplog.records if "onflict" in record.message]


def test_each_rule_has_a_method_and_each_method_a_rule():
    table = load_table()
    passing = {rule.callback[1:] for rule in table.rules if rule.callback.startswith(">")}
    called = {rule.callback for rule in table.rules if rule.callback[:1] not in (">", "")}
    methods = set(build.CALLBACKS)
    assert called <= methods
    assert methods - called <= passing


def test_the_parse_table_is_up_to_date():
    """Update it with `make parse-table`."""
    assert TARGET.read_text("utf-8") == module_text()


def test_rows_of_the_parse_table_are_decoded_on_first_use():
    table = ParseTable()
    assert not table.actions
    parse_text(table, "SELECT * {}", build.CALLBACKS)
    assert 0 < len(table.actions) < len(table) / 10


REFUSED = [
    "SELECT * FROM STREAM <s> WINDOW RANGE SLIDE { ?s ?p ?o }",
    "SELECT * { ?s ?p ?o WINDOW ELEMS 5 . ?a ?b ?c }",
    "SELECT * FROM STREAM <s> WINDOW RANGE 30 FORTNIGHT SLIDE {}",
    "SELECT * FROM <s> WINDOW ELEMS 5 {}",
    "REGISTER QUERY AS SELECT * FROM STREAM <s> [RANGE] {}",
    "REGISTER QUERY q SELECT * {}",
    "REGISTER QUERY q AS SELECT * FROM STREAM <s> [STEP 5m] {}",
    "REGISTER QUERY q AS SELECT * {} AGGREGATE { ?x COUNT }",
    "SELECT * { GRAPH <s> [NOW] { ?s ?p ?o } }",
    "SELECT * FROM NAMED <s> [THEN] {}",
    "SELECT * { ?s ?p ?o SEQ { ?s ?p ?o } }",
    "SELECT * { {?s ?p ?o} SEQ }",
    "SELECT * { SEQ {?s ?p ?o} }",
    "SELECT * {?s ?p ?o FILTER(getDURATION(?s) > 1)}",
    "REGISTER XSTREAM <o> AS SELECT * {}",
    "SELECT * FROM WINDOW <w> ON <s> [RANGE PT10S STEP PT5S] {}",
    "SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE P10 STEP PT5S] {}",
    "SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE PT STEP PT5S] {}",
    "SELECT * { ?x<p>?y FILTER(?x<?a&&?b>?y) }",  # <?a&&?b> is an IRI: the longest token
    "SELECT ?x y { ?x ?y ?z }",
]


@pytest.mark.parametrize("text", [text for texts in ACCEPTED.values() for text in texts])
def test_a_valid_query_is_accepted(text):
    parse(text)


@pytest.mark.parametrize("text", REFUSED)
def test_an_invalid_query_is_refused(text):
    with pytest.raises(QuerySyntaxError):
        parse(text)


@pytest.mark.parametrize("text", [text for texts in ACCEPTED.values() for text in texts])
def test_line_ends_and_comments_change_nothing(text):
    spaced = re.sub(OUTSIDE_STRINGS, " # FILTER ( } ' \r\n", text.partition(" #")[0])
    assert shape(parse(spaced)) == shape(parse(text))


OUTSIDE_STRINGS = r""" (?=(?:[^'"]|'[^']*'|"[^"]*")*$)"""


def shape(query: s.QueryUnit) -> list[object]:
    """Return the nodes of a query without the positions that distinguish unnamed blank nodes."""
    return [None if isinstance(n, s.Blank) else type(n) if n.parts() else n for n in query.walk()]


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("?total-sensor", "VAR"),
        ("?x-y-z", "VAR"),
        ("?x-1", "?x - 1"),
        ("?x-?y", "?x - ?y"),
        ("?x-abs(?y)", "?x - abs(?y)"),
        ("?x-abs (?y)", "?x - abs(?y)"),
        ("?x-e:y", "?x - e:y"),
        ("?x-true", "?x - true"),
        ("?x -1", "?x - 1"),
        ("?x -1 * 3", "?x - 1 * 3"),
        ("1-1", "1 - 1"),
    ],
)
def test_a_hyphen_joins_a_name_or_subtracts(text, same_as):
    def expression(text: str) -> s.SyntaxNode:
        query = parse(f"PREFIX e: <e> SELECT * {{ FILTER({text}) }}")
        return next(node for node in query.walk() if isinstance(node, s.FilterClause)).condition

    if same_as == "VAR":
        assert expression(text) == s.Var(text[1:])
    else:
        assert expression(text) == expression(same_as)


def test_in_a_select_list_a_hyphen_always_joins():
    query = parse(
        "SELECT ?total-count (SUM(?x) AS ?y) { ?total-count ?x ?z } GROUP BY ?total-count"
    )
    (first, _) = query.form.select.items
    assert first.variable == s.Var("total-count")


def test_time_units_are_valid_names_elsewhere():
    parse("PREFIX s: <s> PREFIX m: <m> SELECT ?s ?m ?P1D { ?s m:s ?m . s:m s:h ?P1D }")


def test_nodes_have_the_span_of_their_text():
    text = "SELECT ?x { ?x <p> 5 . FILTER(?x > 1) }"
    spans = {type(node).__name__: node.span.of(text) for node in parse(text).walk()}
    assert spans["TriplePath"] == "?x <p> 5"
    assert spans["FilterClause"] == "FILTER(?x > 1)"
    assert spans["OperatorCall"] == "?x > 1"
    assert spans["GroupPattern"] == "{ ?x <p> 5 . FILTER(?x > 1) }"


def test_escapes_are_resolved():
    query = parse(r"""SELECT * { <\u0061> e:\-x "a\t\"\\\u00e9" }""")
    nodes = list(query.walk())
    assert s.Iri("a") in nodes
    assert s.Iri("-x", "e") in nodes
    assert s.Lit('a\t"\\é') in nodes
