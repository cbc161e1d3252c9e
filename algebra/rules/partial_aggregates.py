"""Aggregates of parts of a group, and how the values of the parts are combined.

A group is divided into parts, none of which is empty. COUNT is the sum of the counts of the parts,
MIN, MAX and SAMPLE are those of their values, and SUM is the sum of their sums, AVG that sum by the
sum of the counts: the distributive and algebraic aggregates of Gray et al., "Data cube", 1997. An
error in a part leaves its value unbound, and then the combined one.

A sum is exact and rounded once. A sum of sums of doubles is rounded several times, so SUM and AVG
are divided only where all numbers are certain to be integers or decimals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from streamsparql.algebra.expressions import Aggregate, Call, Coalesce, Constant, If
from streamsparql.algebra.group import Aggregation
from streamsparql.algebra.hidden_variables import Hidden, PlanKind
from streamsparql.algebra.join import Union
from streamsparql.algebra.node import flatten
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import Variables, variables_in
from streamsparql.algebra.shape import Extend, Projection
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, XSD, Literal, integer
from streamsparql.algebra.xsd.numeric import INTEGERS

NamedAggregates = Sequence[tuple[Variable, Aggregate]]


class Division(NamedTuple):
    """The aggregates of parts, those that combine their values, and expressions over these."""

    of_parts: tuple[tuple[Variable, Aggregate], ...]
    combining: tuple[tuple[Variable, Aggregate], ...]
    computed: tuple[tuple[Variable, Expression], ...]

    @property
    def read(self) -> Variables:
        """The variables that the aggregates of the parts read."""
        return frozenset[Variable]().union(*(variables_in(call) for _, call in self.of_parts))

    def parts(self, keys: tuple[Variable, ...], plan: Plan) -> Plan:
        """Return the aggregates of parts: the groups of a plan by keys."""
        return Aggregation(keys, self.of_parts, plan)

    def combined(self, keys: tuple[Variable, ...], aggregates: NamedAggregates, plan: Plan) -> Plan:
        """Return the groups by keys, over the values of their parts."""
        groups: Plan = Aggregation(keys, self.combining, plan)
        for variable, expression in self.computed:
            groups = Extend(variable, expression, groups)
        if not self.computed:
            return groups
        return Projection((*keys, *(variable for variable, _ in aggregates)), groups)


def divide(aggregates: NamedAggregates) -> Division | None:
    """Divide aggregates into those of parts of a group; None if one cannot be divided.

    >>> x, n = Variable("x"), Variable("n")
    >>> divided = divide([(n, Aggregate("COUNT", x))])
    >>> [call.function for _, call in divided.of_parts + divided.combining]
    ['COUNT', 'SUM']
    >>> divide([(n, Aggregate("SUM", x))]) is None
    True
    """
    if not aggregates:
        return None
    division = _Divider()
    for variable, call in aggregates:
        if not division.add(variable, call):
            return None
    return Division(tuple(division.of_parts), tuple(division.combining), tuple(division.computed))


_EXACT_TYPES = frozenset(IRI(f"{XSD}{name}") for name in (*INTEGERS, "decimal"))
_EXACT = _EXACT_TYPES | {"STRLEN", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"}
"""The functions whose numbers are exact, casts included."""
_EXACT_OF_EXACT = frozenset({"+", "-", "*", "u+", "u-", "ABS", "CEIL", "FLOOR", "ROUND"})
"""The functions whose numbers are exact if those of their arguments are."""


class _Divider:
    def __init__(self) -> None:
        self.of_parts: list[tuple[Variable, Aggregate]] = []
        self.combining: list[tuple[Variable, Aggregate]] = []
        self.computed: list[tuple[Variable, Expression]] = []

    def add(self, variable: Variable, call: Aggregate) -> bool:
        """Divide an aggregate; return whether it can be divided."""
        sums = call.argument is not None and always_exact(call.argument)
        match call.function:
            case "COUNT" if not call.distinct:
                self._combine(variable, call, "SUM")
            case "MIN" | "MAX" | "SAMPLE":
                self._combine(variable, call, call.function)
            case "SUM" if sums and not call.distinct:
                self._combine(variable, call, "SUM")
            case "AVG" if sums and not call.distinct:
                total, number = (Hidden(PlanKind.WHOLE, self._next + k) for k in (0, 1))
                self._combine(total, Aggregate("SUM", call.argument), "SUM")
                self._combine(number, Aggregate("COUNT", call.argument), "SUM")
                none = Call("=", (number, Constant(integer(0))))
                mean = If(none, total, Call("/", (total, number)))
                self.computed.append((variable, mean))
            case _:
                return False
        return True

    @property
    def _next(self) -> int:
        return len(self.of_parts)

    def _combine(self, variable: Variable, call: Aggregate, function: str) -> None:
        part = Hidden(PlanKind.PART, self._next)
        self.of_parts.append((part, call))
        self.combining.append((variable, Aggregate(function, part)))


def always_exact(expression: Expression) -> bool:
    """Return whether an expression has no values that are floats or doubles.

    >>> x = Variable("x")
    >>> always_exact(x), always_exact(Call("STRLEN", (x,)))
    (False, True)
    """
    match expression:
        case Constant(term):
            return isinstance(term, Literal) and term.datatype in _EXACT_TYPES
        case Call(function, args) if function in _EXACT_OF_EXACT:
            return all(map(always_exact, args))
        case Call(function):
            return function in _EXACT
        case If(_, then, otherwise):
            return always_exact(then) and always_exact(otherwise)
        case Coalesce(args):
            return all(map(always_exact, args))
    return False


def is_grouped(plan: Plan, keys: Sequence[Variable]) -> bool:
    """Return whether rows are groups by some of these keys, so that grouping them is idle."""
    rows = flatten(plan, _branches)
    return any(isinstance(each, Aggregation) and set(each.keys) <= set(keys) for each in rows)


def _branches(plan: Plan) -> tuple[Plan, ...] | None:
    return plan.inputs if isinstance(plan, Union | Projection | Extend) else None
