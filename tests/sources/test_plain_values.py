"""Items of plain Python values, by the rules of docs/sources.md, and pushes that are errors."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyoxigraph
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from support.sources import XSD, read

import streamsparql
from streamsparql.algebra.terms import IRI, Literal
from streamsparql.algebra.xsd.values import value_of
from streamsparql.errors import SourceError
from streamsparql.sources.term_texts import check_triple, literal_text, object_text, resource_text

A, P = "http://example.org/a", "<http://example.org/p>"


def typed(lexical: str, name: str) -> str:
    return f'"{lexical}"^^<{XSD}{name}>'


OBJECTS = [
    (5, typed("5", "integer")),
    (-(10**30), typed(str(-(10**30)), "integer")),
    (2.5, typed("2.5", "double")),
    (1e300, typed("1.0E300", "double")),
    (-0.0, typed("-0", "double")),
    (math.inf, typed("INF", "double")),
    (True, typed("true", "boolean")),
    (Decimal("2.50"), typed("2.5", "decimal")),
    (datetime(2026, 3, 1, 8), typed("2026-03-01T08:00:00", "dateTime")),
    (datetime(2026, 3, 1, 8, 0, 0, 250_000, UTC), typed("2026-03-01T08:00:00.25Z", "dateTime")),
    (
        datetime(2026, 3, 1, 8, tzinfo=timezone(timedelta(hours=1))),
        typed("2026-03-01T08:00:00+01:00", "dateTime"),
    ),
    (date(2026, 3, 1), typed("2026-03-01", "date")),
    (time(8, 30), typed("08:30:00", "time")),
    (timedelta(minutes=90), typed("PT1H30M", "dayTimeDuration")),
    (np.int64(7), typed("7", "integer")),
    (np.float64(0.5), typed("0.5", "double")),
    (np.bool_(False), typed("false", "boolean")),
    (np.datetime64("2026-03-01T08:00"), typed("2026-03-01T08:00:00", "dateTime")),
    ("north", '"north"'),
    ('say "hi"\n', '"say \\"hi\\"\\n"'),
    ("", '""'),
    ("http://example.org/b", '"http://example.org/b"'),
    ("<http://example.org/b>", "<http://example.org/b>"),
    ('"7"@en', '"7"@en'),
    (rdflib.URIRef("http://example.org/b"), "<http://example.org/b>"),
    (rdflib.Literal("north"), '"north"'),
    (pyoxigraph.Literal(5), typed("5", "integer")),
    (IRI("b"), "<b>"),
]


@pytest.mark.parametrize(("value", "text"), OBJECTS, ids=lambda each: repr(each)[:40])
def test_object_may_be_a_plain_value(value: Any, text: str) -> None:
    expected = [("<http://example.org/a>", P, text, 5)]
    assert read([(A, P, value, 5)])[0] == expected
    assert read([(A, P, value, 5)] * 40 + [(A, P, "x", 6)])[0][:40] == expected * 40
    assert object_text(value) == text
    check_triple((A, P, value))


@given(st.lists(st.sampled_from(OBJECTS), min_size=1, max_size=30), st.integers(1, 40))
def test_values_of_any_types_may_be_mixed(objects: list[tuple[Any, str]], size: int) -> None:
    items = [(A, P, value, k) for k, (value, _) in enumerate(objects)]
    read_items, rejects, _ = read(items, chunk=size)
    assert rejects == []
    assert [item[2] for item in read_items] == [text for _, text in objects]


@given(st.integers() | st.floats(allow_nan=False) | st.booleans() | st.datetimes() | st.dates())
def test_literal_has_the_value_that_was_passed(value: Any) -> None:
    lexical, datatype = literal_text(value)[1:].split('"^^')
    read_back = value_of(Literal(lexical, IRI(datatype[1:-1])))
    assert read_back is not None
    if isinstance(value, int | float):
        assert (read_back, type(read_back)) == (value, type(value))
    elif isinstance(value, datetime):
        assert datetime.fromisoformat(lexical) == value


SUBJECTS = [
    (A, "<http://example.org/a>"),
    ("urn:sensor:7", "<urn:sensor:7>"),
    ("<relative>", "<relative>"),
    ("_:b", "_:b"),
    (rdflib.URIRef("relative"), "<relative>"),
]


@pytest.mark.parametrize(("value", "text"), SUBJECTS)
def test_subject_may_be_an_absolute_iri(value: Any, text: str) -> None:
    assert read([(value, P, 5, 1)])[0][0][0] == text
    assert resource_text(value, "subject") == text


REFUSED = [
    (("sensor1", P, 5), "the subject 'sensor1' is not an IRI; write <sensor1>, or an IRI such as"),
    (("ex:sensor1", P, 5), "the subject 'ex:sensor1' is not an IRI; write the whole IRI"),
    (("<a b>", P, 5), "the subject '<a b>' is not an IRI; write <iri>, _:label or a term"),
    (('"a"', P, 5), 'the subject is a literal: "a"'),
    ((5, P, 5), "the subject 5 is of type int, not an IRI"),
    ((A, "speed", 5), "the predicate 'speed' is not an IRI; write <speed>"),
    ((A, "_:p", 5), "the predicate is a blank node: _:p"),
    ((A, P, None), r"the object is missing \(None\)"),
    ((A, P, b"5"), "the object b'5' is of type bytes, not a term"),
    ((A, P, [5]), r"the object \[5\] is of type list, not a term"),
    ((A, P, "<3"), "the object '<3' begins as a term, and is not one; write it as a literal"),
    ((A, P, '"open'), "the object '\"open' begins as a term, and is not one"),
]


@pytest.mark.parametrize(("triple", "reason"), REFUSED, ids=lambda each: str(each)[:30])
def test_value_that_is_not_a_term_is_rejected_and_its_push_raises(triple: Any, reason: str) -> None:
    items, (reject,), _ = read([(*triple, 5), (A, P, 1, 6)])
    assert len(items) == 1
    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 5 MS { ?s ?p ?o }")
    live = query.open()
    with pytest.raises(SourceError, match=f"<s>: {reason}"):
        live.push("s", triple, 5)
    live.push("s", (A, P, 1), 6)
    live.close()
    assert (len(live.rows()), live.stats().items.read) == (1, 1)
    if triple[0] != '"a"' and triple[1] != "_:p":  # terms, in a wrong place
        assert re.match(reason, reject.reason)


@pytest.mark.parametrize("t", ["soon", -1, 1.5, None.__class__, 2**70, True, "1969-01-01"])
def test_push_with_an_invalid_timestamp_raises(t: Any) -> None:
    live = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 5 MS { ?s ?p ?o }").open()
    with pytest.raises(SourceError, match=r"<s>: .*timestamp"):
        live.push("s", (A, P, 1), t)
    for malformed in (("<a>", "<p>"), "abc", 5):
        with pytest.raises(SourceError, match="expected a triple"):
            live.push("s", malformed, 5)
    assert live.stats().items.read == 0


def test_pushes_and_runs_of_plain_values_have_equal_rows() -> None:
    query = streamsparql.compile(
        "SELECT ?s (SUM(?o) AS ?n) FROM STREAM <s> WINDOW RANGE 10 MS FIXED"
        " { ?s <http://example.org/p> ?o FILTER(?o > 1) } GROUP BY ?s"
    )
    items = [(f"urn:s{k % 3}", P, k if k % 2 else k / 2, k) for k in range(40)]
    live = query.open()
    for *triple, t in items:
        live.push("s", triple, t)
    live.close()
    assert list(map(str, live.rows())) == list(map(str, query.run(items)))
