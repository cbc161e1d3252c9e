"""Lints of variables: joins without a shared one, and variables that nothing binds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from streamsparql.algebra import filter, graph, group, join, shape
from streamsparql.algebra.match import BasicGraphPattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import scope, visible_variables
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.traversal import descend
from streamsparql.errors import Span
from streamsparql.look.lints.visit import Visit
from streamsparql.look.lints.warning import LintWarning
from streamsparql.translator import syntax as s


def cartesian_product(visit: Visit) -> Iterator[LintWarning]:
    """Warn of parts of a join that share no variable, in any order of the joins."""
    match visit.plan:
        case join.LeftJoin(left, right):
            parts = [left, right]
        case BasicGraphPattern() | join.Join() if not visit.inside_join:
            parts = _join_operands(visit.plan)
        case _:
            return
    unrelated = _first_unrelated([part for part in parts if _has_many_rows(part)])
    if unrelated is not None:
        yield LintWarning(
            "cartesian-product",
            "this shares no variable with the patterns before it, so each row joins each row",
            visit.span_of(unrelated) or visit.span,
            visit.translation.text,
            hint="if a FILTER compares IRIs of the two sides with =, use one variable instead",
        )


def _join_operands(plan: Plan) -> list[Plan]:
    """Return the parts of a tree of joins, from left to right."""
    joins = BasicGraphPattern | join.Join

    def below(node: Plan, _: None) -> list[tuple[Plan, None]]:
        return [(part, None) for part in node.inputs] if isinstance(node, joins) else []

    return [node for node, _ in descend(plan, None, below) if not isinstance(node, joins)]


def _has_many_rows(part: Plan) -> bool:
    """Return whether a part can have several rows, and variables to join on."""
    while isinstance(part, shape.Projection | shape.Extend | shape.OrderBy | filter.Filter):
        part = part.input
    match part:
        case shape.Table(_, rows):
            return len(rows) > 1
        case shape.Slice(limit=int() as limit):
            return limit > 1
        case group.Aggregation(()):
            return False
    return bool(scope(part).possible)


def _first_unrelated(parts: list[Plan]) -> Plan | None:
    """Return the first part that no chain of shared variables relates to the first part."""
    binding: dict[Variable, list[int]] = {}
    for index, part in enumerate(parts):
        for variable in scope(part).possible:
            binding.setdefault(variable, []).append(index)
    related, pending = set[int](), [0] if parts else []
    while pending:
        index = pending.pop()
        if index not in related:
            related.add(index)
            for variable in scope(parts[index]).possible:
                pending += binding.pop(variable, [])
    return next((part for index, part in enumerate(parts) if index not in related), None)


def never_bound(visit: Visit) -> Iterator[LintWarning]:
    """Warn of variables that are read and can never be bound."""
    read: Iterable[Variable] = ()
    match visit.plan:
        case shape.Projection(variables, _):
            read = variables
        case graph.Construct(template, _):
            read = (v for pattern in template for v in pattern.variables())
        case graph.Describe(resources, _, _):
            read = (x for x in resources if isinstance(x, Variable))
        case group.Aggregation(keys, aggregates, _):
            read = (*keys, *(v for _, call in aggregates for v in _free(call)))
        case filter.Filter(condition, _) | join.LeftJoin(_, _, Expression() as condition):
            read = _free(condition)
        case shape.Extend(_, expression, _):
            read = _free(expression)
        case shape.OrderBy(keys, _, _):
            read = (v for key, _ in keys for v in _free(key))
    for variable in dict.fromkeys(read):
        if variable not in visit.bound and not variable.hidden:
            yield LintWarning(
                "never-bound",
                f"nothing binds {variable} here",
                _first_span(variable, visit),
                visit.translation.text,
                _did_you_mean(variable, visit),
            )


def _free(expression: Expression) -> Iterator[Variable]:
    return (node for node in expression.walk() if isinstance(node, Variable))


def _first_span(variable: Variable, visit: Visit) -> Span | None:
    """Return the span of a variable's first occurrence, preferably in the operator's text."""
    nodes = visit.translation.syntax.walk()
    spans = [n.span for n in nodes if isinstance(n, s.Var) and n.name == variable.name]
    part = visit.span or Span(0, 0)
    inside = [span for span in spans if part.start <= span.start < part.end]
    return next(iter(inside or spans), visit.span)


def _did_you_mean(variable: Variable, visit: Visit) -> str:
    visible = [v.name for child in visit.plan.inputs for v in visible_variables(child)]
    close = get_close_matches(variable.name, visible, 1, 0.6)
    return f"did you mean ?{close[0]}?" if close else ""
