"""N-Quads whose fourth term is the timestamp, and N-Triples.

The stamp stands where the name of a graph would, as LarKC's streams write it: an xsd:dateTime or
integer literal, which parsers of N-Quads refuse, or an IRI that ends in `/` and the milliseconds.

Whole blocks are cut at blanks: twice from the left, twice from the right, and what is between is
the object, blanks in its literals and all. A line of another form (comments, tabs, several blanks,
no blank before the full stop) is taken apart by a regular expression.
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
from streamsparql.sources.lines import NOT_UTF8, blocks, decoded
from streamsparql.sources.stamps import Stamps, of_column

_ANY = r'<[^<>\s]*>|_:[^\s<>"]*[^\s<>".]|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^<>\s]*>)?'
_LINE = re.compile(rf"\s*({_ANY})\s*({_ANY})\s*({_ANY})\s*({_ANY})?\s*\.\s*(?:#.*)?", re.S)
_ALONE = r'^(?:[^" ][^ ]*|"(?:[^"\\]|\\.)*"[^ ]*)$'
_TRIPLE = 3
_NOTHING = re.compile(r"\s*(?:#.*)?", re.S)
_BYTES_OF_A_LINE = 100
_RARE = (b"\t", b" #", b".#")


def line_chunks(file: IO[bytes], reading: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    """The lines of N-Quads with stamps; where not `timed`, of N-Triples, as of instant 0."""
    for line, block in blocks(file, reading, max(1, size) * _BYTES_OF_A_LINE):
        rejects: list[Reject] = []
        if not block.isascii() and decoded(block) is None:
            block, rejects = _without_wrong_bytes(block, line, reading)
        lines = lines_of(block)
        rare = any(mark in block for mark in _RARE)
        for at in range(0, len(lines), size):
            some = lines.slice(at, size)
            here = [r for r in rejects if line + at <= r.position < line + at + len(some)]
            yield _chunk(some, line + at, reading, timed, here, rare)


def _without_wrong_bytes(block: bytes, line: int, reading: Encoder) -> tuple[bytes, list[Reject]]:
    """The block with lines that are not UTF-8 made empty, and these as rejects."""
    lines = block.split(b"\n")
    rejects = []
    for k, text in enumerate(lines):
        if decoded(text) is None:
            rejects.append(reading.reject(line + k, NOT_UTF8, text))
            lines[k] = b""
    return b"\n".join(lines), rejects


def lines_of(block: bytes) -> pa.StringArray:
    """The lines, each with its end, without a copy."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_END) + 1
    if not len(ends) or ends[-1] != len(block):
        ends = np.append(ends, len(block))
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    return pa.Array.from_buffers(pa.string(), len(ends), buffers)


_LINE_END = ord("\n")


class _Columns(NamedTuple):
    """Lines taken apart, in order; `places` are theirs among all lines."""

    terms: list[pa.Array]
    places: IntArray


def _chunk(
    lines: pa.StringArray,
    first: int,
    reading: Encoder,
    timed: bool,
    rejects: list[Reject],
    rare: bool,
) -> Chunk:
    fast, odd = split(lines, _TRIPLE + timed, rare)
    columns = fast
    if len(odd):
        slow, wrong = _parsed(lines, odd, first, reading, timed)
        rejects = [*rejects, *wrong]
        columns = _merged(fast, slow)
    s, p, o, *when = columns.terms
    places = columns.places
    stamps: Stamps = of_column(when[0]) if timed else (np.zeros(len(places), np.int64), {})

    def original(k: int) -> object:
        return lines[int(places[k])].as_py().rstrip("\n")

    return reading.chunk((s, p, o), stamps, places + first, original, None, rejects)


def split(lines: pa.StringArray, width: int, rare: bool) -> tuple[_Columns, IntArray]:
    """The terms of the lines that are written plainly, and the places of the others.

    Tabs and comments are looked for where there may be such `rare` things. Two blanks in a row show
    as an empty term, or as an object with a blank at its edge; a blank that is missing shows in a
    predicate or a graph name that is none.
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
    if width == _TRIPLE:  # what looks like an object with blanks may be one and a graph's name
        plain &= _mask(pc.match_substring_regex(terms[0], _ALONE))
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
    """The places of the lists that have that length."""
    return np.flatnonzero(np.diff(np.asarray(lists.offsets)) == length)


def _part(lists: pa.ListArray, places: IntArray, k: int) -> pa.Array:
    """The k-th value of the lists at those places, which all have that length."""
    offsets = np.asarray(lists.offsets)
    return lists.values.take(pa.array(offsets[:-1][places] + k))


def _parsed(
    lines: pa.StringArray, odd: IntArray, first: int, reading: Encoder, timed: bool
) -> tuple[_Columns, list[Reject]]:
    rows: list[tuple[str | None, ...]] = []
    places, rejects = [], []
    for k in odd.tolist():
        text = lines[k].as_py()
        if _NOTHING.fullmatch(text):
            continue
        found = _LINE.fullmatch(text)
        if found and (timed or found[4] is None):
            rows.append(found.groups())
            places.append(k)
            continue
        reason = "this is no line of N-Quads" if timed else "this is no line of N-Triples"
        if found and found[4].startswith('"'):
            reason = "this is an item of a stream, with a timestamp, and no triple of a graph"
        elif found:
            reason = "a statement in a named graph is no part of a static graph"
        rejects.append(reading.reject(first + k, reason, text.rstrip("\n")))
    columns = list(zip(*rows, strict=True)) or [()] * 4
    terms = [pa.array(column, pa.string()) for column in columns[: _TRIPLE + timed]]
    return _Columns(terms, np.array(places, np.int64)), rejects


def _merged(one: _Columns, other: _Columns) -> _Columns:
    places = np.concatenate([one.places, other.places])
    order = np.argsort(places, kind="stable")
    index = pa.array(order)
    pairs = zip(one.terms, other.terms, strict=True)
    return _Columns([pa.concat_arrays(pair).take(index) for pair in pairs], places[order])
