"""The Spark engine over any cut of time, without Spark.

The engine's own code runs, on a `Session` that does what Spark promises in this process
(`support/spark_in_process.py`). Random queries over random streams, cut anywhere or divided by a
key, give the rows and reports that the embedded engine gives over the whole, row for row. Streams
come from memory, files and frames.

What this cannot see: Spark itself, and what Catalyst does to a caller's DataFrame
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
from support.spark_in_process import Session, cut_at
from support.spark_session import embedded, item_table, nquads, rows_of
from support.store_cases import ALL, random_data

import streamsparql
from streamsparql import Query
from streamsparql.algebra.partition import keys
from streamsparql.errors import EngineError
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput
from streamsparql.run.reports import Reporting, reporting
from streamsparql.spark import stream_inputs
from streamsparql.spark.cut import BOUND, Cut, CutOptions, TimeHistogram, cut
from streamsparql.spark.engine import SparkRun

STEADY = [family for family in FAMILIES if family != "volatile"]


class Way(NamedTuple):
    """A way to run a query on Spark."""

    places: tuple[float, ...] = ()
    """Where time is cut."""
    buckets: int = 0
    """Into how many the streams are divided by a key, if there is one."""
    sources: tuple[str, ...] = ("memory", "memory")
    """What the streams are."""
    report: tuple[str, int | None] | None = None
    max_delay: int = 0
    horizon: tuple[float, float] | None = None
    pieces: int = 1_024
    """How finely elements are counted."""
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
    """The streams as sources of these kinds."""
    kinds = dict(zip(over.streams, way.sources * 9, strict=False))
    found: dict[str, Any] = {}
    for k, (name, items) in enumerate(over.streams.items()):
        file = folder / f"{k}.parquet"
        match kinds[name]:
            case "memory":
                found[name] = items
            case "lines":
                found[name] = folder / f"{k}.nq"
                found[name].write_text(nquads(items))
            case "ordered" | "unordered":
                parquet.write_table(item_table(items), file, row_group_size=3)
                found[name] = file
            case kind:
                found[name] = FrameSource(session, items, kind == "sequenced")
    return found


class FrameSource:
    """Items that come as a DataFrame; `sequenced` where a column orders those of one instant."""

    def __init__(self, session: Session, items: Any, sequenced: bool) -> None:
        self.session, self.items, self.sequenced = session, items, sequenced

    def stream(self, name: str) -> stream_inputs.Frame:
        """What looking at it finds."""
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
        return stream_inputs.Frame(
            name, spread, int(least), int(most), frame, frame, self.sequenced  # type: ignore[arg-type]
        )  # fmt: skip


def _look(session: Any, name: str, source: Any, given: RunInput, plan: Any) -> stream_inputs.Stream:
    if isinstance(source, FrameSource):
        return source.stream(name)
    return stream_inputs.look(session, name, source, given, plan)


@contextmanager
def cut_small(way: Way) -> Iterator[None]:
    """Files are split small, and items come in small packs."""
    with ExitStack() as stack:
        stack.enter_context(cut_at(way.places, way.buckets))
        stack.enter_context(patch("streamsparql.spark.engine.look", _look))
        for name, value in [*SMALL.items(), ("PIECES", way.pieces)]:
            for module in _spark_modules():
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, value))
        yield


SMALL = {"SPLIT": 200, "SPLIT_ROWS": 4, "PACK": 5, "CHUNK": 4, "TOGETHER": 3}


def _spark_modules() -> list[Any]:
    """The modules of the engine: some of its bounds are imported by name."""
    return [m for name, m in sys.modules.items() if name.startswith("streamsparql.spark.")]


def ordered_for(way: Way, over: Data) -> Data:
    """The data as the engine is to see it: some sources have no disorder, or no order of ties."""
    over = disordered(over, way.max_delay, way.seed)
    found = {}
    for (name, items), kind in zip(over.streams.items(), way.sources * 9, strict=False):
        if kind in ("frame", "sequenced", "ordered"):
            items = sorted(items, key=lambda item: item[1])
        if kind == "frame":
            items = sorted(items, key=lambda item: (item[1], item[0]))
        found[name] = items
    return over._replace(streams=found)


def horizon(way: Way, over: Data) -> Mapping[str, int | None]:
    """Start and end of the horizon."""
    if way.horizon is None or not over.stamps:
        return {}
    low, high = over.stamps[0], over.stamps[-1] + 10
    start, end = (max(low + int((high - low) * share) - 3, 0) for share in way.horizon)
    return {"start": start, "end": max(end, start + 1)}


def check(text: str, over: Data, way: Way) -> None:
    """Spark's engine gives the rows of the embedded one."""
    query = streamsparql.compile(text)
    over = ordered_for(way, over.of(query))
    known = RunInput(*over, max_delay=way.max_delay, started=0, **horizon(way, over))
    report = None if way.report is None else reporting(query, *way.report)
    theirs = embedded(query, known, report)
    with tempfile.TemporaryDirectory() as folder, cut_small(way):
        ours = on_spark(query, known, over, way, report, Path(folder))
    less, more = _less(theirs, ours), _less(ours, theirs)
    assert ours == theirs, f"{way}\n{known}\n{text}\nmissing: {less}\nmore: {more}"


def _less(some: list[Any], others: list[Any]) -> list[Any]:
    rest = list(others)
    return [x for x in some if x not in rest or rest.remove(x)]  # type: ignore[func-returns-value]


def on_spark(
    query: Query, given: RunInput, over: Data, way: Way, report: Reporting | None, folder: Path
) -> list[Any]:
    session: Any = Session(way.seed)
    given = replace(given, streams=sources(over, way, folder, session))
    return rows_of(SparkRun(session, query, given, report=report).frame().toArrow())


# -- Everything anywhere ------------------------------------------------------------------------


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
    """The cases that a store answers: in 1, 3, 17 slabs and as the engine cuts, with reports."""
    query = streamsparql.compile(ALL[number].text)
    over = random_data(ALL[number], Random(number)).of(query, every_graph=False)
    given = RunInput(*over, started=0)
    kind, other = ("rstream", "istream", "dstream")[number % 3], ("istream", "dstream")[number % 2]
    reports = [None, reporting(query, kind, None), reporting(query, other, 4)]
    for report in reports:
        theirs = embedded(query, given, report)
        for slabs in (1, 3, 17, None):
            session: Any = Session(number)
            run = SparkRun(session, query, given, report=report, slabs=slabs)
            assert rows_of(run.frame().toArrow()) == theirs, (slabs, report)


# -- Cuts ---------------------------------------------------------------------------------------


def covers(made: Cut, begin: int, end: int) -> bool:
    """Whether the parts are all of the horizon's time, none of it twice."""
    edges = [(part.begin, part.end) for part in made.parts]
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
def test_parts_are_all_of_time_and_none_of_it_twice(
    stamps: list[int], rows: int, reach: int, slabs: int | None, period: int
) -> None:
    spread = TimeHistogram.of_samples([np.sort(np.array(stamps, np.int64))], [rows])
    begin = min(stamps)
    made = cut(spread, CutOptions(reach, (period, 0), (), begin, INFINITY, slabs, 2))
    assert covers(made, begin, INFINITY)
    if slabs is None and len(made.parts) > 1:
        borders = [part.begin for part in made.parts[1:]]
        assert spread.replication(borders, reach) <= BOUND


def test_a_burst_is_cut_further() -> None:
    day, second = (0, 86_399_999, 1_000_000), (40_000_000, 40_000_999, 50_000_000)
    spread = TimeHistogram.of_ranges([day, second])
    made = cut(spread, CutOptions(10, (60_000, 0), cores=2))
    assert covers(made, 0, INFINITY)
    inside = [part for part in made.parts if 40_000_000 <= part.begin < 40_001_000]
    assert len(inside) >= 3
    most = max(spread.between(part.begin, min(part.end, 10**8)) for part in made.parts)
    assert most <= 2.5 * spread.rows / len(made.parts)


def test_windows_that_reach_far_mean_fewer_slabs_or_a_key() -> None:
    spread = TimeHistogram.of_ranges([(0, 999_999, 8_000_000)])
    short, long_ = (cut(spread, CutOptions(reach, cores=2)) for reach in (1_000, 400_000))
    assert len(long_.parts) < len(short.parts)
    divided = cut(spread, CutOptions(900_000, None, ("x", "y"), cores=8))
    assert divided.key == "x"
    assert {part.bucket for part in divided.parts} == set(range(len(divided.parts)))
    assert any("?x" in reason for reason in divided.reasons)
    for cores in (1, 2, 8):
        made = cut(spread, CutOptions(INFINITY, cores=cores))
        assert len(made.parts) <= 2
        assert ("one task" in " ".join(made.reasons)) == (len(made.parts) == 1), made.reasons


def test_a_number_of_slabs_that_is_none_is_refused() -> None:
    with pytest.raises(EngineError, match="not into 0"):
        cut(TimeHistogram.of_ranges([(0, 9, 10)]), CutOptions(1, slabs=0))


@pytest.mark.parametrize("kind", KEYED)
def test_what_is_divided_by_a_key_gives_what_the_whole_gives(kind: str) -> None:
    timed = st.integers(0, 2**32).map(lambda seed: Writer(Random(seed)).fill(KEYED[kind]))

    @settings(max_examples=25)
    @given(timed.filter(lambda text: "ELEMS" not in text), dense, ways, st.integers(2, 6))
    def agrees(text: str, over: Data, way: Way, buckets: int) -> None:
        assert keys(streamsparql.compile(PREFIX + text).optimized)
        check(PREFIX + text, over, way._replace(buckets=buckets))

    agrees()


def test_a_key_divides_nothing_where_reports_end_with_what_others_do() -> None:
    """What stands for ever is reported until the last change, which another part may have."""
    text = PREFIX + "SELECT DISTINCT ?x FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x ?l ?y }"
    come = (("<http://e/b>", "<http://e/p>", '"1"'), 5)
    for static in ("<http://e/a>", "<http://e/c>"):
        over = Data({"http://e/s": [come]}, [(static, "<http://e/p>", '"1"')])
        for horizon in (None, (0.0, 2.0)):
            check(text, over, Way(buckets=2, report=("rstream", 3), horizon=horizon))
    query = streamsparql.compile(text)
    known = RunInput(over.streams, over.graph, started=0)
    divided = []
    for here in (known, replace(known, end=90), replace(known, graph=None)):
        with cut_at((), 2) as made:
            session: Any = Session()
            SparkRun(session, query, here, report=reporting(query, "rstream", 3))
        divided.append(made[0].key)
    assert divided == [None, "x", "x"]


# -- Many more ----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("family", STEADY)
def test_operators_over_many_cuts(family: str) -> None:
    @settings(max_examples=1_000)
    @given(of_family(family), st.one_of(dense, st.integers(0, 2**32).map(long_history)), ways)
    def agrees(text: str, over: Data, way: Way) -> None:
        check(text, over, way)

    agrees()
