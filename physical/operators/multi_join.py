"""The join of three or more inputs over intervals, without intermediate state.

At each instant it is the join of all inputs (ESWC 2008, Definition 11; SEMANTICS.md section 5). A
tree of binary joins has the same rows; it computes the join of some inputs once and retains it, and
its order is fixed before the data is known. Here only the inputs are retained, each in a sweep
area, and the order is chosen for each row.

A result has a row of each input that are compatible and overlap: as rows are pairwise compatible
and intervals pairwise overlap, a merged row with the intersection of the validities represents
those that it consists of. New rows of one input probe the areas of the others and are inserted,
then follow those of the next input, and so on: each combination is found once, by its last row in
this sequence.

The order of probes. A row *can ask* an input that shares a variable with it. An area counts the
candidates of each row before any pair is made (state/sweep_area.py). So where rows can ask several
inputs, each asks the one with the fewest candidates, and those that have none in one of them have
no result. The rows are divided by that choice, and each part is extended by the input that it asks,
until all inputs have been asked. This is the routing of CQELS (DERI TR 2010, section 5) without its
statistics: counts are those of the row's own keys at that moment, so there is nothing that lags
behind a change of the data.

        new rows of A           candidates in B, in C        extended by
        x = 1                   400     2                    C, then B
        x = 2                     0     9                    none: no result
        x = 3                     1     7                    B, then C

A step of little work is slow, so rows do not form a part of their own unless they save enough
pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from streamsparql.algebra import match
from streamsparql.limits import check_rows
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.hidden import is_stamp
from streamsparql.physical.kernels.intervals import BLOCK
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.binary import MIN_HEAP, RowMerger, StampValues, join_facts
from streamsparql.physical.operators.sliced import Sliced
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.key_index import many
from streamsparql.physical.state.parts import Stateful
from streamsparql.physical.state.probe_orders import ProbeOrder, ProbeOrders, TakenOrder
from streamsparql.physical.state.sweep_area import Candidates, Pairs, SweepArea

CHEAP = 4
"""Up to this number of candidates per row in one input, those in the others are not counted."""
RECOUNT = 8
"""An input that was best for all rows is asked without a comparison for up to this many steps."""
PART = 1 << 11
"""The number of pairs that a part of the rows must save, if they do not join the others."""

ChooseInput: TypeAlias = Callable[[Sequence[int], IntArray], IntArray]
"""Chooses the input to ask for each row: `counts[k, row]` candidates in the input `inputs[k]`.

The result has the place of the chosen input in `inputs` for each row.
"""


def fewest_candidates(inputs: Sequence[int], counts: IntArray) -> IntArray:
    """Choose for each row the input in which it has the fewest candidates.

    >>> fewest_candidates([1, 2], np.array([[400, 1], [2, 7]])).tolist()
    [1, 0]
    """
    least: IntArray = counts.argmin(0)
    return least


_Value = TypeVar("_Value")


class MultiJoin(Sliced):
    """The merged row of each combination of compatible rows, over the intersection."""

    implements = (match.BasicGraphPattern,)
    state = "all inputs, until no match can follow; results that start after the watermark"
    derived = ("_stages",)

    def __init__(
        self,
        inputs: Sequence[Operator],
        names: Sequence[str] | None = None,
        terms: StampValues | None = None,
        choose: ChooseInput = fewest_candidates,
    ) -> None:
        """Join inputs, of which the output has the columns `names`; None for all of them."""
        every = dict.fromkeys(name for each in inputs for name in each.names)
        super().__init__(tuple(every if names is None else names), *inputs)
        self._terms, self._choose = terms, choose
        self._shared = tuple(tuple(_shared_with_others(inputs, k)) for k in range(len(inputs)))
        self._areas = [
            SweepArea(each.names, shared) for each, shared in zip(inputs, self._shared, strict=True)
        ]
        self._results = Heap(self.names)
        self._columns = tuple(every)
        self._stages: dict[frozenset[int], _Stage] = {}
        self._orders = ProbeOrders(self._can_ask)

    @override
    def _consume(
        self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool
    ) -> StepResult:
        results: list[Batch] = []
        bounds = [min(_others(watermarks, k)) for k in range(len(batches))]
        areas = [[area] for area in self._areas]
        sequence = self._sequence(batches)
        for k in sequence:
            batch = batches[k]
            if all(map(_has_rows, _others(areas, k))):
                results += self._extended(batch, (k,), areas)
            retained = batch.end > bounds[k]
            self._areas[k].insert(batch.where(retained))
            if k != sequence[-1] and not retained.all():
                passing = self._areas[k].another()
                passing.insert(batch.where(~retained))
                areas[k].append(passing)
        for area, bound in zip(self._areas, bounds, strict=True):
            area.purge(bound)
        bound = min(watermarks)
        return self._results.through(results, bound), bound

    def _sequence(self, batches: Sequence[Batch]) -> list[int]:
        """Return the inputs that have new rows, in the sequence in which these are inserted.

        The input with the fewest rows is last: the new rows of the others meet its old rows only,
        often none, and then those few meet all.
        """
        sizes = [len(area) + len(batch) for area, batch in zip(self._areas, batches, strict=True)]
        present = [k for k, batch in enumerate(batches) if len(batch)]
        return sorted(present, key=lambda k: -sizes[k])

    def _extended(
        self, rows: Batch, order: ProbeOrder, areas: Sequence[Sequence[SweepArea]]
    ) -> Iterator[Batch]:
        """Yield the results of which rows of the inputs `order` are part."""
        stage = self._stage(order)
        for k, asking, pairs in self._choices(rows, stage, areas):
            self._orders.add((*order, k), asking)
            merged = self._merged(rows, pairs, (*order, k))
            if len(order) + 1 == len(self.inputs):
                yield from merged
            else:
                for each in merged:
                    yield from self._extended(each, (*order, k), areas)

    def _choices(
        self, rows: Batch, stage: _Stage, areas: Sequence[Sequence[SweepArea]]
    ) -> Iterator[tuple[int, int, Iterator[Pairs]]]:
        """Yield the inputs that rows ask next, with the number of these rows and their pairs."""
        if len(stage.can_ask) == 1:
            yield stage.first, len(rows), _query(areas[stage.first], rows)
            return
        first = Candidates.of(rows, areas[stage.first])
        candidates = int(first.count.sum())
        if stage.is_settled(candidates, len(rows)):
            if candidates:
                yield stage.first, len(rows), first.pairs()
            return
        asked = [
            first if k == stage.first else Candidates.of(rows, areas[k]) for k in stage.can_ask
        ]
        counts = np.array([each.count for each in asked])
        if many(int(counts.min(0).sum()), len(rows)):
            asked = [each.in_time() for each in asked]
            counts = np.array([each.count for each in asked])
        (alive,) = counts.min(0).nonzero()
        if not len(alive):
            return
        counts = counts[:, alive]
        cheapest = int(counts.sum(1).argmin())
        parts = list(_parts(counts, self._choose(stage.can_ask, counts), cheapest))
        stage.settle(stage.can_ask[cheapest], int(counts[cheapest].sum()), len(rows), len(parts))
        for place, chosen in parts:
            asking = alive if chosen is None else alive[chosen]
            pairs = asked[place].pairs(asking if len(asking) < len(rows) else None)
            yield stage.can_ask[place], len(asking), pairs

    def _merged(self, rows: Batch, pairs: Iterable[Pairs], order: ProbeOrder) -> Iterator[Batch]:
        """Yield the merged rows of pairs, in batches of a block or so."""
        merge = self._stage(order).merge
        waiting: list[Batch] = []
        size = 0
        last = len(order) == len(self.inputs)
        for probe, others, place in pairs:
            check_rows(len(probe) if last else 0, len(self.names))
            waiting.append(merge.rows(rows, probe, others, place))
            size += len(probe)
            if size >= BLOCK:
                yield Batch.concat(waiting)
                waiting, size = [], 0
        if waiting:
            yield Batch.concat(waiting)

    def _stage(self, order: ProbeOrder) -> _Stage:
        """Return what is known of rows of these inputs, in any order."""
        joined = frozenset(order)
        stage = self._stages.get(joined)
        if stage is None:
            rest = [k for k in range(len(self.inputs)) if k not in joined]
            read = {*self.names, *(name for k in rest for name in self._shared[k])}
            bound = {name for k in joined for name in self.inputs[k].names}
            names = [name for name in self._columns if name in bound and name in read]
            merge = RowMerger(names, self._terms)
            stage = self._stages[joined] = _Stage(self._can_ask(order), merge)
        return stage

    def _can_ask(self, order: ProbeOrder) -> tuple[int, ...]:
        """Return the inputs that rows of these inputs can ask; all others if there is none."""
        bound = {name for k in order for name in self.inputs[k].names}
        rest = [k for k in range(len(self.inputs)) if k not in order]
        return tuple(k for k in rest if not bound.isdisjoint(self._shared[k])) or tuple(rest)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        areas = {f"area {k}": area for k, area in enumerate(self._areas, 1)}
        return {**areas, MIN_HEAP: self._results, "orders": self._orders}

    @override
    def orders(self) -> Sequence[TakenOrder]:
        return self._orders.taken()

    @override
    def facts(self) -> str:
        shared = dict.fromkeys(name for names in self._shared for name in names)
        return join_facts(tuple(shared))


class _Stage:
    """What is known of rows of some inputs."""

    __slots__ = ("_left", "_limit", "can_ask", "first", "merge")

    def __init__(self, can_ask: tuple[int, ...], merge: RowMerger) -> None:
        self.can_ask = can_ask
        """The inputs that they can ask next."""
        self.first = can_ask[0] if can_ask else -1
        """The input of which the candidates are counted first."""
        self.merge = merge
        """The merger of their last input, which keeps the columns that are read later."""
        self._limit, self._left = 0.0, 0

    def is_settled(self, candidates: int, rows: int) -> bool:
        """Return whether rows can ask the first input without counting those of others."""
        if candidates <= CHEAP * rows:
            return True
        self._left -= 1
        return self._left >= 0 and candidates <= self._limit * rows

    def settle(self, first: int, candidates: int, rows: int, parts: int) -> None:
        """Count `first` first from now on; alone, for a while, if all rows asked it."""
        self.first = first
        self._limit = 2 * candidates / rows
        self._left = RECOUNT if parts == 1 else 0


def _query(areas: Iterable[SweepArea], rows: Batch) -> Iterator[Pairs]:
    return (pairs for area in areas for pairs in area.query(rows))


def _parts(
    counts: IntArray, choice: IntArray, cheapest: int
) -> Iterator[tuple[int, IntArray | None]]:
    """Yield the chosen inputs with their rows; None for all rows.

    Rows that save few pairs by their choice ask the input that is the cheapest for all together.
    """
    rest = np.ones(len(choice), np.bool_)
    for k in range(len(counts)):
        rows = np.flatnonzero(choice == k)
        if k != cheapest and int((counts[cheapest, rows] - counts[k, rows]).sum()) >= PART:
            rest[rows] = False
            yield k, rows
    if rest.all():
        yield cheapest, None
    elif rest.any():
        yield cheapest, np.flatnonzero(rest)


def _others(values: Sequence[_Value], k: int) -> list[_Value]:
    return [value for place, value in enumerate(values) if place != k]


def _has_rows(areas: Iterable[SweepArea]) -> bool:
    return any(map(len, areas))


def _shared_with_others(inputs: Sequence[Operator], k: int) -> Iterator[str]:
    """Yield the columns of an input that decide whether its rows match those of others."""
    for name in inputs[k].names:
        others = (each for place, each in enumerate(inputs) if place != k)
        if not is_stamp(name) and any(name in each.names for each in others):
            yield name
