"""The notebook display of a query: its text, its warnings, and its logical plan."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from streamsparql.errors import escape_controls, position
from streamsparql.look.explain import STAGE_BOXES
from streamsparql.look.explain.drawing.highlight import highlight_rules, highlighted
from streamsparql.look.explain.drawing.palette import INK, MONO, PAPER, SANS
from streamsparql.look.explain.drawing.themes import themed
from streamsparql.look.explain.formats.html import stage_html
from streamsparql.look.lints import LintWarning, lint

if TYPE_CHECKING:
    from streamsparql.compiled import CompiledQuery

_STYLE = themed(
    "streamsparql-query",
    f"""\
&{{display:flex;flex-wrap:wrap;gap:.6rem 1.6rem;align-items:flex-start;padding:.6rem}}
&{{background:{"/".join(PAPER)};color:{"/".join(INK)}}}
.written{{flex:1 1 24rem;min-width:0;max-width:100%}}
.drawn{{flex:0 1 auto;min-width:0;max-width:100%}}
pre{{font:12px/1.55 {MONO};tab-size:4;margin:0;background:none;color:inherit;overflow:auto}}
.written.written pre{{white-space:pre-wrap;overflow-wrap:anywhere;word-break:normal}}
.heading,summary{{font:12px/1.5 {SANS};opacity:.75;margin-bottom:.4rem}}
.warnings{{font:13px/1.5 {SANS};margin:.8rem 0 0;padding-left:1.1rem}}
.warnings li{{margin:.2rem 0}}
{highlight_rules()}""",
)


def query_html(query: CompiledQuery) -> str:
    """Return the text with the logical plan to its right, or below it on a narrow page."""
    items = "".join(_warning_item(warning) for warning in lint(query.translation))
    warnings = f'\n<ul class="warnings">{items}</ul>' if items else ""
    return (
        f'<div class="streamsparql-query"><style>{_STYLE}</style>\n<div class="written">'
        f'<div class="heading">{escape(_heading(query))}</div>\n'
        f"<pre>{highlighted(query.text.strip())}</pre>{warnings}</div>\n"
        f'<div class="drawn">{stage_html(STAGE_BOXES["logical"](query))}</div>\n</div>'
    )


def _heading(query: CompiledQuery) -> str:
    """Return the form, dialect and streams of a query as text."""
    streams = ", ".join(f"<{name}>" for name in query.streams) or "no stream"
    return escape_controls(f"{query.form.upper()}, read as {query.dialect}, over {streams}")


def _warning_item(warning: LintWarning) -> str:
    place = ""
    if warning.span is not None:
        line, column = position(warning.text, warning.span.start)
        place = f"line {line}, column {column}: "
    hint = f"; {warning.hint}" if warning.hint else ""
    return f"<li>{escape(f'{place}{warning.message}{hint}')} [{escape(warning.code)}]</li>"
