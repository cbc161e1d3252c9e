"""Event queries on Spark return the detections of the embedded engine.

Random trees of all event operators, and random CONSTRUCT rules, run over random slabs of time, or
are divided by a key, on the substitute for Spark that runs in this process
(`support/spark_in_process.py`). Items are points and longer events, in memory, files and frames. A
few queries run on Spark.

Not covered here: whether the embedded engine is right (`tests/run/test_engine_events.py`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv
from support.events import PREFIX, EventWriter, RecursiveWriter, RuleWriter, random_events
from support.spark_in_process import Session
from support.spark_session import embedded, rows_of
from test_spark_slabs import FrameSource, Way, cut_small

import streamsparql
from streamsparql.algebra.event_reach import event_reach
from streamsparql.algebra.partition_keys import partition_keys
from streamsparql.errors import UnsupportedFeature
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput, input_of
from streamsparql.run.reports import reporting
from streamsparql.spark import stream_inputs
from streamsparql.spark.cut import TimeHistogram
from streamsparql.spark.engine import SparkRun
from streamsparql.spark.evidence import evidence_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

Item = tuple[tuple[str, str, str], int, int]
NAMES = ("subject", "predicate", "object", "start", "end")


def event_table(items: list[Item]) -> pa.Table:
    """Return items as a table, by their ends."""
    rows = [(*triple, start, end) for triple, start, end in items]
    columns = zip(*rows, strict=True) if rows else [()] * 5
    kinds = [pa.string()] * 3 + [pa.int64()] * 2
    return pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], NAMES)


class EventFrame(FrameSource):
    """Occurrences as a DataFrame."""

    def stream(self, name: str) -> stream_inputs.FrameInput:
        """Return the stream, as a survey of the DataFrame would."""
        rows = self.session.shuffled(
            event_table(self.items).rename_columns([*NAMES[:4], "timestamp"])
        )
        kinds = "subject string, predicate string, object string, start long, timestamp long"
        frame = self.session.createDataFrame(rows, kinds)
        stamps = rows.column("timestamp").to_numpy()
        spread = TimeHistogram.of_samples([stamps], [len(stamps)])
        least, most = (stamps.min(), stamps.max()) if len(stamps) else (INFINITY, -1)
        return stream_inputs.FrameInput(
            name, spread, int(least), int(most), frame, frame, False  # type: ignore[arg-type]
        )  # fmt: skip


KINDS = ["memory", "memory", "frame", "ordered", "csv"]


def source(kind: str, items: list[Item], place: Path, session: Any) -> Any:
    """Return items as a source of a kind."""
    match kind:
        case "memory":
            return items
        case "frame":
            return EventFrame(session, items, False)
        case "ordered":
            parquet.write_table(event_table(items), place.with_suffix(".parquet"), row_group_size=3)
            return place.with_suffix(".parquet")
    csv.write_csv(event_table(items), place.with_suffix(".csv"))
    return place.with_suffix(".csv")


# -- random queries, random slabs ---------------------------------------------------------------

SEEDS = st.integers(0, 2**32).map(Random)


def check_many(examples: int, check: Callable[[Random], None]) -> None:
    """Check random cases."""

    @settings(max_examples=examples)
    @given(SEEDS)
    def holds(random: Random) -> None:
        check(random)

    holds()


def bounded(where: str, random: Random) -> str:
    """Return a pattern, most often with a bound."""
    if random.random() < 0.3:
        return where
    bound = random.choice([2, 3, 6])
    return f'{{ {where} FILTER(getDURATION() < "PT0.00{bound}S"^^xsd:duration) }}'


def with_bounds(writer: EventWriter, random: Random) -> EventWriter:
    """Return a writer whose patterns have a bound, most often."""
    where = writer.where
    writer.where = lambda depth=3: bounded(where(depth), random)  # type: ignore[method-assign]
    return writer


def check_events(random: Random) -> None:
    writer = with_bounds(EventWriter(random), random)
    if random.random() < 0.3:
        where = bounded(random.choice([writer.absence(), writer.pair("OPTIONALSEQ")]), random)
        text = f"SELECT * FROM STREAM :s FROM NAMED STREAM :g {where}"
    else:
        text = writer.query().replace("RAND() < 0.5", "1")
    compared(text, [], random)


def check_keyed(random: Random) -> None:
    """Check queries whose patterns share a variable."""
    writer = EventWriter(random)
    writer.leaf = lambda: f"?x {random.choice([':p', ':q'])} {random.choice(['?y', '?z'])} . "  # type: ignore[method-assign]
    compared(f"SELECT * FROM STREAM :s FROM NAMED STREAM :g {writer.where()}", [], random, 3)


def check_rules(random: Random) -> None:
    kind = random.choice([RuleWriter, RuleWriter, RecursiveWriter])
    writer = with_bounds(kind(random), random)
    rules = [writer.rule() for _ in range(random.randint(1, 3))]
    where = bounded(random.choice(["{ ?x :r ?y }", "{ ?x ?l ?y }", writer.where(1)]), random)
    compared(f"SELECT * FROM STREAM :s FROM NAMED STREAM :g {where}", rules, random)


def compared(text: str, rules: list[str], random: Random, buckets: int = 0) -> None:
    """Compare the rows of a query on the substitute with those of the embedded engine."""
    try:
        query = streamsparql.compile(
            PREFIX + text,
            "epsparql",
            rules=[PREFIX + rule for rule in rules],
            optimize=random.random() < 0.8,
        )
    except UnsupportedFeature as error:
        assert "would depend on itself" in str(error)
        return
    data = random_events(random, random.choice([5, 14, 25]), random.choice([5, 12, 30]))
    streams = {
        name: sorted(
            (
                (tuple(f"<{word}>" for word in text.split()), start, end)
                for text, start, end in items
            ),
            key=lambda item: item[2],
        )
        for name, items in data.streams.items()
        if name in query.streams
    }
    static = [tuple(f"<{word}>" for word in text.split()) for text in data.static]
    way = Way(
        tuple(random.random() for _ in range(random.choice([1, 2, 5]))),
        random.choice([0, buckets]),
        seed=random.randrange(10**6),
    )
    times = {}
    if random.random() < 0.2:
        times = {"start": random.randint(0, 9), "end": random.choice([None, 11, 20])}
    report = None
    if random.random() < 0.2:
        kind = random.choice(["rstream", "istream", "dstream"])
        report = reporting(query, kind, random.choice([None, 1, 3, 7]))
    run_input = RunInput(streams, static, started=0, **times)
    expected = embedded(query, run_input, report)
    session: Any = Session(way.seed)
    kinds = {name: random.choice(KINDS) for name in streams}
    with tempfile.TemporaryDirectory() as folder, cut_small(way):
        sources = {
            name: source(kinds[name], items, Path(folder) / str(k), session)
            for k, (name, items) in enumerate(streams.items())
        }
        run = SparkRun(session, query, RunInput(sources, static, started=0, **times), report=report)
        rows = rows_of(run.frame().toArrow())
    described = "\n".join([text, *rules, str(streams), str(static), str(way), str(kinds)])
    missing = [row for row in expected if row not in rows]
    extra = [row for row in rows if row not in expected]
    assert rows == expected, (
        f"missing {missing}, extra {extra}\n{described}\n{times} {report} {run.cut}"
    )


def test_any_event_query_over_any_slabs() -> None:
    check_many(150, check_events)


def test_any_event_query_divided_by_a_key() -> None:
    check_many(40, check_keyed)


def test_any_rules_over_any_slabs() -> None:
    check_many(80, check_rules)


@pytest.mark.long
def test_many_event_queries_over_any_slabs() -> None:
    check_many(8_000, check_events)
    check_many(2_000, check_keyed)
    check_many(4_000, check_rules)
