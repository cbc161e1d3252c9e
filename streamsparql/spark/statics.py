"""Static data on Spark: the graphs that a query reads beside its streams.

A small graph is read here and sent to the tasks. A large one is not: Spark works out what the
query's patterns find in it (`joins`), once, and the rows go to the tasks. Where something needs
the triples themselves, those that it can look at go there too. `Statics.reasons` says what was
done.
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
from streamsparql.run.input import RunInput, graph_file
from streamsparql.sources import read_graph
from streamsparql.sources.chunk import Reject
from streamsparql.sources.folders import distinct_files
from streamsparql.sources.paths import is_compressed
from streamsparql.spark.failures import told
from streamsparql.spark.file_slices import Split, is_parquet, opened, paths_of, size_of, splits_of
from streamsparql.spark.joins import Choice, Joins, Name, chosen, matching, uses
from streamsparql.spark.stream_inputs import is_frame
from streamsparql.spark.triples import Source, coded, columns_of, counted, unscoped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamsparql.compiled import CompiledQuery

BROADCAST = 200_000
"""A graph of up to so many triples is small: it is sent to the tasks."""
BROADCAST_BYTES = 1 << 25
"""Text files of more bytes are large: they are not read here to count their triples."""
SHARE = 1 << 24
"""How many bytes of a large text file a task reads, about."""
_PACKING = 10
"""A packed file is taken to be so many times larger."""
_TRIPLE = ["subject", "predicate", "object"]
_PLAN = b"plan"
_ROWS = ".rows"
"""The column of results that have no variable."""


@dataclass(frozen=True)
class Statics:
    """What tasks get of the static graphs, and how it was found."""

    graph: pa.Table | None = None
    graphs: Mapping[str, pa.Table] = field(default_factory=dict)
    results: tuple[pa.Table, ...] = ()
    """What static plans give; which plan it is, is in the table's metadata."""
    reasons: tuple[str, ...] = ()
    read: tuple[Reject, ...] = ()
    """What was no triple in the graphs that were read on the driver."""
    large: tuple[Source, ...] = ()
    """The graphs that were not."""

    def rejects(self, spark: SparkSession) -> list[Reject]:
        """What was no triple in any graph; finding it reads the large ones once more."""
        return [*self.read, *(reject for source in self.large for reject in source.rejects(spark))]


def gathered_statics(spark: SparkSession, query: CompiledQuery, given: RunInput) -> Statics:
    """The static graphs of a run, and what the query finds in those that are large."""
    named: dict[str, Any] = {**given.graphs}
    named.update((name, None) for name in query.graphs if name not in named)
    rejects: list[Reject] = []
    with told():
        sources: dict[Name, Source] = {}
        for number, (name, source) in enumerate(named.items()):
            source = graph_file(name) if source is None else source
            known = Source(f"<{name}>", f"g{number}.", strict=given.strict)
            sources[name] = looked_at(known, source, given, rejects)
        if given.graph is not None:
            known = Source("the default graph", "d.", strict=given.strict)
            sources[None] = looked_at(known, given.graph, given, rejects)
        large = [name for name, source in sources.items() if _is_large(source)]
        tables = {name: source.table for name, source in sources.items() if name not in large}
        reasons = [f"{sources[n].what}: it is sent to the tasks" for n in tables]
        results: tuple[pa.Table, ...] = ()
        if large:
            choice = chosen(query.optimized, large, named)
            sent, results = _worked_out(spark, given, sources, choice)
            tables.update({name: sent.get(name, _nothing()) for name in large})
            reasons += _why(choice, sources, large, sent, results)
    graphs = {name: tables[name] for name in named}
    others = tuple(source for source in sources.values() if source.table is None)
    return Statics(tables.get(None), graphs, results, tuple(reasons), tuple(rejects), others)


def _is_large(source: Source) -> bool:
    return source.table is None or source.table.num_rows > BROADCAST


def _nothing() -> pa.Table:
    return pa.table([pa.array([], pa.string())] * 3, names=_TRIPLE)


# -- Looking at a graph -------------------------------------------------------------------------


def _read(sources: Iterable[Any], name: str, given: RunInput, rejects: list[Reject]) -> pa.Table:
    terms = TermDictionary()
    found: list[Batch] = []
    for source in sources:
        batch, wrong = read_graph(source, name, terms, strict=given.strict)
        rejects += wrong
        found.append(batch)
    columns = Batch.concat(found).columns.values()
    return pa.table([terms.dictionary(ids) for ids in columns], names=_TRIPLE)


def looked_at(known: Source, source: Any, given: RunInput, rejects: list[Reject]) -> Source:
    """A graph that was read, as a table, where it is small or in memory; else where to read it."""
    if is_frame(source):
        some = columns_of(source, known.name).limit(BROADCAST + 1).toArrow()
        if some.num_rows > BROADCAST:
            return replace(known, frame=source, size=f"more than {counted(BROADCAST, 'triple')}")
        return _with_table(known, _read([some], known.name, given, rejects))
    if not isinstance(source, str | os.PathLike) or source == "-":
        return _with_table(known, _read([source], known.name, given, rejects))
    paths = distinct_files(paths_of(source))
    size = _size(paths)
    if size is None:
        wrong: list[Reject] = []
        files = [opened(path) if "://" in path else path for path in paths]
        table = _read(files, known.name, given, wrong)
        if table.num_rows <= BROADCAST:
            rejects += wrong
            return _with_table(known, table)
        size = counted(table.num_rows, "triple")
    size += f" in {counted(len(paths), 'file')}"
    return replace(known, splits=tuple(_finer(splits_of(paths))), size=size)


def _finer(splits: Iterable[Split]) -> Iterator[Split]:
    """Smaller shares: a graph is smaller than a history, and all cores shall read it."""
    for split in splits:
        if split.end is not None:
            edges = [*range(split.begin, max(split.end, split.begin + 1), SHARE), split.end]
            yield from (split._replace(begin=b, end=e) for b, e in pairwise(edges))
        elif split.groups is not None:
            yield from (split._replace(groups=(group,)) for group in split.groups)
        else:
            yield split


def _with_table(known: Source, table: pa.Table) -> Source:
    return replace(known, table=table, size=counted(table.num_rows, "triple"))


def _size(paths: Sequence[str]) -> str | None:
    """How large files are; None where they may be small enough to be read here."""
    rows = sum(_rows(path) for path in paths if is_parquet(path))
    others = [path for path in paths if not is_parquet(path)]
    size = sum(size_of(p) * (_PACKING if is_compressed(p) else 1) for p in others)
    if rows <= BROADCAST and size <= BROADCAST_BYTES:
        return None
    return f"{sum(map(size_of, paths)) / 1e6:,.1f} MB" if others else counted(rows, "row")


def _rows(path: str) -> int:
    with opened(path) as file:
        try:
            return int(parquet.ParquetFile(file).metadata.num_rows)
        except (pa.ArrowInvalid, OSError) as error:
            raise SourceError(f"{path} is no Parquet file that can be read: {error}") from error


# -- Large graphs -------------------------------------------------------------------------------


def _worked_out(
    spark: SparkSession, given: RunInput, sources: Mapping[Name, Source], choice: Choice
) -> tuple[dict[Name, pa.Table], tuple[pa.Table, ...]]:
    """What is sent of large graphs, and what the chosen plans give."""
    partners = [one for some in choice.partners.values() for one in some]
    reads = uses([*choice.plans, *partners]) + Counter(list(choice.needs))
    frames: dict[Name, DataFrame] = {}
    kept: list[DataFrame] = []
    for name in (name for name in reads if name in sources):
        frames[name] = sources[name].triples(spark, choice.patterns(name))
        if reads[name] > 1 and sources[name].table is None:
            kept.append(frames[name].persist())
    try:
        joins = Joins(spark, frames, given.started)
        sent = {
            name: _triples(frames[name], sources[name].scope, patterns)
            for name, patterns in choice.needs.items()
        }
        return sent, tuple(_result(joins, plan, choice) for plan in choice.plans)
    finally:
        for frame in kept:
            frame.unpersist()


def _triples(frame: DataFrame, label: str, patterns: Iterable[Any] | None) -> pa.Table:
    """The triples that something reads in the tasks, as they are before they get their scope."""
    if patterns is not None:
        frame = frame.where(reduce(lambda one, other: one | other, map(matching, patterns)))
    return unscoped(frame.distinct().toArrow(), label)


def _result(joins: Joins, plan: Plan, choice: Choice) -> pa.Table:
    rows, columns = joins.solutions(plan, choice.partners.get(plan, ()))
    found = rows.select(*columns.values()).toArrow() if columns else rows.toArrow()
    names = [variable.name for variable in columns] or [_ROWS]
    return coded(found.rename_columns(names)).replace_schema_metadata({_PLAN: pickle.dumps(plan)})


def _why(
    choice: Choice,
    sources: Mapping[Name, Source],
    large: Sequence[Name],
    sent: Mapping[Name, pa.Table],
    results: Sequence[pa.Table],
) -> list[str]:
    """What was done about large graphs, for `explain`."""
    reasons = []
    for name in large:
        reads = uses(choice.plans)[name]
        if name in sent:
            what = "all of it" if choice.needs[name] is None else "what can match"
            triples = counted(sent[name].num_rows, "triple")
            readers = " and ".join(choice.reasons[name])
            reasons.append(f"{sources[name].what}: {what}, {triples}, is sent, for {readers}")
        if reads or name not in sent:
            found = f"{counted(reads, 'pattern')} over it joined by Spark"
            reasons.append(f"{sources[name].what}: {found}")
    if results:
        rows = sum(table.num_rows for table in results)
        reasons.append(f"of what Spark joined, {counted(rows, 'row')} are sent to the tasks")
    return reasons


# -- In tasks -----------------------------------------------------------------------------------


def with_results(ground: Execution, statics: tuple[pa.Table, ...]) -> Execution:
    """The run whose catalog knows what static plans give."""
    if not statics:
        return ground
    results = {}
    for table in statics:
        plan: Plan = pickle.loads((table.schema.metadata or {})[_PLAN])
        results[plan] = _rows_of(plan, table, ground.terms)
    ground.catalog = replace(ground.catalog, results=results)
    ordered = ground.decoder.ranking is not None
    return Execution(ground.query, ground.input, ordered=ordered, shares_terms_with=ground)


def _rows_of(plan: Plan, table: pa.Table, terms: TermDictionary) -> Batch:
    """The rows of a plan that always hold."""
    rows = table.num_rows
    columns = {}
    for name in (variable.name for variable in scope(plan).possible):
        known = name in table.column_names
        columns[name] = terms.encode(table.column(name)) if known else np.zeros(rows, np.int64)
        terms.keep(columns[name])
    return Batch(columns, np.zeros(rows, np.int64), np.full(rows, INFINITY, np.int64))
