"""Physical operators: their common interface, and how they advance in time.

An operator works in steps. In a step it consumes, from each input, a batch of new rows (ordered by
`start`, none of them before the last watermark of the input) and the new *watermark* of the input:
no later row will start before it. It emits rows of its own and its own watermark, which keep the
same two promises. What it retains between steps is its state; it evicts what no later row can
match.

    step(batches, watermarks, cut)  ->  (batch, watermark)

Some rows hold before their end is known: an unmatched row of a left join, the last value of an
aggregate. An operator retains them until they are final, and its watermark stays at their start.
With `cut` it emits the pieces up to the least watermark W of its inputs instead, continues from
there, and its own watermark is at least W. A cut changes no snapshot: eager results, reports and
bounded memory depend on it (SEMANTICS.md section 5).

When all watermarks are INFINITY the input has ended, and the operator emits everything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from typing import ClassVar

from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import INFINITY
from streamsparql.display import Displayed
from streamsparql.overriding import override
from streamsparql.physical.batch import NEVER, Batch
from streamsparql.physical.state.parts import Stateful
from streamsparql.physical.state.probe_orders import TakenOrder

StepResult = tuple[Batch, int]
"""The output of a step: rows, and the watermark of the operator."""

__all__ = [
    "INFINITY",
    "NEVER",
    "Operator",
    "Stateless",
    "StepResult",
    "computed_rows",
    "inputs_first",
]


_LONGEST_LABEL = 300


class Operator(Stateful, Displayed, ABC):
    """The base of all physical operators; `names` are the columns of its output."""

    implements: ClassVar[tuple[type[Plan], ...]] = ()
    """The logical nodes that it computes."""
    family: ClassVar[str] = ""
    """The family of these nodes; pictures of plans colour operators by family."""
    state: ClassVar[str] = "none"
    """A description of its state, in one line."""
    monotone: ClassVar[bool] = False
    """Whether further rows of an input, at any instant, only lead to further rows of the output."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "family" not in cls.__dict__ and cls.implements:
            cls.family = cls.implements[0].family

    def __init__(self, names: Sequence[str], *inputs: Operator) -> None:
        self.names = tuple(names)
        self.inputs = inputs
        self.node: Plan | None = None
        """The logical node that it computes, if there is exactly one."""
        self.reason = ""
        """Why it computes that node, if another operator could."""

    @property
    def shown_inputs(self) -> tuple[Operator, ...]:
        """The operators that are shown below it: its inputs, or the operators inside."""
        return self.inputs

    @abstractmethod
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        """Consume new rows and watermarks of the inputs; emit the rows that are final."""

    def measure(self) -> None:
        """Measure the states of the operators inside, in a measured run."""

    def emit_at_once(self) -> None:
        """Emit rows as soon as they are found from now on, not in the order of their instants.

        It is called for monotone operators, before their first step. No row starts before the
        watermark, which the inputs may leave behind.
        """

    def facts(self) -> str:
        """Return the parameters that distinguish operators of this class, as text."""
        return ""

    def label(self) -> str:
        """Return the class and the parameters, for messages."""
        label = f"{type(self).__name__} {self.facts()}".rstrip()
        return label if len(label) <= _LONGEST_LABEL else f"{label[:_LONGEST_LABEL]}…"

    def orders(self) -> Sequence[TakenOrder]:
        """Return the orders in which rows met the inputs, where each row can have its own."""
        return ()

    def due(self) -> bool:
        """Return whether the next step has work even if no input changes."""
        return False

    def nothing(self) -> Batch:
        """Return a batch without rows that has the columns of the output."""
        return Batch.empty(self.names)


class Stateless(Operator):
    """An operator that handles each row by itself and does not change its `start`."""

    monotone = True

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,) = batches, watermarks
        return (self.apply(batch) if len(batch) else self.nothing()), watermark

    @abstractmethod
    def apply(self, batch: Batch) -> Batch:
        """Return the output for a batch, which has at least one row."""


def inputs_first(*roots: Operator, without_inputs: Container[Operator] = ()) -> list[Operator]:
    """Return each operator once, after its inputs; plans may be deep, so without recursion."""
    order: dict[Operator, None] = {}
    pending: list[tuple[Operator, bool]] = [(root, False) for root in reversed(roots)]
    while pending:
        operator, ready = pending.pop()
        if operator in order:
            continue
        if ready:
            order[operator] = None
        else:
            pending.append((operator, True))
            if operator not in without_inputs:
                pending.extend((below, False) for below in reversed(operator.inputs))
    return list(order)


def computed_rows(root: Operator) -> Batch:
    """Return the rows of operators that read static data only, in one step."""
    outputs: dict[Operator, Batch] = {}
    for operator in inputs_first(root):
        batches = [outputs[below] for below in operator.inputs]
        outputs[operator], watermark = operator.step(batches, [INFINITY] * len(batches), False)
        assert watermark == INFINITY, "static data has ended"
    return outputs[root]
