"""The Spark engine over any cut of time, without Spark.

The engine's own code runs on a `Session` that does in this process what Spark guarantees
(`support/spark_in_process.py`). Random queries over random streams, cut anywhere or divided by a
key, return the rows and reports of the embedded engine, row for row. Streams are in memory, files
and frames.

Not covered here: Spark itself, and what Catalyst does with a caller's DataFrame
(`test_spark_engine.py`, `test_spark_sources.py`).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import Data, disordered
from support.families import FAMILIES, PREFIX, Writer, of_family
from support.generate import DIALECTS, EVERYTHING, queries
from support.histories import data, dense, long_history
from support.keyed_queries import KEYED
from support.schemas import entailing
from support.spark_in_process import Session, cut_at
from support.spark_session import embedded, item_table, nquads, rows_of
from support.store_cases import ALL, random_data

import streamsparql
from streamsparql import Query
from streamsparql.algebra.partition_keys import partition_keys
from streamsparql.errors import EngineError
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput
from streamsparql.run.reports import Reporting, reporting
from streamsparql.spark import stream_inputs
from streamsparql.spark.cut import MAX_REPLICATION, Cut, CutOptions, TimeHistogram, cut
from streamsparql.spark.engine import SparkRun

STEADY = [family for family in FAMILIES if family != "volatile"]


class Way(NamedTuple):
    """A way to run a query on Spark."""

    places: tuple[float, ...] = ()
    """The borders of slabs, as fractions of the streams' time."""
    buckets: int = 0
    """The number of buckets into which a key divides the streams, if there is a key."""
    sources: tuple[str, ...] = ("memory", "memory")
    """The kinds of the streams' sources."""
    report: tuple[str, int | None] | None = None
    max_delay: int = 0
    horizon: tuple[float, float] | None = None
    pieces: int = 1_024
    """The number of pieces of time in which elements are counted."""
    seed: int = 0


SOURCES = ["memory", "memory", "lines", "ordered", "unordered", "frame", "sequenced"]
places = st.lists(st.floats(0, 1), max_size=6).map(tuple)
ways: st.SearchStrategy[Way] = st.builds(
    Way,
    places=places,
    buckets=st.sampled_from([0, 0, 0, 2, 5]),
    sources=st.tuples(*[st.sampled_from(SOURCES)] * 2),
    report=st.one_of(
        st.none(),
        st.none(),
        st.tuples(
            st.sampled_from(["rstream", "istream", "dstream"]),
            st.sampled_from([None, 1, 3, 5, 40]),
        ),
    ),
    max_delay=st.sampled_from([0, 0, 2, 7]),
    horizon=st.one_of(st.none(), st.none(), st.tuples(st.floats(0, 0.9), st.floats(0.05, 1.2))),
    pieces=st.sampled_from([1, 3, 1_024]),
    seed=st.integers(0, 1_000_000),
)


# -- A run --------------------------------------------------------------------------------------


def sources(over: Data, way: Way, folder: Path, session: Session) -> dict[str, Any]:
    """Return the streams as sources of the way's kinds."""
    kinds = dict(zip(over.streams, way.sources * 9, strict=False))
    sources_by_name: dict[str, Any] = {}
    for k, (name, items) in enumerate(over.streams.items()):
        file = folder / f"{k}.parquet"
        match kinds[name]:
            case "memory":
                sources_by_name[name] = items
            case "lines":
                sources_by_name[name] = folder / f"{k}.nq"
                sources_by_name[name].write_text(nquads(items))
            case "ordered" | "unordered":
                parquet.write_table(item_table(items), file, row_group_size=3)
                sources_by_name[name] = file
            case kind:
                sources_by_name[name] = FrameSource(session, items, kind == "sequenced")
    return sources_by_name


class FrameSource:
    """Items as a DataFrame; if `sequenced`, a column orders those of one instant."""

    def __init__(self, session: Session, items: Any, sequenced: bool) -> None:
        self.session, self.items, self.sequenced = session, items, sequenced

    def stream(self, name: str) -> stream_inputs.FrameInput:
        """Return the stream, as a survey of the DataFrame would."""
        rows = item_table(self.items)
        kinds = "subject string, predicate string, object string"
        if self.sequenced:
            rows = rows.add_column(3, "sequence", pa.array(range(len(rows)), pa.int64()))
            kinds += ", sequence long"
        rows = self.session.shuffled(rows)
        frame = self.session.createDataFrame(rows, f"{kinds}, timestamp long")
        stamps = rows.column("timestamp").to_numpy()
        spread = TimeHistogram.of_samples([stamps], [len(stamps)])
        least, most = (stamps.min(), stamps.max()) if len(stamps) else (INFINITY, -1)
        return stream_inputs.FrameInput(
            name, spread, int(least), int(most), frame, frame, self.sequenced  # type: ignore[arg-type]
        )  # fmt: skip


def _look(
    session: Any, name: str, source: Any, run_input: RunInput, plan: Any, schema: Any
) -> stream_inputs.StreamInput:
    if isinstance(source, FrameSource):
        return source.stream(name)
    return stream_inputs.survey_stream(session, name, source, run_input, plan, schema)


@contextmanager
def cut_small(way: Way) -> Iterator[None]:
    """Cut time as the way says, split files into small splits, and pack few items at a time."""
    with ExitStack() as stack:
        stack.enter_context(cut_at(way.places, way.buckets))
        stack.enter_context(patch("streamsparql.spark.engine.survey_stream", _look))
        for name, value in [*SMALL.items(), ("PIECES", way.pieces)]:
            for module in _spark_modules():
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, value))
        yield


SMALL = {"SPLIT": 200, "SPLIT_ROWS": 4, "PACK": 5, "CHUNK_ITEMS": 4, "OUTPUT_ROWS": 3}


def _spark_modules() -> list[Any]:
    """Return the modules of the engine, in all of which a bound may be imported by name."""
    return [m for name, m in sys.modules.items() if name.startswith("streamsparql.spark.")]


def ordered_for(way: Way, over: Data) -> Data:
    """Return the data as the engine reads it: some sources have no disorder, or no order of ties.
    """  # fmt: skip
    over = disordered(over, way.max_delay, way.seed)
    streams = {}
    for (name, items), kind in zip(over.streams.items(), way.sources * 9, strict=False):
        if kind in ("frame", "sequenced", "ordered"):
            items = sorted(items, key=lambda item: item[1])
        if kind == "frame":
            items = sorted(items, key=lambda item: (item[1], item[0]))
        streams[name] = items
    return over._replace(streams=streams)


def horizon(way: Way, over: Data) -> Mapping[str, int | None]:
    """Return the start and the end of the horizon."""
    if way.horizon is None or not over.stamps:
        return {}
    low, high = over.stamps[0], over.stamps[-1] + 10
    start, end = (max(low + int((high - low) * share) - 3, 0) for share in way.horizon)
    return {"start": start, "end": max(end, start + 1)}


def check(text: str, over: Data, way: Way, entailment: str | None = None) -> None:
    """Check that Spark's engine returns the rows of the embedded one."""
    query = streamsparql.compile(text, entailment=entailment)
    over = ordered_for(way, over.of(query))
    run_input = RunInput(*over, max_delay=way.max_delay, started=0, **horizon(way, over))
    report = None if way.report is None else reporting(query, *way.report)
    theirs = embedded(query, run_input, report)
    with tempfile.TemporaryDirectory() as folder, cut_small(way):
        ours = on_spark(query, run_input, over, way, report, Path(folder))
    missing, unexpected = _difference(theirs, ours), _difference(ours, theirs)
    assert ours == theirs, (
        f"{way}\n{run_input}\n{text}\nmissing: {missing}\nunexpected: {unexpected}"
    )


def _difference(rows: list[Any], others: list[Any]) -> list[Any]:
    rest = list(others)
    return [x for x in rows if x not in rest or rest.remove(x)]  # type: ignore[func-returns-value]


def on_spark(
    query: Query, run_input: RunInput, over: Data, way: Way, report: Reporting | None, folder: Path
) -> list[Any]:
    session: Any = Session(way.seed)
    run_input = replace(run_input, streams=sources(over, way, folder, session))
    return rows_of(SparkRun(session, query, run_input, report=report).frame().toArrow())


# -- Random queries, random cuts ----------------------------------------------------------------


def _everything(dialect: str) -> st.SearchStrategy[str]:
    return queries(replace(EVERYTHING, dialect=dialect, volatile=False))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_query_over_any_cut(dialect: str) -> None:
    @settings(max_examples=40)
    @given(_everything(dialect), data, ways)
    def agrees(text: str, over: Data, way: Way) -> None:
        check(text, over, way)

    agrees()


@pytest.mark.parametrize("family", STEADY)
def test_operators_over_any_cut(family: str) -> None:
    @settings(max_examples=60)
    @given(of_family(family), dense, ways)
    def agrees(text: str, over: Data, way: Way) -> None:
        check(text, over, way)

    agrees()


@pytest.mark.parametrize("number", range(len(ALL)), ids=[case.name for case in ALL])
def test_each_case_over_any_number_of_slabs(number: int) -> None:
    """The cases with a store's answers: in 1, 3, 17 slabs and as the engine cuts, with reports."""
    query = streamsparql.compile(ALL[number].text)
    over = random_data(ALL[number], Random(number)).of(query, every_graph=False)
    run_input = RunInput(*over, started=0)
    kind, other = ("rstream", "istream", "dstream")[number % 3], ("istream", "dstream")[number % 2]
    reports = [None, reporting(query, kind, None), reporting(query, other, 4)]
    for report in reports:
        theirs = embedded(query, run_input, report)
        for slabs in (1, 3, 17, None):
            session: Any = Session(number)
            run = SparkRun(session, query, run_input, report=report, slabs=slabs)
            assert rows_of(run.frame().toArrow()) == theirs, (slabs, report)


# -- Cuts ---------------------------------------------------------------------------------------


def covers(result: Cut, begin: int, end: int) -> bool:
    """Return whether the parts cover the horizon without overlap."""
    edges = [(part.begin, part.end) for part in result.parts]
    return (edges[0][0], edges[-1][1]) == (begin, end) and all(
        a[0] < a[1] == b[0] for a, b in pairwise(edges)
    )


@settings(max_examples=200)
@given(
    st.lists(st.integers(0, 10_000), min_size=1, max_size=200),
    st.integers(1, 10**7),
    st.sampled_from([1, 10, 500, 20_000, INFINITY]),
    st.one_of(st.none(), st.integers(1, 40)),
    st.integers(1, 3_000),
)
def test_parts_cover_time_without_overlap(
    stamps: list[int], rows: int, reach: int, slabs: int | None, period: int
) -> None:
    histogram = TimeHistogram.of_samples([np.sort(np.array(stamps, np.int64))], [rows])
    begin = min(stamps)
    result = cut(histogram, CutOptions(reach, (period, 0), (), begin, INFINITY, slabs, 2))
    assert covers(result, begin, INFINITY)
    if slabs is None and len(result.parts) > 1:
        borders = [part.begin for part in result.parts[1:]]
        assert histogram.replication(borders, reach) <= MAX_REPLICATION


def test_a_burst_is_cut_further() -> None:
    day, second = (0, 86_399_999, 1_000_000), (40_000_000, 40_000_999, 50_000_000)
    histogram = TimeHistogram.of_ranges([day, second])
    result = cut(histogram, CutOptions(10, (60_000, 0), cores=2))
    assert covers(result, 0, INFINITY)
    inside = [part for part in result.parts if 40_000_000 <= part.begin < 40_001_000]
    assert len(inside) >= 3
    most = max(histogram.between(part.begin, min(part.end, 10**8)) for part in result.parts)
    assert most <= 2.5 * histogram.rows / len(result.parts)


def test_long_windows_mean_fewer_slabs_or_a_key() -> None:
    histogram = TimeHistogram.of_ranges([(0, 999_999, 8_000_000)])
    short, long_ = (cut(histogram, CutOptions(reach, cores=2)) for reach in (1_000, 400_000))
    assert len(long_.parts) < len(short.parts)
    divided = cut(histogram, CutOptions(900_000, None, ("x", "y"), cores=8))
    assert divided.key == "x"
    assert {part.bucket for part in divided.parts} == set(range(len(divided.parts)))
    assert any("?x" in reason for reason in divided.reasons)
    for cores in (1, 2, 8):
        result = cut(histogram, CutOptions(INFINITY, cores=cores))
        assert len(result.parts) <= 2
        assert ("one task" in " ".join(result.reasons)) == (len(result.parts) == 1), result.reasons


def test_zero_slabs_are_an_error() -> None:
    with pytest.raises(EngineError, match="positive number, not 0"):
        cut(TimeHistogram.of_ranges([(0, 9, 10)]), CutOptions(1, slabs=0))


@pytest.mark.parametrize("kind", KEYED)
def test_streams_divided_by_a_key_yield_the_rows_of_the_whole(kind: str) -> None:
    timed = st.integers(0, 2**32).map(lambda seed: Writer(Random(seed)).fill(KEYED[kind]))

    @settings(max_examples=25)
    @given(timed.filter(lambda text: "ELEMS" not in text), dense, ways, st.integers(2, 6))
    def agrees(text: str, over: Data, way: Way, buckets: int) -> None:
        assert partition_keys(streamsparql.compile(PREFIX + text).optimized)
        check(PREFIX + text, over, way._replace(buckets=buckets))

    agrees()


def test_a_key_is_not_used_where_reports_depend_on_other_parts() -> None:
    """Rows that always hold are reported until the last change, which may be in another part."""
    text = PREFIX + "SELECT DISTINCT ?x FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x ?l ?y }"
    item = (("<http://e/b>", "<http://e/p>", '"1"'), 5)
    for static in ("<http://e/a>", "<http://e/c>"):
        over = Data({"http://e/s": [item]}, [(static, "<http://e/p>", '"1"')])
        for horizon in (None, (0.0, 2.0)):
            check(text, over, Way(buckets=2, report=("rstream", 3), horizon=horizon))
    query = streamsparql.compile(text)
    endless = RunInput(over.streams, over.graph, started=0)
    used_keys = []
    for run_input in (endless, replace(endless, end=90), replace(endless, graph=None)):
        with cut_at((), 2) as cuts:
            session: Any = Session()
            SparkRun(session, query, run_input, report=reporting(query, "rstream", 3))
        used_keys.append(cuts[0].key)
    assert used_keys == [None, "x", "x"]


# -- Entailment ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_entailed_triples_over_any_cut(dialect: str) -> None:
    features = replace(EVERYTHING, dialect=dialect, volatile=False, entailment=True)

    @settings(max_examples=25)
    @given(queries(features), entailing, ways)
    def agrees(text: str, over: Data, way: Way) -> None:
        check(text, over, way, "rdfs")

    agrees()


ENTAILED_KEYS = {
    "subjects": "SELECT * <stream>{ ?x a :a . ?x :q ?z }",
    "both ends": "SELECT ?x (COUNT(*) AS ?c) <stream>{ ?x a :b } GROUP BY ?x",
    "objects": "SELECT * <stream>{ ?y :p ?x OPTIONAL { ?z :q ?x } }",
    "classes": "SELECT * <stream>{ ?y a ?x MINUS { ?x :q ?z } }",
}


@pytest.mark.parametrize("kind", ENTAILED_KEYS)
def test_entailed_triples_of_a_key_yield_the_rows_of_the_whole(kind: str) -> None:
    timed = st.integers(0, 2**32).map(lambda seed: Writer(Random(seed)).fill(ENTAILED_KEYS[kind]))
    divided: list[bool] = []

    @settings(max_examples=25)
    @given(timed.filter(lambda text: "ELEMS" not in text), entailing, ways, st.integers(2, 6))
    def agrees(text: str, over: Data, way: Way, buckets: int) -> None:
        with cut_at((), buckets) as cuts:
            run_input = RunInput(*over.of(streamsparql.compile(PREFIX + text)), started=0)
            query = streamsparql.compile(PREFIX + text, entailment="rdfs")
            SparkRun(Session(), query, run_input)  # type: ignore[arg-type]
        divided.extend(cut.key is not None for cut in cuts)
        check(PREFIX + text, over, way._replace(buckets=buckets), "rdfs")

    agrees()
    assert any(divided) or kind == "classes", "the terms of items determine the key"


# -- Many more examples -------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("family", STEADY)
def test_operators_over_many_cuts(family: str) -> None:
    @settings(max_examples=1_000)
    @given(of_family(family), st.one_of(dense, st.integers(0, 2**32).map(long_history)), ways)
    def agrees(text: str, over: Data, way: Way) -> None:
        check(text, over, way)

    agrees()
