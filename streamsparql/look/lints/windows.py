"""Lints of windows: state without bound, elements that are missed, triples that are counted."""

from __future__ import annotations

from collections.abc import Iterator

from streamsparql.algebra import event, filter, join
from streamsparql.algebra import expressions as e
from streamsparql.algebra.bounds import unbounded_operators
from streamsparql.algebra.grid import Grid
from streamsparql.algebra.rules.conditions import conjuncts
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.streams import INFINITY
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
            for node in unbounded_operators(pattern):
                yield LintWarning(
                    "unbounded-state",
                    "no filter bounds the time between these events, so all of them are retained"
                    " forever",
                    visit.span_of(node) or visit.span,
                    visit.translation.text,
                    'add FILTER(getDURATION() < "PT1H"^^xsd:duration)',
                )


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
