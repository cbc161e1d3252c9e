"""Sources give what is in them: every format, every form of term and of stamp, and bad input.

The law of all of them: items in = rows + dropped by predicate + rejects, whatever the input.
"""

from __future__ import annotations

import csv
import doctest
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as parquet
import pyoxigraph
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from streamsparql.algebra.terms import IRI, BlankNode, Literal
from streamsparql.errors import SourceError
from streamsparql.physical.batch import TRIPLE
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.terms import TermDictionary
from streamsparql.sources import Wanted, read_graph, read_stream
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.stamps import of_column, of_values, stamp_of

XSD = "http://www.w3.org/2001/XMLSchema#"
INTEGER, DATE_TIME = f"<{XSD}integer>", f"<{XSD}dateTime>"

ITEMS = [
    ("<http://ex.org/a>", "<http://ex.org/p>", '"x y  z"', 1_600_000_000_000),
    ("<http://ex.org/a>", "<http://ex.org/q>", f'"7"^^{INTEGER}', 1_600_000_000_001),
    ("_:b0", "<http://ex.org/p>", '"say \\"hi\\" . <a> "@en', 1_600_000_000_250),
    ("<http://ex.org/é>", "<http://ex.org/p>", '"a,b\\tc\\nd"', 1_600_000_060_000),
    ("<http://ex.org/a>", "<http://ex.org/p>", "_:b0", 1_600_000_060_000),
    ("<http://ex.org/a>", "<http://ex.org/q>", f'"1.5E0"^^<{XSD}double>', 1_700_000_000_000),
]
Item = tuple[str, str, str, int]


def iso(t: int) -> str:
    return (datetime(1970, 1, 1) + timedelta(milliseconds=t)).isoformat("T", "milliseconds") + "Z"


def read(source: Any, **options: Any) -> tuple[list[Item], list[Reject], list[Chunk]]:
    """All items of a stream, as texts, and the rejects; nothing may be lost on the way."""
    terms = TermDictionary()
    chunks = list(read_stream(source, "in", terms, **options))
    found: list[Item] = []
    for chunk in chunks:
        texts = (terms.texts(ids).to_pylist() for ids in (chunk.s, chunk.p, chunk.o))
        found += zip(*texts, chunk.end.tolist(), strict=True)
        assert chunk.items == len(chunk) + len(chunk.rejects) + chunk.dropped
        assert chunk.dropped == 0 or "wanted" in options
        assert chunk.kept is None or (np.diff(chunk.kept) > 0).all()
    return found, [reject for chunk in chunks for reject in chunk.rejects], chunks


def told(rejects: list[Reject]) -> list[tuple[int, str]]:
    return [(reject.position, reject.reason) for reject in rejects]


# -- Every format ---------------------------------------------------------------------------------


def as_quads(items: list[Item], stamp: Callable[[int], str], end: str = "\n") -> str:
    return "".join(f"{s} {p} {o} {stamp(t)} .{end}" for s, p, o, t in items)


def as_csv(items: list[Item], header: str = "subject,predicate,object,timestamp") -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header.split(","), *items])
    return out.getvalue()


def as_tsv(items: list[Item]) -> str:
    return "?s\t?p\t?o\t?t\n" + "".join("\t".join(map(str, item)) + "\n" for item in items)


def as_json(items: list[Item], stamp: Callable[[int], object] = int) -> str:
    keys = ("subject", "predicate", "object")
    rows = [
        {"id": 5, **dict(zip(keys, i[:3], strict=True)), "timestamp": stamp(i[3])} for i in items
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_trig(items: list[Item]) -> str:
    generated = "<http://www.w3.org/ns/prov#generatedAtTime>"
    return "".join(
        f"<http://ex.org/g{k}> {{ {s} {p} {o} }}\n"
        f'<http://ex.org/g{k}> {generated} "{iso(t)}"^^{DATE_TIME} .\n'
        for k, (s, p, o, t) in enumerate(items)
    )


def table(items: list[Item], names: str = "s p o t") -> pa.Table:
    columns = zip(*items, strict=True) if items else [[]] * 4
    return pa.table(dict(zip(names.split(), map(list, columns), strict=True)))


TEXTS = {
    "integers.nq": as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}'),
    "times.nq": as_quads(ITEMS, lambda t: f'"{iso(t)}"^^{DATE_TIME}'),
    "names.nq": as_quads(ITEMS, lambda t: f"<http://ex.org/t/{t}>"),
    "windows.nq": as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}', "\r\n"),
    "tabs.nq": as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}').replace("> <", ">\t \t<"),
    "tight.nq": as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}').replace(" .\n", ".# so\n"),
    "marked.nq": "\ufeff# items\n\n" + as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}'),
    "open.nq": as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}').rstrip("\n"),
    "long.csv": as_csv(ITEMS),
    "short.csv": as_csv(ITEMS, "S,P,O,T"),
    "windows.csv": as_csv(ITEMS).replace("\n", "\r\n"),
    "times.csv": as_csv([(*item[:3], iso(item[3])) for item in ITEMS]),
    "plain.tsv": as_tsv(ITEMS),
    "numbers.jsonl": as_json(ITEMS),
    "times.jsonl": as_json(ITEMS, iso),
    "blank.jsonl": as_json(ITEMS).replace("\n", "\r\n\n"),
    "graphs.trig": as_trig(ITEMS),
}


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_file_of_any_format_gives_its_items(name, packed, size, tmp_path):
    path = tmp_path / (name + packed)
    data = TEXTS[name].encode()
    path.write_bytes(
        gzip.compress(data)
        if packed == ".gz"
        else pa.compress(data, "zstd", asbytes=True)
        if packed
        else data
    )
    found, rejects, chunks = read(path, chunk=size)
    assert (found, rejects) == (ITEMS, [])
    assert max(map(len, chunks)) <= size
    assert read(str(path))[0] == ITEMS


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_parquet_gives_its_items_with_times_of_any_unit(unit, zone, tmp_path):
    whole = [(*item[:3], item[3] // 1000 * 1000) for item in ITEMS]
    scale = {"s": 1 / 1000, "ms": 1, "us": 1000, "ns": 1_000_000}[unit]
    stamps = pa.array([int(t * scale) for *_, t in whole]).cast(pa.timestamp(unit, zone))
    path = tmp_path / "x.parquet"
    parquet.write_table(table(whole).set_column(3, "timestamp", stamps), path)
    assert read(path)[:2] == (whole, [])
    assert read(path, chunk=2)[0] == whole
    with path.open("rb") as file:
        assert read(file)[0] == whole


@pytest.mark.parametrize(
    "make",
    [
        table,
        lambda items: table(items).to_batches()[0],
        lambda items: table(items).to_reader(),
        lambda items: table(items).to_pandas(),
        lambda items: polars.from_arrow(table(items)),
        lambda items: pandas.DataFrame(items, columns=list("spot")).astype({"p": "category"}),
    ],
)
def test_a_table_of_any_library_gives_its_items(make):
    assert read(make(ITEMS))[:2] == (ITEMS, [])
    assert read(make(ITEMS), chunk=2)[0] == ITEMS


def rdflib_term(text: str) -> Any:
    return rdflib.util.from_n3(text) if not text.startswith("_") else rdflib.BNode(text[2:])


OURS = [
    (IRI("http://ex.org/a"), IRI("http://ex.org/p"), Literal("x y")),
    (BlankNode("b0"), IRI("http://ex.org/p"), Literal("01", IRI(XSD + "integer"))),
]
THEIRS = [
    (rdflib.URIRef("http://ex.org/a"), rdflib.URIRef("http://ex.org/p"), rdflib.Literal("x y")),
    (
        rdflib.BNode("b0"),
        rdflib.URIRef("http://ex.org/p"),
        rdflib.Literal("01", datatype=XSD + "integer", normalize=False),
    ),
]
OXIGRAPHS = [
    (
        pyoxigraph.NamedNode("http://ex.org/a"),
        pyoxigraph.NamedNode("http://ex.org/p"),
        pyoxigraph.Literal("x y"),
    ),
    (
        pyoxigraph.BlankNode("b0"),
        pyoxigraph.NamedNode("http://ex.org/p"),
        pyoxigraph.Literal("01", datatype=pyoxigraph.NamedNode(XSD + "integer")),
    ),
]
WRITTEN = [tuple(map(str, triple)) for triple in OURS]


@pytest.mark.parametrize("triples", [OURS, THEIRS, OXIGRAPHS, WRITTEN, [OURS[0], THEIRS[1]]])
@pytest.mark.parametrize("kind", [list, iter, tuple])
@pytest.mark.parametrize(
    "form",
    [
        lambda s, p, o: (s, p, o, 5),
        lambda s, p, o: [s, p, o, 5],
        lambda s, p, o: ((s, p, o), 5),
        lambda s, p, o: ((s, p, o), 2, 5),
    ],
)
def test_items_in_memory_have_any_form_and_terms_of_any_library(triples, kind, form):
    found, rejects, chunks = read(kind([form(*triple) for triple in triples]))
    assert found == [(*triple, 5) for triple in WRITTEN]
    assert rejects == []
    begun = 2 if len(form(1, 2, 3)) == 3 else 5
    assert [t for chunk in chunks for t in chunk.start.tolist()] == [begun, begun]


def test_items_of_several_forms_stand_side_by_side():
    a, p, b = "<a>", "<p>", "<b>"
    items = [(a, p, b, 1), ((a, p, b), 2), ((a, p, b), 0, 3), "abcd", (a, p), 7, [a, p, b, 4]]
    found, rejects, (chunk,) = read(items)
    assert [t for *_, t in found] == [1, 2, 3, 4]
    assert chunk.start.tolist() == [1, 2, 0, 4]
    assert [(r.position, r.item) for r in rejects] == [(4, "abcd"), (5, (a, p)), (6, 7)]


def test_columns_of_any_kind_of_text_are_read(tmp_path):
    rows = table([("<a>", "<p>", '"l"', 5)] * 2)
    for kind in (pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()):
        columns = [rows[name].combine_chunks().cast(kind) for name in "spo"]
        assert read(pa.table([*columns, rows["t"]], list("spot")))[0] == rows_of(rows)
    wrong = pa.array([b"<a>", b"\xff", None])
    bad = pa.table({"s": wrong, "p": ["<p>"] * 3, "o": ["<b>"] * 3, "t": [1, 2, 3]})
    for source in (bad, bad.set_column(0, "s", wrong.dictionary_encode())):
        assert [r.position for r in read(source)[1]] == [2, 3]
    parquet.write_table(bad, tmp_path / "x.parquet")
    assert [r.position for r in read(tmp_path / "x.parquet")[1]] == [2, 3]
    categories = polars.from_arrow(rows).with_columns(polars.col("p").cast(polars.Categorical))
    assert read(categories)[0] == rows_of(rows)


def rows_of(rows: pa.Table) -> list[Item]:
    return [tuple(row.values()) for row in rows.to_pylist()]


def test_events_in_columns_have_a_start_and_an_end():
    events = pa.table({"s": ["<a>"] * 3, "p": ["<p>"] * 3, "o": ["<b>"] * 3})
    events = events.append_column("start", [[1, 5, 9]]).append_column("end", [[4, 5, 7]])
    _, rejects, (chunk,) = read(events)
    assert (chunk.start.tolist(), chunk.end.tolist()) == ([1, 5], [4, 5])
    assert told(rejects) == [(3, "the event ends before it starts")]


def test_standard_input_is_known_by_its_first_line(monkeypatch):
    for name in ("integers.nq", "long.csv", "plain.tsv", "numbers.jsonl"):
        raw = io.BytesIO(TEXTS[name].encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(raw)))
        assert read("-")[:2] == (ITEMS, [])
        assert read(io.StringIO(TEXTS[name]))[0] == ITEMS
        assert read(io.BytesIO(TEXTS[name].encode()))[0] == ITEMS


def test_a_pipe_is_read_as_it_comes():
    """What has been written is given before the other side has closed."""

    class Pipe(io.RawIOBase):
        parts = TEXTS["integers.nq"].encode().splitlines(keepends=True)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            part = self.parts.pop(0) if self.parts else b""
            buffer[: len(part)] = part
            return len(part)

    first = next(read_stream(Pipe(), "in", TermDictionary()))
    assert len(first) == 1
    assert len(Pipe.parts) == len(ITEMS) - 1


# -- What is wanted -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["integers.nq", "long.csv", "numbers.jsonl", "graphs.trig", ""])
def test_what_is_not_wanted_is_dropped_and_still_tells_the_time(name, tmp_path):
    (tmp_path / (name or "x")).write_text(TEXTS[name or "long.csv"], "utf-8")
    terms = TermDictionary()
    wanted = Wanted(frozenset([terms.id_of(IRI("http://ex.org/p"))]))
    source = tmp_path / name if name else ITEMS
    (chunk,) = read_stream(source, "in", terms, wanted=wanted)
    assert (len(chunk), chunk.dropped, chunk.items) == (4, 2, 6)
    assert (chunk.seen, chunk.least) == (ITEMS[-1][3], ITEMS[0][3])
    assert chunk.end.tolist() == [t for _, p, _, t in ITEMS if p.endswith("p>")]
    assert f'"7"^^{INTEGER}' not in terms.texts(chunk.o).to_pylist()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["<a>", "_:b", '"l"', "nonsense", None, ""]),
            st.sampled_from(["<p>", "<q>", "_:p", '"p"', None, "p"]),
            st.sampled_from(["<a>", "_:b", '"l"', "nonsense", None]),
            st.sampled_from([0, 5, -1, None, "x", "2020-01-01", float("nan"), 2**70, True, 1.5]),
        )
    ),
    st.integers(1, 9),
    st.booleans(),
)
def test_nothing_is_lost_in_silence(items, size, all_wanted):
    terms = TermDictionary()
    p = terms.id_of(IRI("p"))
    wanted = None if all_wanted else Wanted(frozenset([p]))
    rows = dropped = 0
    rejected = []
    for chunk in read_stream(items, "in", terms, wanted=wanted, chunk=size):
        rows, dropped = rows + len(chunk), dropped + chunk.dropped
        rejected += [r.position for r in chunk.rejects]
        assert all(r.item is items[r.position - 1] for r in chunk.rejects)
    assert rows + dropped + len(rejected) == len(items)
    timed = [
        k
        for k, item in enumerate(items, 1)
        if item[3] in (0, 5, "2020-01-01") and item[3] is not True
    ]
    timed = [k for k in timed if items[k - 1][3] is not False]
    good = [
        k
        for k in timed
        if items[k - 1][0] in ("<a>", "_:b")
        and items[k - 1][1] in ("<p>", "<q>")
        and items[k - 1][2] in ("<a>", "_:b", '"l"')
    ]
    unwanted = [k for k in timed if items[k - 1][1] == "<q>" and not all_wanted]
    assert dropped == len(unwanted)
    assert rows == len(set(good) - set(unwanted))
    assert rejected == sorted(set(range(1, len(items) + 1)) - set(good) - set(unwanted))


# -- Stamps ---------------------------------------------------------------------------------------

GOOD_STAMPS = [
    (0, 0),
    (np.int32(7), 7),
    (3.0, 3),
    (Decimal("3.0"), 3),
    ("12", 12),
    (" 12 ", 12),
    (f'"12"^^{INTEGER}', 12),
    (f'"12"^^<{XSD}unsignedLong>', 12),
    ("<http://ex.org/t/12>", 12),
    (datetime(1970, 1, 1, 0, 0, 1), 1000),
    (datetime(1970, 1, 1, 1, 0, 1, tzinfo=timezone(timedelta(hours=1))), 1000),
    (datetime(1970, 1, 1, 0, 0, 0, 1999, tzinfo=UTC), 1),
    (np.datetime64("1970-01-01T00:00:02"), 2000),
    ("1970-01-01", 0),
    ("1970-01-02 00:00:00.5Z", 86_400_500),
    ("1970-01-01T02:00:00+02:00", 0),
    (f'"1970-01-01T00:00:00.0019"^^{DATE_TIME}', 1),
    (f'"1970-01-01T24:00:00Z"^^{DATE_TIME}', 86_400_000),
    (f'"1970-01-01T00:00:01Z"^^<{XSD}dateTimeStamp>', 1000),
    (f'"12026-01-01T00:00:00Z"^^{DATE_TIME}', 317_336_745_600_000),
    (Literal("12", IRI(XSD + "integer")), 12),
    (rdflib.Literal(12), 12),
    (rdflib.Literal(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)), 1000),
    (pyoxigraph.Literal(12), 12),
]
BAD_STAMPS = [
    *(None, "", float("nan"), pandas.NaT, pandas.NA, np.datetime64("NaT"), float("inf"), 1.5),
    *(-1, "-1", True, False, 2**62, 2**70, "1e3", "0x1F", "1_000", "٣", "noon", "12:00"),
    *("2026-02-30", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-01-01T25:00:00Z"),
    *('"12"', '"x"@en', f'"2026-01-01"^^<{XSD}date>', f'"1.5"^^<{XSD}decimal>', "<http://ex.org/>"),
    *("<http://ex.org/t12>", f'"x"^^{INTEGER}', f'"300"^^<{XSD}byte>', b"12", object(), (1,)),
    *(Decimal("1.5"), IRI("http://ex.org/"), BlankNode("b"), rdflib.Literal("soon"), "\ud800"),
]


@pytest.mark.parametrize(("value", "stamp"), GOOD_STAMPS)
def test_a_stamp_has_many_forms(value, stamp):
    assert stamp_of(value) == stamp
    assert of_values([value, 3, value])[0].tolist() == [stamp, 3, stamp]
    assert of_values([value] * 3)[0].tolist() == [stamp] * 3


@pytest.mark.parametrize("value", BAD_STAMPS, ids=repr)
def test_what_is_no_stamp_is_rejected_with_a_reason(value):
    found, rejects, _ = read([("<a>", "<p>", "<b>", value), ("<a>", "<p>", "<b>", 3)])
    assert [t for *_, t in found] == [3]
    ((position, reason),) = told(rejects)
    assert position == 1
    assert "timestamp" in reason


def test_a_time_zone_may_put_a_stamp_before_time_starts():
    with pytest.raises(ValueError, match="before 1970"):
        stamp_of(pandas.Timestamp("1970-01-01T00:00:01", tz="Europe/London"))


TEXT_STAMPS = st.one_of(
    st.sampled_from([v for v, _ in GOOD_STAMPS if type(v) is str]),
    st.sampled_from([v for v in BAD_STAMPS if type(v) is str and v != "\ud800"]),
    st.integers(-5, 2**64).map(str),
    st.integers(0, 4 * 10**12).map(iso),
    st.integers(0, 4 * 10**12).map(lambda t: f'"{iso(t)}"^^{DATE_TIME}'),
    st.datetimes().map(datetime.isoformat),
    st.builds(
        lambda t, zone, end: f'"{iso(t)[:-1]}{zone}"^^<{XSD}{end}>',
        st.integers(-(10**8), 10**9),
        st.from_regex(r"([+-](0[0-9]|1[0-5]):[0-6][0-9]|Z|)", fullmatch=True),
        st.sampled_from(["dateTime", "dateTimeStamp"]),
    ),
    st.none(),
)


COLUMNS = st.one_of(
    st.lists(TEXT_STAMPS, min_size=1),
    *(
        st.lists(st.integers(-(10**8), 10**9).map(form), min_size=1)
        for form in (
            str,
            iso,
            lambda t: iso(t)[:-1],
            lambda t: f"{iso(t)[:-1]}+13:59",
            lambda t: f"{iso(t)[:-1]}-01:00",
            lambda t: f'"{iso(t)[:-1]}"^^<{XSD}dateTimeStamp>',
            lambda t: f"<http://ex.org/{t}>",
        )
    ),
)


def one_by_one(values: list[Any]) -> list[int]:
    return [of_values([value, None])[0].tolist()[0] for value in values]


@given(COLUMNS, st.sampled_from([pa.string(), pa.large_string()]))
def test_a_column_of_texts_is_read_as_each_of_them_would_be(values, kind):
    stamps, why = of_column(pa.array(values, kind))
    assert stamps.tolist() == one_by_one(values)
    assert sorted(why) == np.flatnonzero(stamps < 0).tolist()
    assert of_column(pa.array(values, kind).dictionary_encode())[0].tolist() == stamps.tolist()


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_a_column_of_numbers_is_read_as_each_of_them_would_be(values):
    for kind in (pa.int64(), pa.timestamp("ms"), pa.timestamp("ms", "Europe/Berlin")):
        stamps, why = of_column(pa.array(values, kind))
        assert sorted(why) == np.flatnonzero(stamps < 0).tolist()
        assert stamps.tolist() == one_by_one(values)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.sampled_from(["s", "us", "ns"]))
def test_times_of_any_unit_are_rounded_down(values, unit):
    stamps, why = of_column(pa.array(values, pa.timestamp(unit)))
    for k, value in enumerate(values):
        exact = -1 if value is None else value * {"s": 10**9, "us": 1000, "ns": 1}[unit] // 10**6
        fits = value is not None and value >= 0 and exact < 2**62
        assert stamps[k] == (exact if fits else -1)
        assert (k in why) != fits


@given(st.lists(st.none() | st.floats()))
def test_floats_are_stamps_where_they_are_whole(values):
    stamps, _ = of_column(pa.array(values, pa.float64()))
    assert stamps.tolist() == one_by_one(values)


# -- Bad files ------------------------------------------------------------------------------------


def lines(*texts: bytes) -> io.BytesIO:
    return io.BytesIO(b"\n".join(texts))


GOOD = b'<a> <p> "x y" <http://ex.org/t/5> .'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"rubbish", "this is no line of N-Quads"),
        (b"<a> <p> <b> .", "there is no timestamp"),
        (b'<a> <p> "x y" .', "timestamp"),
        (b"<a> <p> <b> <http://ex.org/g> .", "<http://ex.org/g> is no timestamp"),
        (b'<a> <p> <b> "5"^^<http://www.w3.org/2001/XMLSchema#int', "this is no line of N-Quads"),
        (b'"a" <p> <b> <http://ex.org/t/5> .', "the subject is a literal"),
        (b'<a> "p" <b> <http://ex.org/t/5> .', "the predicate is no IRI"),
        (b"<a> _:p <b> <http://ex.org/t/5> .", "the predicate is no IRI"),
        (b"<a> <p> b <http://ex.org/t/5> .", "the object is no RDF term"),
        (b'<a> <p> "\xe9" <http://ex.org/t/5> .', "the line is not UTF-8"),
    ],
)
@pytest.mark.parametrize("size", [1, 100])
def test_a_bad_line_of_quads_is_rejected_and_the_others_are_read(line, reason, size):
    found, rejects, _ = read(lines(GOOD, b"# comment", line, b"", GOOD), chunk=size)
    assert found == [("<a>", "<p>", '"x y"', 5)] * 2
    ((position, why),) = told(rejects)
    assert position == 3
    assert reason in why
    with pytest.raises(SourceError, match="in, 3: "):
        read(lines(GOOD, b"", line), strict=True)


ODD = [
    *(b"", b"x", b"# c", b"\t", b"<a> <p> . .", GOOD + b" # c", GOOD + b"\r", b" " + GOOD),
    *(GOOD.replace(b"> <", b">  <"), GOOD.replace(b'" <', b'"  <'), GOOD.replace(b" .", b"  .")),
    *(GOOD.replace(b"> <", b"><"), GOOD.replace(b'> "', b'>  "'), GOOD.replace(b"x y", b"x  \ty")),
]
NOTHING = (b"", b"# c", b"\t")


@given(st.lists(st.sampled_from([GOOD, GOOD, *ODD])), st.integers(1, 3))
def test_quads_are_read_the_same_in_any_cut(texts, size):
    whole = read(lines(b"# quads", *texts))
    cut = read(lines(b"# quads", *texts), chunk=size)
    assert cut[:2] == whole[:2]
    assert len(whole[0]) + len(whole[1]) == sum(text not in NOTHING for text in texts)
    assert len(whole[1]) == sum(text in (b"x", b"<a> <p> . .") for text in texts)


HEADER = b"s,p,o,t"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"<a>,<p>,<b>", "the header has 4 columns"),
        (b"<a>,<p>,<b>,5,6", "the header has 4 columns"),
        (b"<a>,<p>,<b>,", "there is no timestamp"),
        (b"<a>,<p>,<b>,soon", "soon is no timestamp"),
        (b"<a>,<p>,b,5", "the object is no RDF term"),
        (b'<a>,<p>,"b",5', "the object is no RDF term"),
        (b"<a>,<p>,\xe9,5", "the object is no RDF term"),
        (b",<p>,<b>,5", "the subject is no RDF term"),
    ],
)
@pytest.mark.parametrize("size", [1, 100])
def test_a_bad_row_of_csv_is_rejected_and_the_others_are_read(row, reason, size):
    good = b'<a>,<p>,"""x, y""",5'
    found, rejects, _ = read(lines(HEADER, good, b"", row, good), chunk=size)
    assert found == [("<a>", "<p>", '"x, y"', 5)] * 2
    ((position, why),) = told(rejects)
    assert position == 3
    assert reason in why


def test_positions_in_csv_are_rows():
    good = b"<a>,<p>,<b>,5"
    _, rejects, _ = read(lines(HEADER, good, b"x", good, b"", b"<a>,<p>,<b>,y", good, b"z"))
    assert [r.position for r in rejects] == [3, 5, 7]


def test_a_quote_that_is_never_closed_loses_nothing():
    found, rejects, _ = read(lines(HEADER, b"<a>,<p>,<b>,5", b'<a>,<p>,"b,6', b"<a>,<p>,<b>,7"))
    assert len(found) == 1
    assert [r.position for r in rejects] == [3]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"rubbish", "this is no JSON"),
        (b"[1]", "this is no JSON object"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>"', "this is no JSON"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>"}', "there is no timestamp"),
        (b'{"s": "<a>", "p": "<p>", "o": 5, "t": 5}', "the object is no RDF term"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>", "t": 5.5}', "5.5 is no timestamp"),
        (b'{"s": "<a>", "p": "<p>", "o": "\xe9", "t": 5}', "the line is not UTF-8"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>", "t": {"x": 1}}', "timestamp"),
    ],
)
def test_a_bad_line_of_json_is_rejected_and_the_others_are_read(line, reason):
    good = b'{"s": "<a>", "p": "<p>", "o": "<b>", "t": 5}'
    also = b'{"t": "5", "o": "<b>", "p": "<p>", "s": "<a>", "more": [1]}'
    found, rejects, _ = read(lines(good, b"", line, also))
    assert found == [("<a>", "<p>", "<b>", 5)] * 2
    ((position, why),) = told(rejects)
    assert position == 3
    assert reason in why


def test_graphs_without_a_stamp_and_statements_without_a_graph_are_rejected():
    at = "<http://www.w3.org/ns/prov#generatedAtTime>"
    text = f"""
        <http://g/1> {{ <http://a> <http://p> 1 . <http://g/1> {at} "1970-01-01T00:00:01Z"^^{DATE_TIME} }}
        <http://g/2> {{ <http://a> <http://p> 2 }}
        <http://a> <http://p> 3 .
        <http://g/3> {at} 7 .
        <http://g/3> {at} 8 .
        <http://g/3> {{ <http://a> <http://p> 4 }}
        <http://g/4> {at} "soon" .
    """
    found, rejects, _ = read(named(text, "x.trig"))
    assert [(o[:2], t) for _, _, o, t in found] == [('"1', 1000), ('"4', 7)]
    reasons = " ".join(why for _, why in told(rejects))
    assert len(rejects) == 4
    assert "<http://g/2> has no" in reasons
    assert "in no graph" in reasons
    assert "another timestamp already" in reasons
    assert '"soon"' in reasons


def named(text: str, name: str) -> io.BytesIO:
    file = io.BytesIO(text.encode())
    file.name = name
    return file


def test_a_bad_statement_of_trig_is_rejected_and_the_others_are_read():
    found, rejects, _ = read(named(TEXTS["graphs.trig"] + "\nrubbish .\n", "x.trig"))
    assert len(found) == len(ITEMS)
    assert "this is no statement" in rejects[0].reason


@pytest.mark.parametrize("packed", [".gz", ".zst"])
def test_a_file_that_is_cut_off_is_an_error_that_says_so(packed, tmp_path):
    data = TEXTS["integers.nq"].encode() * 2000
    whole = gzip.compress(data) if packed == ".gz" else pa.compress(data, "zstd", asbytes=True)
    path = tmp_path / f"x.nq{packed}"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"in, after line \d+: Truncated"):
        read(path)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.zip", b"", r"\.zip is no format of a stream"),
        ("x.ttl", b"", r"\.ttl is no format of a stream, whose items have timestamps"),
        ("x.csv", b"a,b\n1,2\n", "has the columns a, b: give subject"),
        ("x.csv", b"s,subject,p,o,t\n", "two columns for one"),
        ("x.csv", b"", "the first row names the columns"),
        ("x.jsonl", b'{"a": 1}\n', "has the columns a: give subject"),
        ("x.parquet", b"rubbish", "no Parquet file"),
        ("x.nq", "<a>".encode("utf-16"), "must be UTF-8"),
        ("x.csv", b"\xe9,p,o,t\n", "not UTF-8"),
    ],
)
def test_a_file_that_is_none_is_an_error(name, content, reason, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=reason):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("nowhere.nq", "No such file"),
        (Path(__file__).parent, "directory"),
        (7, "a int is no source"),
        ({"s": 1}, "a dict is no source"),
        (rdflib.Graph(), "an rdflib graph has no timestamps"),
        (pa.table({"s": [1], "p": ["<p>"], "o": ["<o>"], "t": [1]}), "holds int64, not terms"),
        (pa.table({"s": [["<a>"]], "p": ["<p>"], "o": ["<o>"], "t": [1]}), "holds list"),
        (pandas.DataFrame({"s": ["<a>", 5], "p": 1, "o": 1, "t": 1}), "cannot be read as Arrow"),
    ],
)
def test_what_is_no_source_is_an_error_that_says_what_is(source, reason):
    with pytest.raises(SourceError, match=reason):
        read(source)


def test_an_empty_source_has_no_items():
    for source in ([], iter(()), table([]), io.BytesIO(b"")):
        assert read(source)[:2] == ([], [])


def test_files_need_pyoxigraph_and_say_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    (tmp_path / "x.ttl").write_text("")
    with pytest.raises(SourceError, match=r"pip install streamsparql\[files\]"):
        read_graph(tmp_path / "x.ttl", "g", TermDictionary())
    (tmp_path / "x.nt").write_text("<a> <b> <c> .\n")
    assert len(read_graph(tmp_path / "x.nt", "g", TermDictionary())[0]) == 1


def test_blank_nodes_are_those_of_their_source():
    terms = TermDictionary()
    items = [("_:b", "<p>", "_:b", 1), ("_:b", "<p>", "<x>", 2)]
    (one,) = read_stream(items, "one", terms, scope="s0.")
    (two,) = read_stream(items, "two", terms, scope="s1.")
    assert one.s.tolist() == [one.o[0]] * 2
    assert set(one.s.tolist()).isdisjoint(two.s.tolist())


# -- Graphs ---------------------------------------------------------------------------------------

GRAPH = {
    "x.nt": '<http://a> <http://p> "x y" .\n_:b <http://p> <http://a>.\n# end\n',
    "x.ttl": '<http://a> <http://p> "x y" . _:b <http://p> <http://a> .',
    "x.nq": '<http://a> <http://p> "x y" .\n_:b <http://p> <http://a> .\n',
    "x.csv": 's,p,o\n<http://a>,<http://p>,"""x y"""\n_:b,<http://p>,<http://a>\n',
    "x.jsonl": '{"s": "<http://a>", "p": "<http://p>", "o": "\\"x y\\""}\n'
    '{"s": "_:b", "p": "<http://p>", "o": "<http://a>"}\n',
    "x.jsonld": '[{"@id": "http://a", "http://p": "x y"}, {"@id": "_:b", "http://p": {"@id": "http://a"}}]',
    "x.rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:h="http://">'
    '<rdf:Description rdf:about="http://a"><h:p>x y</h:p></rdf:Description>'
    '<rdf:Description rdf:nodeID="b"><h:p rdf:resource="http://a"/></rdf:Description></rdf:RDF>',
}


def triples(batch: Any, terms: TermDictionary) -> Iterator[tuple[str, ...]]:
    columns = (terms.texts(batch.columns[name]).to_pylist() for name in TRIPLE)
    return zip(*columns, strict=True)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", GRAPH)
def test_a_graph_of_any_format_gives_its_triples(name, packed, tmp_path):
    data = GRAPH[name].encode()
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(data) if packed else data)
    terms = TermDictionary()
    batch, rejects = read_graph(path, "g", terms)
    found = {tuple("_:" if t.startswith("_:") else t for t in row) for row in triples(batch, terms)}
    assert found == {("<http://a>", "<http://p>", '"x y"'), ("_:", "<http://p>", "<http://a>")}
    assert rejects == []
    assert set(batch.start) == {0}
    assert set(batch.end) == {INFINITY}


@pytest.mark.parametrize(
    "source",
    [
        rdflib.Graph().parse(data=GRAPH["x.nt"], format="nt"),
        WRITTEN * 2,
        iter(THEIRS),
        table([(*triple, 0) for triple in WRITTEN]),
        pandas.DataFrame(WRITTEN, columns=["subject", "predicate", "object"]),
    ],
    ids=lambda source: type(source).__name__,
)
def test_a_graph_in_memory_gives_each_triple_once(source):
    batch, rejects = read_graph(source, "g", TermDictionary())
    assert (len(batch), rejects) == (2, [])


def test_what_is_no_triple_of_a_graph_is_rejected():
    bad = [("<a>", "<p>"), '<a> <p> "x" .', ('"a"', "<p>", "<b>"), ("<a>", "_:p", "<b>"), 7]
    batch, rejects = read_graph([*WRITTEN, *bad], "g", TermDictionary())
    assert len(batch) == 2
    assert [r.position for r in rejects] == [3, 4, 5, 6, 7]
    with pytest.raises(SourceError, match="g, 1: this is no triple"):
        read_graph(bad, "g", TermDictionary(), strict=True)


def test_statements_of_named_graphs_are_no_part_of_a_graph(tmp_path):
    (tmp_path / "x.nq").write_text(GRAPH["x.nq"] + "<http://a> <http://p> <http://b> <http://g> .")
    batch, rejects = read_graph(tmp_path / "x.nq", "g", TermDictionary())
    assert len(batch) == 2
    assert "in a named graph" in rejects[0].reason
    assert read_graph(rdflib.Graph(), "g", TermDictionary())[1] == []


def test_the_page_about_sources_is_true() -> None:
    page = Path(__file__).parents[1] / "docs" / "sources.md"
    assert doctest.testfile(str(page), module_relative=False, encoding="utf-8") == (0, 7)
