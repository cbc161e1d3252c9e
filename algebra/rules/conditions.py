"""Analysis of conditions for the rules: variables, conjuncts, and filters built from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamsparql.algebra.expressions import OCCURRENCE, And, Bound, Not
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.node import Node, flatten
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable

Variables = frozenset[Variable]
_NONE: Variables = frozenset()

OCCURRENCES: Variables = frozenset(OCCURRENCE.values())
"""The hidden variables of the occurrence of an event."""


def variables_in(expression: Expression) -> Variables:
    """Return the variables that an expression reads, including those that identify a row.

    >>> from streamsparql.algebra.expressions import Bound, Call
    >>> sorted(map(str, variables_in(Call("=", (Variable("x"), Bound(Variable("y")))))))
    ['?x', '?y']
    """
    return expression.fold(_read, keep="_variables")


def _read(node: Node, parts: list[Variables]) -> Variables:
    if isinstance(node, Variable):
        return frozenset((node,))
    return parts[0] if len(parts) == 1 else _NONE.union(*parts)


def reads_occurrence(condition: Expression) -> bool:
    """Return whether an expression reads the occurrence of an event, which joins change.

    >>> from streamsparql.algebra.expressions import OCCURRENCE
    >>> reads_occurrence(OCCURRENCE["GETDURATION"]), reads_occurrence(Variable("x"))
    (True, False)
    """
    return not OCCURRENCES.isdisjoint(variables_in(condition))


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """Yield the operands of `&&`, which are all true exactly if the condition is."""
    return flatten(condition, lambda one: one.args if isinstance(one, And) else None)


def conjunction(conditions: Iterable[Expression]) -> Expression | None:
    """Return the `&&` of conditions; None for an empty sequence."""
    distinct = tuple(dict.fromkeys(conditions))
    return And(distinct) if len(distinct) > 1 else next(iter(distinct), None)


def filter_by(conditions: Iterable[Expression], plan: Plan) -> Plan:
    """Return a plan filtered by all conditions; the plan itself for an empty sequence."""
    condition = conjunction(conditions)
    return plan if condition is None else Filter(condition, plan)


def split_absent(
    condition: Expression, variables: Variables
) -> tuple[list[Expression], list[Expression]]:
    """Return the conjuncts that require one of these variables to be unbound, and the others.

    >>> from streamsparql.algebra.expressions import Bound, Not
    >>> x = Variable("x")
    >>> split_absent(Not(Bound(x)), frozenset((x,)))[1]
    []
    """
    absent: list[Expression] = []
    others: list[Expression] = []
    for conjunct in conjuncts(condition):
        match conjunct:
            case Not(Bound(variable)) if variable in variables:
                absent.append(conjunct)
            case _:
                others.append(conjunct)
    return absent, others


def split_conjuncts(
    plan: Filter, allowed: Variables | None, forbidden: Variables = _NONE
) -> tuple[list[Expression], list[Expression]]:
    """Return the conjuncts of a filter that can be pushed down, and those that cannot.

    The former read only variables of `allowed` (None: any), and none of `forbidden`.
    """
    pushed: list[Expression] = []
    kept: list[Expression] = []
    for conjunct in conjuncts(plan.condition):
        variables = variables_in(conjunct)
        movable = (allowed is None or variables <= allowed) and not variables & forbidden
        (pushed if movable else kept).append(conjunct)
    return pushed, kept
