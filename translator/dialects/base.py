"""The record of a dialect, and the window clauses with the same meaning in all dialects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from streamsparql.algebra import window as w
from streamsparql.algebra.plan import Plan
from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s

Windowing = Callable[[Plan], w.Window]
"""A function that puts a window over its input: the paper's `win`, with `withInput`."""

MAX_DURATION = 2**61
"""In milliseconds, some 70 million years: sums of times stay in an int64."""


@dataclass(frozen=True)
class WindowSetting:
    """The properties of a window that its clause does not state: a name, the origin of its grid."""

    name: str | None
    origin: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Dialect:
    """The differences of one language from the others.

    Everything that depends on the dialect is a field here; users write `name` or one of `aliases`,
    and messages show `title`.
    """

    name: str
    title: str
    aliases: tuple[str, ...] = ()

    bracketed: Callable[[s.WindowClause, WindowSetting], Windowing]
    """The meaning of a window clause in brackets."""

    window_text: Callable[[w.Window], str | None]
    """The function that writes a window as a clause; None for a window without one."""

    report: Literal["rstream", "istream"] | None
    """The default report; None for rows with their validity."""

    has_events: bool = False
    """Whether queries are about events on one stream, without windows (SEMANTICS.md section 7)."""

    windows_hold_sets: bool = False
    """Whether a window is a set: a triple that arrives twice is in it once."""

    reports_every_change: bool = False
    """Whether reports follow every change of the results, not the movements of windows."""

    graph_reads_default_streams: bool = False
    """Whether GRAPH <stream> reads FROM STREAM <stream> too, with the static graph (R19)."""

    has_named_streams: bool = False
    """Whether FROM NAMED STREAM has a window, which GRAPH <stream> reads."""

    has_stream_blocks: bool = False
    """Whether a group can be STREAM <stream> [window] { .. }."""

    window_names: Literal["variable", "iri"] | None = None
    """The names of windows: `FROM NAMED <s> [..] AS ?w`, or `FROM NAMED WINDOW <w> ON <s> [..]`."""

    streams_carry_triples: bool = False
    """Whether a registered stream consists of triples, which only CONSTRUCT and DESCRIBE emit."""

    def windowing(self, clause: s.WindowClause, setting: WindowSetting) -> Windowing:
        """Return the window of a clause in this dialect."""
        match clause:
            case _ if self.has_events:
                return self.bracketed(clause, setting)
            case s.WindowSlide(width, slide):
                return sliding(width, slide or _one_unit(width), setting)
            case s.WindowFixed(width):
                return fixed(width, setting)
            case s.WindowElems(count):
                return last_elements(count, None, clause, setting)
            case s.WindowInThePast():
                raise UnsupportedFeature(
                    "unsupported window of SPARQLstream, with bounds relative to NOW",
                    clause.span,
                    hint="a window that ends now is written [RANGE 10s STEP 1s]",
                )
        return self.bracketed(clause, setting)


def sliding(
    width: s.DurationLiteral, slide: s.DurationLiteral, setting: WindowSetting
) -> Windowing:
    """Return a live-edge window. It must not slide by more than its width (R1)."""
    range_, step = length(width), length(slide)
    if step > range_:
        bare = width.unit is None and slide.unit is not None
        raise QueryError(
            f"a window of {range_} ms that slides by {step} ms would miss elements",
            slide.span,
            hint=f"{range_} without a unit is {range_} ms; write {range_} SECOND"
            if bare
            else "SLIDE may be at most as long as RANGE",
        )
    return lambda plan: w.SlidingDeltaWindow(
        plan, range_, step, name=setting.name, origin=setting.origin
    )


def fixed(width: s.DurationLiteral, setting: WindowSetting) -> Windowing:
    """Return a tumbling live-edge window."""
    range_ = length(width)
    return lambda plan: w.FixedWindow(plan, range_, name=setting.name, origin=setting.origin)


def stepped(
    width: s.DurationLiteral,
    step: s.DurationLiteral,
    closed: Literal["left", "right"],
    setting: WindowSetting,
) -> Windowing:
    """Return a window whose content does not change between steps."""
    range_, d = length(width), length(step)
    return lambda plan: w.SteppedWindow(
        plan, range_, d, closed, name=setting.name, origin=setting.origin
    )


def last_elements(
    count: int, step: int | None, clause: s.SyntaxNode, setting: WindowSetting
) -> Windowing:
    """Return a window of the last `count` elements; it moves at each or every `step`-th element."""
    if count <= 0 or step == 0:
        raise QueryError("a window of 0 elements is always empty", clause.span)
    if step is None:
        return lambda plan: w.SlidingTupleWindow(plan, count, name=setting.name)
    return lambda plan: w.SteppedTupleWindow(plan, count, step, name=setting.name)


def length(duration: s.DurationLiteral) -> int:
    """Return the length of a window in milliseconds; raise for an invalid one."""
    if not 0 < duration.milliseconds <= MAX_DURATION:
        problem = "0" if duration.milliseconds == 0 else f"longer than {MAX_DURATION} ms"
        raise QueryError(f"the length of a window cannot be {problem}", duration.span)
    return duration.milliseconds


def _one_unit(width: s.DurationLiteral) -> s.DurationLiteral:
    """Return the default of SLIDE: one unit of RANGE, or a millisecond (R10, R11)."""
    return s.DurationLiteral(width.unit or 1, span=width.span)


# -- windows as text -------------------------------------------------------------------------------


def native_clause(window: w.Window) -> str | None:
    """Return a window as a clause of Streaming SPARQL; None if there is no clause for it."""
    match window:
        case w.SlidingDeltaWindow():
            return f"WINDOW RANGE {window.width} MS SLIDE {window.slide} MS"
        case w.FixedWindow():
            return f"WINDOW RANGE {window.width} MS FIXED"
        case w.SlidingTupleWindow():
            return f"WINDOW ELEMS {window.count}"
    return None


def bracketed_clause(window: w.Window) -> str | None:
    """Return a window as a clause of C-SPARQL, CQELS and RSP-QL; None if there is none."""
    match window:
        case w.SlidingDeltaWindow():
            return f"[RANGE {window.width}ms SLIDE {window.slide}ms]"
        case w.SteppedWindow():
            return f"[RANGE {window.width}ms STEP {window.step}ms]"
        case w.FixedWindow():
            return f"[RANGE {window.width}ms TUMBLING]"
        case w.SlidingTupleWindow():
            return f"[RANGE TRIPLES {window.count}]"
        case w.SteppedTupleWindow():
            return f"[RANGE TRIPLES {window.count} STEP {window.step}]"
        case w.NowWindow():
            return "[NOW]"
        case w.UnboundedWindow():
            return "[ALL]"
    return None
