"""A random query that is saved in the middle of its run goes on in another pipeline.

The plan is lowered afresh over a dictionary with the terms in use, as a new process would do it. What
follows is compared with the undisturbed run, step by step: rows, watermark, sizes, contents, counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import Data
from support.families import FAMILIES, of_family
from support.generate import DIALECTS, EVERYTHING, PREFIX, queries
from support.histories import dense, few
from support.restored import Seen, moved, seen, through_ipc, undeclared

import streamsparql
from streamsparql.algebra.functions import Run
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import IRI
from streamsparql.errors import EngineError
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.lowering.lower import Catalog, lower
from streamsparql.physical.operators.access import Always, StreamAccess
from streamsparql.physical.operators.report import Clip, Reports, TemporalCoalesce
from streamsparql.physical.pipeline import Pipeline
from streamsparql.physical.state.parts import Tables


class Way(NamedTuple):
    """A way to run a query."""

    report: str | None = None
    every: int | None = None
    eager: bool = False
    optimize: bool = True
    recycle: bool = False
    seed: int = 0
    """Of how items are cut into steps."""
    at: int = 1
    """After which step the run is saved."""


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
    """A dictionary that always wants to be recycled."""

    def due(self) -> bool:
        return True


class Opened:
    """A query over data, of which the streams arrive step by step."""

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
            self.reports = Reports(self.clip, way.report, way.every)  # type: ignore[arg-type]
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

    def step(self, items: Mapping[str, list], watermark: int, cut: bool) -> Seen:
        """Offer items to the pipeline; return what can be seen then."""
        first = min((t for _, t in self._items()), default=0)
        if self.clip.begin is None and watermark >= first:
            self.clip.begin = first
        if self.reports is not None:
            self.reports.begin = self.clip.begin
            self.reports.clock = watermark
        offered = {name: self._stamped(name, found) for name, found in items.items() if found}
        marks = dict.fromkeys(self.data.streams, watermark)
        rows, known = self.pipeline.step(offered, marks, cut)
        if self.reports is not None and cut:
            known += sum(self.reports.done())
        found = seen(rows, known, self.pipeline.operators, self.terms)
        if self.way.recycle:
            self.pipeline.recycle(rows.columns.values())
        return found

    def _items(self) -> Iterator[tuple]:
        return (item for items in self.data.streams.values() for item in items)

    def _stamped(self, name: str, items: list) -> Batch:
        batch = self._batch([triple for triple, _ in items], name)
        for at, (_, t) in enumerate(items):
            batch.start[at], batch.end[at] = t, t + 1
        for operator in self.pipeline.operators:
            if isinstance(operator, StreamAccess) and operator.stream == name and operator.stamp:
                stamps = self.terms.of_integers(batch.start)
                batch = batch.with_columns({operator.stamp: stamps})
        return batch

    def restored(self) -> Opened:
        """The same query, opened anew over a new dictionary, with what was saved of this run."""
        tables = through_ipc(self.pipeline.save())
        terms = moved(self.terms, list(self.pipeline.retained_ids()))
        made = Opened(self.query, self.data, self.way, terms)
        made.pipeline.load(tables)
        return made


def steps(data: Data, seed: int) -> Iterator[tuple[dict[str, list], int, bool]]:
    """The items of all streams in order of time, in random steps with random watermarks."""
    random = Random(seed)
    waiting = sorted(
        ((t, name, (triple, t)) for name, items in data.streams.items() for triple, t in items),
        key=lambda entry: entry[:2],
    )
    watermark = 0
    while waiting:
        size = random.choice([1, 1, 2, 5, 20])
        now, waiting = waiting[:size], waiting[size:]
        found: dict[str, list] = {}
        for _, name, item in now:
            found.setdefault(name, []).append(item)
        following = waiting[0][0] if waiting else now[-1][0] + 20
        watermark = max(watermark, following - random.choice([0, 0, 1, 4]))
        yield found, watermark, random.random() < 0.3
    yield {}, INFINITY, False


def check(text: str, data: Data, way: Way) -> None:
    query = streamsparql.compile(text, optimize=way.optimize)
    data = data.of(query)
    kind = Full if way.recycle else TermDictionary
    whole, parted = (Opened(query, data, way, kind()) for _ in range(2))
    known: dict[str, str] = {}
    for number, step in enumerate(steps(data, way.seed)):
        assert parted.step(*step) == whole.step(*step), f"step {number} of {way}\n{text}"
        for operator in whole.pipeline.operators:
            for path, value in undeclared(operator, f"{type(operator).__name__} {id(operator)}"):
                assert known.setdefault(path, value) == value, f"{path} is undeclared state"
        if number == way.at:
            parted = parted.restored()
            pairs = zip(whole.pipeline.operators, parted.pipeline.operators, strict=True)
            for one, other in pairs:
                assert vars(whole.pipeline.counts[one]) == vars(parted.pipeline.counts[other])
            assert parted.pipeline.watermark == whole.pipeline.watermark


@pytest.mark.parametrize("family", FAMILIES)
def test_a_restored_run_goes_on_like_an_undisturbed_one(family: str) -> None:
    @settings(max_examples=12)
    @given(of_family(family), dense, ways)
    def test(text: str, data: Data, way: Way) -> None:
        check(text, data, way)

    test()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_restored_run_of_any_query_goes_on(dialect: str) -> None:
    @settings(max_examples=12)
    @given(queries(replace(EVERYTHING, dialect=dialect)), few(), ways)
    def test(text: str, data: Data, way: Way) -> None:
        check(text, data, way)

    test()


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_many_restored_runs_go_on(family: str) -> None:
    @settings(max_examples=800)
    @given(of_family(family), dense, ways)
    def test(text: str, data: Data, way: Way) -> None:
        check(text, data, way)

    test()


# -- What does not fit ---------------------------------------------------------------------------

JOIN = PREFIX + "SELECT * FROM STREAM :s WINDOW RANGE 9 MS FIXED { ?x :p ?y . ?y :q ?z }"
OTHER = (
    PREFIX + "SELECT * FROM STREAM :s WINDOW RANGE 9 MS FIXED { ?x :p ?y OPTIONAL { ?y :q ?z } }"
)


def opened(text: str) -> Opened:
    query = streamsparql.compile(text)
    return Opened(query, Data({"http://e/s": []}), Way(), TermDictionary())


def test_the_state_of_another_plan_is_refused() -> None:
    tables = opened(JOIN).pipeline.save()
    with pytest.raises(
        EngineError, match=r"the state has Join on y .*, where the plan has LeftJoin"
    ):
        opened(OTHER).pipeline.load(tables)


def test_tables_that_are_no_state_of_a_pipeline_are_refused() -> None:
    tables: Tables = opened(JOIN).pipeline.save()
    pipeline = opened(JOIN).pipeline
    with pytest.raises(EngineError, match="not a state of version 1"):
        pipeline.load({})
    with pytest.raises(EngineError, match="not a state of version 1"):
        pipeline.load({**tables, "stages": tables["stages"].replace_schema_metadata(None)})
    with pytest.raises(EngineError, match="unexpected part 'more'"):
        pipeline.load({**tables, "more": pa.table({"x": [1]})})
    (name,) = [name for name in tables if name.endswith("left area")]
    fewer = {key: table for key, table in tables.items() if key != name}
    with pytest.raises(EngineError, match="missing rows") as refused:
        opened(JOIN).pipeline.load(fewer)
    assert refused.value.__notes__ == ["in Join on y"]


def test_saving_changes_nothing() -> None:
    data = Data({"http://e/s": [(("<a>", "<http://e/p>", "<b>"), t) for t in range(9)]})
    one, other = (Opened(streamsparql.compile(JOIN), data, Way(), TermDictionary()) for _ in "ab")
    for step in steps(data, 3):
        before = {name: table.to_pydict() for name, table in one.pipeline.save().items()}
        again = {name: table.to_pydict() for name, table in one.pipeline.save().items()}
        assert before == again
        assert one.step(*step) == other.step(*step)
