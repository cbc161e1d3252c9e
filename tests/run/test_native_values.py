"""Native values: each cell has the value of its term, whatever the column has besides.

The definition is `value_of`: a column is compared with it cell by cell. A native value converted
back to a literal is equal to the original by SPARQL's `=`. Where a column is text, it has the
lexical form of each literal.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.spark_in_process import Session

import streamsparql
from streamsparql.algebra.terms import IRI, XSD, BlankNode, Literal, Term
from streamsparql.algebra.xsd.durations import DayTimeDuration
from streamsparql.algebra.xsd.literal_operators import equal
from streamsparql.algebra.xsd.moments import Date, DateTime, Time
from streamsparql.algebra.xsd.numeric import Single, double
from streamsparql.algebra.xsd.values import XsdValue, literal_of, value_of
from streamsparql.errors import EngineError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.rdflib_terms import to_rdflib
from streamsparql.run.rows import Row
from streamsparql.text.extras import install
from streamsparql.values.columns import native_column
from streamsparql.values.native_column import KINDS_KEY, TYPE_KEY, ZONE_KEY
from streamsparql.values.python_values import python_value


def literals(kind: str, lexical: st.SearchStrategy[str]) -> st.SearchStrategy[Term]:
    return lexical.map(lambda text: Literal(text, IRI(XSD + kind)))


def one_of(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
ZONES = st.sampled_from(["", "", "Z", "Z", "+00:00", "-08:00", "+14:00"])
DAYS = one_of("2026-03-01", "1969-12-31", "0001-01-01", "-0044-03-15", "12026-01-01", "2024-02-30")
CLOCKS = one_of("08:00:00", "23:59:59.5", "24:00:00", "00:00:00.000001", "12:00:00.123456789")
LONG = st.integers(-(10**60), 10**60)
BY_KIND: dict[str, st.SearchStrategy[Term]] = {
    "iri": one_of("http://e/a", "http://e/b c", "urn:x").map(IRI),
    "blank": one_of("a", "b").map(BlankNode),
    "string": TEXTS.map(Literal),
    "tagged": st.builds(lambda text, tag: Literal(text, language=tag), TEXTS, one_of("en", "fr-CH")),
    "other": st.builds(Literal, TEXTS, one_of("http://e/t", XSD + "gYear").map(IRI)),
    "boolean": literals("boolean", one_of("true", "false", "1", "0", "yes")),
    "small": literals("integer", st.integers(-5, 5).map(str)),
    "integer": literals("integer", st.integers(-(10**19), 10**19).map(str) | one_of("007", "+5")),
    "long": literals("integer", LONG.map(str)),
    "derived": literals("byte", one_of("5", "-128", "300", "x")),
    "canonical": st.decimals(-(10**9), 10**9, places=4).map(literal_of),
    "decimal": literals("decimal", st.decimals(-(10**6), 10**6, places=3).map("{:f}".format)),
    "wide": literals("decimal", st.builds(lambda n, k: f"{Decimal(n).scaleb(-k):f}", LONG, st.integers(0, 30))),
    "odd decimal": literals("decimal", one_of(".5", "5.", "+1.50", "-0.0", "007.10", ".0", "")),
    "float": literals("float", st.floats(width=32).map(lambda x: literal_of(Single(x)).lexical)),
    "double": literals("double", st.floats().map(lambda x: literal_of(x).lexical) | one_of("22.50")),
    "dateTime": literals("dateTime", st.builds("{}T{}{}".format, DAYS, CLOCKS, ZONES)),
    "usual": literals("dateTime", st.datetimes(datetime(1900, 1, 1)).map(lambda t: f"{t.isoformat()}Z")),
    "local": literals("dateTime", st.datetimes().map(datetime.isoformat)),
    "date": literals("date", st.builds("{}{}".format, DAYS, ZONES)),
    "time": literals("time", st.builds("{}{}".format, CLOCKS, ZONES)),
    "duration": literals("duration", one_of("P1D", "-PT0.5S", "P1M", "PT1.0000001S", "P999999999999D")),
    "days": literals("dayTimeDuration", one_of("P1D", "PT36H", "PT0.000000001S")),
}  # fmt: skip
MIXTURES = [
    ["small", "decimal"],
    ["integer", "decimal"],
    ["small", "integer", "canonical"],
    ["long", "wide"],
    ["small", "double"],
    ["integer", "double", "canonical"],
    ["long", "float"],
    ["float", "double"],
    ["float", "small"],
    ["duration", "days"],
    ["iri", "string", "tagged", "blank"],
    ["boolean", "small"],
    [*BY_KIND],
]
GROUPS = [*([kind] for kind in BY_KIND), *MIXTURES]


def columns(kinds: list[str]) -> st.SearchStrategy[list[Term | None]]:
    """Return columns of terms of these kinds; half of them have unbound cells."""
    terms = st.one_of([BY_KIND[kind] for kind in kinds])
    return st.lists(terms, max_size=6) | st.lists(st.none() | terms, max_size=8)


in_groups = pytest.mark.parametrize("kinds", GROUPS, ids=" ".join)


def ids_of(column: Iterable[Term | None], terms: TermDictionary) -> np.ndarray:
    return terms.ids_of(column)


def plain(term: Term) -> str:
    return (
        term.value
        if isinstance(term, IRI)
        else term.lexical
        if isinstance(term, Literal)
        else str(term)
    )


def back(scalar: pa.Scalar, zone: str) -> XsdValue:
    """Return the XSD value of a native one."""
    kind = scalar.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return scalar.as_py()  # type: ignore[no-any-return]
    if pa.types.is_floating(kind):
        return Single(scalar.as_py()) if kind == pa.float32() else scalar.as_py()
    unit = {"us": 6, "ns": 9}.get(getattr(kind, "unit", ""), 0)
    count = Decimal(
        pa.array([scalar]).view(pa.int32() if kind == pa.date32() else pa.int64())[0].as_py()
    )
    seconds = count.scaleb(-unit)
    offset = {"": None, "Z": 0, "-08:00": -480, "+14:00": 840}[zone]
    if pa.types.is_timestamp(kind):
        return DateTime(seconds, None if kind.tz is None else 0)
    if pa.types.is_date(kind):
        return Date(seconds * 86_400, offset)
    return Time(seconds, offset) if pa.types.is_time(kind) else DayTimeDuration(0, seconds)


def same(ours: XsdValue, term: Term, represented_as: str) -> bool:
    theirs = value_of(term)
    if isinstance(theirs, float) and math.isnan(theirs):
        return isinstance(ours, float) and math.isnan(ours)
    exact = ours == theirs or (represented_as == "double" and ours == double(theirs))  # type: ignore[arg-type]
    return equal(literal_of(ours), term) and (
        exact or not isinstance(theirs, int | Decimal | float)
    )


@in_groups
@settings(max_examples=20)
@given(st.data())
def test_native_values_are_those_of_the_terms_and_convert_back(
    kinds: list[str], data: st.DataObject
) -> None:
    column = data.draw(columns(kinds))
    terms: TermDictionary = TermDictionary()
    values, metadata = native_column(ids_of(column, terms), terms)
    assert values.is_null().to_pylist() == [term is None for term in column]
    represented_as = metadata.get(TYPE_KEY, "")
    for scalar, term in zip(values, column, strict=True):
        if term is not None and pa.types.is_string(values.type):
            assert scalar.as_py() == plain(term)
        elif term is not None:
            assert same(back(scalar, metadata.get(ZONE_KEY, "")), term, represented_as), (
                scalar,
                term,
            )
    assert (KINDS_KEY in metadata) == any(term is not None for term in column)


@given(st.sampled_from(GROUPS), st.data())
def test_a_column_is_text_only_if_its_values_have_no_common_type(
    kinds: list[str], data: st.DataObject
) -> None:
    column = data.draw(columns(kinds))
    bound = [term for term in column if term is not None]
    assume(bound)
    terms: TermDictionary = TermDictionary()
    values, metadata = native_column(ids_of(column, terms), terms)
    kinds = {type(value_of(term)) for term in bound}
    if kinds <= {bool}:
        assert values.type == pa.bool_()
    elif kinds <= {float}:
        assert values.type == pa.float64()
    elif kinds <= {int} and all(abs(value_of(term)) < 1 << 63 for term in bound):  # type: ignore[arg-type, operator]
        assert values.type == pa.int64()
    elif kinds <= {str, type(None)}:
        assert values.type == pa.string()
    if pa.types.is_string(values.type):
        texts = {"iri", "blank node", "string", "other literal"}
        one_kind = metadata[KINDS_KEY] in texts or metadata[KINDS_KEY].startswith("@")
        assert (metadata.get(TYPE_KEY) == "text") != (one_kind and ", " not in metadata[KINDS_KEY])


def numbers(*cells: tuple[str, str]) -> tuple[str, list[Any]]:
    """Return the type and the values of a column of literals."""
    terms: TermDictionary = TermDictionary()
    column = [Literal(text, IRI(XSD + kind)) for text, kind in cells]
    values, _ = native_column(ids_of(column, terms), terms)
    return str(values.type), values.to_pylist()


def test_numbers_are_promoted_where_the_type_holds_them_exactly() -> None:
    half = ("0.5", "double")
    assert numbers((str(2**53), "integer"), half) == ("double", [2.0**53, 0.5])
    assert numbers((str(2**53 + 1), "integer"), half) == ("string", [str(2**53 + 1), "0.5"])
    assert numbers((str(2**70), "integer"), half) == ("double", [2.0**70, 0.5])
    assert numbers((str(2**70 + 1), "integer"), half)[0] == "string"
    assert numbers(("0.1", "decimal"), half) == ("double", [0.1, 0.5])
    assert numbers(("7", "integer"), ("0.10", "decimal")) == (
        "decimal128(38, 2)",
        [Decimal("7.00"), Decimal("0.10")],
    )
    large, small = "999999999999999", "0.123456789012345"
    assert numbers((large, "integer"), (small, "decimal")) == (
        "decimal128(38, 15)",
        [Decimal(large + "." + "0" * 15), Decimal(small)],
    )
    assert numbers((large + "1" * 20, "integer"), (small, "decimal"))[0] == "decimal256(76, 15)"
    assert numbers(("1" * 70, "integer"), (small, "decimal"))[0] == "string"
    assert numbers((str(2**63 - 1), "integer"))[0] == "int64"
    assert numbers((str(2**63), "integer"))[0] == "decimal128(38, 0)"


@given(st.sampled_from(GROUPS), st.data())
def test_the_place_of_a_term_does_not_change_its_value(
    kinds: list[str], data: st.DataObject
) -> None:
    column, more = data.draw(columns(kinds)), data.draw(st.integers(0, 2))
    terms: TermDictionary = TermDictionary()
    ids = ids_of(column, terms)
    assume(len(ids))
    once, metadata = native_column(ids, terms)
    again = native_column(np.concatenate([ids[::-1]] * (more + 1)), terms)
    assert (again.metadata, again.values.type) == (metadata, once.type)
    backwards = [str(once[k]) for k in reversed(range(len(ids)))]
    assert [str(again.values[k]) for k in range(len(again.values))] == backwards * (more + 1)
    doubles, _ = native_column(ids, terms, exact=False)
    for ours, term in zip(doubles, column, strict=True):
        value = None if term is None else value_of(term)
        if pa.types.is_floating(doubles.type) and isinstance(value, int | Decimal | float):
            assert ours.as_py() == double(value) or math.isnan(value)


# -- Python values --------------------------------------------------------------------------------


@given(st.one_of(list(BY_KIND.values())))
def test_python_value_is_the_value_or_the_text(term: Term) -> None:
    value, theirs = python_value(term), value_of(term)
    row = Row({"x": 0}, (to_rdflib(term),), 0, 1)
    assert str(row.value("x")) == str(value)
    if isinstance(theirs, bool | int | Decimal | str):
        assert (value, type(value)) == (theirs, type(theirs))
    elif isinstance(theirs, float):
        assert type(value) is float
        assert value == theirs or math.isnan(theirs)
    elif isinstance(value, str):
        assert value == plain(term)
    else:
        assert equal(literal_of(xsd_value(value)), without_zone(term))


def xsd_value(value: Any) -> XsdValue:
    epoch = datetime(1970, 1, 1)
    if isinstance(value, timedelta):
        return DayTimeDuration(0, seconds(value))
    if isinstance(value, time):
        local = timedelta(
            hours=value.hour,
            minutes=value.minute,
            seconds=value.second,
            microseconds=value.microsecond,
        )
        return Time(seconds(local), offset_of(value))
    if isinstance(value, datetime):
        return DateTime(seconds(value.replace(tzinfo=None) - epoch), offset_of(value))
    return Date(seconds(datetime(value.year, value.month, value.day) - epoch), None)


def seconds(duration: timedelta) -> Decimal:
    return Decimal(duration // timedelta(microseconds=1)).scaleb(-6)


def offset_of(value: datetime | time) -> int | None:
    offset = value.utcoffset()
    return None if offset is None else offset // timedelta(minutes=1)


def without_zone(term: Term) -> Term:
    """Return the term that the Python value represents: a Python date has no time zone."""
    value = value_of(term)
    return literal_of(Date(value.local, None)) if isinstance(value, Date) else term


# -- results --------------------------------------------------------------------------------------

SECOND = 1000
START = 1_772_352_000_000
TEXT = """PREFIX : <http://e/>
SELECT ?x ?v ?w ?t FROM STREAM :s WINDOW RANGE 10 S FIXED
WHERE { ?x :v ?v ; :t ?t OPTIONAL { ?x :w ?w } } ORDER BY ?v"""
QUERY = streamsparql.compile(TEXT)


def quoted(text: object, kind: str) -> str:
    return f'"{text}"^^<{XSD}{kind}>'


def items(count: int = 6) -> list[Any]:
    made: list[Any] = []
    for k in range(count):
        node, t = f"<http://e/{k}>", START + k * SECOND
        made.append((node, "<http://e/v>", quoted(20 + k / 4, "decimal"), t))
        made.append(
            (node, "<http://e/t>", quoted(f"2026-03-01T09:00:0{k % 10}+01:00", "dateTime"), t)
        )
        if k % 2:
            made.append((node, "<http://e/w>", quoted(k, "integer"), t))
    return made


def instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def expected() -> list[dict[str, Any]]:
    at = {k: START + k * SECOND for k in range(6)}
    return [
        {
            "x": f"http://e/{k}",
            "v": Decimal(20) + Decimal(k) / 4,
            "w": k if k % 2 else None,
            "t": datetime(2026, 3, 1, 8, 0, k, tzinfo=UTC),
            "start": instant(at[k]),
            "end": instant(START + 10 * SECOND),
        }
        for k in range(6)
    ]


def test_rows_have_values_and_times() -> None:
    rows = list(QUERY.run(items()))
    shown = [
        {**{name: row.value(name) for name in row}, "start": row.start_time, "end": row.end_time}
        for row in rows
    ]
    assert shown == expected()
    assert rows[0].value("?v") == Decimal(20)
    (static,) = streamsparql.compile("SELECT ?o { ?s ?p ?o }").run(graph=[("<a>", "<p>", '"1"')])
    assert (static.start_time, static.end_time) == (instant(0), None)
    (asked,) = streamsparql.compile("ASK { ?s ?p ?o }").run(graph=[("<a>", "<p>", '"1"')])
    assert asked.value("answer") is True


def test_snapshots_and_reports_have_values() -> None:
    result = QUERY.run(items())
    assert [row.value("w") for row in result.snapshot(START + 3500)] == [None, 1, None, 3]
    report = next(result.report("rstream"))
    assert (report.time, report.instant) == (instant(START + 10 * SECOND), START + 10 * SECOND)
    assert [row.value("v") for row in report.rows] == [cell["v"] for cell in expected()]
    instant_, rows = report
    assert (instant_, rows[0]) == (report.instant, dict(report.rows[0]))


def test_arrow_table_of_native_values() -> None:
    table = QUERY.run(items()).to_arrow(values="native")
    assert table.to_pylist() == expected()
    assert list(map(str, table.schema.types)) == [
        "string",
        "decimal128(38, 2)",
        "int64",
        "timestamp[us, tz=UTC]",
        "timestamp[ms, tz=UTC]",
        "timestamp[ms, tz=UTC]",
    ]
    reports = QUERY.run(items()).to_arrow("rstream", values="native")
    assert reports.column_names == ["x", "v", "w", "t", "instant"]
    assert sorted(reports["v"].to_pylist()) == table["v"].to_pylist()
    live = QUERY.open()
    live.push_many("http://e/s", items())
    live.close()
    assert live.to_arrow(values="native").to_pylist() == expected()


def test_frame_of_pandas_has_native_values_by_default() -> None:
    pandas = pytest.importorskip("pandas")
    frame = QUERY.run(items()).to_pandas()
    assert (
        list(map(str, frame.dtypes))
        == [
            "object",
            "float64",
            "Int64",
            "datetime64[us, UTC]",
            "datetime64[ms, UTC]",
            "datetime64[ms, UTC]",
        ]
        or pandas.__version__ >= "3"
    )
    assert frame["v"].tolist() == [float(cell["v"]) for cell in expected()]
    assert frame["w"].sum() == 9
    assert frame["t"].dt.second.tolist() == [0, 1, 2, 3, 4, 5]
    assert (frame["end"] - frame["start"]).max() == timedelta(seconds=10)
    terms = QUERY.run(items()).to_pandas(values="terms")
    assert terms["v"][1] == quoted("20.25", "decimal")
    assert terms["start"][1] == START + SECOND
    assert QUERY.run(items()).to_pandas("rstream")["instant"].nunique() == 1
    live = QUERY.open()
    live.push_many("http://e/s", items())
    live.close()
    assert live.to_pandas().equals(frame)


def test_frame_of_polars_has_native_values_by_default() -> None:
    polars = pytest.importorskip("polars")
    frame = QUERY.run(items()).to_polars()
    assert list(frame.schema.values()) == [
        polars.String,
        polars.Float64,
        polars.Int64,
        polars.Datetime("us", "UTC"),
        polars.Datetime("ms", "UTC"),
        polars.Datetime("ms", "UTC"),
    ]
    rows = [{**cell, "v": float(cell["v"])} for cell in expected()]
    assert frame.to_dicts() == rows
    assert QUERY.run(items()).to_polars(values="terms")["v"][1] == quoted("20.25", "decimal")
    live = QUERY.open()
    live.push_many("http://e/s", items())
    live.close()
    assert live.to_polars().equals(frame)


def test_native_values_of_spark_are_those_of_the_embedded_engine() -> None:
    result = QUERY.run(items(), engine="spark", spark=Session())  # type: ignore[arg-type]
    assert result.to_arrow(values="native").to_pylist() == expected()
    assert result.to_pandas().equals(QUERY.run(items()).to_pandas())


def test_an_empty_result_has_its_columns() -> None:
    result = QUERY.run([])
    for table in (result.to_arrow(values="native"), result.to_pandas(), result.to_polars()):
        assert len(table) == 0
    assert result.to_arrow(values="native").column_names == ["x", "v", "w", "t", "start", "end"]
    assert list(result.to_pandas().columns) == ["x", "v", "w", "t", "start", "end"]


def test_other_forms_have_native_values() -> None:
    ask = streamsparql.compile(
        f"ASK {TEXT[TEXT.index('FROM') : TEXT.index('ORDER')]}".replace(
            "ASK", "PREFIX : <http://e/> ASK"
        )
    )
    assert ask.run(items()).to_arrow(values="native")["answer"].to_pylist() == [True, False]
    triples = streamsparql.compile("CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }").run(
        graph=[("<a>", "<p>", quoted(5, "integer"))]
    )
    assert triples.to_pandas().to_dict("records")[0] == {
        "subject": "a", "predicate": "p", "object": 5, "start": instant(0), "end": triples.to_pandas()["end"][0],
    }  # fmt: skip


# -- files ----------------------------------------------------------------------------------------


def test_json_lines_of_native_values() -> None:
    file = io.StringIO()
    assert QUERY.run(items()).write(file, "jsonl", values="native") == 6
    rows = [json.loads(line, parse_float=Decimal) for line in file.getvalue().splitlines()]
    assert rows[1] == {
        "x": "http://e/1",
        "v": Decimal("20.25"),
        "w": 1,
        "t": "2026-03-01T09:00:01+01:00",
        "start": "2026-03-01T08:00:01Z",
        "end": "2026-03-01T08:00:10Z",
    }
    assert "w" not in rows[0]


@given(st.lists(st.one_of(list(BY_KIND.values())), min_size=1, max_size=4))
def test_json_has_the_value_of_each_term(column: list[Term]) -> None:
    facts = [(IRI(f"urn:{k}"), IRI("urn:p"), term) for k, term in enumerate(column)]
    file = io.StringIO()
    streamsparql.compile("SELECT ?s ?o { ?s ?p ?o }").run(graph=facts).write(
        file, "jsonl", values="native"
    )
    for line in file.getvalue().splitlines():
        row = json.loads(line, parse_float=Decimal)
        term = column[int(row["s"].removeprefix("urn:"))]
        value = value_of(term)
        if isinstance(value, float):
            finite = math.isfinite(value)
            nearest = Single.nearest if isinstance(value, Single) else double
            assert nearest(row["o"]) == value if finite else isinstance(row["o"], str)
        elif isinstance(value, bool | int | Decimal):
            assert row["o"] == value
        elif not isinstance(term, BlankNode):
            assert row["o"] == plain(term)


def test_csv_of_native_values_has_plain_triples_and_times() -> None:
    file = io.StringIO()
    query = streamsparql.compile(
        "CONSTRUCT { ?s <http://e/p> ?o } FROM STREAM <http://e/s> WINDOW RANGE 10 S FIXED { ?s <http://e/v> ?o }"
    )
    query.run(items(2)).write(file, "csv", values="native")
    assert file.getvalue().splitlines()[:2] == [
        "subject,predicate,object,start,end",
        "http://e/0,http://e/p,20,2026-03-01T08:00:00Z,2026-03-01T08:00:10Z",
    ]
    formula = io.StringIO()
    facts = [("<a>", "<p>", '"=1+1"')]
    static = streamsparql.compile("CONSTRUCT WHERE { ?s ?p ?o }").run(graph=facts)
    static.write(formula, "csv", values="native", escape_formulas=True)
    assert ",'=1+1," in formula.getvalue()


def test_parquet_of_native_values(tmp_path: Path) -> None:
    result = QUERY.run(items())
    assert result.write(tmp_path / "rows.parquet", values="native") == 6
    assert parquet.read_table(tmp_path / "rows.parquet").to_pylist() == expected()
    result.write(tmp_path / "ms.parquet", values="native", timestamps="ms")
    assert parquet.read_schema(tmp_path / "ms.parquet").field("start").type == pa.int64()
    QUERY.run([]).write(tmp_path / "none.parquet", values="native")
    assert parquet.read_table(tmp_path / "none.parquet").num_rows == 0


def test_a_type_is_that_of_the_whole_column_of_a_file(tmp_path: Path) -> None:
    """Rows reach the file in several tables; the last value makes the column a decimal."""
    query = streamsparql.compile("SELECT ?v FROM STREAM <s> WINDOW RANGE 1 MS FIXED { ?x ?p ?v }")
    stream = [("<a>", "<p>", quoted(k, "integer"), k) for k in range(70_000)]
    stream.append(("<a>", "<p>", quoted("0.5", "decimal"), 70_000))
    query.run(stream).write(tmp_path / "v.parquet", values="native")
    column = parquet.read_table(tmp_path / "v.parquet")["v"]
    assert (str(column.type), column[0].as_py(), column[-1].as_py()) == (
        "decimal128(38, 1)",
        0,
        Decimal("0.5"),
    )


def test_unknown_values_and_formats_without_values_are_errors() -> None:
    result = QUERY.run(items())
    live = QUERY.open()
    for call in (
        result.to_arrow,
        result.to_pandas,
        result.to_polars,
        live.to_arrow,
        live.to_pandas,
        live.to_polars,
    ):
        with pytest.raises(EngineError, match="values must be native or terms, not 'python'"):
            call(values="python")  # type: ignore[operator]
    with pytest.raises(EngineError, match="values must be native or terms, not 'python'"):
        result.write(io.StringIO(), "csv", values="python")  # type: ignore[arg-type]
    for kind in ("table", "nq"):
        with pytest.raises(
            EngineError,
            match=f"values is an option of csv, jsonl and parquet, not of {kind}|nq needs",
        ):
            result.write(io.StringIO(), kind, values="native")


def test_a_missing_library_is_named_before_rows_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamsparql.values.frames.find_spec", lambda name: None)
    live = QUERY.open()
    live.push_many("http://e/s", items())
    live.close()
    for call, name in (
        (live.to_pandas, "pandas"),
        (live.to_polars, "polars"),
        (QUERY.run([]).to_polars, "polars"),
    ):
        with pytest.raises(
            EngineError, match=re.escape(f"to_{name} needs {name}: {install(name)}")
        ):
            call()
    assert len(live.rows()) == 6


def test_values_of_dates_and_zones() -> None:
    value = {
        kind: python_value(Literal(text, IRI(XSD + kind)))
        for kind, text in (
            ("date", "2026-03-01Z"),
            ("time", "24:00:00"),
            ("dateTime", "2026-03-01T24:00:00-08:00"),
            ("duration", "P1Y"),
            ("gYear", "2026"),
        )
    }
    west = timezone(timedelta(hours=-8))
    assert value["date"] == date(2026, 3, 1)
    assert value["time"] == time(0)
    assert value["dateTime"] == datetime(2026, 3, 2, tzinfo=west)
    assert (value["duration"], value["gYear"]) == ("P1Y", "2026")
