"""The embedded engine: one run of a query, in this process.

An `Execution` is a plan over data: it reads the static graphs, lowers the plan over them, and then
takes in what the streams bring, round by round, and gives what is known. `Query.run` pulls a whole
history through one; `Query.open` keeps one open and pushes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.algebra.access import AccessGraph
from streamsparql.algebra.align import align, closing
from streamsparql.algebra.functions import Run
from streamsparql.algebra.graph import Graph
from streamsparql.algebra.inputs import MAX_JUMP
from streamsparql.algebra.partition import positions_read
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.xsd.values import date_time_literal
from streamsparql.errors import EngineError, SourceError, UnsupportedFeature
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.sort_keys import Ranking
from streamsparql.physical.hidden import ANSWER
from streamsparql.physical.lowering.lower import Catalog, Share, lower
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.physical.operators.report import Clip, RelationToStream, Reports, TemporalCoalesce
from streamsparql.physical.operators.shape import projected_to
from streamsparql.physical.pipeline import Observer, Pipeline, wanted_predicates
from streamsparql.sources import Chunk, Reject, Wanted, read_graph, read_stream
from streamsparql.sources.clock import Round, interleave
from streamsparql.sources.disorder import Sorter
from streamsparql.sources.paths import path_of
from streamsparql.sources.stamps import LATEST

if TYPE_CHECKING:
    from streamsparql.query import Query

CUT_AFTER = 65_536
"""After so many items, what operators hold open is cut: it bounds what waits for an end."""

LARGE = 262_144
"""A part of a history, which is one of many, is read in chunks of so many items."""


@dataclass(frozen=True)
class RunInput:
    """What a caller gives beside the query: data, the horizon, how strict to be with input."""

    streams: Mapping[str, Any] = field(default_factory=dict)
    graph: Any = None
    graphs: Mapping[str, Any] = field(default_factory=dict)
    start: int | None = None
    end: int | None = None
    strict: bool = False
    max_delay: int = 0
    max_jump: int | None = MAX_JUMP
    started: int = field(default_factory=lambda: int(time.time() * 1000))
    """What NOW() is, in milliseconds."""

    def __post_init__(self) -> None:
        """Times are whole milliseconds, and the horizon begins before it ends."""
        for name in ("start", "end", "max_delay", "max_jump"):
            value = getattr(self, name)
            if value is None and name != "max_delay":
                continue
            if type(value) is not int or not 0 <= value <= LATEST:
                raise EngineError(f"{name} is a number of milliseconds, not {value!r}")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise EngineError(f"the horizon ends at {self.end}, and starts no sooner: {self.start}")


class Reporting(NamedTuple):
    """Which reports are wanted, and whether they show the snapshot before their instant (R15)."""

    kind: RelationToStream
    every: int | None
    origin: int
    closing: bool


def reports_asked(query: Query, kind: str | None, every: int | None) -> Reporting | None:
    """The reports that a caller asks for; None where rows are wanted, with neither."""
    return None if kind is None and every is None else reporting(query, kind, every)


def reporting(query: Query, kind: str | None, every: int | None) -> Reporting:
    """What a query reports, where the caller does not say else."""
    chosen = kind or query.report.kind or "rstream"
    if chosen not in ("rstream", "istream", "dstream"):
        raise EngineError(f"a report is rstream, istream or dstream, not {chosen!r}")
    if every is not None and (type(every) is not int or not 0 < every <= LATEST):
        raise EngineError(f"a report comes every so many milliseconds, not every {every!r}")
    period = query.report.every if every is None else every
    origin = query.report.origin if every is None else query.report.origin % every
    closes = period is not None and bool(closing(query.logical))
    return Reporting(chosen, period, origin, closes)  # type: ignore[arg-type]


class Execution:
    """One run: what came is pushed through the pipeline, what is known comes out.

    `shares_terms_with` is another run of the same query over the same data: the two share one
    dictionary and the static graphs. Rows that are `ordered` carry what ORDER BY sorts them by, and
    are in canonical form with it. `share` is the part of time that is computed, where the streams
    hold no more.
    """

    def __init__(
        self,
        query: Query,
        given: RunInput,
        *,
        report: Reporting | None = None,
        ordered: bool = True,
        eager: bool = False,
        shares_terms_with: Execution | None = None,
        observer: Observer | None = None,
        share: Share | None = None,
    ) -> None:
        self.query, self.given, self.eager = query, given, eager
        self._large = {} if share is None else {"chunk": LARGE}
        self._shares_terms_with = shares_terms_with
        self.terms: TermDictionary = (
            TermDictionary() if shares_terms_with is None else shares_terms_with.terms
        )
        self.rejects: list[Reject] = []
        plan = query.optimized
        lag = 0
        if report is not None and report.every is not None and closing(plan) is not None:
            plan = align(plan, report.every, report.origin, report.closing)
            lag, report = int(report.closing), report._replace(closing=False)
        self.catalog: Catalog = (
            self._catalog() if shares_terms_with is None else shares_terms_with.catalog
        )
        now = Run(date_time_literal(given.started))
        lowered = lower(plan, self.terms, now, self.catalog, share)
        self.names = shown_columns(query)
        self.ranking: Ranking | None = lowered.ranking if ordered else None
        hidden = () if self.ranking is None else self.ranking.columns
        rows = projected_to(lowered.operator, (*self.names, *hidden))
        self._lag = lag
        begin = None if given.start is None else given.start + lag
        self._clip = Clip(rows, begin, INFINITY if given.end is None else given.end + lag)
        self.reports = None if report is None else reports(report, self._clip, self.names)
        self.sink: Operator = self.reports or TemporalCoalesce(self._clip, eager)
        self.pipeline = Pipeline(self.sink, self.terms, observer)
        self._wanted = wanted_predicates(self.sink)
        self._places = {name: positions_read(query.optimized, name) for name in query.streams}
        accesses = [o for o in self.pipeline.operators if isinstance(o, StreamAccess)]
        self._stamps = {o.stream: o.stamp for o in accesses if o.stamp}
        self.streams = tuple(dict.fromkeys([*query.streams, *(o.stream for o in accesses)]))
        self.sorters = {
            name: Sorter(f"<{name}>", given.max_delay, given.strict, given.max_jump)
            for name in self.streams
        }
        self.parts: list[Batch] = []
        """What was given and is still held by somebody."""
        self._since_cut = 0
        self._scopes = [*given.streams, *(s for s in self.streams if s not in given.streams)]

    # -- data

    def _catalog(self) -> Catalog:
        """The static graphs, read and indexed once."""
        given = self.given
        sources = {**given.graphs}
        sources.update((name, None) for name in self.query.graphs if name not in sources)
        named: dict[IRI, Batch] = {}
        for k, (name, source) in enumerate(sources.items()):
            source = file_of(name) if source is None else source
            named[IRI(name)] = self._graph(source, f"<{name}>", f"g{k}.")
        default = Batch.empty(TRIPLE)
        if given.graph is not None:
            default = self._graph(given.graph, "the default graph", "d.")
        return Catalog(default, named)

    def _graph(self, source: Any, name: str, scope: str) -> Batch:
        batch, rejects = read_graph(source, name, self.terms, scope=scope, strict=self.given.strict)
        self.rejects += rejects
        for ids in batch.columns.values():
            self.terms.keep(ids)
        return batch

    def reader(self, stream: str, source: Any, first: int = 1) -> Iterator[Chunk]:
        """The chunks of a source of a stream; what the query cannot match is left out.

        `first` is the position of the first item, where there were others before.
        """
        return read_stream(
            source,
            f"<{stream}>",
            self.terms,
            scope=f"s{self._scopes.index(stream)}.",
            wanted=self.wanted(stream),
            strict=self.given.strict,
            first=first,
            **self._large,
        )

    def wanted(self, stream: str) -> Wanted | None:
        """What the query can use of a stream; None where that is everything."""
        found = self._wanted.get(stream, frozenset())
        looked_at = self._places.get(stream, frozenset("spo"))
        return None if found is None and len(looked_at) == 3 else Wanted(found, looked_at)

    # -- rounds

    def rounds(self) -> Iterator[Round]:
        """What all streams bring together, until they have ended."""
        readers = {name: self.reader(name, self.given.streams[name]) for name in self.streams}
        return interleave(readers, self.sorters) if readers else iter([Round({}, INFINITY)])

    def replay(self) -> Iterator[Batch]:
        """Reads all streams to their end; gives, and keeps, rows as they become known."""
        for batches, watermark in self.rounds():
            rows = self.round(batches, watermark)
            if len(rows):
                self.parts.append(rows)
            yield rows

    def round(self, batches: Mapping[str, Batch], watermark: int) -> Batch:
        """What is known once these items came and the time of all streams is `watermark`."""
        self._begin(watermark)
        self._since_cut += sum(map(len, batches.values()))
        cut = self.eager or self.reports is not None or self._since_cut >= CUT_AFTER
        if cut:
            self._since_cut = 0
        if self.reports is not None:
            self.reports.last = max(self.reports.last, self.last_stamp + self._lag)
            self.reports.clock = min(watermark, INFINITY - self._lag) + self._lag
        offered = {name: self._stamped(name, batch) for name, batch in batches.items()}
        rows, _ = self.pipeline.step(offered, dict.fromkeys(self.streams, watermark), cut)
        if self.terms.due():
            self.pipeline.recycle([*rows.columns.values(), *self._held()])
        return rows

    @property
    def last_stamp(self) -> int:
        """The greatest stamp of all items."""
        return max((sorter.seen for sorter in self.sorters.values()), default=-1)

    @property
    def begin(self) -> int | None:
        """Where the horizon begins, once that is known."""
        return None if self._clip.begin is None else self._clip.begin - self._lag

    def late(self) -> list[Reject]:
        """What was rejected: late items, and what could not be read."""
        return [*self.rejects, *(r for s in self.sorters.values() for r in s.rejects)]

    def _held(self) -> Iterator[IntArray]:
        """The ids that are in use outside the pipeline."""
        for sorter in self.sorters.values():
            yield from sorter.held()
        for batch in self.parts:
            yield from batch.columns.values()
        if self._shares_terms_with is not None:
            yield from self._shares_terms_with._held()
            for operator in self._shares_terms_with.pipeline.operators:
                yield from operator.retained_ids()

    def _begin(self, watermark: int) -> None:
        """The horizon begins with the first item of all, when none can come before it."""
        if self._clip.begin is None:
            least = min((s.least for s in self.sorters.values()), default=INFINITY)
            if least <= watermark:
                self._clip.begin = (0 if least == INFINITY else least) + self._lag
        if self.reports is not None and self.reports.begin is None:
            self.reports.begin = self._clip.begin

    def _stamped(self, name: str, batch: Batch) -> Batch:
        """Where the query asks for timestamps, items carry theirs."""
        column = self._stamps.get(name)
        if column is None:
            return batch
        return batch.with_columns({column: self.terms.of_integers(batch.start)})


def reports(
    wanted: Reporting, rows: Operator, shown: tuple[str, ...], end: int = INFINITY
) -> Reports:
    """The operator that makes these reports of rows, of which a reader sees some columns."""
    made = Reports(rows, wanted.kind, wanted.every, wanted.origin, wanted.closing, shown)
    made.end = rows.end if isinstance(rows, Clip) else end
    return made


def shown_columns(query: Query) -> tuple[str, ...]:
    """The columns of a query's result: its variables, a triple's places, or the answer of ASK."""
    if query.form == "select":
        return query.variables
    return (ANSWER,) if query.form == "ask" else TRIPLE


def check_given(query: Query, streams: Any, graphs: Mapping[Any, Any] | None) -> dict[str, Any]:
    """The streams by name; a stream or graph that is missing or not asked for is an error."""
    check_runs(query)
    named = _by_name(query, streams)
    for name in query.streams:
        if name not in named:
            known = ", ".join(f"<{other}>" for other in named) or "none"
            raise SourceError(f"the query reads the stream <{name}>; given are: {known}")
    for name in named:
        if name not in query.streams:
            raise SourceError(f"the query does not read the stream <{name}>, which is given")
    check_graphs(query, graphs)
    return named


def check_runs(query: Query) -> None:
    """A query's own output is no input: nothing runs several queries on each other's results."""
    if query.report.name in query.streams:
        raise UnsupportedFeature(
            f"the query reads the stream <{query.report.name}> that it is registered as",
            hint="run it, and push its results to a second query",
        )


def check_graphs(query: Query, graphs: Mapping[Any, Any] | None) -> None:
    """A graph that is given is one that the query reads."""
    any_graph = any(
        isinstance(node, Graph)
        or (isinstance(node, AccessGraph) and any(isinstance(g, Variable) for g in node.graphs))
        for node in query.logical.walk()
    )
    for graph in graphs or {}:
        if str(graph) not in query.graphs and not any_graph:
            raise SourceError(f"the query does not read the graph <{graph}>, which is given")


def _by_name(query: Query, streams: Any) -> dict[str, Any]:
    if streams is None:
        return {}
    if isinstance(streams, Mapping):
        return {str(name): source for name, source in streams.items()}
    if len(query.streams) != 1:
        names = ", ".join(f"<{name}>" for name in query.streams) or "no stream"
        raise SourceError(f"give the streams by name: the query reads {names}")
    return {query.streams[0]: streams}


def graphs_read(query: Query, graph: Any, graphs: Mapping[str, Any]) -> list[Any]:
    """The sources of a query's graphs: those that are given, and files that their IRIs name."""
    named = (_path_of(name) for name in query.graphs if name not in graphs)
    return [graph, *graphs.values(), *(path for path in named if path.is_file())]


def _path_of(name: str) -> Path:
    return Path(path_of(name))


def file_of(name: str) -> Path:
    """The file that an IRI names, for a graph that nobody gave."""
    path = _path_of(name)
    if not path.is_file():
        raise SourceError(f"the query reads the graph <{name}>: give it, or put a file there")
    return path
