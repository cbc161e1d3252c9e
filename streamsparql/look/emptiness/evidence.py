"""What is known of a run without rows: its counts, a probe of its data, and words for both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeGuard

import numpy as np

from streamsparql.algebra.access import AccessGraph, AccessStream
from streamsparql.algebra.group import Aggregation
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, Literal, Term
from streamsparql.algebra.window import Window
from streamsparql.algebra.xsd.numeric import NUMERIC_TYPES
from streamsparql.algebra.xsd.values import value_of
from streamsparql.compiled import CompiledQuery
from streamsparql.errors import Span
from streamsparql.look.emptiness.probe import Probe
from streamsparql.look.explain.boxes.phrases import plan_writer
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.hidden import FROM, TO
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators import match as physical
from streamsparql.run.execution import Execution
from streamsparql.sources import Reject
from streamsparql.text.visible import visible
from streamsparql.translator import syntax as s
from streamsparql.translator.sparql_text import Writer

_SHOWN = 5


class Source(NamedTuple):
    """A stream or a static graph, and its predicates."""

    name: str
    """As messages write it."""
    iri: IRI | None
    """None for the default graph."""
    stream: bool
    """Whether it is a stream; a graph may have the same IRI."""
    items: str
    """The number of its items or triples, as text."""
    predicates: Counter[Term]
    read: bool = False
    """Whether the pattern in question reads it."""


@dataclass(frozen=True)
class Evidence:
    """The execution whose counts are read, and a probe of its data, if the data can be read again.

    The probe may be the execution itself.
    """

    query: CompiledQuery
    execution: Execution
    probe: Probe | None = None
    rejects: Sequence[Reject] = ()
    """Late and rejected items that were not shown before."""

    # -- words

    @cached_property
    def write(self) -> Writer:
        """A writer with the query's prefixes, which names aggregates by their calls."""
        plain = plan_writer(self.query.prefixes)
        calls = {
            variable: plain.expression(call)
            for node in self.query.optimized.walk()
            if isinstance(node, Aggregation)
            for variable, call in node.aggregates
            if variable.hidden
        }

        def variable(of: Variable) -> str:
            return calls.get(of) or plain.variable(of)

        return Writer(self.query.prefixes, variable)

    def term(self, term: Term) -> str:
        """Return a term of the data as text, shortened if it is long."""
        text = visible(self.write.term(term))
        return text if len(text) <= 80 else f"{text[:79]}…"

    def values(self, terms: Sequence[Term], noun: str = "value") -> str:
        """Return the first few terms as text; numbers without their datatypes."""
        listed = ", ".join(map(self.value, terms[:_SHOWN]))
        more = len(terms) - _SHOWN
        return f"{listed} and {count_of(more, f'other {noun}')}" if more > 0 else listed

    def value(self, term: Term) -> str:
        """Return a term as text; a number without its datatype."""
        return term.lexical if has_numeric_value(term) else self.term(term)

    def pattern(self, pattern: TriplePattern) -> str:
        """Return a triple pattern as the query writes it."""
        return self.write.pattern(pattern)

    def patterns_below(self, operator: Operator) -> str:
        """Return the triple patterns that an operator reads, as text."""
        patterns = dict.fromkeys(
            self.pattern(each.pattern)
            for each in operators_below(operator)
            if isinstance(each, physical.TriplePatternMatching) and is_query_pattern(each.pattern)
        )
        listed = list(patterns)
        more = len(listed) - 2
        text = " . ".join(listed[:2]) or "VALUES"
        return f"{text} and {more} more" if more > 0 else text

    # -- places

    def span_of_pattern(self, pattern: TriplePattern) -> Span | None:
        """Return the place of a triple pattern; after a semicolon, of its predicate and object."""
        span = self.span_of(
            node
            for node in self.written()
            if isinstance(node, TriplePatternMatching) and node.pattern == pattern
        )
        for node in self.query.translation.syntax.walk():
            if isinstance(node, s.TriplePath) and node.span == span:
                between = Span(node.subject.span.end, node.predicate.span.start)
                if between.of(self.query.text).strip():
                    return node.predicate.span.to(node.object.span)
        return span

    def span_of(self, plans: Iterable[Plan]) -> Span | None:
        """Return the place of the first of these logical nodes that has one."""
        spans = self.query.translation.spans
        return next((spans[id(plan)][1] for plan in plans if id(plan) in spans), None)

    def written(self) -> Iterator[Plan]:
        """Yield the nodes of the plan that the text describes."""
        return self.query.translation.plan.operators()

    # -- counts

    def rows_in(self, operator: Operator) -> list[int]:
        """Return the number of rows that each input of an operator emitted."""
        return self.execution.pipeline.counts[operator].rows_in

    # -- data

    def like(self, operator: Operator) -> Operator | None:
        """Return the operator of the probe that computes the same; None if there is none."""
        if self.probe is None:
            return None
        if self.probe is self.execution:
            return operator
        key = type(operator), operator.facts()
        same = (o for o in self.probe.pipeline.operators if (type(o), o.facts()) == key)
        return next(same, None)

    def sources(self, pattern: TriplePattern) -> list[Source]:
        """Return all streams and graphs of the run; those that a pattern reads are marked."""
        streams, graphs = self._read_by(pattern)
        return [
            source._replace(read=source.iri in (streams if source.stream else graphs))
            for source in self._sources
        ]

    def _read_by(self, pattern: TriplePattern) -> tuple[set[IRI], set[IRI | None]]:
        """Return the streams and the graphs that a pattern reads; None is the default graph."""
        streams, graphs = set[IRI](), set[IRI | None]()
        for node in self.query.optimized.operators():
            step = isinstance(node, Path) and not is_query_pattern(pattern)
            if step or (isinstance(node, TriplePatternMatching) and node.pattern == pattern):
                for source in node.inputs[0].walk():
                    if isinstance(source, AccessStream):
                        streams.add(source.stream)
                    elif isinstance(source, AccessGraph):
                        named = [g for g in source.graphs if isinstance(g, IRI)]
                        every = self.execution.catalog.named if named != [*source.graphs] else ()
                        graphs.update([*named, *every, *[None] * source.background])
        return streams, graphs

    @cached_property
    def _sources(self) -> list[Source]:
        """All streams and graphs of the run."""
        return [*self._streams(), *self._graphs()]

    def _streams(self) -> Iterator[Source]:
        noting = self.probe or self.execution
        for name in self.execution.streams:
            iri, items = IRI(name), self.execution.sorters[name].accounting.read
            noted = noting.noted.get(name)
            counts = Counter[Term]() if noted is None else _terms(noting, noted.counts)
            yield Source(self.write.iri(iri), iri, True, count_of(items, "item"), counts)

    def _graphs(self) -> Iterator[Source]:
        catalog = self.execution.catalog
        graphs: dict[IRI | None, Batch] = {None: catalog.default}
        graphs |= dict(catalog.named.items())
        for iri, batch in graphs.items():
            ids, numbers = np.unique(batch.columns[TRIPLE[1]], return_counts=True)
            counts = dict(zip(ids.tolist(), numbers.tolist(), strict=True))
            name = "the default graph" if iri is None else f"the graph {self.write.iri(iri)}"
            predicates = _terms(self.execution, counts)
            yield Source(name, iri, False, count_of(len(batch), "triple"), predicates)


def _terms(execution: Execution, counts: Mapping[int, int]) -> Counter[Term]:
    terms = {term_id: execution.terms.term_of(term_id) for term_id in counts}
    return Counter(
        {term: counts[term_id] for term_id, term in terms.items() if isinstance(term, IRI)}
    )


def count_of(n: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count_of(1, "row"), count_of(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {noun}{'s' * (n != 1)}"


def has_numeric_value(term: Term | None) -> TypeGuard[Literal]:
    """Return whether a term is a literal with a numeric value."""
    return isinstance(term, Literal) and type(value_of(term)) in NUMERIC_TYPES


def operators_below(operator: Operator) -> Iterator[Operator]:
    """Yield an operator and all below it, each once, from left to right."""
    pending, seen = [operator], set[Operator]()
    while pending:
        each = pending.pop()
        if each not in seen:
            seen.add(each)
            yield each
            pending += reversed(each.inputs)


def windows_below(operator: Operator) -> list[Window]:
    """Return the logical windows below an operator."""
    windows = (getattr(each, "window", None) for each in operators_below(operator))
    return list(dict.fromkeys(window for window in windows if isinstance(window, Window)))


def is_query_pattern(pattern: TriplePattern) -> bool:
    """Return whether a pattern is one of the query's text: a step of a property path is not."""
    return {FROM, TO}.isdisjoint(variable.name for variable in pattern.variables())
