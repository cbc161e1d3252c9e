"""A lenient reader of terms in N-Triples syntax, which all sources and interfaces accept.

Lenient means: an IRI may be relative, a backslash before any other character denotes that
character, and a literal may contain control characters unescaped. `str(term)` writes N-Triples.
"""

from __future__ import annotations

import re

from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term

_TERM = re.compile(
    r"""<(?P<iri>[^<>"{}|^`\s]*)> | _:(?P<blank>\S+)
      | "(?P<text>(?:[^"\\\n\r]++|\\.)*+)"
        (?:@(?P<tag>[A-Za-z0-9-]+)|\^\^<(?P<datatype>[^<>\s]*)>)?""",
    re.X,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def parse_term(text: str, source: str = "") -> Term | None:
    """Parse a term in N-Triples syntax; return None if the text is malformed.

    Blank nodes are scoped to their source: `source` becomes a prefix of their label.

    >>> print(parse_term('"caf\\\\u00E9"@FR'), parse_term("_:b", "s0."), parse_term("cafe"))
    "café"@fr _:s0.b None
    """
    match = _TERM.fullmatch(text)
    try:
        return _build_term(match, source) if match else None
    except (ValueError, OverflowError):  # an escape beyond the last character of Unicode
        return None


def _build_term(match: re.Match[str], source: str) -> Term:
    if match["iri"] is not None:
        return IRI(unescape_ntriples(match["iri"]))
    if match["blank"] is not None:
        return BlankNode(source + match["blank"])
    text = unescape_ntriples(match["text"])
    if match["tag"]:
        return Literal(text, language=match["tag"])
    return (
        Literal(text, IRI(unescape_ntriples(match["datatype"])))
        if match["datatype"]
        else Literal(text)
    )


def unescape_ntriples(text: str) -> str:
    """Replace the escapes of N-Triples by the characters that they denote.

    >>> unescape_ntriples("a\\\\u0062\\\\tc")
    'ab\\tc'
    """
    if "\\" not in text:
        return text
    return _ESCAPE.sub(
        lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else _ESCAPED.get(m[3], m[3]), text
    )
