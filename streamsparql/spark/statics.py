"""Static data on Spark: the graphs that a query reads beside its streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsparql.engine import Execution, Given, file_of
from streamsparql.physical.terms import TermDictionary
from streamsparql.sources import read_graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamsparql.query import Query


@dataclass(frozen=True)
class Statics:
    """What tasks get of the static graphs."""

    graph: pa.Table | None = None
    graphs: Mapping[str, pa.Table] = field(default_factory=dict)
    results: tuple[pa.Table, ...] = ()
    reasons: tuple[str, ...] = ()


def gathered_statics(spark: SparkSession, query: Query, given: Given) -> Statics:
    """The static graphs of a run."""
    graph = None if given.graph is None else as_table(given.graph, "the default graph", given)
    sources = {**given.graphs}
    sources.update((name, None) for name in query.graphs if name not in sources)
    graphs = {
        name: as_table(file_of(name) if source is None else source, f"<{name}>", given)
        for name, source in sources.items()
    }
    return Statics(graph, graphs)


def as_table(source: Any, name: str, given: Given) -> pa.Table:
    """A static graph as a table of terms, blank nodes as they are written there."""
    terms = TermDictionary()
    batch, _ = read_graph(source, name, terms, strict=given.strict)
    columns = [terms.texts(ids) for ids in batch.columns.values()]
    return pa.table(columns, names=["subject", "predicate", "object"])


def with_results(ground: Execution, statics: tuple[pa.Table, ...]) -> Execution:
    """The run whose catalog knows what static plans give."""
    return ground
