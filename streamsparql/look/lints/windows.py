"""Lints of windows: state without bound, elements that are missed, triples that are counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamsparql.algebra import event, filter, join
from streamsparql.algebra import expressions as e
from streamsparql.algebra.bounds import bound_of, bounds_below
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.grid import Grid
from streamsparql.algebra.match import BasicGraphPattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import conjuncts, reads_occurrence
from streamsparql.algebra.rules.properties import is_static
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.traversal import descend
from streamsparql.algebra.window import ElementWindow, TimeWindow, Window
from streamsparql.algebra.xsd.durations import XsdDuration
from streamsparql.algebra.xsd.values import value_of
from streamsparql.look.lints.visit import Visit
from streamsparql.look.lints.warning import LintWarning


def unbounded_state(visit: Visit) -> Iterator[LintWarning]:
    """Warn of windows and event patterns whose state grows without bound."""
    match visit.plan:
        case Window() as window if window.reach >= INFINITY:
            yield visit.warn(
                "unbounded-state",
                "this window never evicts an element, so its state grows without bound",
            )
        case event.Detect(pattern):
            for node in _unbounded_operators(pattern):
                yield LintWarning(
                    "unbounded-state",
                    "no filter bounds the time between these events, so all of them are retained"
                    " forever",
                    visit.span_of(node) or visit.span,
                    visit.translation.text,
                    'add FILTER(getDURATION() < "PT1H"^^xsd:duration)',
                )


class _EventPlace(NamedTuple):
    """A place below a Detect: the bound of its rows, and whether it is below a warning."""

    bound: int
    reported: bool


def _unbounded_operators(pattern: Plan) -> Iterator[Plan]:
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
        case join.Join() | BasicGraphPattern() | event.SeqJoin() | event.SeqWithout():
            return bound == INFINITY
    return False


def months_in_bound(visit: Visit) -> Iterator[LintWarning]:
    """Warn of a duration with months, which does not bound the state (R26)."""
    match visit.plan:
        case filter.Filter(condition, _) | join.LeftJoin(_, _, Expression() as condition):
            conditions = conjuncts(condition)
        case event.SeqRightJoin(_, _, Expression() as condition):
            conditions = conjuncts(condition)
        case event.EqLeftJoin(_, _, Expression() as condition):
            conditions = conjuncts(condition)
        case _:
            return
    if any(map(_compares_months, conditions)):
        yield visit.warn(
            "months-in-bound",
            "a duration with months does not bound the state: months differ in length, so that"
            " some comparisons with it are errors",
            "write days: P30D",
        )


def _compares_months(condition: Expression) -> bool:
    duration = e.OCCURRENCE["GETDURATION"]
    match condition:
        case e.Call("<" | "<=", (Variable() as variable, e.Constant(term))):
            pass
        case e.Call(">" | ">=", (e.Constant(term), Variable() as variable)):
            pass
        case _:
            return False
    value = value_of(term)
    return variable == duration and isinstance(value, XsdDuration) and value.months > 0


def missed_elements(visit: Visit) -> Iterator[LintWarning]:
    """Warn of windows that slide by more than their length."""
    match visit.plan:
        case TimeWindow(misses_elements=True, grid=Grid(step), length=length):
            yield visit.warn(
                "missed-elements",
                f"the window slides by {step} ms and is {length} ms long: elements are missed",
            )
        case ElementWindow(misses_elements=True, moves_by=step, count=count):
            yield visit.warn(
                "missed-elements",
                f"the window slides by {step} elements and contains {count}: elements are missed",
            )
