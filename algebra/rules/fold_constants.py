"""Constant folding: subexpressions without variables are evaluated once, by their definition.

Law: `f(c1 .. cn) = v` where `evaluate` returns `v`; SPARQL 1.1 section 17.2 for `||`, `&&`, `!`, IF
and COALESCE. Where three-valued logic allows it, one constant operand decides:

    true || x = true      false && x = false      IF(true, a, b) = a      COALESCE(error, x) = x

Side condition: `true && x` is `x` only where the context reads the effective boolean value (in a
condition, or as an operand of `||`, `&&` or `!`), or if x is a boolean. An error is not folded:
the expression stays, so that other rules see that it is never true. NOW() is constant in a run, but
unknown before it; RAND and the other volatile functions depend on the row. The law is about single
rows, so the rule is sound in the pattern of an EXISTS, and over events.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> sum_ = Call("+", (expression("1"), expression("2")))
    >>> plan = Filter(Call("=", (expression("?y"), sum_)), triples("?x p ?y"))
    >>> print(sketch(plan), "->", sketch(fold_constants(plan)))
    Filter(?y = 1 + 2, ?x p ?y) -> Filter(?y = 3, ?x p ?y)
"""

from __future__ import annotations

from collections.abc import Iterator

from streamsparql.algebra import event, filter, group, join, shape
from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.expressions import (
    And,
    Bound,
    Call,
    Coalesce,
    Constant,
    If,
    In,
    Not,
    Or,
    Volatile,
    evaluate,
)
from streamsparql.algebra.functions import Run
from streamsparql.algebra.node import Node
from streamsparql.algebra.parameter import parameters_in
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import variables_in
from streamsparql.algebra.rules.properties import reads_clock
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import boolean
from streamsparql.algebra.xsd.literal_operators import effective_boolean_value

_BOOLEAN_FUNCTIONS = {
    "=",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "ISIRI",
    "ISBLANK",
    "ISLITERAL",
    "ISNUMERIC",
    "REGEX",
}
_BOOLEAN_FUNCTIONS |= {"SAMETERM", "CONTAINS", "STRSTARTS", "STRENDS", "LANGMATCHES"}
_RUN = Run()


def fold_constants(plan: Plan) -> Plan | None:
    """Fold the expressions of an operator."""
    parts = plan.parts()
    folded = tuple(
        fold_expression(part) if isinstance(part, Expression) else part for part in parts
    )
    if all(one is other for one, other in zip(parts, folded, strict=True)):
        return None
    return plan.with_parts(folded)


def fold_expression(expression: Expression) -> Expression:
    """Return the expression with its constant parts evaluated; itself if it has none."""
    if isinstance(expression, Variable | Constant):
        return expression
    folded: Node = expression.fold(_fold, keep="_folded")
    assert isinstance(folded, Expression)
    return folded


def _fold(node: Node, parts: list[Node]) -> Node:
    if isinstance(node, Variable | Constant):
        return node
    if any(one is not other for one, other in zip(node.parts(), parts, strict=True)):
        node = node.with_parts(tuple(parts))
    match node:
        case Or(args):
            return _fold_operands(node, args, True)
        case And(args):
            return _fold_operands(node, args, False)
        case If(Constant(), then, otherwise):
            chosen = truth(node.condition)
            return node if chosen is None else then if chosen else otherwise
        case Coalesce(args):
            return _fold_coalesce(node, args)
        case Call(_, args) | In(_, args) if not all(isinstance(arg, Constant) for arg in args):
            return node
        case Call() | Not(Constant()) | In(Constant()):
            return _evaluated(node)
    return node


def _evaluated(node: Expression) -> Expression:
    if reads_clock(node):
        return node
    try:
        return Constant(evaluate(node, {}, _RUN))
    except ExpressionError:
        return node


def is_constant(expression: Expression) -> bool:
    """Return whether an expression has the same known value, or is an error, in all rows and runs.

    The value of a parameter is not known.
    """
    return (
        not variables_in(expression)
        and not parameters_in(expression)
        and not reads_clock(expression)
        and not any(isinstance(node, Volatile) for node in expression.walk())
    )


def truth(condition: Expression) -> bool | None:
    """Return the effective boolean value of a constant condition; None if it is an error."""
    try:
        return effective_boolean_value(evaluate(condition, {}, _RUN))
    except ExpressionError:
        return None


def _fold_operands(node: Or | And, args: tuple[Expression, ...], until: bool) -> Expression:
    """Fold `||` or `&&`: an operand `until` decides, its opposite is neutral."""
    constants = [truth(arg) if isinstance(arg, Constant) else None for arg in args]
    if until in constants:
        return Constant(boolean(until))
    kept = [arg for arg, value in zip(args, constants, strict=True) if value is None]
    if not kept:
        return Constant(boolean(not until))
    if len(kept) == 1:
        return kept[0] if len(args) > 1 and _is_boolean(kept[0]) else node
    return node if len(kept) == len(args) else type(node)(tuple(kept))


def _is_boolean(expression: Expression) -> bool:
    """Return whether the value, unless an error, is a canonical boolean literal."""
    if isinstance(expression, Call):
        return expression.function in _BOOLEAN_FUNCTIONS
    return isinstance(expression, Or | And | Not | Bound | In)


def _fold_coalesce(node: Coalesce, args: tuple[Expression, ...]) -> Expression:
    """Fold COALESCE: remove constant errors, and all arguments after a constant."""
    kept = list(_relevant(args))
    if len(kept) == 1 and isinstance(kept[0], Constant):
        return kept[0]
    return node if len(kept) == len(args) or not kept else Coalesce(tuple(kept))


def _relevant(args: tuple[Expression, ...]) -> Iterator[Expression]:
    for arg in args:
        if isinstance(arg, Constant) or not is_constant(arg):
            yield arg
        if isinstance(arg, Constant):
            return


_WITH_EXPRESSIONS = (
    filter.Filter,
    join.LeftJoin,
    shape.Extend,
    shape.OrderBy,
    group.Aggregation,
    group.Annotate,
    event.EqLeftJoin,
    event.SeqRightJoin,
)

RULE = Rule(fold_constants, at=_WITH_EXPRESSIONS, over_events=True)
