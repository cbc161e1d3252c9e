"""The rows of several queries: in one sink, with the names of queries, or in a file for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import IO, Any

import numpy as np
import pyarrow as pa

from streamsparql.algebra.terms import Literal
from streamsparql.sinks import open_sink
from streamsparql.sinks.layout import Layout

NAME = "query"
"""The column with the name of the query."""

Write = Callable[[Mapping[str, pa.Table]], None]
"""A function that writes the rows of queries, by name."""


@contextmanager
def open_apart(
    targets: Mapping[str, str], kind: str, layouts: Mapping[str, Layout], *, whole: bool
) -> Iterator[Write]:
    """Open the file of each query."""
    with ExitStack() as stack:
        sinks = {}
        for name, path in targets.items():
            sinks[name] = stack.enter_context(open_sink(path, kind, layouts[name], whole=whole))

        def write(rows: Mapping[str, pa.Table]) -> None:
            for name, table in rows.items():
                sinks[name].write(table)
                if not whole:
                    sinks[name].flush()

        yield write


@contextmanager
def open_together(
    target: str | IO[Any], kind: str, layouts: Mapping[str, Layout], *, whole: bool
) -> Iterator[Write]:
    """Open one sink for all queries; the first column is the name of the query.

    >>> import sys
    >>> layouts = {name: Layout("select", (name,), ("start", "end")) for name in "ab"}
    >>> rows = pa.table({"b": pa.array(['"1"']).dictionary_encode(), "start": [3], "end": [4]})
    >>> with open_together(sys.stdout, "csv", layouts, whole=True) as write:
    ...     write({"b": rows})
    query,a,b,start,end
    b,,1,3,4
    """
    layout = _common(layouts)
    with open_sink(target, kind, layout, whole=whole) as sink:

        def write(rows: Mapping[str, pa.Table]) -> None:
            parts = [_named(name, table, layouts[name], layout) for name, table in rows.items()]
            sink.write(pa.concat_tables(parts).sort_by(layout.times[0]))
            if not whole:
                sink.flush()

        yield write


def _common(layouts: Mapping[str, Layout]) -> Layout:
    """Return the layout of the rows of all queries."""
    several = [*layouts.values()]
    variables = [*dict.fromkeys(name for layout in several for name in layout.names)]
    times = ("start", "end") if len(several[0].times) > 1 else ("instant",)
    name, *renamed = (_unused(each, variables) for each in (NAME, *times))
    prefixes: dict[str, set[str]] = {}
    for layout in several:
        for prefix, iri in layout.prefixes.items():
            prefixes.setdefault(prefix, set()).add(iri)
    return replace(
        several[0],
        form="select",
        names=(name, *variables),
        times=tuple(renamed),
        prefixes={prefix: next(iter(iris)) for prefix, iris in prefixes.items() if len(iris) == 1},
    )


def _unused(name: str, variables: list[str]) -> str:
    """Return the name of a column, with an underscore if a variable has the same name."""
    return _unused(f"{name}_", variables) if name in variables else name


def _named(name: str, table: pa.Table, own: Layout, layout: Layout) -> pa.Table:
    """Return the rows of a query with its name, in the columns of all queries."""
    terms = dict(zip(own.names, table.columns, strict=False))
    names = pa.array([str(Literal(name))])
    first = pa.DictionaryArray.from_arrays(np.zeros(len(table), np.int32), names)
    nothing = pa.nulls(len(table), first.type)
    columns = [first, *(terms.get(each, nothing) for each in layout.names[1:])]
    times = table.columns[len(own.names) :]
    return pa.table([*columns, *times], [*layout.names, *layout.times])
