"""Errors: message, position and hint; invalid queries raise no other exceptions."""

from __future__ import annotations

import contextlib
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.accepted_queries import ACCEPTED
from support.golden import GOLDEN, read
from support.mistakes import all_cases

import streamsparql
from streamsparql.errors import (
    QueryError,
    QuerySyntaxError,
    Span,
    StreamSparqlError,
    UnsupportedFeature,
    position,
    snippet,
)

CS = "SELECT ?x FROM STREAM <s> [RANGE 9s STEP 1s] "
AS_W = "SELECT * FROM NAMED <s> [NOW] AS ?w "
RW = "SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE PT9S STEP PT1S] "
# (text, error, line, column, part of the message, part of the hint)
MISTAKES = [
    (
        AS_W + "{ GRAPH ?w { ?x ?y ?z } BIND(1 AS ?w) }",
        QueryError,
        1,
        71,
        "?w names a window",
        "GRAPH ?w",
    ),
    (
        AS_W + "{ GRAPH ?w { ?x ?y ?z } VALUES ?w { 1 } }",
        QueryError,
        1,
        68,
        "?w names a window",
        "GRAPH ?w",
    ),
    ("SELECT ?x {\n ?x a <b> .\n FILTRE(?x > 3)\n}", QuerySyntaxError, 3, 2, "FILTRE", "FILTER?"),
    ("SELECT ?x {\n ?x <p> ?y\n ?y <q> ?z }", QuerySyntaxError, 3, 2, "?y", "write a '.'"),
    ("SELECT ?x {\n ?x <p> ?y .\n", QuerySyntaxError, 2, 13, "unexpected end", "line 1, column 11"),
    ("SELECT ?x { ?x <p> 'abc }", QuerySyntaxError, 1, 20, "unexpected", "does not end"),
    (
        "SELECT ?x { ?x <a b> 1 }",
        QuerySyntaxError,
        1,
        16,
        "unexpected '<'",
        "cannot contain spaces",
    ),
    ("SELECT ?x { ?x ?p ?o } GROUPBY ?x", QuerySyntaxError, 1, 24, "GROUPBY", "GROUP BY?"),
    ("SELECT ?x { ?x ?p ?o FILTER ?x > 3 }", QuerySyntaxError, 1, 29, "?x", "brackets"),
    ("SELECT * FROM STREAM Sensors [NOW] {}", QuerySyntaxError, 1, 22, "Sensors", "<Sensors>"),
    (
        "INSERT DATA { <a> <b> <c> }",
        QuerySyntaxError,
        1,
        1,
        "INSERT",
        "SPARQL Update is not supported",
    ),
    ("SELECT ?n { ?x foaf:name ?n }", QueryError, 1, 16, "foaf:", "xmlns.com/foaf"),
    (
        "SELECT * { ?x <p> ?y BIND(3 AS ?y) }",
        QueryError,
        1,
        32,
        "?y is already bound",
        "new in its",
    ),
    (
        "SELECT ?x (SUM(?z) AS ?s) { ?x <p> ?z }",
        QueryError,
        1,
        8,
        "?x is not a grouping key",
        "SAMPLE",
    ),
    ("SELECT (?x AS ?x) { ?x <p> ?z }", QueryError, 1, 15, "?x is already bound", "new"),
    ("SELECT * { ?x ?y ?z } GROUP BY ?x", QueryError, 1, 1, "SELECT *", "list the keys"),
    ("SELECT * { ?x ?y ?z FILTER(SUM(?x)>1) }", QueryError, 1, 28, "no groups", "HAVING"),
    ("SELECT (MAX(SUM(?x)) AS ?m) {?x ?y ?z}", QueryError, 1, 13, "inside another", "subquery"),
    ("SELECT * { _:a ?p ?x . OPTIONAL { _:a ?q ?y } }", QueryError, 1, 35, "_:a", "variable"),
    (
        "SELECT * { VALUES (?x ?y) { (1) } }",
        QueryError,
        1,
        29,
        "expected 2 values in this row, not 1",
        "UNDEF",
    ),
    ("SELECT * { VALUES (?x ?x) { (1 2) } }", QueryError, 1, 23, "duplicate variable ?x", ""),
    ("SELECT * { FILTER(<f>(1)) }", UnsupportedFeature, 1, 19, "unknown function <f>", "casts"),
    ("SELECT * { SERVICE <s> { ?x ?y ?z } }", UnsupportedFeature, 1, 12, "SERVICE", "graphs="),
    (
        "SELECT * FROM STREAM <s> { ?x ?y ?z }",
        QueryError,
        1,
        15,
        "missing window: the stream <s>",
        "WINDOW RANGE",
    ),
    (
        "SELECT * FROM STREAM <s> WINDOW RANGE 1 S SLIDE 2 S { ?x ?y ?z }",
        QueryError,
        1,
        49,
        "miss elements",
        "at most",
    ),
    ("SELECT * FROM STREAM <s> WINDOW RANGE 0 FIXED {?x ?y ?z}", QueryError, 1, 39, "0", ""),
    ("SELECT * FROM STREAM <s> WINDOW ELEMS 0 {?x ?y ?z}", QueryError, 1, 26, "0 elements", ""),
    (
        "SELECT * FROM STREAM <s> [RANGE 5 STEP 1] {?x ?y ?z}",
        QueryError,
        1,
        33,
        "missing time unit after 5",
        "5ms",
    ),
    ("SELECT * FROM STREAM <s> [RANGE 5s] {?x ?y ?z}", QueryError, 1, 26, "when it moves", "TUMBL"),
    (
        "SELECT * FROM NAMED WINDOW <win> ON <s> [RANGE PT1S STEP PT1S] { WINDOW <wim> { ?x ?y ?z } }",
        QueryError,
        1,
        73,
        "unknown window <wim>",
        "<win>?",
    ),
    (
        "SELECT * FROM STREAM <s> WINDOW ELEMS 5 { GRAPH <s> { ?x ?y ?z } }",
        QueryError,
        1,
        49,
        "default stream",
        "FROM NAMED STREAM",
    ),
    ("SELECT * { STREAM <s> { ?x ?y ?z } }", QueryError, 1, 19, "missing window", "RANGE 10s"),
    (
        "SELECT * FROM NAMED STREAM <s> [NOW - 10 S SLIDE 1 S] { ?x ?y ?z }",
        UnsupportedFeature,
        1,
        32,
        "SPARQLstream",
        "RANGE 10s",
    ),
    (
        "SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE P1M STEP PT1S] { WINDOW <w> { ?x ?y ?z } }",
        QueryError,
        1,
        46,
        "P1M",
        "months differ",
    ),
    (
        "SELECT * FROM STREAM <s> WINDOW ELEMS 5 { { ?x ?y ?z } SEQ { ?x ?y ?z } }",
        UnsupportedFeature,
        1,
        26,
        "no windows",
        "getDURATION",
    ),
    (
        "SELECT * { { ?x ?y ?z } SEQ { ?x ?y ?z } MINUS { ?x ?y ?w } }",
        UnsupportedFeature,
        1,
        42,
        "MINUS",
        "BOUND",
    ),
    (
        "SELECT * { { GRAPH <g> { ?x ?y ?z } } SEQ { ?x ?y ?z } }",
        QueryError,
        1,
        12,
        "never occurs",
        "",
    ),
    (
        "SELECT * { WINDOW <w> { GRAPH ?g { ?x ?y ?z } } } ".replace(
            "*", "* FROM NAMED WINDOW <w> ON <s> [ELEMENTS 5]"
        ),
        UnsupportedFeature,
        1,
        73,
        "GRAPH inside WINDOW",
        "move the GRAPH",
    ),
    ("SELECT ?x { ?x ?y ?z } LIMIT ten", QuerySyntaxError, 1, 30, "ten", ""),
    (f"SELECT * FROM <s> [RANGE PT{'9' * 400}S] {{}}", QueryError, 1, 26, "valid duration", ""),
    ("SELECT ?x { ?x ?y ?z } LIMIT " + "9" * 5000, QueryError, 1, 30, "5000 digits", ""),
    (
        "SELECT * FROM STREAM <s> WINDOW RANGE " + "9" * 5000 + " {?x ?y ?z}",
        QueryError,
        1,
        39,
        "5000 digits",
        "",
    ),
    (
        "SELECT * FROM STREAM <s> [RANGE 5s STEP 1s] { ?x <p>* ?y FILTER(timestamp(?x) > 3) }",
        UnsupportedFeature,
        1,
        47,
        "timestamp(?x)",
        "triple patterns",
    ),
    (
        "SELECT * FROM STREAM <s> [RANGE 5s STEP 1s] { ?x <p> ?y FILTER(timestamp(?z) > 3) }",
        QueryError,
        1,
        64,
        "no triple pattern binds",
        "",
    ),
    (
        "SELECT * { ?s ?p ?o FILTER contians(?o, 'a') }",
        QuerySyntaxError,
        1,
        28,
        "contians",
        "CONTAINS?",
    ),
    ("SELECT * { ?s 'p' ?o }", QuerySyntaxError, 1, 15, "unexpected", ""),
    ("SELECT * { ?s ?p ?o FILTER(?o == 3) }", QuerySyntaxError, 1, 32, "'='", "one ="),
    ("SELECT * { ?s ?p ?o FILTER(?o > 3 AND ?o < 5) }", QuerySyntaxError, 1, 35, "AND", "&&"),
    ("SELECT * { ?s ?p ?o SEQ { ?s ?p ?o } }", QuerySyntaxError, 1, 21, "SEQ", "in braces"),
    (
        "SELECT * FROM STREAM <s> WINDOW RANGE 5 S STEP 1 S {}",
        QuerySyntaxError,
        1,
        43,
        "STEP",
        "SLIDE",
    ),
    (
        CS + "{ ?x <p> ?y } GROUP BY ?x HAVING(timestamp(?x) > 1)",
        QueryError,
        1,
        79,
        "unbound here",
        "MAX",
    ),
    (
        CS + "{ { SELECT ?x { ?x <p> ?y } } BIND(timestamp(?x) AS ?t) }",
        QueryError,
        1,
        81,
        "unbound here",
        "",
    ),
    (
        CS + "{ ?x <p> ?y FILTER EXISTS { SELECT ?y { ?y <q> ?z FILTER(timestamp(?x) < 4) } } }",
        QueryError,
        1,
        103,
        "unbound here",
        "",
    ),
    (
        CS + "{ ?x <p> ?y { FILTER(timestamp(?x) > 3) } FILTER(timestamp(?x) > 5) }",
        QueryError,
        1,
        67,
        "unbound here",
        "",
    ),
    (
        "SELECT * { { ?x <p> 1 } SEQ { ?x <q> 2 } { FILTER(getDURATION() < 4) } }",
        QueryError,
        1,
        51,
        "unbound here",
        "",
    ),
    ("SELECT * { ?x <p> '\\uD800' }", QuerySyntaxError, 1, 19, "unexpected", "invalid escape"),
    ("SELECT (= 3 AS ?x) {}", QuerySyntaxError, 1, 9, "unexpected '='", ""),
    (
        CS + "{ ?x <p> ?y FILTER(timestamp(?x, <r>) > 1) }",
        QueryError,
        1,
        79,
        "unknown stream <r>",
        "",
    ),
    (CS + "{ ?x <p> ?y } AGGREGATE { (?n, SUM(*), {?x}) }", QueryError, 1, 77, "SUM", "COUNT"),
    ("SELECT * FROM STREAM <s> [RANGE TRIPLES 3 STEP 9] {}", QueryError, 1, 26, "miss", "at most"),
    (RW + "{ GRAPH <w> { ?x ?y ?z } }", QueryError, 1, 70, "<w> is a window", "WINDOW <w>"),
    (RW + "{ GRAPH <s> { ?x ?y ?z } }", QueryError, 1, 70, "named windows", "WINDOW <w>"),
    (
        "REGISTER RSTREAM <o> AS SELECT ISTREAM * {}",
        QueryError,
        1,
        1,
        "conflicting operators RSTREAM and ISTREAM",
        "one",
    ),
    (
        "SELECT * FROM <s> [NOW] AS ?w { GRAPH ?w {} }",
        QueryError,
        1,
        15,
        "?w names",
        "FROM NAMED <s>",
    ),
    (
        "SELECT * FROM NAMED <s> [NOW] AS ?v FROM NAMED <s> [ALL] AS ?w { STREAM <s> { ?x ?y ?z } }",
        QueryError,
        1,
        73,
        "several windows: ?v, ?w",
        "GRAPH ?v",
    ),
]


@pytest.mark.parametrize(("text", "error", "line", "column", "message", "hint"), MISTAKES)
def test_a_mistake_is_reported_with_its_position_and_a_hint(
    text, error, line, column, message, hint
):
    with pytest.raises(error) as raised:
        streamsparql.compile(text)
    error_ = raised.value
    assert type(error_) is error
    assert message in error_.message
    assert hint in error_.hint
    assert (error_.line, error_.column) == (line, column)
    lines = str(error_).splitlines()
    assert lines[0].startswith(f"line {line}, column {column}: ")
    assert lines[2].index("^") == len("     | ") + column - 1


# (a part of a query, the mistake in it, what the hint writes instead)
REPAIRS = [
    ("FILTER({})", "?v BETWEEN 1 AND 5", "?v >= 1 && ?v <= 5"),
    ("FILTER({})", "?v IS NULL", "!BOUND(?v)"),
    ("FILTER({})", "?v IS NOT NULL", "BOUND(?v)"),
    ("FILTER({} = 0)", "?v % 2", "?v - 2 * FLOOR(?v / 2)"),
    ("FILTER({} = 0)", "MOD(?v, 2)", "?v - 2 * FLOOR(?v / 2)"),
    ("FILTER({})", "?v LIKE 'a%'", "STRSTARTS(?v, 'a')"),
    ("FILTER({})", "?v LIKE '%a'", "STRENDS(?v, 'a')"),
    ("FILTER({})", "?v LIKE '%a%'", "CONTAINS(?v, 'a')"),
    ("BIND({} AS ?w)", "CASE WHEN ?v > 1 THEN 'a' ELSE 'b' END", "IF(?v > 1, 'a', 'b')"),
    ("BIND({} AS ?w)", "UPPER(?v)", "UCASE(?v)"),
    ("BIND({} AS ?w)", "NVL(?v, 0)", "COALESCE(?v, 0)"),
    ("BIND({} AS ?w)", "CAST(?v AS VARCHAR)", "STR(?v)"),
    ("{}", "BIND(?w = ?v + 1)", "BIND(?v + 1 AS ?w)"),
]


@pytest.mark.parametrize(("part", "mistake", "repair"), REPAIRS)
def test_what_a_hint_writes_compiles(part, mistake, repair):
    query = "SELECT * { ?x <p> ?v " + part.replace("{}", "HERE") + " }"
    with pytest.raises(QuerySyntaxError) as raised:
        streamsparql.compile(query.replace("HERE", mistake))
    assert repair in raised.value.hint
    streamsparql.compile(query.replace("HERE", repair))


def test_a_condition_on_an_aggregate_becomes_a_sum():
    with pytest.raises(QuerySyntaxError) as raised:
        streamsparql.compile("SELECT (COUNT(*) FILTER (WHERE ?v > 5) AS ?n) { ?x <p> ?v }")
    repair = raised.value.hint.rpartition("write ")[2]
    rows = [("<a>", "<p>", f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>') for n in (3, 7, 9)]
    (row,) = streamsparql.compile(f"SELECT ({repair} AS ?n) {{ ?x <p> ?v }}").run(graph=rows)
    assert row["n"].toPython() == 2


def test_the_query_that_is_written_for_sql_compiles():
    with pytest.raises(QuerySyntaxError) as raised:
        streamsparql.compile("SELECT sensor, MAX(value) AS top FROM heat WHERE value > 5")
    query = streamsparql.compile(raised.value.hint.partition("column: ")[2])
    assert query.variables == ("sensor", "top")
    assert query.streams == ("heat",)


@settings(max_examples=300)
@given(st.sampled_from([case.text for case in all_cases()]), st.randoms(use_true_random=False))
def test_mutated_mistakes_raise_only_our_errors(text, source):
    """Rules for hints read the text around a mistake: they must cope with any text."""
    with contextlib.suppress(StreamSparqlError):
        streamsparql.compile(broken(text, source))


def test_snippets_fit_a_terminal():
    """Wide characters take two columns, control characters are replaced, long lines are shortened."""
    assert snippet("風車 ?x", Span(3, 5)).splitlines()[1].index("^") == len("     | ") + 5
    assert "\x1b" not in snippet("a\x1b[2J ?x", Span(6, 8))
    assert snippet("a\u2028b ?x", Span(4, 6)).endswith("    ^^")
    long = snippet("?x " * 20_000, Span(30_000, 30_002))
    assert len(long) < 300
    source, carets = long.splitlines()
    assert source[carets.index("^") :].startswith("?x")


def test_expected_tokens_are_described():
    with pytest.raises(QuerySyntaxError) as raised:
        streamsparql.compile("SELECT * { ?s ?p }")
    assert raised.value.expected == ("a term",)
    with pytest.raises(QuerySyntaxError) as raised:
        streamsparql.compile("SELECT * FROM STREAM <s> WINDOW RANGE FIXED {}")
    assert raised.value.expected == ("a duration",)


def test_no_description_of_a_token_is_a_terminal_name():
    from streamsparql.translator.lalr_parser import load_table
    from streamsparql.translator.parse import _describe

    table = load_table()
    for state in range(len(table)):
        for label in _describe(table, frozenset(table.actions[state])):
            assert "__" not in label
            assert not re.fullmatch(r"[A-Z]+_[A-Z0-9_]+", label) or label in (
                "GROUP_CONCAT",
                "ENCODE_FOR_URI",
            )


def test_positions_count_all_kinds_of_line_ends():
    text = "a\nb\r\nc\rd"
    assert [position(text, i) for i in (0, 2, 5, 7)] == [(1, 1), (2, 1), (3, 1), (4, 1)]
    assert snippet("\tx y", Span(3, 4)).splitlines()[1] == "     | \t  ^"


def test_pedantic_refuses_clauses_of_other_dialects():
    text = "SELECT * FROM STREAM <s> WINDOW ELEMS 5 { ?x ?y ?z } AGGREGATE { (?n, COUNT, {?x}) }"
    assert streamsparql.compile(text, dialect="streaming").dialect == "streaming"
    with pytest.raises(QueryError, match="AGGREGATE belongs to C-SPARQL"):
        streamsparql.compile(text, dialect="streaming", pedantic=True)


def test_the_error_for_an_unknown_dialect_lists_the_known_ones():
    with pytest.raises(StreamSparqlError, match="streaming, csparql, cqels, epsparql, rspql"):
        streamsparql.compile("SELECT * {}", dialect="sql")


# -- no other exceptions ---------------------------------------------------------------------------

TEXTS = [text for texts in ACCEPTED.values() for text in texts] + [
    case.text for path in sorted(GOLDEN.glob("*.txt")) for case in read(path)[1]
]
TOKEN = re.compile(r"'''.*?'''|\"[^\"]*\"|<[^<>\s]*>|[?$:\w]+|\s+|.", re.S)
VOCABULARY = sorted({token for text in TEXTS for token in TOKEN.findall(text)}) + [
    "\x00", "\ud7ff", "é", "\\", "\\u00", '"', "'", "<", "]", "WINDOW", "99999999999999999999", "P",
]  # fmt: skip


def broken(text: str, source: random.Random) -> str:
    """Delete, duplicate, swap or replace a few tokens of a text, or truncate it."""
    tokens = TOKEN.findall(text)
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(tokens) or 1)
        match source.randrange(6):
            case 0:
                del tokens[at : at + 1]
            case 1:
                tokens[at:at] = tokens[at : at + 1]
            case 2:
                tokens[at : at + 1] = [source.choice(VOCABULARY)]
            case 3:
                tokens.insert(at, source.choice(VOCABULARY))
            case 4:
                other = source.randrange(len(tokens) or 1)
                tokens[at : at + 1], tokens[other : other + 1] = (
                    tokens[other : other + 1],
                    tokens[at : at + 1],
                )
            case 5:
                joined = "".join(tokens)
                tokens = TOKEN.findall(joined[: source.randrange(len(joined) + 1)])
    return "".join(tokens)


@settings(max_examples=1500)
@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False))
def test_mutated_queries_raise_only_our_errors(text, source):
    """Not covered: invalid texts that are accepted (some are in the negative tests of the W3C)."""
    try:
        query = streamsparql.compile(broken(text, source))
    except StreamSparqlError as error:
        assert str(error)
        return
    query.explain("logical")
    query.check()


@settings(max_examples=300)
@given(st.text(max_size=60))
def test_random_text_is_refused_with_our_errors(text):
    with pytest.raises(StreamSparqlError):
        streamsparql.compile(text + "}")
