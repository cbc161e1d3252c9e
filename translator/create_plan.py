"""createPlan (ESWC 2008, Algorithm 1): from a clause of the query to a logical plan.

    AlgebraOp createPlan(clause, actStream, namedStreams, win, graphVar)

Here it is `create_plan(clause, scope, context)`. The paper's last four parameters are one frozen
`ReadScope` (dataset.py). The branches of the algorithm keep the paper's order and names; those for
SPARQL 1.1 and the other dialects follow. Four things differ from the paper:

- *Several active sources.* The paper's one `actStream` becomes all default streams and the static
  graphs, merged below the triple pattern. The default graph that a caller passes with the query is
  always one of them.
- *The inner window wins* (R5): a group without a window has the window of the group around it. As
  printed, the algorithm would drop that window.
- *The last test is `win = null`* (R6), which the paper prints otherwise.
- *`graphVar` is bound once, around the group*, not by each matching: `GRAPH ?g {}`, or an OPTIONAL
  without a match, must bind it too, and a FILTER inside must not see it (W3C test
  graph-variable-scope).

Clauses that act on the plan before them (FILTER, OPTIONAL, MINUS, BIND) become functions from plan
to plan, which `create_join_hierarchy_over_all` applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from streamsparql.algebra import expressions as e
from streamsparql.algebra.hidden_variables import Hidden, PlanKind
from streamsparql.algebra.join import Join, LeftJoin, Minus, Union
from streamsparql.algebra.match import BasicGraphPattern, TriplePattern
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.shape import UNIT
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.errors import UnsupportedFeature
from streamsparql.translator import events, modifiers
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context
from streamsparql.translator.dataset import ReadScope, create_matching, merge_active_sources
from streamsparql.translator.translate_expressions import (
    PatternTranslator,
    PreparedExpression,
    fix_columns,
    number_rows,
    prepare_expression,
)
from streamsparql.translator.translate_paths import PathPattern, split_path


class Act(NamedTuple):
    """The effect of a clause on the plan of the clauses before it.

    The act of a FILTER has its condition too: in an OPTIONAL it belongs to the left join.
    """

    apply: Callable[[Plan], Plan]
    clause: s.SyntaxNode
    condition: PreparedExpression | None = None


def create_plan(clause: s.SyntaxNode, scope: ReadScope, context: Context) -> Plan | Act:
    """Return the plan of a clause, or its effect on the plan before it.

    This is createPlan: ESWC 2008, Algorithm 1.
    """
    subplans: list[Plan | Act] = []
    result: Plan | Act
    match clause:
        case s.GroupPattern():
            subplans = create_sub_plans(clause, scope, context)
            result = create_join_hierarchy_over_all(subplans, context)
        case s.TriplesBlock(triples):
            for triple in triples:
                subplans += create_triple_plans(triple, scope, context)
            result = create_join_hierarchy_over_all(_basic_graph_patterns(subplans), context)
        case s.UnionPattern() | s.EventPattern():
            result = _create_operand_plan(clause, scope, context)
        case s.FilterClause(condition):
            prepared = prepare_expression(condition, context, exists_translator(scope, context))
            result = Act(
                lambda plan: modifiers.apply_filter(plan, prepared, context), clause, prepared
            )
        case s.GraphPattern(s.Iri() as name, group):
            inner, wrap = scope.in_graph(name, context)
            result = wrap(create_group_plan(group, inner, context))
        case s.GraphPattern(s.Var() as variable, group):
            for inner, wrap in scope.in_all_graphs(variable):
                subplans.append(wrap(create_group_plan(group, inner, context)))
            result = create_union_hierarchy_over_all(subplans)
        case _:
            result = _create_plan_beyond_the_paper(clause, scope, context)
    return context.locate(result, clause) if isinstance(result, Plan) else result


def create_group_plan(group: s.GroupPattern, scope: ReadScope, context: Context) -> Plan:
    """Return the plan of a group, which is never an act."""
    plan = create_plan(group, scope, context)
    assert isinstance(plan, Plan)
    return plan


def create_triple_plans(triple: s.TriplePath, scope: ReadScope, context: Context) -> list[Plan]:
    """Return the plans of a triple; a path may abbreviate several triple patterns."""
    plans: list[Plan] = []
    for pattern in split_path(triple, context):
        if isinstance(pattern, TriplePattern):
            plans.append(create_matching(pattern, scope, context))
        else:
            plans.append(_create_path_plan(pattern, triple, scope, context))
        context.locate(plans[-1], triple)
    return plans


def create_sub_plans(group: s.GroupPattern, scope: ReadScope, context: Context) -> list[Plan | Act]:
    """Return the plans and acts of a group's clauses, which all read through its window."""
    if group.window is not None:
        scope = replace(scope, window=context.windowing(group.window))
    return [create_plan(sub_clause, scope, context) for sub_clause in _sub_clauses(group)]


def create_join_hierarchy_over_all(subplans: Iterable[Plan | Act], context: Context) -> Plan:
    """Join plans from left to right; apply each act to the plan before it."""
    plan: Plan | None = None
    for sub in subplans:
        if isinstance(sub, Act):
            plan = context.locate(sub.apply(UNIT if plan is None else plan), sub.clause)
        else:
            plan = sub if plan is None else Join(plan, sub)
    return UNIT if plan is None else plan


def set_left_join_in_hierarchy(
    right: Plan, conditions: list[PreparedExpression], context: Context
) -> Callable[[Plan], Plan]:
    """Return the left join of an OPTIONAL, with the filters of its group as its condition."""

    def left_join(left: Plan) -> Plan:
        new_left, new_right, condition = _conditioned(left, right, conditions, context)
        marks = tuple(mark for prepared in conditions for mark in prepared.needs.marks)
        return LeftJoin(new_left, new_right, condition, marks)

    return left_join


def _conditioned(
    left: Plan, right: Plan, conditions: list[PreparedExpression], context: Context
) -> tuple[Plan, Plan, Expression | None]:
    """Return both sides of an optional operator, and its condition on their merged rows."""
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
    """Return the union of all branches."""
    branches = tuple(subplans)
    return branches[0] if len(branches) == 1 else Union(branches)


def _create_operand_plan(
    clause: s.UnionPattern | s.EventPattern, scope: ReadScope, context: Context
) -> Plan:
    """Return the plan of a chain of groups: the paper's UNION, and EP-SPARQL's operators.

    Consecutive UNIONs become one union.
    """
    first, links = s.operand_chain(clause)
    left: s.GroupPattern | Plan = first
    for is_union, run in groupby(links, lambda link: isinstance(link, s.UnionPattern)):
        if is_union:
            branches = [_operand_plan(left, scope, context)]
            for link in run:
                branches.append(create_group_plan(link.right, scope, context))
            left = create_union_hierarchy_over_all(branches)
        else:
            for link in run:
                assert isinstance(link, s.EventPattern)
                left = _create_event_plan(link, left, scope, context)
                context.locate(left, link)
    assert isinstance(left, Plan)
    return left


def _operand_plan(operand: s.GroupPattern | Plan, scope: ReadScope, context: Context) -> Plan:
    if isinstance(operand, Plan):
        return operand
    return create_group_plan(operand, scope, context)


def _create_event_plan(
    clause: s.EventPattern, operand: s.GroupPattern | Plan, scope: ReadScope, context: Context
) -> Plan:
    """Return an event operator's plan; the filters of an optional side are part of the operator."""
    events.check_event_operator(clause, context)
    conditions: list[PreparedExpression] = []
    if clause.op == "OPTIONALSEQ" and isinstance(operand, s.GroupPattern):
        left, conditions = _optional_side(operand, scope, context)
    else:
        left = _operand_plan(operand, scope, context)
    if clause.op == "EQUALSOPTIONAL":
        right, conditions = _optional_side(clause.right, scope, context)
    else:
        right = create_group_plan(clause.right, scope, context)
    left, right, condition = _conditioned(left, right, conditions, context)
    return events.create_event_operator(clause, left, right, condition)


def _create_plan_beyond_the_paper(
    clause: s.SyntaxNode, scope: ReadScope, context: Context
) -> Plan | Act:
    """Return the plan or act of a clause that SPARQL 1.1 and the other dialects add."""
    match clause:
        case s.OptionalPattern(group):
            right, conditions = _optional_side(group, scope, context)
            return Act(set_left_join_in_hierarchy(right, conditions, context), clause)
        case s.MinusPattern(group):
            events.refuse_over_events("MINUS", events.NEGATION, clause, context)
            right = create_group_plan(group, scope, context)
            return Act(lambda left: Minus(left, right), clause)
        case s.BindClause(expression, variable):
            translator = exists_translator(scope, context)
            prepared = prepare_expression(expression, context, translator)
            new = Variable(variable.name)
            return Act(lambda plan: modifiers.apply_extend(plan, new, prepared, context), clause)
        case s.InlineData():
            return modifiers.create_table(clause, context)
        case s.SubSelect(select, where, clauses, values):
            events.check_sub_select(clause, context)
            plan = create_group_plan(where, scope, context)
            translator = exists_translator(scope, context)
            return modifiers.create_select_plan(plan, select, clauses, values, context, translator)
        case s.StreamPattern(s.Iri() as name, _, group):
            return create_group_plan(group, scope.in_stream(name, clause, context), context)
        case s.WindowPattern(s.Iri() as name, group):
            return create_group_plan(group, scope.in_window(name, context), context)
        case s.WindowPattern(s.Var() as variable, group):
            branches: list[Plan] = []
            for inner, wrap in scope.in_all_windows(variable):
                branches.append(wrap(create_group_plan(group, inner, context)))
            return create_union_hierarchy_over_all(branches)
    raise AssertionError(clause)


def _create_path_plan(
    pattern: PathPattern, triple: s.TriplePath, scope: ReadScope, context: Context
) -> Plan:
    """Return the plan of a path; its window is below it, on the stream."""
    events.refuse_over_events("a property path", "write it as triple patterns", triple, context)
    for end in (pattern.subject, pattern.object):
        if end in context.stamps.variables:
            raise UnsupportedFeature(
                f"ambiguous timestamp({end}): this path matches several triples",
                triple.span,
                hint="write the path as triple patterns",
            )
    return Path(*pattern, merge_active_sources(scope, scope.window, context))


def exists_translator(scope: ReadScope, context: Context) -> PatternTranslator:
    """Return the function that translates the pattern of an EXISTS in this scope."""

    def translate(group: s.GroupPattern) -> Plan:
        events.refuse_over_events("EXISTS", events.NEGATION, group, context)
        return create_group_plan(group, scope, context)

    return translate


def _optional_side(
    group: s.GroupPattern, scope: ReadScope, context: Context
) -> tuple[Plan, list[PreparedExpression]]:
    """Return the plan of a group without its filters, and their conditions."""
    subplans = create_sub_plans(group, scope, context)
    conditions = [x.condition for x in subplans if isinstance(x, Act) and x.condition is not None]
    others = [x for x in subplans if not (isinstance(x, Act) and x.condition is not None)]
    return create_join_hierarchy_over_all(others, context), conditions


def _sub_clauses(group: s.GroupPattern) -> list[s.SyntaxNode]:
    """Return the clauses of a group, filters last; triples around a filter are one block."""
    clauses: list[s.SyntaxNode] = []
    for element in group.elements:
        if isinstance(element, s.FilterClause):
            continue
        if isinstance(element, s.TriplesBlock) and clauses:
            before = clauses[-1]
            if isinstance(before, s.TriplesBlock):
                span = before.span.to(element.span)
                clauses[-1] = s.TriplesBlock(before.triples + element.triples, span=span)
                continue
        clauses.append(element)
    return clauses + [element for element in group.elements if isinstance(element, s.FilterClause)]


def _basic_graph_patterns(plans: list[Any]) -> list[Plan | Act]:
    """Combine consecutive matchings into one basic graph pattern; a path separates them."""
    patterns: list[Plan | Act] = []
    run: list[Plan] = []
    for plan in [*plans, None]:
        if plan is not None and not isinstance(plan, Path):
            run.append(plan)
            continue
        if run:
            patterns.append(run[0] if len(run) == 1 else BasicGraphPattern(tuple(run)))
        run = []
        if plan is not None:
            patterns.append(plan)
    return patterns
