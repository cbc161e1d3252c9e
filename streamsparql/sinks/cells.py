"""Cells: terms in N-Triples syntax on their way into other syntaxes, each distinct one once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.ntriples import unescape
from streamsparql.physical.texts import to_arrow

_REMEMBERED = 1 << 17


class Cells:
    """Writes the terms of columns, and remembers what it wrote.

    >>> shout = Cells(str.upper)
    >>> shout.of(pa.array(["<a>", None, "<a>"]).dictionary_encode(), "-").to_pylist()
    ['<A>', '-', '<A>']
    """

    def __init__(self, write: Callable[[str], str]) -> None:
        self._write = write
        self._known: dict[str, str] = {}

    def of(self, column: pa.Array, none: str) -> pa.Array:
        """A column of terms as texts; `none` stands where there is no term."""
        if not isinstance(column, pa.DictionaryArray):
            column = column.dictionary_encode()
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        known, write = self._known, self._write
        made: list[str] = []
        for text in column.dictionary.to_pylist():
            cell = known.get(text)
            if cell is None:
                cell = known[text] = write(text)
            made.append(cell)
        written = to_arrow(made).take(column.indices)  # type: ignore[arg-type]
        return pc.fill_null(written, none) if written.null_count else written


def apart(text: str) -> tuple[str, str, str, str]:
    """The sort of a term (uri, bnode, literal), its value, its language and its datatype.

    >>> apart("<urn:a>"), apart('"7"^^<urn:t>'), apart('"chat"@fr')
    (('uri', 'urn:a', '', ''), ('literal', '7', '', 'urn:t'), ('literal', 'chat', 'fr', ''))
    """
    if text[0] == "<":
        return "uri", unescape(text[1:-1]), "", ""
    if text[0] == "_":
        return "bnode", text[2:], "", ""
    end = text.rindex('"')
    value, rest = unescape(text[1:end]), text[end + 1 :]
    if rest.startswith("@"):
        return "literal", value, rest[1:], ""
    return "literal", value, "", unescape(rest[3:-1])


def joined(columns: Sequence[pa.Array | str], between: str, end: str = "") -> bytes:
    """Rows of texts, one after the other, as UTF-8.

    >>> joined([pa.array(["a", "b"]), pa.array(["1", "2"])], ",", "\\n")
    b'a,1\\nb,2\\n'
    """
    rows: Any = pc.binary_join_element_wise(*columns, between)
    if end:
        rows = pc.binary_join_element_wise(rows, "", end)
    offsets, data = rows.buffers()[1:]
    ends = pa.Array.from_buffers(pa.int32(), len(rows) + 1, [None, offsets], offset=rows.offset)
    made: bytes = data.to_pybytes()[ends[0].as_py() : ends[-1].as_py()] if len(rows) else b""
    return made
