"""Rules for characters, prefixes, IRIs, variables and misspelled keywords."""

from __future__ import annotations

import re
from difflib import get_close_matches

from streamsparql.translator.hints.place import Place

_CLOSED_STRING = re.compile(r"""(["'])(?:(?!\1)[^\n\r\\]|\\.)*\1""")
_URL = re.compile(r"""[a-z][a-z0-9+.-]{0,20}://[^\s<>"{}|^`\\;,)\]]+""", re.I)
_FILE = re.compile(r"\w+\.(nq|nt|ttl|csv|jsonl?|parquet)\b")
_SOURCES = ("STREAM", "FROM", "NAMED", "GRAPH", "ON")


def characters(at: Place) -> str:
    """Recognise quotes, escapes and comments of other languages."""
    text, previous = at.token.text, at.text[at.token.start - 1 : at.token.start]
    first = text[:1] or " "
    if first in "“”„‟‘’‚‛«»":
        return "write straight quotes: \" or '"
    if first in "\"'" and not at.token.type:
        if _CLOSED_STRING.match(at.text, at.token.start):
            return 'invalid escape in this string; \\t, \\n, \\" and \\u0041 are valid ones'
        return "this string does not end on its line; write a long string in three quotes"
    if first == "<" and at.token.type != "IRIREF" and at.terminals & at.iris:
        return "an IRI in < > must end with >, and cannot contain spaces, quotes or braces"
    comment = at.since.startswith(("--", "//", "/*")) or previous + first == "--"
    if comment and not at.last().endswith(":"):
        return "a comment starts with # and ends with its line"
    if first == "`":
        return "names have no quotes: write ?name for a variable, :name for an IRI"
    if first == "=" and previous == "=":
        return "equality is written with one ="
    return ""


def prologue(at: Place) -> str:
    """Recognise prefixes as in Turtle."""
    if at.word in ("@PREFIX", "@BASE"):
        return f"write {at.word[1:]} without @, and without the '.' at its end"
    if at.last() == "PREFIX" and at.is_word:
        return f"a prefix ends with a colon: PREFIX {at.token.text}: <..>"
    if at.last(2).endswith(":") and at.last(3) == "PREFIX" and at.token.text in (".", ";", ","):
        return f"write no '{at.token.text}' after a PREFIX"
    return ""


def bare_iri(at: Place) -> str:
    """Recognise an IRI without angle brackets: `http:` is read as a prefixed name."""
    for token in (at.token, *reversed(at.before[-3:])):
        if url := _URL.match(at.text, token.start, token.start + 200):
            return f"write an IRI in < >: <{url[0].rstrip('.')}>"
    return ""


def spelling(at: Place) -> str:
    """Recognise a misspelled keyword."""
    words = [name for name in at.expected if name.isupper() or name.endswith(" BY")]
    if at.word[:1].isalpha() and (close := get_close_matches(at.word, words, 1, 0.7)):
        return f"did you mean {close[0]}?"
    return ""


def bare_name(at: Place) -> str:
    """Recognise a name without the mark of a variable or an IRI."""
    takes_iri, takes_variable = bool(at.terminals & at.iris), "VAR" in at.terminals
    if not at.is_word:
        if at.token.type.startswith("STRING") and takes_iri and at.last() in _SOURCES:
            return f"write an IRI in < >: <{at.token.text[1:-1]}>"
        return ""
    name, file = at.token.text, _FILE.match(at.since)
    if at.last() in _SOURCES and file:
        return (
            "name the stream by an IRI, such as <stream>, and pass the file to the run:"
            f" --stream {file[0]}"
        )
    if takes_iri and not takes_variable:
        return f"write <{name}>, as names here are IRIs, or declare a prefix"
    is_key = at.clauses[-1:] in (["GROUP"], ["ORDER"])
    if takes_iri and not is_key:
        return f"write ?{name} for a variable, <{name}> or :{name} for an IRI"
    return f"a variable starts with a question mark: ?{name}" if takes_variable else ""
