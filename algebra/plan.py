"""The base of all logical plan nodes, and the execution of a plan by definition.

Every operator of section 4 of SEMANTICS.md obeys one law, snapshot reducibility:

    tau_t(op(S1 .. Sk)) = op_static(tau_t(S1) .. tau_t(Sk))

So a `SnapshotOperator` only defines its effect on multisets (`static`); `at` implements the law for
all of them. Operators that depend on other instants (access, windows, the conversion of events to
snapshots) define `at` themselves.

In queries about events (SEMANTICS.md section 7) the same nodes have a second meaning: `events` is
the set of event solutions known at an instant, `occur` the operator's effect on such sets.

These definitions are small and slow on purpose: every other way to run a plan is tested against
them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Hashable, Iterator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.node import Node
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.streams import Element, Snapshot
from streamsparql.display import Displayed, PlanComparison, compare
from streamsparql.errors import EngineError
from streamsparql.overriding import override


class Occurrence(NamedTuple):
    """An event solution: `item` occurred over `[start, end]` and is known at `end`.

    A static solution has no occurrence: both are None, and `min` and `max` ignore them.
    """

    item: Any
    start: int | None = None
    end: int | None = None


Events = frozenset[Occurrence]


class Plan(Displayed, Node):
    """The base of all logical plan nodes; it is displayed as a tree."""

    family: ClassVar[str] = "shape"
    """The family of operators that this one belongs to; pictures of plans colour them by family."""

    def equivalent(self, other: Plan, trials: int = 200, seed: int = 0) -> PlanComparison:
        """Search for data over which another plan has different snapshots.

        >>> import streamsparql
        >>> one, other = (
        ...     streamsparql.compile(f"ASK {{ ?x <p> ?y FILTER(?y {op} 5) }}")
        ...     for op in (">", ">=")
        ... )
        >>> bool(one.logical.equivalent(other.logical))
        False
        """
        return compare(self, other, trials, seed)

    @cached_property
    def inputs(self) -> tuple[Plan, ...]:
        """The plans that this plan reads, left to right."""
        return tuple(part for part in self.parts() if isinstance(part, Plan))

    @property
    def operands(self) -> tuple[Plan, ...]:
        """The leading inputs, whose rows the operator reads; the others are patterns of EXISTS."""
        return self.inputs

    def with_inputs(self, *inputs: Plan) -> Plan:
        """Return a copy of the operator over other plans."""
        new = iter(inputs)
        parts = (next(new) if isinstance(part, Plan) else part for part in self.parts())
        return self.with_parts(tuple(parts))

    def operators(self) -> Iterator[Plan]:
        """Yield this plan and the plans below it, each object once, parents first."""
        pending: list[Plan] = [self]
        seen: set[int] = set()
        while pending:
            node = pending.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                pending.extend(reversed(node.inputs))

    def bottom_up(self, known: Container[int] = ()) -> Iterator[Plan]:
        """Yield this plan and the plans below it, each object once, inputs first.

        Plans whose id is in `known` when they are reached are skipped with all plans below them.
        """
        pending: list[tuple[Plan, bool]] = [(self, False)]
        seen: set[int] = set()
        while pending:
            node, ready = pending.pop()
            if ready:
                yield node
            elif id(node) not in seen and id(node) not in known:
                seen.add(id(node))
                pending.append((node, True))
                pending.extend((below, False) for below in reversed(node.inputs))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that this operator evaluates."""
        return tuple(part for part in self.parts() if isinstance(part, Expression))

    def at(self, t: int, inputs: Inputs) -> Snapshot[Any]:
        """Return the snapshot of this plan's result at the instant `t`, by definition."""
        raise EngineError(f"{type(self).__name__} emits events and has no snapshots")

    def events(self, t: int, inputs: Inputs) -> Events:
        """Return the event solutions of this plan that are known at the instant `t`."""
        raise EngineError(f"{type(self).__name__} is not defined over events")

    def elements(self, inputs: Inputs) -> list[Element[Hashable]]:
        """Return the result as a physical stream, in stream order, for a window above."""
        raise EngineError(f"a window cannot be applied to {type(self).__name__}")


class SnapshotOperator(Plan, ABC):
    """A snapshot-reducible operator, defined by its effect on snapshots of its `operands`."""

    def exposes(self, variable: Variable) -> bool:
        """Return whether the operands see this variable of the outer row of an EXISTS."""
        return True

    def within(self, inputs: Inputs) -> Inputs:
        """Return the inputs over which the operands are evaluated."""
        return inputs.without(*(v for v in inputs.outer if not self.exposes(v)))

    @abstractmethod
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Any]) -> Snapshot[Any]:
        """Apply the SPARQL operator to multisets (op_static)."""

    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        """Apply the operator to sets of event solutions."""
        raise EngineError(f"{type(self).__name__} is not defined over events")

    @override
    def at(self, t: int, inputs: Inputs) -> Snapshot[Any]:
        snapshot: Snapshot[Any] = _bottom_up(self, t, inputs, "static", "at")
        return snapshot

    @override
    def events(self, t: int, inputs: Inputs) -> Events:
        events: Events = _bottom_up(self, t, inputs, "occur", "events")
        return events


class Elementwise(SnapshotOperator):
    """An operator that maps each item separately, so it is defined on physical streams too."""

    @override
    def elements(self, inputs: Inputs) -> list[Element[Hashable]]:
        (operand,) = self.operands
        return [
            Element(result, start, end)
            for item, start, end in operand.elements(self.within(inputs))
            for result in self.static(start, inputs, Snapshot.of([item]))
        ]


def _bottom_up(root: SnapshotOperator, t: int, inputs: Inputs, apply: str, otherwise: str) -> Any:
    """Evaluate the operators below `root` before those above, without recursion."""
    first = (root, inputs, root.within(inputs), iter(root.operands), list[Any]())
    pending: list[tuple[SnapshotOperator, Inputs, Inputs, Iterator[Plan], list[Any]]] = [first]
    while True:
        node, outside, inside, rest, results = pending[-1]
        operand = next(rest, None)
        if operand is None:
            result = getattr(node, apply)(t, outside, *results)
            pending.pop()
            if not pending:
                return result
            pending[-1][4].append(result)
        elif isinstance(operand, SnapshotOperator):
            within = operand.within(inside)
            pending.append((operand, inside, within, iter(operand.operands), []))
        else:
            results.append(getattr(operand, otherwise)(t, inside))


def tie_breakers(*variables: Variable) -> tuple[Variable, ...]:
    """Return variables in the order in which their columns break ties: by name.

    >>> tie_breakers(Variable("b"), Variable("a"))
    (?a, ?b)
    """
    return tuple(sorted(set(variables), key=lambda variable: variable.name))
