"""What the rules take conditions apart with, and put them together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamsparql.algebra.expressions import And
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.node import Node, flatten
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable

Variables = frozenset[Variable]
_NONE: Variables = frozenset()


def variables_in(expression: Expression) -> Variables:
    """The variables that an expression reads; those that make up a row's identity are among them.

    >>> from streamsparql.algebra.expressions import Bound, Call
    >>> sorted(map(str, variables_in(Call("=", (Variable("x"), Bound(Variable("y")))))))
    ['?x', '?y']
    """
    return expression.fold(_read, keep="_variables")


def _read(node: Node, parts: list[Variables]) -> Variables:
    if isinstance(node, Variable):
        return frozenset((node,))
    return parts[0] if len(parts) == 1 else _NONE.union(*parts)


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """Yield the conditions that must all be true for this one to be: the operands of `&&`."""
    return flatten(condition, lambda one: one.args if isinstance(one, And) else None)


def conjunction(conditions: Iterable[Expression]) -> Expression | None:
    """The condition that is true where all of these are, None if there are none."""
    distinct = tuple(dict.fromkeys(conditions))
    return And(distinct) if len(distinct) > 1 else next(iter(distinct), None)


def filter_by(conditions: Iterable[Expression], plan: Plan) -> Plan:
    """The rows of a plan for which all conditions are true."""
    condition = conjunction(conditions)
    return plan if condition is None else Filter(condition, plan)


def split_conjuncts(
    plan: Filter, can_go: Variables | None, stays: Variables = _NONE
) -> tuple[list[Expression], list[Expression]]:
    """The filter's conjuncts that may go further down, and those that stay.

    Those go that read nothing but `can_go` (None: anything) and nothing of `stays`.
    """
    going: list[Expression] = []
    staying: list[Expression] = []
    for one in conjuncts(plan.condition):
        variables = variables_in(one)
        goes = (can_go is None or variables <= can_go) and not variables & stays
        (going if goes else staying).append(one)
    return going, staying
