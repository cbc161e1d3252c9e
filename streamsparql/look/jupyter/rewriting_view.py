"""The displays of rewriting, in notebooks and terminals: each plan before and after, side by side.

Only the part that a rule changed is drawn in full. A subplan that both sides share is one box with
a letter, as in the rule's law, so the law can be recognised in its instance. Boxes that were
removed, added or moved have a frame that shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import count, zip_longest
from typing import TYPE_CHECKING, Any

from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
from streamsparql.algebra.entailment import Entailed, Entailing
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.window import Window
from streamsparql.look.explain.boxes.box import Box, build_tree
from streamsparql.look.explain.boxes.phrases import applied_rules, meaning, plan_writer
from streamsparql.look.explain.boxes.titles import title
from streamsparql.look.explain.drawing.palette import FAINT, INK, LINE, MONO, PAPER, SANS
from streamsparql.look.explain.drawing.palette import PLAN_STYLE as PLANS
from streamsparql.look.explain.drawing.themes import themed
from streamsparql.look.explain.formats import svg
from streamsparql.look.explain.formats.plain_text import Ink, tree_lines
from streamsparql.look.jupyter.equivalence_view import VERDICT_RULES, counterexample_html
from streamsparql.text.visible import visible
from streamsparql.text.widths import cells, wrap

if TYPE_CHECKING:
    from streamsparql.look.rewrites import Application, Rewrites

SHOWN_APPLICATIONS = 40
"""The number of applications that a notebook shows."""
_LETTERS = "PQRSTUVW"
_MIN_SCALE = 0.7  # of the natural size of a picture
_COLUMN = 56  # cells of a column of text
_ROOT = "streamsparql-steps"


# -- what changed ----------------------------------------------------------------------------------


def compare_plans(before: Plan, after: Plan, prefixes: Mapping[str, str]) -> tuple[Box, Box]:
    """Return the boxes of two plans, with shared subplans collapsed and differences marked.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> p, q = triples("?x p ?y"), triples("?x q ?z")
    >>> c = equals("?y", "1")
    >>> one, other = compare_plans(Filter(c, Join(p, q)), Join(Filter(c, p), q), {})
    >>> one.kind, one.mark, [(box.role, box.kind) for box in one.children[0].children]
    ('Filter', 'moved', [('P', 'TriplePatternMatching'), ('Q', 'TriplePatternMatching')])
    """
    shared = _plans(before) & _plans(after)
    letters: dict[Plan, str] = {}
    unused = _letters()
    sides = [_preorder(plan, shared) for plan in (before, after)]
    for side in sides:
        for node in side:
            if node in shared and node.inputs and node not in letters:
                letters[node] = next(unused)
    before_marks, after_marks = _marks(*sides)
    write = plan_writer(prefixes)

    def boxes(root: Plan, marks: Mapping[Plan, str]) -> Box:
        def make(node: Plan) -> Box:
            kind = type(node)
            text = visible(title(node, write))
            if node in shared and (more := _operators(node) - 1) > 0:
                text = f"{text} … {more} more operator{'s' * (more > 1)}".strip()
            return Box(
                kind=kind.__name__,
                title=text,
                family=node.family,
                meaning=meaning(kind),
                mark=marks.get(node, ""),
            )

        def below(node: Plan) -> list[tuple[str, Plan]]:
            inputs = () if node in shared else node.inputs
            return [(letters.get(each, ""), each) for each in inputs]

        return replace(build_tree(root, below, make), role=letters.get(root, ""))

    return boxes(before, before_marks), boxes(after, after_marks)


def _letters() -> Iterator[str]:
    yield from _LETTERS
    yield from (f"P{k}" for k in count(1))


def _plans(plan: Plan) -> set[Plan]:
    return {node for node in plan.walk() if isinstance(node, Plan)}


def _operators(plan: Plan) -> int:
    """Count the operators of a subplan, without those that read its sources."""
    sources = (AccessStream, AccessGraph, Merge, Window, Entailed, Entailing)
    return sum(not isinstance(node, sources) for node in _plans(plan))


def _preorder(plan: Plan, shared: set[Plan]) -> list[Plan]:
    """Return the operators in pre-order; a shared subplan counts as one operator."""
    nodes: list[Plan] = []
    pending = [plan]
    while pending:
        node = pending.pop()
        nodes.append(node)
        if node not in shared:
            pending.extend(reversed(node.inputs))
    return nodes


Marks = dict[Plan, str]


def _marks(before: list[Plan], after: list[Plan]) -> tuple[Marks, Marks]:
    """Mark the operators of each side that are not in the heaviest common subsequence."""
    keys = [[_key(node) for node in side] for side in (before, after)]
    pairs = _common(keys[0], keys[1], [1 + len(node.inputs) for node in before])
    marks: tuple[Marks, Marks] = ({}, {})
    for side, (nodes, mark) in enumerate(((before, "gone"), (after, "new"))):
        paired, paired_there = ({pair[one] for pair in pairs} for one in (side, 1 - side))
        unpaired_there = {key for k, key in enumerate(keys[1 - side]) if k not in paired_there}
        for k, node in enumerate(nodes):
            if k not in paired:
                marks[side][node] = "moved" if keys[side][k] in unpaired_there else mark
    return marks


def _key(plan: Plan) -> Any:
    """Return a key that identifies an operator without its inputs; for a leaf, the plan itself."""
    inputs = plan.inputs
    own = tuple(
        value
        for value in plan.members()
        if not (value in inputs or (isinstance(value, tuple) and set(inputs) & set(value)))
    )
    return type(plan).__name__, own if inputs else plan


def _common(one: list[Any], other: list[Any], weights: list[int]) -> list[tuple[int, int]]:
    """Return the heaviest common subsequence of two lists, as pairs of indices."""
    best = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i in reversed(range(len(one))):
        for j in reversed(range(len(other))):
            same = weights[i] + best[i + 1][j + 1] if one[i] == other[j] else 0
            best[i][j] = max(same, best[i + 1][j], best[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        if one[i] == other[j] and best[i][j] == weights[i] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


# -- in a terminal ---------------------------------------------------------------------------------


def summary(rewrites: Rewrites) -> str:
    """Return the number of applications by rule, and the outcome of a check, in one line."""
    if not rewrites.applications:
        return "no rule applies"
    head = f"{len(rewrites)} rule application{'s' * (len(rewrites) != 1)}"
    line = f"{head}: {applied_rules(rewrites.counts)}"
    if rewrites.checked is None:
        return line
    verdict = f"{len(rewrites.wrong)} wrong" if rewrites.wrong else "all correct"
    whole = "equivalent" if rewrites.checked else "not equivalent"
    return f"{line}; checked: {verdict}; the final plan is {whole} to the first"


def applications_text(applications: Sequence[Application], head: str) -> str:
    """Return applications for a terminal; the first one of each rule states its law."""
    stated: set[str] = set()
    parts = [head]
    for application in applications:
        parts.append(application_text(application, application.rule not in stated))
        stated.add(application.rule)
    return "\n\n".join(parts)


def application_text(application: Application, with_law: bool = True) -> str:
    """Return an application for a terminal: its place, its law, and the plans side by side."""
    lines = [f"{application.number}  {application.name}: {application.place}"]
    if with_law:
        lines += (f"   {line}".rstrip() for line in application.law.statement.splitlines())
    lines.append("")
    columns = [
        list(tree_lines(box, Ink(False), _COLUMN))
        for box in compare_plans(application.before, application.after, application.prefixes)
    ]
    columns = [[part for line in column for part in wrap(line, _COLUMN)] for column in columns]
    for k, (one, other) in enumerate(zip_longest(*columns, fillvalue="")):
        arrow = "=>" if k == 0 else "  "
        gap = " " * max(_COLUMN - cells(one), 0)
        lines.append(f"   {one}{gap} {arrow} {other}".rstrip())
    if application.checked is not None:
        lines += ["", *(f"   {line}" for line in str(application.checked).splitlines())]
    return "\n".join(lines)


# -- in a notebook ---------------------------------------------------------------------------------


def applications_html(applications: Sequence[Application], head: str) -> str:
    """Return applications as an HTML fragment; the first one of each rule states its law."""
    stated: set[str] = set()
    parts = []
    for application in applications[:SHOWN_APPLICATIONS]:
        parts.append(_section(application, application.rule not in stated))
        stated.add(application.rule)
    more = len(applications) - SHOWN_APPLICATIONS
    note = f"<p>{more} more: show them with [{SHOWN_APPLICATIONS}:]</p>" if more > 0 else ""
    legend = _LEGEND if applications else ""
    top = f"<p>{escape(head)}</p>" * bool(head)
    style = f"<style>{PLANS}\n{_STYLE}\n{_PRINTED}</style>"
    return f'<div class="{_ROOT}">{style}{top}{legend}{"".join(parts)}{note}</div>'


def _section(application: Application, with_law: bool) -> str:
    boxes = compare_plans(application.before, application.after, application.prefixes)
    before, after = (
        _figure(box, side) for box, side in zip(boxes, ("before", "after"), strict=True)
    )
    badge, example = _verdict(application)
    return (
        f'<section><h4><b class="nr">{application.number}</b> {escape(application.name)}'
        f'<span class="soft"> in {escape(application.place)}</span>{badge}</h4>'
        f"{_law(application) if with_law else ''}"
        f'<div class="pair">{before}<span class="arrow">⟹</span>{after}</div>{example}</section>'
    )


def _law(application: Application) -> str:
    law = application.law
    source = f'<p class="soft">{_inline(law.source)}</p>' * bool(law.source)
    return (
        f'<div class="law"><div>{_blocks(law.statement)}</div>'
        f'<div class="soft"><i>provided:</i> {_blocks(law.condition)}</div>{source}</div>'
    )


def _verdict(application: Application) -> tuple[str, str]:
    """Return the badge and the counterexample of a checked application, or empty strings."""
    checked = application.checked
    if checked is None:
        return "", ""
    if checked.counterexample is None:
        return f'<span class="badge good">✓ {escape(str(checked))}</span>', ""
    example = counterexample_html(checked.counterexample)
    return '<span class="badge bad">✗ not equivalent</span>', example


def _figure(box: Box, name: str) -> str:
    drawing = svg.tree_drawing(box)
    width, height = round(drawing.width + 8), round(drawing.height + 8)
    min_width = round(width * _MIN_SCALE)  # text would be too small to read, so the figure scrolls
    return (
        f'<figure><svg xmlns="http://www.w3.org/2000/svg" class="streamsparql-plan" '
        f'style="min-width:{min_width}px" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{name}" xml:space="preserve"><g transform="translate(4 4)">{drawing.svg}</g>'
        "</svg></figure>"
    )


def _blocks(text: str) -> str:
    """Convert a part of a docstring to HTML: paragraphs, lists and indented blocks."""
    blocks = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if lines and all(line.startswith("    ") for line in lines):
            blocks.append(f"<pre>{escape(chr(10).join(line[4:] for line in lines))}</pre>")
        elif block.lstrip().startswith("- "):
            items = re.split(r"\n(?=- )", block.strip())
            blocks.append(f"<ul>{''.join(f'<li>{_inline(item[2:])}</li>' for item in items)}</ul>")
        else:
            blocks.append(f"<p>{_inline(block)}</p>")
    return "".join(blocks)


def _inline(text: str) -> str:
    """Convert a paragraph to HTML, with code in backticks."""
    words = escape(" ".join(text.split()))
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", words)


_GONE, _NEW, _MOVED = "#cf222e/#ff7b72", "#1a7f37/#56d364", "#b06f00/#e3b341"
_LEGEND = (
    '<p class="legend"><b class="gone">gone</b><b class="new">new</b><b class="moved">moved</b>'
    '<span class="soft">a letter marks a subplan that both sides share</span></p>'
)
_PAIRS = {name: "/".join(x) for name, x in (("p", PAPER), ("i", INK), ("f", FAINT), ("l", LINE))}
_STYLE = themed(
    _ROOT,
    f"""\
&{{background:{_PAIRS["p"]};color:{_PAIRS["i"]};font:14px/1.45 {SANS};padding:.2em .6em}}
h4{{margin:.2em 0;font-size:1em;font-weight:600}}
p{{margin:.25em 0}}
section{{border-top:1px solid {_PAIRS["l"]};padding:.5em 0;break-inside:avoid}}
.nr{{display:inline-block;min-width:1.6em}}
.soft{{color:{_PAIRS["f"]};font-weight:400}}
.law{{margin:.1em 0 .4em 1.6em;font-size:.93em;max-width:52em}}
.law p{{display:inline}}
code,pre{{font:.92em {MONO};color:inherit;background:none;padding:0}}
pre{{margin:.3em 0;white-space:pre-wrap}}
ul{{margin:.2em 0;padding-left:1.4em}}
.pair{{display:grid;grid-template-columns:fit-content(48%) max-content minmax(0,1fr)}}
.pair{{align-items:center;gap:.4em .9em;margin-left:1.6em}}
& figure{{margin:0;min-width:0;max-height:34em;overflow:auto}}
& figure svg.streamsparql-plan{{max-width:100%;height:auto}}
.arrow{{font-size:1.4em;color:{_PAIRS["f"]}}}
.legend b{{font-weight:600;border:2px solid;border-radius:5px;padding:0 .5em;margin-right:.6em}}
.gone{{color:{_GONE}}}
.new{{color:{_NEW}}}
.moved{{color:{_MOVED}}}
.marked-gone .box.box{{stroke:{_GONE};stroke-width:2.5;stroke-dasharray:5 3}}
.marked-new .box.box{{stroke:{_NEW};stroke-width:2.5}}
.marked-moved .box.box{{stroke:{_MOVED};stroke-width:2.5}}
{VERDICT_RULES}""",
)
_PRINTED = (
    f"@media print{{.{_ROOT} figure{{max-height:none;overflow:visible}}"
    f".{_ROOT} figure svg.streamsparql-plan{{min-width:0!important}}}}"
)
"""The rules for print, where a figure cannot scroll and is shown in full."""
