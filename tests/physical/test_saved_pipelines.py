"""Pipelines of random queries whose state is saved in the middle of a run and restored.

The plan is lowered again over a dictionary with only the terms in use, as in a new process. Rows,
watermark, sizes, contents and counts of the remaining steps are compared with a run without
interruption.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import Data
from support.events import PREFIX as EVENTS_PREFIX
from support.events import SOURCES, EventWriter, random_events
from support.families import FAMILIES, of_family
from support.generate import DIALECTS, EVERYTHING, PREFIX, queries
from support.histories import dense, short_histories
from support.restored import Observation, observe, restored_dictionary, through_ipc, undeclared

import streamsparql
from streamsparql.algebra.functions import Run
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import IRI
from streamsparql.errors import EngineError
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import since_of
from streamsparql.physical.lowering.lower import Catalog, lower
from streamsparql.physical.operators.access import Always, StreamAccess
from streamsparql.physical.operators.event import EventLeftJoin
from streamsparql.physical.operators.event_sets import Detect
from streamsparql.physical.operators.report import Clip, Reports, TemporalCoalesce
from streamsparql.physical.pipeline import Pipeline
from streamsparql.physical.state.parts import Tables


class Way(NamedTuple):
    """A way to run a query, and the step after which the run is saved."""

    report: str | None = None
    every: int | None = None
    eager: bool = False
    optimize: bool = True
    recycle: bool = False
    seed: int = 0
    """The seed for the cuts of items into steps."""
    at: int = 1
    """The step after which the run is saved."""


ways = st.builds(
    Way,
    report=st.sampled_from([None, None, None, "rstream", "istream", "dstream"]),
    every=st.sampled_from([None, 3]),
    eager=st.booleans(),
    optimize=st.booleans(),
    recycle=st.booleans(),
    seed=st.integers(0, 1_000_000),
    at=st.integers(0, 6),
)


class Full(TermDictionary):
    """A dictionary that is always due for recycling."""

    def due(self) -> bool:
        return True


class OpenQuery:
    """A query over static data, whose streams arrive step by step."""

    def __init__(
        self, query: streamsparql.Query, data: Data, way: Way, terms: TermDictionary
    ) -> None:
        self.query, self.data, self.way, self.terms = query, data, way, terms
        named = {IRI(name): self._static(graph, name) for name, graph in data.graphs.items()}
        catalog = Catalog(self._static(data.graph, "d"), named)
        plan = query.optimized if way.optimize else query.logical
        rows = lower(plan, terms, Run(), catalog).plain
        self.clip = Clip(rows, None, INFINITY)
        self.reports = None
        if way.report is not None:
            self.reports = Reports(
                self.clip,
                way.report,
                way.every,
                events=SINCE in rows.names,  # type: ignore[arg-type]
            )
        self.pipeline = Pipeline(self.reports or TemporalCoalesce(self.clip, way.eager), terms)

    def _static(self, triples: object, scope: str) -> Batch:
        batch = self._batch(list(triples), scope)  # type: ignore[call-overload]
        for ids in batch.columns.values():
            self.terms.keep(ids)
        return Always.of(dict(batch.columns), len(batch)).rows

    def _batch(self, triples: list[tuple[str, str, str]], scope: str) -> Batch:
        places = zip(*triples, strict=True) if triples else ((), (), ())
        ids = [self.terms.encode(list(texts), f"{scope}.") for texts in places]
        return Always.of(dict(zip(TRIPLE, ids, strict=True)), len(triples)).rows

    def step(self, items: Mapping[str, list], watermark: int, cut: bool) -> Observation:
        """Pass items to the pipeline; return the observable effects."""
        first = min((t for _, t in self._items()), default=0)
        if self.clip.begin is None and watermark >= first:
            self.clip.begin = first
            for operator in self.pipeline.operators:
                if isinstance(operator, Detect | EventLeftJoin):
                    operator.begin = first
        if self.reports is not None:
            self.reports.begin = self.clip.begin
            self.reports.clock = watermark
        batches = {name: self._stamped(name, new) for name, new in items.items() if new}
        marks = dict.fromkeys(self.data.streams, watermark)
        rows, known = self.pipeline.step(batches, marks, cut)
        if self.reports is not None and cut:
            known += sum(self.reports.done())
        observation = observe(rows, known, self.pipeline.operators, self.terms)
        if self.way.recycle:
            self.pipeline.recycle(rows.columns.values())
        return observation

    def _items(self) -> Iterator[tuple]:
        return (item for items in self.data.streams.values() for item in items)

    def _stamped(self, name: str, items: list) -> Batch:
        batch = self._batch([triple for triple, _ in items], name)
        lengths = [sum(map(ord, "".join(triple))) * t % 4 for triple, t in items]
        for at, (_, t) in enumerate(items):
            batch.start[at], batch.end[at] = t, t + 1
        for operator in self.pipeline.operators:
            if isinstance(operator, StreamAccess) and operator.stream == name and operator.stamp:
                stamps = self.terms.of_integers(batch.start)
                if operator.stamp == SINCE:
                    stamps = since_of(np.maximum(batch.start - np.array(lengths, np.int64), 0))
                batch = batch.with_columns({operator.stamp: stamps})
        return batch

    def restored(self) -> OpenQuery:
        """Open the query again over a new dictionary, with the saved state of this run."""
        tables = through_ipc(self.pipeline.save())
        terms = restored_dictionary(self.terms, list(self.pipeline.retained_ids()))
        restored = OpenQuery(self.query, self.data, self.way, terms)
        restored.pipeline.load(tables)
        return restored


def steps(data: Data, seed: int) -> Iterator[tuple[dict[str, list], int, bool]]:
    """Yield the items of all streams by time, in random steps with random watermarks."""
    random = Random(seed)
    waiting = sorted(
        ((t, name, (triple, t)) for name, items in data.streams.items() for triple, t in items),
        key=lambda entry: entry[:2],
    )
    watermark = 0
    while waiting:
        size = random.choice([1, 1, 2, 5, 20])
        now, waiting = waiting[:size], waiting[size:]
        by_stream: dict[str, list] = {}
        for _, name, item in now:
            by_stream.setdefault(name, []).append(item)
        following = waiting[0][0] if waiting else now[-1][0] + 20
        watermark = max(watermark, following - random.choice([0, 0, 1, 4]))
        yield by_stream, watermark, random.random() < 0.3
    yield {}, INFINITY, False


def check(text: str, data: Data, way: Way, dialect: str = "auto") -> None:
    query = streamsparql.compile(text, dialect, optimize=way.optimize)
    data = data.of(query)
    kind = Full if way.recycle else TermDictionary
    undisturbed, interrupted = (OpenQuery(query, data, way, kind()) for _ in range(2))
    values: dict[str, str] = {}
    for number, step in enumerate(steps(data, way.seed)):
        assert interrupted.step(*step) == undisturbed.step(*step), f"step {number} of {way}\n{text}"
        for operator in undisturbed.pipeline.operators:
            for path, value in undeclared(operator, f"{type(operator).__name__} {id(operator)}"):
                assert values.setdefault(path, value) == value, f"{path} is undeclared state"
        if number == way.at:
            interrupted = interrupted.restored()
            pairs = zip(undisturbed.pipeline.operators, interrupted.pipeline.operators, strict=True)
            for one, other in pairs:
                assert vars(undisturbed.pipeline.counts[one]) == vars(
                    interrupted.pipeline.counts[other]
                )
            assert interrupted.pipeline.watermark == undisturbed.pipeline.watermark


@pytest.mark.parametrize("family", FAMILIES)
def test_a_restored_run_equals_an_undisturbed_one(family: str) -> None:
    @settings(max_examples=12)
    @given(of_family(family), dense, ways)
    def test(text: str, data: Data, way: Way) -> None:
        check(text, data, way)

    test()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_restored_run_of_any_query_equals_an_undisturbed_one(dialect: str) -> None:
    @settings(max_examples=12)
    @given(queries(replace(EVERYTHING, dialect=dialect)), short_histories(), ways)
    def test(text: str, data: Data, way: Way) -> None:
        check(text, data, way)

    test()


def check_events(random: Random, way: Way) -> None:
    writer = EventWriter(random)
    pattern = writer.absence() if writer.chance(40) else writer.where(2)
    text = writer.query() if writer.chance(40) else f"SELECT * {SOURCES}{pattern}"
    events = random_events(random)
    streams = {
        name: [(tuple(f"<{word}>" for word in text.split()), end) for text, _, end in items]
        for name, items in events.streams.items()
    }
    static = [tuple(f"<{word}>" for word in text.split()) for text in events.static]
    check(EVENTS_PREFIX + text, Data(streams, static, {}), way, "epsparql")


def test_a_restored_run_over_events_equals_an_undisturbed_one() -> None:
    @settings(max_examples=60)
    @given(st.integers(0, 2**32).map(Random), ways)
    def test(random: Random, way: Way) -> None:
        check_events(random, way)

    test()


@pytest.mark.long
def test_many_restored_runs_over_events_equal_undisturbed_ones() -> None:
    @settings(max_examples=5_000)
    @given(st.integers(0, 2**32).map(Random), ways)
    def test(random: Random, way: Way) -> None:
        check_events(random, way)

    test()


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_many_restored_runs_equal_undisturbed_ones(family: str) -> None:
    @settings(max_examples=800)
    @given(of_family(family), dense, ways)
    def test(text: str, data: Data, way: Way) -> None:
        check(text, data, way)

    test()


# -- Invalid states ------------------------------------------------------------------------------

JOIN = PREFIX + "SELECT * FROM STREAM :s WINDOW RANGE 9 MS FIXED { ?x :p ?y . ?y :q ?z }"
OTHER = (
    PREFIX + "SELECT * FROM STREAM :s WINDOW RANGE 9 MS FIXED { ?x :p ?y OPTIONAL { ?y :q ?z } }"
)


def open_query(text: str) -> OpenQuery:
    query = streamsparql.compile(text)
    return OpenQuery(query, Data({"http://e/s": []}), Way(), TermDictionary())


def test_the_state_of_another_plan_is_refused() -> None:
    tables = open_query(JOIN).pipeline.save()
    with pytest.raises(
        EngineError, match=r"the state has Join on y .*, where the plan has LeftJoin"
    ):
        open_query(OTHER).pipeline.load(tables)


def test_tables_that_are_not_a_state_of_a_pipeline_are_refused() -> None:
    tables: Tables = open_query(JOIN).pipeline.save()
    pipeline = open_query(JOIN).pipeline
    with pytest.raises(EngineError, match="not a state of version 1"):
        pipeline.load({})
    with pytest.raises(EngineError, match="not a state of version 1"):
        pipeline.load({**tables, "stages": tables["stages"].replace_schema_metadata(None)})
    with pytest.raises(EngineError, match="unexpected part 'more'"):
        pipeline.load({**tables, "more": pa.table({"x": [1]})})
    (name,) = [name for name in tables if name.endswith("left area")]
    fewer = {key: table for key, table in tables.items() if key != name}
    with pytest.raises(EngineError, match="missing rows") as refused:
        open_query(JOIN).pipeline.load(fewer)
    assert refused.value.__notes__ == ["in Join on y"]


def test_saving_does_not_change_the_state() -> None:
    data = Data({"http://e/s": [(("<a>", "<http://e/p>", "<b>"), t) for t in range(9)]})
    one, other = (
        OpenQuery(streamsparql.compile(JOIN), data, Way(), TermDictionary()) for _ in "ab"
    )
    for step in steps(data, 3):
        before = {name: table.to_pydict() for name, table in one.pipeline.save().items()}
        again = {name: table.to_pydict() for name, table in one.pipeline.save().items()}
        assert before == again
        assert one.step(*step) == other.step(*step)
