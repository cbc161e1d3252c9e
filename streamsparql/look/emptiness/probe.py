"""A second run of a query whose result is empty: it notes what its operators did not match.

The run reads the first items of the sources. Static data is not folded, so that operators over it
are counted, too. An observer retains samples of the input of the operators that have no output yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from streamsparql.algebra import expressions as e
from streamsparql.algebra.functions import Run
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.xsd.values import date_time_literal
from streamsparql.compiled import CompiledQuery
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import compile_expression
from streamsparql.physical.hidden import is_carried
from streamsparql.physical.lowering.lower import Lowered, TimeSlab
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.physical.operators.binary import shared_names
from streamsparql.physical.operators.filter import Filter
from streamsparql.physical.operators.join import Join
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput
from streamsparql.run.reports import Reporting

ITEMS = 500_000
"""The number of items after which a probe ends."""
TERMS, ROWS = 1_000, 20_000
"""The sizes of the samples of terms, and of rows."""


class Probe(Execution):
    """An execution over the first items of its sources, which it must be able to read again."""

    def __init__(
        self, query: CompiledQuery, run_input: RunInput, report: Reporting | None = None
    ) -> None:
        self.samples = Samples(run_input.started)
        super().__init__(query, run_input, report=report, observer=self.samples)
        self.samples.terms = self.terms
        self.whole = False
        """Whether all items were read."""

    def run(self, items: int) -> None:
        """Read the items, or the first of them."""
        for step in self.input_steps():
            self.step(*step)
            if self.accounting.read >= items:
                return
        self.whole = True

    @override
    def _lowered(self, plan: Plan, slab: TimeSlab | None) -> Lowered:
        self.catalog = replace(self.catalog, known=False)
        return super()._lowered(plan, slab)

    @cached_property
    @override
    def _noted_chunks(self) -> int | None:
        return None

    @override
    def _ids(self) -> Iterator[IntArray]:
        yield from super()._ids()
        yield from self.samples.ids()


@dataclass
class Truths:
    """How many rows a part of a condition is true for, false for, and an error for."""

    condition: Expression
    true: int = 0
    false: int = 0
    error: int = 0


@dataclass
class FilterSample:
    """The input of a filter that no row passed."""

    parts: list[Truths]
    names: tuple[str, ...]
    """The variables of the condition."""
    values: dict[str, list[IntArray]] = field(default_factory=dict)


@dataclass
class JoinSample:
    """The first rows of both sides of a join without results: shared columns and validities."""

    names: tuple[str, ...]
    sides: tuple[list[Batch], list[Batch]] = field(default_factory=lambda: ([], []))

    def side(self, k: int) -> Batch:
        """Return the rows of a side."""
        return Batch.concat(self.sides[k], self.names)


@dataclass
class TimeSpan:
    """The instants over which rows hold: from the first start to the last end."""

    start: int = INFINITY
    end: int = -1

    def add(self, rows: Batch) -> None:
        """Extend the span by rows."""
        self.start = min(self.start, int(rows.start.min()))
        self.end = max(self.end, int(rows.end.max()))


class Samples:
    """An observer that samples the input of the operators without output."""

    def __init__(self, started: int) -> None:
        self.terms: TermDictionary = TermDictionary()
        self._run = Run(date_time_literal(started))
        self.candidates: dict[tuple[Operator, str], set[int]] = {}
        """The terms at a place of triples that a pattern matches except for this place."""
        self.filters: dict[Operator, FilterSample] = {}
        self.joins: dict[Operator, JoinSample] = {}
        self.spans: dict[Operator, TimeSpan] = {}
        """The span of the input rows of an operator without output."""
        self._alive: set[Operator] = set()

    def observe(self, operator: Operator, inputs: Sequence[Batch], output: Batch) -> None:
        """Sample the input of an operator, until it has output."""
        if operator in self._alive or not any(map(len, inputs)):
            return
        if len(output):
            self._alive.add(operator)
            self._forget(operator)
            return
        match operator:
            case TriplePatternMatching():
                self._sample_pattern(operator, inputs[0])
            case Filter() if not any(map(is_carried, operator.names)):
                self._sample_filter(operator, inputs[0])
            case Join():
                self._sample_join(operator, inputs)
        if len(inputs) == 1:
            self.spans.setdefault(operator, TimeSpan()).add(inputs[0])

    def ids(self) -> Iterator[IntArray]:
        """Yield the ids of the terms in the samples."""
        for candidates in self.candidates.values():
            yield np.array(list(candidates), np.int64)
        for sample in self.filters.values():
            for arrays in sample.values.values():
                yield from arrays
        for join in self.joins.values():
            for batches in join.sides:
                for batch in batches:
                    yield from batch.columns.values()

    def _forget(self, operator: Operator) -> None:
        for samples in (self.filters, self.joins, self.spans):
            samples.pop(operator, None)
        for key in [key for key in self.candidates if key[0] is operator]:
            del self.candidates[key]

    def _sample_pattern(self, operator: TriplePatternMatching, triples: Batch) -> None:
        constants = operator.constants()
        for place, _ in constants:
            seen = self.candidates.setdefault((operator, place), set())
            if len(seen) >= TERMS:
                continue
            others = np.ones(len(triples), np.bool_)
            for column, constant in constants:
                if column != place:
                    others &= triples.columns[column] == constant
            seen.update(np.unique(triples.columns[place][others])[:TERMS].tolist())

    def _sample_filter(self, operator: Filter, rows: Batch) -> None:
        sample = self.filters.get(operator)
        if sample is None:
            condition = operator.condition
            parts = condition.args if isinstance(condition, e.And) else (condition,)
            names = {v.name for v in condition.walk() if isinstance(v, Variable)}
            known = tuple(name for name in operator.names if name in names)
            sample = self.filters[operator] = FilterSample([Truths(part) for part in parts], known)
        for part in sample.parts:
            true = int(self._holding(part.condition, rows))
            false = int(self._holding(e.Not(part.condition), rows))
            part.true, part.false = part.true + true, part.false + false
            part.error += len(rows) - true - false
        for name in sample.names:
            values = sample.values.setdefault(name, [])
            if sum(map(len, values)) < ROWS:
                values.append(np.unique(rows.columns[name])[:ROWS])

    def _holding(self, condition: Expression, rows: Batch) -> int:
        return int(compile_expression(condition, self.terms, self._run).holds(rows).sum())

    def _sample_join(self, operator: Join, inputs: Sequence[Batch]) -> None:
        left, right = operator.inputs
        names = tuple(shared_names(left.names, right.names))
        sample = self.joins.setdefault(operator, JoinSample(names))
        for side, rows in zip(sample.sides, inputs, strict=True):
            if len(rows) and sum(map(len, side)) < ROWS:
                side.append(rows.part(0, ROWS).project(names))
