"""Static data on Spark: the graphs that a query reads in addition to its streams.

A small graph is read by the driver and sent to the tasks. Over a large one, Spark computes the
query's static joins once (`joins`), and only their rows are sent. Where a task needs triples
themselves, those that it can use are sent, too. `Statics.reasons` states the decisions and their
reasons.
"""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import scope
from streamsparql.errors import SourceError
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput, graph_named_by_query
from streamsparql.sources import read_graph
from streamsparql.sources.chunk import Reject
from streamsparql.sources.folders import distinct_files
from streamsparql.sources.paths import is_compressed
from streamsparql.spark.entailment import KnownSchema, read_schema
from streamsparql.spark.failures import raising_task_errors
from streamsparql.spark.file_slices import (
    Split,
    is_parquet,
    open_source_file,
    paths_of,
    size_of,
    splits_of,
)
from streamsparql.spark.joins import (
    GraphName,
    StaticChoice,
    StaticJoins,
    choose_static_plans,
    count_reads,
    match_condition,
)
from streamsparql.spark.stream_inputs import is_frame
from streamsparql.spark.triples import (
    GraphSource,
    dictionary_encoded,
    quantity,
    triple_columns,
    without_scope,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamsparql.compiled import CompiledQuery

BROADCAST = 200_000
"""The greatest number of triples of a small graph, which is sent to the tasks."""
BROADCAST_BYTES = 1 << 25
"""The size of text files above which a graph is large, without counting its triples."""
GRAPH_SPLIT = 1 << 24
"""The approximate number of bytes of a large text file that a task reads."""
_COMPRESSION = 10
"""The estimated ratio of uncompressed to compressed size."""
_TRIPLE = ["subject", "predicate", "object"]
_PLAN = b"plan"
"""The key of a result's plan in the metadata of its table."""
_ROWS = ".rows"
"""The column of results without variables."""


@dataclass(frozen=True)
class Statics:
    """The static data that tasks receive."""

    graph: pa.Table | None = None
    graphs: Mapping[str, pa.Table] = field(default_factory=dict)
    results: tuple[pa.Table, ...] = ()
    """The rows of static plans; the metadata of each table has its plan."""
    reasons: tuple[str, ...] = ()
    driver_rejects: tuple[Reject, ...] = ()
    """The rejects of the graphs that the driver read."""
    large: tuple[GraphSource, ...] = ()
    """The graphs that the driver did not read."""
    schema: KnownSchema | None = None
    """The schema for entailment."""

    @property
    def any(self) -> bool:
        """Whether there are static triples, or rows of static plans."""
        return self.graph is not None or bool(self.graphs or self.results)

    def rejects(self, spark: SparkSession) -> list[Reject]:
        """Return the rejects of all graphs, for which the large ones are read once more."""
        rejects = [*self.driver_rejects]
        for source in self.large:
            rejects += source.rejects(spark)
        return rejects


def gather_statics(spark: SparkSession, query: CompiledQuery, run_input: RunInput) -> Statics:
    """Read the small graphs of a run, and compute the query's static joins over the large ones."""
    named: dict[str, Any] = {**run_input.graphs}
    named.update((name, None) for name in query.graphs if name not in named)
    rejects: list[Reject] = []
    with raising_task_errors():
        sources: dict[GraphName, GraphSource] = {}
        for number, (name, source) in enumerate(named.items()):
            unread = GraphSource(f"<{name}>", f"g{number}.", strict=run_input.strict)
            if source is not None:
                sources[name] = survey_graph(unread, source, run_input, rejects)
            else:  # the driver reads it: what it contains is not quoted, as tasks would
                source = graph_named_by_query(name, run_input)
                table = _read([source], unread.name, run_input, rejects, quoted=False)
                sources[name] = _with_table(unread, table)
        if run_input.graph is not None:
            unread = GraphSource("the default graph", "d.", strict=run_input.strict)
            sources[None] = survey_graph(unread, run_input.graph, run_input, rejects)
        large = [name for name, source in sources.items() if _is_large(source)]
        tables = {name: source.table for name, source in sources.items() if name not in large}
        reasons = [f"{sources[n].summary}: it is sent to the tasks" for n in tables]
        results: tuple[pa.Table, ...] = ()
        schema = read_schema(spark, query.optimized, sources)
        if schema is not None:
            reasons.append(f"entailment: {schema.size}, read before the data that it selects")
        if large:
            choice = choose_static_plans(query.optimized, large, named, schema)
            sent, results = _compute(spark, run_input, sources, choice)
            tables.update({name: sent.get(name, _no_triples()) for name in large})
            reasons += _reasons(choice, sources, large, sent, results)
    graphs = {name: tables[name] for name in named}
    others = tuple(source for source in sources.values() if source.table is None)
    return Statics(
        tables.get(None), graphs, results, tuple(reasons), tuple(rejects), others, schema
    )


def _is_large(source: GraphSource) -> bool:
    return source.table is None or source.table.num_rows > BROADCAST


def _no_triples() -> pa.Table:
    return pa.table([pa.array([], pa.string())] * 3, names=_TRIPLE)


# -- Surveying a graph --------------------------------------------------------------------------


def _read(
    sources: Iterable[Any],
    name: str,
    run_input: RunInput,
    rejects: list[Reject],
    quoted: bool = True,
) -> pa.Table:
    terms = TermDictionary()
    graphs: list[Batch] = []
    for source in sources:
        batch, graph_rejects = read_graph(
            source, name, terms, strict=run_input.strict, quoted=quoted
        )
        rejects += graph_rejects
        graphs.append(batch)
    columns = Batch.concat(graphs).columns.values()
    return pa.table([terms.dictionary(ids) for ids in columns], names=_TRIPLE)


def survey_graph(
    unread: GraphSource, source: Any, run_input: RunInput, rejects: list[Reject]
) -> GraphSource:
    """Return a graph as a table if it is small or in memory, or else with its files or DataFrame.

    The rejects of a table are added to `rejects`.
    """
    if is_frame(source):
        first = triple_columns(source, unread.name).limit(BROADCAST + 1).toArrow()
        if first.num_rows > BROADCAST:
            return replace(unread, frame=source, size=f"more than {quantity(BROADCAST, 'triple')}")
        return _with_table(unread, _read([first], unread.name, run_input, rejects))
    if not isinstance(source, str | os.PathLike) or source == "-":
        return _with_table(unread, _read([source], unread.name, run_input, rejects))
    paths = distinct_files(paths_of(source))
    size = _size(paths)
    if size is None:
        file_rejects: list[Reject] = []
        files = [open_source_file(path) if "://" in path else path for path in paths]
        table = _read(files, unread.name, run_input, file_rejects)
        if table.num_rows <= BROADCAST:
            rejects += file_rejects
            return _with_table(unread, table)
        size = quantity(table.num_rows, "triple")
    size += f" in {quantity(len(paths), 'file')}"
    return replace(unread, splits=tuple(_smaller_splits(splits_of(paths))), size=size)


def _smaller_splits(splits: Iterable[Split]) -> Iterator[Split]:
    """Split further: a graph is smaller than a history, and all cores should read it."""
    for split in splits:
        if split.end is not None:
            edges = [*range(split.begin, max(split.end, split.begin + 1), GRAPH_SPLIT), split.end]
            yield from (split._replace(begin=b, end=e) for b, e in pairwise(edges))
        elif split.groups is not None:
            yield from (split._replace(groups=(group,)) for group in split.groups)
        else:
            yield split


def _with_table(unread: GraphSource, table: pa.Table) -> GraphSource:
    return replace(unread, table=table, size=quantity(table.num_rows, "triple"))


def _size(paths: Sequence[str]) -> str | None:
    """Return the size of large files, as text; None if the driver may read them."""
    rows = sum(_parquet_rows(path) for path in paths if is_parquet(path))
    others = [path for path in paths if not is_parquet(path)]
    size = sum(size_of(p) * (_COMPRESSION if is_compressed(p) else 1) for p in others)
    if rows <= BROADCAST and size <= BROADCAST_BYTES:
        return None
    return f"{sum(map(size_of, paths)) / 1e6:,.1f} MB" if others else quantity(rows, "row")


def _parquet_rows(path: str) -> int:
    with open_source_file(path) as file:
        try:
            return int(parquet.ParquetFile(file).metadata.num_rows)
        except (pa.ArrowInvalid, OSError) as error:
            raise SourceError(f"{path}: not a readable Parquet file: {error}") from error


# -- Large graphs -------------------------------------------------------------------------------


def _compute(
    spark: SparkSession,
    run_input: RunInput,
    sources: Mapping[GraphName, GraphSource],
    choice: StaticChoice,
) -> tuple[dict[GraphName, pa.Table], tuple[pa.Table, ...]]:
    """Return the triples of large graphs that are sent, and the rows of the chosen plans."""
    partners = [partner for plans in choice.partners.values() for partner in plans]
    reads = count_reads([*choice.plans, *partners]) + Counter(list(choice.needs))
    frames: dict[GraphName, DataFrame] = {}
    persisted: list[DataFrame] = []
    for name in (name for name in reads if name in sources):
        frames[name] = sources[name].triples(spark, choice.patterns(name))
        if reads[name] > 1 and sources[name].table is None:
            persisted.append(frames[name].persist())
    try:
        joins = StaticJoins(spark, frames, run_input.started)
        sent = {
            name: _triples(frames[name], sources[name].scope, patterns)
            for name, patterns in choice.needs.items()
        }
        return sent, tuple(_result(joins, plan, choice) for plan in choice.plans)
    finally:
        for frame in persisted:
            frame.unpersist()


def _triples(frame: DataFrame, prefix: str, patterns: Iterable[Any] | None) -> pa.Table:
    """Return the triples that the tasks read, without the scope of their blank nodes."""
    if patterns is not None:
        frame = frame.where(
            reduce(lambda left, right: left | right, map(match_condition, patterns))
        )
    return without_scope(frame.distinct().toArrow(), prefix)


def _result(joins: StaticJoins, plan: Plan, choice: StaticChoice) -> pa.Table:
    rows, columns = joins.solutions(plan, choice.partners.get(plan, ()))
    table = rows.select(*columns.values()).toArrow() if columns else rows.toArrow()
    names = [variable.name for variable in columns] or [_ROWS]
    return dictionary_encoded(table.rename_columns(names)).replace_schema_metadata(
        {_PLAN: pickle.dumps(plan)}
    )


def _reasons(
    choice: StaticChoice,
    sources: Mapping[GraphName, GraphSource],
    large: Sequence[GraphName],
    sent: Mapping[GraphName, pa.Table],
    results: Sequence[pa.Table],
) -> list[str]:
    """Return the decisions on large graphs and their reasons, for `explain`."""
    reasons = []
    for name in large:
        reads = count_reads(choice.plans)[name]
        if name in sent:
            part = "all of it" if choice.needs[name] is None else "the part that can match"
            triples = quantity(sent[name].num_rows, "triple")
            readers = " and ".join(choice.reasons[name])
            reasons.append(f"{sources[name].summary}: {part}, {triples}, is sent, for {readers}")
        if reads or name not in sent:
            joined = f"{quantity(reads, 'pattern')} over it joined by Spark"
            reasons.append(f"{sources[name].summary}: {joined}")
    if results:
        rows = sum(table.num_rows for table in results)
        reasons.append(f"{quantity(rows, 'row')} of Spark's static joins sent to the tasks")
    return reasons


# -- In tasks -----------------------------------------------------------------------------------


def with_static_results(shared_execution: Execution, statics: tuple[pa.Table, ...]) -> Execution:
    """Return an execution whose catalog has the rows of static plans."""
    if not statics:
        return shared_execution
    results = {}
    for table in statics:
        plan: Plan = pickle.loads((table.schema.metadata or {})[_PLAN])
        results[plan] = _rows_of(plan, table, shared_execution.terms)
    shared_execution.catalog = replace(shared_execution.catalog, results=results)
    ordered = shared_execution.decoder.ranking is not None
    return Execution(
        shared_execution.query,
        shared_execution.input,
        ordered=ordered,
        shares_terms_with=shared_execution,
    )


def _rows_of(plan: Plan, table: pa.Table, terms: TermDictionary) -> Batch:
    """Return the rows of a static plan, which always hold."""
    rows = table.num_rows
    columns = {}
    for name in (variable.name for variable in scope(plan).possible):
        known = name in table.column_names
        columns[name] = terms.encode(table.column(name)) if known else np.zeros(rows, np.int64)
        terms.keep(columns[name])
    return Batch(columns, np.zeros(rows, np.int64), np.full(rows, INFINITY, np.int64))
