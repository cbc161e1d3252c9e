"""CSV and TSV: tables as text, with the columns of `tables` in a header.

In `.csv` a value may be quoted, with its own quotes doubled, as any writer of CSV does it with
literals. In `.tsv` there is no quoting, as in SPARQL's results: N-Triples escapes tabs.

A row of another width than the header is rejected. Positions are those of rows: the header is the
first, and empty lines are none.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from streamsparql.errors import SourceError
from streamsparql.physical.batch import IntArray
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.lines import LONGEST, NOT_UTF8, blocks, decoded
from streamsparql.sources.reading import Reading
from streamsparql.sources.tables import chunk_of_batch, roles

_BYTES_OF_A_ROW = 100


class Separated:
    """One file of separated values."""

    def __init__(self, reading: Reading, timed: bool, tabs: bool) -> None:
        self._reading = reading
        self._timed = timed
        self._tabs = tabs
        self._names: list[str] = []
        self._used: list[str] = []
        self._row = 1
        """The number of the last row that was read."""

    def chunks(self, file: IO[bytes], size: int) -> Iterator[Chunk]:
        """The rows in chunks of at most that size."""
        name = self._reading.name
        for block in self._whole(file, size):
            if not self._names:
                block = self._header(block)
            yield from self._block(block, size)
        if not self._names:
            raise SourceError(f"{name} is empty: the first row names the columns")

    def _whole(self, file: IO[bytes], size: int) -> Iterator[bytes]:
        """Blocks that end where no quote is open, the last perhaps excepted."""
        held: list[bytes] = []
        quotes = 0
        for _, block in blocks(file, self._reading.name, max(1, size) * _BYTES_OF_A_ROW):
            quotes += 0 if self._tabs else block.count(b'"')
            held.append(block)
            if quotes % 2 and sum(map(len, held)) > LONGEST:
                raise SourceError(f"{self._reading.name}, row {self._row}: a quote is never closed")
            if not quotes % 2:
                yield b"".join(held)
                held, quotes = [], 0
        if held:
            yield b"".join(held)

    def _header(self, block: bytes) -> bytes:
        """Reads the names of the columns; what follows them is handed back."""
        line, _, rest = block.partition(b"\n")
        text = decoded(line.rstrip(b"\r"))
        if text is None:
            raise SourceError(f"{self._reading.name}, line 1: {NOT_UTF8}")
        self._names = text.split("\t") if self._tabs else next(csv.reader([text]), [])
        self._used = list(roles(self._names, self._reading, self._timed).values())
        return rest

    def _block(self, block: bytes, size: int) -> Iterator[Chunk]:
        if not block.strip():
            return
        wrong: list[tuple[int, str]] = []
        try:
            table = self._parsed(block, wrong)
        except pa.ArrowInvalid as error:
            raise SourceError(f"{self._reading.name}, row {self._row}: {error}") from error
        places = _between(table.num_rows, [number for number, _ in wrong]) + self._row
        self._row += table.num_rows + len(wrong)
        expected = f"the header has {len(self._names)} columns, this row has not"
        start = self._row - table.num_rows - len(wrong)
        rejects = [self._reading.reject(start + n, expected, text) for n, text in wrong]
        batch = table.combine_chunks().to_batches()
        rows = batch[0] if batch else None
        for at in range(0, max(1, table.num_rows), size):
            yield self._chunk(rows, places, at, size, rejects)

    def _chunk(
        self,
        rows: pa.RecordBatch | None,
        places: IntArray,
        at: int,
        size: int,
        rejects: list[Reject],
    ) -> Chunk:
        """Some of the rows, with the rejects that come before the next ones."""
        after = at + size
        least = int(places[at - 1]) if at else 0
        most = int(places[after - 1]) if after < len(places) else self._row
        here = [reject for reject in rejects if least < reject.position <= most]
        if rows is None:
            empty = pa.array([], pa.string())
            rows = pa.RecordBatch.from_arrays([empty] * len(self._used), self._used)
        return chunk_of_batch(
            rows.slice(at, size), self._reading, places[at:after], self._timed, here
        )

    def _parsed(self, block: bytes, wrong: list[tuple[int, str]]) -> pa.Table:
        """The rows as Arrow reads them, with texts as bytes: each is decoded by itself."""

        def skip(row: Any) -> str:
            wrong.append((row.number, row.text))
            return "skip"

        return arrow_csv.read_csv(
            pa.BufferReader(block),
            arrow_csv.ReadOptions(
                use_threads=False, column_names=self._names, block_size=len(block) + 1
            ),
            arrow_csv.ParseOptions(
                delimiter="\t" if self._tabs else ",",
                quote_char=False if self._tabs else '"',
                newlines_in_values=not self._tabs,
                invalid_row_handler=skip,
            ),
            arrow_csv.ConvertOptions(
                check_utf8=False,
                include_columns=self._used,
                column_types=dict.fromkeys(self._used, pa.binary()),
                strings_can_be_null=False,
            ),
        )


def _between(rows: int, taken: list[int]) -> IntArray:
    """The numbers of so many rows, counted from 1, where some numbers are taken.

    >>> _between(3, [2]).tolist()
    [1, 3, 4]
    """
    numbers = np.arange(1, rows + 1)
    for number in sorted(taken):
        numbers[numbers >= number] += 1
    return numbers
