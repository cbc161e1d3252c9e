"""N-Quads whose fourth term is the timestamp, and N-Triples.

The stamp is in the place of the graph's name, as in LarKC's streams: an xsd:dateTime or integer
literal, which parsers of N-Quads reject, or an IRI that ends in `/` and the milliseconds.

Whole blocks are split at spaces: twice from the left, twice from the right; the part in the middle
is the object, with any spaces in its literal. A line of another form (comments, tabs, several
spaces, no space before the full stop) is parsed by a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.lines import NOT_UTF8, decoded, line_blocks
from streamsparql.sources.stamps import ParsedStamps

# Possessive: two ways to divide a run of spaces would take a time that is quadratic in its length.
_TERM = r'<[^<>\s]*+>|_:[^\s<>"]*[^\s<>".]|"(?:[^"\\]++|\\.)*+"(?:@[A-Za-z0-9-]+|\^\^<[^<>\s]*+>)?'
_LINE = re.compile(
    rf"\s*+({_TERM})\s*+({_TERM})\s*+({_TERM})\s*+({_TERM})?\s*+\.\s*+(?:#.*)?", re.S
)
_SINGLE_OBJECT = r'^(?:[^" ][^ ]*|"(?:[^"\\]|\\.)*"[^ ]*)$'
_TRIPLE = 3
_EMPTY_LINE = re.compile(r"\s*+(?:#.*)?", re.S)
_BYTES_OF_A_LINE = 100
_RARE_MARKS = (b"\t", b" #", b".#")


def line_chunks(file: IO[bytes], encoder: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    """Yield the lines of N-Quads with stamps; if not `timed`, of N-Triples, with the stamp 0."""
    for line, block in line_blocks(file, encoder, max(1, size) * _BYTES_OF_A_LINE):
        if block.startswith(b"\n") and block.isspace():
            continue
        rare = any(mark in block for mark in _RARE_MARKS)
        ends = _ends_of_lines(block)
        for at in range(0, len(ends), size):  # so a chunk is small, however short the lines are
            begin, end = int(ends[at - 1]) if at else 0, int(ends[min(at + size, len(ends)) - 1])
            part = block[begin:end]
            rejects: list[Reject] = []
            if not part.isascii() and decoded(part) is None:
                part, rejects = _without_invalid_lines(part, line + at, encoder)
            lines, places = _without_blanks(lines_of(part))
            if len(lines) or rejects:
                yield _chunk(lines, places + line + at, encoder, timed, rejects, rare)


def _ends_of_lines(block: bytes) -> IntArray:
    """Return the place after each line."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_END) + 1
    return ends if len(ends) and ends[-1] == len(block) else np.append(ends, len(block))


def _without_invalid_lines(block: bytes, line: int, encoder: Encoder) -> tuple[bytes, list[Reject]]:
    """Return the block with empty lines in place of those that are not UTF-8, and their rejects."""
    lines = block.split(b"\n")
    rejects = []
    for k, text in enumerate(lines):
        if decoded(text) is None:
            rejects.append(encoder.reject(line + k, NOT_UTF8, text))
            lines[k] = b""
    return b"\n".join(lines), rejects


def _without_blanks(lines: pa.StringArray) -> tuple[pa.StringArray, IntArray]:
    """Return the lines that are not empty, and their places."""
    short = np.flatnonzero(np.diff(np.frombuffer(lines.buffers()[1], np.int32)) < 2)
    filled = np.ones(len(lines), np.bool_)
    if len(short):
        filled[short] = ~_mask(pc.is_in(lines.take(pa.array(short)), _BLANK))
    places = np.flatnonzero(filled)
    return (lines if len(places) == len(lines) else lines.take(pa.array(places))), places


_BLANK = pa.array(["", "\n"])


def lines_of(block: bytes) -> pa.StringArray:
    """Return the lines, each with its line break, without copying the block."""
    ends = _ends_of_lines(block)
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    return pa.Array.from_buffers(pa.string(), len(ends), buffers)


_LINE_END = ord("\n")


class _Columns(NamedTuple):
    """The terms of parsed lines, in order; `places` are the positions of these lines among all."""

    terms: list[pa.Array]
    places: IntArray


def _chunk(
    lines: pa.StringArray,
    numbers: IntArray,
    encoder: Encoder,
    timed: bool,
    rejects: list[Reject],
    rare: bool,
) -> Chunk:
    """Return lines, which have these numbers in the file, as a chunk."""
    fast, odd = split_lines(lines, _TRIPLE + timed, rare)
    columns = fast
    if len(odd):
        slow, wrong = _parsed(lines, odd, numbers, encoder, timed)
        rejects = [*rejects, *wrong]
        columns = _merge_columns(fast, slow)
    s, p, o, *when = columns.terms
    places = columns.places
    stamps: ParsedStamps = (
        encoder.stamps.of_column(when[0]) if timed else (np.zeros(len(places), np.int64), {})
    )

    def original(k: int) -> object:
        return lines[int(places[k])].as_py().rstrip("\n")

    return encoder.chunk((s, p, o), stamps, numbers[places], original, None, rejects)


def split_lines(lines: pa.StringArray, width: int, rare: bool) -> tuple[_Columns, IntArray]:
    """Return the terms of the lines in the usual form, and the places of the others.

    Tabs and comments are searched only if the block may contain such `rare` marks. Two spaces in a
    row result in an empty term, or in an object with a space at its edge; a missing space results
    in a predicate or graph name that is not a term.
    """
    head = pc.split_pattern(lines, " ", max_splits=2)
    places = _of_length(head, 3)
    s, p, rest = (_part(head, places, k) for k in range(3))
    tail = pc.split_pattern(rest, " ", max_splits=width - 2, reverse=True)
    inner = _of_length(tail, width - 1)
    terms = [_part(tail, inner, k) for k in range(width - 1)]
    ends = terms.pop()
    plain = _mask(pc.or_(pc.equal(ends, ".\n"), pc.equal(ends, ".")))
    plain &= ~_mask(pc.or_(pc.starts_with(terms[0], " "), pc.ends_with(terms[0], " ")))
    if rare:
        marked = _mask(pc.match_substring_regex(lines, r"\t|\.\s*#"))
        plain &= ~marked[places[inner]]
    if len(inner) < len(rest):
        s, p = s.take(pa.array(inner)), p.take(pa.array(inner))
        places = places[inner]
    columns = [s, p, *terms]
    plain &= _mask(pc.and_(pc.starts_with(p, "<"), pc.ends_with(p, ">")))
    plain &= _mask(pc.or_(pc.starts_with(s, "<"), pc.starts_with(s, "_")))
    if width == _TRIPLE:  # an apparent object with spaces may be an object and a graph's name
        plain &= _mask(pc.match_substring_regex(terms[0], _SINGLE_OBJECT))
    for name in terms[1:]:
        plain &= _mask(pc.or_(pc.starts_with(name, "<"), pc.starts_with(name, '"')))
    if not plain.all():
        index = pa.array(np.flatnonzero(plain))
        columns = [column.take(index) for column in columns]
        places = places[plain]
    others = np.ones(len(lines), np.bool_)
    others[places] = False
    return _Columns(columns, places), np.flatnonzero(others)


def _mask(column: pa.Array) -> BoolArray:
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _of_length(lists: pa.ListArray, length: int) -> IntArray:
    """Return the places of the lists that have this length."""
    return np.flatnonzero(np.diff(np.asarray(lists.offsets)) == length)


def _part(lists: pa.ListArray, places: IntArray, k: int) -> pa.Array:
    """Return the k-th value of the lists at these places, which all have the same length."""
    offsets = np.asarray(lists.offsets)
    return lists.values.take(pa.array(offsets[:-1][places] + k))


def _parsed(
    lines: pa.StringArray, odd: IntArray, numbers: IntArray, encoder: Encoder, timed: bool
) -> tuple[_Columns, list[Reject]]:
    rows: list[tuple[str | None, ...]] = []
    places, rejects = [], []
    for k in odd.tolist():
        text = lines[k].as_py()
        if _EMPTY_LINE.fullmatch(text):
            continue
        match = _LINE.fullmatch(text)
        if match and (timed or match[4] is None):
            rows.append(match.groups())
            places.append(k)
            continue
        reason = f"not a line of {'N-Quads' if timed else 'N-Triples'}"
        if match and match[4].startswith('"'):
            reason = "an item of a stream, with a timestamp, cannot be part of a static graph"
        elif match:
            reason = "a statement in a named graph cannot be part of a static graph"
        rejects.append(encoder.reject(int(numbers[k]), reason, text.rstrip("\n")))
    columns = list(zip(*rows, strict=True)) or [()] * 4
    terms = [pa.array(column, pa.string()) for column in columns[: _TRIPLE + timed]]
    return _Columns(terms, np.array(places, np.int64)), rejects


def _merge_columns(one: _Columns, other: _Columns) -> _Columns:
    places = np.concatenate([one.places, other.places])
    order = np.argsort(places, kind="stable")
    index = pa.array(order)
    pairs = zip(one.terms, other.terms, strict=True)
    return _Columns([pa.concat_arrays(pair).take(index) for pair in pairs], places[order])
