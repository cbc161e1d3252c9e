"""A query's text with its words in colours."""

from __future__ import annotations

import re
from html import escape

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
"""The words of all five dialects, as far as colours go."""

_WINDOWS = frozenset(
    "WINDOW RANGE SLIDE STEP STREAM ELEMS FIXED TRIPLES NOW ALL MS MSEC S SEC SECOND SECONDS M MIN"
    " MINUTE MINUTES H HOUR HOURS D DAY DAYS TUMBLING MILLISECOND MILLISECONDS".split()
)
_AFTER = re.compile(r"(?:\d|\[\s*)\s*$")
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
    """A query's text with its words in elements; `em` is what windows are written with.

    >>> highlighted("ASK { ?s a <T> }")
    '<b>ASK</b> { <var>?s</var> <b>a</b> <cite>&lt;T&gt;</cite> }'
    >>> highlighted("[RANGE 10m STEP PT1M]")
    '[<em>RANGE</em> <em>10m</em> <em>STEP</em> <em>PT1M</em>]'
    """
    done, at = "", 0
    for found in _TOKEN.finditer(text):
        tag = _TAGS[found.lastgroup or ""]
        if tag == "b" and _of_window(text, found):
            tag = "em"
        done += f"{escape(text[at : found.start()])}<{tag}>{escape(found[0])}</{tag}>"
        at = found.end()
    return done + escape(text[at:])


def _of_window(text: str, found: re.Match[str]) -> bool:
    """Whether a word is a window's: NOW() is a function, and `a:m` nobody's minute."""
    word = found[0].upper()
    if word not in _WINDOWS:
        return False
    plain = word in ("WINDOW", "RANGE", "SLIDE", "STEP", "STREAM", "ELEMS", "FIXED", "TRIPLES")
    return plain or _AFTER.search(text, max(0, found.start() - 20), found.start()) is not None


def rules() -> str:
    """How the words look, for `themed`."""
    ink = {name: f"{of.light.ink}/{of.dark.ink}" for name, of in FAMILIES.items()}
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


STYLE = themed("streamsparql-text", f"&{{tab-size:4}}\n{rules()}")
"""The style sheet of a highlighted text, of the class `streamsparql-text`."""
