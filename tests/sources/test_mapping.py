"""Tables become streams by a SPARQL CONSTRUCT over their columns.

The definition is SPARQL's own: a row's triples are those of the CONSTRUCT with the row as VALUES at
the beginning of its WHERE clause, evaluated by the algebra's definitions. The CityBench streams are
mapped here, too; what they give is worked out beside, with Python's csv module, and the benchmark's
own queries over them are asked of pyoxigraph, window by window.
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
from streamsparql.errors import QuerySyntaxError, SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources import mapped, read_graph, read_stream
from streamsparql.translator.translate import translate

XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = f"PREFIX xsd: <{XSD}> PREFIX : <http://ex.org/> "
SIMPLE = PREFIXES + "CONSTRUCT { ?s :v ?v } WHERE { BIND(IRI(CONCAT(STR(:), ?id)) AS ?s) }"


def triples_of(source: Any, mapping: str, **options: Any) -> list[tuple[str, str, str, int]]:
    found, rejects, _ = read(mapped(source, mapping, **options))
    assert rejects == []
    return found


# -- Every kind of table --------------------------------------------------------------------------

ROWS = [("a", 7, 1000), ("b", None, 2000), ("c", -1, 3000)]
WANTED = [
    ("<http://ex.org/a>", "<http://ex.org/v>", "7", 1000),
    ("<http://ex.org/c>", "<http://ex.org/v>", "-1", 3000),
]


def written(kind: str, folder: Path) -> Path:
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
def test_a_table_in_a_file_of_any_kind_is_mapped(kind, size, tmp_path):
    path = written(kind, tmp_path)
    typed = kind.startswith(("json", "parquet"))
    found, rejects, chunks = read(mapped(path, SIMPLE), chunk=size)
    assert rejects == []
    end = f"^^<{XSD}integer>" if typed else ""
    assert found == [(s, p, f'"{o}"{end}', t) for s, p, o, t in WANTED]
    assert max(len(chunk.stamps) for chunk in chunks) <= size
    with path.open("rb") as file:
        assert read(mapped(file, SIMPLE))[0] == found


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: rows,
        lambda rows: rows.to_batches()[0],
        lambda rows: rows.to_reader(),
        lambda rows: rows.to_pandas(types_mapper=pandas.ArrowDtype),
    ],
)
def test_a_table_in_memory_is_mapped(make):
    rows = pa.table(dict(zip(["id", "v", "t"], map(list, zip(*ROWS)))))
    assert [item[3] for item in triples_of(make(rows), SIMPLE)] == [1000, 3000]


def test_typed_columns_are_typed_literals():
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
    found = {
        p[15:-1]: o
        for _, p, o, _ in triples_of(table, f"{PREFIXES} CONSTRUCT {{ {template} }} {{}}")
    }
    assert found == {
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
    with pytest.raises(SourceError, match="the column x holds list"):
        read(mapped(nested, f"{PREFIXES} CONSTRUCT {{ :x :y ?x }} {{}}"))


# -- What the columns are called --------------------------------------------------------------------


def test_columns_without_names_are_letters_and_odd_names_are_mended():
    text = "u1|56.5,10.0|5\nu2|56.1,10.1|6\n"
    mapping = PREFIXES + "CONSTRUCT { :x :y ?b } { BIND(xsd:integer(?c) AS ?t) }"
    with pytest.raises(SourceError, match="if its first row names none: header=False, or --no-h"):
        triples_of(io.StringIO(text), mapping)
    found = triples_of(io.StringIO(text), mapping, header=False, delimiter="|")
    assert [(o, t) for *_, o, t in found] == [('"56.5,10.0"', 5), ('"56.1,10.1"', 6)]
    odd = "wind speed (m/s);t\n7;5\n"
    mapping = PREFIXES + "CONSTRUCT { :x :y ?wind_speed__m_s_ } {}"
    assert triples_of(io.StringIO(odd), mapping)[0][2] == '"7"'


def test_row_number_file_and_stream_are_bound(tmp_path):
    path = tmp_path / "sensor-7.csv"
    path.write_text("t\n5\n\n6\n7\n")
    mapping = PREFIXES + "CONSTRUCT { :x :row ?ROWNUM ; :file ?FILE ; :of ?STREAM } {}"
    source = mapped(path, mapping)
    (chunk,) = read_stream(source, "<http://ex.org/s>", terms := TermDictionary())
    found = terms.texts(chunk.o).to_pylist()
    assert found[1:3] == ['"sensor-7.csv"', "<http://ex.org/s>"]
    assert found[::3] == [f'"{k}"^^<{XSD}integer>' for k in (1, 2, 3)]
    assert len(triples_of(io.StringIO("t\n5\n"), mapping)) == 1  # no file, and no IRI of a stream


@pytest.mark.parametrize(
    ("text", "mapping", "reason"),
    [
        ("a,t\n1,2\n", "CONSTRUCT { :x :y ?b } {}", r"in has no column for \?b .*: it has \?a \?t"),
        ("a,t\n1,2\n", "CONSTRUCT { :x :y ?a } { FILTER(?z > 1) }", r"no column for \?z"),
        ("a,b\n1,2\n", "CONSTRUCT { :x :y ?a } {}", "the mapping gives no timestamp"),
        ("a,start\n1,2\n", "CONSTRUCT { :x :y ?a } {}", "the mapping gives no timestamp"),
        ("a,t\n1,2\n", "CONSTRUCT { :x :y ?a } { BIND(1 AS ?a) }", r"\?a"),
        ("a b,a_b,t\n1,2,3\n", "CONSTRUCT { :x :y ?a_b } {}", r"two columns are \?a_b"),
    ],
)
def test_a_mapping_that_does_not_fit_its_table_is_an_error(text, mapping, reason):
    with pytest.raises(SourceError, match=reason):
        read(mapped(io.StringIO(text), PREFIXES + mapping))


@pytest.mark.parametrize(
    ("mapping", "reason"),
    [
        ("SELECT * {}", "a mapping is a CONSTRUCT, not a SELECT"),
        ("CONSTRUCT { :x :y ?a } { ?a :b ?c }", "no triple patterns"),
        ("CONSTRUCT { :x :y ?a } FROM <x.csv> {}", "a mapping has no FROM"),
        ("CONSTRUCT { :x :y ?a } { SELECT ?a {} }", "a mapping's WHERE is no SELECT"),
        ("CONSTRUCT WHERE {}", "a mapping has a template"),
        ("CONSTRUCT { :x :y ?a } {} LIMIT 5", "no LIMIT"),
        ("CONSTRUCT { :x :y ?a } {} ORDER BY ?a", "no ORDER BY"),
        ("CONSTRUCT { :x :y ?n } { SELECT (COUNT(*) AS ?n) {} }", "no GROUP BY"),
        ("CONSTRUCT { :x :y ?n } { SELECT DISTINCT ?n {} }", "no DISTINCT"),
    ],
)
def test_what_is_no_mapping_is_an_error_at_once(mapping, reason):
    with pytest.raises(SourceError, match=reason):
        mapped("x.csv", PREFIXES + mapping)


def test_errors_of_writing_are_those_of_queries(tmp_path):
    with pytest.raises(QuerySyntaxError, match="line 1, column"):
        mapped("x.csv", "CONSTRUCT { ?s ?p } {}")
    with pytest.raises(SourceError, match=r"the mapping .*none\.rq cannot be read"):
        mapped("x.csv", tmp_path / "none.rq")
    (tmp_path / "m.rq").write_text(SIMPLE)
    path = written("csv", tmp_path)
    assert triples_of(path, str(tmp_path / "m.rq")) == triples_of(path, SIMPLE)
    (tmp_path / "x.jsonl").write_text("{}")
    for table in (str(tmp_path / "x.jsonl"), pa.table({"t": [1]})):
        for layout in ({"header": False}, {"delimiter": ";"}):
            with pytest.raises(SourceError, match="is no CSV: header and delimiter do not go"):
                read(mapped(table, SIMPLE, **layout))
    with pytest.raises(SourceError, match="a delimiter is one character"):
        mapped("x.csv", SIMPLE, delimiter="::")
    (tmp_path / "x.ttl").write_text("")
    with pytest.raises(SourceError, match=r"a mapping is for a table, not for \.ttl"):
        read(mapped(tmp_path / "x.ttl", SIMPLE))
    with pytest.raises(SourceError, match="a list is no table"):
        read(mapped([("<a>", "<b>", "<c>", 1)], SIMPLE))


# -- Time -------------------------------------------------------------------------------------------


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
def test_the_timestamp_is_a_column_or_bound_and_of_any_form(cell, binding):
    text = f"{'x' if binding == '?when' else binding[1:]},v\n" + f"{cell},1\n" * 3
    bind = "BIND(?x AS ?timestamp)" if binding == "?when" else ""
    found = triples_of(io.StringIO(text), f"{PREFIXES} CONSTRUCT {{ :x :y ?v }} {{ {bind} }}")
    assert [t for *_, t in found] == [1406851500000] * 3


def test_what_a_mapping_binds_goes_before_what_a_table_has():
    text = "timestamp,v\nyesterday,5\n"
    mapping = PREFIXES + "CONSTRUCT { :x :y ?v } { BIND(xsd:integer(?v) * 10 AS ?t) }"
    assert [t for *_, t in triples_of(io.StringIO(text), mapping)] == [50]


def test_start_and_end_make_events():
    text = "start,end,v\n5,9,a\n7,6,b\n8,8,c\n"
    source = mapped(io.StringIO(text), PREFIXES + "CONSTRUCT { :x :y ?v } {}")
    _, (reject,), (chunk,) = read(source)
    assert (chunk.start.tolist(), chunk.end.tolist()) == ([5, 8], [9, 8])
    assert (reject.position, reject.reason) == (3, "the event ends before it starts")


def test_rows_without_a_timestamp_are_rejected_once(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"t,v,w\n5,1,2\nsoon,1,2\n,1,2\n7,1\n8,\xe9,2\n9,1,2\n")
    mapping = PREFIXES + "CONSTRUCT { :x :y ?v ; :z ?w } {}"
    found, rejects, _ = read(mapped(path, mapping))
    assert [t for *_, t in found] == [5, 5, 9, 9]
    assert [(r.source, r.unit, r.position, r.reason) for r in rejects] == [
        (str(path), "row", 3, "soon is no timestamp"),
        (str(path), "row", 4, "there is no timestamp"),
        (str(path), "row", 5, "the header has 3 columns, this row has not"),
        (str(path), "row", 6, "the row is not UTF-8"),
    ]
    assert rejects[0].item == {"t": "soon", "v": "1", "w": "2"}
    with pytest.raises(SourceError, match=r"x\.csv, row 3: soon is no timestamp"):
        read(mapped(path, mapping), strict=True)


def test_lines_of_json_that_are_none_are_rejected_and_the_others_mapped():
    text = (
        '{"id": "a", "v": 1, "t": 1}\nrubbish\n{"id": "b", "t": 2}\n{"id": "c", "v": "x", "t": 3}\n'
    )
    file = io.BytesIO(text.encode())
    file.name = "x.jsonl"
    found, (reject,), _ = read(mapped(file, SIMPLE))
    assert [(s[-2], o) for s, _, o, _ in found] == [("a", f'"1"^^<{XSD}integer>'), ("c", '"x"')]
    assert str(reject) == "x.jsonl, line 2: this is no JSON: 'rubbish'"


def lines_of_json(*objects: str) -> Any:
    file = io.BytesIO("".join(f"{line}\n" for line in objects).encode())
    file.name = "x.jsonl"
    return file


JSON = {
    "7": f'"7"^^<{XSD}integer>',
    "9007199254740993": f'"9007199254740993"^^<{XSD}integer>',
    "-36893488147419103232": f'"-36893488147419103232"^^<{XSD}integer>',
    "7.5": f'"7.5"^^<{XSD}double>',
    "true": f'"true"^^<{XSD}boolean>',
    '"7"': '"7"',
}


@settings(max_examples=50)
@given(st.lists(st.sampled_from([*JSON, "null", '""', "[1]", '{"a": 1}']), max_size=9))
def test_a_value_of_json_is_what_it_is_whatever_stands_in_other_lines(values):
    """A column may have values of any kinds; what is no term is rejected with its line."""
    file = lines_of_json(*(f'{{"v": {v}, "t": {k}}}' for k, v in enumerate(values)))
    found, rejects, _ = read(mapped(file, PREFIXES + "CONSTRUCT { :x :y ?v } {}"))
    assert [(o, t) for *_, o, t in found] == [
        (JSON[v], k) for k, v in enumerate(values) if v in JSON
    ]
    assert [r.position - 1 for r in rejects] == [k for k, v in enumerate(values) if v[0] in "[{"]
    assert {r.reason for r in rejects} <= {"a value that is used is an object or a list"}


def test_half_a_letter_is_no_text():
    file = lines_of_json('{"v": "\\ud800x", "t": 3}', '{"v": "\\ud83c\\udf2c", "t": 4}')
    found, (reject,), _ = read(mapped(file, PREFIXES + "CONSTRUCT { :x :y ?v } {}"))
    assert [(o, t) for *_, o, t in found] == [('"\U0001f32c"', 4)]
    assert (reject.position, "half a letter" in reject.reason) == (1, True)


@pytest.mark.parametrize("size", [1, 1000])
def test_the_first_object_says_which_key_tells_the_time(size):
    file = lines_of_json('{"v": 1, "t": 1}', '{"v": 2, "timestamp": 3}', '{"v": 3, "T": 4, "t": 5}')
    mapping = PREFIXES + "CONSTRUCT { :x :v ?v } {}"
    found, (reject,), _ = read(mapped(file, mapping), chunk=size)
    assert [t for *_, t in found] == [1, 5]
    assert (reject.position, reject.reason) == (2, "there is no timestamp")


def test_times_beyond_the_calendar_are_told_and_the_others_mapped():
    times = pa.array([1000, 1_772_352_000_000_000, 3000], pa.timestamp("ms"))
    table = pa.table({"t": [1, 2, 3], "at": times})
    found, (reject,), _ = read(mapped(table, PREFIXES + "CONSTRUCT { :x :y ?at } {}"))
    assert [o for *_, o, _ in found] == [
        f'"1970-01-01T00:00:0{k}"^^<{XSD}dateTime>' for k in (1, 3)
    ]
    assert str(reject) == (
        "in, row 2: the value of at is no time of the calendar: {'t': 2, 'at': 1772352000000000}"
    )
    stamped = pa.table({"timestamp": times, "v": [1, 2, 3]})
    found, rejects, _ = read(mapped(stamped, PREFIXES + "CONSTRUCT { :x :y ?v } {}"))
    assert ([t for *_, t in found], rejects) == ([1000, 1_772_352_000_000_000, 3000], [])


def test_stamps_of_json_may_be_of_any_kind_too():
    stamps = ['"1970-01-01T00:00:01Z"', "2000", '"3000"', "4000.0", "true"]
    file = lines_of_json(*(f'{{"v": {k}, "t": {t}}}' for k, t in enumerate(stamps)))
    found, (reject,), _ = read(mapped(file, PREFIXES + "CONSTRUCT { :x :y ?v } {}"))
    assert [t for *_, t in found] == [1000, 2000, 3000, 4000]
    assert (reject.position, reject.reason) == (5, "True is no timestamp")


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_objects_of_json_may_have_other_keys_than_those_before(size):
    """So what a mapping gives does not hang on how much of a pipe was read at once."""
    file = lines_of_json(
        '{"v": 1, "t": 1}',
        '{"t": 2}',
        '{"v": 3, "wind speed": 8, "t": 3}',
        '{"w": 1, "t": 4}',
        '{"v": 2}',
    )
    mapping = PREFIXES + "CONSTRUCT { :x :v ?v ; :wind ?wind_speed ; :is ?never } {}"
    found, (reject,), _ = read(mapped(file, mapping), chunk=size)
    assert [(p[-2], t) for _, p, _, t in found] == [("v", 1), ("v", 3), ("d", 3)]
    assert (reject.position, reject.reason) == (5, "there is no timestamp")
    found, _, _ = read(
        mapped(lines_of_json('{"v": 1}', '{"v": 2, "timestamp": 5}'), mapping), chunk=size
    )
    assert [t for *_, t in found] == [5]


# -- Graphs, blank nodes, what is wanted ------------------------------------------------------------


def test_a_table_may_be_a_static_graph():
    table = io.StringIO("id,v\na,1\nb,2\na,1\n")
    batch, rejects = read_graph(mapped(table, SIMPLE), "g", TermDictionary())
    assert (len(batch), rejects) == (2, [])


def test_blank_nodes_are_new_for_each_row():
    text = "t,v\n" + "5,1\n" * 3
    mapping = PREFIXES + "CONSTRUCT { _:o :v ?v ; :w [ :is ?v ] ; :b ?b } { BIND(BNODE() AS ?b) }"
    for size in (1, 5, 1000):
        found, _, _ = read(mapped(io.StringIO(text), mapping), chunk=size)
        assert len(found) == 12
        nodes = [{s for s, p, *_ in found[k : k + 4]} for k in range(0, 12, 4)]
        assert [len(each) for each in nodes] == [2, 2, 2]
        assert len(set().union(*nodes)) == 6
        assert len({o for _, p, o, _ in found if p.endswith("/b>")}) == 3


def test_what_is_new_for_each_row_is_so_for_each_table_too(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("t,v\n1,2\n1,2\n")
    mapping = PREFIXES + "CONSTRUCT { ?u :n ?n } { BIND(UUID() AS ?u) BIND(NOW() AS ?n) }"
    before = datetime.now(UTC)
    source = mapped(tmp_path, mapping)
    found: list[tuple[str, str]] = []
    terms = TermDictionary()
    for stream in ("<http://e/1>", "<http://e/2>"):
        for chunk in read_stream(source, stream, terms):
            found += zip(terms.texts(chunk.s).to_pylist(), terms.texts(chunk.o).to_pylist())
    assert len({uuid for uuid, _ in found}) == 8
    (now,) = {now.split('"')[1] for _, now in found}
    assert abs((datetime.fromisoformat(now) - before).total_seconds()) < 60


def test_a_row_may_have_several_solutions_and_gives_each_triple_once():
    text = "t,a,b\n5,1,2\n6,3,\n"
    mapping = (
        PREFIXES
        + """CONSTRUCT { :x a :T ; ?p ?v } {
        { BIND("a" AS ?n) } UNION { BIND("b" AS ?n) }
        BIND(IF(?n = "a", ?a, ?b) AS ?v) BIND(IRI(CONCAT(STR(:), ?n)) AS ?p) }"""
    )
    for size in (1, 3, 1000):
        found = [
            (p[-2], t) for _, p, _, t in read(mapped(io.StringIO(text), mapping), chunk=size)[0]
        ]
        assert sorted(found) == [("a", 5), ("a", 6), ("b", 5), ("e", 5), ("e", 6)]


def test_what_a_query_cannot_match_is_counted_and_not_kept():
    query = streamsparql.compile("SELECT * FROM STREAM <s> WINDOW RANGE 1 S SLIDE { ?s <b> ?o }")
    text = "t,v\n5,1\n6,2\n"
    source = mapped(io.StringIO(text), "CONSTRUCT { <x> <a> ?v ; <b> ?v } {}")
    assert [str(row["o"]) for row in query.run(source)] == ["1", "2"]


# -- The definition ---------------------------------------------------------------------------------

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
def test_a_mapping_means_what_sparql_says_of_the_row_as_values(mapping, rows, size):
    table = pa.table(
        {
            "a": [a for a, _ in rows],
            "b": [b for _, b in rows],
            "n": range(len(rows)),
            "t": range(len(rows)),
        }
    )
    found, rejects, _ = read(mapped(table, PREFIXES + mapping), chunk=size)
    assert rejects == []
    assert Counter(found) == Counter(_defined(PREFIXES + mapping, rows))
    assert [t for *_, t in found] == sorted(t for *_, t in found)


def _defined(text: str, rows: list[tuple[str, str]]) -> Iterator[tuple[str, str, str, int]]:
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
def test_quotes_are_those_of_csv_wherever_a_block_ends(rows, delimiter, size, empty):
    """A quote opens a value where the value begins, and is a letter elsewhere."""
    lines = [delimiter.join([str(k), a, b]) for k, (a, b) in enumerate(rows)]
    text = "\n" * empty + f"t{delimiter}a{delimiter}b\n" + "\n".join(lines)
    expected = [
        row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row
    ]
    source = mapped(io.BytesIO(text.encode()), PREFIXES + "CONSTRUCT { :x :a ?a ; :b ?b } {}")
    with patch("streamsparql.sources.separated._BYTES_OF_A_ROW", 7):
        found, rejects, _ = read(source, chunk=size)
    assert rejects == []
    cells = [(t, p, v) for t, *both in expected[1:] for p, v in zip("ab", both) if v]
    assert [(str(t), p[-2], o) for _, p, o, t in found] == [
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

KINDS = {
    "Traffic": {"CongestionLevel": "vehicleCount", "AverageSpeed": "avgSpeed"},
    "Weather": {"Temperature": "tempm", "Humidity": "hum", "WindSpeed": "wspdm"},
    "Pollution": {"API": "ozone"},
    "Parking": {"ParkingVacancy": "vehiclecount"},
}
TIMES = {
    "Traffic": "TIMESTAMP",
    "Weather": "TIMESTAMP",
    "Pollution": "timestamp",
    "Parking": "updatetime",
}


def _mapping(family: str) -> str:
    """Observations of a family of streams: one per kind of value and row."""
    branches = " UNION ".join(f'{{ BIND("{kind}" AS ?kind) }}' for kind in KINDS[family])
    value = "0"
    for kind, column in KINDS[family].items():
        value = f'IF(?kind = "{kind}", xsd:double(?{column}), {value})'
    clause = f"{branches} BIND({value} AS ?v)"
    time = TIMES[family]
    text = OBSERVATION % (clause, time)
    return text.replace("BIND(?timestamp AS ?timestamp)", "")


def _family(stream: str) -> str:
    return next(family for family in KINDS if family in stream)


def _by_hand(path: Path, stream: str) -> list[tuple[str, str, str, int]]:
    """The same observations, made by plain Python."""
    found = []
    family = _family(stream)
    with path.open() as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            stamp = datetime.fromisoformat(row[TIMES[family]]).replace(tzinfo=UTC)
            t = round(stamp.timestamp() * 1000)
            for kind, column in KINDS[family].items():
                o = f"<http://city.org/{path.name}/{number}/{kind}>"
                found += [
                    (o, TYPE, f"<{SSN}Observation>", t),
                    (o, f"<{SSN}observedProperty>", f"<{stream}-{kind}>", t),
                    (o, f"<{SSN}observedBy>", f"<{stream}>", t),
                ]
                if row[column]:
                    found.append((o, f"<{SAO}hasValue>", f"{float(row[column])}", t))
    return found


def _plain(item: tuple[str, str, str, int]) -> tuple[Any, ...]:
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
def test_the_streams_of_citybench_are_mapped_without_a_script(name, city):
    path = city / "streams" / f"{name}.stream"
    terms = TermDictionary()
    found: list[Any] = []
    for chunk in read_stream(mapped(path, _mapping(_family(name))), f"<{CITY}{name}>", terms):
        assert not chunk.rejects
        texts = (terms.texts(ids).to_pylist() for ids in (chunk.s, chunk.p, chunk.o))
        found += zip(*texts, chunk.end.tolist(), strict=True)
    expected = [
        (s, p, float(o) if p.endswith("hasValue>") else o, t)
        for s, p, o, t in _by_hand(path, CITY + name)
    ]
    assert len(found) > 1000
    assert sorted(map(_plain, found), key=str) == sorted(expected, key=str)


HOUR = 3_600_000
BEGIN = 1_406_880_000_000  # 2014-08-01T08:00Z
STATIC = [(f"<{{}}-{kind}>", TYPE, f"<{CT}{kind}>") for kinds in KINDS.values() for kind in kinds]


@pytest.mark.parametrize("number", ["1", "2", "3", "7", "12"])
def test_the_queries_of_citybench_give_what_a_store_answers_over_each_window(number, city):
    text = (city / "queries" / "csparql" / f"Q{number}.txt").read_text()
    text = re.sub(r"\[range \w+ step \w+\]", "[range 25m step 5m]", text)
    query = streamsparql.compile(text, dialect="csparql")
    graph = [
        (s.format(stream), p, o)
        for stream in query.streams
        for s, p, o in STATIC
        if o[len(CT) + 1 : -1] in KINDS[_family(stream)]
    ]
    paths = {name: city / "streams" / f"{name.removeprefix(CITY)}.stream" for name in query.streams}
    sources = {name: mapped(path, _mapping(_family(name))) for name, path in paths.items()}
    graphs = {REPOSITORY: graph} if REPOSITORY in query.graphs else {}
    result = query.run(sources, graphs=graphs, start=BEGIN, end=BEGIN + HOUR)
    items = [item for name, path in paths.items() for item in _by_hand(path, name)]
    asked = re.sub(r"(?im)^\s*from\b.*$", "", re.sub(r"(?m)^#.*$", "", text))
    answers = 0
    for t in range(BEGIN + 300_000, BEGIN + HOUR, 300_000):
        within = [
            (s, p, _double(o) if "hasValue" in p else o)
            for s, p, o, at in items
            if t - 1_500_000 < at <= t
        ]
        store = ox.Store()
        text = "".join(" ".join(triple) + " .\n" for triple in [*graph, *within])
        store.load(text.encode(), ox.RdfFormat.N_TRIPLES)
        theirs = store.query(asked)
        names = [v.value for v in theirs.variables]
        wanted = Counter(tuple(_cell(row[name]) for name in names) for row in theirs)
        ours = Counter(tuple(_cell(row[name]) for name in names) for row in result.snapshot(t))
        assert ours == wanted
        answers += sum(wanted.values())
    assert not result.rejected  # some are late
    assert answers > 0 or number == "7"


def _double(text: str) -> str:
    return f'"{text}"^^<{XSD}double>'


def _cell(term: Any) -> Any:
    value = getattr(term, "value", term)
    if term is None:
        return None
    try:
        return round(float(str(value)), 6)
    except ValueError:
        return str(value)
