"""Terms of any library, and plain Python values, as texts in N-Triples syntax.

An item may be made of terms of rdflib, pyoxigraph or this package, of texts in N-Triples syntax, or
of plain values. In the place of the object a number, a boolean, a date or a time is a literal of
the type in XSD, and a string is a text, unless it begins as a term does: with `<`, `"` or `_:`. In
the places of the subject and the predicate a string is an IRI, if it has a scheme and an authority
(`http://..`) or is a URN. Any other string there is an error, so that a name is never taken for an
IRI by accident.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from operator import countOf
from typing import Any

import numpy as np

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.terms import IRI, XSD, BlankNode, Literal
from streamsparql.algebra.xsd.durations import DayTimeDuration, duration_text
from streamsparql.algebra.xsd.numeric import Single
from streamsparql.algebra.xsd.values import literal_of
from streamsparql.errors import SourceError
from streamsparql.rdflib_terms import term

_OURS = (IRI, BlankNode, Literal)
_NAME = re.compile(r'(?:[A-Za-z][A-Za-z0-9+.-]*://|urn:)[^<>"{}|^`\\\x00-\x20]+')
_PREFIXED = re.compile(r"[\w.-]*:[^\s<>\"]*")
_SECOND = timedelta(seconds=1)


def is_term(kind: type) -> bool:
    """Return whether values of a type are terms of some library, and not just strings.

    >>> is_term(IRI), is_term(str)
    (True, False)
    """
    return issubclass(kind, _OURS) or kind.__module__.partition(".")[0] in ("rdflib", "pyoxigraph")


def ntriples_text(value: Any) -> str:
    """Return a term in N-Triples syntax; "" for a value that is not a term.

    >>> ntriples_text(IRI("http://example.org/a")), ntriples_text("<b>"), ntriples_text(None)
    ('<http://example.org/a>', '<b>', '')
    """
    if isinstance(value, _OURS):
        return str(value)
    library = type(value).__module__.partition(".")[0]
    if library == "rdflib":
        try:
            return str(term(value))
        except SourceError:
            return ""
    if isinstance(value, str):
        return str.__str__(value)
    return str(value) if library == "pyoxigraph" else ""


# -- plain values ----------------------------------------------------------------------------------


def literal_text(value: Any) -> str:
    """Return a plain value that is not a string as a literal; "" for a value of another type.

    >>> literal_text(2.5), literal_text(date(2026, 3, 1)), literal_text([1])
    ('"2.5"^^<http://www.w3.org/2001/XMLSchema#double>', \
'"2026-03-01"^^<http://www.w3.org/2001/XMLSchema#date>', '')
    """
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            try:
                return str(write(value))
            except (ExpressionError, ValueError):  # an integer with too many digits, NaT
                return ""
    return ""


def _moment(name: str) -> Callable[[Any], Literal]:
    """Return a writer of dates and times: without trailing zeros, with Z for UTC."""

    def write(value: datetime | time | date) -> Literal:
        text = value.isoformat()
        clock, offset, zone = text.partition("+")
        if "." in clock:
            clock = clock.rstrip("0").rstrip(".")
        return Literal(clock + ("Z" if zone == "00:00" else offset + zone), IRI(XSD + name))

    return write


def _duration(value: timedelta) -> Literal:
    seconds = Decimal(value // timedelta(microseconds=1)).scaleb(-6)
    return Literal(duration_text(DayTimeDuration(0, seconds)), IRI(XSD + "dayTimeDuration"))


_WRITERS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Literal]], ...] = (
    ((bool, np.bool_), lambda value: literal_of(bool(value))),
    ((int, np.integer), lambda value: literal_of(int(value))),
    ((np.float32, np.float16), lambda value: literal_of(Single(value))),
    ((float, np.floating), lambda value: literal_of(float(value))),
    (Decimal, literal_of),
    (datetime, _moment("dateTime")),
    (date, _moment("date")),
    (time, _moment("time")),
    (timedelta, _duration),
    (np.datetime64, lambda value: _moment("dateTime")(value.astype("datetime64[us]").item())),
)


def object_text(value: Any) -> str:
    """Return the object of a triple in N-Triples syntax; raise ValueError with the reason.

    >>> object_text("north"), object_text("<north>"), object_text(7)
    ('"north"', '<north>', '"7"^^<http://www.w3.org/2001/XMLSchema#integer>')
    >>> object_text("<3")
    Traceback (most recent call last):
    ValueError: the object '<3' begins as a term, and is not one; write it as a literal: '"<3"'
    """
    if type(value) is str:
        if value[:1] not in ("<", '"') and value[:2] != "_:":
            return str(Literal(value))
        if _is_term_text(value):
            return value
        raise ValueError(
            f"the object {value!r:.80} begins as a term, and is not one; write it as a literal:"
            f" {str(Literal(value))!r:.80}"
        )
    text = ntriples_text(value) or literal_text(value)
    if text:
        return text if is_term(type(value)) else object_text(text)
    if value is None:
        raise ValueError("the object is missing (None)")
    raise ValueError(f"the object {value!r:.80} is of type {type(value).__name__}, not a term")


def resource_text(value: Any, place: str) -> str:
    """Return the subject or predicate of a triple in N-Triples syntax; raise ValueError otherwise.

    >>> resource_text("http://example.org/a", "subject"), resource_text("_:b", "subject")
    ('<http://example.org/a>', '_:b')
    >>> resource_text("sensor1", "subject")
    Traceback (most recent call last):
    ValueError: the subject 'sensor1' is not an IRI; write <sensor1>, or an IRI such as \
http://example.org/sensor1
    """
    text = value if type(value) is str else ntriples_text(value)
    if text[:1] == "<" or text[:2] == "_:":
        if _is_term_text(text) and (place == "subject" or text[0] == "<"):
            return text
    elif text[:1] != '"' and _NAME.fullmatch(text):
        return f"<{text}>"
    if text[:1] == '"' and _is_term_text(text):
        raise ValueError(f"the {place} is a literal: {text:.80}")
    if text[:2] == "_:" and place == "predicate":
        raise ValueError(f"the predicate is a blank node: {text:.80}")
    if not text:
        raise ValueError(f"the {place} {value!r:.80} is of type {type(value).__name__}, not an IRI")
    hint = f"write <{text:.80}>, or an IRI such as http://example.org/{text:.80}"
    if _PREFIXED.fullmatch(text):
        hint = "write the whole IRI in place of the prefix, in angle brackets"
    elif text[0] in "<_":
        hint = "write <iri>, _:label or a term of rdflib"
    raise ValueError(f"the {place} {text!r:.80} is not an IRI; {hint}")


def check_triple(triple: Any) -> None:
    """Raise ValueError with the reason if a value is not a triple of terms or plain values.

    >>> check_triple(("http://example.org/a", "<p>", True))
    >>> check_triple(("<a>", "<p>"))
    Traceback (most recent call last):
    ValueError: expected a triple (s, p, o), not ('<a>', '<p>')
    """
    if not isinstance(triple, tuple | list) or len(triple) != 3:
        raise ValueError(f"expected a triple (s, p, o), not {triple!r:.80}")
    s, p, o = triple
    check = _check_name
    check(s, "subject") if type(s) is str else resource_text(s, "subject")
    check(p, "predicate") if type(p) is str else resource_text(p, "predicate")
    kind = type(o)
    if kind is str:
        if o[:1] in _MARKS and not _USUAL.fullmatch(o):
            object_text(o)
    elif kind not in _SIMPLE and not (kind is int and -_HUGE < o < _HUGE):
        object_text(o)


_check_name = lru_cache(maxsize=1 << 16)(resource_text)
"""A memo for subjects and predicates, which recur."""
_MARKS = frozenset('<"_')
_USUAL = re.compile(r'"[^"\\\n\r]*"(?:\^\^<[^<>\s\\]*>)?|<[^<>"{}|^`\s\\]*>')
"""Most terms: literals and IRIs without escapes."""
_SIMPLE = frozenset({bool, float})
_HUGE = 1 << 63  # integers beyond may have more digits than Python writes


def _is_term_text(text: str) -> bool:
    return parse_term(text) is not None


# -- columns of terms ------------------------------------------------------------------------------


def ntriples_texts(values: list[Any]) -> list[str]:
    """Return terms in N-Triples syntax; "" for other values. Each distinct term is converted once.

    >>> ntriples_texts([IRI("a"), "<b>", 5])
    ['<a>', '<b>', '']
    """
    if countOf(map(type, values), str) == len(values):
        return values
    memo: dict[tuple[type, Any], str] = {}
    texts = []
    for value in values:
        try:
            key = type(value), value
            text = memo.get(key)
            if text is None:
                text = memo[key] = ntriples_text(value)
        except TypeError:  # not hashable, so not a term
            text = ""
        texts.append(text)
    return texts


def value_texts(values: list[Any]) -> list[str]:
    """Return terms and plain values in N-Triples syntax, and strings as they are.

    >>> value_texts([IRI("a"), "b", True])
    ['<a>', 'b', '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>']
    """
    texts = ntriples_texts(values)
    if "" not in texts:
        return texts
    pairs = zip(values, texts, strict=True)
    return [text or literal_text(value) for value, text in pairs]
