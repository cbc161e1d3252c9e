"""Rewriting: phases of rules, each run to a fixpoint, with a trace.

A phase traverses the plan in rounds. A round visits each operator twice. Before its inputs, it
tries the rules that move operators down; an operator that was pushed down is pushed further when
the visit reaches its new place. After the inputs, it tries the rules that work bottom up. A subplan
that a round leaves unchanged is not visited again, and a shared subplan is rewritten once, so the
work is about one visit per operator. No step recurses, however long a chain of operators is.

`MAX_APPLICATIONS` and `MAX_ROUNDS` stop rules that undo each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from streamsparql.algebra.closure import Closure
from streamsparql.algebra.cost import Costs
from streamsparql.algebra.event import Detect
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import JOINS, continues_sequence
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.window import Window
from streamsparql.limits import active_meter

MAX_ROUNDS = 100
"""The maximum number of rounds of a phase."""
MAX_APPLICATIONS = 10_000
"""The maximum number of rule applications at one place; a rule may remove a chain stepwise."""


class Spot:
    """The place of a subplan in the plan: an input of an operator, and the operator's own spot.

    `plan` is the operator as it was on the way down; inputs to the left may have changed since.
    """

    __slots__ = ("above", "index", "plan")

    def __init__(self, plan: Plan, index: int, above: Spot | None) -> None:
        self.plan, self.index, self.above = plan, index, above


class Replacement(NamedTuple):
    """One application of a rule: a subplan, its replacement, and its spot, None at the root."""

    rule: str
    before: Plan
    after: Plan
    spot: Spot | None = None


@dataclass(frozen=True)
class Rewriting:
    """A rewritten plan, which has the `phi` of the original, and the replacements, in order."""

    plan: Plan
    trace: tuple[Replacement, ...] = ()

    def counts(self) -> dict[str, int]:
        """Return the number of applications of each rule, in the order of first use."""
        return dict(Counter(step.rule for step in self.trace))


_BELOW_EXISTS, _OVER_EVENTS, _INSIDE_CHAIN, _INSIDE_SEQUENCE = 1, 2, 4, 8
"""The context of an operator, as flags: it determines the rules that are tried there."""


class _Visit:
    """An operator during its visit, with the inputs rewritten so far."""

    __slots__ = ("done", "flags", "node", "original", "rest", "spot")

    def __init__(self, original: Plan, node: Plan, flags: int, spot: Spot | None = None) -> None:
        self.original = original
        self.node = node
        self.flags = flags
        self.spot = spot
        self.rest: Iterator[tuple[Plan, int]] = _inputs(node, flags)
        self.done: list[Plan] = []


Places = dict[tuple[int, int], tuple[Plan, Plan]]
"""Subplans and their rewritten form, by id and flags; the reference keeps the id valid."""


class Phase:
    """A set of rules that run together to a fixpoint."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules
        self._at = frozenset(kind for rule in rules for kind in rule.at)
        self._once = not any(rule.inside_chains for rule in rules)  # one round reaches each chain
        self._tables: dict[tuple[type[Plan], int, bool], tuple[Rule, ...]] = {}

    def with_costs(self, costs: Costs) -> Phase:
        """Return the phase with estimates bound to the rules that choose by cost."""
        if not any(rule.by_cost for rule in self.rules):
            return self
        return Phase(*(rule.with_costs(costs) for rule in self.rules))

    def run(self, plan: Plan, trace: list[Replacement]) -> Plan:
        """Rewrite a plan to the fixpoint; append the replacements to the trace."""
        settled: Places = {}
        for _ in range(1 if self._once else MAX_ROUNDS):
            before = len(trace)
            if not self._at.isdisjoint(map(type, plan.operators())):
                plan = self._round(plan, settled, trace)
            if len(trace) == before:
                return plan
        assert self._once, _endless(trace)
        return plan

    def _round(self, root: Plan, settled: Places, trace: list[Replacement]) -> Plan:
        done: Places = {}
        pending = [_Visit(root, self._rewritten(root, 0, False, trace, None), 0)]
        meter = active_meter()
        while True:
            visit = pending[-1]
            if meter is not None:
                meter.check()
            below, flags = next(visit.rest, (None, 0))
            if below is None:
                pending.pop()
                plan = self._finished(visit, settled, trace)
                done[id(visit.original), visit.flags] = (visit.original, plan)
                if not pending:
                    return plan
                pending[-1].done.append(plan)
                continue
            known = settled.get((id(below), flags)) or done.get((id(below), flags))
            if known is not None:
                visit.done.append(known[1])
            else:
                spot = Spot(visit.node, len(visit.done), visit.spot)
                node = self._rewritten(below, flags, False, trace, spot)
                pending.append(_Visit(below, node, flags, spot))

    def _finished(self, visit: _Visit, settled: Places, trace: list[Replacement]) -> Plan:
        node = visit.node
        if any(one is not other for one, other in zip(visit.done, node.inputs, strict=False)):
            node = node.with_inputs(*visit.done)
        node = self._rewritten(node, visit.flags, True, trace, visit.spot)
        if node is visit.original:
            settled[id(node), visit.flags] = (node, node)
        return node

    def _rewritten(
        self, node: Plan, flags: int, bottom_up: bool, trace: list[Replacement], spot: Spot | None
    ) -> Plan:
        """Return the operator after applying rules until none applies; append to the trace."""
        for _ in range(MAX_APPLICATIONS):
            for rule in self._applicable(type(node), flags, bottom_up):
                replacement = rule.apply(node)
                if replacement is not None:
                    trace.append(Replacement(rule.name, node, replacement, spot))
                    node = replacement
                    break
            else:
                return node
        raise AssertionError(_endless(trace))

    def _applicable(self, kind: type[Plan], flags: int, bottom_up: bool) -> tuple[Rule, ...]:
        key = (kind, flags, bottom_up)
        inside = flags & (_INSIDE_CHAIN if kind in JOINS else _INSIDE_SEQUENCE)
        if key not in self._tables:
            self._tables[key] = tuple(
                rule
                for rule in self.rules
                if kind in rule.at
                and rule.bottom_up == bottom_up
                and (rule.below_exists or not flags & _BELOW_EXISTS)
                and (rule.over_events or not flags & _OVER_EVENTS)
                and (rule.inside_chains or not inside)
            )
        return self._tables[key]


def _endless(trace: list[Replacement]) -> str:
    return f"rules undo each other: {', '.join({step.rule for step in trace[-9:]})}"


def _inputs(plan: Plan, flags: int) -> Iterator[tuple[Plan, int]]:
    """Yield the inputs with the flags of their context; a window's input is not rewritten."""
    inputs = plan.inputs
    kind = type(plan)
    if not inputs or issubclass(kind, Window):
        return
    flags &= ~(_INSIDE_CHAIN | _INSIDE_SEQUENCE)
    if kind in JOINS:
        flags |= _INSIDE_CHAIN
    elif kind in (Detect, Closure):
        flags |= _OVER_EVENTS
    rows = len(plan.operands)
    for k, below in enumerate(inputs):
        own = flags | _INSIDE_SEQUENCE if continues_sequence(plan, below) else flags
        yield below, own if k < rows else own | _BELOW_EXISTS
