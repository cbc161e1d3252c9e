"""Physical operators: what they have in common, and how they meet time.

An operator works in steps. In a step it gets, of each input, the rows that came (ordered by
`start`, none of them before the input's last watermark) and the input's new *watermark*: no later
row will start before it. It answers with rows of its own and with its own watermark, which keep the
same two promises. What it must remember between steps is its state; it drops what no later row can
meet.

    step(batches, watermarks, cut)  ->  (batch, watermark)

Some rows are known before their end is: an unmatched row of a left join, the last value of an
aggregate. Such an operator keeps them and holds its watermark back, until they end. When `cut` is
asked for it emits the pieces up to the least watermark W of its inputs instead, goes on from there,
and gives W or more as its own. Cutting changes no snapshot: it is how eager results, reports and
bounded memory come about (SEMANTICS.md section 5).

When all watermarks are INFINITY the input has ended, and everything is given out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import NEVER, Batch
from streamsparql.physical.state.parts import Stateful

StepResult = tuple[Batch, int]
"""What an operator gives in a step: rows, and its watermark."""

__all__ = ["INFINITY", "NEVER", "Operator", "Stateless", "StepResult"]


class Operator(Stateful, ABC):
    """The base of all physical operators; `names` are the columns of what it gives."""

    implements: ClassVar[tuple[type[Plan], ...]] = ()
    """The logical nodes that it computes."""
    family: ClassVar[str] = ""
    """The module of these nodes: explain draws the operators of a family in one colour."""
    state: ClassVar[str] = "none"
    """What it retains between steps, in a line."""

    def __init_subclass__(cls) -> None:
        if "family" not in cls.__dict__ and cls.implements:
            cls.family = cls.implements[0].__module__.rpartition(".")[2]

    def __init__(self, names: Sequence[str], *inputs: Operator) -> None:
        self.names = tuple(names)
        self.inputs = inputs
        self.node: Plan | None = None
        """The logical node that it computes, where it computes just one."""

    @abstractmethod
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        """Takes in what came of each input, and gives what is known by now."""

    def facts(self) -> str:
        """What sets this operator apart from others of its kind, for people to read."""
        return ""

    def due(self) -> bool:
        """Whether there is something to do in the next step even if no input brings news."""
        return False

    def nothing(self) -> Batch:
        """No rows of this operator's columns."""
        return Batch.empty(self.names)


class Stateless(Operator):
    """An operator that treats each row by itself and leaves its `start` alone."""

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,) = batches, watermarks
        return (self.apply(batch) if len(batch) else self.nothing()), watermark

    @abstractmethod
    def apply(self, batch: Batch) -> Batch:
        """The rows that come of a batch, which has at least one."""
