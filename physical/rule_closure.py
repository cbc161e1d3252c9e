"""Recursive rules: a pipeline whose output is one of its inputs (SEMANTICS.md section 7).

At each instant the triples that the rules derive are fed back until they derive nothing new. The
operators of the pipeline meet each pair of rows once, so a round joins only what is new: this is
semi-naive evaluation.

The pipeline has two kinds of inputs. Rows from outside are complete up to the instant, so that
their watermark is the next one; of the triples that are fed back more may follow, so that theirs is
the instant itself. So an operator that waits for the absence of rows decides it at once if these
are from outside, or precede the instant (left of SEQ). There are no other cases: the translator
rejects rules that depend on the absence of their own triples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from streamsparql.algebra import closure
from streamsparql.algebra.graph import Construct
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import static_rows
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.physical.operators.event import EventLeftJoin
from streamsparql.physical.pipeline import Pipeline
from streamsparql.physical.rules_by_row import RulesByRow, has_twins
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.once import Once
from streamsparql.physical.state.parts import NamedRows, Stateful, Tables


class Feed(StreamAccess):
    """A leaf of the pipeline of rules: rows from outside, or the derived triples."""

    implements = ()
    family = "event"

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(name)
        self.names = tuple(names)

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
    scalars = ("_open", "_waits", "_by_row")
    encoded = ("inner",)
    version = 2

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
        self.inner = Pipeline(root, terms)
        self._derived = derived
        self._leaves = [feed for feed, _ in entering]
        self._ahead = [Heap(feed.names) for feed in self._leaves]
        self._known = Once(root.names)
        self._open: int | None = None  # the last instant, if more rows of it may follow
        self._waits = False
        self._rows = (
            RulesByRow(root, derived, self._leaves, rules, terms)
            if has_twins(root, derived)
            else None
        )
        self._by_row: bool | None = None if self._rows else False  # None until rows arrive
        self._from_start = [x for x in self.inner.operators if isinstance(x, EventLeftJoin)]

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        for heap, batch in zip(self._ahead, batches, strict=True):
            heap.push(batch)
        self._waits = any(operator.begin is None for operator in self._from_start)
        if self._waits:
            return self.nothing(), -1
        bound = min(watermarks)
        due = [heap.release(bound) for heap in self._ahead]
        if self._by_row is None and any(map(len, due)):
            self._by_row = _are_few(due)
        if self._by_row is None:
            return self.nothing(), bound
        if self._by_row:
            assert self._rows is not None
            return self._rows.consume(due, bound), bound
        static = [static_rows(batch) for batch in due]
        fixed = [batch.where(mask) for batch, mask in zip(due, static, strict=True)]
        due = [batch.where(~mask) for batch, mask in zip(due, static, strict=True)]
        instants = np.unique(np.concatenate([np.empty(0, np.int64), *(b.start for b in due)]))
        if self._open is not None and (not len(instants) or instants[0] != self._open):
            instants = np.append(self._open, instants)
        results: list[Batch] = []
        first = [0] * len(due)
        for t in instants.tolist():
            last = [int(batch.start.searchsorted(t, "right")) for batch in due]
            rows = [b.part(i, j) for b, i, j in zip(due, first, last, strict=True)]
            rows = [Batch.concat([one, two]) for one, two in zip(fixed, rows, strict=True)]
            results += self._completed(t, rows, watermarks)
            first, fixed = last, [batch.part(0, 0) for batch in fixed]
        self._open = int(instants[-1]) if len(instants) and instants[-1] >= bound else None
        if self._open is None and bound >= 0:
            self._advance(fixed, watermarks, bound)
        return Batch.concat(results, self.names), bound

    def _completed(
        self, t: int, rows: Sequence[Batch], watermarks: Sequence[int]
    ) -> Iterator[Batch]:
        """Feed the rows of an instant, and what the rules derive; yield what is new."""
        offered = {feed.stream: batch for feed, batch in zip(self._leaves, rows, strict=True)}
        marks = {
            feed.stream: min(mark, t + 1)
            for feed, mark in zip(self._leaves, watermarks, strict=True)
        }
        marks[self._derived.stream] = t
        for _ in range(closure.MAX_CLOSURE_ROUNDS):
            derived, _ = self.inner.step(offered, marks)
            new = self._known.consume(derived, t)
            if not len(new):
                return
            yield new
            offered = {self._derived.stream: new}
        raise closure.endless(self.rules, t)

    def _advance(self, rows: Sequence[Batch], watermarks: Sequence[int], bound: int) -> None:
        """Advance the pipeline to the bound: all instants before it are complete."""
        offered = {feed.stream: batch for feed, batch in zip(self._leaves, rows, strict=True)}
        marks = {
            feed.stream: min(mark, bound)
            for feed, mark in zip(self._leaves, watermarks, strict=True)
        }
        marks[self._derived.stream] = bound
        derived, _ = self.inner.step(offered, marks)
        assert not len(derived), "a rule was applied after its instant"
        self._known.consume(self.nothing(), bound)

    @override
    def due(self) -> bool:
        return self._waits and all(operator.begin is not None for operator in self._from_start)

    # -- state

    @override
    def parts(self) -> Mapping[str, Stateful]:
        ahead = {f"ahead {k}": heap for k, heap in enumerate(self._ahead)}
        if self._by_row and self._rows is not None:
            return {**ahead, "by row": self._rows}
        return {**ahead, "known": self._known}

    @override
    def size(self) -> int:
        return super().size() + sum(operator.size() for operator in self.inner.operators)

    @override
    def content(self) -> Iterator[NamedRows]:
        yield from super().content()
        for operator in self.inner.operators:
            for name, rows in operator.content():
                yield f"{type(operator).__name__} {name}", rows

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        yield from super().retained_ids()
        yield from self.inner.retained_ids()

    @override
    def forget(self) -> None:
        super().forget()
        for operator in self.inner.operators:
            operator.forget()

    @override
    def save(self) -> Tables:
        inner = {f"{_INNER}{name}": table for name, table in self.inner.save().items()}
        return {**super().save(), **inner}

    @override
    def load(self, tables: Mapping[str, pa.Table]) -> None:
        inner = {name: table for name, table in tables.items() if name.startswith(_INNER)}
        super().load({name: table for name, table in tables.items() if name not in inner})
        self.inner.load({name.removeprefix(_INNER): table for name, table in inner.items()})

    @override
    def facts(self) -> str:
        return "; ".join(
            " . ".join(" ".join(map(str, triple)) for triple in rule.template)
            for rule in self.rules
        )


_INNER = "rules/"

FEW_ROWS = 64
"""The average number of rows of an instant up to which rules are evaluated row by row."""


def _are_few(due: Sequence[Batch]) -> bool:
    instants = np.unique(np.concatenate([batch.start for batch in due]))
    return sum(map(len, due)) <= FEW_ROWS * len(instants)


def with_inner(operators: Iterable[Operator]) -> Iterator[Operator]:
    """Yield operators, and those in the pipelines of rules."""
    for operator in operators:
        yield operator
        if isinstance(operator, RuleClosure):
            yield from with_inner(operator.inner.operators)
