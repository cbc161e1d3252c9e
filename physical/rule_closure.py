"""Recursive rules: the triples that rules derive from their own triples (SEMANTICS.md section 7).

At each instant the triples that the rules derive are fed back until they derive nothing new: in a
pipeline, by column (rules_by_column.py), or in functions on single rows (rules_by_row.py). A round
of the pipeline calls each operator, whatever it consumes. Where a round feeds few rows, functions
on single rows are faster. The choice is revised in each step, by the number of rows that a round
has fed lately. Both retain the same rows, which move from one to the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from streamsparql.algebra import closure
from streamsparql.algebra.graph import Construct
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.physical.operators.event import EventLeftJoin
from streamsparql.physical.pipeline import OperatorCounts, Pipeline
from streamsparql.physical.rules_by_column import RulesByColumn
from streamsparql.physical.rules_by_row import RulesByRow, has_twins
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.parts import Stateful


class Feed(StreamAccess):
    """A leaf of the pipeline of rules: rows from outside, or the derived triples."""

    implements = ()
    family = "event"
    monotone = True

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(name)
        self.names = tuple(names)
        self.outside: Operator | None = None
        """The operator from which rows enter."""

    @property
    @override
    def shown_inputs(self) -> tuple[Operator, ...]:
        return () if self.outside is None else (self.outside,)

    @classmethod
    def of_triples(cls, name: str) -> Feed:
        """Return the leaf of derived triples."""
        return cls(name, (*TRIPLE, SINCE))

    @override
    def facts(self) -> str:
        return self.stream if self.stream == "derived" else f"input {self.stream}"


class RuleClosure(Operator):
    """The triples that recursive rules derive, each once.

    `root` computes them from the `derived` triples, and from rows that enter from outside.
    """

    implements = (closure.Closure,)
    state = "that of the operators of the rules"
    scalars = ("_waits", "_by_row", "_bound", "_pace", "_since_moved")
    version = 3

    def __init__(
        self,
        root: Operator,
        derived: Feed,
        entering: Sequence[tuple[Feed, Operator]],
        rules: Sequence[Construct],
        terms: TermDictionary,
    ) -> None:
        super().__init__(root.names, *(rows for _, rows in entering))
        self.rules = tuple(rules)
        for feed, rows in entering:
            feed.outside = rows
        leaves = [feed for feed, _ in entering]
        self._ahead = [Heap(feed.names) for feed in leaves]
        self._columns = RulesByColumn(root, derived, leaves, rules, terms)
        self._rows = (
            RulesByRow(root, derived, leaves, rules, terms) if has_twins(root, derived) else None
        )
        self._waits = False
        self._by_row = self._rows is not None
        self._bound = -1  # all instants before it are complete
        self._pace = [1, 1, 1, 1]  # of late: rows from outside, all rows, instants, rounds
        self._since_moved = 0  # the rows that were fed since the retained rows moved
        self._from_start = [x for x in self.inner.operators if isinstance(x, EventLeftJoin)]

    @property
    @override
    def shown_inputs(self) -> tuple[Operator, ...]:
        return (self.inner.root,)

    @property
    def inner(self) -> Pipeline:
        """The operators of the rules."""
        return self._columns.pipeline

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        for heap, batch in zip(self._ahead, batches, strict=True):
            heap.push(batch)
        self._waits = any(operator.begin is None for operator in self._from_start)
        if self._waits:
            return self.nothing(), -1
        bound = min(watermarks)
        due = [heap.release(bound) for heap in self._ahead]
        rows = sum(map(len, due))
        instants = len(np.unique(np.concatenate([batch.start for batch in due])))
        if rows and self._rows is not None and self._changes(rows, instants):
            self._move(self._rows)
        if self._by_row and self._rows is not None:
            derived = self._rows.consume(due, bound)
            rounds = self._rows.rounds
        else:
            derived = self._columns.consume(due, watermarks, bound)
            rounds = self._columns.rounds
        if rows:
            self._note(rows, rows + len(derived), instants, rounds)
        self._bound = bound
        return derived, bound

    # -- by row, or by column

    def _changes(self, rows: int, instants: int) -> bool:
        """Return whether a step is evaluated in the other way than the last one.

        Moving the retained rows must cost less than what has been fed since they moved.
        """
        consumed, fed, of_instants, rounds = self._pace
        together = self._columns.at_once
        expected = ROUNDS if together else instants * rounds / of_instants
        few = rows * fed / consumed <= FEW_ROWS * expected
        return few != self._by_row and self._since_moved >= self.size()

    def _note(self, *numbers: int) -> None:
        """Note the rows from outside, all rows that were fed, the instants and the rounds."""
        self._since_moved += numbers[1]
        self._pace = [a + b for a, b in zip(self._pace, numbers, strict=True)]
        if self._pace[0] > _LATELY:
            self._pace = [max(1, each // 2) for each in self._pace]

    def _move(self, rows: RulesByRow) -> None:
        """Move the retained rows."""
        columns, t = self._columns, self._bound
        if self._by_row:
            columns.open, columns.known.batch = rows.open, rows.take_known()
            for operator, batches in rows.take_rows():
                operator.put_rows(batches, t)
        else:
            rows.put_known(columns.known.batch)
            rows.open, columns.known.batch = columns.open, self.nothing()
            for operator in rows.operators:
                rows.put_rows(operator, operator.take_rows(), t)
        self._by_row, self._since_moved = not self._by_row, 0

    @override
    def due(self) -> bool:
        return self._waits and all(operator.begin is not None for operator in self._from_start)

    # -- state

    @override
    def measure(self) -> None:
        self.inner.measured = True
        self.inner.state()
        if self._by_row and self._rows is not None:
            self.reason = "row by row where rounds feed few rows: operators count the others only"
            for operator, rows in self._rows.sizes():
                counts = self.inner.counts[operator]
                counts.state, counts.peak = rows, max(counts.peak, rows)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        parts: dict[str, Stateful] = {f"ahead {k}": heap for k, heap in enumerate(self._ahead)}
        if self._rows is not None:
            parts["by row"] = self._rows
        return {**parts, "by column": self._columns}

    @override
    def facts(self) -> str:
        return "; ".join(
            " . ".join(" ".join(map(str, triple)) for triple in rule.template)
            for rule in self.rules
        )


FEW_ROWS = 64
"""The number of rows that a round feeds up to which rules are evaluated row by row."""
ROUNDS = 4
"""The number of rounds that are expected for many instants at once."""
_LATELY = 1 << 12
"""From this number of rows on, earlier ones count half for what is expected."""


def with_inner(operators: Iterable[Operator]) -> Iterator[Operator]:
    """Yield operators, each after those in its pipeline of rules."""
    for operator in operators:
        if isinstance(operator, RuleClosure):
            yield from with_inner(operator.inner.operators)
        yield operator


def counts_of(pipeline: Pipeline) -> dict[Operator, OperatorCounts]:
    """Return the work of all operators, with those in pipelines of rules."""
    counts: dict[Operator, OperatorCounts] = {}
    for operator, own in pipeline.counts.items():
        if isinstance(operator, RuleClosure):
            counts.update(counts_of(operator.inner))
        counts[operator] = own
    return counts
