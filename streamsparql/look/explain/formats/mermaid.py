"""Plans as Mermaid flowcharts, which GitHub draws; arrows point in the direction of the data."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamsparql.look.explain.boxes.box import Box, BoxPlace, Reference, circled, places
from streamsparql.look.explain.drawing.labels import measure_lines, note_lines, title_lines
from streamsparql.look.explain.drawing.palette import FAMILIES, HEAT
from streamsparql.look.explain.explanation import Explanation

_UNSAFE = re.compile(r"[^\w\s?.,:=+/…↓←①-⑳-]|s(?=tyle)|c(?=lassDef)")

_SPACING = '%%{init: {"flowchart": {"wrappingWidth": 500, "nodeSpacing": 20, "rankSpacing": 30}}}%%'


def render_mermaid(explanation: Explanation) -> str:
    """Return the flowchart; where there are several stages, with a subgraph per stage."""
    lines = [_SPACING, "flowchart BT"]
    families: dict[str, None] = {}
    hot: dict[int, None] = {}
    for name, box in explanation.stages:
        if explanation.headed:
            lines += [f"  subgraph {name}", "    direction BT"]
        for index, place in enumerate(places(box)):
            lines += (f"    {line}" for line in _place(name, index, place))
            if isinstance(place.item, Box):
                families[place.item.family] = None
                if place.item.measures is not None and place.item.measures.heat:
                    lines.append(f"    class {name}_{index} hot{place.item.measures.heat}")
                    hot[place.item.measures.heat] = None
        lines += ["  end"] * explanation.headed
    for family in families:
        ground, frame, ink = FAMILIES[family].shades()
        lines.append(f"  classDef of_{family} fill:{ground},stroke:{frame},color:{ink}")
    for heat in sorted(hot):
        frame = HEAT[heat].light.frame
        lines.append(f"  classDef hot{heat} stroke:{frame},stroke-width:{heat + 1}px")
    return "\n".join(lines)


def _place(name: str, index: int, place: BoxPlace) -> Iterator[str]:
    item = place.item
    node = f"{name}_{index}"
    if isinstance(item, Reference):
        yield f'{node}(("{circled(item.number)}"))'
    else:
        mark = f"{circled(item.number)} " if item.number else ""
        reads = f" ← {circled(place.reads)}" if place.reads else ""
        lines = [
            f"<b>{mark}{_escaped(item.kind)}</b>{reads}",
            *map(_escaped, [*title_lines(item), *note_lines(item), *measure_lines(item)]),
        ]
        yield f'{node}("{"<br/>".join(lines)}"):::of_{item.family}'
    if place.parent >= 0:
        role = f'|"{_escaped(item.role)}"|' if item.role else ""
        yield f"{node} -->{role} {name}_{place.parent}"


def _escaped(text: str) -> str:
    r"""Escape as `#code;` all characters that are special in Mermaid, HTML or Markdown.

    Mermaid draws a backslash before an n as a line break, even if escaped, so a zero-width space
    separates the two. In a line with its keywords `style` or `classDef` it removes the last
    semicolon, so their first letters are escaped.

    >>> _escaped('"<a>"'), _escaped(r"\n"), _escaped("style")
    ('#34;#60;a#62;#34;', '#92;#8203;n', '#115;tyle')
    """
    return _UNSAFE.sub(lambda match: f"#{ord(match[0])};", text.replace("\\n", "\\\u200bn"))
