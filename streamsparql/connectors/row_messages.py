"""From rows to messages: a message for each row, with a key that is the same whenever it is sent.

The key is a hash of the row with its times, and of its number among equal rows. A receiver that
ignores keys that it has seen sees each row once, although it may be sent twice.
"""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

import pyarrow as pa

from streamsparql.errors import EngineError
from streamsparql.sinks.layout import Layout
from streamsparql.sinks.text_formats import JsonLines, NQuads

FORMATS = ("json", "sparql-json", "nq", "arrow")
"""Formats of messages: `json` has native values, `sparql-json` terms; `arrow` has many rows."""


class RowMessage(NamedTuple):
    """A message, and its key."""

    key: str
    payload: bytes


class RowMessages:
    """The messages of rows of one query.

    >>> messages = RowMessages(Layout("select", ("x",), ("start", "end")), "json")
    >>> rows = pa.table({"x": ['"a"', '"a"'], "start": [3, 3], "end": [7, 7]})
    >>> one, two = messages.of(rows)
    >>> one.payload, one.key == two.key
    (b'{"x": "a", "start": 3, "end": 7}', False)
    """

    def __init__(self, layout: Layout, kind: str) -> None:
        if kind not in FORMATS:
            raise EngineError(
                f"unknown format {kind!r} of messages; the formats are {', '.join(FORMATS)}"
            )
        if kind == "nq" and not layout.triples:
            raise EngineError(f"nq needs triples, not rows of {layout.form.upper()}; use json")
        self._kind = kind
        self._file = io.BytesIO()
        style = layout.timestamps or "ms"
        if kind == "nq":
            self._writer: JsonLines | NQuads = NQuads(self._file, layout)
        else:
            values = "native" if kind == "json" else "terms"
            self._writer = JsonLines(self._file, replace(layout, values=values, timestamps=style))

    def of(self, rows: pa.Table) -> list[RowMessage]:
        """Return the messages of rows, in their order."""
        if not len(rows):
            return []
        if self._kind == "arrow":
            return [_arrow(rows)]
        self._writer.write(rows)
        content = self._file.getvalue()
        self._file.seek(0)
        self._file.truncate()
        seen: Counter[bytes] = Counter()
        messages = []
        for line in content[:-1].split(b"\n"):
            messages.append(RowMessage(_key(line, seen[line]), line))
            seen[line] += 1
        return messages


def _key(content: bytes, number: int) -> str:
    return blake2b(content + b"\n%d" % number, digest_size=16).hexdigest()


def _arrow(rows: pa.Table) -> RowMessage:
    """Return rows as a stream of Arrow's IPC format."""
    target = io.BytesIO()
    with pa.ipc.new_stream(target, rows.schema) as writer:
        writer.write_table(rows)
    return RowMessage(_key(target.getvalue(), 0), target.getvalue())
