"""CSV and TSV: tables as text, with the columns of `tables` in a header.

In `.csv` a value may be quoted, with its own quotes doubled, as any writer of CSV does it with
literals; a quote within a value that does not begin with one is a letter like others. In `.tsv`
there is no quoting, as in SPARQL's results: N-Triples escapes tabs.

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
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.lines import LONGEST, NOT_UTF8, blocks, broken, decoded

_BYTES_OF_A_ROW = 100


Part = tuple[pa.RecordBatch, IntArray, list[Reject]]
"""Some rows, their places, and the rejects that stood among them."""


class Separated:
    """One file of separated values; `choose` tells of the names of the columns which are read."""

    def __init__(
        self, reading: Encoder, choose: Callable[[list[str]], list[str]], header: bool = True
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
        held = b""
        reading = self._reading
        for _, block in blocks(file, reading, max(1, size) * _BYTES_OF_A_ROW, quoted=True):
            held = held + block if held else block
            if not self._names and self._header_given:
                held = held.lstrip(b"\r\n")
            if not self._delimiter and held:
                self._tell_delimiter(held)
            opened = None if self._tabs else _unclosed(held, self._delimiter)
            if opened is None and held:
                yield held
                held = b""
            elif opened is None:
                continue
            elif len(held) - opened > LONGEST:
                row = self._row + len(_LINE_END.split(held[:opened].rstrip()))
                raise SourceError(f"{reading.name}, row {row}: a quote is never closed")
        if held:
            yield held[: _whole(held, self._delimiter)] if broken(file) is not None else held

    def _tell_delimiter(self, block: bytes) -> None:
        """The first line tells what separates values, if nobody has said it."""
        line = _LINE_END.split(block, 1)[0]
        self._delimiter = delimiter_of(line.decode("utf-8", "replace"))
        self._tabs = self._delimiter == "\t"

    def _begin(self, block: bytes) -> bytes:
        """Learns the columns from the first line; what follows a header is handed back."""
        line = _LINE_END.split(block, 1)[0]
        text = decoded(line)
        if text is None:
            raise SourceError(f"{self._reading.name}, line 1: {NOT_UTF8}")
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
        wrong: list[tuple[int, object]] = []
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

    def _parsed(self, block: bytes, wrong: list[tuple[int, object]]) -> pa.Table:
        """The rows as Arrow reads them, with texts as bytes: each is decoded by itself.

        Rows of another width Arrow decodes as well, so what is no UTF-8 goes through it as Latin-1,
        in which all bytes are letters.
        """
        plain = decoded(block) is not None
        if not plain:
            block = block.decode("latin-1").encode()

        def skip(row: Any) -> str:
            wrong.append((row.number, row.text if plain else row.text.encode("latin-1")))
            return "skip"

        table = arrow_csv.read_csv(
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
        if plain:
            return table
        columns = [
            pa.array([cell.decode().encode("latin-1") for cell in column.to_pylist()], pa.binary())
            for column in table.columns
        ]
        return pa.table(columns, table.column_names)


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


def _unclosed(data: bytes, delimiter: str) -> int | None:
    """Where the value begins whose quote is still open at the end; None where none is.

    >>> _unclosed(b'a,"b', ","), _unclosed(b'a,"b""c"', ","), _unclosed(b'a,5" pipe', ",")
    (2, None, None)
    """
    array = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(array == _QUOTE)
    if not len(quotes):
        return None
    opening = quotes[::2]  # as long as no quote stands within a value that is not quoted
    before = array[np.maximum(opening - 1, 0)]
    borders = np.isin(before, np.frombuffer(f"{delimiter}\r\n".encode(), np.uint8))
    doubled = np.zeros(len(opening), np.bool_)
    doubled[1:] = quotes[1:-1:2][: len(opening) - 1] == opening[1:] - 1
    if (borders | doubled | (opening == 0)).all():
        return int(opening[~doubled][-1]) if len(quotes) % 2 else None
    found = list(_quoted(delimiter).finditer(data))
    return found[-1].start(1) if found and not found[-1][2] else None


_QUOTE = ord('"')


def _quoted(delimiter: str) -> re.Pattern[bytes]:
    """Values in quotes, each with its end, which may be missing."""
    borders = re.escape(delimiter.encode()) + rb"\r\n"
    return re.compile(rb'(?:\A|(?<=[%s]))("[^"]*(?:""[^"]*)*)("|\Z)' % borders)


def _whole(data: bytes, delimiter: str) -> int:
    """Where the last row ends that is whole.

    >>> _whole(b'a,"b"\\nc,"d\\n', ",")
    6
    """
    rows = _quoted(delimiter).sub(lambda found: b"-" * len(found[0]), data)
    return max(rows.rfind(b"\n"), rows.rfind(b"\r")) + 1


def _between(rows: int, taken: list[int]) -> IntArray:
    """The numbers of so many rows, counted from 1, where some numbers are taken.

    >>> _between(3, [2]).tolist()
    [1, 3, 4]
    """
    if not taken:
        return np.arange(1, rows + 1)
    free = np.ones(rows + len(taken) + 1, np.bool_)
    free[[0, *taken]] = False
    return np.flatnonzero(free)
