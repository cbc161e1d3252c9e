"""Sinks: where results go. Each takes the rows of a result, many at once, and writes them.

The formats are `table` (for readers), `csv`, `jsonl`, `nq` (triples, a stream again) and `parquet`.
A file's extension names its format; `.gz` and `.zst` after it are packed on the way. A sink gets
Arrow tables as `Result.to_arrow` gives them: terms in N-Triples syntax, dictionary-encoded, and
columns of times; it writes each distinct term of a column once and joins whole columns.
docs/command-line.md says what users see; a new format is one more entry in `SINKS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

from streamsparql.errors import EngineError
from streamsparql.sinks.layout import Layout, Sink
from streamsparql.sinks.output import check_target, opened
from streamsparql.sinks.parquet import Parquet
from streamsparql.sinks.table import Table
from streamsparql.sinks.text_formats import Csv, JsonLines, NQuads
from streamsparql.sinks.times import checked
from streamsparql.sources.paths import extension_of, is_packed

__all__ = ["SINKS", "Layout", "Sink", "check_target", "format_of", "open_sink"]

SINKS: Mapping[str, Callable[[Any, Layout], Sink]] = {
    "table": Table,
    "csv": Csv,
    "jsonl": JsonLines,
    "nq": NQuads,
    "parquet": Parquet,
}
"""What writes rows, by the name of the format."""

_EXTENSIONS = {
    "txt": "table",
    "csv": "csv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "nq": "nq",
    "parquet": "parquet",
    "pq": "parquet",
}


def format_of(path: str) -> str | None:
    """The format that a file's extension names; None where it names none.

    >>> format_of("rows.csv.gz"), format_of("rows.jsonl"), format_of("rows")
    ('csv', 'jsonl', None)
    """
    return _EXTENSIONS.get(extension_of(path))


@contextmanager
def open_sink(
    target: str | os.PathLike[str] | IO[Any], kind: str | None, layout: Layout
) -> Iterator[Sink]:
    """A sink that writes to a path or an open file, until the end of the `with`.

    EngineError where the format is none that there is, or is not for these rows.

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
    kind = kind or ("table" if name is None else format_of(name))
    if kind is None or kind not in SINKS:
        shown = f"the file {name} names no format" if kind is None else f"{kind!r} is no format"
        raise EngineError(f"{shown}: there are {', '.join(SINKS)}")
    if kind == "nq" and not layout.triples:
        raise EngineError(f"nq is for triples, and this is {layout.form.upper()}: use jsonl")
    if kind == "parquet" and name is not None and is_packed(name):
        raise EngineError(f"{name}: parquet packs what is in it, and is not packed once more")
    checked(layout.timestamps, "ms")
    with opened(target, binary=kind == "parquet") as file:
        sink = SINKS[kind](file, layout)
        try:
            yield sink
        except BaseException:
            with suppress(Exception):
                sink.close()  # what was written so far is whole
            raise
        sink.close()
