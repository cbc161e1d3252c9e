"""How notebooks and terminals show rewriting: before and after, side by side.

Only what a rule changed is drawn whole. A subplan that both sides have is one box with a letter, as
in the rule's law, so that one sees the law in its instance. Boxes that are gone, new or in another
place are framed as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import count, zip_longest
from typing import TYPE_CHECKING, Any

from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
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
from streamsparql.look.jupyter.equivalence_view import RULES, body
from streamsparql.text.visible import visible
from streamsparql.text.widths import cells, wrap

if TYPE_CHECKING:
    from streamsparql.look.rewrites import Application, Rewrites

MOST = 40
"""How many applications a notebook shows."""
_LETTERS = "PQRSTUVW"
_SMALLEST = 0.7  # of the natural size of a picture
_COLUMN = 56  # cells of a column of text
_ROOT = "streamsparql-steps"


# -- what changed ----------------------------------------------------------------------------------


def compared(before: Plan, after: Plan, prefixes: Mapping[str, str]) -> tuple[Box, Box]:
    """The boxes of two plans, what both have collapsed, what differs marked.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> p, q = triples("?x p ?y"), triples("?x q ?z")
    >>> c = equals("?y", "1")
    >>> one, other = compared(Filter(c, Join(p, q)), Join(Filter(c, p), q), {})
    >>> one.kind, one.mark, [(box.role, box.kind) for box in one.children[0].children]
    ('Filter', 'moved', [('P', 'TriplePatternMatching'), ('Q', 'TriplePatternMatching')])
    """
    shared = _plans(before) & _plans(after)
    letters: dict[Plan, str] = {}
    names = _names()
    sides = [_listed(plan, shared) for plan in (before, after)]
    for side in sides:
        for node in side:
            if node in shared and node.inputs and node not in letters:
                letters[node] = next(names)
    marks = _marks(*sides)
    write = plan_writer(prefixes)

    def boxes(root: Plan, marked: Mapping[Plan, str]) -> Box:
        def make(node: Plan) -> Box:
            kind = type(node)
            text = visible(title(node, write))
            if node in shared and (more := _operators(node) - 1) > 0:
                text = f"{text} … {more} more operator{'s' * (more > 1)}".strip()
            return Box(
                kind=kind.__name__,
                title=text,
                family=kind.__module__.rpartition(".")[2],
                meaning=meaning(kind),
                mark=marked.get(node, ""),
            )

        def below(node: Plan) -> list[tuple[str, Plan]]:
            found = () if node in shared else node.inputs
            return [(letters.get(one, ""), one) for one in found]

        return replace(build_tree(root, below, make), role=letters.get(root, ""))

    return boxes(before, marks[0]), boxes(after, marks[1])


def _names() -> Iterator[str]:
    yield from _LETTERS
    yield from (f"P{k}" for k in count(1))


def _plans(plan: Plan) -> set[Plan]:
    return {node for node in plan.walk() if isinstance(node, Plan)}


def _operators(plan: Plan) -> int:
    """How many operators a subplan has, what reads its sources left aside."""
    sources = (AccessStream, AccessGraph, Merge, Window)
    return sum(not isinstance(node, sources) for node in _plans(plan))


def _listed(plan: Plan, shared: set[Plan]) -> list[Plan]:
    """The operators in the order of reading; what is shared is one."""
    found: list[Plan] = []
    pending = [plan]
    while pending:
        node = pending.pop()
        found.append(node)
        if node not in shared:
            pending.extend(reversed(node.inputs))
    return found


Marks = dict[Plan, str]


def _marks(before: list[Plan], after: list[Plan]) -> tuple[Marks, Marks]:
    """What is not in the heaviest sequence that both sides have in common."""
    keys = [[_key(node) for node in side] for side in (before, after)]
    kept = _common(keys[0], keys[1], [1 + len(node.inputs) for node in before])
    found: tuple[Marks, Marks] = ({}, {})
    for side, (nodes, word) in enumerate(((before, "gone"), (after, "new"))):
        stays, theirs = ({pair[one] for pair in kept} for one in (side, 1 - side))
        left = {key for k, key in enumerate(keys[1 - side]) if k not in theirs}
        for k, node in enumerate(nodes):
            if k not in stays:
                found[side][node] = "moved" if keys[side][k] in left else word
    return found


def _key(plan: Plan) -> Any:
    """An operator without its inputs."""
    inputs = plan.inputs
    own = tuple(
        value
        for value in plan.members()
        if not (value in inputs or (isinstance(value, tuple) and set(inputs) & set(value)))
    )
    return type(plan).__name__, own if inputs else plan


def _common(one: list[Any], other: list[Any], weights: list[int]) -> list[tuple[int, int]]:
    """The heaviest common subsequence of two lists, as pairs of places."""
    best = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i in reversed(range(len(one))):
        for j in reversed(range(len(other))):
            same = weights[i] + best[i + 1][j + 1] if one[i] == other[j] else 0
            best[i][j] = max(same, best[i + 1][j], best[i][j + 1])
    found, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        if one[i] == other[j] and best[i][j] == weights[i] + best[i + 1][j + 1]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


# -- in a terminal ---------------------------------------------------------------------------------


def summary(rewrites: Rewrites) -> str:
    """What was done, in a line."""
    if not rewrites.applications:
        return "no rule applies"
    times = f"{len(rewrites)} application{'s' * (len(rewrites) != 1)} of rules"
    shown = f"{times}: {applied_rules(rewrites.counts)}"
    if rewrites.checked is None:
        return shown
    wrong = len(rewrites.wrong)
    told = f"{wrong} of them wrong" if wrong else "none of them wrong"
    whole = "the same" if rewrites.checked else "not the same"
    return f"{shown}; checked: {told}, and the last plan means {whole} as the first"


def applications_text(found: Sequence[Application], head: str) -> str:
    """Applications for a terminal. The law of a rule is told where it is used first."""
    told: set[str] = set()
    parts = [head]
    for application in found:
        parts.append(application_text(application, application.rule not in told))
        told.add(application.rule)
    return "\n\n".join(parts)


def application_text(application: Application, first: bool = True) -> str:
    """An application for a terminal."""
    lines = [f"{application.number}  {application.name}: {application.place}"]
    if first:
        lines += (f"   {line}".rstrip() for line in application.law.statement.splitlines())
    lines.append("")
    columns = [
        list(tree_lines(box, Ink(False), _COLUMN))
        for box in compared(application.before, application.after, application.prefixes)
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


def applications(found: Sequence[Application], head: str) -> str:
    """Applications as a piece of a page. The law of a rule is told where it is used first."""
    told: set[str] = set()
    parts = []
    for application in found[:MOST]:
        parts.append(_section(application, application.rule not in told))
        told.add(application.rule)
    more = len(found) - MOST
    note = f"<p>{more} more: show them with [{MOST}:]</p>" if more > 0 else ""
    legend = _LEGEND if found else ""
    top = f"<p>{escape(head)}</p>" * bool(head)
    style = f"<style>{PLANS}\n{_STYLE}\n{_PRINTED}</style>"
    return f'<div class="{_ROOT}">{style}{top}{legend}{"".join(parts)}{note}</div>'


def _section(application: Application, first: bool) -> str:
    boxes = compared(application.before, application.after, application.prefixes)
    before, after = (
        _figure(box, word) for box, word in zip(boxes, ("before", "after"), strict=True)
    )
    checked, example = _checked(application)
    return (
        f'<section><h4><b class="nr">{application.number}</b> {escape(application.name)}'
        f'<span class="soft"> in {escape(application.place)}</span>{checked}</h4>'
        f"{_law(application) if first else ''}"
        f'<div class="pair">{before}<span class="arrow">⟹</span>{after}</div>{example}</section>'
    )


def _law(application: Application) -> str:
    law = application.law
    source = f'<p class="soft">{_words(law.source)}</p>' * bool(law.source)
    return (
        f'<div class="law"><div>{_prose(law.statement)}</div>'
        f'<div class="soft"><i>provided:</i> {_prose(law.condition)}</div>{source}</div>'
    )


def _checked(application: Application) -> tuple[str, str]:
    if application.checked is None:
        return "", ""
    if application.checked.counterexample is None:
        return f'<span class="badge good">✓ {escape(str(application.checked))}</span>', ""
    return '<span class="badge bad">✗ not equivalent</span>', body(application.checked)


def _figure(box: Box, name: str) -> str:
    drawing = svg.tree_drawing(box)
    width, height = round(drawing.width + 8), round(drawing.height + 8)
    least = round(width * _SMALLEST)  # smaller nobody could read it: then it scrolls
    return (
        f'<figure><svg xmlns="http://www.w3.org/2000/svg" class="streamsparql-plan" '
        f'style="min-width:{least}px" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{name}" xml:space="preserve"><g transform="translate(4 4)">{drawing.svg}</g>'
        "</svg></figure>"
    )


def _prose(text: str) -> str:
    """A part of a docstring as HTML: paragraphs, lists, blocks that are set in."""
    made = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if lines and all(line.startswith("    ") for line in lines):
            made.append(f"<pre>{escape(chr(10).join(line[4:] for line in lines))}</pre>")
        elif block.lstrip().startswith("- "):
            items = re.split(r"\n(?=- )", block.strip())
            made.append(f"<ul>{''.join(f'<li>{_words(item[2:])}</li>' for item in items)}</ul>")
        else:
            made.append(f"<p>{_words(block)}</p>")
    return "".join(made)


def _words(text: str) -> str:
    words = escape(" ".join(text.split()))
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", words)


_GONE, _NEW, _MOVED = "#cf222e/#ff7b72", "#1a7f37/#56d364", "#b06f00/#e3b341"
_LEGEND = (
    '<p class="legend"><b class="gone">gone</b><b class="new">new</b><b class="moved">moved</b>'
    '<span class="soft">a letter stands for a subplan that both sides have</span></p>'
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
{RULES}""",
)
_PRINTED = (
    f"@media print{{.{_ROOT} figure{{max-height:none;overflow:visible}}"
    f".{_ROOT} figure svg.streamsparql-plan{{min-width:0!important}}}}"
)
"""What scrolls on a screen is whole on paper."""
