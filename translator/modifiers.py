"""Everything after WHERE: grouping, HAVING, VALUES, SELECT, ORDER BY, DISTINCT, LIMIT.

The order of the steps is that of SPARQL 1.1 sections 18.2.4 and 18.2.5:

    Aggregation, HAVING, VALUES, select expressions, ORDER BY, Projection, DISTINCT, LIMIT

with C-SPARQL's AGGREGATE clauses before them. One liberty is taken, as the engines of these
dialects take it: a HAVING that reads an alias of the SELECT list filters after it is bound.
"""

from __future__ import annotations

from dataclasses import replace

from streamsparql.algebra import expressions as e
from streamsparql.algebra import shape
from streamsparql.algebra.filter import AntiJoin, Filter, Mark, SemiJoin
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.hidden import Hidden, PlanKind
from streamsparql.algebra.join import Join
from streamsparql.algebra.plan import Plan, tie_breakers
from streamsparql.algebra.scope import visible_variables
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.trampoline import Steps
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context
from streamsparql.translator.translate_expressions import (
    Exists,
    Groups,
    Needs,
    Prepared,
    fix_columns,
    number_rows,
    prepare,
    prepare_aggregate,
)


def select(
    plan: Plan,
    clause: s.Select,
    modifiers: s.Modifiers,
    values: s.InlineData | None,
    context: Context,
    exists: Exists,
) -> Steps[Plan]:
    """A SELECT, of a query or a subquery, over the plan of its WHERE."""
    items = [item for item in clause.items if isinstance(item, s.SelectItem)]
    plan = yield rows(plan, items, modifiers, values, context, exists)
    shown = dict.fromkeys(Variable(item.variable.name) for item in items)
    variables = visible_variables(plan) if clause.star else tuple(shown)
    plan = shape.Projection(variables, plan)
    if clause.modifier == "DISTINCT":
        plan = shape.Distinct(plan)
    elif clause.modifier == "REDUCED":
        plan = shape.Reduced(plan)
    return sliced(plan, modifiers)


def rows(
    plan: Plan,
    items: list[s.SelectItem],
    modifiers: s.Modifiers,
    values: s.InlineData | None,
    context: Context,
    exists: Exists,
) -> Steps[Plan]:
    """The rows that a query form shows, in the order of its ORDER BY."""
    plan = yield annotated(plan, modifiers.aggregates, context, exists)
    plan, keys = yield with_keys(plan, modifiers.group, context, exists)
    groups = Groups(Needs(exists))
    selected: dict[Variable, Prepared] = {}
    for item in items:
        yield _select_expression(item, selected, groups, context, exists)
    having = []
    for condition in modifiers.having:
        having.append((yield prepare(condition, context, exists, groups)))
    order = []
    for key in modifiers.order:
        made = yield prepare(key.expression, context, exists, groups)
        order.append((made, key.descending))

    if modifiers.group or groups.calls:
        plan = _aggregation(plan, keys, groups, context)
    early, late = _split(having, selected)
    for prepared in early:
        plan = filtered(plan, prepared, context)
    if values is not None:
        plan = Join(plan, table(values, context))
    for variable, prepared in selected.items():
        plan = extended(plan, variable, prepared, context)
    for prepared in late:
        plan = filtered(plan, prepared, context)
    return _ordered(plan, order, context)


def _split(
    having: list[Prepared], selected: dict[Variable, Prepared]
) -> tuple[list[Prepared], list[Prepared]]:
    """The conditions that can filter at once, and those that read an alias of the SELECT list."""
    early: list[Prepared] = []
    late: list[Prepared] = []
    for prepared in having:
        reads_alias = any(node in selected for node in prepared.expression.walk())
        (late if reads_alias else early).append(prepared)
    return early, late


def _select_expression(
    item: s.SelectItem,
    selected: dict[Variable, Prepared],
    groups: Groups,
    context: Context,
    exists: Exists,
) -> Steps[None]:
    """`(COUNT(?x) AS ?n)` names the aggregate ?n; any other `(expression AS ?v)` is an Extend."""
    variable = Variable(item.variable.name)
    if isinstance(item.expression, s.AggregateCall):
        call = yield prepare_aggregate(item.expression, context, groups)
        if call not in groups.calls:
            groups.calls[call] = variable
            return
    if item.expression is not None:
        selected[variable] = yield prepare(item.expression, context, exists, groups)


def annotated(
    plan: Plan, patterns: tuple[s.AggregationPattern, ...], context: Context, exists: Exists
) -> Steps[Plan]:
    """C-SPARQL's AGGREGATE clauses: all over the same WHERE rows, their filters after them."""
    for pattern in patterns:
        groups = Groups(Needs(exists))
        call = yield prepare_aggregate(pattern.function, context, groups)
        plan, (call,) = _arguments_provided(plan, [call], groups, context)
        keys = tuple(Variable(key.name) for key in pattern.keys)
        plan = Annotate(Variable(pattern.variable.name), call, keys, plan)
        context.came_from(plan, pattern)
    for pattern in patterns:
        for filter_ in pattern.filters:
            prepared = yield prepare(filter_.condition, context, exists)
            plan = filtered(plan, prepared, context)
            context.came_from(plan, filter_)
    return plan


def with_keys(
    plan: Plan, keys: tuple[s.GroupKey, ...], context: Context, exists: Exists
) -> Steps[tuple[Plan, tuple[Variable, ...]]]:
    """The grouping variables; a key that is an expression is bound to one first."""
    variables: list[Variable] = []
    for key in keys:
        if isinstance(key.expression, s.Var) and key.variable is None:
            variables.append(Variable(key.expression.name))
            continue
        prepared = yield prepare(key.expression, context, exists)
        variable = Variable(key.variable.name) if key.variable else context.fresh(PlanKind.KEY)
        plan = extended(plan, variable, prepared, context)
        variables.append(variable)
    return plan, tuple(dict.fromkeys(variables))


def _aggregation(plan: Plan, keys: tuple[Variable, ...], groups: Groups, context: Context) -> Plan:
    plan, calls = _arguments_provided(plan, list(groups.calls), groups, context)
    bound = tuple(zip(groups.calls.values(), calls, strict=True))
    return Aggregation(keys, bound, plan)


def _arguments_provided(
    plan: Plan, calls: list[e.Aggregate], groups: Groups, context: Context
) -> tuple[Plan, list[e.Aggregate]]:
    """The plan with what the aggregates' arguments need, and the aggregates that read it."""
    plan, fixed = _provided(plan, groups.below, context)
    if fixed:
        calls = [
            call
            if call.argument is None
            else replace(call, argument=fix_columns(call.argument, fixed))
            for call in calls
        ]
    return plan, calls


def _ordered(plan: Plan, order: list[tuple[Prepared, bool]], context: Context) -> Plan:
    if not order:
        return plan
    keys = []
    for prepared, descending in order:
        plan, expression = provided(plan, prepared, context)
        keys.append((expression, descending))
    return shape.OrderBy(tuple(keys), tie_breakers(*visible_variables(plan)), plan)


def sliced(plan: Plan, modifiers: s.Modifiers) -> Plan:
    """OFFSET and LIMIT. Ties break by all variables that the rows show (R8)."""
    if modifiers.limit is None and not modifiers.offset:
        return plan
    return shape.Slice(
        modifiers.offset or 0, modifiers.limit, tie_breakers(*visible_variables(plan)), plan
    )


def table(data: s.InlineData, context: Context) -> shape.Table:
    """VALUES."""
    variables = tuple(Variable(variable.name) for variable in data.variables)
    terms = (
        tuple(None if place is None else context.value(place) for place in row) for row in data.rows
    )
    return shape.Table(variables, tuple(terms))


# -- expressions where the plan below is known -----------------------------------------------------


def filtered(plan: Plan, prepared: Prepared, context: Context) -> Plan:
    """A filter; one that is just an EXISTS is a semi join or an anti join."""
    match prepared.expression, prepared.needs.marks:
        case Variable() as mark, [(variable, pattern)] if mark == variable:
            return SemiJoin(plan, pattern)
        case e.Not(Variable() as mark), [(variable, pattern)] if mark == variable:
            return AntiJoin(plan, pattern)
    plan, condition = provided(plan, prepared, context)
    return Filter(condition, plan)


def extended(plan: Plan, variable: Variable, prepared: Prepared, context: Context) -> Plan:
    """A new variable with the expression's value."""
    plan, expression = provided(plan, prepared, context)
    return shape.Extend(variable, expression, plan)


def provided(plan: Plan, prepared: Prepared, context: Context) -> tuple[Plan, Expression]:
    """The plan with what an expression needs, and the expression that reads it."""
    plan, fixed = _provided(plan, prepared.needs, context)
    expression = prepared.expression
    return plan, fix_columns(expression, fixed) if fixed else expression


def _provided(plan: Plan, needs: Needs, context: Context) -> tuple[Plan, tuple[Variable, ...]]:
    fixed: tuple[Variable, ...] = ()
    if needs.sites:
        plan, fixed = number_rows(plan, Hidden(PlanKind.ROW, needs.sites[0]), context)
    for variable, pattern in needs.marks:
        plan = Mark(variable, plan, pattern)
    return plan, fixed
