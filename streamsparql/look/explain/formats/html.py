"""A page about a query: its text, a summary, and its stages as pictures and as text.

The page is self-contained: it loads nothing. Its script zooms and moves the pictures; without it,
the pictures scroll.
"""

from __future__ import annotations

from html import escape

from streamsparql.display.frame import frame
from streamsparql.look.explain.boxes.box import Box, remarks
from streamsparql.look.explain.boxes.phrases import applied_rules
from streamsparql.look.explain.drawing import highlight
from streamsparql.look.explain.drawing.palette import FAINT, INK, LINE, MONO, PAPER, SANS
from streamsparql.look.explain.explanation import Explanation
from streamsparql.look.explain.formats import svg
from streamsparql.look.explain.formats.plain_text import tree_text


def render_html(explanation: Explanation) -> str:
    """Return the page."""
    entries = [*explanation.summary(), *explanation.notes]
    summary = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in entries)
    stages = "\n".join(
        f"<section>\n<h2>{escape(name)}</h2>\n"
        f"{stage_html(box)}\n{_below(name, box, explanation)}</section>"
        for name, box in explanation.stages
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n<title>query plan</title>\n'
        f"<style>\n{_STYLE}\n{highlight.QUERY_STYLE}\n</style>\n</head>\n<body>\n<header>\n"
        f'<pre class="streamsparql-text">{highlight.highlighted(explanation.text)}</pre>\n'
        f"<dl>{summary}</dl>\n</header>\n<p>Drag a picture to move it; Ctrl and the wheel, or two"
        " fingers, zoom; a double click restores it.</p>\n"
        f"{stages}\n<script>\n{_ZOOM}\n</script>\n</body>\n</html>"
    )


def _below(stage: str, box: Box, explanation: Explanation) -> str:
    """Return what a stage's tree does not show, as paragraphs."""
    lines = remarks(box)
    if stage == "optimized" and explanation.rules:
        lines.append(("rules", applied_rules(explanation.rules)))
    return "".join(f"<p>{escape(name)}: {escape(text)}</p>\n" for name, text in lines)


def stage_html(box: Box) -> str:
    """Return a stage for a page or a notebook: the picture, and the text in a closed section."""
    lines = escape(tree_text(box, 120))
    drawing = svg.tree_drawing(box)
    return (
        f"{frame(svg.svg_picture(drawing), drawing.width, drawing.height)}\n"
        f"<details><summary>as text</summary><pre>{lines}</pre></details>"
    )


def _theme(dark: bool) -> str:
    colours = {
        "paper": PAPER[dark],
        "ink": INK[dark],
        "faint": FAINT[dark],
        "line": LINE[dark],
    }
    return ":root{" + ";".join(f"--{name}:{colour}" for name, colour in colours.items()) + "}"


_STYLE = f"""\
{_theme(dark=False)}
@media (prefers-color-scheme:dark){{{_theme(dark=True)}}}
body{{margin:2rem auto;padding:0 1.5rem;max-width:100rem;background:var(--paper);color:var(--ink);
  font:15px/1.5 {SANS}}}
pre{{font:13px/1.5 {MONO};overflow:auto;margin:0}}
header{{display:flex;flex-wrap:wrap;gap:1rem 3rem;align-items:flex-start}}
header pre{{flex:1 1 32rem;tab-size:4}}
dl{{display:grid;grid-template-columns:max-content auto;gap:.1rem 1rem;margin:0;flex:1 1 20rem}}
dt,summary{{color:var(--faint)}}
dd{{margin:0;overflow-wrap:anywhere}}
h2{{font-size:1.1rem;margin:2rem 0 0;border-top:1px solid var(--line);padding-top:1rem}}
details{{margin-top:.5rem}}
@media print{{pre{{white-space:pre-wrap;overflow-wrap:anywhere}}}}"""


_ZOOM = """\
for (const frame of document.querySelectorAll(".streamsparql-frame")) {
  const box = frame.querySelector("div"), svg = frame.querySelector("svg");
  const fit = frame.querySelector("input");
  const width = svg.width.baseVal.value, height = svg.height.baseVal.value;
  let scale = 1, from = null;
  function zoom(to, event) {
    const edge = box.getBoundingClientRect();
    const x = event.clientX - edge.left, y = event.clientY - edge.top;
    const left = (box.scrollLeft + x) / scale, top = (box.scrollTop + y) / scale;
    scale = Math.min(Math.max(to, 0.05), 8);
    if (fit) fit.checked = false;
    svg.style.width = `${width * scale}px`;
    svg.style.height = `${height * scale}px`;
    box.scrollLeft = left * scale - x;
    box.scrollTop = top * scale - y;
  }
  box.style.cursor = "grab";
  box.addEventListener("wheel", event => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(scale * Math.exp(-event.deltaY / 400), event);
    }
  }, {passive: false});
  box.addEventListener("dblclick", event => zoom(1, event));
  box.addEventListener("pointerdown", event => {
    from = [event.clientX + box.scrollLeft, event.clientY + box.scrollTop];
  });
  addEventListener("pointermove", event => {
    if (from) [box.scrollLeft, box.scrollTop] = [from[0] - event.clientX, from[1] - event.clientY];
  });
  addEventListener("pointerup", () => { from = null; });
  if (fit) fit.addEventListener("change", () => {
    scale = 1;
    svg.style.width = svg.style.height = "";
  });
}"""
"""The script of the page; pictures in notebooks have none."""
