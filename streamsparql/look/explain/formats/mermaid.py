"""Plans as Mermaid flowcharts, which GitHub draws. Arrows point the way that data flows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamsparql.look.explain.boxes.box import Box, Place, Reference, circled, places
from streamsparql.look.explain.drawing.drawing import label, measured
from streamsparql.look.explain.drawing.palette import FAMILIES, HEAT
from streamsparql.look.explain.explanation import Explanation

_UNSAFE = re.compile(r"[^\w\s?.,:=+/…↓←①-⑳-]|s(?=tyle)|c(?=lassDef)")

_SPACING = '%%{init: {"flowchart": {"wrappingWidth": 500, "nodeSpacing": 20, "rankSpacing": 30}}}%%'


def render(explanation: Explanation) -> str:
    """The flowchart, with a subgraph per stage for all of them."""
    lines = [_SPACING, "flowchart BT"]
    used: dict[str, None] = {}
    hot: dict[int, None] = {}
    for name, box in explanation.stages:
        if explanation.headed:
            lines += [f"  subgraph {name}", "    direction BT"]
        for index, place in enumerate(places(box)):
            lines += (f"    {line}" for line in _place(name, index, place))
            if isinstance(place.item, Box):
                used[place.item.family] = None
                if place.item.measures is not None and place.item.measures.heat:
                    lines.append(f"    class {name}_{index} hot{place.item.measures.heat}")
                    hot[place.item.measures.heat] = None
        lines += ["  end"] * explanation.headed
    for family in used:
        ground, frame, ink = FAMILIES[family].shades()
        lines.append(f"  classDef of_{family} fill:{ground},stroke:{frame},color:{ink}")
    for heat in sorted(hot):
        frame = HEAT[heat].light.frame
        lines.append(f"  classDef hot{heat} stroke:{frame},stroke-width:{heat + 1}px")
    return "\n".join(lines)


def _place(name: str, index: int, place: Place) -> Iterator[str]:
    item = place.item
    me = f"{name}_{index}"
    if isinstance(item, Reference):
        yield f'{me}(("{circled(item.number)}"))'
    else:
        mark = f"{circled(item.number)} " if item.number else ""
        reads = f" ← {circled(place.reads)}" if place.reads else ""
        lines = [
            f"<b>{mark}{_escaped(item.kind)}</b>{reads}",
            *map(_escaped, [*label(item), *measured(item)]),
        ]
        yield f'{me}("{"<br/>".join(lines)}"):::of_{item.family}'
    if place.parent >= 0:
        role = f'|"{_escaped(item.role)}"|' if item.role else ""
        yield f"{me} -->{role} {name}_{place.parent}"


def _escaped(text: str) -> str:
    r"""All that could mean something to Mermaid, to HTML or to Markdown, as `#code;`.

    A backslash before an n would be drawn as a new line, however it is written; so something that
    takes no room stands between the two. After its own words `style` and `classDef` Mermaid takes
    the last semicolon of a line away, so these are not written as such either.

    >>> _escaped('"<a>"'), _escaped(r"\n"), _escaped("style")
    ('#34;#60;a#62;#34;', '#92;#8203;n', '#115;tyle')
    """
    return _UNSAFE.sub(lambda found: f"#{ord(found[0])};", text.replace("\\n", "\\\u200bn"))
