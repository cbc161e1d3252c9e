"""Large parts that several checkpoints of a folder share: one that is unchanged is written once.

Between two checkpoints, static graphs and their terms do not change, and neither does the state of
plans whose streams are silent. Such a part is a file next to the checkpoints, whose headers name
it. Whether a part has changed shows in a fingerprint of its columns, which costs less than writing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b

import pyarrow as pa

from streamsparql.run.checkpoint.file import (
    SavedTable,
    checksum,
    encoded,
    read_header,
    write_whole,
)

LEAST_BYTES = 1 << 16
"""The size of a table from which on it is a file of its own."""
_NAME = re.compile(r"part-[0-9a-f]{32}")


class SharedParts:
    """The parts in the files of a folder.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> shared = SharedParts(folder)
    >>> table = pa.table({"a": range(10_000)})
    >>> one, two = shared.store("x", table), shared.store("x", table)
    >>> one == two, len(os.listdir(folder)), shared.store("y", table.slice(0, 10))
    (True, 1, None)
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[bytes, SavedTable] = {}
        """The parts that were written, by their fingerprints."""

    def store(self, name: str, table: pa.Table) -> SavedTable | None:
        """Return a part that has a file, which is written if it has none; None for a small one."""
        if table.nbytes < LEAST_BYTES:
            return None
        mark = _fingerprint(table)
        part = self._known.get(mark)
        if part is None or not os.path.exists(os.path.join(self._folder, part.file or "")):
            block = encoded(table)
            sum_of_block = checksum(block)
            file = f"part-{sum_of_block}"
            write_whole(os.path.join(self._folder, file), [block])
            part = SavedTable(name, len(table), len(block), sum_of_block, file)
            self._known[mark] = part
        return part._replace(name=name)

    def remove_unused(self, checkpoints: Iterable[str]) -> None:
        """Remove the files that none of these checkpoints names."""
        used = {part.file for path in checkpoints for part in read_header(path)["parts"]}
        for name in os.listdir(self._folder):
            if _NAME.fullmatch(name) and name not in used:
                with suppress(OSError):
                    os.unlink(os.path.join(self._folder, name))
        self._known = {mark: part for mark, part in self._known.items() if part.file in used}


def _fingerprint(table: pa.Table) -> bytes:
    """Return a hash of the content of a table; tables with equal hashes are equal.

    >>> table = pa.table({"a": [1, 2], "b": ["x", None]})
    >>> other = pa.table({"a": [1, 2], "b": ["x", "y"]})
    >>> _fingerprint(table) == _fingerprint(table), _fingerprint(table) == _fingerprint(other)
    (True, False)
    """
    state = blake2b(table.schema.serialize(), digest_size=20)
    for column in table.columns:
        for chunk in column.chunks:
            _add(state, chunk)
    return state.digest()


def _add(state: blake2b, array: pa.Array) -> None:
    state.update(b"%d %d %d;" % (len(array), array.offset, array.null_count))
    for buffer in array.buffers():
        state.update(b"-" if buffer is None else b"%d:" % buffer.size)
        if buffer is not None:
            state.update(buffer)
    if pa.types.is_dictionary(array.type):
        _add(state, array.dictionary)
