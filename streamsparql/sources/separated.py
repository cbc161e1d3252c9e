"""CSV and TSV: tables as text, with the columns of `tables` in a header.

In `.csv` a value may be quoted, with its own quotes doubled, as writers of CSV do with literals; a
quote within a value that does not begin with one is an ordinary character. `.tsv` has no
quoting, as in SPARQL's results: N-Triples escapes tabs.

A row with more or fewer values than the header is rejected. Positions are those of rows: the header
is the first, and empty lines are not counted.
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
from streamsparql.sources.lines import LONGEST, NOT_UTF8, decoded, line_blocks, truncation

_BYTES_OF_A_ROW = 100


RowsPart = tuple[pa.RecordBatch, IntArray, list[Reject]]
"""Rows, their positions, and the rejects among them."""


class Separated:
    """A file of separated values; `choose` maps the names of its columns to those to be read."""

    def __init__(
        self,
        encoder: Encoder,
        choose: Callable[[list[str]], list[str]],
        header: bool | None = True,
    ) -> None:
        self._encoder = encoder
        self._choose = choose
        self._header = header
        self._tabs, self._delimiter = False, ","
        self._names: list[str] = []
        self._used: list[str] = []
        self._row = int(header is not False)
        """The number of the last row that was read."""

    @property
    def has_header(self) -> bool:
        """Whether the first line has the names of the columns; it may be detected there."""
        return self._header is not False

    @property
    def delimiter(self) -> str:
        """The delimiter, which may be detected in the first line."""
        return self._delimiter

    def batches(self, file: IO[bytes], size: int, delimiter: str | None) -> Iterator[RowsPart]:
        """Yield up to `size` rows at a time. By default the delimiter is detected."""
        self._tabs, self._delimiter = delimiter == "\t", delimiter or ""
        for block in self._whole_rows(file, size):
            if not self._names:
                block = self._read_header(block)
            yield from self._parts(block, size)
        if not self._names and self.has_header:
            raise SourceError(f"{self._encoder.name} is empty; expected a header with the columns")

    def _whole_rows(self, file: IO[bytes], size: int) -> Iterator[bytes]:
        """Yield blocks that end outside quotes, except perhaps the last."""
        pending = bytearray()  # blocks may be many, and tiny
        opened: int | None = None
        """The place in the pending bytes of a value whose quote is not closed."""
        encoder = self._encoder
        for _, block in line_blocks(file, encoder, max(1, size) * _BYTES_OF_A_ROW, quoted=True):
            if opened is None:
                if not self._names and self.has_header:
                    block = block.lstrip(b"\r\n")
                if not self._delimiter and block:
                    self._detect_delimiter(block)
                opened = None if self._tabs else _unclosed(block, self._delimiter)
            elif (end := _closing_quote(block)) < len(block):
                again = _unclosed(b"_" + block[end + 1 :], self._delimiter)
                opened = None if again is None else len(pending) + end + again
            pending += block
            if opened is None:
                if pending:
                    yield from self._small(bytes(pending), size)
                pending = bytearray()
            elif len(pending) - opened > LONGEST:
                row = self._row + len(_LINE_END.split(pending[:opened].rstrip()))
                raise SourceError(f"{encoder.name}, row {row}: unclosed quote")
        if pending:
            rest, whole = bytes(pending), truncation(file) is None
            yield rest if whole else rest[: _end_of_rows(rest, self._delimiter)]

    def _small(self, block: bytes, size: int) -> Iterator[bytes]:
        """Yield a block in parts of whole rows, about `size` many, however short the rows are."""
        marks = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero((marks == _LINE_FEED) | (marks == _CARRIAGE_RETURN)) + 1
        begin, at, rows = 0, size, size
        while at < len(ends) - size:
            end = int(ends[at - 1])
            if block[end - 1 : end + 1] == b"\r\n":
                end += 1
            if self._tabs or _unclosed(block[begin:end], self._delimiter) is None:
                yield block[begin:end]
                begin, rows = end, size
            else:  # within a value
                rows *= 2
            at += rows
        yield block[begin:]

    def _detect_delimiter(self, block: bytes) -> None:
        """Detect the delimiter from the first line."""
        line = _LINE_END.split(block, 1)[0]
        self._delimiter = delimiter_of(line.decode("utf-8", "replace"))
        self._tabs = self._delimiter == "\t"

    def _read_header(self, block: bytes) -> bytes:
        """Read the columns from the first line; return the block without a header."""
        line = _LINE_END.split(block, 1)[0]
        text = decoded(line)
        if text is None:
            raise SourceError(f"{self._encoder.name}, line 1: {NOT_UTF8}")
        try:
            parsed = csv.reader([text], delimiter=self._delimiter)
            values = text.split("\t") if self._tabs else next(parsed, [])
        except csv.Error as error:
            raise SourceError(
                f"{self._encoder.name}, line 1: cannot read the columns: {error}"
            ) from None
        if self._header is None:
            self._header = is_header(values)
        self._row = int(self._header)
        self._names = values if self._header else [letters(k) for k in range(len(values))]
        self._used = self._choose(self._names)
        if not self._header:
            return block
        return block[len(line) :].removeprefix(b"\r").removeprefix(b"\n")

    def _parts(self, block: bytes, size: int) -> Iterator[RowsPart]:
        if not block.strip():
            return
        wrong: list[tuple[int, object]] = []
        try:
            table = self._parse(block, wrong)
        except pa.ArrowInvalid as error:
            raise SourceError(f"{self._encoder.name}, row {self._row}: {error}") from error
        places = _free_numbers(table.num_rows, [number for number, _ in wrong]) + self._row
        start = self._row
        self._row += table.num_rows + len(wrong)
        model = "the header" if self._header else "the first row"
        reason = f"expected {len(self._names)} columns, as in {model}"
        rejects = [self._encoder.reject(start + n, reason, text) for n, text in wrong]
        batches = table.combine_chunks().to_batches()
        if batches:
            rows = batches[0]
        else:
            none = pa.array([], pa.string())
            rows = pa.RecordBatch.from_arrays([none] * len(self._used), self._used)
        for at in range(0, max(1, table.num_rows), size):
            after = at + size
            least = int(places[at - 1]) if at else 0
            most = int(places[after - 1]) if after < len(places) else self._row
            inside = [reject for reject in rejects if least < reject.position <= most]
            yield rows.slice(at, size), places[at:after], inside

    def _parse(self, block: bytes, wrong: list[tuple[int, object]]) -> pa.Table:
        """Return the rows as Arrow parses them, with values as bytes, to be decoded one by one.

        Arrow decodes the rows that it skips as well, so a block that is not UTF-8 is passed as
        Latin-1, in which all bytes are characters.
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
_LINE_FEED, _CARRIAGE_RETURN = b"\n\r"
_DELIMITERS = (",", "\t", ";", "|")


def delimiter_of(line: str) -> str:
    """Return the delimiter of a line: the first of `,`, a tab, `;` and `|` that it contains.

    >>> delimiter_of("a;b"), delimiter_of("a")
    (';', ',')
    """
    return next((mark for mark in _DELIMITERS if mark in line), ",")


def is_header(values: list[str]) -> bool:
    """Return whether a first line has names: fewer than half of its values are numbers or times.

    >>> is_header(["status", "avgSpeed"]), is_header(["OK", "52"]), is_header(["land", "1990"])
    (True, False, True)
    """
    filled = list(filter(None, values))
    return 2 * sum(map(bool, map(_DATUM.match, filled))) < len(filled)


_DATUM = re.compile(r"\s*(?!(?:19|20)[0-9]{2}$)(?:[+-]?\.?[0-9]|[A-Za-z][A-Za-z0-9+.-]*://)")
"""The beginning of a number, a time or an IRI, but not a year, which may name a column."""


def letters(place: int) -> str:
    """Return the name of an unnamed column.

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
    """Return the offset of the value with an unclosed quote; None if all quotes are closed.

    >>> _unclosed(b'a,"b', ","), _unclosed(b'a,"b""c"', ","), _unclosed(b'a,5" pipe', ",")
    (2, None, None)
    """
    array = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(array == _QUOTE)
    if not len(quotes):
        return None
    opening = quotes[::2]  # if no unquoted value contains a quote
    before = array[np.maximum(opening - 1, 0)]
    borders = np.isin(before, np.frombuffer(f"{delimiter}\r\n".encode(), np.uint8))
    doubled = np.zeros(len(opening), np.bool_)
    doubled[1:] = quotes[1:-1:2][: len(opening) - 1] == opening[1:] - 1
    if (borders | doubled | (opening == 0)).all():
        return int(opening[~doubled][-1]) if len(quotes) % 2 else None
    values = list(_quoted(delimiter).finditer(data))
    return values[-1].start(1) if values and not values[-1][2] else None


def _closing_quote(data: bytes) -> int:
    """Return the offset of the quote that closes a value; the length of the data if none does.

    >>> _closing_quote(b'a""b",c'), _closing_quote(b'a""')
    (4, 3)
    """
    inside = _INSIDE.match(data)
    assert inside
    return inside.end()


_INSIDE = re.compile(rb'[^"]*+(?:""[^"]*+)*+')
_QUOTE = ord('"')


def _quoted(delimiter: str) -> re.Pattern[bytes]:
    """Return a pattern of quoted values, each with its closing quote, which may be missing."""
    borders = re.escape(delimiter.encode()) + rb"\r\n"
    return re.compile(rb'(?:\A|(?<=[%s]))("[^"]*(?:""[^"]*)*)("|\Z)' % borders)


def _end_of_rows(data: bytes, delimiter: str) -> int:
    """Return the end of the last complete row.

    >>> _end_of_rows(b'a,"b"\\nc,"d\\n', ",")
    6
    """
    rows = _quoted(delimiter).sub(lambda match: b"-" * len(match[0]), data)
    return max(rows.rfind(b"\n"), rows.rfind(b"\r")) + 1


def _free_numbers(rows: int, taken: list[int]) -> IntArray:
    """Return the numbers of the accepted rows, counted from 1; rejects have the `taken` ones.

    >>> _free_numbers(3, [2]).tolist()
    [1, 3, 4]
    """
    if not taken:
        return np.arange(1, rows + 1)
    free = np.ones(rows + len(taken) + 1, np.bool_)
    free[[0, *taken]] = False
    return np.flatnonzero(free)
