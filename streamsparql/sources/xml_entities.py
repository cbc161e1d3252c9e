"""The entities of an RDF/XML file, checked before the parser reads them.

A document may declare entities, as many ontologies do for their namespaces; the parser replaces
them by their texts. Entities that refer to entities would multiply: 600 bytes declare a text that
no memory can hold. So a declaration must be short, and without references to other entities.
"""

from __future__ import annotations

import io
import re
from typing import IO, Any

from streamsparql.errors import SourceError
from streamsparql.overriding import override
from streamsparql.sources.lines import AvailableReader

MAX_DECLARATION = 512
"""The maximal length of a declaration, in bytes."""

_DECLARATION = b"<!ENTITY"
_REFERENCE = re.compile(rb"&(?!#|(?:amp|lt|gt|quot|apos);)")


class CheckedEntities(io.RawIOBase):
    """The content of an RDF/XML file; a declaration that could multiply is an error.

    A declaration ends at the next `<`, as for the parser, which also looks for declarations behind
    the head of the document.

    >>> text = b'<!ENTITY a "x"> <!ENTITY b "&a;&a;"> <rdf:RDF>'
    >>> CheckedEntities(io.BytesIO(text), "x.rdf").read()
    Traceback (most recent call last):
    streamsparql.errors.SourceError: x.rdf: the entity b refers to other entities; expected its text
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        super().__init__()
        self._read = AvailableReader(file).read
        self._name = name
        self._held, self._checked, self._ended = b"", b"", False

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any) -> int:
        while not self._checked and not self._ended:
            data = self._read(max(len(buffer), MAX_DECLARATION))
            self._ended = not data
            self._check(self._held + data)
        data, self._checked = self._checked[: len(buffer)], self._checked[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def _check(self, data: bytes) -> None:
        """Check the declarations that are complete; retain a part of one at the end."""
        at = data.find(_DECLARATION)
        while at >= 0:
            end = data.find(b"<", at + 1, at + MAX_DECLARATION + 1)
            if end < 0 and not self._ended and len(data) <= at + MAX_DECLARATION:
                break
            self._check_declaration(data[at : end if end >= 0 else at + MAX_DECLARATION + 1])
            at = data.find(_DECLARATION, at + 1)
        if at < 0:
            at = len(data) if self._ended else _start_of_declaration(data)
        self._checked, self._held = data[:at], data[at:]

    def _check_declaration(self, text: bytes) -> None:
        words = text[len(_DECLARATION) :].replace(b"%", b" ").split(None, 1)
        entity = words[0].decode("utf-8", "backslashreplace")[:40] if words else ""
        if len(text) > MAX_DECLARATION:
            raise SourceError(
                f"{self._name}: the declaration of the entity {entity} is longer than"
                f" {MAX_DECLARATION} bytes"
            )
        if _REFERENCE.search(text):
            raise SourceError(
                f"{self._name}: the entity {entity} refers to other entities; expected its text"
            )


def _start_of_declaration(data: bytes) -> int:
    """Return where a declaration may begin that continues after the data.

    >>> _start_of_declaration(b"<a/> <!EN"), _start_of_declaration(b"<a/>")
    (5, 4)
    """
    for length in range(min(len(_DECLARATION) - 1, len(data)), 0, -1):
        if data.endswith(_DECLARATION[:length]):
            return len(data) - length
    return len(data)
