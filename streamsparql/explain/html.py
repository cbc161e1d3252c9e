"""A page about a query: its text, what is known of it, and its stages as pictures and as text.

The page is whole in itself: nothing is loaded, no script runs.
"""

from __future__ import annotations

import re
from html import escape

from streamsparql.explain import svg
from streamsparql.explain.box import Box
from streamsparql.explain.explanation import Explanation
from streamsparql.explain.palette import FAINT, FAMILIES, INK, LINE, MONO, PAPER, SANS
from streamsparql.explain.text import Ink, tree
from streamsparql.explain.words import used

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\r\n]*)
      | (?P<string>\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}
                  |"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
      | (?P<iri><[^<>"{}|^`\\\s]*>|[\w.-]*:[\w.%:\\-]*)
      | (?P<variable>[?$]\w+)
      | (?P<word>[A-Za-z_]+)""",
    re.X | re.S,
)
"""A simple view of SPARQL, enough to colour it."""


def render(explanation: Explanation) -> str:
    """The page."""
    summary = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in explanation.summary()
    )
    stages = "\n".join(
        f"<section>\n<h2>{escape(name)}</h2>\n"
        '<label><input type="checkbox"> fit to the window</label>\n'
        f"{fragment(box)}\n{_rules(name, explanation)}</section>"
        for name, box in explanation.stages
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n<title>query plan</title>\n'
        f"<style>\n{_STYLE}\n</style>\n</head>\n<body>\n<header>\n"
        f"<pre>{highlighted(explanation.text)}</pre>\n<dl>{summary}</dl>\n</header>\n"
        f"{stages}\n</body>\n</html>"
    )


def _rules(stage: str, explanation: Explanation) -> str:
    if stage != "optimized" or not explanation.rules:
        return ""
    return f"<p>rules: {escape(used(explanation.rules))}</p>\n"


def fragment(box: Box) -> str:
    """A stage as a piece of a page, or of a notebook: the picture, and the text to unfold."""
    lines = escape("\n".join(tree(box, Ink(False), 120)))
    return (
        f'<div style="overflow:auto">\n{svg.framed(svg.tree(box))}\n</div>\n'
        f"<details><summary>as text</summary><pre>{lines}</pre></details>"
    )


def highlighted(text: str) -> str:
    """A query's text with its words in spans.

    >>> highlighted("ASK { ?s a <T> }")
    '<b>ASK</b> { <var>?s</var> <b>a</b> <cite>&lt;T&gt;</cite> }'
    """
    done, at = "", 0
    for found in _TOKEN.finditer(text):
        tag = _TAGS[found.lastgroup or ""]
        done += f"{escape(text[at : found.start()])}<{tag}>{escape(found[0])}</{tag}>"
        at = found.end()
    return done + escape(text[at:])


_TAGS = {"comment": "i", "string": "q", "iri": "cite", "variable": "var", "word": "b"}


def _theme(dark: bool) -> str:
    colours = {
        "paper": PAPER[dark],
        "ink": INK[dark],
        "faint": FAINT[dark],
        "line": LINE[dark],
        "word": FAMILIES["join"].shades(dark).ink,
        "variable": FAMILIES["group"].shades(dark).ink,
        "iri": FAMILIES["access"].shades(dark).ink,
        "string": FAMILIES["match"].shades(dark).ink,
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
dt,label,summary{{color:var(--faint)}}
dd{{margin:0;overflow-wrap:anywhere}}
h2{{font-size:1.1rem;margin:2rem 0 0;border-top:1px solid var(--line);padding-top:1rem}}
label{{font-size:.85rem}}
section:has(:checked) svg{{max-width:100%;height:auto}}
details{{margin-top:.5rem}}
header i{{color:var(--faint)}}
header b{{color:var(--word);font-weight:600}}
header var{{color:var(--variable);font-style:normal}}
header cite{{color:var(--iri);font-style:normal}}
header q{{color:var(--string);quotes:none}}"""
