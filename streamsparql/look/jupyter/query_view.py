"""How a notebook shows a query: its text, what is doubtful in it, and its plan."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from streamsparql.errors import position
from streamsparql.look.explain import STAGE_BOXES
from streamsparql.look.explain.drawing.highlight import highlight_rules, highlighted
from streamsparql.look.explain.drawing.palette import INK, MONO, PAPER, SANS
from streamsparql.look.explain.drawing.themes import themed
from streamsparql.look.explain.formats.html import stage_html
from streamsparql.look.lints import Warning, lint

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
.read,summary{{font:12px/1.5 {SANS};opacity:.75;margin-bottom:.4rem}}
.doubts{{font:13px/1.5 {SANS};margin:.8rem 0 0;padding-left:1.1rem}}
.doubts li{{margin:.2rem 0}}
{highlight_rules()}""",
)


def shown(query: CompiledQuery) -> str:
    """The text on the left and the logical plan on the right, below it where there is no room."""
    doubts = "".join(_doubt(warning) for warning in lint(query.translation))
    listed = f'\n<ul class="doubts">{doubts}</ul>' if doubts else ""
    return (
        f'<div class="streamsparql-query"><style>{_STYLE}</style>\n<div class="written">'
        f'<div class="read">{escape(_read(query))}</div>\n'
        f"<pre>{highlighted(query.text.strip())}</pre>{listed}</div>\n"
        f'<div class="drawn">{stage_html(STAGE_BOXES["logical"](query))}</div>\n</div>'
    )


def _read(query: CompiledQuery) -> str:
    """What is known of the query before any plan."""
    streams = ", ".join(f"<{name}>" for name in query.streams) or "no stream"
    return f"{query.form.upper()}, read as {query.dialect}, over {streams}"


def _doubt(warning: Warning) -> str:
    at = ""
    if warning.span is not None:
        line, column = position(warning.text, warning.span.start)
        at = f"line {line}, column {column}: "
    hint = f"; {warning.hint}" if warning.hint else ""
    return f"<li>{escape(f'{at}{warning.message}{hint}')} [{escape(warning.code)}]</li>"
