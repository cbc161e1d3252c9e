"""Everything after WHERE: grouping, HAVING, VALUES, SELECT, ORDER BY, DISTINCT, LIMIT.

The order of the steps is that of SPARQL 1.1 sections 18.2.4 and 18.2.5:

    Aggregation, HAVING, VALUES, select expressions, ORDER BY, Projection, DISTINCT, LIMIT

with C-SPARQL's AGGREGATE clauses before them. There is one extension, which the engines of these
dialects have too: a HAVING that reads an alias of the SELECT list filters after the alias is bound.
"""

from __future__ import annotations

from dataclasses import replace

from streamsparql.algebra import expressions as e
from streamsparql.algebra import shape
from streamsparql.algebra.filter import AntiJoin, Filter, Mark, SemiJoin
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.hidden_variables import Hidden, PlanKind
from streamsparql.algebra.join import Join
from streamsparql.algebra.plan import Plan, tie_breakers
from streamsparql.algebra.scope import visible_variables
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context
from streamsparql.translator.translate_expressions import (
    Groups,
    Needs,
    PatternTranslator,
    PreparedExpression,
    fix_columns,
    number_rows,
    prepare_aggregate,
    prepare_expression,
)


def create_select_plan(
    plan: Plan,
    clause: s.SelectClause,
    modifiers: s.Modifiers,
    values: s.InlineData | None,
    context: Context,
    exists: PatternTranslator,
) -> Plan:
    """Return the plan of a SELECT, of a query or a subquery, over the plan of its WHERE."""
    items = [item for item in clause.items if isinstance(item, s.SelectItem)]
    plan = create_rows_plan(plan, items, modifiers, values, context, exists)
    shown = dict.fromkeys(Variable(item.variable.name) for item in items)
    variables = visible_variables(plan) if clause.star else tuple(shown)
    plan = shape.Projection(variables, plan)
    if clause.modifier == "DISTINCT":
        plan = shape.Distinct(plan)
    elif clause.modifier == "REDUCED":
        plan = shape.Reduced(plan)
    return apply_slice(plan, modifiers)


def create_rows_plan(
    plan: Plan,
    items: list[s.SelectItem],
    modifiers: s.Modifiers,
    values: s.InlineData | None,
    context: Context,
    exists: PatternTranslator,
) -> Plan:
    """Return the plan of the rows that a query form shows, in the order of its ORDER BY."""
    plan = apply_aggregates(plan, modifiers.aggregates, context, exists)
    plan, keys = apply_keys(plan, modifiers.group, context, exists)
    groups = Groups(Needs(exists))
    selected: dict[Variable, PreparedExpression] = {}
    for item in items:
        _select_expression(item, selected, groups, context, exists)
    having = [prepare_expression(c, context, exists, groups) for c in modifiers.having]
    order = [
        (prepare_expression(key.expression, context, exists, groups), key.descending)
        for key in modifiers.order
    ]

    if modifiers.group or groups.calls:
        plan = _aggregation(plan, keys, groups, context)
    early, late = _split(having, selected)
    for prepared in early:
        plan = apply_filter(plan, prepared, context)
    if values is not None:
        plan = Join(plan, create_table(values, context))
    for variable, prepared in selected.items():
        plan = apply_extend(plan, variable, prepared, context)
    for prepared in late:
        plan = apply_filter(plan, prepared, context)
    return _sort(plan, order, context)


def _split(
    having: list[PreparedExpression], selected: dict[Variable, PreparedExpression]
) -> tuple[list[PreparedExpression], list[PreparedExpression]]:
    """Return the conditions that can filter at once, and those that read an alias of SELECT."""
    early: list[PreparedExpression] = []
    late: list[PreparedExpression] = []
    for prepared in having:
        reads_alias = any(node in selected for node in prepared.expression.walk())
        (late if reads_alias else early).append(prepared)
    return early, late


def _select_expression(
    item: s.SelectItem,
    selected: dict[Variable, PreparedExpression],
    groups: Groups,
    context: Context,
    exists: PatternTranslator,
) -> None:
    """Add a SELECT item: `(COUNT(?x) AS ?n)` names the aggregate ?n, others become an Extend."""
    variable = Variable(item.variable.name)
    if isinstance(item.expression, s.AggregateCall):
        call = prepare_aggregate(item.expression, context, groups)
        if call not in groups.calls:
            groups.calls[call] = variable
            return
    if item.expression is not None:
        selected[variable] = prepare_expression(item.expression, context, exists, groups)


def apply_aggregates(
    plan: Plan,
    patterns: tuple[s.AggregationPattern, ...],
    context: Context,
    exists: PatternTranslator,
) -> Plan:
    """Add C-SPARQL's AGGREGATE clauses, all over the rows of WHERE, then all their filters."""
    for pattern in patterns:
        groups = Groups(Needs(exists))
        call = prepare_aggregate(pattern.function, context, groups)
        plan, (call,) = _provide_arguments(plan, [call], groups, context)
        keys = tuple(Variable(key.name) for key in pattern.keys)
        plan = Annotate(Variable(pattern.variable.name), call, keys, plan)
        context.locate(plan, pattern)
    for pattern in patterns:
        for filter_ in pattern.filters:
            prepared = prepare_expression(filter_.condition, context, exists)
            plan = apply_filter(plan, prepared, context)
            context.locate(plan, filter_)
    return plan


def apply_keys(
    plan: Plan, keys: tuple[s.GroupKey, ...], context: Context, exists: PatternTranslator
) -> tuple[Plan, tuple[Variable, ...]]:
    """Bind the grouping keys that are expressions; return the plan and the grouping variables."""
    variables: list[Variable] = []
    for key in keys:
        if isinstance(key.expression, s.Var) and key.variable is None:
            variables.append(Variable(key.expression.name))
            continue
        prepared = prepare_expression(key.expression, context, exists)
        variable = Variable(key.variable.name) if key.variable else context.fresh(PlanKind.KEY)
        plan = apply_extend(plan, variable, prepared, context)
        variables.append(variable)
    return plan, tuple(dict.fromkeys(variables))


def _aggregation(plan: Plan, keys: tuple[Variable, ...], groups: Groups, context: Context) -> Plan:
    plan, calls = _provide_arguments(plan, list(groups.calls), groups, context)
    bound = tuple(zip(groups.calls.values(), calls, strict=True))
    return Aggregation(keys, bound, plan)


def _provide_arguments(
    plan: Plan, calls: list[e.Aggregate], groups: Groups, context: Context
) -> tuple[Plan, list[e.Aggregate]]:
    """Return the plan with the columns that the arguments need, and the aggregates over it."""
    plan, fixed = _add_columns(plan, groups.below, context)
    if fixed:
        calls = [
            call
            if call.argument is None
            else replace(call, argument=fix_columns(call.argument, fixed))
            for call in calls
        ]
    return plan, calls


def _sort(plan: Plan, order: list[tuple[PreparedExpression, bool]], context: Context) -> Plan:
    if not order:
        return plan
    keys = []
    for prepared, descending in order:
        plan, expression = provide(plan, prepared, context)
        keys.append((expression, descending))
    return shape.OrderBy(tuple(keys), tie_breakers(*visible_variables(plan)), plan)


def apply_slice(plan: Plan, modifiers: s.Modifiers) -> Plan:
    """Add OFFSET and LIMIT. Ties break by all variables that the rows show (R8)."""
    if modifiers.limit is None and not modifiers.offset:
        return plan
    return shape.Slice(
        modifiers.offset or 0, modifiers.limit, tie_breakers(*visible_variables(plan)), plan
    )


def create_table(data: s.InlineData, context: Context) -> shape.Table:
    """Return the table of a VALUES."""
    variables = tuple(Variable(variable.name) for variable in data.variables)
    terms = (
        tuple(None if place is None else context.value(place) for place in row) for row in data.rows
    )
    return shape.Table(variables, tuple(terms))


# -- operators that evaluate expressions -----------------------------------------------------------


def apply_filter(plan: Plan, prepared: PreparedExpression, context: Context) -> Plan:
    """Add a filter; a bare EXISTS becomes a semi join, a bare NOT EXISTS an anti join."""
    match prepared.expression, prepared.needs.marks:
        case Variable() as mark, [(variable, pattern)] if mark == variable:
            return SemiJoin(plan, pattern)
        case e.Not(Variable() as mark), [(variable, pattern)] if mark == variable:
            return AntiJoin(plan, pattern)
    plan, condition = provide(plan, prepared, context)
    return Filter(condition, plan)


def apply_extend(
    plan: Plan, variable: Variable, prepared: PreparedExpression, context: Context
) -> Plan:
    """Add a new variable with the expression's value."""
    plan, expression = provide(plan, prepared, context)
    return shape.Extend(variable, expression, plan)


def provide(plan: Plan, prepared: PreparedExpression, context: Context) -> tuple[Plan, Expression]:
    """Return the plan with the columns that an expression needs, and the expression over it."""
    plan, fixed = _add_columns(plan, prepared.needs, context)
    expression = prepared.expression
    return plan, fix_columns(expression, fixed) if fixed else expression


def _add_columns(plan: Plan, needs: Needs, context: Context) -> tuple[Plan, tuple[Variable, ...]]:
    fixed: tuple[Variable, ...] = ()
    if needs.sites:
        plan, fixed = number_rows(plan, Hidden(PlanKind.ROW, needs.sites[0]), context)
    for variable, pattern in needs.marks:
        plan = Mark(variable, plan, pattern)
    return plan, fixed
