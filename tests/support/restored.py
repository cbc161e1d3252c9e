"""States that are saved in the middle of a run, read back by new objects, and go on from there.

What is compared with the undisturbed run, after each step: the rows that were emitted, the watermark,
how many rows are retained, and the content of the state, all in terms, as ids may differ.
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
from streamsparql.physical.operator import Operator
from streamsparql.physical.state.parts import Stateful, Tables

Shown = Counter[tuple[Any, ...]]


class Seen(NamedTuple):
    """What can be seen of a step from outside."""

    rows: Shown
    watermark: int
    sizes: list[int]
    content: list[dict[str, Shown]]


def shown(batch: Batch, terms: TermDictionary) -> Shown:
    """The rows of a batch in terms, each with its validity; columns by name."""
    batch = batch.expanded()
    columns = [terms.texts(batch.columns[name]).to_pylist() for name in sorted(batch.columns)]
    return Counter(zip(*columns, batch.start.tolist(), batch.end.tolist(), strict=True))


def seen(
    output: Batch, watermark: int, operators: Sequence[Operator], terms: TermDictionary
) -> Seen:
    """What can be seen after a step."""
    content: list[dict[str, Shown]] = []
    for operator in operators:
        parts: dict[str, Shown] = {}
        for name, rows in operator.content():
            parts.setdefault(name, Counter()).update(shown(rows, terms))
        content.append(parts)
    sizes = [operator.size() for operator in operators]
    for size, parts in zip(sizes, content, strict=True):
        assert sum(part.total() for part in parts.values()) >= size
    return Seen(shown(output, terms), watermark, sizes, content)


def through_ipc(tables: Tables) -> Tables:
    """The tables as they are after they were written and read."""
    return {name: _read(_written(table)) for name, table in tables.items()}


def _written(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _read(buffer: pa.Buffer) -> pa.Table:
    with pa.ipc.open_stream(buffer) as reader:
        return reader.read_all()


def moved(terms: TermDictionary, used: Sequence[np.ndarray]) -> TermDictionary:
    """A new dictionary with the entries that are in use."""
    other = type(terms)()
    other.load(through_ipc({"terms": terms.save(used)})["terms"])
    return other


# -- Attributes with state that nobody declared --------------------------------------------------


def undeclared(state: Stateful, path: str = "") -> Iterator[tuple[str, str]]:
    """The attributes that a state does not declare, by path, each with what it is."""
    path = path or type(state).__name__
    parts = list(state.parts().values())
    known = {*state.scalars, *state.encoded, *state.derived, "inputs", "node"}
    memos = [memo for memo in state.memos() if memo is not None]
    for name, value in _attributes(state):
        if name not in known and not _is_among(value, [*parts, *memos]):
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
        return all(_is_among(one, objects) for one in values)
    return any(value is one for one in objects)


def _print(value: Any, depth: int = 0) -> str:
    """All that a value says, as text."""
    if isinstance(value, TermDictionary | Operator | Node | type) or callable(value) or depth > 6:
        return type(value).__name__
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if isinstance(value, Mapping):
        return str([(_print(k, depth + 1), _print(v, depth + 1)) for k, v in value.items()])
    if isinstance(value, list | tuple | set | frozenset):
        return str([_print(one, depth + 1) for one in value])
    inner = [(name, _print(one, depth + 1)) for name, one in _attributes(value)]
    return f"{type(value).__name__}{inner}" if inner else repr(value)
