"""The FROM and window clauses of a plan's sources, as text: a part of `unparse`."""

from __future__ import annotations

from streamsparql.algebra import window as w
from streamsparql.algebra.inputs import DEFAULT_STREAM
from streamsparql.errors import UnsupportedFeature
from streamsparql.translator.dialects import Dialect
from streamsparql.translator.pattern_sources import PlanSources


def from_clauses(sources: PlanSources, dialect: Dialect) -> list[str]:
    """Return the FROM clauses that declare these sources, one per line."""
    lines = [f"FROM {name}" for name in sources.static]
    lines += [f"FROM NAMED {name}" for name in sources.named]
    for name, window in sources.default.items():
        if name != DEFAULT_STREAM:
            lines.append(f"FROM STREAM {name}{window_clause(window, dialect)}")
    for name, window in sources.streams.items():
        if not (dialect.graph_reads_default_streams and name in sources.default):
            lines.append(f"FROM NAMED STREAM {name}{window_clause(window, dialect)}")
    for window_name, (name, window) in sources.windows.items():
        lines.append(_named_window(window_name, name.value, window, dialect))
    return lines


def _named_window(window_name: str, stream: str, window: w.Window, dialect: Dialect) -> str:
    clause = window_clause(window, dialect)
    match dialect.window_names, window_name[:1]:
        case "variable", "?":
            return f"FROM NAMED <{stream}>{clause} AS {window_name}"
        case "iri", "<":
            return f"FROM NAMED WINDOW {window_name} ON <{stream}>{clause}"
    raise UnsupportedFeature(f"{dialect.title} has no windows with names such as {window_name}")


def window_clause(window: w.Window | None, dialect: Dialect) -> str:
    """Return the window clause that follows a stream's name, with a space before it."""
    if window is None:
        return ""
    text = dialect.window_text(window)
    if text is None:
        raise UnsupportedFeature(f"{dialect.title} has no clause for a {type(window).__name__}")
    return f" {text}"
