"""Plans for Graphviz: a cluster per stage; arrows point in the direction of the data."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from streamsparql.look.explain.boxes.box import Box, BoxPlace, Reference, circled, places
from streamsparql.look.explain.drawing.labels import measure_lines, note_lines, title_lines, tooltip
from streamsparql.look.explain.drawing.palette import FAMILIES, HEAT
from streamsparql.look.explain.explanation import Explanation


def render_dot(explanation: Explanation) -> str:
    """Return the graph in the DOT language."""
    lines = [
        "digraph plan {",
        '  graph [rankdir=TB, ranksep=0.3, nodesep=0.2, fontname="Helvetica"]',
        '  node [shape=box, style="rounded,filled", margin="0.12,0.06", fontname="Courier", '
        "fontsize=10]",
        '  edge [dir=back, arrowsize=0.6, color="#8893a0", fontname="Helvetica", fontsize=9]',
    ]
    for name, box in explanation.stages:
        if explanation.headed:
            lines += [f"  subgraph cluster_{name} {{", f'    label="{name}"; color="#c4ccd6"']
        lines += (f"    {line}" for line in _stage(name, box))
        lines += ["  }"] * explanation.headed
    return "\n".join([*lines, "}"])


def _stage(name: str, root: Box) -> Iterator[str]:
    for index, place in enumerate(places(root)):
        yield f"{name}_{index} [{_attributes(place)}]"
        if place.parent >= 0:
            role = f" [label={_quoted(place.item.role)}]" if place.item.role else ""
            yield f"{name}_{place.parent} -> {name}_{index}{role}"


def _attributes(place: BoxPlace) -> str:
    box = place.item
    if isinstance(box, Reference):
        return f'label="{circled(box.number)}", shape=plaintext, style=""'
    ground, frame, ink = FAMILIES[box.family].shades()
    mark = f"{circled(box.number)} " if box.number else ""
    reads = f"&#160; ← {circled(place.reads)}" if place.reads else ""
    head = f'<font face="Helvetica" color="{ink}"><b>{mark}{escape(box.kind)}</b>{reads}</font>'
    lines = [head, *(escape(line.replace("\\", "\\\\")) for line in title_lines(box))]
    below = [*note_lines(box), *measure_lines(box)]
    lines += [f'<font face="Helvetica">{escape(line)}</font>' for line in below]
    heat = box.measures.heat if box.measures is not None else 0
    plain = f', color="{frame}"'
    hot = f', color="{HEAT[heat].light.frame}", penwidth={heat + 1}' if heat else ""
    return (
        f'label=<{"<br/>".join(lines)}>, fillcolor="{ground}"{hot or plain}, '
        f"tooltip={_quoted(tooltip(box))}"
    )


def _quoted(text: str) -> str:
    r"""Return a string literal of DOT; backslashes are escaped, a line break is `\n`."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'
