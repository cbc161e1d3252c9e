"""Records: dicts and JSON objects as rows of a mapping, in runs and pushed to open queries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from support.sources import XSD, read

import streamsparql
from streamsparql.errors import EngineError, SourceError
from streamsparql.sources import mapped

PREFIXES = f"PREFIX : <http://e/> PREFIX xsd: <{XSD}> "
SPEED = PREFIXES + "CONSTRUCT { ?car :speed ?v } { BIND(IRI(CONCAT(STR(:), ?id)) AS ?car) }"
QUERY = streamsparql.compile(
    "PREFIX : <http://e/> SELECT ?car ?v FROM STREAM :s WINDOW RANGE 10 MS FIXED { ?car :speed ?v }"
)
S = "http://e/s"


def objects(records: Any, mapping: str) -> list[tuple[str, int]]:
    items, rejects, _ = read(mapped(records, mapping))
    assert rejects == []
    return [(o, t) for _, _, o, t in items]


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        iter,
        lambda records: (record for record in records),
        lambda records: [json.dumps(record) for record in records],
        lambda records: [json.dumps(record).encode() for record in records],
        lambda records: (memoryview(json.dumps(record).encode()) for record in records),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_records_are_rows(make: Any, size: int) -> None:
    records = [{"id": k, "v": k * 1.5, "t": k} for k in range(5)]
    items, rejects, chunks = read(mapped(make(records), SPEED), chunk=size)
    assert rejects == []
    assert [(s, t) for s, _, _, t in items] == [(f"<http://e/{k}>", k) for k in range(5)]
    assert max(len(chunk.stamps) for chunk in chunks) <= size


VALUES: list[tuple[Any, str | None]] = [
    (5, f'"5"^^<{XSD}integer>'),
    (2**70, f'"{2**70}"^^<{XSD}integer>'),
    (2.5, f'"2.5"^^<{XSD}double>'),
    (True, f'"true"^^<{XSD}boolean>'),
    ("<b>", '"<b>"'),
    (Decimal("2.50"), f'"2.5"^^<{XSD}decimal>'),
    (datetime(2026, 3, 1, 8), f'"2026-03-01T08:00:00"^^<{XSD}dateTime>'),
    (datetime(2026, 3, 1, 8, tzinfo=UTC), f'"2026-03-01T08:00:00Z"^^<{XSD}dateTime>'),
    (
        datetime(2026, 3, 1, 8, tzinfo=timezone(timedelta(hours=1))),
        f'"2026-03-01T07:00:00Z"^^<{XSD}dateTime>',
    ),
    (date(2026, 3, 1), f'"2026-03-01"^^<{XSD}date>'),
    (rdflib.URIRef("http://e/b"), "<http://e/b>"),
    (rdflib.Literal("x", lang="en"), '"x"@en'),
    (None, None),
    ("", None),
    (float("nan"), None),
]


@given(st.lists(st.sampled_from(VALUES), max_size=12))
def test_term_of_a_value_does_not_depend_on_other_records(values: list[Any]) -> None:
    records = [{"v": value, "t": k} for k, (value, _) in enumerate(values)]
    expected = [(text, k) for k, (_, text) in enumerate(values) if text is not None]
    assert objects(records, PREFIXES + "CONSTRUCT { :x :y ?v } {}") == expected


REJECTED = [
    ("{", "not valid JSON"),
    ('{"t": 1} x', "not valid JSON"),
    ("[1]", "not a JSON object"),
    (b"\xff{}", "the record is not UTF-8"),
    (5, "expected a dict or the text of a JSON object, not int"),
    ({"t": "soon", "v": 1}, "not a valid timestamp: 'soon'"),
    ({"v": 1}, "missing timestamp"),
    ({"t": 1, "v": [1]}, "the value of v is a list"),
    ({"t": 1, "v": {"a": 1}}, "the value of v is an object"),
    ({"t": 1, "v": b"x"}, "the value of v is of type bytes"),
    ({"t": 1, "v": "\ud800"}, "the value of v has an unpaired surrogate, which is not Unicode"),
]


@pytest.mark.parametrize(("record", "reason"), REJECTED, ids=lambda each: str(each)[:25])
def test_record_that_cannot_be_read_is_rejected_and_its_push_raises(
    record: Any, reason: str
) -> None:
    good = {"id": 7, "v": 5, "t": 2}
    items, (reject,), _ = read(mapped([good, record, good], SPEED))
    assert (len(items), reject.position, reject.unit) == (2, 2, "record")
    assert reject.reason == reason
    live = QUERY.open(mapping=SPEED)
    live.push_record(S, good)
    if "surrogate" not in reason:  # found when the record is processed
        with pytest.raises(SourceError, match="<http://e/s>: "):
            live.push_record(S, record)
    live.push_record(S, {**good, "t": 3})
    live.close()
    assert live.stats().items.accepted == 2


def test_nested_values_are_columns_by_their_path() -> None:
    records: list[Any] = [
        {"op": "c", "before": None, "after": {"id": 7, "tags": ["x", "y"]}, "source": {"ts": 5}},
        {"op": "u", "after": {"id": 8, "tags": []}, "source": {"ts": 6}},
        {"op": "d", "after": None, "source": {"ts": 7}},
    ]
    mapping = PREFIXES + (
        "CONSTRUCT { [] :op ?op ; :id ?after_id ; :second ?after_tags_1 }"
        " { BIND(?source_ts AS ?timestamp) }"
    )
    expected = [
        *(('"c"', 5), (f'"7"^^<{XSD}integer>', 5), ('"y"', 5)),
        *(('"u"', 6), (f'"8"^^<{XSD}integer>', 6), ('"d"', 7)),
    ]
    assert objects(records, mapping) == expected
    assert objects(map(json.dumps, records), mapping) == expected


def test_nested_columns_of_parquet_are_read_by_their_path(tmp_path: Any) -> None:
    table = pa.table({"t": [5], "after": pa.array([{"id": 7, "by": {"name": "x"}}])})
    parquet.write_table(table, tmp_path / "x.parquet")
    mapping = PREFIXES + "CONSTRUCT { [] :id ?after_id ; :by ?after_by_name } {}"
    for source in (table, tmp_path / "x.parquet", table.to_pylist()):
        assert objects(source, mapping) == [(f'"7"^^<{XSD}integer>', 5), ('"x"', 5)]


def test_lone_record_and_asynchronous_source_are_errors_of_a_run() -> None:
    async def later() -> AsyncIterator[dict[str, int]]:
        yield {"t": 1}

    for source, reason in (({"t": 1}, "a single record"), (later(), "await live.push_async")):
        with pytest.raises(SourceError, match=reason):
            read(mapped(source, SPEED))


# -- pushed ----------------------------------------------------------------------------------------


def test_pushed_records_have_the_rows_of_a_run() -> None:
    records = [{"id": k % 3, "v": k, "t": k * 2} for k in range(50)]
    run = list(map(str, QUERY.run(mapped(records, SPEED))))
    for make in (dict, json.dumps, lambda record: json.dumps(record).encode()):
        live = QUERY.open(mapping={S: SPEED})
        for record in records:
            live.push_record(S, make(record))
        live.close()
        assert list(map(str, live.rows())) == run


def test_records_and_items_keep_their_order() -> None:
    live = QUERY.open(mapping=SPEED)
    live.push_record(S, {"id": 1, "v": 5, "t": 3})
    live.push(S, ("http://e/2", "<http://e/speed>", 6), 4)
    live.push_record(S, {"id": 3, "v": 7, "t": 2})
    live.push_many(S, [("<http://e/4>", "<http://e/speed>", 8, 5)])
    live.close()
    assert [(str(row["car"])[-1], row.start) for row in live.rows()] == [
        ("1", 3),
        ("2", 4),
        ("4", 5),
    ]
    (late,) = live.late
    assert (late.unit, late.position) == ("record", 3)


def test_mapping_auto_maps_each_key_of_the_first_record() -> None:
    query = streamsparql.compile(
        "PREFIX : <http://example.org/data#> SELECT ?v FROM STREAM :s WINDOW RANGE 10 MS FIXED"
        " { [] :speed ?v ; :car 'a' }"
    )
    live = query.open(mapping="auto")
    stream = "http://example.org/data#s"
    live.push_record(stream, {"car": "a", "speed": 5, "t": 3})
    with pytest.raises(SourceError, match="unknown key 'colour'; the mapping was guessed"):
        live.push_record(stream, {"car": "a", "speed": 5, "colour": "red", "t": 4})
    live.push_record(stream, {"car": "b", "speed": 6, "t": 4})
    live.close()
    assert [int(row["v"]) for row in live.rows()] == [5]


def test_missing_or_malformed_mapping_is_an_error() -> None:
    live = QUERY.open()
    record = {"id": 1, "v": 5, "t": 3}
    with pytest.raises(EngineError, match="missing mapping of <http://e/s>: pass mapping="):
        live.push_record(S, record)
    with pytest.raises(EngineError, match="unknown stream <http://e/x>"):
        live.push_record("http://e/x", record, SPEED)
    with pytest.raises(EngineError, match="a mapping must be the text of a CONSTRUCT"):
        QUERY.open(mapping=5)
    with pytest.raises(EngineError, match="mapping of the unknown stream <x>; the query reads"):
        QUERY.open(mapping={"x": SPEED})
    with pytest.raises(SourceError, match="a mapping must be a CONSTRUCT"):
        QUERY.open(mapping="SELECT * {}")
    with pytest.raises(SourceError, match="missing timestamp: the record has no timestamp"):
        live.push_record(S, {"id": 1, "v": 5}, SPEED + "# another text")
    live.push_record(S, record, SPEED)
    live.close()
    assert live.stats().items.accepted == 1


def test_asynchronous_source_is_pushed() -> None:
    async def items(fail: bool) -> AsyncIterator[Any]:
        for k in range(3):
            yield f"<http://e/{k}>", "<http://e/speed>", k, k
            await asyncio.sleep(0)
        if fail:
            raise ConnectionError("the line went dead")

    async def messages() -> AsyncIterator[bytes]:
        for k in range(3):
            yield json.dumps({"id": k, "v": k, "t": k}).encode()
        yield b"rubbish"

    for source in (items(False), mapped(messages(), SPEED)):
        live = QUERY.open()
        asyncio.run(live.push_async(S, source))
        live.close()
        assert [int(row["v"]) for row in live.rows()] == [0, 1, 2]
    assert [reject.reason for reject in live.rejected] == ["not valid JSON"]
    live = QUERY.open()
    with pytest.raises(ConnectionError) as caught:
        asyncio.run(live.push_async(S, items(True)))
    assert caught.value.__notes__ == ["<http://e/s>: 3 items were read before this error"]
    with pytest.raises(SourceError, match="a list is not asynchronous; use push_many"):
        asyncio.run(live.push_async(S, []))
    live.close()
    assert len(live.rows()) == 3
