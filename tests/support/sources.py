"""Shared by tests of sources: items, tables of them, and a reader that accounts for all items."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources import read_stream
from streamsparql.sources.chunk import Chunk, Reject

XSD = "http://www.w3.org/2001/XMLSchema#"
INTEGER, DATE_TIME = f"<{XSD}integer>", f"<{XSD}dateTime>"

ITEMS = [
    ("<http://ex.org/a>", "<http://ex.org/p>", '"x y  z"', 1_600_000_000_000),
    ("<http://ex.org/a>", "<http://ex.org/q>", f'"7"^^{INTEGER}', 1_600_000_000_001),
    ("_:b0", "<http://ex.org/p>", '"say \\"hi\\" . <a> "@en', 1_600_000_000_250),
    ("<http://ex.org/é>", "<http://ex.org/p>", '"a,b\\tc\\nd"', 1_600_000_060_000),
    ("<http://ex.org/a>", "<http://ex.org/p>", "_:b0", 1_600_000_060_000),
    ("<http://ex.org/a>", "<http://ex.org/q>", f'"1.5E0"^^<{XSD}double>', 1_700_000_000_000),
]
Item = tuple[str, str, str, int]


def iso(t: int) -> str:
    return (datetime(1970, 1, 1) + timedelta(milliseconds=t)).isoformat("T", "milliseconds") + "Z"


def read(source: Any, **options: Any) -> tuple[list[Item], list[Reject], list[Chunk]]:
    """Return all items of a stream as texts, its rejects and chunks; check that none is lost."""
    terms = TermDictionary()
    chunks = list(read_stream(source, "in", terms, **options))
    items: list[Item] = []
    for chunk in chunks:
        texts = (terms.texts(ids).to_pylist() for ids in (chunk.s, chunk.p, chunk.o))
        items += zip(*texts, chunk.end.tolist(), strict=True)
        assert chunk.items == len(chunk) + len(chunk.rejects) + chunk.prefiltered
        assert chunk.prefiltered == 0 or "wanted" in options
        assert chunk.kept is None or (np.diff(chunk.kept) > 0).all()
    return items, [reject for chunk in chunks for reject in chunk.rejects], chunks


def reasons_of(rejects: list[Reject]) -> list[tuple[int, str]]:
    return [(reject.position, reject.reason) for reject in rejects]


def table(items: list[Item], names: str = "s p o t") -> pa.Table:
    columns = zip(*items, strict=True) if items else [[]] * 4
    return pa.table(dict(zip(names.split(), map(list, columns), strict=True)))


def lines(*texts: bytes) -> io.BytesIO:
    return io.BytesIO(b"\n".join(texts))


def named(text: str, name: str) -> io.BytesIO:
    file = io.BytesIO(text.encode())
    file.name = name
    return file


def as_trig(items: list[Item]) -> str:
    generated = "<http://www.w3.org/ns/prov#generatedAtTime>"
    return "".join(
        f"<http://ex.org/g{k}> {{ {s} {p} {o} }}\n"
        f'<http://ex.org/g{k}> {generated} "{iso(t)}"^^{DATE_TIME} .\n'
        for k, (s, p, o, t) in enumerate(items)
    )
