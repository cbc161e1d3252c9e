"""Tables become streams by a SPARQL CONSTRUCT over their columns.

The definition is SPARQL's own: a row's triples are those of the CONSTRUCT with the row as VALUES at
the beginning of its WHERE clause, evaluated by the algebra's definitions. The CityBench streams are
mapped here, too, and compared with what Python's csv module reads; the benchmark's own queries over
them are compared with pyoxigraph, window by window.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas
import pyarrow as pa
import pyarrow.parquet as parquet
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sources import read

import streamsparql
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.terms import Literal, Term, integer
from streamsparql.errors import DataWarning, QuerySyntaxError, SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources import mapped, read_graph, read_stream
from streamsparql.sources.reading import Reading
from streamsparql.translator.translate import translate

XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = f"PREFIX xsd: <{XSD}> PREFIX : <http://ex.org/> "
SIMPLE = PREFIXES + "CONSTRUCT { ?s :v ?v } WHERE { BIND(IRI(CONCAT(STR(:), ?id)) AS ?s) }"


def triples_of(source: Any, mapping: str, **options: Any) -> list[tuple[str, str, str, int]]:
    items, rejects, _ = read(mapped(source, mapping, **options))
    assert rejects == []
    return items


# -- kinds of tables -------------------------------------------------------------------------------

ROWS = [("a", 7, 1000), ("b", None, 2000), ("c", -1, 3000)]
EXPECTED = [
    ("<http://ex.org/a>", "<http://ex.org/v>", "7", 1000),
    ("<http://ex.org/c>", "<http://ex.org/v>", "-1", 3000),
]


def write_table(kind: str, folder: Path) -> Path:
    path = folder / f"x.{kind}"
    lines = [[str(cell) if cell is not None else "" for cell in row] for row in ROWS]
    names = ["id", "v", "t"]
    match kind.removesuffix(".gz"):
        case "parquet":
            parquet.write_table(pa.Table.from_pylist([dict(zip(names, r)) for r in ROWS]), path)
            return path
        case "jsonl":
            rows = [{k: v for k, v in zip(names, row) if v is not None} for row in ROWS]
            text = "".join(json.dumps(row) + "\n" for row in rows)
        case "tsv":
            text = "".join("\t".join(line) + "\n" for line in [names, *lines])
        case _:
            text = "".join(",".join(line) + "\n" for line in [names, *lines])
    path.write_bytes(gzip.compress(text.encode()) if kind.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize(
    "kind", ["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet", "stream", "dat"]
)
def test_table_in_a_file_of_any_format_is_mapped(kind, size, tmp_path):
    path = write_table(kind, tmp_path)
    typed = kind.startswith(("json", "parquet"))
    items, rejects, chunks = read(mapped(path, SIMPLE), chunk=size)
    assert rejects == []
    end = f"^^<{XSD}integer>" if typed else ""
    assert items == [(s, p, f'"{o}"{end}', t) for s, p, o, t in EXPECTED]
    assert max(len(chunk.stamps) for chunk in chunks) <= size
    with path.open("rb") as file:
        assert read(mapped(file, SIMPLE))[0] == items


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: rows,
        lambda rows: rows.to_batches()[0],
        lambda rows: rows.to_reader(),
        lambda rows: rows.to_pandas(types_mapper=pandas.ArrowDtype),
    ],
)
def test_table_in_memory_is_mapped(make):
    rows = pa.table(dict(zip(["id", "v", "t"], map(list, zip(*ROWS)))))
    assert [item[3] for item in triples_of(make(rows), SIMPLE)] == [1000, 3000]


def test_typed_columns_become_typed_literals():
    table = pa.table(
        {
            "t": [5],
            "integer": [7],
            "double": [7.5],
            "boolean": [True],
            "dateTime": pa.array([1_000], pa.timestamp("ms")),
            "zoned": pa.array([1_500], pa.timestamp("ms", "Europe/Berlin")),
            "date": pa.array([datetime(2020, 2, 29).date()]),
            "decimal": pa.array(["1.50"]).cast(pa.decimal128(5, 2)),
            "text": ['say "hi"\n'],
            "category": pa.array(["x"]).dictionary_encode(),
        }
    )
    names = [name for name in table.column_names if name != "t"]
    template = " . ".join(f":x :{name} ?{name}" for name in names)
    objects = {
        p[15:-1]: o
        for _, p, o, _ in triples_of(table, f"{PREFIXES} CONSTRUCT {{ {template} }} {{}}")
    }
    assert objects == {
        "integer": f'"7"^^<{XSD}integer>',
        "double": f'"7.5"^^<{XSD}double>',
        "boolean": f'"true"^^<{XSD}boolean>',
        "dateTime": f'"1970-01-01T00:00:01"^^<{XSD}dateTime>',
        "zoned": f'"1970-01-01T00:00:01.500Z"^^<{XSD}dateTime>',
        "date": f'"2020-02-29"^^<{XSD}date>',
        "decimal": f'"1.50"^^<{XSD}decimal>',
        "text": '"say \\"hi\\"\\n"',
        "category": '"x"',
    }
    nested = pa.table({"t": [1], "x": [[1]]})
    with pytest.raises(SourceError, match="the column x has the type list"):
        read(mapped(nested, f"{PREFIXES} CONSTRUCT {{ :x :y ?x }} {{}}"))


# -- names of columns -------------------------------------------------------------------------------


def test_unnamed_columns_are_named_by_letters_and_odd_names_are_adapted():
    text = "u1|56.5,10.0|5\nu2|56.1,10.1|6\n"
    mapping = PREFIXES + "CONSTRUCT { :x :y ?b } { BIND(xsd:integer(?c) AS ?t) }"
    with pytest.raises(SourceError, match=r"header, pass header=False \(--no-header\)"):
        triples_of(io.StringIO(text), mapping)
    items = triples_of(io.StringIO(text), mapping, header=False, delimiter="|")
    assert [(o, t) for *_, o, t in items] == [('"56.5,10.0"', 5), ('"56.1,10.1"', 6)]
    odd = "wind speed (m/s);t\n7;5\n"
    mapping = PREFIXES + "CONSTRUCT { :x :y ?wind_speed__m_s_ } {}"
    assert triples_of(io.StringIO(odd), mapping)[0][2] == '"7"'


def test_row_number_file_and_stream_are_bound(tmp_path):
    path = tmp_path / "sensor-7.csv"
    path.write_text("t\n5\n\n6\n7\n")
    mapping = PREFIXES + "CONSTRUCT { :x :row ?ROWNUM ; :file ?FILE ; :of ?STREAM } {}"
    source = mapped(path, mapping)
    (chunk,) = read_stream(source, "<http://ex.org/s>", terms := TermDictionary())
    objects = terms.texts(chunk.o).to_pylist()
    assert objects[1:3] == ['"sensor-7.csv"', "<http://ex.org/s>"]
    assert objects[::3] == [f'"{k}"^^<{XSD}integer>' for k in (1, 2, 3)]
    assert len(triples_of(io.StringIO("t\n5\n"), mapping)) == 1  # neither a file nor a stream's IRI


@pytest.mark.parametrize(
    ("text", "mapping", "reason"),
    [
        ("a,t\n1,2\n", "CONSTRUCT { :x :y ?b } {}", r"in: unknown column \?b .*; it has \?a \?t"),
        ("a,t\n1,2\n", "CONSTRUCT { :x :y ?a } { FILTER(?z > 1) }", r"unknown column \?z"),
        ("a,b\n1,2\n", "CONSTRUCT { :x :y ?a } {}", "missing timestamp in the mapping"),
        ("a,start\n1,2\n", "CONSTRUCT { :x :y ?a } {}", "missing timestamp in the mapping"),
        ("a,t\n1,2\n", "CONSTRUCT { :x :y ?a } { BIND(1 AS ?a) }", r"\?a"),
        ("a b,a_b,t\n1,2,3\n", "CONSTRUCT { :x :y ?a_b } {}", r"a b and a_b are both \?a_b"),
    ],
)
def test_mapping_that_does_not_fit_its_table_is_an_error(text, mapping, reason):
    with pytest.raises(SourceError, match=reason):
        read(mapped(io.StringIO(text), PREFIXES + mapping))


@pytest.mark.parametrize(
    ("mapping", "reason"),
    [
        ("CONSTRUCT { ?s ?p } {}", "line 1, column"),
        ("SELECT * {}", "a mapping must be a CONSTRUCT, not a SELECT"),
        ("CONSTRUCT { :x :y ?a } { ?a :b ?c }", "cannot use triple patterns"),
        ("CONSTRUCT { :x :y ?a } FROM <x.csv> {}", "a mapping cannot have FROM"),
        ("CONSTRUCT { :x :y ?a } { SELECT ?a {} }", "a mapping's WHERE cannot be a SELECT"),
        ("CONSTRUCT WHERE {}", "a mapping needs a template"),
        ("CONSTRUCT { :x :y ?a } {} LIMIT 5", "cannot use LIMIT"),
        ("CONSTRUCT { :x :y ?a } {} ORDER BY ?a", "cannot use ORDER BY"),
        ("CONSTRUCT { :x :y ?n } { SELECT (COUNT(*) AS ?n) {} }", "cannot use GROUP BY"),
        ("CONSTRUCT { :x :y ?n } { SELECT DISTINCT ?n {} }", "cannot use DISTINCT"),
    ],
)
def test_invalid_mapping_is_an_error_at_once(mapping, reason):
    with pytest.raises((QuerySyntaxError, SourceError), match=reason):
        mapped("x.csv", PREFIXES + mapping)


@pytest.mark.parametrize(
    ("source", "options", "reason"),
    [
        (pa.table({"t": [1]}), {"delimiter": ";"}, "is not CSV; header and delimiter apply to CSV"),
        ("x.jsonl", {"header": False}, "is not CSV; header and delimiter apply to CSV"),
        ("x.csv", {"delimiter": "::"}, "a delimiter must be one ASCII character"),
        ("x.ttl", {}, r"a mapping needs a table, not \.ttl"),
        ([("<a>", "<b>", "<c>", 1)], {}, "a mapping needs records .dicts. or a table, not a tuple"),
    ],
)
def test_unsupported_table_or_option_is_an_error(source, options, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if isinstance(source, str):
        Path(source).write_text("{}")
    with pytest.raises(SourceError, match=reason):
        read(mapped(source, SIMPLE, **options))


def test_mapping_may_be_the_path_of_a_file(tmp_path):
    (tmp_path / "m.rq").write_text(SIMPLE)
    path = write_table("csv", tmp_path)
    assert triples_of(path, str(tmp_path / "m.rq")) == triples_of(path, SIMPLE)
    with pytest.raises(SourceError, match=r"the mapping .*none\.rq cannot be read"):
        mapped("x.csv", tmp_path / "none.rq")


# -- timestamps -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        "1406851500000",
        "2014-08-01 00:05:00",
        "2014-08-01T00:05:00",
        "2014-08-01T00:05:00Z",
        "2014-08-01 00:05:00.000",
        "2014-08-01 02:05:00+02:00",
        f'"""2014-08-01T00:05:00Z""^^<{XSD}dateTime>"',
    ],
)
@pytest.mark.parametrize("binding", ["?t", "?T", "?timestamp", "?when"])
def test_timestamp_is_a_column_or_bound_and_of_any_form(cell, binding):
    text = f"{'x' if binding == '?when' else binding[1:]},v\n" + f"{cell},1\n" * 3
    bind = "BIND(?x AS ?timestamp)" if binding == "?when" else ""
    items = triples_of(io.StringIO(text), f"{PREFIXES} CONSTRUCT {{ :x :y ?v }} {{ {bind} }}")
    assert [t for *_, t in items] == [1406851500000] * 3


def test_bound_timestamp_takes_precedence_over_a_column():
    text = "timestamp,v\nyesterday,5\n"
    mapping = PREFIXES + "CONSTRUCT { :x :y ?v } { BIND(xsd:integer(?v) * 10 AS ?t) }"
    assert [t for *_, t in triples_of(io.StringIO(text), mapping)] == [50]


def test_start_and_end_make_events():
    text = "start,end,v\n5,9,a\n7,6,b\n8,8,c\n"
    source = mapped(io.StringIO(text), PREFIXES + "CONSTRUCT { :x :y ?v } {}")
    _, (reject,), (chunk,) = read(source)
    assert (chunk.start.tolist(), chunk.end.tolist()) == ([5, 8], [9, 8])
    assert (reject.position, reject.reason) == (3, "the event ends before it starts")


def test_row_without_a_timestamp_is_rejected_once(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"t,v,w\n5,1,2\nsoon,1,2\n,1,2\n7,1\n8,\xe9,2\n9,1,2\n")
    mapping = PREFIXES + "CONSTRUCT { :x :y ?v ; :z ?w } {}"
    items, rejects, _ = read(mapped(path, mapping))
    assert [t for *_, t in items] == [5, 5, 9, 9]
    assert [(r.source, r.unit, r.position, r.reason) for r in rejects] == [
        (str(path), "row", 3, "not a valid timestamp: 'soon'"),
        (str(path), "row", 4, "missing timestamp"),
        (str(path), "row", 5, "expected 3 columns, as in the header"),
        (str(path), "row", 6, "the row is not UTF-8"),
    ]
    assert rejects[0].item == {"t": "soon", "v": "1", "w": "2"}
    with pytest.raises(SourceError, match=r"x\.csv, row 3: not a valid timestamp: 'soon'"):
        read(mapped(path, mapping), strict=True)


def test_times_beyond_the_calendar_are_rejected_unless_they_are_stamps():
    times = pa.array([1000, 1_772_352_000_000_000, 3000], pa.timestamp("ms"))
    table = pa.table({"t": [1, 2, 3], "at": times})
    items, (reject,), _ = read(mapped(table, PREFIXES + "CONSTRUCT { :x :y ?at } {}"))
    assert [o for *_, o, _ in items] == [
        f'"1970-01-01T00:00:0{k}"^^<{XSD}dateTime>' for k in (1, 3)
    ]
    assert str(reject) == (
        "in, row 2: the value of at is outside the years 1 to 9999:"
        " {'t': 2, 'at': 1772352000000000}"
    )
    stamped = pa.table({"timestamp": times, "v": [1, 2, 3]})
    items, rejects, _ = read(mapped(stamped, PREFIXES + "CONSTRUCT { :x :y ?v } {}"))
    assert ([t for *_, t in items], rejects) == ([1000, 1_772_352_000_000_000, 3000], [])


# -- JSON lines -------------------------------------------------------------------------------------


def json_lines(*objects: str) -> Any:
    file = io.BytesIO("".join(f"{line}\n" for line in objects).encode())
    file.name = "x.jsonl"
    return file


JSON_VALUES = {
    "7": f'"7"^^<{XSD}integer>',
    "9007199254740993": f'"9007199254740993"^^<{XSD}integer>',
    "-36893488147419103232": f'"-36893488147419103232"^^<{XSD}integer>',
    "7.5": f'"7.5"^^<{XSD}double>',
    "true": f'"true"^^<{XSD}boolean>',
    '"7"': '"7"',
}


@settings(max_examples=50)
@given(st.lists(st.sampled_from([*JSON_VALUES, "null", '""', "[1]", '{"a": 1}']), max_size=9))
def test_json_value_does_not_depend_on_other_lines(values):
    """A column may mix types; an object or a list is rejected with its line."""
    file = json_lines(*(f'{{"v": {v}, "t": {k}}}' for k, v in enumerate(values)))
    items, rejects, _ = read(mapped(file, PREFIXES + "CONSTRUCT { :x :y ?v } {}"))
    assert [(o, t) for *_, o, t in items] == [
        (JSON_VALUES[v], k) for k, v in enumerate(values) if v in JSON_VALUES
    ]
    assert [r.position - 1 for r in rejects] == [k for k, v in enumerate(values) if v[0] in "[{"]
    assert {r.reason for r in rejects} <= {
        "the value of v is an object",
        "the value of v is a list",
    }


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize(
    ("objects", "expected", "rejected"),
    [
        (
            ['{"v": 1, "t": 1}', "rubbish", '{"t": 2}', '{"v": "x", "t": 3}'],
            [("v", "1", 1), ("v", "x", 3)],
            [(2, "not valid JSON")],
        ),
        (
            ['{"v": "\\ud800x", "t": 3}', '{"v": "\\ud83c\\udf2c", "t": 4}'],
            [("v", "\U0001f32c", 4)],
            [(1, "the value of v has an unpaired surrogate, which is not Unicode")],
        ),
        (
            ['{"v": 1, "t": 1}', '{"v": 2, "timestamp": 3}', '{"v": 3, "T": 4, "t": 5}'],
            [("v", "1", 1), ("v", "3", 5)],
            [(2, "missing timestamp")],
        ),
        (
            [
                '{"v": 1, "t": "1970-01-01T00:00:01Z"}',
                *('{"v": 2, "t": 2000}', '{"v": 3, "t": "3000"}', '{"v": 4, "t": 4000.0}'),
                '{"v": 5, "t": true}',
            ],
            [("v", "1", 1000), ("v", "2", 2000), ("v", "3", 3000), ("v", "4", 4000)],
            [(5, "not a valid timestamp: True")],
        ),
        (
            [
                *('{"v": 1, "t": 1}', '{"t": 2}', '{"v": 3, "wind speed": 8, "t": 3}'),
                *('{"w": 1, "t": 4}', '{"v": 2}'),
            ],
            [("v", "1", 1), ("v", "3", 3), ("wind", "8", 3)],
            [(5, "missing timestamp")],
        ),
        (
            ['{"v": 1}', '{"v": 2, "timestamp": 5}'],
            [("v", "2", 5)],
            [(1, "missing timestamp")],
        ),
    ],
    ids=["rubbish", "surrogate", "other time key", "kinds of stamps", "later keys", "later time"],
)
def test_json_objects_may_differ_whatever_is_read_at_once(objects, expected, rejected, size):
    mapping = PREFIXES + "CONSTRUCT { :x :v ?v ; :wind ?wind_speed ; :is ?never } {}"
    items, rejects, _ = read(mapped(json_lines(*objects), mapping), chunk=size)
    assert [(p.rpartition("/")[2][:-1], o.split('"')[1], t) for _, p, o, t in items] == expected
    assert [(r.source, r.unit) for r in rejects] == [("x.jsonl", "line")] * len(rejected)
    assert [(r.position, r.reason) for r in rejects] == rejected


def test_keys_that_no_record_has_are_noted(tmp_path):
    mapping = PREFIXES + "CONSTRUCT { :x :v ?v ; :w ?wind_speed ; :n ?never ; :m ?more } {}"
    lines = ['{"v": 1, "t": 1}', '{"wind speed": 8, "t": 2}']
    reading, terms = Reading(), TermDictionary()
    source = mapped(json_lines(*lines), mapping)
    assert sum(map(len, read_stream(source, "in", terms, reading=reading, chunk=1))) == 2
    (note,) = reading.cells.missing_keys
    missing = "no record has the keys never, more, which the mapping reads; the first has v, t"
    assert note == f"x.jsonl: {missing}"
    for name, more in (("a", lines), ("b", ['{"more": 3, "t": 3}'])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(more))
    both = mapped([str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")], mapping)
    for read_source in (read_stream, read_graph):
        reading = Reading()
        list(read_source(both, "in", terms, reading=reading))
        (note,) = reading.cells.missing_keys
        assert "a.jsonl: no record has the key never, which" in note
    whole = mapped(json_lines('{"v": 1, "t": 1}'), PREFIXES + "CONSTRUCT { :x :v ?v } {}")
    reading = Reading()
    list(read_stream(whole, "in", terms, reading=reading))
    assert reading.cells.missing_keys == ()


def test_keys_that_no_record_has_are_a_warning_of_an_open_query():
    query = streamsparql.compile("SELECT * FROM STREAM <s> [RANGE 1m STEP 1m] { ?s ?p ?o }")
    live = query.open(mapping=PREFIXES + "CONSTRUCT { :x :v ?v } {}")
    live.push_record("s", {"w": 1, "t": 1})
    with pytest.warns(DataWarning, match="no record has the key v, which the mapping reads"):
        live.close()


# -- graphs, blank nodes, predicates ----------------------------------------------------------------


def test_table_may_be_a_static_graph():
    table = io.StringIO("id,v\na,1\nb,2\na,1\n")
    batch, rejects = read_graph(mapped(table, SIMPLE), "g", TermDictionary())
    assert (len(batch), rejects) == (2, [])


def test_blank_nodes_are_new_for_each_row():
    text = "t,v\n" + "5,1\n" * 3
    mapping = PREFIXES + "CONSTRUCT { _:o :v ?v ; :w [ :is ?v ] ; :b ?b } { BIND(BNODE() AS ?b) }"
    for size in (1, 5, 1000):
        items, _, _ = read(mapped(io.StringIO(text), mapping), chunk=size)
        assert len(items) == 12
        nodes = [{s for s, p, *_ in items[k : k + 4]} for k in range(0, 12, 4)]
        assert [len(each) for each in nodes] == [2, 2, 2]
        assert len(set().union(*nodes)) == 6
        assert len({o for _, p, o, _ in items if p.endswith("/b>")}) == 3


def test_new_terms_differ_between_rows_and_tables(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("t,v\n1,2\n1,2\n")
    mapping = PREFIXES + "CONSTRUCT { ?u :n ?n } { BIND(UUID() AS ?u) BIND(NOW() AS ?n) }"
    before = datetime.now(UTC)
    source = mapped(tmp_path, mapping)
    pairs: list[tuple[str, str]] = []
    terms = TermDictionary()
    for stream in ("<http://e/1>", "<http://e/2>"):
        for chunk in read_stream(source, stream, terms):
            pairs += zip(terms.texts(chunk.s).to_pylist(), terms.texts(chunk.o).to_pylist())
    assert len({uuid for uuid, _ in pairs}) == 8
    (now,) = {now.split('"')[1] for _, now in pairs}
    assert abs((datetime.fromisoformat(now) - before).total_seconds()) < 60


def test_row_with_several_solutions_yields_each_triple_once():
    text = "t,a,b\n5,1,2\n6,3,\n"
    mapping = (
        PREFIXES
        + """CONSTRUCT { :x a :T ; ?p ?v } {
        { BIND("a" AS ?n) } UNION { BIND("b" AS ?n) }
        BIND(IF(?n = "a", ?a, ?b) AS ?v) BIND(IRI(CONCAT(STR(:), ?n)) AS ?p) }"""
    )
    for size in (1, 3, 1000):
        items, _, _ = read(mapped(io.StringIO(text), mapping), chunk=size)
        triples = sorted((p[-2], t) for _, p, _, t in items)
        assert triples == [("a", 5), ("a", 6), ("b", 5), ("e", 5), ("e", 6)]


def test_triples_that_a_query_cannot_match_are_prefiltered():
    query = streamsparql.compile("SELECT * FROM STREAM <s> WINDOW RANGE 1 S SLIDE { ?s <b> ?o }")
    text = "t,v\n5,1\n6,2\n"
    source = mapped(io.StringIO(text), "CONSTRUCT { <x> <a> ?v ; <b> ?v } {}")
    assert [str(row["o"]) for row in query.run(source)] == ["1", "2"]


# -- the definition ---------------------------------------------------------------------------------

MAPPINGS = [
    "CONSTRUCT { :x :y ?a ; ?a :z . ?b :y ?a } {}",
    'CONSTRUCT { ?i :v ?v } { BIND(IRI(CONCAT("http://ex.org/", ?a)) AS ?i) BIND(xsd:integer(?b) AS ?v) }',
    "CONSTRUCT { :x :v ?v ; :w ?w } { BIND(xsd:double(?a) AS ?v) BIND(STRDT(?b, :T) AS ?w) }",
    'CONSTRUCT { :x :v ?v } { FILTER(?a != "7") BIND(xsd:dateTime(?b) AS ?v) }',
    "CONSTRUCT { :x :v ?v } { OPTIONAL { VALUES (?a ?v) { ('7' 1) ('x' 2) } } }",
    "CONSTRUCT { :x :v ?v } { VALUES ?v { 1 2 } FILTER(BOUND(?b) || ?v = 1) }",
    "CONSTRUCT { :x :v ?v } { { BIND(1 AS ?v) } UNION { BIND(2 AS ?v) } MINUS { VALUES ?a { '7' } } }",
    "CONSTRUCT { :x :v ?v } { BIND(COALESCE(STRLANG(?a, 'en'), IRI(?b), 0) AS ?v) }",
    "CONSTRUCT { :x :v ?v } { BIND(CONCAT(STR(?n), '-', STR(?a), STR(?b)) AS ?v) }",
    "CONSTRUCT { :x :v ?v } { BIND(IRI(CONCAT(?a, ?b)) AS ?v) }",
    "BASE <http://base.org/p/> CONSTRUCT { :x :v ?v } { BIND(IRI(?a) AS ?v) }",
    "CONSTRUCT { :x :v ?v } { BIND(xsd:boolean(?a) AS ?v) BIND(STR(?n) AS ?w) FILTER(?w < '3') }",
    "CONSTRUCT { :x :y ?a ; :y ?b } {}",
    "CONSTRUCT { :x :y ?a . ?i ?p ?a } { BIND(IRI(CONCAT(STR(:), ?b)) AS ?i) BIND(:y AS ?p) }",
]
CELLS = st.sampled_from(
    ["", "7", "007", "-0", "x", "a b", 'q"q', "l\\l", "n\nn", "é", "http://e/a", "<", "true", "1"]
    + ["2020-02-29T00:00:00", "2020-02-30T00:00:00", "7.50", "-1e3", "../g", "\u2028", "9" * 20]
)


@pytest.mark.parametrize("mapping", MAPPINGS)
@settings(max_examples=30)
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12), size=st.integers(1, 40))
def test_mapping_means_its_where_clause_with_the_row_as_values(mapping, rows, size):
    table = pa.table(
        {
            "a": [a for a, _ in rows],
            "b": [b for _, b in rows],
            "n": range(len(rows)),
            "t": range(len(rows)),
        }
    )
    items, rejects, _ = read(mapped(table, PREFIXES + mapping), chunk=size)
    assert rejects == []
    assert Counter(items) == Counter(triples_by_definition(PREFIXES + mapping, rows))
    assert [t for *_, t in items] == sorted(t for *_, t in items)


def triples_by_definition(
    text: str, rows: list[tuple[str, str]]
) -> Iterator[tuple[str, str, str, int]]:
    at = translate(text).syntax.where.span.start + 1
    for k, (a, b) in enumerate(rows):
        cells: list[Term | None] = [Literal(x) if x else None for x in (a, b)]
        values = " ".join("UNDEF" if cell is None else str(cell) for cell in [*cells, integer(k)])
        plan = translate(f"{text[:at]} VALUES (?a ?b ?n) {{ ({values}) }} {text[at:]}").plan
        for triple, _ in plan.at(0, Inputs()).entries:
            yield (*map(str, triple), k)


PIECES = st.sampled_from(
    ["a", '5" pipe', 'x"y"z', "", "é", '"a\nb"', '"say ""hi"",\n"', '""', '"\r\n"""']
)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(PIECES, PIECES), min_size=1, max_size=30),
    st.sampled_from([",", ";", "|"]),
    st.sampled_from([1, 3, 1000]),
    st.integers(0, 2),
)
def test_csv_quotes_do_not_depend_on_blocks(rows, delimiter, size, empty):
    """A quote opens a value only at its beginning."""
    lines = [delimiter.join([str(k), a, b]) for k, (a, b) in enumerate(rows)]
    text = "\n" * empty + f"t{delimiter}a{delimiter}b\n" + "\n".join(lines)
    expected = [
        row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row
    ]
    source = mapped(io.BytesIO(text.encode()), PREFIXES + "CONSTRUCT { :x :a ?a ; :b ?b } {}")
    with patch("streamsparql.sources.separated._BYTES_OF_A_ROW", 7):
        items, rejects, _ = read(source, chunk=size)
    assert rejects == []
    cells = [(t, p, v) for t, *both in expected[1:] for p, v in zip("ab", both) if v]
    assert [(str(t), p[-2], o) for _, p, o, t in items] == [
        (t, p, str(Literal(v))) for t, p, v in cells
    ]


# -- CityBench --------------------------------------------------------------------------------------

CITY = "http://www.insight-centre.org/dataset/SampleEventService#"
CT = "http://www.insight-centre.org/citytraffic#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SSN, SAO = "http://purl.oclc.org/NET/ssnx/ssn#", "http://purl.oclc.org/NET/sao/"
REPOSITORY = "http://127.0.0.1:9000/WebGlCity/RDF/SensorRepository.rdf"

OBSERVATION = """PREFIX ssn: <http://purl.oclc.org/NET/ssnx/ssn#> PREFIX : <http://city.org/>
PREFIX sao: <http://purl.oclc.org/NET/sao/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
CONSTRUCT { ?o a ssn:Observation ; ssn:observedProperty ?p ; sao:hasValue ?v ; ssn:observedBy ?STREAM }
WHERE { %s
        BIND(IRI(CONCAT(STR(:), ENCODE_FOR_URI(?FILE), "/", STR(?ROWNUM), "/", ?kind)) AS ?o)
        BIND(IRI(CONCAT(STR(?STREAM), "-", ?kind)) AS ?p) BIND(?%s AS ?timestamp) }"""

FAMILIES = {
    "Traffic": ("TIMESTAMP", {"CongestionLevel": "vehicleCount", "AverageSpeed": "avgSpeed"}),
    "Weather": ("TIMESTAMP", {"Temperature": "tempm", "Humidity": "hum", "WindSpeed": "wspdm"}),
    "Pollution": ("timestamp", {"API": "ozone"}),
    "Parking": ("updatetime", {"ParkingVacancy": "vehiclecount"}),
}
"""The column of timestamps and those of values, by the family of a stream."""


def family_of(stream: str) -> tuple[str, dict[str, str]]:
    return next(FAMILIES[family] for family in FAMILIES if family in stream)


def mapping_of(stream: str) -> str:
    """Return a mapping to observations: one per row and kind of value."""
    time, columns = family_of(stream)
    branches = " UNION ".join(f'{{ BIND("{kind}" AS ?kind) }}' for kind in columns)
    value = "0"
    for kind, column in columns.items():
        value = f'IF(?kind = "{kind}", xsd:double(?{column}), {value})'
    text = OBSERVATION % (f"{branches} BIND({value} AS ?v)", time)
    return text.replace("BIND(?timestamp AS ?timestamp)", "")


def observations(path: Path, stream: str) -> list[tuple[str, str, str, int]]:
    """Return the same observations, read by plain Python."""
    items = []
    time, columns = family_of(stream)
    with path.open() as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            t = round(datetime.fromisoformat(row[time]).replace(tzinfo=UTC).timestamp() * 1000)
            for kind, column in columns.items():
                o = f"<http://city.org/{path.name}/{number}/{kind}>"
                items += [
                    (o, TYPE, f"<{SSN}Observation>", t),
                    (o, f"<{SSN}observedProperty>", f"<{stream}-{kind}>", t),
                    (o, f"<{SSN}observedBy>", f"<{stream}>", t),
                ]
                if row[column]:
                    value = f'"{float(row[column])}"^^<{XSD}double>'
                    items.append((o, f"<{SAO}hasValue>", value, t))
    return items


def with_number(item: tuple[str, str, str, int]) -> tuple[Any, ...]:
    s, p, o, t = item
    return s, p, float(o.split('"')[1]) if o.startswith('"') else o, t


@pytest.fixture(scope="module")
def city(data: Path) -> Path:
    return data / "citybench"


@pytest.mark.parametrize(
    "name",
    ["AarhusTrafficData158505", "AarhusWeatherData0", "AarhusPollutionData201399"]
    + ["AarhusParkingDataKALKVAERKSVEJ"],
)
def test_citybench_streams_are_mapped_as_plain_python_reads_them(name, city):
    path = city / "streams" / f"{name}.stream"
    terms = TermDictionary()
    items: list[Any] = []
    source = mapped(path, mapping_of(name))
    for chunk in read_stream(source, f"<{CITY}{name}>", terms):
        assert not chunk.rejects
        texts = (terms.texts(ids).to_pylist() for ids in (chunk.s, chunk.p, chunk.o))
        items += zip(*texts, chunk.end.tolist(), strict=True)
    assert len(items) > 1000
    expected = map(with_number, observations(path, CITY + name))
    assert sorted(map(with_number, items), key=str) == sorted(expected, key=str)


HOUR = 3_600_000
BEGIN = 1_406_880_000_000  # 2014-08-01T08:00Z
STATIC = [
    (f"<{{}}-{kind}>", TYPE, f"<{CT}{kind}>") for _, kinds in FAMILIES.values() for kind in kinds
]


@pytest.mark.parametrize("number", ["1", "2", "3", "7", "12"])
@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
def test_citybench_queries_agree_with_pyoxigraph_in_each_window(number, city):
    text = (city / "queries" / "csparql" / f"Q{number}.txt").read_text()
    text = re.sub(r"\[range \w+ step \w+\]", "[range 25m step 5m]", text)
    query = streamsparql.compile(text, dialect="csparql")
    graph = [
        (s.format(stream), p, o)
        for stream in query.streams
        for s, p, o in STATIC
        if o[len(CT) + 1 : -1] in family_of(stream)[1]
    ]
    paths = {name: city / "streams" / f"{name.removeprefix(CITY)}.stream" for name in query.streams}
    sources = {name: mapped(path, mapping_of(name)) for name, path in paths.items()}
    graphs = {REPOSITORY: graph} if REPOSITORY in query.graphs else {}
    result = query.run(sources, graphs=graphs, start=BEGIN, end=BEGIN + HOUR)
    items = [item for name, path in paths.items() for item in observations(path, name)]
    plain = re.sub(r"(?im)^\s*from\b.*$", "", re.sub(r"(?m)^#.*$", "", text))
    answers = 0
    for t in range(BEGIN + 300_000, BEGIN + HOUR, 300_000):
        within = [item[:3] for item in items if t - 1_500_000 < item[3] <= t]
        store = ox.Store()
        text = "".join(" ".join(triple) + " .\n" for triple in [*graph, *within])
        store.load(text.encode(), ox.RdfFormat.N_TRIPLES)
        theirs = store.query(plain)
        names = [v.value for v in theirs.variables]
        expected = Counter(tuple(rounded(row[name]) for name in names) for row in theirs)
        ours = Counter(tuple(rounded(row[name]) for name in names) for row in result.snapshot(t))
        assert ours == expected
        answers += sum(expected.values())
    assert not result.rejected  # some are late
    assert answers > 0 or number == "7"


def rounded(term: Any) -> Any:
    value = getattr(term, "value", term)
    if term is None:
        return None
    try:
        return round(float(str(value)), 6)
    except ValueError:
        return str(value)


@pytest.mark.parametrize("node", ["[]", "?uuid", "?bnode"])
def test_new_terms_are_new_for_each_row_of_a_stream(node):
    """Also if the rows arrive in several calls, and are equal."""
    subject = node if node.startswith("?") else "_:row"
    mapping = (
        f"CONSTRUCT {{ {subject} <x:v> ?v ; <x:w> ?w }}"
        " { BIND(UUID() AS ?uuid) BIND(BNODE() AS ?bnode) }"
    )
    query = streamsparql.compile(
        "SELECT ?v ?w FROM STREAM <s> WINDOW RANGE 1 HOUR SLIDE { ?x <x:v> ?v ; <x:w> ?w }"
    )
    for rows in (["1,1", "2,2", "3,3"], ["1,1", "1,1", "1,1"]):
        tables = [f"v,w,t\n{row},5\n" for row in rows]
        whole = mapped(io.StringIO("v,w,t\n" + "".join(t[6:] for t in tables)), mapping)
        with query.open() as live:
            for table in tables:
                live.push_many("s", mapped(io.StringIO(table), mapping))
        pushed = sorted((str(row["v"]), row.start) for row in live.rows())
        assert pushed == sorted((str(row["v"]), row.start) for row in query.run(whole))
        assert len(pushed) == 3


def test_graph_may_be_several_mapped_tables_and_files(tmp_path):
    """Blank nodes of the templates are those of their own table."""
    (tmp_path / "a.nt").write_text("<u:x> <u:p> <u:y> .\n")
    tables = [pa.table({"x": ["u:1", "u:2"]}), pa.table({"x": ["u:3"]})]
    template = "CONSTRUCT { [] <u:q> ?i } { BIND(IRI(?x) AS ?i) }"
    sources = [mapped(tables[0], template), str(tmp_path / "a.nt"), mapped(tables[1], template)]
    terms = TermDictionary()
    graph, rejects = read_graph(sources, "g", terms)
    assert rejects == []
    texts = [terms.texts(graph.columns[name]).to_pylist() for name in (".s", ".o")]
    assert sorted(texts[1]) == ["<u:1>", "<u:2>", "<u:3>", "<u:y>"]
    assert len(set(texts[0])) == 4
    query = streamsparql.compile("SELECT ?o { ?s <u:q> ?o }")
    assert len(query.run(graph=sources).snapshot(0)) == 3
    with pytest.raises(SourceError, match="a stream has one mapping; pass mapped"):
        list(read_stream(sources, "s", terms))
