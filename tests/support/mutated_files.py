"""A program that reads mutated files of one format: each has rows, rejects or a StreamSparqlError.

It runs in its own process, since damage may crash or abort one. It prints the number of each mutation
before it reads the file, so that a crash shows which one it was.
"""

from __future__ import annotations

import faulthandler
import gzip
import io
import random
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from streamsparql.errors import DataWarning, StreamSparqlError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources import CHUNK_SIZE, mapped, read_graph, read_stream

ROWS = [
    ("<http://a/é>", "<http://p>", f'"{k} \\"x\\", y"@en', 1_600_000_000_000 + k) for k in range(6)
]
"""The items of each file."""

MEMORY = 6 << 30
"""The bytes of address space that a hostile file may use, with those of the libraries."""

MOST_SECONDS = 60
"""The time after which a file is said to hang."""

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_GENERATED = "<http://www.w3.org/ns/prov#generatedAtTime>"
_MAPPING = "CONSTRUCT { ?r <p> ?o } { BIND(IRI(STR(?s)) AS ?r) BIND(STR(?p) AS ?q) }"


def _table(rows: list[tuple[str, str, str, int]]) -> pa.Table:
    return pa.table(dict(zip("spot", map(list, zip(*rows, strict=True)), strict=True)))


def _parquet(rows: list[tuple[str, str, str, int]], **options: Any) -> bytes:
    out = io.BytesIO()
    parquet.write_table(_table(rows), out, **options)
    return out.getvalue()


def _json(rows: list[tuple[str, str, str, int]]) -> bytes:
    quoted = [(s, p, o.replace("\\", "\\\\").replace('"', '\\"'), t) for s, p, o, t in rows]
    line = '{{"s": "{}", "p": "{}", "o": "{}", "t": {}}}\n'
    return "".join(line.format(*row) for row in quoted).encode()


def _csv(rows: list[tuple[str, str, str, int]]) -> bytes:
    quoted = [(s, p, o.replace('"', '""'), t) for s, p, o, t in rows]
    return "".join(["s,p,o,t\n", *(f'{s},{p},"{o}",{t}\n' for s, p, o, t in quoted)]).encode()


_WRITERS: dict[str, Callable[[list[tuple[str, str, str, int]]], bytes | str]] = {
    "nq": lambda rows: "".join(f"{s} {p} {o} <t/{t}> .\n" for s, p, o, t in rows),
    "nt": lambda rows: "".join(f"{s} {p} {o} .\n" for s, p, o, _ in rows),
    "csv": _csv,
    "tsv": lambda rows: "".join(
        ["s\tp\to\tt\n", *(f"{s}\t{p}\t{o}\t{t}\n" for s, p, o, t in rows)]
    ),
    "jsonl": _json,
    "parquet": _parquet,
    "trig": lambda rows: "".join(
        f"<http://g/{k}> {{ {s} {p} {o} }} <http://g/{k}> {_GENERATED} {t} .\n"
        for k, (s, p, o, t) in enumerate(rows)
    ),
    "ttl": lambda rows: "".join(f"{s} {p} {o}, [ {p} ( 1 {s} ) ] .\n" for s, p, o, _ in rows),
    "n3": lambda rows: "".join(f"{s} {p} {o} .\n" for s, p, o, _ in rows),
    "rdf": lambda rows: (
        f'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [ <!ENTITY e "http://e/" > ]>\n'
        f'<rdf:RDF xmlns:rdf="{_RDF}" xmlns:e="http://e/">\n'
        + "".join(f'<e:C rdf:about="&e;{k}">\n<e:p>{k}</e:p>\n</e:C>\n' for k in range(len(rows)))
        + "</rdf:RDF>\n"
    ),
    "jsonld": lambda rows: (
        '{"@context": {"p": {"@id": "http://p", "@type": "@id"}}, "@graph": [\n'
        + ",\n".join(f'{{"@id": "http://a/{k}", "p": [1, "x"]}}' for k in range(len(rows)))
        + "\n]}\n"
    ),
}

FORMATS = tuple(_WRITERS)

_TOKENS = [
    *(
        b"null",
        b"null\n",
        b"\nnull",
        b"{",
        b"}",
        b"[",
        b"]",
        b"{}",
        b"[]",
        b"true",
        b"1e999",
        b"NaN",
    ),
    *(
        b"\0",
        b"\n\0",
        b'"',
        b'""',
        b"'''",
        b'"""',
        b"\\",
        b"\\u0000",
        b"\\ud800",
        b"\\uD800\\uDC00",
    ),
    *(
        b"\r",
        b"\r\n",
        b"\n\n",
        b" ",
        b"\t",
        b"\xff",
        b"\xc3",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\x1a",
    ),
    *(
        b"99999999999999999999",
        b"-1",
        b"9" * 5000,
        b"1969-12-31T23:59:59Z",
        b"#",
        b"_:",
        b"<",
        b">",
    ),
    *(
        b"<<",
        b"<<( ",
        b")>>",
        b"@",
        b"^^",
        b"&",
        b"&e;",
        b"&e1;",
        b'<!ENTITY e1 "&e;&e;">',
        b"<!--",
    ),
    *(
        b"<![CDATA[",
        b"@prefix ",
        b"@base <",
        b"@context",
        b"PAR1",
        b"\x1f\x8b",
        b"\x28\xb5\x2f\xfd",
    ),
]
_NESTED = [
    *(b"[", b"{", b"(", b"<<( ", b"<<( <a:a> <a:b> ", b'{"a":', b'{"@context":', b"[ <a:b> ", b'"'),
    *(
        b"<e:C><e:p>",
        b"<e:p>",
        b"&",
        b"<!ENTITY a ",
        b"<!--",
        b"\\",
        b"^^<a:",
        b'"",',
        b"\n",
        b"\r",
    ),
]


class Mutator:
    """Mutations of the file of one format, each determined by its number."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._whole = self._write(ROWS)

    def _write(self, rows: list[tuple[str, str, str, int]]) -> bytes:
        data = _WRITERS[self.kind](rows)
        return data.encode() if isinstance(data, str) else data

    def file(self, number: int) -> tuple[str, bytes]:
        """Return the name and the content of a mutated file."""
        rng = random.Random(f"{self.kind} {number}")
        data = self._whole
        if self.kind == "parquet":
            options = {"compression": rng.choice(["snappy", "zstd", "gzip", "none"])}
            options["use_dictionary"] = rng.random() < 0.5
            options["data_page_version"] = rng.choice(["1.0", "2.0"])
            data = _parquet(ROWS, **options)
        packing = rng.choice(["", "", "", "", ".gz", ".zst"])
        inside = rng.random() < 0.5
        if packing and not inside:
            data = packed(packing, data)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            data = rng.choice(_MUTATIONS)(rng, data)
        if packing and inside:
            data = packed(packing, data)
        return f"x.{self.kind}{packing}", data


def packed(packing: str, data: bytes) -> bytes:
    """Return data compressed as the extension says."""
    return (
        gzip.compress(data, 1, mtime=0)
        if packing == ".gz"
        else pa.compress(data, "zstd", asbytes=True)
    )


def _place(rng: random.Random, data: bytes) -> int:
    """Return a place in the data: the start of a line, or any."""
    starts = [0, len(data), *(k + 1 for k in range(len(data)) if data[k : k + 1] == b"\n")]
    return rng.choice(starts) if rng.random() < 0.4 else rng.randint(0, len(data))


def _truncated(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randint(0, len(data))]


def _flipped(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8]) if data else 0):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _spliced(rng: random.Random, data: bytes) -> bytes:
    written = _WRITERS[rng.choice(FORMATS)](ROWS)
    other = rng.choice([data, written.encode() if isinstance(written, str) else written])
    first, after = sorted(rng.randint(0, len(other)) for _ in range(2))
    at, behind = sorted(_place(rng, data) for _ in range(2))
    return data[:at] + other[first:after] + data[rng.choice([at, behind]) :]


def _with_token(rng: random.Random, data: bytes) -> bytes:
    at = _place(rng, data)
    return data[:at] + rng.choice(_TOKENS) + data[at + rng.choice([0, 0, 1]) :]


def _deep(rng: random.Random, data: bytes) -> bytes:
    at = _place(rng, data)
    return data[:at] + rng.choice(_NESTED) * rng.choice([50, 1000, 20_000]) + data[at:]


def _huge(rng: random.Random, data: bytes) -> bytes:
    at = _place(rng, data)
    return data[:at] + rng.choice([b"x", b"9", b"\0", b"\xff", b" ", b"\n"]) * 200_000 + data[at:]


_MUTATIONS = [_truncated, *[_flipped, _spliced, _with_token] * 2, _deep, _huge]


def _invalid_text() -> bytes:
    """Return a Parquet file with a text that is not UTF-8, which Arrow writes and reads."""
    row, out = _table(ROWS[:1]), io.BytesIO()
    text = pa.Array.from_buffers(pa.string(), 1, pa.array([b"<a\xf4>"], pa.binary()).buffers())
    parquet.write_table(row.set_column(1, "p", text), out)
    return out.getvalue()


def _foreign_metadata(value: str) -> bytes:
    """Return a Parquet file with this value in place of Spark's description of its columns."""
    out, key = io.BytesIO(), "org.apache.spark.sql.parquet.row.metadata"
    parquet.write_table(_table(ROWS).replace_schema_metadata({key: value}), out)
    return out.getvalue()


def _entities(last: str) -> bytes:
    """Return RDF/XML with entities of ten entities each, where the last is the text of a literal."""
    values = ["a" * 10, *("".join([f"&e{k};"] * 10) for k in range(15))]
    declared = "".join(f'<!ENTITY e{k} "{value}">' for k, value in enumerate(values))
    head, body = f"<!DOCTYPE rdf:RDF [{declared}]>", f"<e:C><e:p>{last}</e:p></e:C>"
    return f'{head}<rdf:RDF xmlns:rdf="{_RDF}" xmlns:e="http://e/">{body}</rdf:RDF>'.encode()


_TERM = b"<<( <a:a> <a:b> "
_TERMS = [
    b"<a:a> <a:b> " + term * 60_000 + b"<a:c>" + b")>>" * 60_000 + b" .\n"
    for term in (
        _TERM,
        _TERM + b"# )>>\n",
        _TERM.replace(b" ", b"\n"),
    )
]
KNOWN = {
    "ttl": _TERMS,
    "trig": [b"<g:g> {%s}" % text for text in _TERMS],
    "nq": [_TERMS[0], b"<a:a> <a:b> <a:c>" + b" " * 200_000],
    "csv": [b's,p,o,t\n"' + line * 100_000 for line in (b"\n", b'""\n')],
    "jsonld": [b'{"@id":"a:a","a:p":' * 8000 + b"1" + b"}" * 8000, b"[" * 60_000, b'"\\"' * 60_000],
    "rdf": [_entities("&e15;"), b"\n".join(_entities("").partition(b"]>")[::-1])],
    "parquet": [_invalid_text(), *map(_foreign_metadata, ["{", "[]", '{"fields": [1]}', "null"])],
    "jsonl": [
        *(b"null", b" null\n", b"\n\nnull\n", _json(ROWS[:1]) + b"null", b"null\n" + _json(ROWS)),
        b"null\n".join([b"", *_json(ROWS).splitlines(keepends=True)]),
        _json(ROWS[:1])[:-1] * 2 + b"\n\n" + _json(ROWS[:1]).replace(b",", b",\n"),
    ],
}
"""Files that crashed a process, took minutes, or were read in part."""


class LineByLine(io.RawIOBase):
    """A file of which each read returns one line, as a pipe does; so blocks end at each line."""

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__()
        self.name = name
        self._lines = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        line = self._lines.readline(len(buffer))
        buffer[: len(line)] = line
        return len(line)


def read_everywhere(name: str, data: bytes) -> None:
    """Read a file as a stream and as a graph, in blocks of all sizes; raise all other errors."""

    def whole() -> Any:
        file = io.BytesIO(data)
        file.name = name
        return file

    for source in (whole, lambda: io.BufferedReader(LineByLine(name, data))):
        for size in (1, CHUNK_SIZE) if len(data) < 100_000 else (CHUNK_SIZE,):
            _attempt(lambda size=size, source=source: _read_stream(source(), size))
        _attempt(lambda source=source: read_graph(source(), "g", TermDictionary()))
    if name.startswith(("x.csv", "x.tsv", "x.jsonl", "x.parquet")):
        _attempt(lambda: _read_stream(mapped(whole(), _MAPPING), CHUNK_SIZE))


def _read_stream(source: Any, size: int) -> None:
    for chunk in read_stream(source, "s", TermDictionary(), chunk=size):
        assert chunk.items == len(chunk) + len(chunk.rejects) + chunk.prefiltered
        for reject in chunk.rejects:
            str(reject)
        for k in range(min(3, len(chunk.stamps))):
            str(chunk.reject(k, "", "s"))


def _attempt(act: Callable[[], Any]) -> None:
    try:
        act()
    except StreamSparqlError as error:
        str(error)


def main(kind: str, first: int, after: int) -> int:
    """Read some mutations; print the tracebacks of errors that are not of this package."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", DataWarning)  # of keys that the mutations remove
    mutator, failures = Mutator(kind), 0
    known = KNOWN.get(kind, [])
    for number in range(first - len(known), after):
        print(number, end=" ", flush=True)
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        name, data = (
            mutator.file(number) if number >= first else (f"x.{kind}", known[first - number - 1])
        )
        try:
            read_everywhere(name, data)
        except Exception:
            failures += 1
            traceback.print_exc(file=sys.stdout)
    faulthandler.cancel_dump_traceback_later()
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
