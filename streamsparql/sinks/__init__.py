"""Sinks: where results are written. Each consumes the rows of a result, many at once.

The formats are `table` (for readers), `csv`, `jsonl`, `nq` (triples, a stream again), `parquet`,
and the W3C's formats of SPARQL results, such as `sparql-json`. A file's extension determines its
format; `.gz` and `.zst` after it compress the file. A sink consumes Arrow tables as
`Result.to_arrow` returns them: terms in N-Triples syntax, dictionary-encoded, and columns of times;
it writes each distinct term of a column once and joins whole columns. docs/command-line.md
documents the formats for users; a new format is one more entry in `SINKS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

from streamsparql.errors import EngineError
from streamsparql.sinks.layout import Layout, Sink
from streamsparql.sinks.output import Incomplete, check_target, open_target
from streamsparql.sinks.parquet import open_parquet
from streamsparql.sinks.sparql_results import (
    SPARQL_FORMATS,
    check_sparql_format,
    sparql_sink,
)
from streamsparql.sinks.table import TextTable
from streamsparql.sinks.text_formats import Csv, JsonLines, NQuads
from streamsparql.sinks.times import check_style
from streamsparql.sources.paths import extension_of, is_compressed

__all__ = [
    "SINKS",
    "SPARQL_FORMATS",
    "Incomplete",
    "Layout",
    "Sink",
    "check_target",
    "format_of",
    "open_sink",
    "resolved_format",
]

SINKS: Mapping[str, Callable[[Any, Layout], Sink]] = {
    "table": TextTable,
    "csv": Csv,
    "jsonl": JsonLines,
    "nq": NQuads,
    "parquet": open_parquet,
    **{name: sparql_sink(name) for name in SPARQL_FORMATS},
}
"""The sinks, by the name of their format."""

_EXTENSIONS = {
    "txt": "table",
    "csv": "csv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "nq": "nq",
    "parquet": "parquet",
    "pq": "parquet",
    "srj": "sparql-json",
    "srx": "sparql-xml",
    "tsv": "sparql-tsv",
}


def format_of(path: str) -> str | None:
    """Return the format of a file by its extension; None if the extension is unknown.

    >>> format_of("rows.csv.gz"), format_of("rows.jsonl"), format_of("rows")
    ('csv', 'jsonl', None)
    """
    return _EXTENSIONS.get(extension_of(path))


def resolved_format(target: Any, kind: str | None) -> str:
    """Return a format, by default that of the target: by its extension, a table for open files.

    >>> resolved_format("rows.srj", None), resolved_format("rows.srj", "csv")
    ('sparql-json', 'csv')
    """
    name = os.fspath(target) if isinstance(target, str | os.PathLike) else None
    kind = kind or ("table" if name is None else format_of(name))
    formats = ", ".join(SINKS)
    if kind is None:
        raise EngineError(f"the file {name} has no known extension; the formats are {formats}")
    if kind not in SINKS:
        raise EngineError(f"unknown format {kind!r}; the formats are {formats}")
    return kind


@contextmanager
def open_sink(
    target: str | os.PathLike[str] | IO[Any],
    kind: str | None,
    layout: Layout,
    *,
    whole: bool = True,
) -> Iterator[Sink]:
    """Open a sink that writes to a path or an open file, until the end of the `with`.

    A file by its path is written next to it and renamed when it is whole; after an error it is
    removed, and after `Incomplete` it stays. If it need not be `whole`, others can read it while it
    grows.

    Raise EngineError if the format is unknown, or cannot represent these rows.

    >>> import sys
    >>> import pyarrow as pa
    >>> layout = Layout("select", ("x",), ("start", "end"))
    >>> rows = pa.table({"x": ['<urn:a>', None], "start": [3, 5], "end": [7, 9]})
    >>> with open_sink(sys.stdout, "csv", layout) as sink:
    ...     sink.write(rows)
    x,start,end
    urn:a,3,7
    ,5,9
    """
    name = os.fspath(target) if isinstance(target, str | os.PathLike) else None
    kind = resolved_format(target, kind)
    if kind in SPARQL_FORMATS:
        check_sparql_format(kind, layout)
    if kind == "nq" and not layout.triples:
        raise EngineError(f"nq needs triples, not rows of {layout.form.upper()}; use jsonl")
    if kind == "parquet" and name is not None and is_compressed(name):
        raise EngineError(f"{name}: parquet is compressed already; drop the last extension")
    if layout.escape_formulas and kind != "csv":
        raise EngineError(f"escape_formulas is an option of csv, not of {kind}")
    if layout.native and kind not in ("csv", "jsonl", "parquet"):
        raise EngineError(f"values is an option of csv, jsonl and parquet, not of {kind}")
    check_style(layout.timestamps, "ms")
    with open_target(target, binary=kind == "parquet", whole=whole) as file:
        sink = SINKS[kind](file, layout)
        try:
            yield sink
        except Incomplete:
            sink.close()
            raise
        except BaseException:
            with suppress(Exception):
                sink.close()  # without its footer, a Parquet file is unreadable
            raise
        sink.close()
