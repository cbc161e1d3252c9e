"""RDF terms and triples.

Terms are plain immutable values that keep their lexical form: `"01"^^xsd:integer` and
`"1"^^xsd:integer` are two terms with one value. `xsd.values` maps literals to values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


@dataclass(frozen=True, slots=True)
class IRI:
    """An IRI as written, absolute or relative.

    >>> print(IRI("http://example.org/a"))
    <http://example.org/a>
    """

    value: str

    def __str__(self) -> str:
        return f"<{_escape(self.value, _IRI_ESCAPES)}>"


@dataclass(frozen=True, slots=True)
class BlankNode:
    """A blank node; its label is scoped to its source, so two sources never share one.

    >>> print(BlankNode("b0"))
    _:b0
    """

    label: str

    def __str__(self) -> str:
        return f"_:{self.label}"


XSD_STRING = IRI(XSD + "string")
RDF_LANG_STRING = IRI(RDF + "langString")


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal with its lexical form as written; language tags are in lower case.

    >>> print(Literal("chat", language="FR"), Literal("1", IRI(XSD + "integer")))
    "chat"@fr "1"^^<http://www.w3.org/2001/XMLSchema#integer>
    """

    lexical: str
    datatype: IRI = XSD_STRING
    language: str | None = None

    def __post_init__(self) -> None:
        if self.language is not None:
            object.__setattr__(self, "language", self.language.lower())
            object.__setattr__(self, "datatype", RDF_LANG_STRING)

    def __str__(self) -> str:
        quoted = f'"{_escape(self.lexical, _STRING_ESCAPES)}"'
        if self.language is not None:
            return f"{quoted}@{self.language}"
        return quoted if self.datatype == XSD_STRING else f"{quoted}^^{self.datatype}"


Term = IRI | BlankNode | Literal


class Triple(NamedTuple):
    """An RDF triple of subject, predicate and object.

    >>> print(Triple(IRI("s"), IRI("p"), Literal("o")))
    <s> <p> "o"
    """

    subject: Term
    predicate: Term
    object: Term

    def __str__(self) -> str:
        return " ".join(map(str, self))


_IRI_ESCAPES = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_STRING_ESCAPES = re.compile(r'["\\\x00-\x1f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def _escape(text: str, dangerous: re.Pattern[str]) -> str:
    short = _SHORT if dangerous is _STRING_ESCAPES else {}
    return dangerous.sub(lambda m: short.get(m[0]) or f"\\u{ord(m[0]):04X}", text)


TRUE = Literal("true", IRI(XSD + "boolean"))
FALSE = Literal("false", IRI(XSD + "boolean"))


def boolean(value: bool) -> Literal:
    """Return the canonical xsd:boolean literal.

    >>> print(boolean(True))
    "true"^^<http://www.w3.org/2001/XMLSchema#boolean>
    """
    return TRUE if value else FALSE


def integer(value: int) -> Literal:
    """Return the canonical xsd:integer literal.

    >>> print(integer(7))
    "7"^^<http://www.w3.org/2001/XMLSchema#integer>
    """
    return Literal(str(value), IRI(XSD + "integer"))
