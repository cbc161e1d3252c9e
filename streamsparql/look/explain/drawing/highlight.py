"""Syntax highlighting of query texts, for HTML."""

from __future__ import annotations

import re
from html import escape

from streamsparql.errors import escape_controls
from streamsparql.look.explain.drawing.palette import FAINT, FAMILIES
from streamsparql.look.explain.drawing.themes import themed

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\r\n]*)
      | (?P<string>\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}
                  |"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
      | (?P<iri><(?:[^<>"{}|^`\\\x00-\x20]|\\u\w{4}|\\U\w{8})*>
              |(?:[^\W\d_](?:[\w.·\u0300-\u036f-]*[\w·-])?|_)?:(?:(?:[\w:]|%[0-9A-Fa-f]{2}|\\.)
                (?:(?:[\w.:·\u0300-\u036f-]|%[0-9A-Fa-f]{2}|\\.)*(?:[\w:·\u0300-\u036f-]|%[0-9A-Fa-f]{2}|\\.))?)?)
      | (?P<variable>[?$]\w+(?:-(?![\w.\-]*[:(])(?!(?i:true|false|(?:not\s+)?exists)(?![\w\-]))
                  (?=[^\W\d])\w+)*)
      | (?P<language>@[A-Za-z][A-Za-z0-9-]*)
      | (?P<time>P(?=T?\d)[\dDHMSYTW.]+\b|\d+(?:ms|[smhd])\b)
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<word>[A-Za-z_]\w*)""",
    re.X | re.S,
)
"""The tokens of all five dialects, as far as colours need them."""

_WINDOW_WORDS = frozenset(
    "WINDOW RANGE SLIDE STEP STREAM ELEMS FIXED TRIPLES NOW ALL MS MSEC S SEC SECOND SECONDS M MIN"
    " MINUTE MINUTES H HOUR HOURS D DAY DAYS TUMBLING MILLISECOND MILLISECONDS".split()
)
_UNAMBIGUOUS = ("WINDOW", "RANGE", "SLIDE", "STEP", "STREAM", "ELEMS", "FIXED", "TRIPLES")
_AFTER_NUMBER = re.compile(r"(?:\d|\[\s*)\s*$")
_TAGS = {
    "comment": "i",
    "string": "q",
    "language": "q",
    "iri": "cite",
    "variable": "var",
    "word": "b",
    "time": "em",
    "number": "s",
}


def highlighted(text: str) -> str:
    """Return the text as HTML, with an element per token; `em` marks the words of windows.

    >>> highlighted("ASK { ?s a <T> }")
    '<b>ASK</b> { <var>?s</var> <b>a</b> <cite>&lt;T&gt;</cite> }'
    >>> highlighted("[RANGE 10m STEP PT1M]")
    '[<em>RANGE</em> <em>10m</em> <em>STEP</em> <em>PT1M</em>]'
    """
    html, end = "", 0
    for token in _TOKEN.finditer(text):
        tag = _TAGS[token.lastgroup or ""]
        if tag == "b" and _is_window_word(text, token):
            tag = "em"
        html += f"{escape(text[end : token.start()])}<{tag}>{escape(token[0])}</{tag}>"
        end = token.end()
    return escape_controls(html + escape(text[end:]))


def _is_window_word(text: str, token: re.Match[str]) -> bool:
    """Return whether a word is part of a window: `NOW()` is a function, the `m` of `a:m` a name."""
    word = token[0].upper()
    if word not in _WINDOW_WORDS:
        return False
    before = _AFTER_NUMBER.search(text, max(0, token.start() - 20), token.start())
    return word in _UNAMBIGUOUS or before is not None


def highlight_rules() -> str:
    """Return the style rules of the tokens, for `themed`."""
    ink = {name: f"{colour.light.ink}/{colour.dark.ink}" for name, colour in FAMILIES.items()}
    return "\n".join(
        [
            f"i{{color:{'/'.join(FAINT)}}}",
            f"b{{color:{ink['join']};font-weight:600}}",
            f"var{{color:{ink['group']};font-style:normal}}",
            f"cite{{color:{ink['access']};font-style:normal}}",
            f"q{{color:{ink['match']};quotes:none}}",
            "q::before,q::after{content:none}",
            f"em{{color:{ink['window']};font-style:normal;font-weight:600}}",
            "s{text-decoration:none}",
        ]
    )


QUERY_STYLE = themed("streamsparql-text", f"&{{tab-size:4}}\n{highlight_rules()}")
"""The style sheet of highlighted texts, elements of the class `streamsparql-text`."""
