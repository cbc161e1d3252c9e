"""What a dialect is, and the window clauses that mean the same in all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from streamsparql.algebra import window as w
from streamsparql.algebra.plan import Plan
from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s

Windowing = Callable[[Plan], w.Window]
"""A window that has no input yet: the paper's `win`, with `withInput`."""

LONGEST = 2**61
"""Milliseconds: some 70 million years, so that sums of times stay in an int64."""


@dataclass(frozen=True)
class Slot:
    """Where a window stands: the name it has of its own, and the origin of its grid."""

    name: str | None
    origin: int


@dataclass(frozen=True)
class Dialect:
    """How one of the languages differs from the others."""

    name: str
    title: str
    content: Literal["bag", "set", "events"]
    report: Literal["rstream", "istream"] | None
    bracketed: Callable[[s.WindowClause, Slot], Windowing]

    def windowing(self, clause: s.WindowClause, slot: Slot) -> Windowing:
        """What a window clause means here. WINDOW RANGE and WINDOW ELEMS mean the same in all."""
        match clause:
            case _ if self.content == "events":
                return self.bracketed(clause, slot)
            case s.WindowSlide(width, slide):
                return sliding(width, slide or _one_unit(width), slot)
            case s.WindowFixed(width):
                return fixed(width, slot)
            case s.WindowElems(count):
                return rows(count, None, clause, slot)
            case s.WindowInThePast():
                raise UnsupportedFeature(
                    "windows that end in the past, or are written with NOW, are SPARQLstream's",
                    clause.span,
                    hint="a window that ends now is written [RANGE 10s STEP 1s]",
                )
        return self.bracketed(clause, slot)


def sliding(width: s.DurationLiteral, slide: s.DurationLiteral, slot: Slot) -> Windowing:
    """A live-edge window. It cannot slide by more than it holds: elements would be missed (R1)."""
    range_, step = length(width), length(slide)
    if step > range_:
        raise QueryError(
            f"a window of {range_} ms that slides by {step} ms would miss elements",
            slide.span,
            hint="SLIDE may be at most as long as RANGE",
        )
    return lambda plan: w.SlidingDeltaWindow(plan, range_, step, name=slot.name, origin=slot.origin)


def fixed(width: s.DurationLiteral, slot: Slot) -> Windowing:
    """A tumbling live-edge window."""
    range_ = length(width)
    return lambda plan: w.FixedWindow(plan, range_, name=slot.name, origin=slot.origin)


def stepped(
    width: s.DurationLiteral, step: s.DurationLiteral, closed: Literal["left", "right"], slot: Slot
) -> Windowing:
    """A window whose content is frozen between steps."""
    range_, d = length(width), length(step)
    return lambda plan: w.SteppedWindow(plan, range_, d, closed, name=slot.name, origin=slot.origin)


def rows(count: int, step: int | None, clause: s.SyntaxNode, slot: Slot) -> Windowing:
    """A window of the last `count` elements, refreshed by each one or by every `step`-th."""
    if count <= 0 or step == 0:
        raise QueryError("a window of no elements holds nothing", clause.span)
    if step is None:
        return lambda plan: w.SlidingTupleWindow(plan, count, name=slot.name)
    return lambda plan: w.SteppedTupleWindow(plan, count, step, name=slot.name)


def length(duration: s.DurationLiteral) -> int:
    """A length of time that a window can have, in milliseconds."""
    if not 0 < duration.milliseconds <= LONGEST:
        few = duration.milliseconds == 0
        raise QueryError(f"a length of time cannot be {'0' if few else 'so long'}", duration.span)
    return duration.milliseconds


def _one_unit(width: s.DurationLiteral) -> s.DurationLiteral:
    """SLIDE with no value: one unit of the RANGE's own unit, with none a millisecond (R10, R11)."""
    return s.DurationLiteral(width.unit or 1, span=width.span)
