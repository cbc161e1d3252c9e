"""The notebook display of an equivalence check: the counterexample and both snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from streamsparql.look.explain.drawing.palette import FAINT, INK, LINE, MONO, PAPER, SANS
from streamsparql.look.explain.drawing.themes import themed

if TYPE_CHECKING:
    from streamsparql.look.equivalence import Counterexample, Equivalence

_ROOT = "streamsparql-compared"
_MAX_ROWS = 30
_GOOD, _BAD = "#1a7f37/#56d364", "#cf222e/#ff7b72"
_INK, _LINE, _FAINT, _PAPER = map("/".join, (INK, LINE, FAINT, PAPER))

_BADGE = "border:1px solid;border-radius:1em;padding:0 .6em;margin-left:.8em;white-space:nowrap"
_CELL = "text-align:left;padding:.1em .9em .1em 0;border:none;background:none"
VERDICT_RULES = f"""\
.badge{{{_BADGE};font-weight:400;font-size:.9em}}
.good{{color:{_GOOD}}}
.bad{{color:{_BAD}}}
.sides{{display:flex;flex-wrap:wrap;gap:.6em 2.2em;margin:.3em 0 .3em 1.6em}}
.sides h5{{margin:.2em 0;font-size:.93em;font-weight:600}}
.sides table{{border-collapse:collapse;font:.88em {MONO};margin:0}}
.sides td,.sides th{{{_CELL};white-space:pre-wrap;overflow-wrap:anywhere;color:{_INK}}}
.sides th{{color:{_FAINT};font-weight:400;border-bottom:1px solid {_LINE};white-space:nowrap}}
.sides .n{{text-align:right}}
.sides tr.differs td{{color:{_BAD};font-weight:600}}"""
"""The style of badges and counterexamples, shared with the display of rewriting."""

_STYLE = themed(
    _ROOT,
    f"&{{background:{_PAPER};color:{_INK};font:14px/1.45 {SANS};padding:.2em .6em}}\n"
    f"{VERDICT_RULES}",
)


def equivalence_html(equivalence: Equivalence) -> str:
    """Return the verdict, and the counterexample if there is one, as an HTML fragment."""
    if equivalence.counterexample is None:
        verdict = f'<p><span class="badge good">✓ {escape(str(equivalence))}</span></p>'
    else:
        head = f"✗ not equivalent: found in trial {equivalence.trials}"
        example = counterexample_html(equivalence.counterexample)
        verdict = f'<p><span class="badge bad">{head}</span></p>{example}'
    return f'<div class="{_ROOT}"><style>{_STYLE}</style>{verdict}</div>'


def counterexample_html(example: Counterexample) -> str:
    """Return a counterexample as HTML: data on the left, rows of both snapshots on the right."""
    data, rows = _data_html(example), _rows_html(example)
    return f'<div class="sides"><div>{data}</div><div>{rows}</div></div>'


def _data_html(example: Counterexample) -> str:
    parts = []
    for name, lines in example.sources():
        rows = "".join(f"<tr><td>{escape(line)}</td></tr>" for line in lines[:_MAX_ROWS])
        more = len(lines) - _MAX_ROWS
        rows += f"<tr><td>and {more} more</td></tr>" if more > 0 else ""
        parts.append(f"<h5>{escape(name)}</h5><table>{rows or '<tr><td>nothing</td></tr>'}</table>")
    return "".join(parts) or "<h5>empty input</h5>"


def _rows_html(example: Counterexample) -> str:
    """Return a table of the rows with their multiplicities, or of both snapshots in order."""
    ordered = example.in_order
    rows: list[tuple[bool, *tuple[str, ...]]] = [(x != y, x, y) for x, y in ordered]
    rows = rows or [(n != m, x, str(n or "none"), str(m or "none")) for x, n, m in example.rows()]
    heads = ("this plan", "the other") if ordered else ("row", "this plan", "the other")
    right = 3 if ordered else 1  # the first column of multiplicities
    body = "".join(
        f"<tr{' class=differs' * differs}>{_cells('td', texts, right)}</tr>"
        for differs, *texts in rows[:_MAX_ROWS]
    )
    more = len(rows) - _MAX_ROWS
    body += f'<tr><td colspan="3">and {more} more</td></tr>' if more > 0 else ""
    return f"<h5>{example.head}</h5><table><tr>{_cells('th', heads, right)}</tr>{body}</table>"


def _cells(kind: str, texts: Sequence[str], right: int) -> str:
    marks = (' class="n"' * (k >= right) for k in range(len(texts)))
    return "".join(
        f"<{kind}{mark}>{escape(x)}</{kind}>" for mark, x in zip(marks, texts, strict=True)
    )
