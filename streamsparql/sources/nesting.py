"""The depth of RDF files, checked before the parser reads them: deep nesting crashes the parser.

It recurs into the objects and lists of JSON-LD, and into the triple terms of Turtle and TriG.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import IO, Any

import numpy as np

from streamsparql.errors import SourceError
from streamsparql.overriding import override
from streamsparql.physical.batch import IntArray
from streamsparql.sources.lines import LONGEST

MAX_LEVELS = 500
"""The maximal depth of nesting."""


class CheckedNesting(ABC):
    """A file whose content is checked as it is read; a depth beyond `MAX_LEVELS` is an error."""

    def __init__(self, file: Any, name: str) -> None:
        self._file: IO[bytes] = file
        self._name = name
        self._depth = 0
        self._tail = b""
        """The end of what was read, if it is part of a string or a line."""

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes."""
        data = self._file.read(size)
        if data:
            self._check(self._tail + data)
        return data

    @abstractmethod
    def _check(self, data: bytes) -> None:
        """Raise an error if this content nests too deeply; it starts with the last tail."""

    def _check_depth(self, depth: int) -> None:
        if depth > MAX_LEVELS:
            raise SourceError(f"{self._name}: more than {MAX_LEVELS} levels of nesting")


class CheckedJson(CheckedNesting):
    """JSON, whose objects and lists are nested.

    >>> import io
    >>> text = b'{"a": "[[[[", "b": ' + b"[" * 500
    >>> CheckedJson(io.BytesIO(text), "x.jsonld").read()
    Traceback (most recent call last):
    streamsparql.errors.SourceError: x.jsonld: more than 500 levels of nesting
    """

    @override
    def _check(self, data: bytes) -> None:
        marks = np.frombuffer(_STRING.sub(b"", data), np.uint8)
        opened = (marks == ord("{")) | (marks == ord("["))
        closed = (marks == ord("}")) | (marks == ord("]"))
        changes: IntArray = opened.astype(np.int64)[opened | closed] * 2 - 1
        depths = self._depth + np.cumsum(changes)
        if len(depths):
            self._check_depth(int(depths.max()))
            self._depth = int(depths[-1])
        plain = _ESCAPE.sub(b"__", data) if b"\\" in data else data
        self._tail = data[plain.rfind(b'"') :] if plain.count(b'"') % 2 else b""
        if len(self._tail) > LONGEST:
            raise SourceError(f"{self._name}: a string is longer than {LONGEST:,} bytes")


_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.S)
"""A string, or the beginning of one at the end of the data."""
_ESCAPE = re.compile(rb"\\.", re.S)


class CheckedTripleTerms(CheckedNesting):
    """Turtle or TriG, whose triple terms, `<<( :a :b <<( .. )>> )>>`, are nested.

    Between two that are nested are only IRIs, names and comments. None is nested after a string:
    the depth begins again there.

    >>> import io
    >>> text = b":a :b " + b"<<( :a :b #)>>\\n" * 501
    >>> CheckedTripleTerms(io.BytesIO(text), "x.ttl").read()
    Traceback (most recent call last):
    streamsparql.errors.SourceError: x.ttl: more than 500 levels of nesting
    """

    @override
    def _check(self, data: bytes) -> None:
        self._tail = b""
        if b"<<(" not in data and not self._depth:
            self._tail = data[-2:] if data.endswith(b"<") else b""
            return
        line = data.rfind(b"\n") + 1
        if len(data) - line > _LONG_LINE:
            line = len(data)
        self._depth = self._depth_after(data[:line])
        self._tail = data[line:]  # a comment, an IRI or a mark may continue
        self._depth_after(self._tail)

    def _depth_after(self, data: bytes) -> int:
        """Return the depth after more content."""
        depth = self._depth
        for mark in _MARKS.findall(data):
            if mark == b"<<(":
                depth += 1
                self._check_depth(depth)
            elif mark == b")>>":
                depth = max(0, depth - 1)
            elif mark in (b'"', b"'"):
                depth = 0
        return depth


_LONG_LINE = 1 << 16
_MARKS = re.compile(rb"<<\(|\)>>|[\"']|\\.|#[^\r\n]*|<[^<>\s]*>")
