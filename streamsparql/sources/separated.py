"""CSV and TSV: tables as text, with the columns of `tables` in a header.

In `.csv` a value may be quoted, with its own quotes doubled, as any writer of CSV does it with
literals. In `.tsv` there is no quoting, as in SPARQL's results: N-Triples escapes tabs.

A row of another width than the header is rejected. Positions are those of rows: the header is the
first, and empty lines are none.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from streamsparql.errors import SourceError
from streamsparql.physical.batch import IntArray
from streamsparql.sources.chunk import Reject
from streamsparql.sources.lines import LONGEST, NOT_UTF8, blocks, broken, decoded
from streamsparql.sources.reading import Reading

_BYTES_OF_A_ROW = 100


Part = tuple[pa.RecordBatch, IntArray, list[Reject]]
"""Some rows, their places, and the rejects that stood among them."""


class Separated:
    """One file of separated values; `choose` tells of the names of the columns which are read."""

    def __init__(
        self, reading: Reading, choose: Callable[[list[str]], list[str]], header: bool = True
    ) -> None:
        self._reading = reading
        self._choose = choose
        self._header_given = header
        self._tabs, self._delimiter = False, ","
        self._names: list[str] = []
        self._used: list[str] = []
        self._row = int(header)
        """The number of the last row that was read."""

    def batches(self, file: IO[bytes], size: int, delimiter: str | None) -> Iterator[Part]:
        """The rows, at most so many at a time. With no delimiter, the first line tells it."""
        self._tabs, self._delimiter = delimiter == "\t", delimiter or ""
        for block in self._whole(file, size):
            if not self._names:
                block = self._begin(block)
            yield from self._parts(block, size)
        if not self._names and self._header_given:
            raise SourceError(f"{self._reading.name} is empty: the first row names the columns")

    def _whole(self, file: IO[bytes], size: int) -> Iterator[bytes]:
        """Blocks that end where no quote is open, the last perhaps excepted."""
        held: list[bytes] = []
        quotes = 0
        reading = self._reading
        for _, block in blocks(file, reading, max(1, size) * _BYTES_OF_A_ROW, quoted=True):
            quotes += 0 if self._tabs else block.count(b'"')
            held.append(block)
            if quotes % 2 and sum(map(len, held)) > LONGEST:
                raise SourceError(f"{reading.name}, row {self._row}: a quote is never closed")
            if not quotes % 2:
                yield b"".join(held)
                held, quotes = [], 0
        if held:
            rest = b"".join(held)
            yield rest[: _closed(rest)] if broken(file) is not None else rest

    def _begin(self, block: bytes) -> bytes:
        """Learns the columns from the first line; what follows a header is handed back."""
        line = _LINE_END.split(block, 1)[0]
        text = decoded(line)
        if text is None:
            raise SourceError(f"{self._reading.name}, line 1: {NOT_UTF8}")
        self._delimiter = self._delimiter or delimiter_of(text)
        self._tabs = self._delimiter == "\t"
        try:
            read = csv.reader([text], delimiter=self._delimiter)
            found = text.split("\t") if self._tabs else next(read, [])
        except csv.Error as error:
            raise SourceError(
                f"{self._reading.name}, line 1: these are no columns: {error}"
            ) from None
        self._names = found if self._header_given else [letters(k) for k in range(len(found))]
        self._used = self._choose(self._names)
        return (
            block[len(line) :].removeprefix(b"\r").removeprefix(b"\n")
            if self._header_given
            else block
        )

    def _parts(self, block: bytes, size: int) -> Iterator[Part]:
        if not block.strip():
            return
        wrong: list[tuple[int, str]] = []
        try:
            table = self._parsed(block, wrong)
        except pa.ArrowInvalid as error:
            raise SourceError(f"{self._reading.name}, row {self._row}: {error}") from error
        places = _between(table.num_rows, [number for number, _ in wrong]) + self._row
        start = self._row
        self._row += table.num_rows + len(wrong)
        whose = "the header" if self._header_given else "the first row"
        expected = f"{whose} has {len(self._names)} columns, this row has not"
        rejects = [self._reading.reject(start + n, expected, text) for n, text in wrong]
        found = table.combine_chunks().to_batches()
        if found:
            rows = found[0]
        else:
            none = pa.array([], pa.string())
            rows = pa.RecordBatch.from_arrays([none] * len(self._used), self._used)
        for at in range(0, max(1, table.num_rows), size):
            after = at + size
            least = int(places[at - 1]) if at else 0
            most = int(places[after - 1]) if after < len(places) else self._row
            here = [reject for reject in rejects if least < reject.position <= most]
            yield rows.slice(at, size), places[at:after], here

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
                delimiter=self._delimiter,
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


_LINE_END = re.compile(rb"[\r\n]")
_DELIMITERS = (",", "\t", ";", "|")


def delimiter_of(line: str) -> str:
    """What separates the values of a line: the first of `,`, a tab, `;` and `|` that is in it.

    >>> delimiter_of("a;b"), delimiter_of("a")
    (';', ',')
    """
    return next((mark for mark in _DELIMITERS if mark in line), ",")


def letters(place: int) -> str:
    """The name of a column that has none.

    >>> letters(0), letters(25), letters(26)
    ('a', 'z', 'aa')
    """
    name = ""
    place += 1
    while place:
        place, letter = divmod(place - 1, 26)
        name = chr(ord("a") + letter) + name
    return name


def _closed(data: bytes) -> int:
    """Where the last line ends that leaves no quote open."""
    array = np.frombuffer(data, np.uint8)
    closed = np.cumsum(array == ord('"')) % 2 == 0
    ends = np.flatnonzero(closed & ((array == ord("\n")) | (array == ord("\r"))))
    return int(ends[-1]) + 1 if len(ends) else 0


def _between(rows: int, taken: list[int]) -> IntArray:
    """The numbers of so many rows, counted from 1, where some numbers are taken.

    >>> _between(3, [2]).tolist()
    [1, 3, 4]
    """
    numbers = np.arange(1, rows + 1)
    for number in sorted(taken):
        numbers[numbers >= number] += 1
    return numbers
