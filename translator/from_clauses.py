"""FROM and window clauses, written: the way back from sources to text."""

from __future__ import annotations

from streamsparql.algebra import window as w
from streamsparql.algebra.inputs import DEFAULT_STREAM
from streamsparql.errors import UnsupportedFeature
from streamsparql.translator.dialects import Dialect
from streamsparql.translator.pattern_sources import Sources

_NAMES_OF_WINDOWS = {"cqels": "?", "rspql": "<"}


def from_clauses(sources: Sources, dialect: Dialect) -> list[str]:
    """The FROM clauses that offer these sources, a line each."""
    lines = [f"FROM {name}" for name in sources.static]
    lines += [f"FROM NAMED {name}" for name in sources.named]
    for name, window in sources.default.items():
        if name != DEFAULT_STREAM:
            lines.append(f"FROM STREAM {name}{window_clause(window, dialect)}")
    for name, window in sources.streams.items():
        if not (dialect.name == "csparql" and name in sources.default):
            lines.append(f"FROM NAMED STREAM {name}{window_clause(window, dialect)}")
    for slot, (name, window) in sources.slots.items():
        if _NAMES_OF_WINDOWS.get(dialect.name) != slot[:1]:
            raise UnsupportedFeature(f"{dialect.title} has no windows with names such as {slot}")
        if dialect.name == "cqels":
            lines.append(f"FROM NAMED {name}{window_clause(window, dialect)} AS {slot}")
        else:
            lines.append(f"FROM NAMED WINDOW {slot} ON {name}{window_clause(window, dialect)}")
    return lines


def window_clause(window: w.Window | None, dialect: Dialect) -> str:
    """A window clause behind a stream's name, with a space before it."""
    if window is None:
        return ""
    text = native(window) if dialect.name == "streaming" else _bracketed(window)
    if text is None:
        raise UnsupportedFeature(f"{dialect.title} has no clause for a {type(window).__name__}")
    return f" {text}"


def native(window: w.Window) -> str | None:
    """A window as Streaming SPARQL writes it, None where it has no words for it."""
    match window:
        case w.SlidingDeltaWindow():
            return f"WINDOW RANGE {window.width} MS SLIDE {window.slide} MS"
        case w.FixedWindow():
            return f"WINDOW RANGE {window.width} MS FIXED"
        case w.SlidingTupleWindow():
            return f"WINDOW ELEMS {window.count}"
    return None


def _bracketed(window: w.Window) -> str | None:
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
