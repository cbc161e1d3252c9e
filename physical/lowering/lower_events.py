"""The lowering of patterns of events: the operators below a `Detect` (SEMANTICS.md section 7).

Below a `Detect` a node is defined over sets of event solutions, and has other operators than over
snapshots. The place of a plan has the bound of its rows (`At.events`): no event that takes that
long is part of a result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from streamsparql.algebra import access, event, graph, group, join, match, shape
from streamsparql.algebra import filter as f
from streamsparql.algebra.bounds import bound_of
from streamsparql.algebra.expressions import OCCURRENCE
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import variables_in
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import BlankNode
from streamsparql.algebra.traversal import descend
from streamsparql.physical.expressions.occurrence import EventCondition, EventExpression
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.operators.event import (
    EqJoin,
    EqLeftJoin,
    EventJoin,
    EventLeftJoin,
    NeverBefore,
    SeqJoin,
    SeqRightJoin,
)
from streamsparql.physical.operators.event_absence import SeqWithout
from streamsparql.physical.operators.event_sets import (
    Detect,
    DistinctEvents,
    FirstToEnd,
    LastToStart,
)
from streamsparql.physical.operators.filter import Filter
from streamsparql.physical.operators.shape import Extend, projected_to

if TYPE_CHECKING:
    from streamsparql.physical.lowering.lower import At, Lowered, Lowering


def lower_detect(low: Lowering, node: event.Detect, at: At, events: Lowered) -> Lowered:
    """Lower the conversion of events to snapshots."""
    return low.made(Detect(events.operator, low.times, low.terms))


def lower_event_union(
    low: Lowering, node: access.Merge | join.Union, at: At, first: Lowered
) -> Lowered:
    """Lower the union of sources, or of branches."""
    places = zip(node.inputs[1:], at.of_inputs(node)[1:], strict=True)
    others = [low.rows(part, place) for part, place in places]
    return low.made(low.union([first.operator, *others]))


def lower_pattern(low: Lowering, node: match.BasicGraphPattern, at: At, first: Lowered) -> Lowered:
    """Lower matchings, joined from left to right."""
    rows = first.operator
    for matching, place in zip(node.matchings[1:], at.of_inputs(node)[1:], strict=True):
        rows = EventJoin(rows, low.rows(matching, place), _bound(at))
    return low.made(rows)


def lower_pairs(low: Lowering, node: join.Join | event.EqJoin, at: At, left: Lowered) -> Lowered:
    """Lower a join, or simultaneous events."""
    right = low.rows(node.right, at.of_inputs(node)[1])
    kind = EventJoin if isinstance(node, join.Join) else EqJoin
    return low.made(kind(left.operator, right, _bound(at)))


def lower_sequence(low: Lowering, node: event.SeqJoin, at: At, left: Lowered) -> Lowered:
    """Lower a sequence, without the rows of a side that lead to no other pairs."""
    rows, right = left.operator, low.rows(node.right, at.of_inputs(node)[1])
    if _differ_in_time(node.left, ends=True):
        rows = FirstToEnd(rows, _bound(at))
    if _differ_in_time(node.right, ends=False):
        right = LastToStart(right)
    return low.made(SeqJoin(rows, right, _bound(at)))


def _differ_in_time(plan: Plan, ends: bool) -> bool:
    """Return whether many rows of a plan may differ only in their ends, or only in their starts.

    In a sequence this is so if one part determines the variables of the other, which it pairs with.
    """
    match plan:
        case f.Filter() | shape.Extend():
            return _differ_in_time(plan.input, ends)
        case shape.Projection(variables, rows):
            narrower = not set(scope(rows).possible) <= set(variables)
            return (narrower and not _is_simple(rows)) or _differ_in_time(rows, ends)
        case event.SeqJoin(left, right):
            one, other = (set(scope(part).possible) for part in (left, right))
            return other <= one if ends else one <= other
        case join.Join() | match.BasicGraphPattern():
            bound = Counter(v for part in plan.inputs for v in scope(part).possible)
            return any(all(bound[v] > 1 for v in scope(part).possible) for part in plan.inputs)
    return False


def lower_optional(
    low: Lowering,
    node: join.LeftJoin | event.SeqRightJoin | event.EqLeftJoin,
    at: At,
    left: Lowered,
) -> Lowered:
    """Lower an optional operator, with the filters of its optional side."""
    right = low.rows(node.right, at.of_inputs(node)[1])
    condition = _condition(low, node.condition, at)
    own = bound_of(node.condition)
    kind = _OPTIONAL[type(node)]
    operator = kind(left.operator, right, _bound(at), condition=condition, own=own)
    return low.made(_continued(low, node, operator))


OptionalOperator: TypeAlias = EventLeftJoin | SeqRightJoin | EqLeftJoin | NeverBefore
_OPTIONAL: Mapping[type[Plan], type[EventLeftJoin | SeqRightJoin | EqLeftJoin]] = {
    join.LeftJoin: EventLeftJoin,
    event.SeqRightJoin: SeqRightJoin,
    event.EqLeftJoin: EqLeftJoin,
}


def lower_never_before(low: Lowering, node: event.NeverBefore, at: At, left: Lowered) -> Lowered:
    """Lower the absence of earlier events."""
    right = low.rows(node.right, at.of_inputs(node)[1])
    condition = _condition(low, node.condition, at)
    operator = NeverBefore(left.operator, right, condition, bound_of(node.condition))
    return low.made(_continued(low, node, operator))


def _continued(low: Lowering, node: Plan, operator: OptionalOperator) -> OptionalOperator:
    """Return an operator with the evidence from before the slab, if it is known."""
    if low.slab is not None and node in low.slab.evidence:
        operator.continue_at(low.slab.begin, low.slab.evidence[node])
    return operator


def lower_seq_without(low: Lowering, node: event.SeqWithout, at: At, left: Lowered) -> Lowered:
    """Lower a sequence without an event in between."""
    _, *places = at.of_inputs(node)
    right, absent = map(low.rows, (node.right, node.absent), places)
    return low.made(SeqWithout(left.operator, right, absent, _bound(at)))


def _bound(at: At) -> int:
    assert at.events is not None
    return at.events


def _condition(low: Lowering, condition: Expression | None, at: At) -> EventCondition | None:
    if condition is None:
        return None
    return EventCondition(condition, lambda part: _expression(low, part, at))


def _expression(low: Lowering, expression: Expression, at: At) -> EventExpression:
    return EventExpression(expression, low.compiled(expression, at), low.terms)


def lower_event_filter(low: Lowering, node: f.Filter, at: At, rows: Lowered) -> Lowered:
    """Lower a filter, which may read the times of events."""
    condition = _condition(low, node.condition, at)
    assert condition is not None
    return low.made(Filter(rows.operator, node.condition, condition))


def lower_event_extend(low: Lowering, node: shape.Extend, at: At, rows: Lowered) -> Lowered:
    """Lower a BIND, which may read the times of events."""
    values = _expression(low, node.expression, at)
    return low.made(Extend(rows.operator, node.variable, node.expression, values))


def lower_event_projection(low: Lowering, node: shape.Projection, at: At, rows: Lowered) -> Lowered:
    """Lower a projection; pairs that become equal count once."""
    names = [variable.name for variable in node.variables]
    narrow = low.fold(projected_to(rows.operator, [*names, SINCE]))
    same = set(rows.operator.names) <= {*names, SINCE} or _is_simple(node)
    return low.made(narrow if same else DistinctEvents(narrow))


def _is_simple(plan: Plan) -> bool:
    """Return whether the rows of a plan are those of one pattern."""
    while isinstance(plan, f.Filter | shape.Extend | shape.Projection):
        plan = plan.input
    return isinstance(plan, match.TriplePatternMatching)


def lower_as_input(low: Lowering, node: Plan, at: At, rows: Lowered) -> Lowered:
    """Lower an operator that is the identity on sets of events."""
    return rows


def times_read(plan: Plan) -> tuple[str, ...]:
    """Return the times of events that are read above a `Detect`, as columns.

    >>> from streamsparql.algebra.shape import UNIT, Extend, Projection
    >>> duration = OCCURRENCE["GETDURATION"]
    >>> plan = Projection((), Extend(Variable("d"), duration, event.Detect(UNIT)))
    >>> times_read(plan), times_read(Projection((), event.Detect(UNIT)))
    (('.duration',), ())
    """
    read = frozenset[Variable]()
    for node, above in descend(plan, frozenset[Variable](), _times_below):
        if isinstance(node, event.Detect):
            read |= above
    return tuple(time.name for time in OCCURRENCE.values() if time in read)


_Times = frozenset[Variable]
_TIMES: _Times = frozenset(OCCURRENCE.values())


def _times_below(node: Plan, above: _Times) -> list[tuple[Plan, _Times]]:
    """Return the inputs of an operator, with the times that the operators above them read."""
    if isinstance(node, event.Detect):
        return []
    read = _TIMES.intersection(v for part in node.expressions for v in variables_in(part))
    match node:
        case f.Filter() | shape.Extend() | shape.OrderBy() | shape.Reduced() | group.Annotate():
            below = above | read
        case shape.Projection(variables):
            below = _TIMES.intersection(variables)
        case group.Aggregation() | graph.Ask() | graph.Describe():
            below = read
        case shape.Slice(_, _, columns):
            below = above | _TIMES.intersection(columns)
        case graph.Construct(template) if not _has_blank_nodes(template):
            below = _TIMES.intersection(v for pattern in template for v in pattern.variables())
        case join.Join() if sum(set(scope(part).possible) >= _TIMES for part in node.inputs) < 2:
            below = above
        case _:
            below = _TIMES  # the operator reads whole rows
    return [(part, below) for part in node.inputs]


def _has_blank_nodes(template: Sequence[match.TriplePattern]) -> bool:
    return any(isinstance(place, BlankNode) for pattern in template for place in pattern)


LowerEvents = Callable[["Lowering", Any, "At", "Lowered"], "Lowered"]
LOWER_EVENTS: dict[type[Plan], LowerEvents] = {
    access.Merge: lower_event_union,
    join.Union: lower_event_union,
    match.BasicGraphPattern: lower_pattern,
    join.Join: lower_pairs,
    event.SeqJoin: lower_sequence,
    event.EqJoin: lower_pairs,
    join.LeftJoin: lower_optional,
    event.SeqRightJoin: lower_optional,
    event.EqLeftJoin: lower_optional,
    event.NeverBefore: lower_never_before,
    event.SeqWithout: lower_seq_without,
    f.Filter: lower_event_filter,
    shape.Extend: lower_event_extend,
    shape.Projection: lower_event_projection,
    shape.Distinct: lower_as_input,
    shape.Reduced: lower_as_input,
}
"""The functions that lower nodes over events above their first input."""
