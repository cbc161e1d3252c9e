"""Recursive rules by column: a pipeline whose output is one of its inputs.

The triples that the rules derive are fed back until they derive nothing new. The operators of the
pipeline meet each pair of rows once, so a round joins only what is new: this is semi-naive
evaluation. Rules that are *monotone* in their own triples are evaluated for all instants of a step
at once, others instant by instant.

**Many instants at once.** The definition completes one instant after the other. Let `T(K)` be the
triples that the rules derive in one round from a set of triples `K`. If no rule requires an
absence, `T` is monotone, and a triple of `T(K)` that ends at `t` follows from those triples of `K`
that end at `t` or before. So the part of the least fixpoint up to `t` is the least fixpoint of that
part, whatever follows it: completing one instant after the other leads to the least fixpoint of
all. Every fair order of rounds leads to it, too. So a round takes the new triples of all instants,
and the watermark of the triples that are fed back stays at the first of these instants.

Operators then emit rows at once (`Operator.emit_at_once`). A step that has not ended after as many
rounds as one instant may take continues with the first instant that has new triples, then with the
next, so that the error about rules without end names an instant.

**Instant by instant.** Rows from outside are complete up to the instant, so that their watermark is
the next one; of the triples that are fed back more may follow, so that theirs is the instant
itself. So an operator that waits for the absence of rows decides it at once if these are from
outside, or precede the instant (left of SEQ). There are no other cases: the translator rejects
rules that depend on the absence of their own triples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import inf

import numpy as np
import pyarrow as pa

from streamsparql.algebra import closure
from streamsparql.algebra.graph import Construct
from streamsparql.errors import LimitExceeded
from streamsparql.limits import Limits, active_meter, metered
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.kernels.occurrences import static_rows
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.physical.pipeline import Pipeline
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.once import Once, Seen
from streamsparql.physical.state.parts import NamedRows, Stateful, Tables


class RulesByColumn(Stateful):
    """The rules of a stratum: rows from outside are consumed, and the derived triples returned."""

    scalars = ("open",)
    encoded = ("pipeline",)
    derived = ("rounds",)

    def __init__(
        self,
        root: Operator,
        derived: StreamAccess,
        leaves: Sequence[StreamAccess],
        rules: Sequence[Construct],
        terms: TermDictionary,
    ) -> None:
        self.pipeline = Pipeline(root, terms)
        self.at_once = all(operator.monotone for operator in self.pipeline.operators)
        """Whether all instants of a step are completed together."""
        if self.at_once:
            for operator in self.pipeline.operators:
                operator.emit_at_once()
        self._names = root.names
        self._rules = tuple(rules)
        self._most = closure.most_triples(rules)
        self._derived, self._leaves = derived.stream, [leaf.stream for leaf in leaves]
        self.known = Once(root.names)
        """The triples of the instant that is open."""
        self.open: int | None = None
        """The last instant, if more rows of it may follow."""
        self.rounds = 0
        """The number of rounds of the last step."""

    def consume(self, batches: Sequence[Batch], marks: Sequence[int], bound: int) -> Batch:
        """Consume the rows of each leaf up to a bound; no later row starts before its mark."""
        self.rounds = 0
        static = [static_rows(batch) for batch in batches]
        fixed = [batch.where(mask) for batch, mask in zip(batches, static, strict=True)]
        moving = [batch.where(~mask) for batch, mask in zip(batches, static, strict=True)]
        instants = np.unique(np.concatenate([batch.start for batch in moving]))
        if self.open is not None and (not len(instants) or instants[0] != self.open):
            instants = np.append(self.open, instants)
        results: list[Batch] = []
        if len(instants):
            complete = self._together if self.at_once else self._one_by_one
            results += complete(instants, fixed, moving, marks)
            fixed = [batch.part(0, 0) for batch in fixed]
        self.open = int(instants[-1]) if len(instants) and instants[-1] >= bound else None
        if bound >= 0:
            self._advance(fixed, marks, bound)
        return Batch.concat(results, self._names).ordered()

    def _one_by_one(
        self,
        instants: IntArray,
        fixed: Sequence[Batch],
        moving: Sequence[Batch],
        marks: Sequence[int],
    ) -> Iterator[Batch]:
        """Complete each instant; yield the triples that are derived."""
        first = [0] * len(moving)
        for t in instants.tolist():
            last = [int(batch.start.searchsorted(t, "right")) for batch in moving]
            rows = [batch.part(*at) for batch, *at in zip(moving, first, last, strict=True)]
            offered, own = self._offered(fixed, rows), self._marks(t, t + 1, marks)
            for _ in range(closure.MAX_CLOSURE_ROUNDS):
                new = self.known.consume(self._round(t, offered, own), t)
                if not len(new):
                    break
                yield new
                if len(self.known) > self._most:
                    raise closure.too_many(self._rules, t)
                offered = {self._derived: new}
            else:
                raise closure.endless(self._rules, t)
            first, fixed = last, [batch.part(0, 0) for batch in fixed]

    def _together(
        self,
        instants: IntArray,
        fixed: Sequence[Batch],
        moving: Sequence[Batch],
        marks: Sequence[int],
    ) -> Iterator[Batch]:
        """Complete all instants; yield the triples that are derived."""
        first, last = int(instants[0]), int(instants[-1])
        own = self._marks(first, last + 1, marks)
        offered = self._offered(fixed, moving)
        known, ahead = Seen(self._names), Heap(self._names)
        known.consume(self.known.batch)
        of_one = 0  # the rounds since the present instant is completed by itself
        t = first
        for k in count():
            new = known.consume(self._round(t, offered, own))
            if len(new):
                yield new
            if len(known) > self._most:
                self._check_triples(known)
            if k >= closure.MAX_CLOSURE_ROUNDS:  # instant by instant from here on
                ahead.push(new)
                of_one = of_one + 1 if ahead.first == t else 0
                if of_one >= closure.MAX_CLOSURE_ROUNDS:
                    raise closure.endless(self._rules, t)
                t = ahead.first
                new = ahead.release(t)
            if not len(new):
                break
            offered = {self._derived: new}
        self.known.batch = known.rows_from(last)

    def _round(self, t: int, offered: Mapping[str, Batch], marks: Mapping[str, int]) -> Batch:
        """Feed rows from an instant on; return the triples that the rules derive from them."""
        self.rounds += 1
        if self._most == inf or active_meter() is not None:
            return self.pipeline.step(offered, marks)[0]
        try:
            with metered(_PAIRS, "the rules"):
                return self.pipeline.step(offered, marks)[0]
        except LimitExceeded as error:
            if error.limit != "rows":
                raise
            raise closure.too_many(self._rules, t) from None

    def _check_triples(self, known: Seen) -> None:
        instants, counts = np.unique(known.starts(), return_counts=True)
        if counts.max() > self._most:
            raise closure.too_many(self._rules, int(instants[counts.argmax()]))

    def _advance(self, rows: Sequence[Batch], marks: Sequence[int], bound: int) -> None:
        """Advance the pipeline to the bound: all instants before it are complete."""
        offered = self._offered(rows)
        complete = bound if self.open is None else bound + 1
        derived, _ = self.pipeline.step(offered, self._marks(bound, complete, marks))
        assert not len(derived), "a rule was applied after its instant"
        self.known.consume(Batch.empty(self._names), bound)

    def _offered(self, *parts: Sequence[Batch]) -> dict[str, Batch]:
        """Return the rows of each leaf, in parts that follow each other."""
        rows = (Batch.concat(of_leaf) for of_leaf in zip(*parts, strict=True))
        return dict(zip(self._leaves, rows, strict=True))

    def _marks(self, derived: int, leaves: int, marks: Sequence[int]) -> dict[str, int]:
        """Return the watermarks of the triples that are fed back, and of the leaves."""
        own = (min(mark, leaves) for mark in marks)
        return {**dict(zip(self._leaves, own, strict=True)), self._derived: derived}

    # -- state

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"known": self.known}

    @override
    def size(self) -> int:
        return super().size() + sum(operator.size() for operator in self.pipeline.operators)

    @override
    def content(self) -> Iterator[NamedRows]:
        yield from super().content()
        for operator in self.pipeline.operators:
            for name, rows in operator.content():
                yield f"{type(operator).__name__} {name}", rows

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        yield from super().retained_ids()
        yield from self.pipeline.retained_ids()

    @override
    def forget(self) -> None:
        super().forget()
        for operator in self.pipeline.operators:
            operator.forget()

    @override
    def save(self) -> Tables:
        inner = {f"{_PIPELINE}{name}": table for name, table in self.pipeline.save().items()}
        return {**super().save(), **inner}

    @override
    def load(self, tables: Mapping[str, pa.Table]) -> None:
        inner = {name: table for name, table in tables.items() if name.startswith(_PIPELINE)}
        super().load({name: table for name, table in tables.items() if name not in inner})
        self.pipeline.load({name.removeprefix(_PIPELINE): x for name, x in inner.items()})


_PIPELINE = "pipeline/"
_PAIRS = Limits(rows=4 * closure.MAX_CLOSURE_TRIPLES)
"""The pairs of rows in one operator and round, from which on rules that make terms have no end."""
