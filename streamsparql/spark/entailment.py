"""Entailment on Spark: the schema as the driver knows it, which decides what the tasks need.

Tasks have the statements of the schema among the static triples that they receive, and run the
operators of the embedded engine. The driver needs the schema to select: the rows of a DataFrame and
the triples of large graphs that entail a match are more than those that match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from streamsparql.algebra.entailment import SCHEMA_PREDICATES, Entailed, reads_entailed
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Variable
from streamsparql.physical.batch import TRIPLE
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.entailment.matchers import matcher_of
from streamsparql.physical.entailment.schema import End, Schema
from streamsparql.physical.operators.access import Always
from streamsparql.spark.joins import GraphName, Patterns, graph_names
from streamsparql.spark.triples import GraphSource, with_scope

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_PREDICATES = 100
"""The greatest number of predicates by which triples are selected; of more, all are read."""
_S, _P, _O = Variable("s"), Variable("p"), Variable("o")


class KnownSchema:
    """The schema in all static graphs that have one for some pattern.

    A pattern may have the schema of fewer graphs: then this one selects more than it needs.
    """

    def __init__(self, triples: Iterable[pa.Table]) -> None:
        terms = TermDictionary()
        tables = list(triples)
        columns = {}
        for name, place in zip(TRIPLE, range(3), strict=True):
            ids = [terms.encode(table.column(place)) for table in tables]
            columns[name] = np.concatenate([np.empty(0, np.int64), *ids])
        self._schema = Schema(Always.of(columns, len(columns[TRIPLE[0]])).rows, terms)

    @property
    def size(self) -> str:
        """The size of the schema, as text."""
        return self._schema.describe()

    @property
    def statements(self) -> tuple[TriplePattern, ...]:
        """The patterns of the statements of the schema."""
        return tuple(self._with_predicates(self._schema.statement_predicates))

    def entailing(self, patterns: Patterns) -> Patterns:
        """Return patterns of all triples that entail a match of one of some patterns."""
        predicates: set[int] = set()
        for pattern in patterns or ():
            of_pattern = matcher_of(pattern, self._schema).predicates()
            if of_pattern is None or len(predicates) > MAX_PREDICATES:
                return None
            predicates |= of_pattern
        return None if patterns is None else tuple(self._with_predicates(predicates))

    def columns(self, pattern: TriplePattern, variable: Variable) -> tuple[str, ...] | None:
        """Return the places of triples whose terms a variable can be bound to; None if others."""
        names = {End.SUBJECT: "subject", End.OBJECT: "object"}
        bound: set[str] = set()
        for place, term in enumerate(pattern):
            if term == variable:
                ends = matcher_of(pattern, self._schema).ends(place)
                if not ends <= names.keys():
                    return None
                bound.update(names[end] for end in ends if end is not None)
        return tuple(sorted(bound))

    def keys(self, node: TriplePatternMatching) -> frozenset[Variable]:
        """Return the variables of a pattern that are bound to terms of the triple itself."""
        variables = node.pattern.variables()
        return frozenset(v for v in variables if self.columns(node.pattern, v) is not None)

    def _with_predicates(self, predicates: Iterable[int]) -> Iterator[TriplePattern]:
        for id_ in sorted(predicates):
            predicate = self._schema.terms.term_of(id_)
            assert predicate is not None
            yield TriplePattern(_S, predicate, _O)


def read_schema(
    spark: SparkSession, plan: Plan, sources: Mapping[GraphName, GraphSource]
) -> KnownSchema | None:
    """Read the schema for the patterns of a plan; None if it reads no entailed triples.

    In large graphs Spark selects the statements. A subproperty of `rdfs:subClassOf` and the like
    has statements, too, so large graphs are read again as long as there are further predicates.
    """
    if not reads_entailed(plan):
        return None
    schemas = (node.schema for node in plan.operators() if isinstance(node, Entailed))
    names = {name for schema in schemas for name in graph_names(schema, filter(None, sources))}
    read = [source for name, source in sources.items() if name in names]
    large = [source for source in read if source.table is None]
    small = [with_scope(x.table, x.scope) for x in read if x.table is not None]
    patterns = tuple(TriplePattern(_S, predicate, _O) for predicate in SCHEMA_PREDICATES)
    while True:
        selected = [source.triples(spark, patterns).distinct().toArrow() for source in large]
        schema = KnownSchema([*small, *selected])
        if not large or set(schema.statements) <= set(patterns):
            return schema
        patterns = schema.statements
