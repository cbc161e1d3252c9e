"""Bounds on the duration of events, which bound the state of the operators (SEMANTICS.md 7, R17).

A filter `getDURATION() < X` holds for every event that passes it, so no part of such an event may
take X or longer. The bound of a filter therefore holds for the operands of each operator below it,
down to the patterns, with one exception. The absence of a row of an optional side lets a row of the
other side pass unmatched, so a row that is dropped would change the result: only a bound in the
optional side's own filter applies to it. EQUALSOPTIONAL needs no such exception, since both parts
of a pair take the same time.

Durations with months bound nothing: whether an event is shorter than a month depends on the month,
so that the comparison is an error for some events (R26).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from streamsparql.algebra import event, filter, join, match
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.expressions import OCCURRENCE, Call, Constant
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import conjuncts, reads_occurrence
from streamsparql.algebra.rules.properties import is_static
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import Literal
from streamsparql.algebra.traversal import descend
from streamsparql.algebra.xsd.durations import XsdDuration
from streamsparql.algebra.xsd.moments import DateTime
from streamsparql.algebra.xsd.numeric import EXACT
from streamsparql.algebra.xsd.values import value_of

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_DURATION = OCCURRENCE["GETDURATION"]


class TimeComparison(NamedTuple):
    """A comparison of a time of an event with a constant: `variable symbol milliseconds`.

    `variable` is one of OCCURRENCE; the symbol is one of `<`, `>=`, `=` and `!=`. The constant of
    `=` and `!=` is None if it is not a whole number of milliseconds, as all times of events are.
    """

    variable: Variable
    symbol: str
    milliseconds: int | None


def time_comparison(condition: Expression) -> TimeComparison | None:
    """Return a condition as the comparison of a time of an event with a constant, if it is one.

    >>> from streamsparql.algebra.terms import IRI, XSD
    >>> ten = Constant(Literal("PT0.0105S", IRI(XSD + "duration")))
    >>> time_comparison(Call("<=", (_DURATION, ten)))[1:]
    ('<', 11)
    >>> time_comparison(Call(">=", (ten, _DURATION)))[1:]
    ('<', 11)
    """
    match condition:
        case Call(str() as symbol, (Variable() as variable, Constant(Literal() as constant))):
            pass
        case Call(str() as symbol, (Constant(Literal() as constant), Variable() as variable)):
            symbol = _MIRRORED.get(symbol, symbol)
        case _:
            return None
    if variable not in OCCURRENCE.values() or symbol not in _MIRRORED:
        return None
    value = value_of(constant)
    if variable == _DURATION:
        if not isinstance(value, XsdDuration) or value.months:
            return None
        exact = EXACT.scaleb(value.seconds, 3)
    elif type(value) is DateTime:
        exact = EXACT.scaleb(value.instant, 3)
    else:
        return None
    match symbol:
        case "<" | ">=":
            return TimeComparison(variable, symbol, math.ceil(exact))
        case "<=" | ">":
            least_above = math.floor(exact) + 1
            return TimeComparison(variable, "<" if symbol == "<=" else ">=", least_above)
    whole = math.floor(exact)
    return TimeComparison(variable, symbol, whole if whole == exact else None)


def bound_of(condition: Expression | None) -> int:
    """Return the duration, in milliseconds, that events which pass a condition do not reach.

    INFINITY if the condition has no such bound.

    >>> from streamsparql.algebra.terms import IRI, XSD
    >>> second = Constant(Literal("PT1S", IRI(XSD + "duration")))
    >>> bound_of(Call("<", (_DURATION, second))), bound_of(None) == INFINITY
    (1000, True)
    """
    if condition is None:
        return INFINITY
    bounds = [INFINITY]
    for conjunct in conjuncts(condition):
        comparison = time_comparison(conjunct)
        if comparison is not None and comparison.variable == _DURATION:
            _, symbol, limit = comparison
            if symbol in ("<", "=") and limit is not None:
                bounds.append(limit + (symbol == "="))
    return min(bounds)


def bounds_below(node: Plan, bound: int) -> tuple[int, ...]:
    """Return the bound of each input of an operator over events, for a bound on its rows.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> a, b = streamed("?x p ?y"), streamed("?x q ?z")
    >>> bounds_below(event.SeqJoin(a, b), 10), bounds_below(event.SeqRightJoin(a, b), 10)[1]
    ((10, 10), 10)
    """
    match node:
        case filter.Filter(condition):
            return (min(bound, bound_of(condition)),)
        case join.LeftJoin(_, _, condition):
            return (bound, bound_of(condition))
        case event.SeqRightJoin(_, _, condition) | event.NeverBefore(_, _, condition):
            return (bound_of(condition), bound)
        case event.EqLeftJoin(_, _, condition):
            return (bound, min(bound, bound_of(condition)))
        case event.Detect():
            return (INFINITY,)
        case Closure():
            return (*(INFINITY for _ in node.rules), bound)
    return (bound,) * len(node.inputs)


class _EventPlace(NamedTuple):
    """A place below a Detect: the bound of its rows, and whether it is below a warning."""

    bound: int
    reported: bool


def unbounded_operators(pattern: Plan) -> Iterator[Plan]:
    """Yield the topmost operators over events that retain rows for an unlimited time."""
    for node, (bound, reported) in descend(pattern, _EventPlace(INFINITY, False), _event_places):
        if not reported and _retains(node, bound):
            yield node


def _event_places(node: Plan, place: _EventPlace) -> list[tuple[Plan, _EventPlace]]:
    if isinstance(node, Closure):  # each rule has its own warnings
        return [(node.input, place)]
    reported = place.reported or _retains(node, place.bound)
    return [
        (part, _EventPlace(bound, reported and bound == INFINITY))
        for part, bound in zip(node.inputs, bounds_below(node, place.bound), strict=True)
    ]


def _retains(node: Plan, bound: int) -> bool:
    """Return whether an operator retains rows of events for an unlimited time.

    Of an optional side one row per key is retained in any case: what decides whether rows match.
    """
    if sum(not is_static(part) for part in node.inputs) < 2:
        return False
    match node:
        case join.LeftJoin(_, _, condition) | event.SeqRightJoin(_, _, condition):
            return min(bound, bound_of(condition)) == INFINITY
        case event.NeverBefore(_, _, condition):
            occurs = condition is not None and reads_occurrence(condition)
            return occurs and bound_of(condition) == INFINITY
        case join.Join() | match.BasicGraphPattern() | event.SeqJoin() | event.SeqWithout():
            return bound == INFINITY
    return False
