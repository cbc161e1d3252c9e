"""Lints of filters: conditions that are false or an error for every row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from streamsparql.algebra import expressions as e
from streamsparql.algebra import filter, join
from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.functions import Run
from streamsparql.algebra.match import TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.solutions import EMPTY, Expression, Solution, Variable
from streamsparql.algebra.terms import IRI, Literal
from streamsparql.algebra.xsd.literal_operators import effective_boolean_value
from streamsparql.algebra.xsd.values import date_time_literal, duration_literal
from streamsparql.look.lints.visit import Visit
from streamsparql.look.lints.warning import LintWarning


def never_true(visit: Visit) -> Iterator[LintWarning]:
    """Warn of filters that no row can pass, and patterns that no triple can match."""
    match visit.plan:
        case filter.Filter(condition, _) if _never_true(condition, visit.bound):
            yield visit.warn(
                "never-true", "this filter is false or an error for every row, so no row passes"
            )
        case join.LeftJoin(_, _, Expression() as condition) if _never_true(condition, visit.bound):
            yield visit.warn("never-true", "the filter of this OPTIONAL is never true")
        case TriplePatternMatching(pattern) if isinstance(pattern.subject, Literal):
            yield visit.warn("never-true", "no triple has a literal as its subject")


def _never_true(condition: Expression, bound: frozenset[Variable]) -> bool:
    match condition:
        case e.And(args):
            return any(_never_true(arg, bound) for arg in args)
        case e.Or(args):
            return all(_never_true(arg, bound) for arg in args)
        case e.In(_, ()):
            return True
        case e.Bound(variable):
            return variable not in bound
        case e.Not(arg):
            return _always_error(arg, bound) or (_is_constant(arg) and _is_true(arg))
    return _always_error(condition, bound) or (_is_constant(condition) and not _is_true(condition))


def _is_constant(expression: Expression) -> bool:
    """Return whether an expression has the same value for all rows and runs."""
    varying = Variable | e.Volatile | e.Bound
    return not any(isinstance(node, varying) or _is_now(node) for node in expression.walk())


def _is_now(node: Node) -> bool:
    return isinstance(node, e.Call) and node.function == "NOW"


def _is_true(expression: Expression) -> bool:
    value = e.value_or_none(expression, EMPTY, Run())
    try:
        return value is not None and effective_boolean_value(value)
    except ExpressionError:
        return False


_ARITHMETIC = frozenset("+ - * / u+ u-".split())
_ORDER = frozenset("< > <= >=".split())


def _always_error(expression: Expression, bound: frozenset[Variable]) -> bool:
    """Return whether an expression is certain to be an error for every row."""

    def is_error(node: Node, parts: list[bool]) -> bool:
        match node:
            case Variable():
                return node not in bound and not node.hidden
            case e.Call(function, args):
                return (
                    any(parts)
                    or any(_cannot_apply(function, arg) for arg in args)
                    or (all(isinstance(arg, _ATOMS) for arg in args) and fails(node))
                )
            case e.In():
                return parts[0]
        return False

    return expression.fold(is_error)


def _cannot_apply(function: str | IRI, arg: Expression) -> bool:
    """Return whether an operator is an error for a constant, with any other operand."""
    if not isinstance(arg, e.Constant):
        return False
    if function in _ORDER:
        return isinstance(arg.term, IRI)
    if function in _ARITHMETIC:
        return not isinstance(arg.term, Literal) or arg.term.datatype.value.endswith("tring")
    return False


@cache
def _sample_occurrence() -> Solution:
    """Return an occurrence over which expressions are evaluated, to detect type errors."""
    return Solution(
        {
            e.OCCURRENCE["GETSTARTTIME"]: date_time_literal(0),
            e.OCCURRENCE["GETENDTIME"]: date_time_literal(1),
            e.OCCURRENCE["GETDURATION"]: duration_literal(1),
        }
    )


_ATOMS = e.Constant | Variable


def fails(expression: Expression) -> bool:
    """Return whether an expression of constants and occurrences is an error."""
    free = {node for node in expression.walk() if isinstance(node, Variable)}
    return (
        free <= set(_sample_occurrence())
        and e.value_or_none(expression, _sample_occurrence(), Run()) is None
    )
