"""Lints of windows: state without bound, elements that are missed, triples that are counted."""

from __future__ import annotations

from collections.abc import Iterator

from streamsparql.algebra import event, filter, join
from streamsparql.algebra import expressions as e
from streamsparql.algebra.grid import Grid
from streamsparql.algebra.match import BasicGraphPattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.window import ElementWindow, TimeWindow, Window
from streamsparql.look.lints.conditions import fails
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
        case event.Detect(pattern) if _joins_instants(pattern) and not _is_bounded(pattern):
            yield visit.warn(
                "unbounded-state",
                "no filter bounds the time between the events, so all of them are retained forever",
                'add FILTER(getDURATION() < "PT1H"^^xsd:duration)',
            )


def _joins_instants(pattern: Plan) -> bool:
    """Return whether a pattern joins events of different instants; EQUALS does not."""
    operators = join.Join | join.LeftJoin | BasicGraphPattern | event.SeqJoin | event.SeqRightJoin
    return any(isinstance(node, operators) for node in pattern.walk())


def _is_bounded(pattern: Plan) -> bool:
    """Return whether the topmost filters have a conjunct `getDURATION() < X`."""
    while isinstance(pattern, event.Closure):
        pattern = pattern.input
    while isinstance(pattern, filter.Filter):
        parts = (
            pattern.condition.args if isinstance(pattern.condition, e.And) else [pattern.condition]
        )
        if any(_is_duration_bound(part) for part in parts):
            return True
        pattern = pattern.input
    return False


def _is_duration_bound(condition: Expression) -> bool:
    duration = e.OCCURRENCE["GETDURATION"]
    match condition:
        case e.Call("<" | "<=", (Variable() as variable, e.Constant())):
            return variable == duration and not fails(condition)
        case e.Call(">" | ">=", (e.Constant(), Variable() as variable)):
            return variable == duration and not fails(condition)
    return False


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
