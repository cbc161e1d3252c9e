"""`streamsparql head`, and `run --auto`: from an unknown file to an answer."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from support.external_data import DATA, NO_DATA

import streamsparql
from streamsparql.cli import main
from streamsparql.errors import EngineError, SourceError

CSV = """road,speed,n,time
a,52.5,1,2014-08-01 10:00
a,62,n/a,2014-08-01 10:05
b,75,3,2014-08-01 10:03
b,,4,2014-08-01 10:10
"""
SHOWN = """\
roads.csv: CSV separated by commas, 4 columns; its first 4 rows

column  type      empty  values
road    string        0  a, b
speed   double        1  52.5, 62, 75
n       integer       0  1, n/a, 3, …
time    dateTime      0  2014-08-01 10:00, 2014-08-01 10:05, 2014-08-01 10:03, …

timestamps: time, by its name and its content; 2014-08-01 10:00 is 2014-08-01 10:00:00 UTC
times without an offset are in UTC; --time-zone ZONE sets another zone
they are out of order: --max-delay 2m keeps all of these, --max-delay auto sorts the whole input

?n: xsd:integer(?n) has no value for "n/a": 1 row

road  speed  n    time
a     52.5   1    2014-08-01 10:00
a     62     n/a  2014-08-01 10:05

a mapping that works as it is

"""


@pytest.fixture
def roads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roads.csv").write_text(CSV)
    return tmp_path


def output(capsys: Any, *arguments: str) -> str:
    assert main(arguments) == 0
    return str(capsys.readouterr().out)


def test_head_shows_columns_times_rows_and_a_mapping(roads: Path, capsys: Any) -> None:
    text = output(capsys, "head", "roads.csv", "-n", "2")
    assert text.startswith(SHOWN)
    mapping = output(capsys, "head", "roads.csv", "--mapping")
    query = output(capsys, "head", "roads.csv", "--query")
    assert text == f"{SHOWN}{mapping}\na query to begin with\n\n{query}"


def test_printed_mapping_and_query_run(roads: Path, capsys: Any) -> None:
    Path("m.rq").write_text(output(capsys, "head", "roads.csv", "--mapping"))
    Path("q.rq").write_text(output(capsys, "head", "roads.csv", "--query"))
    run = ("run", "q.rq", "--stream", "roads.csv", "--max-delay", "2m", "--output", "csv")
    by_mapping = output(capsys, *run, "--map", "m.rq")
    assert main([*run, "--auto"]) == 0
    done = capsys.readouterr()
    assert done.out == by_mapping
    assert "road,mean,rows,start,end\na,52.5,1," in by_mapping
    assert 'note: ?n: xsd:integer(?n) has no value in one row: "n/a" in row 3' in done.err


@pytest.mark.parametrize(
    "name", ["x.csv", "x.csv.gz", "x.tsv", "x.dat", "x.jsonl", "x.parquet", "-"]
)
def test_head_reads_all_formats_of_tables(
    name: str, roads: Path, capsys: Any, monkeypatch: Any
) -> None:
    frame = pandas.read_csv("roads.csv", keep_default_na=False)
    if name == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    elif name == "x.parquet":
        parquet.write_table(pa.Table.from_pandas(frame), name)
    elif name == "x.jsonl":
        Path(name).write_text(frame.to_json(orient="records", lines=True))
    else:
        text = CSV.replace(",", "\t" if name in ("x.tsv", "x.dat") else ",")
        Path(name).write_bytes(gzip.compress(text.encode()) if ".gz" in name else text.encode())
    text = output(capsys, "head", name)
    assert "4 columns; its first 4 rows" in text
    assert "time    dateTime" in text
    assert "CONSTRUCT {\n  [] :road ?road" in text
    space = "data" if name == "-" else "x"
    assert f"PREFIX : <http://example.org/{space}#>" in text


TRIPLES = '<http://e/a> <http://www.w3.org/ns/sosa/hasSimpleResult> "5" <http://e/t/{}> .\n'


@pytest.mark.parametrize("name", ["x.nq", "x.trig", "x.ttl", "x.nt", "items.csv"])
def test_head_shows_the_predicates_of_triples(name: str, roads: Path, capsys: Any) -> None:
    prov = "<http://www.w3.org/ns/prov#generatedAtTime>"
    triple = '<http://e/a> <http://www.w3.org/ns/sosa/hasSimpleResult> "5"'
    Path(name).write_text(
        {
            "x.nq": TRIPLES.format(1_406_851_500) + TRIPLES.format(1_406_851_600),
            "x.trig": f'<http://e/g> {{ {triple} }}\n<http://e/g> {prov} "1406851500" .\n'.replace(
                '"1406851500"',
                '"2014-08-01T00:05:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
            ),
            "items.csv": "s,p,o,t\n<a>,<http://www.w3.org/ns/sosa/hasSimpleResult>,5,1406851500\n"
            '<a>,<http://www.w3.org/ns/sosa/hasSimpleResult>,"""5""",1406851500\n',
        }.get(name, f"{triple} .\n")
    )
    text = output(capsys, "head", name)
    timed = not name.endswith(("ttl", "nt"))
    assert text.startswith(f"{name}: a {'stream' if timed else 'static graph'}; ")
    assert "<http://www.w3.org/ns/sosa/hasSimpleResult>" in text
    assert ("timestamps: 2014-08-01 00:05:00 UTC to 2014-08-01 00:0" in text) == timed
    assert "PREFIX sosa: <http://www.w3.org/ns/sosa/>\nSELECT ?subject ?value\n" in text
    assert ("they count seconds since 1970" in text) == (name in ("x.nq", "items.csv"))
    Path("q.rq").write_text(text.partition("a query to begin with\n\n")[2])
    stream = ["--stream", name] if timed else ["--graph", name]
    rows = output(capsys, "run", "q.rq", *stream, "--output", "csv").splitlines()
    assert rows[0].startswith("subject,value")
    assert len(rows) > 1


def test_head_of_a_folder_is_that_of_its_first_file(roads: Path, capsys: Any) -> None:
    Path("day").mkdir()
    for k in range(3):
        Path(f"day/{k}.csv").write_text(CSV)
    text = output(capsys, "head", "day")
    assert text.startswith(
        "day/0.csv: CSV separated by commas, 4 columns; its first 4 rows, the first"
    )
    assert "<http://example.org/day#>" in text


def test_options_of_head_set_what_was_guessed(roads: Path, capsys: Any) -> None:
    zone = output(capsys, "head", "roads.csv", "--time-zone", "Europe/Copenhagen")
    assert "2014-08-01 10:00 is 2014-08-01 08:00:00 UTC\n" in zone
    Path("x.csv").write_text("id|1406851500|x\n")
    text = output(capsys, "head", "x.csv", "--no-header", "--delimiter", "|", "--stamp-from", "b")
    assert "CSV separated by bars, without a header, 3 columns; its first row" in text
    assert (
        "timestamps: b\nthey count seconds since 1970; --time-unit UNIT sets another unit" in text
    )
    text = output(capsys, "head", "x.csv", "--no-header", "--stamp-from", "b", "--time-unit", "ms",
                  "--delimiter", "|", "--namespace", "http://e/x/")  # fmt: skip
    assert "they count milliseconds" in text
    assert "PREFIX : <http://e/x/>" in text


def test_table_without_times_is_shown_as_a_graph(roads: Path, capsys: Any) -> None:
    Path("x.csv").write_text("id,name\n1,a\n")
    text = output(capsys, "head", "x.csv")
    assert "no column has times, so this is a static graph; or name it: --stamp-from COLUMN" in text
    Path("q.rq").write_text(output(capsys, "head", "x.csv", "--query"))
    assert "FROM STREAM" not in Path("q.rq").read_text()
    rows = output(capsys, "run", "q.rq", "--graph", "x.csv", "--auto", "--output", "csv")
    assert rows.startswith("mean,rows,start,end\n1,1,")


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["none.csv"], "none.csv: No such file", 1),
        (["empty.csv"], "empty.csv is empty; expected a header", 1),
        (["header.csv"], "header.csv has no rows", 1),
        (["roads.csv", "--time-zone", "Mars"], "unknown time zone 'Mars'", 1),
        (["roads.csv", "--stamp-from", "no"], "unknown column ?no in stamp_from; it has ?road", 1),
        (["roads.csv", "--mapping", "--query"], "leave out one of the two", 2),
        (["x.nq", "--mapping"], "x.nq needs none: its triples are read as they are", 2),
    ],
)
def test_head_of_what_cannot_be_shown_is_an_error(
    arguments: list[str], message: str, status: int, roads: Path, capsys: Any
) -> None:
    Path("empty.csv").write_text("")
    Path("header.csv").write_text("a,b\n")
    Path("x.nq").write_text(TRIPLES.format(5))
    assert main(["head", *arguments]) == status
    assert message in capsys.readouterr().err


# -- run -------------------------------------------------------------------------------------------

QUERY = "PREFIX : <http://example.org/roads#> SELECT ?v FROM STREAM <{}> WINDOW RANGE 1 HOUR FIXED"


def test_auto_maps_tables_and_leaves_other_streams(roads: Path, capsys: Any) -> None:
    Path("q.rq").write_text(
        "PREFIX : <http://example.org/roads#> SELECT ?v FROM NAMED STREAM <s> WINDOW RANGE 1 HOUR"
        " FIXED FROM NAMED STREAM <t> WINDOW RANGE 1 HOUR FIXED { { GRAPH <s> { ?x :speed ?v } }"
        " UNION { GRAPH <t> { ?x <http://www.w3.org/ns/sosa/hasSimpleResult> ?v } } }"
    )
    Path("x.nq").write_text(TRIPLES.format(1_406_887_200_000))
    run = ("run", "q.rq", "--stream", "s=roads.csv", "--stream", "t=x.nq", "--output", "csv")
    rows = output(capsys, *run, "--auto", "--max-delay", "auto").splitlines()
    assert sorted(row.partition(",")[0] for row in rows[1:]) == ["5", "52.5", "62", "75"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--time-unit", "h"], "--time-unit h: expected s, ms, us or ns"),
        (["--time-zone", "UTC", "--time-zone", "UTC"], "--time-zone UTC: duplicate option"),
        (["--time-zone", "UTC", "--time-zone", "s=UTC"], "write IRI=.. for each stream"),
        (["--max-delay", "soon"], "not a valid duration: 'soon'"),
    ],
)
def test_malformed_option_is_a_usage_error(
    options: list[str], message: str, roads: Path, capsys: Any
) -> None:
    Path("q.rq").write_text(QUERY.format("s") + " { ?x :speed ?v }")
    try:
        status = main(["run", "q.rq", "--stream", "roads.csv", "--auto", *options])
    except SystemExit as end:
        status = end.code  # type: ignore[assignment]
    assert (status, message in capsys.readouterr().err) == (2, True)


def test_auto_delay_is_refused_for_standard_input(
    roads: Path, capsys: Any, monkeypatch: Any
) -> None:
    Path("q.rq").write_text(QUERY.format("s") + " { ?x :speed ?v }")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    assert main(["run", "q.rq", "--stream", "-", "--auto", "--max-delay", "auto"]) == 2
    assert "--max-delay auto sorts a whole history" in capsys.readouterr().err


def test_options_may_be_those_of_one_stream(roads: Path, capsys: Any) -> None:
    Path("q.rq").write_text(QUERY.format("s") + " { ?x :speed ?v }")
    run = ("run", "q.rq", "--stream", "roads.csv", "--auto", "--max-delay", "2m", "--output", "csv")
    shifted = output(capsys, *run, "--time-zone", "s=Europe/Copenhagen", "--stamp-from", "s=time")
    first = int(shifted.splitlines()[1].split(",")[1])
    assert first == 1_406_880_000_000


def test_rejects_have_their_lateness(roads: Path, capsys: Any) -> None:
    Path("q.rq").write_text(QUERY.format("s") + " { ?x :speed ?v }")
    output(capsys, "run", "q.rq", "--stream", "roads.csv", "--auto", "--rejects", "r.jsonl")
    (reject,) = map(json.loads, Path("r.jsonl").read_text().splitlines())
    assert (reject["late"], reject["lateness"]) == (True, 120_000)


# -- the library -----------------------------------------------------------------------------------


def test_head_of_tables_records_and_items_in_memory() -> None:
    frame = pandas.read_csv(io.StringIO(CSV))
    shown = streamsparql.head(frame, rows=1)
    assert str(shown).startswith("the source: a table, 4 columns; its first 4 rows")
    assert "time_zone='ZONE' sets another zone" in str(shown)
    assert shown._repr_html_().startswith("<pre>the source: ")
    for source in (frame.to_dict("records"), io.StringIO(CSV), frame):
        mapping = streamsparql.head(source).mapping
        assert mapping is not None
        assert ":road ?road" in mapping
    items = streamsparql.head([("<a>", "<p>", 5, 7), ("<a>", "<p>", 6, 5)])
    assert items.mapping is None
    assert "they are out of order: max_delay=2 keeps all of these" in str(items)
    assert str(streamsparql.head([("<a>", "<p>", "<b>")])).startswith("the source: a static graph")
    with pytest.raises(SourceError, match="the source can be read only once"):
        streamsparql.head(iter([]))
    with pytest.raises(EngineError, match="time_unit must be s, ms, us or ns"):
        streamsparql.head(frame, time_unit="h")


def test_open_file_is_left_as_it_was(roads: Path) -> None:
    file = io.StringIO(CSV)
    streamsparql.head(file)
    assert file.read() == CSV


@pytest.mark.skipif(not DATA.is_dir(), reason=NO_DATA)
def test_unknown_file_is_answered_in_three_commands(
    capsys: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """As the tour of docs/your-own-data.md: head, a query, run --auto."""
    monkeypatch.chdir(tmp_path)
    path = str(DATA / "citybench/streams/AarhusTrafficData158505.stream")
    Path("q.rq").write_text(output(capsys, "head", path, "--query"))
    run = ("run", "q.rq", "--stream", path, "--auto", "--report", "rstream", "--output", "csv")
    rows = output(capsys, *run).splitlines()
    assert len(rows) > 100
