"""Algorithm 1 of the paper: from a clause of the query to a logical plan.

    AlgebraOp createPlan(clause, actStream, namedStreams, win, graphVar)

Ours is `create_plan(clause, scope, context)`. The paper's last four parameters are one frozen
`ReadScope` (dataset.py); its branches stand here in the paper's order and under the paper's names,
and the branches that SPARQL 1.1 and the other dialects need follow. Four things differ, with
reason:

- *Several active sources.* Where the paper has one `actStream` we have all default streams, and the
  static graphs, merged below the triple pattern. The default graph that a caller gives beside the
  query is always one of them.
- *The inner window wins* (R5): a group without a window keeps the one of the group around it. As
  printed, the algorithm would forget it.
- *`win = null`* (R6) is what the paper's last test must read.
- *`graphVar` is bound once, around the group*, not by each matching: `GRAPH ?g {}`, or an OPTIONAL
  without a match, has to bind it too, and a FILTER inside must not see it (W3C test
  graph-variable-scope).

Clauses that act on what stands before them (FILTER, OPTIONAL, MINUS, BIND) become functions from
plan to plan, which `create_join_hierarchy_over_all` applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from streamsparql.algebra import expressions as e
from streamsparql.algebra.hidden import Hidden, PlanKind
from streamsparql.algebra.join import Join, LeftJoin, Minus, Union
from streamsparql.algebra.match import BasicGraphPattern, TriplePattern
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.shape import UNIT
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.trampoline import Steps
from streamsparql.errors import UnsupportedFeature
from streamsparql.translator import events, modifiers
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context
from streamsparql.translator.dataset import ReadScope, access, matching
from streamsparql.translator.translate_expressions import (
    Exists,
    Prepared,
    fix_columns,
    number_rows,
    prepare,
)
from streamsparql.translator.translate_paths import PathPattern, patterns


class Act(NamedTuple):
    """What a clause does to the plan of what stands before it.

    A FILTER keeps its condition at hand: in an OPTIONAL it belongs to the left join.
    """

    apply: Callable[[Plan], Plan]
    clause: s.Node
    condition: Prepared | None = None


def create_plan(clause: s.Node, scope: ReadScope, context: Context) -> Steps[Any]:
    """The plan of a clause, or the act that it is on the plan before it."""
    subplans: list[Plan | Act] = []
    made: Plan | Act
    match clause:
        case s.Group():
            subplans = yield create_sub_plans(clause, scope, context)
            made = create_join_hierarchy_over_all(subplans, context)
        case s.TriplesBlock(triples):
            for triple in triples:
                subplans += create_triple_plans(triple, scope, context)
            made = create_join_hierarchy_over_all(_basic_graph_patterns(subplans), context)
        case s.GroupOrUnion():
            for sub_clause in _branches(clause):
                subplans.append((yield create_plan(sub_clause, scope, context)))
            made = create_union_hierarchy_over_all(subplans)
        case s.Filter(condition):
            prepared = yield prepare(condition, context, exists(scope, context))
            made = Act(lambda plan: modifiers.filtered(plan, prepared, context), clause, prepared)
        case s.GraphPattern(s.Iri() as name, group):
            inner, wrap = scope.in_graph(name, context)
            made = wrap((yield create_plan(group, inner, context)))
        case s.GraphPattern(s.Var() as variable, group):
            for inner, wrap in scope.in_all_graphs(variable):
                subplans.append(wrap((yield create_plan(group, inner, context))))
            made = create_union_hierarchy_over_all(subplans)
        case _:
            made = yield _create_plan_beyond_the_paper(clause, scope, context)
    return context.came_from(made, clause) if isinstance(made, Plan) else made


def create_triple_plans(triple: s.TriplePattern, scope: ReadScope, context: Context) -> list[Plan]:
    """The paper's branch for a triple; a path may stand for several triple patterns."""
    plans: list[Plan] = []
    for pattern in patterns(triple, context):
        if isinstance(pattern, TriplePattern):
            plans.append(matching(pattern, scope, context))
        else:
            plans.append(_create_path_plan(pattern, triple, scope, context))
        context.came_from(plans[-1], triple)
    return plans


def create_sub_plans(group: s.Group, scope: ReadScope, context: Context) -> Steps[list[Plan | Act]]:
    """The plans and acts of a group's clauses. Its window, if it has one, goes to them all."""
    if group.window is not None:
        scope = replace(scope, window=context.windowing(group.window))
    subplans: list[Plan | Act] = []
    for sub_clause in _sub_clauses(group):
        subplans.append((yield create_plan(sub_clause, scope, context)))
    return subplans


def create_join_hierarchy_over_all(subplans: Iterable[Plan | Act], context: Context) -> Plan:
    """Joins plans from left to right; acts are applied where they stand."""
    made: Plan | None = None
    for sub in subplans:
        if isinstance(sub, Act):
            made = context.came_from(sub.apply(UNIT if made is None else made), sub.clause)
        else:
            made = sub if made is None else Join(made, sub)
    return UNIT if made is None else made


def set_left_join_in_hierarchy(
    right: Plan, conditions: list[Prepared], context: Context
) -> Callable[[Plan], Plan]:
    """The left join of an OPTIONAL, with the filters of its group as condition."""

    def left_join(left: Plan) -> Plan:
        ours, theirs, condition = _conditioned(left, right, conditions, context)
        marks = tuple(mark for prepared in conditions for mark in prepared.needs.marks)
        return LeftJoin(ours, theirs, condition, marks)

    return left_join


def _conditioned(
    left: Plan, right: Plan, conditions: list[Prepared], context: Context
) -> tuple[Plan, Plan, Expression | None]:
    """Both sides of an optional operator, and its condition about their merged rows."""
    terms = [prepared.expression for prepared in conditions]
    sites = [site for prepared in conditions for site in prepared.needs.sites]
    if sites:
        left, of_left = number_rows(left, Hidden(PlanKind.LEFT_ROW, sites[0]), context)
        right, of_right = number_rows(right, Hidden(PlanKind.RIGHT_ROW, sites[0]), context)
        columns = tuple(dict.fromkeys((*of_left, *of_right)))
        terms = [fix_columns(term, columns) for term in terms]
    condition = e.And(tuple(terms)) if len(terms) > 1 else next(iter(terms), None)
    return left, right, condition


def create_union_hierarchy_over_all(subplans: Iterable[Any]) -> Plan:
    """The union of all branches."""
    branches = tuple(subplans)
    return branches[0] if len(branches) == 1 else Union(branches)


def _create_plan_beyond_the_paper(
    clause: s.Node, scope: ReadScope, context: Context
) -> Steps[Plan | Act]:
    """What SPARQL 1.1 and the other dialects add."""
    match clause:
        case s.OptionalPattern(group):
            right, conditions = yield _optional_side(group, scope, context)
            return Act(set_left_join_in_hierarchy(right, conditions, context), clause)
        case s.MinusPattern(group):
            events.refuse_over_events("MINUS", events.NEGATION, clause, context)
            right = yield create_plan(group, scope, context)
            return Act(lambda left: Minus(left, right), clause)
        case s.Bind(expression, variable):
            prepared = yield prepare(expression, context, exists(scope, context))
            new = Variable(variable.name)
            return Act(lambda plan: modifiers.extended(plan, new, prepared, context), clause)
        case s.InlineData():
            return modifiers.table(clause, context)
        case s.SubSelect(select, where, clauses, values):
            events.check_sub_select(clause, context)
            plan = yield create_plan(where, scope, context)
            asked = exists(scope, context)
            return (yield modifiers.select(plan, select, clauses, values, context, asked))
        case s.StreamPattern(s.Iri() as name, _, group):
            return (yield create_plan(group, scope.in_stream(name, clause, context), context))
        case s.WindowPattern(s.Iri() as name, group):
            return (yield create_plan(group, scope.in_window(name, context), context))
        case s.WindowPattern(s.Var() as variable, group):
            branches: list[Plan] = []
            for inner, wrap in scope.in_all_windows(variable):
                branches.append(wrap((yield create_plan(group, inner, context))))
            return create_union_hierarchy_over_all(branches)
        case s.Event():
            return (yield _create_event_plan(clause, scope, context))
    raise AssertionError(clause)


def _create_event_plan(clause: s.Event, scope: ReadScope, context: Context) -> Steps[Plan]:
    """EP-SPARQL's operators; the filters of an optional side are part of the operator."""
    events.check_event_operator(clause, context)
    conditions: list[Prepared] = []
    sides: list[Plan] = []
    for side, optional in ((clause.left, "OPTIONALSEQ"), (clause.right, "EQUALSOPTIONAL")):
        if clause.op == optional and isinstance(side, s.Group):
            plan, conditions = yield _optional_side(side, scope, context)
        else:
            plan = yield create_plan(side, scope, context)
        sides.append(plan)
    left, right, condition = _conditioned(sides[0], sides[1], conditions, context)
    return events.event_operator(clause, left, right, condition)


def _create_path_plan(
    pattern: PathPattern, triple: s.TriplePattern, scope: ReadScope, context: Context
) -> Plan:
    """A path; its window stands below it, on the stream."""
    events.refuse_over_events("a property path", "write it as triple patterns", triple, context)
    for end in (pattern.subject, pattern.object):
        if end in context.stamps.variables:
            raise UnsupportedFeature(
                f"timestamp({end}) does not say which triple of this path is meant",
                triple.span,
                hint="write the path as triple patterns",
            )
    return Path(*pattern, access(scope, scope.window, context))


def exists(scope: ReadScope, context: Context) -> Exists:
    """How an EXISTS in this scope is translated."""

    def translate(group: s.Group) -> Steps[Plan]:
        events.refuse_over_events("EXISTS", events.NEGATION, group, context)
        plan: Plan = yield create_plan(group, scope, context)
        return plan

    return translate


def _optional_side(
    group: s.Group, scope: ReadScope, context: Context
) -> Steps[tuple[Plan, list[Prepared]]]:
    """A group without its filters, and their conditions."""
    subplans: list[Plan | Act] = yield create_sub_plans(group, scope, context)
    conditions = [x.condition for x in subplans if isinstance(x, Act) and x.condition is not None]
    others = [x for x in subplans if not (isinstance(x, Act) and x.condition is not None)]
    return create_join_hierarchy_over_all(others, context), conditions


def _sub_clauses(group: s.Group) -> list[s.Node]:
    """The group's clauses, filters last; triples that only a filter parts are one block."""
    clauses: list[s.Node] = []
    for element in group.elements:
        if isinstance(element, s.Filter):
            continue
        if isinstance(element, s.TriplesBlock) and clauses:
            before = clauses[-1]
            if isinstance(before, s.TriplesBlock):
                span = before.span.to(element.span)
                clauses[-1] = s.TriplesBlock(before.triples + element.triples, span=span)
                continue
        clauses.append(element)
    return clauses + [element for element in group.elements if isinstance(element, s.Filter)]


def _branches(clause: s.GroupOrUnion) -> list[s.Operand]:
    """The operands of a chain of UNIONs, left to right."""
    branches: list[s.Operand] = []
    left: s.Operand = clause
    while isinstance(left, s.GroupOrUnion):
        branches.append(left.right)
        left = left.left
    return [left, *reversed(branches)]


def _basic_graph_patterns(plans: list[Any]) -> list[Plan | Act]:
    """Matchings that stand together are one basic graph pattern; a path parts them."""
    made: list[Plan | Act] = []
    run: list[Plan] = []
    for plan in [*plans, None]:
        if plan is not None and not isinstance(plan, Path):
            run.append(plan)
            continue
        if run:
            made.append(run[0] if len(run) == 1 else BasicGraphPattern(tuple(run)))
        run = []
        if plan is not None:
            made.append(plan)
    return made
