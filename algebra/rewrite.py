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

Why it ends: each rule makes its plan smaller by some measure that the others of its phase do not
make larger, in this order: the number of operators other than filters (folding, units, empty plans,
distinct, order, reduced, slices over projections), then the number of operators below a filter or a
condition (the filters go down, never up), then the size of expressions. `order_joins` is a function
of the parts of a chain and gives itself back when it is asked again. Pruning puts a projection only
where it drops a column that is bound below, and moves it down. `MOST_ROUNDS` is a net below this
argument.
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


class Step(NamedTuple):
    """One use of a rule: a subplan, and what took its place."""

    rule: str
    before: Plan
    after: Plan


@dataclass(frozen=True)
class Rewriting:
    """A plan with the same `phi` as the one given, and how it came about."""

    plan: Plan
    trace: tuple[Step, ...] = ()

    def counts(self) -> dict[str, int]:
        """How often each rule was used, in the order of first use."""
        return dict(Counter(step.rule for step in self.trace))


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

SIMPLIFY = (
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

SETTLE = (*_PUSHING, Rule(push_filters_into_prefixes, _FILTER))
"""What puts filters between joins, once their order is settled."""

PRUNE = (
    Rule(merge_projections, (shape.Projection,)),
    Rule(drop_projections, _ABOVE, asked=False),
    Rule(drop_unread, (shape.Projection,), asked=False),
    Rule(prune_columns, (shape.Projection, *_ABOVE), asked=False),
    Rule(fold_tables, _OF_ROWS, upwards=True, asked=False),
)
"""What makes rows narrow."""


def order(costs: Costs) -> tuple[Rule, ...]:
    """The rule that orders joins, of whole chains, by these costs."""
    return (Rule(partial(order_joins, costs=costs), _CHAINS, inner=False),)


def phases(statistics: Statistics | None = None) -> tuple[tuple[Rule, ...], ...]:
    """All rules, in the phases in which they run."""
    return SIMPLIFY, order(Costs(statistics)), SETTLE, PRUNE


def rewrite(
    plan: Plan,
    rules: tuple[tuple[Rule, ...], ...] | None = None,
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
        plan = _Phase(phase, trace).run(plan)
    return Rewriting(plan, tuple(trace))


# -- one phase -------------------------------------------------------------------------------------

_ASKED, _EVENTS, _INNER = 1, 2, 4


class _Visit:
    """An operator that is being visited: with its rewritten inputs, as far as they are."""

    __slots__ = ("came", "done", "flags", "node", "rest")

    def __init__(self, came: Plan, node: Plan, flags: int) -> None:
        self.came = came
        self.node = node
        self.flags = flags
        self.rest: Iterator[tuple[Plan, int]] = _below(node, flags)
        self.done: list[Plan] = []


class _Phase:
    """Runs the rules of one phase."""

    def __init__(self, rules: tuple[Rule, ...], trace: list[Step]) -> None:
        self._rules = rules
        self._trace = trace
        self._tables: dict[tuple[type[Plan], int, bool], tuple[Rule, ...]] = {}
        self._settled: dict[tuple[int, int], Plan] = {}

    def run(self, plan: Plan) -> Plan:
        for _ in range(MOST_ROUNDS):
            before = len(self._trace)
            plan = self._round(plan)
            if len(self._trace) == before:
                break
        return plan

    def _round(self, root: Plan) -> Plan:
        done: dict[tuple[int, int], tuple[Plan, Plan]] = {}
        pending = [self._begun(root, 0)]
        while True:
            visit = pending[-1]
            below = next(visit.rest, None)
            if below is None:
                pending.pop()
                found = self._finished(visit)
                done[id(visit.came), visit.flags] = (visit.came, found)
                if not pending:
                    return found
                pending[-1].done.append(found)
            elif (id(below[0]), below[1]) in self._settled:
                visit.done.append(below[0])
            elif (id(below[0]), below[1]) in done:
                visit.done.append(done[id(below[0]), below[1]][1])
            else:
                pending.append(self._begun(*below))

    def _begun(self, came: Plan, flags: int) -> _Visit:
        return _Visit(came, self._rewritten(came, flags, upwards=False), flags)

    def _finished(self, visit: _Visit) -> Plan:
        node = visit.node
        if any(one is not other for one, other in zip(visit.done, node.inputs, strict=False)):
            node = node.with_inputs(*visit.done)
        node = self._rewritten(node, visit.flags, upwards=True)
        if node is visit.came:
            self._settled[id(node), visit.flags] = node
        return node

    def _rewritten(self, node: Plan, flags: int, upwards: bool) -> Plan:
        """The operator, after each rule has been tried until none applies."""
        found: Plan | None = node
        while found is not None:
            node = found
            found = None
            for rule in self._tried(type(node), flags, upwards):
                found = rule.apply(node)
                if found is not None:
                    self._trace.append(Step(rule.name, node, found))
                    break
        return node

    def _tried(self, kind: type[Plan], flags: int, upwards: bool) -> tuple[Rule, ...]:
        key = (kind, flags, upwards)
        if key not in self._tables:
            self._tables[key] = tuple(
                rule
                for rule in self._rules
                if kind in rule.at
                and rule.upwards == upwards
                and (rule.asked or not flags & _ASKED)
                and (rule.events or not flags & _EVENTS)
                and (rule.inner or not flags & _INNER)
            )
        return self._tables[key]


def _below(plan: Plan, flags: int) -> Iterator[tuple[Plan, int]]:
    """The inputs, and where they stand. What is below a window is left as it is."""
    inputs = plan.inputs
    if isinstance(plan, Window):
        return iter(())
    flags &= ~_INNER
    if isinstance(plan, _CHAINS):
        flags |= _INNER
    if isinstance(plan, event.Detect | event.Closure):
        flags |= _EVENTS
    rows = len(inputs)
    if isinstance(plan, _ASKING):
        rows = 1
    elif isinstance(plan, join.LeftJoin):
        rows = 2
    return iter([(x, flags if k < rows else flags | _ASKED) for k, x in enumerate(inputs)])
