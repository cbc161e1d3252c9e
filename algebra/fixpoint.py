"""Rewriting: phases of rules, each run until no rule applies any more, with a trace.

A phase goes over the plan in rounds. A round visits each operator twice: before its inputs, where
rules that move operators down are tried, so that what is pushed down is pushed on when its new
place is visited; and after them, where rules that work bottom up are tried. A subplan that a round
leaves as it is, is not visited again, and one that stands in several places is rewritten once; so
the work is about one visit per operator; nothing recurses, however long a chain of operators is.

`MAX_APPLICATIONS` and `MAX_ROUNDS` stop rules that undo each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from streamsparql.algebra.cost import Costs
from streamsparql.algebra.event import Closure, Detect
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import JOINS
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.window import Window

MAX_ROUNDS = 100
"""How often a phase goes over a plan at most."""
MAX_APPLICATIONS = 10_000
"""How often rules apply at one place at most: a chain of operators can be removed one by one."""


class Spot:
    """The place of a subplan: an input of an operator, which has a spot itself.

    The operator is as it was on the way down: inputs that are done may have changed since.
    """

    __slots__ = ("above", "index", "plan")

    def __init__(self, plan: Plan, index: int, above: Spot | None) -> None:
        self.plan, self.index, self.above = plan, index, above


class Replacement(NamedTuple):
    """One application of a rule: a subplan, what replaced it, and its spot, None at the root."""

    rule: str
    before: Plan
    after: Plan
    spot: Spot | None = None


@dataclass(frozen=True)
class Rewriting:
    """A plan with the same `phi` as the one that was rewritten, and the replacements, in order."""

    plan: Plan
    trace: tuple[Replacement, ...] = ()

    def counts(self) -> dict[str, int]:
        """How often each rule was applied, in the order of first use."""
        return dict(Counter(step.rule for step in self.trace))


_BELOW_EXISTS, _OVER_EVENTS, _INSIDE_CHAIN = 1, 2, 4
"""Where an operator stands, as flags: which rules may be tried there."""


class _Visit:
    """An operator that is being visited, with the inputs that have been rewritten so far."""

    __slots__ = ("done", "flags", "node", "original", "rest", "spot")

    def __init__(self, original: Plan, node: Plan, flags: int, spot: Spot | None = None) -> None:
        self.original = original
        self.node = node
        self.flags = flags
        self.spot = spot
        self.rest: Iterator[tuple[Plan, int]] = _inputs(node, flags)
        self.done: list[Plan] = []


Places = dict[tuple[int, int], tuple[Plan, Plan]]
"""Subplans, with what became of them, by id and flags; kept alive as long as the id counts."""


class Phase:
    """Rules that run together, until none of them applies any more."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules
        self._at = frozenset(kind for rule in rules for kind in rule.at)
        self._once = not any(rule.inside_chains for rule in rules)  # one round reaches each chain
        self._tables: dict[tuple[type[Plan], int, bool], tuple[Rule, ...]] = {}

    def with_costs(self, costs: Costs) -> Phase:
        """Return the phase with the estimates that its rules choose by."""
        if not any(rule.by_cost for rule in self.rules):
            return self
        return Phase(*(rule.with_costs(costs) for rule in self.rules))

    def run(self, plan: Plan, trace: list[Replacement]) -> Plan:
        """Return the plan after all rounds; append the replacements to the trace."""
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
        while True:
            visit = pending[-1]
            below, flags = next(visit.rest, (None, 0))
            if below is None:
                pending.pop()
                found = self._finished(visit, settled, trace)
                done[id(visit.original), visit.flags] = (visit.original, found)
                if not pending:
                    return found
                pending[-1].done.append(found)
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
        """Return what the operator becomes once no rule applies any more."""
        for _ in range(MAX_APPLICATIONS):
            for rule in self._tried(type(node), flags, bottom_up):
                found = rule.apply(node)
                if found is not None:
                    trace.append(Replacement(rule.name, node, found, spot))
                    node = found
                    break
            else:
                return node
        raise AssertionError(_endless(trace))

    def _tried(self, kind: type[Plan], flags: int, bottom_up: bool) -> tuple[Rule, ...]:
        key = (kind, flags, bottom_up)
        if key not in self._tables:
            self._tables[key] = tuple(
                rule
                for rule in self.rules
                if kind in rule.at
                and rule.bottom_up == bottom_up
                and (rule.below_exists or not flags & _BELOW_EXISTS)
                and (rule.over_events or not flags & _OVER_EVENTS)
                and (rule.inside_chains or not flags & _INSIDE_CHAIN)
            )
        return self._tables[key]


def _endless(trace: list[Replacement]) -> str:
    return f"rules undo each other: {', '.join({step.rule for step in trace[-9:]})}"


def _inputs(plan: Plan, flags: int) -> Iterator[tuple[Plan, int]]:
    """Yield the inputs with where they stand. What is below a window stays as it is."""
    inputs = plan.inputs
    kind = type(plan)
    if not inputs or issubclass(kind, Window):
        return
    flags &= ~_INSIDE_CHAIN
    if kind in JOINS:
        flags |= _INSIDE_CHAIN
    elif kind in (Detect, Closure):
        flags |= _OVER_EVENTS
    rows = len(plan.operands)
    for k, below in enumerate(inputs):
        yield below, flags if k < rows else flags | _BELOW_EXISTS
