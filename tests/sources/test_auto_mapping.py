"""Tables without a mapping: what is guessed, and one mapping for all formats.

The definition of "the same items" is equality of the triples with their timestamps, blank nodes
included: the k-th row is the same node in all formats.
"""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as parquet
import pytest
from _pytest.mark import ParameterSet
from hypothesis import given, settings
from hypothesis import strategies as st
from support.external_data import over_data
from support.sources import XSD, read

import streamsparql
from streamsparql.errors import SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources import mapped, read_graph
from streamsparql.sources.auto_mapping import guess, namespace_of
from streamsparql.sources.column_types import day_order, kind_of_texts
from streamsparql.sources.mapped_tables import needs_mapping
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import StampReader

polars = pytest.importorskip("polars", reason="polars comes with the test extra")

Rows = list[dict[str, Any]]


def items_of(source: Any, **options: Any) -> list[Any]:
    items, rejects, _ = read(source, reading=Reading(StampReader(None)), **options)
    assert rejects == []
    return items


def kinds(source: Any) -> dict[str, str]:
    table = pa.record_batch(source) if isinstance(source, dict) else source
    return {column.name: column.kind for column in guess(table, "http://e/").columns}


# -- types and the time column ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["7", "-7", "0"], "integer"),
        (["7", "2.5", "1e3", ".5"], "double"),
        (["007", "1"], "string"),
        (["+49 30 1234"], "string"),
        (["true", "False"], "boolean"),
        (["2014-08-01"], "date"),
        (["2014-08-01 10:00", "2014-08-01T10:00:00.5"], "dateTime"),
        (["2014-02-30 10:00"], "string"),
        (["10:00", "9:30:15"], "time"),
        (["7", "n/a", "NULL", "-"], "integer"),
        (["n/a"], "string"),
        (["7", "seven"], "string"),
        (["1", "true"], "string"),
    ],
)
def test_type_of_a_column_of_text_is_guessed(values: list[str], kind: str) -> None:
    assert kind_of_texts(values) == kind


def test_types_of_a_typed_table_are_kept() -> None:
    table = pa.record_batch(
        {
            "text": ["7"],
            "moment": ["2014-08-01 10:00"],
            "number": [7],
            "flag": [True],
            "at": pa.array([5], pa.timestamp("ms")),
            "category": pa.array(["x"]).dictionary_encode(),
        }
    )
    assert kinds(table) == {
        "text": "string",
        "moment": "dateTime",
        "number": "integer",
        "flag": "boolean",
        "at": "dateTime",
        "category": "string",
    }
    records = [{"v": 1, "w": 1, "x": "7", "at": datetime(2014, 8, 1)}, {"v": 2.5, "w": "a"}]
    shown = {column.name: column.kind for column in guess(records, "http://e/").columns}
    assert shown == {"v": "double", "w": "mixed", "x": "string", "at": "dateTime"}


@pytest.mark.parametrize(
    ("columns", "name", "stamp"),
    [
        ({"t": ["10"], "v": ["7"]}, "t", 10),
        ({"v": ["7"], "TIMESTAMP": ["2014-08-01T10:00:00"]}, "TIMESTAMP", 1_406_887_200_000),
        ({"v": ["7"], "observed": ["2014-08-01 10:00"]}, "observed", 1_406_887_200_000),
        ({"id": ["1406851500"], "when": ["2014-08-01"]}, "when", 1_406_851_200_000),
        ({"id": ["1406851500"], "event_time": ["1406851500"]}, "event_time", 1_406_851_500_000),
        ({"id": ["7"], "ts_ms": ["1406851500000"]}, "ts_ms", 1_406_851_500_000),
        (
            {"expires": ["2014-08-02"] * 2, "date_time": ["2014-08-01", "2014-08-02"]},
            "date_time",
            None,
        ),
        ({"copied": ["2014-11-03"] * 2, "updated": ["2014-08-01", "2014-08-02"]}, "updated", None),
        ({"date": ["2014-08-01"] * 2, "time": ["9:00", "10:00"]}, "date", 1_406_883_600_000),
        ({"Datum": ["01.08.2014 10:00", "1.8.2014 11:00"]}, "Datum", 1_406_887_200_000),
        ({"Date": ["8/1/2014", "8/13/2014"]}, "Date", 1_406_851_200_000),
        ({"day": ["31/7/2014 9:05"], "v": ["5"]}, "day", 1_406_797_500_000),
        ({"start": ["2014-08-01"], "end": ["2014-08-02"], "t": ["2014-08-03"]}, "t", None),
    ],
)
def test_time_column_is_found_by_name_and_content(
    columns: dict[str, list[str]], name: str, stamp: int | None
) -> None:
    lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
    text = "\n".join(lines)
    table = pa.record_batch({k: pa.array([c.encode() for c in v]) for k, v in columns.items()})
    time = guess(table, "http://e/").time
    assert time is not None
    assert time.column.name == name
    items = items_of(mapped(io.StringIO(text)))
    if stamp is not None:
        assert items[0][3] == stamp


@pytest.mark.parametrize(
    "columns",
    [
        {"id": ["1406851500"], "v": ["7"]},
        {"Date": ["1/2/2014", "1/2/2014"]},
        {"time": ["soon"]},
        {"clock": ["10:00"]},
    ],
)
def test_table_without_times_is_a_static_graph(columns: dict[str, list[str]]) -> None:
    text = "\n".join([",".join(columns), *map(",".join, zip(*columns.values(), strict=True))])
    with pytest.raises(SourceError, match=r"missing timestamp|not a valid"):
        read(mapped(io.StringIO(text)), strict=True)
    batch, rejects = read_graph(mapped(io.StringIO(text)), "g", TermDictionary())
    assert rejects == []
    assert len(batch) == sum(bool(cell) for cells in columns.values() for cell in cells)


def test_order_of_day_and_month_is_that_in_which_dates_do_not_fall() -> None:
    days = [f"{day}/{month}/2014" for month in (3, 4) for day in (2, 5, 9)]
    assert (day_order(days), day_order(days[:1])) == ("day-first", None)
    assert day_order([f"{m}/{d}/2014" for m, d in ((3, 9), (4, 2), (4, 5))]) == "month-first"


# -- files and headers -----------------------------------------------------------------------------


def test_first_line_without_names_is_data() -> None:
    text = "2004-08-08 06:05:00.000000+0:00,3182,5\n2004-08-08 06:10:00.000000+0:00,3099,\n"
    items = items_of(mapped(io.StringIO(text)))
    assert [(p.rpartition("#")[2], t) for _, p, _, t in items] == [
        *(("a>", 1_091_945_100_000), ("b>", 1_091_945_100_000), ("c>", 1_091_945_100_000)),
        *(("a>", 1_091_945_400_000), ("b>", 1_091_945_400_000)),
    ]
    years = "land,1990,1991,t\nx,5,6,7\n"
    assert [p for _, p, *_ in items_of(mapped(io.StringIO(years)))][1].endswith("#1990>")


@pytest.mark.parametrize("source", [io.StringIO, lambda text: io.BytesIO(text.encode())])
def test_source_that_is_read_once_is_mapped_by_its_first_rows(source: Any) -> None:
    text = "name,v,t\n" + "".join(f"a,{k},{k}\n" for k in range(2_000)) + "b,x,2000\n"
    table = mapped(source(text))
    assert table.mapping is None
    reading = Reading(StampReader(None))
    items, _, _ = read(table, reading=reading)
    assert len(items) == 2_000 * 3 + 2
    assert [str(each) for each in reading.cells.failed] == [
        '?v: xsd:integer(?v) has no value in one row: "x" in row 2002'
    ]


def test_generator_is_mapped_by_its_first_records() -> None:
    records = ({"v": k, "t": k} for k in range(5))
    assert len(items_of(mapped(records))) == 10


def test_files_of_a_folder_have_the_mapping_of_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "road-7"
    folder.mkdir()
    for k in range(3):
        (folder / f"{k}.csv").write_text(f"v,t\n{k},{k}\n")
    items = items_of(mapped(folder))
    assert [o.split('"')[1] for _, p, o, _ in items if p.endswith("road-7#v>")] == ["0", "1", "2"]
    assert len({s for s, *_ in items}) == 3


def test_namespace_is_that_of_the_file_or_of_the_argument(tmp_path: Path) -> None:
    for name in ("road 7.csv", "road 7.csv.gz", "road 7.parquet", "road 7.stream"):
        assert namespace_of(tmp_path / name) == "http://example.org/road_7#"
    items = items_of(mapped([{"v": 1, "t": 5}], namespace="http://e/x/"))
    assert items[0][1] == "<http://e/x/v>"
    with pytest.raises(SourceError, match="namespace applies to a mapping that is guessed"):
        mapped([], "CONSTRUCT { [] <v> ?v } {}", namespace="http://e/")


def test_columns_of_any_name_are_predicates() -> None:
    names = ["wind speed (m/s)", "CO²", "µg/m³", "größe", "2nd", "", "风", "t"]
    text = ",".join(names) + "\n" + ",".join("1234567") + ",5\n"
    predicates = [p.rpartition("#")[2][:-1] for _, p, *_ in items_of(mapped(io.StringIO(text)))]
    assert predicates == ["wind_speed__m_s_", "CO_", "_g_m_", "größe", "2nd", "f", "风", "t"]


def test_columns_may_have_the_names_of_stamps() -> None:
    text = "t,timestamp,start,end,when\nx,y,1,2,2014-08-01T10:00:00Z\n"
    with pytest.raises(SourceError, match="not a valid timestamp: 'y'"):
        read(mapped(io.StringIO(text)), strict=True)
    text = text.replace("timestamp", "stamped")
    assert items_of(mapped(io.StringIO(text)))[0][3] == 1_406_887_200_000


def test_sources_that_need_a_mapping(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("s,p,o,t\n<a>,<b>,<c>,1\n")
    (tmp_path / "y.csv").write_text("s,v,t\na,b,1\n")
    (tmp_path / "z.dat").write_text("v;t\na;1\n")
    (tmp_path / "w.nq").write_text("<a> <b> <c> <t/1> .\n")
    mapped_by_auto = {path.name: needs_mapping(path) for path in tmp_path.iterdir()}
    assert mapped_by_auto == {"x.csv": False, "y.csv": True, "z.dat": True, "w.nq": False}
    assert needs_mapping(pandas.DataFrame({"v": [1]}))
    assert not needs_mapping(pandas.DataFrame({"s": [], "p": [], "o": [], "t": []}))
    assert not needs_mapping(mapped([{"t": 1}]))


# -- one mapping, any format -----------------------------------------------------------------------

EPOCH = datetime(2014, 8, 1)
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(0, 10**9),
    "count": st.none() | st.integers(-(10**12), 10**12),
    "speed": st.none() | st.floats(-1e6, 1e6).map(lambda x: round(x, 3) + 0.0),
    "state": st.none() | st.text("abc é\"'<>\\,;|\n{}", min_size=1, max_size=6),
    "open": st.none() | st.booleans(),
    "day": st.none() | st.dates(EPOCH.date()),
    "seen": st.none() | st.integers(0, 10**7).map(lambda k: EPOCH + timedelta(seconds=k)),
}
ROWS = st.lists(
    st.fixed_dictionaries(CELLS)
    | st.fixed_dictionaries({**CELLS, "count": st.integers(0, 9), "open": st.booleans()}),
    min_size=1,
    max_size=12,
)
HANDWRITTEN = f"""PREFIX : <http://e/> PREFIX xsd: <{XSD}>
CONSTRUCT {{ ?node :count ?n ; :speed ?v ; :label ?label ; :open ?on }}
WHERE {{
  BIND(IRI(CONCAT("http://e/", ?id, "/", ENCODE_FOR_URI(COALESCE(?state, "none")))) AS ?node)
  BIND(xsd:integer(?count) AS ?n)
  BIND(xsd:double(?speed) AS ?v)
  BIND(UCASE(CONCAT(STR(?id), "-", ?count)) AS ?label)
  BIND(xsd:boolean(LCASE(?open)) AS ?on)
  BIND(REPLACE(?time, " ", "T") AS ?timestamp)
}}"""


def in_all_formats(rows: Rows, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the same table in each format."""
    schema = pa.schema(
        [
            *(("id", pa.int64()), ("count", pa.int64()), ("speed", pa.float64())),
            *(("state", pa.string()), ("open", pa.bool_()), ("day", pa.date32())),
            *(("seen", pa.timestamp("us")), ("time", pa.timestamp("us"))),
        ]
    )
    table = pa.Table.from_pylist(rows, schema)
    yield "arrow", table
    yield "dicts", rows
    yield "generator", (row for row in rows)
    yield "pandas", table.to_pandas()
    yield "pandas with arrow", table.to_pandas(types_mapper=pandas.ArrowDtype)
    yield "polars", polars.from_arrow(table)
    parquet.write_table(table, folder / "x.parquet")
    yield "parquet", folder / "x.parquet"
    texts = [{k: None if v is None else text_of(v) for k, v in row.items()} for row in rows]
    lines = [json.dumps({k: v for k, v in row.items() if v is not None}) for row in texts]
    (folder / "x.jsonl").write_text("".join(f"{line}\n" for line in lines))
    yield "JSON lines", folder / "x.jsonl"
    yield "messages", [line.encode() for line in lines]
    frame = pandas.DataFrame(
        [{k: csv_text(v) for k, v in row.items()} for row in rows], columns=schema.names
    )
    frame.to_csv(folder / "x.csv", index=False)
    yield "CSV", folder / "x.csv"
    (folder / "x.csv.gz").write_bytes(gzip.compress((folder / "x.csv").read_bytes()))
    yield "compressed CSV", folder / "x.csv.gz"


def text_of(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def csv_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, datetime):
        return str(value)
    return "" if value is None else str(value)


@settings(max_examples=25, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_mapping_makes_the_same_items_of_any_format(
    tmp_path_factory: pytest.TempPathFactory, rows: Rows, random: Any
) -> None:
    times = [EPOCH + timedelta(seconds=random.randrange(10**6)) for _ in rows]
    rows = [{**row, "time": time} for row, time in zip(rows, times, strict=True)]
    if not any("/" in str(row["state"]) for row in rows):
        folder = tmp_path_factory.mktemp("formats")
        sources = dict(in_all_formats(rows, folder))
        guessed = mapped(sources["arrow"]).mapping
        assert guessed is not None
        for text in (guessed, HANDWRITTEN):
            expected = items_of(mapped(sources["arrow"], text))
            for name, source in sources.items():
                again = (row for row in rows) if name == "generator" else source
                assert items_of(mapped(again, text)) == expected, name


@settings(max_examples=25, deadline=None)
@given(ROWS)
def test_guessed_mapping_loses_no_cell(
    tmp_path_factory: pytest.TempPathFactory, rows: Rows
) -> None:
    """Each cell of the sample that is not empty is a triple; none fails its cast."""
    rows = [{**row, "time": EPOCH + timedelta(seconds=k)} for k, row in enumerate(rows)]
    folder = tmp_path_factory.mktemp("formats")
    cells = sum(value is not None for row in rows for value in row.values())
    for name, source in in_all_formats(rows, folder):
        reading = Reading(StampReader(None))
        items, rejects, _ = read(mapped(source), reading=reading)
        assert (reading.cells.failed, rejects) == ((), []), name
        assert len(items) == cells, name


def test_whole_numbers_of_pandas_with_gaps_are_texts_without_fraction() -> None:
    frame = pandas.DataFrame({"id": [20746168, None], "t": [1, 2]})
    assert frame["id"].dtype == "float64"
    text = "CONSTRUCT { ?x <v> ?t } { BIND(IRI(CONCAT('http://e/', ?id)) AS ?x) }"
    assert [s for s, *_ in items_of(mapped(frame, text))] == ["<http://e/20746168>"]
    assert math.isnan(frame["id"][1])


# -- real files ------------------------------------------------------------------------------------

REAL = [
    ("citybench/streams/AarhusTrafficData158505.stream", 8560, 9),
    ("citybench/streams/AarhusParkingDataKALKVAERKSVEJ.stream", 1253, 6),
    ("citybench/streams/AarhusPollutionData158505.stream", None, 8),
    ("citybench/streams/AarhusWeatherData0.stream", 2210, 4),
    ("srbench-csv/obs3h.csv", 957, 17),
    ("envirostream/day.csv", 72, 3),
    ("envirostream/night.csv", None, 3),
    ("arroyo/cars.jsonl.gz", None, 4),
    ("arroyo/aggregate_updates.jsonl.gz", 830, 29),
    ("arroyo/impulse.jsonl", None, 3),
    ("nexmark/person.jsonl", None, 8),
    ("nexmark/auction.jsonl", None, 10),
    ("nexmark/bid.jsonl", None, 7),
]


def real_files(data: Path) -> Iterator[ParameterSet]:
    for name, rows, columns in REAL:
        yield pytest.param((data / name, rows, columns), id=name.rpartition("/")[2])


@pytest.mark.parametrize("case", over_data(real_files))
def test_file_of_another_project_is_queried_without_a_mapping(case: Any) -> None:
    path, rows, columns = case
    shown = streamsparql.head(path)
    assert shown.mapping is not None
    source = mapped(path)
    assert source.mapping == shown.mapping
    reading = Reading(StampReader(None))
    items, rejects, _ = read(source, reading=reading)
    assert (rejects, reading.cells.failed) == ([], ())
    stamped = {s for s, *_ in items}
    assert rows is None or abs(len(stamped) - rows) <= 1
    assert len({p for _, p, *_ in items}) <= columns
    stream = shown.query.partition("FROM STREAM <")[2].partition(">")[0]
    result = streamsparql.compile(shown.query).run({stream: source}, max_delay="auto")
    assert len(list(result)) > 0
