"""The orders in which the rows of a join of several inputs asked the inputs, with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from streamsparql.overriding import override
from streamsparql.physical.state.parts import Stateful

ProbeOrder: TypeAlias = tuple[int, ...]
"""The places of inputs: that of the new rows first, then those that were asked."""


class TakenOrder(NamedTuple):
    """An order in which rows asked all inputs, and how many rows did."""

    order: ProbeOrder
    rows: int


def added_orders(runs: Iterable[Iterable[TakenOrder]]) -> tuple[TakenOrder, ...]:
    """Return the orders of several runs, with the sums of their rows.

    >>> [(taken.order, taken.rows) for taken in added_orders([[TakenOrder((0, 1), 5)]] * 2)]
    [((0, 1), 10)]
    """
    rows: Counter[ProbeOrder] = Counter()
    for run in runs:
        for taken in run:
            rows[taken.order] += taken.rows
    return tuple(TakenOrder(*each) for each in sorted(rows.items()))


class ProbeOrders(Stateful):
    """How many rows asked which input next, after which others.

    `can_ask` returns the inputs that rows of some inputs can ask next.

    >>> orders = ProbeOrders(lambda order: [k for k in range(3) if k not in order])
    >>> orders.add((0, 1), 90)
    >>> orders.add((0, 1, 2), 400)
    >>> orders.add((0, 2), 10)
    >>> [(taken.order, taken.rows) for taken in orders.taken()]
    [((0, 1, 2), 90), ((0, 2, 1), 10)]
    """

    encoded = ("_rows",)

    def __init__(self, can_ask: Callable[[ProbeOrder], Sequence[int]]) -> None:
        self._can_ask = can_ask
        self._rows: Counter[ProbeOrder] = Counter()

    def add(self, order: ProbeOrder, rows: int) -> None:
        """Count rows of all inputs of `order` but the last, which ask the last."""
        self._rows[order] += rows

    def taken(self) -> list[TakenOrder]:
        """Return the orders with the number of rows for which they were settled, in order.

        An order is settled by the last choice between several inputs: its rows are those that made
        that choice.
        """
        return [TakenOrder(*each) for each in sorted(self._settled())]

    def _settled(self) -> Iterator[tuple[ProbeOrder, int]]:
        for order, rows in self._rows.items():
            chosen = len(order) == 2 or len(self._can_ask(order[:-1])) > 1
            whole = self._completed(order)
            if chosen and whole is not None:
                yield whole, rows

    def _completed(self, order: ProbeOrder) -> ProbeOrder | None:
        """Return the order with the inputs that follow; None if there will be a choice."""
        while rest := self._can_ask(order):
            if len(rest) > 1:
                return None
            order = (*order, *rest)
        return order

    @override
    def own_table(self) -> pa.Table:
        orders = pa.array([list(order) for order in self._rows], pa.list_(pa.int64()))
        return pa.table({"#order": orders, "#rows": pa.array(self._rows.values(), pa.int64())})

    @override
    def restore_own(self, table: pa.Table) -> None:
        orders = map(tuple, table["#order"].to_pylist())
        self._rows = Counter(dict(zip(orders, table["#rows"].to_pylist(), strict=True)))
