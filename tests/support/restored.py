"""Operators whose state is saved in the middle of a run and restored by new objects.

After each step these are compared with a run without interruption: the emitted rows, the watermark,
the number of retained rows, and the content of the state; all as terms, because ids may differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamsparql.algebra.node import Node
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.operator import Operator
from streamsparql.physical.state.parts import Stateful, Tables

TermRows = Counter[tuple[Any, ...]]


class Observation(NamedTuple):
    """The observable effects of a step."""

    rows: TermRows
    watermark: int
    sizes: list[int]
    content: list[dict[str, TermRows]]


def term_rows(batch: Batch, terms: TermDictionary) -> TermRows:
    """Return the rows of a batch as terms in the order of column names, each with its validity."""
    batch = batch.expanded()
    columns = [
        batch.columns[name].tolist()
        if name == SINCE
        else terms.texts(batch.columns[name]).to_pylist()
        for name in sorted(batch.columns)
    ]
    return Counter(zip(*columns, batch.start.tolist(), batch.end.tolist(), strict=True))


def observe(
    output: Batch, watermark: int, operators: Sequence[Operator], terms: TermDictionary
) -> Observation:
    """Observe the operators after a step; check that the content covers the size."""
    content: list[dict[str, TermRows]] = []
    for operator in operators:
        parts: dict[str, TermRows] = {}
        for name, rows in operator.content():
            parts.setdefault(name, Counter()).update(term_rows(rows, terms))
        content.append(parts)
    sizes = [operator.size() for operator in operators]
    for size, parts in zip(sizes, content, strict=True):
        assert sum(part.total() for part in parts.values()) >= size
    return Observation(term_rows(output, terms), watermark, sizes, content)


def through_ipc(tables: Tables) -> Tables:
    """Write tables to Arrow IPC streams and read them back."""
    return {name: _read(_written(table)) for name, table in tables.items()}


def _written(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _read(buffer: pa.Buffer) -> pa.Table:
    with pa.ipc.open_stream(buffer) as reader:
        return reader.read_all()


def restored_dictionary(terms: TermDictionary, used: Sequence[np.ndarray]) -> TermDictionary:
    """Save and restore a dictionary; only the entries in use survive."""
    restored = type(terms)()
    restored.load(through_ipc({"terms": terms.save(used)})["terms"])
    return restored


# -- Attributes with undeclared state ------------------------------------------------------------


def undeclared(state: Stateful, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the attributes that a state does not declare: path and printed value."""
    path = path or type(state).__name__
    parts = list(state.parts().values())
    declared = {*state.scalars, *state.encoded, *state.derived, "inputs", "node"}
    memos = [memo for memo in state.memos() if memo is not None]
    for name, value in _attributes(state):
        if name not in declared and not _is_among(value, [*parts, *memos]):
            yield f"{path}.{name}", _print(value)
    for name, part in state.parts().items():
        yield from undeclared(part, f"{path}/{name}")


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(value, name):
                yield name, getattr(value, name)


def _is_among(value: Any, objects: Sequence[object]) -> bool:
    if isinstance(value, list | tuple | Mapping) and value:
        values = value.values() if isinstance(value, Mapping) else value
        return all(_is_among(each, objects) for each in values)
    return any(value is each for each in objects)


def _print(value: Any, depth: int = 0) -> str:
    """Return a text that changes whenever the value, or an attribute of it, changes."""
    if isinstance(value, TermDictionary | Operator | Node | type) or callable(value) or depth > 6:
        return type(value).__name__
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if isinstance(value, Mapping):
        return str([(_print(k, depth + 1), _print(v, depth + 1)) for k, v in value.items()])
    if isinstance(value, list | tuple | set | frozenset):
        return str([_print(each, depth + 1) for each in value])
    inner = [(name, _print(each, depth + 1)) for name, each in _attributes(value)]
    return f"{type(value).__name__}{inner}" if inner else repr(value)
