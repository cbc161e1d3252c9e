"""Terms as N-Triples writes them, read leniently: what every border takes for a term.

Lenient means: an IRI may be relative, a backslash before any other character stands for that
character, and a literal may hold control characters as they are. `str(term)` writes N-Triples.
"""

from __future__ import annotations

import re

from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term

_TERM = re.compile(
    r"""<(?P<iri>[^<>"{}|^`\s]*)> | _:(?P<blank>\S+)
      | "(?P<text>(?:[^"\\\n\r]|\\.)*)"(?:@(?P<tag>[A-Za-z0-9-]+)|\^\^<(?P<datatype>[^<>\s]*)>)?""",
    re.X,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def parse_term(text: str, source: str = "") -> Term | None:
    """The term that a text in N-Triples syntax writes; None where it writes none.

    A blank node's label is scoped to its source: `source` becomes a part of it.

    >>> print(parse_term('"caf\\\\u00E9"@FR'), parse_term("_:b", "s0."), parse_term("cafe"))
    "café"@fr _:s0.b None
    """
    found = _TERM.fullmatch(text)
    try:
        return _term(found, source) if found else None
    except (ValueError, OverflowError):  # an escape beyond the last character of Unicode
        return None


def _term(found: re.Match[str], source: str) -> Term:
    if found["iri"] is not None:
        return IRI(unescape_ntriples(found["iri"]))
    if found["blank"] is not None:
        return BlankNode(source + found["blank"])
    text = unescape_ntriples(found["text"])
    if found["tag"]:
        return Literal(text, language=found["tag"])
    return (
        Literal(text, IRI(unescape_ntriples(found["datatype"])))
        if found["datatype"]
        else Literal(text)
    )


def unescape_ntriples(text: str) -> str:
    """The characters that a text with N-Triples' escapes stands for.

    >>> unescape_ntriples("a\\\\u0062\\\\tc")
    'ab\\tc'
    """
    if "\\" not in text:
        return text
    return _ESCAPE.sub(
        lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else _ESCAPED.get(m[3], m[3]), text
    )
