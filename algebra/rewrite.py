"""Rewriting: rules run to a fixpoint, with a trace of what they did.

The rules are in `rules`, one per file. Here they stand in phases, each an ordered tuple that is run
until nothing applies any more, since some only make sense after others: first a plan is simplified
and its filters go down, then joins are ordered by cost, then filters go between the joins and the
columns that nobody reads are dropped. (A projection between two joins would keep them from being
ordered.)

A phase goes over the plan in rounds. A round visits each operator twice: before its inputs, where
rules that move things down are tried, so that what is pushed down is pushed on when its new place
is visited; and after them, where rules that fold things up are tried. A subplan that a round leaves
as it is, is not visited again, and one that stands in several places is rewritten once; so the work
is about one visit per operator, and nothing recurses, however deep a plan is.

Why it ends. First phase: each rule takes away operators other than filters, or operators from below
a filter, a condition or a slice (these only go down), or parts of an expression, and none brings
back what those before it in this list took away. Second phase: one round, and the order of a chain
is a function of its parts that gives an ordered chain back. Third phase: filters go down; a basic
graph pattern is parted only to take one in. Last phase: a projection is put only where it drops a
column that is bound below, so each step leaves fewer columns somewhere and more nowhere.
`MOST_TIMES` and `MOST_ROUNDS` are nets below this argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from streamsparql.algebra import event, filter, graph, group, join, match, shape
from streamsparql.algebra.cost import Costs, Statistics
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.ask_less import ask_less
from streamsparql.algebra.rules.decide_filters import decide_filters
from streamsparql.algebra.rules.drop_distinct import drop_distinct
from streamsparql.algebra.rules.drop_order import drop_order
from streamsparql.algebra.rules.drop_projections import drop_projections
from streamsparql.algebra.rules.drop_reduced import drop_reduced
from streamsparql.algebra.rules.drop_units import drop_units
from streamsparql.algebra.rules.drop_unread import drop_unread
from streamsparql.algebra.rules.fold_constants import fold_constants
from streamsparql.algebra.rules.fold_tables import fold_tables
from streamsparql.algebra.rules.merge_filters import merge_filters
from streamsparql.algebra.rules.merge_projections import merge_projections
from streamsparql.algebra.rules.order_joins import order_joins
from streamsparql.algebra.rules.propagate_empty import propagate_empty
from streamsparql.algebra.rules.properties import inputs_of
from streamsparql.algebra.rules.prune_columns import prune_columns
from streamsparql.algebra.rules.push_conditions import push_conditions
from streamsparql.algebra.rules.push_filters_below_windows import push_filters_below_windows
from streamsparql.algebra.rules.push_filters_down import push_filters_down
from streamsparql.algebra.rules.push_filters_into_joins import push_filters_into_joins
from streamsparql.algebra.rules.push_filters_into_prefixes import push_filters_into_prefixes
from streamsparql.algebra.rules.push_filters_into_unions import push_filters_into_unions
from streamsparql.algebra.rules.push_filters_left import push_filters_left
from streamsparql.algebra.rules.push_slices import push_slices
from streamsparql.algebra.window import Window

MOST_ROUNDS = 100
"""How often a phase goes over a plan at most."""
MOST_TIMES = 10_000
"""How often rules apply at one place at most: a chain of operators can be dropped one by one."""


class Rule(NamedTuple):
    """A rule, the operators that it is tried at, and where it is sound.

    `upwards`: it is tried when the inputs are done. `asked`: it holds in the pattern of an EXISTS.
    `events`: it holds below Detect. `inner`: it is tried also where the operator above is a join.
    """

    apply: Callable[[Plan], Plan | None]
    at: tuple[type[Plan], ...]
    upwards: bool = False
    asked: bool = True
    events: bool = False
    inner: bool = True

    @property
    def name(self) -> str:
        """What the trace calls it."""
        function: Any = getattr(self.apply, "func", self.apply)
        return str(function.__name__)


class Spot:
    """Where a subplan stands: as an input of an operator, which has a spot itself.

    The operator is as it was on the way down: inputs that are done may have changed since.
    """

    __slots__ = ("above", "index", "plan")

    def __init__(self, plan: Plan, index: int, above: Spot | None) -> None:
        self.plan, self.index, self.above = plan, index, above


class Step(NamedTuple):
    """One use of a rule: a subplan, what took its place, and its spot, None at the root."""

    rule: str
    before: Plan
    after: Plan
    spot: Spot | None = None


@dataclass(frozen=True)
class Rewriting:
    """A plan with the same `phi` as the one given, and how it came about."""

    plan: Plan
    trace: tuple[Step, ...] = ()

    def counts(self) -> dict[str, int]:
        """How often each rule was used, in the order of first use."""
        return dict(Counter(step.rule for step in self.trace))


# -- one phase -------------------------------------------------------------------------------------

_ASKED, _EVENTS, _INNER = 1, 2, 4


class _Visit:
    """An operator that is being visited: with its rewritten inputs, as far as they are."""

    __slots__ = ("came", "done", "flags", "node", "rest", "spot")

    def __init__(self, came: Plan, node: Plan, flags: int, spot: Spot | None = None) -> None:
        self.came = came
        self.node = node
        self.flags = flags
        self.spot = spot
        self.rest: Iterator[tuple[Plan, int]] = _below(node, flags)
        self.done: list[Plan] = []


Places = dict[tuple[int, int], tuple[Plan, Plan]]
"""What a subplan became, by its id and where it stands; kept alive as long as the id counts."""


class Phase:
    """Rules that run together, until none of them applies any more."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules
        self._at = frozenset(kind for rule in rules for kind in rule.at)
        self._once = not any(rule.inner for rule in rules)  # then one round gets to each chain
        self._tables: dict[tuple[type[Plan], int, bool], tuple[Rule, ...]] = {}

    def run(self, plan: Plan, trace: list[Step]) -> Plan:
        """The plan after all rounds; what was done is added to the trace."""
        settled: Places = {}
        for _ in range(1 if self._once else MOST_ROUNDS):
            before = len(trace)
            if not self._at.isdisjoint(_kinds(plan)):
                plan = self._round(plan, settled, trace)
            if len(trace) == before:
                return plan
        assert self._once, f"there is no end of {', '.join({x.rule for x in trace[-9:]})}"
        return plan

    def _round(self, root: Plan, settled: Places, trace: list[Step]) -> Plan:
        done: Places = {}
        pending = [_Visit(root, self._rewritten(root, 0, False, trace, None), 0)]
        while True:
            visit = pending[-1]
            below, flags = next(visit.rest, (None, 0))
            if below is None:
                pending.pop()
                found = self._finished(visit, settled, trace)
                done[id(visit.came), visit.flags] = (visit.came, found)
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

    def _finished(self, visit: _Visit, settled: Places, trace: list[Step]) -> Plan:
        node = visit.node
        inputs = inputs_of(node)
        if any(one is not other for one, other in zip(visit.done, inputs, strict=False)):
            node = node.with_inputs(*visit.done)
        node = self._rewritten(node, visit.flags, True, trace, visit.spot)
        if node is visit.came:
            settled[id(node), visit.flags] = (node, node)
        return node

    def _rewritten(
        self, node: Plan, flags: int, upwards: bool, trace: list[Step], spot: Spot | None
    ) -> Plan:
        """The operator, after each rule has been tried until none applies."""
        for _ in range(MOST_TIMES):
            for rule in self._tried(type(node), flags, upwards):
                found = rule.apply(node)
                if found is not None:
                    trace.append(Step(rule.name, node, found, spot))
                    node = found
                    break
            else:
                return node
        raise AssertionError(f"there is no end of {', '.join({x.rule for x in trace[-9:]})}")

    def _tried(self, kind: type[Plan], flags: int, upwards: bool) -> tuple[Rule, ...]:
        key = (kind, flags, upwards)
        if key not in self._tables:
            self._tables[key] = tuple(
                rule
                for rule in self.rules
                if kind in rule.at
                and rule.upwards == upwards
                and (rule.asked or not flags & _ASKED)
                and (rule.events or not flags & _EVENTS)
                and (rule.inner or not flags & _INNER)
            )
        return self._tables[key]


def _kinds(plan: Plan) -> set[type[Plan]]:
    """The operators that a plan is made of."""
    seen: set[int] = set()
    kinds: set[type[Plan]] = set()
    pending = [plan]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            kinds.add(type(node))
            pending.extend(inputs_of(node))
    return kinds


def _below(plan: Plan, flags: int) -> Iterator[tuple[Plan, int]]:
    """The inputs, and where they stand. What is below a window is left as it is."""
    inputs = inputs_of(plan)
    kind = type(plan)
    if not inputs or issubclass(kind, Window):
        return
    flags &= ~_INNER
    if kind in _CHAINS:
        flags |= _INNER
    elif kind in (event.Detect, event.Closure):
        flags |= _EVENTS
    rows = 1 if kind in _ASKING else 2 if kind is join.LeftJoin else len(inputs)
    for k, below in enumerate(inputs):
        yield below, flags if k < rows else flags | _ASKED


# -- the rules -------------------------------------------------------------------------------------

_CONDITIONED = (
    filter.Filter,
    join.LeftJoin,
    shape.Extend,
    shape.OrderBy,
    group.Aggregation,
    group.Annotate,
    event.EqLeftJoin,
    event.SeqRightJoin,
)
_CHAINS = (join.Join, match.BasicGraphPattern)
_ASKING = (filter.Mark, filter.SemiJoin, filter.AntiJoin)
_OF_ROWS = (
    filter.Filter,
    *_ASKING,
    join.Join,
    join.LeftJoin,
    join.Minus,
    join.Union,
    shape.Distinct,
    shape.Extend,
    shape.Number,
    shape.Projection,
    shape.Reduced,
    group.Aggregation,
    group.Annotate,
)
_CAN_BE_EMPTY = (
    *_OF_ROWS,
    match.BasicGraphPattern,
    match.TriplePatternMatching,
    shape.OrderBy,
    shape.Slice,
    graph.Graph,
)
_READS_NO_ORDER = (
    *_CHAINS,
    *_ASKING,
    join.LeftJoin,
    join.Minus,
    join.Union,
    group.Aggregation,
    shape.Number,
    graph.Ask,
    graph.Construct,
    graph.Describe,
)
_FILTER = (filter.Filter,)
_ABOVE = (
    filter.Filter,
    *_CHAINS,
    *_ASKING,
    join.LeftJoin,
    join.Minus,
    join.Union,
    shape.Extend,
    shape.Number,
    group.Aggregation,
    group.Annotate,
    graph.Ask,
    graph.Construct,
    graph.Describe,
)

_FOLDING = (
    Rule(decide_filters, (filter.Filter, join.LeftJoin)),
    Rule(propagate_empty, _CAN_BE_EMPTY, upwards=True),
    Rule(fold_tables, _OF_ROWS, upwards=True, asked=False),
)
_PUSHING = (
    Rule(merge_filters, _FILTER, events=True),
    Rule(push_filters_into_joins, _FILTER),
    Rule(push_filters_left, _FILTER),
    Rule(push_filters_into_unions, _FILTER),
    Rule(push_filters_down, _FILTER),
    Rule(push_filters_below_windows, _FILTER),
)

SIMPLIFY = Phase(
    Rule(fold_constants, _CONDITIONED, events=True),
    Rule(drop_reduced, (shape.Reduced,), events=True),
    Rule(ask_less, (graph.Ask, *_ASKING)),
    Rule(drop_order, _READS_NO_ORDER),
    Rule(merge_projections, (shape.Projection,), events=True),
    Rule(drop_projections, _ABOVE, asked=False),
    Rule(push_slices, (shape.Slice,)),
    Rule(drop_distinct, (shape.Distinct,)),
    *_FOLDING,
    *_PUSHING,
    Rule(push_conditions, (join.LeftJoin,)),
    Rule(drop_units, (join.Join,), upwards=True),
)
"""What makes a plan smaller, and its filters early."""

SETTLE = Phase(*_PUSHING, Rule(push_filters_into_prefixes, _FILTER))
"""What puts filters between joins, once their order is settled."""

PRUNE = Phase(
    Rule(merge_projections, (shape.Projection,)),
    Rule(drop_projections, _ABOVE, asked=False),
    Rule(drop_unread, (shape.Projection,), asked=False),
    Rule(prune_columns, (shape.Projection, *_ABOVE), asked=False),
    Rule(fold_tables, _OF_ROWS, upwards=True, asked=False),
)
"""What makes rows narrow."""


def order(costs: Costs) -> Phase:
    """The rule that orders joins, of whole chains, by these costs."""
    return Phase(Rule(partial(order_joins, costs=costs), _CHAINS, inner=False))


def phases(statistics: Statistics | None = None) -> tuple[Phase, ...]:
    """All rules, in the phases in which they run."""
    return SIMPLIFY, order(Costs(statistics)), SETTLE, PRUNE


def rewrite(
    plan: Plan,
    rules: tuple[Phase, ...] | None = None,
    statistics: Statistics | None = None,
) -> Rewriting:
    """The plan that the rules lead to. Its snapshots are those of the plan, at every instant.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> plan = Filter(equal("?y", "1"), Join(triples("?x p ?y"), triples("?x q ?z")))
    >>> found = rewrite(plan)
    >>> print(sketch(found.plan))
    BasicGraphPattern(Filter(?y = 1, ?x p ?y), ?x q ?z)
    >>> found.counts()
    {'push_filters_into_joins': 1, 'order_joins': 1}
    """
    trace: list[Step] = []
    for phase in phases(statistics) if rules is None else rules:
        plan = phase.run(plan, trace)
    return Rewriting(plan, tuple(trace))
