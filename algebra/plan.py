"""The base of all logical plan nodes, and how a plan executes its own meaning.

Every operator of section 4 of SEMANTICS.md obeys one law, snapshot reducibility:

    tau_t(op(S1 .. Sk)) = op_static(tau_t(S1) .. tau_t(Sk))

So an `Operator` only says what it does to multisets (`static`), and `at` is the law itself, written
once. The operators that look across instants (access, windows, the passage from events to
snapshots) define `at` themselves.

Where a query is about events (SEMANTICS.md section 7) the same nodes have a second reading:
`events` is the set of event solutions known at an instant, `occur` what an operator does to them.

These definitions are small and slow on purpose: they are what every other way of running a plan is
tested against.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Hashable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.node import Node
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.streams import Element, Snapshot
from streamsparql.display import Comparison, Displayed, compare
from streamsparql.errors import EngineError
from streamsparql.overriding import override


class Occurrence(NamedTuple):
    """An event solution: `item` occurred over `[start, end]` and is known at `end`.

    What is static has no occurrence, (None, None): it is neutral in min and max.
    """

    item: Any
    start: int | None = None
    end: int | None = None


Events = frozenset[Occurrence]


class Plan(Displayed, Node):
    """The base of all logical plan nodes. It prints as a tree."""

    def equivalent(self, other: Plan, trials: int = 200, seed: int = 0) -> Comparison:
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
        """The plans that this one reads, left to right."""
        return tuple(part for part in self.parts() if isinstance(part, Plan))

    @property
    def operands(self) -> tuple[Plan, ...]:
        """The first of the inputs: those whose rows it reads. The others are patterns of EXISTS."""
        return self.inputs

    def with_inputs(self, *inputs: Plan) -> Plan:
        """The same operator over other plans."""
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

        Plans whose id is `known`, when their turn comes, are left out with all that is below them.
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
        """The snapshot of this plan's result at the instant `t`: its definition, executed."""
        raise EngineError(f"{type(self).__name__} gives events, not snapshots")

    def events(self, t: int, inputs: Inputs) -> Events:
        """The event solutions of this plan that are known at the instant `t`."""
        raise EngineError(f"{type(self).__name__} is not defined over events")

    def elements(self, inputs: Inputs) -> list[Element[Hashable]]:
        """This plan's result as a physical stream, in stream order: what a window is applied to."""
        raise EngineError(f"a window cannot stand above {type(self).__name__}")


class SnapshotOperator(Plan, ABC):
    """A snapshot-reducible operator, defined by what it does to the snapshots of its `operands`."""

    def exposes(self, variable: Variable) -> bool:
        """Whether a variable of EXISTS' outer row is the same one below here."""
        return True

    def within(self, inputs: Inputs) -> Inputs:
        """What the operands are evaluated over."""
        return inputs.without(*(v for v in inputs.outer if not self.exposes(v)))

    @abstractmethod
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Any]) -> Snapshot[Any]:
        """op_static: the SPARQL operator on multisets."""

    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        """The operator on sets of event solutions."""
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
    """An operator that treats each item by itself, so that it has a meaning on streams too."""

    @override
    def elements(self, inputs: Inputs) -> list[Element[Hashable]]:
        (operand,) = self.operands
        return [
            Element(made, start, end)
            for item, start, end in operand.elements(self.within(inputs))
            for made in self.static(start, inputs, Snapshot.of([item]))
        ]


def _bottom_up(root: SnapshotOperator, t: int, inputs: Inputs, apply: str, otherwise: str) -> Any:
    """Evaluates operators below `root` before those above, with no recursion."""
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
    """Variables in the order in which columns break ties: by name.

    >>> tie_breakers(Variable("b"), Variable("a"))
    (?a, ?b)
    """
    return tuple(sorted(set(variables), key=lambda variable: variable.name))
