"""State as parts: an operator lists the structures that it retains; the rest is derived.

A *part* is a structure such as a heap, a sweep area, a coverage, or the sums of groups. It may have
parts of its own, down to those with rows or arrays. The parts determine the number of retained
rows, the term ids in use, the content that users see, and the Arrow tables of the state:

    class Join(Sliced):
        def parts(self):
            return {"areas": self._areas, MIN_HEAP: self._results}

    tables = join.save()    # {"areas/left area": ..., "areas/right area": ..., "min-heap": ...}
    other.load(tables)      # a new operator of the same plan, which continues where `join` was

The tables contain term ids, which only the dictionary of the run decodes. To restore a run, load
the dictionary (`TermDictionary.load`), lower the plan over it, then load the state
(`Pipeline.load`). Each table names the structure that wrote it and the version. A table that does
not match raises an `EngineError`, so that it never leads to wrong rows.

Columns of tables: `?x` has term ids; `start`, `end` and `count` are those of a batch; a name that
begins with `#` has numbers that only the structure interprets.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from streamsparql.errors import EngineError
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray

Tables: TypeAlias = dict[str, pa.Table]
"""The tables of a state, by part."""

NamedRows: TypeAlias = tuple[str, Batch]
"""The name of a part, and its rows."""

TO_START, TO_BE_EMITTED = "to start", "to be emitted"
"""Parts of several operators: rows that start after the watermark; results that are not yet due."""

INTERNAL = "#"
"""The prefix of columns with numbers that only the structure interprets, instead of term ids."""

_SCALARS = "scalars"
_TIMES = ("start", "end")
_COUNT = "count"


class Memo(Protocol):
    """Results memoised by term id: a cache, not state."""

    def forget(self) -> None:
        """Drop the results, because ids may be reused for other terms."""


class Stateful:
    """A structure that retains rows or numbers between steps.

    Its state is in the attributes of `parts()`, `scalars` and `encoded`; a test fails for an
    attribute with state that is in none of them. `derived` attributes follow from the others.
    """

    scalars: ClassVar[tuple[str, ...]] = ()
    """The attributes that are a number, a boolean, None, or a list of numbers."""
    encoded: ClassVar[tuple[str, ...]] = ()
    """The attributes that `own_table` writes and `restore_own` reads."""
    derived: ClassVar[tuple[str, ...]] = ()
    """The attributes that are computed from the others."""
    version: ClassVar[int] = 1
    """The version of the written format."""

    def parts(self) -> Mapping[str, Stateful]:
        """Return the parts of the state by name."""
        return {}

    def memos(self) -> Iterable[Memo | None]:
        """Return the caches by term id."""
        return ()

    def size(self) -> int:
        """Return the number of retained rows."""
        return sum(part.size() for part in self.parts().values())

    def content(self) -> Iterator[NamedRows]:
        """Yield the rows of the state by part, for users: as many rows as `size` returns.

        The validity of a row is the time for which the state needs it; an unknown start is NEVER.
        """
        for name, part in self.parts().items():
            yield from part.content_as(name)

    def content_as(self, name: str) -> Iterator[NamedRows]:
        """Yield the content of this part, which its owner calls `name`."""
        return self.content()

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the term ids in use: they must not be recycled."""
        for part in self.parts().values():
            yield from part.retained_ids()

    def forget(self) -> None:
        """Drop results memoised by term id: ids that are not in use are reused for other terms."""
        for memo in self.memos():
            if memo is not None:
                memo.forget()
        for part in self.parts().values():
            part.forget()

    # -- Writing and reading

    def save(self) -> Tables:
        """Return the state as Arrow tables, one for each part with rows or numbers."""
        tables: Tables = {}
        own = self.own_table()
        if own is not None:
            tables[""] = self._signed(own)
        if self.scalars:
            tables[_SCALARS] = self._signed(_table_of_scalars(self))
        for name, part in self.parts().items():
            for inner, table in part.save().items():
                tables[f"{name}/{inner}" if inner else name] = table
        return tables

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        """Restore a saved state in a new object that was constructed with the same arguments."""
        left = dict(tables)
        has_own = self.own_table() is not None
        if self.scalars:
            _set_scalars(self, self._verified(left, _SCALARS))
        for name, part in self.parts().items():
            inner = [key for key in left if key == name or key.startswith(f"{name}/")]
            part.load({key[len(name) + 1 :]: left.pop(key) for key in inner})
        if has_own:
            self.restore_own(self._verified(left, ""))
        if left:
            self._refuse(f"unexpected part {next(iter(left))!r}")

    def own_table(self) -> pa.Table | None:
        """Return the table of this structure's own state, without parts; None if there is none."""
        return None

    def restore_own(self, table: pa.Table) -> None:
        """Restore the state in a table of `own_table`; scalars and parts are restored before."""

    def _signed(self, table: pa.Table) -> pa.Table:
        return table.replace_schema_metadata(self._signature())

    def _signature(self) -> dict[str, str]:
        return {"kind": type(self).__name__, "version": str(self.version)}

    def _verified(self, tables: dict[str, pa.Table], name: str) -> pa.Table:
        """Remove and return a table; raise an error unless this structure and version wrote it."""
        if name not in tables:
            self._refuse(f"missing part {name!r}" if name else "missing rows")
        table = tables.pop(name)
        written = table.schema.metadata or {}
        signature = {key.decode(): value.decode() for key, value in written.items()}
        if signature != self._signature():
            kind = signature.get("kind", "an unknown structure")
            version = signature.get("version", "?")
            self._refuse(f"written by {kind}, version {version}; expected version {self.version}")
        return table

    def _refuse(self, reason: str) -> None:
        raise EngineError(f"cannot restore the state of {type(self).__name__}: {reason}")


class RowStore(Stateful):
    """A part that consists of rows; `names` are their columns."""

    names: tuple[str, ...]

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def rows(self) -> Batch:
        """Return the rows, without removing them."""

    @abstractmethod
    def put_back(self, rows: Batch) -> None:
        """Insert the rows that `rows` returned, at least one, into an empty store."""

    @override
    def size(self) -> int:
        return len(self)

    @override
    def content_as(self, name: str) -> Iterator[NamedRows]:
        rows = self.rows().ordered()
        yield name, rows.project(n for n in rows.columns if is_of_terms(n))

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        return id_columns(self.rows())

    @override
    def own_table(self) -> pa.Table:
        return table_of(self.rows().project(self.names))

    @override
    def restore_own(self, table: pa.Table) -> None:
        rows = self._rows_of(table, self.names)
        if len(rows):
            self.put_back(rows)

    def _rows_of(self, table: pa.Table, names: Sequence[str]) -> Batch:
        """Return the rows of a table; raise an error unless it has these columns."""
        rows = batch_of(table)
        if set(rows.columns) != set(names):
            actual, expected = (", ".join(each) or "none" for each in (rows.columns, names))
            self._refuse(f"the columns are {actual}; expected {expected}")
        return rows.project(names)


S = TypeVar("S", bound=Stateful)


class PartsByName(Stateful, Generic[S]):
    """Parts of one class by name, each created when it is first used."""

    encoded = ("_parts",)

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make
        self._parts: dict[str, S] = {}

    def __getitem__(self, name: str) -> S:
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = self._make()
        return part

    @override
    def parts(self) -> Mapping[str, S]:
        return {str(k): part for k, part in enumerate(self._parts.values())}

    @override
    def own_table(self) -> pa.Table:
        return pa.table({"name": pa.array([*self._parts], pa.string())})

    @override
    def load(self, tables: Mapping[str, pa.Table]) -> None:
        for name in self._verified(dict(tables), "")["name"].to_pylist():
            self[name]
        super().load(tables)


class RowBuffer(RowStore):
    """Rows that an operator replaces as a whole, as `batch`.

    >>> buffer = RowBuffer(["x"])
    >>> buffer.batch = Batch({"x": np.array([7])}, np.array([0]), np.array([9]))
    >>> other = RowBuffer(["x"])
    >>> other.load(buffer.save())
    >>> other.rows().columns["x"].tolist(), other.size()
    ([7], 1)
    """

    encoded = ("batch",)

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.batch = Batch.empty(self.names)

    @override
    def __len__(self) -> int:
        return len(self.batch)

    @override
    def rows(self) -> Batch:
        return self.batch

    @override
    def put_back(self, rows: Batch) -> None:
        self.batch = rows


def is_of_terms(name: str) -> bool:
    """Return whether a column has term ids."""
    return not name.startswith(INTERNAL)


def id_columns(batch: Batch) -> Iterator[IntArray]:
    """Return the columns of a batch that have term ids."""
    return (column for name, column in batch.columns.items() if is_of_terms(name))


# -- Batches and numbers as tables ---------------------------------------------------------------


def table_of(batch: Batch) -> pa.Table:
    """Return rows as an Arrow table; `batch_of` is the inverse.

    >>> rows = Batch({"start": np.array([7])}, np.array([0]), np.array([9]))
    >>> table_of(rows).to_pydict()
    {'start': [0], 'end': [9], '?start': [7]}
    """
    columns = dict(zip(_TIMES, (batch.start, batch.end), strict=True))
    if batch.count is not None:
        columns[_COUNT] = batch.count
    for name, ids in batch.columns.items():
        columns[f"?{name}" if is_of_terms(name) else name] = ids
    return table_of_arrays(columns)


def batch_of(table: pa.Table) -> Batch:
    """Return the rows of a table from `table_of`."""
    arrays = arrays_of(table)
    start, end = (arrays.pop(name) for name in _TIMES)
    count = arrays.pop(_COUNT, None)
    columns = {name.removeprefix("?"): ids for name, ids in arrays.items()}
    return Batch(columns, start, end, count)


def table_of_arrays(arrays: Mapping[str, IntArray]) -> pa.Table:
    """Return arrays of int64 as a table."""
    return pa.table({name: pa.array(array, pa.int64()) for name, array in arrays.items()})


def arrays_of(table: pa.Table) -> dict[str, IntArray]:
    """Return the columns of a table as writable arrays of int64.

    >>> arrays_of(table_of_arrays({"#slot": np.array([5])}))
    {'#slot': array([5])}
    """
    return {name: np.array(table[name].to_numpy(), np.int64) for name in table.column_names}


def _table_of_scalars(state: Stateful) -> pa.Table:
    """Return the scalars of a state as a table of one row."""
    return pa.table({name: _array_of(getattr(state, name)) for name in state.scalars})


def _array_of(value: Any) -> pa.Array:
    if isinstance(value, bool):
        return pa.array([value], pa.bool_())
    kind = pa.list_(pa.int64()) if isinstance(value, list) else pa.int64()
    return pa.array([value], kind)


def _set_scalars(state: Stateful, table: pa.Table) -> None:
    if tuple(table.column_names) != state.scalars or table.num_rows != 1:
        state._refuse(f"the scalars are {', '.join(table.column_names)}")
    for name in state.scalars:
        setattr(state, name, table[name][0].as_py())
