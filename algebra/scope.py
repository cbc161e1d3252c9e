"""The variables that a plan's rows certainly bind, and those that they possibly bind.

Both are in the order in which the plan, read from left to right, first binds them. The variables of
a SELECT clause are in scope above it even if no pattern binds them (SPARQL 1.1, section 18.2.1), so
they count as possible. Rules, lints and `SELECT *` use the scope.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamsparql.algebra import event, filter, graph, group, join, match, path, shape
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.expressions import OCCURRENCE, Constant
from streamsparql.algebra.node import Node
from streamsparql.algebra.parameter import Parameter
from streamsparql.algebra.plan import Plan, SnapshotOperator
from streamsparql.algebra.solutions import Variable


class Scope(NamedTuple):
    """Ordered sets of variables: `certain` is a subset of `possible`."""

    certain: tuple[Variable, ...] = ()
    possible: tuple[Variable, ...] = ()

    @property
    def is_fixed(self) -> bool:
        """Whether all rows bind the same variables."""
        return len(self.certain) == len(self.possible)


def scope(plan: Plan) -> Scope:
    """Return the variables that the rows of a plan bind.

    >>> from streamsparql.algebra.access import AccessGraph
    >>> from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
    >>> from streamsparql.algebra.terms import IRI
    >>> data, p = AccessGraph(background=True), IRI("p")
    >>> one = TriplePatternMatching(TriplePattern(Variable("x"), p, Variable("y")), data)
    >>> two = TriplePatternMatching(TriplePattern(Variable("x"), p, Variable("z")), data)
    >>> scope(join.LeftJoin(one, two))
    Scope(certain=(?x, ?y), possible=(?x, ?y, ?z))
    """
    return plan.fold(_scope, keep="_scope")


def visible_variables(plan: Plan) -> tuple[Variable, ...]:
    """Return the possible variables that the query names."""
    return tuple(variable for variable in scope(plan).possible if not variable.hidden)


def readable_variables(plan: Plan, outer: frozenset[Variable]) -> frozenset[Variable]:
    """Return the variables that may be bound in the expressions of an operator.

    `outer` are those of the outer rows, if the operator is in the pattern of an EXISTS.
    """
    return outer.union(v for child in plan.inputs for v in scope(child).possible)


def inputs_with_outer(
    plan: Plan, outer: frozenset[Variable]
) -> Iterator[tuple[Plan, frozenset[Variable]]]:
    """Yield the inputs of an operator, each with the outer row's variables that it can read."""
    rows = len(plan.operands)
    for k, child in enumerate(plan.inputs):
        if k >= rows:
            yield child, readable_variables(plan, outer)  # the pattern of an EXISTS
        elif outer and isinstance(plan, SnapshotOperator):
            yield child, frozenset(v for v in outer if plan.exposes(v))
        else:
            yield child, outer


def _scope(node: Node, parts: list[Scope]) -> Scope:
    if not isinstance(node, Plan):
        return Scope()
    inputs = [s for part, s in zip(node.parts(), parts, strict=True) if isinstance(part, Plan)]
    match node:
        case match.TriplePatternMatching(pattern, _, stamps):
            stamped = tuple(stamp.variable for stamp in stamps)
            return Scope(pattern.variables(), pattern.variables() + stamped)
        case path.Path():
            ends = (end for end in (node.subject, node.object) if isinstance(end, Variable))
            return _certain_scope(*ends)
        case shape.Table(variables, rows):
            columns = zip(*rows, strict=True) if rows else [()] * len(variables)
            full = (v for v, c in zip(variables, columns, strict=True) if None not in c)
            return Scope(tuple(full), variables)
        case join.Union():
            common = set(inputs[0].certain).intersection(*(s.certain for s in inputs))
            merged = _merge_scopes(inputs)
            return Scope(tuple(v for v in merged.possible if v in common), merged.possible)
        case join.LeftJoin() | event.EqLeftJoin():
            return Scope(inputs[0].certain, _merge_scopes(inputs[:2]).possible)
        case event.SeqRightJoin():
            return Scope(inputs[1].certain, _merge_scopes(inputs).possible)
        case join.Minus() | filter.SemiJoin() | filter.AntiJoin():
            return inputs[0]
        case event.NeverBefore():
            return inputs[1]
        case event.SeqWithout():
            return _merge_scopes(inputs[:2])
        case filter.Mark(variable) | shape.Number(variable):
            return _merge_scopes([inputs[0], _certain_scope(variable)])
        case shape.Extend(variable, expression):
            known = isinstance(expression, Constant | Parameter)
            sure = known or expression in inputs[0].certain
            return _merge_scopes([inputs[0], Scope((variable,) * sure, (variable,))])
        case shape.Projection(variables):
            bound = frozenset(inputs[0].certain)
            return Scope(tuple(v for v in variables if v in bound), variables)
        case group.Aggregation(keys, aggregates):
            counts = (v for v, call in aggregates if call.function == "COUNT")
            certain = (*(k for k in keys if k in inputs[0].certain), *counts)
            return Scope(certain, (*keys, *(v for v, _ in aggregates)))
        case group.Annotate(variable, call):
            sure = call.function == "COUNT"
            return _merge_scopes([inputs[0], Scope((variable,) * sure, (variable,))])
        case graph.Graph(name):
            return (
                _merge_scopes([inputs[0], _certain_scope(name)])
                if isinstance(name, Variable)
                else inputs[0]
            )
        case event.Detect():
            return _merge_scopes([inputs[0], Scope((), tuple(OCCURRENCE.values()))])
        case Closure():
            return inputs[-1]
        case graph.Construct() | graph.Describe() | graph.Ask():
            return Scope()
    return _merge_scopes(inputs)


def _certain_scope(*variables: Variable) -> Scope:
    distinct = tuple(dict.fromkeys(variables))
    return Scope(distinct, distinct)


def _merge_scopes(scopes: list[Scope]) -> Scope:
    return Scope(
        tuple(dict.fromkeys(v for s in scopes for v in s.certain)),
        tuple(dict.fromkeys(v for s in scopes for v in s.possible)),
    )
