"""State as parts: an operator names what it retains, and the rest follows from that.

A *part* is a structure of this room: a heap, a sweep area, a coverage, the sums of groups. It may have
parts of its own, down to those that have rows or arrays. From the parts follow how many rows a
state has, which term ids it uses, what people are shown of it, and its Arrow tables:

    class Join(Binary):
        def parts(self):
            return {"areas": self._areas, MIN_HEAP: self._results}

    tables = join.save()    # {"areas/left area": ..., "areas/right area": ..., "min-heap": ...}
    other.load(tables)      # `other` is new, of the same plan: it goes on where `join` was

Term ids stay what they are, so the dictionary is loaded first (`TermDictionary.load`), the plan is
lowered over it, and then its state is loaded (`Pipeline.load`). Each table says which structure wrote
it, and in which version; what does not fit is an `EngineError`, never wrong rows.

Column names in tables: `?x` has term ids; `start`, `end` and `count` are those of a batch; what
begins with `#` is a number that only its structure knows the meaning of.
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
"""The tables of a state, by the names of its parts."""

NamedRows: TypeAlias = tuple[str, Batch]
"""Rows of a state, and the name of the part that has them."""

TO_START, TO_BE_EMITTED = "to start", "to be given"
"""Parts of several operators: rows that start after the watermark; results that wait for others."""

INTERNAL = "#"
"""How the names of columns begin that have numbers of a structure, and no term ids."""

_SCALARS = "scalars"
_TIMES = ("start", "end")
_COUNT = "count"


class Memo(Protocol):
    """Results that are remembered by term id: a cache, and no state."""

    def forget(self) -> None:
        """Drop the results: the ids may mean other terms from now on."""


class Stateful:
    """Something that retains rows or numbers between steps.

    Its attributes with state are those in `parts()`, in `scalars` and in `encoded`; a test finds one
    that is in none of them. What `derived` names follows from the others, or is a cache.
    """

    scalars: ClassVar[tuple[str, ...]] = ()
    """The attributes with a number, a truth value or None each, or a list of numbers."""
    encoded: ClassVar[tuple[str, ...]] = ()
    """The attributes that `own_table` writes and `restore_own` reads."""
    derived: ClassVar[tuple[str, ...]] = ()
    """The attributes that are computed from the others, or again when they are missing."""
    version: ClassVar[int] = 1
    """The version of what is written: a change of its meaning gives it the next number."""

    def parts(self) -> Mapping[str, Stateful]:
        """Return the parts of the state by name."""
        return {}

    def memos(self) -> Iterable[Memo | None]:
        """Return the caches that are kept by term id."""
        return ()

    def size(self) -> int:
        """Return how many rows are retained."""
        return sum(part.size() for part in self.parts().values())

    def content(self) -> Iterator[NamedRows]:
        """Yield the rows of the state by part, for people to look at: as many as `size` says.

        Each is over the time for which the state still needs it; where the state does not know
        since when, the start is NEVER.
        """
        for name, part in self.parts().items():
            yield from part.content_as(name)

    def content_as(self, name: str) -> Iterator[NamedRows]:
        """Yield the content of this part of a state, which is called `name` there."""
        return self.content()

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the term ids that the state uses: they must not be recycled."""
        for part in self.parts().values():
            yield from part.retained_ids()

    def forget(self) -> None:
        """Drop what is remembered by term id alone: ids that no state uses get other terms."""
        for memo in self.memos():
            if memo is not None:
                memo.forget()
        for part in self.parts().values():
            part.forget()

    # -- Writing and reading

    def save(self) -> Tables:
        """Return the state as Arrow tables, one for each part that has rows or numbers."""
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
        """Take over a state that was saved; this one is new, and made in the same way."""
        left = dict(tables)
        if self.scalars:
            _set_scalars(self, self._verified(left, _SCALARS))
        for name, part in self.parts().items():
            inner = [key for key in left if key == name or key.startswith(f"{name}/")]
            part.load({key[len(name) + 1 :]: left.pop(key) for key in inner})
        if self.own_table() is not None:
            self.restore_own(self._verified(left, ""))
        if left:
            self._refuse(f"unexpected part {next(iter(left))!r}")

    def own_table(self) -> pa.Table | None:
        """Return the table of what this structure itself retains; None where that is nothing."""
        return None

    def restore_own(self, table: pa.Table) -> None:
        """Take over what `own_table` wrote; scalars and parts are there by then."""

    def _signed(self, table: pa.Table) -> pa.Table:
        return table.replace_schema_metadata(self._signature())

    def _signature(self) -> dict[str, str]:
        return {"kind": type(self).__name__, "version": str(self.version)}

    def _verified(self, tables: dict[str, pa.Table], name: str) -> pa.Table:
        """Remove and return a table, which must be there and of this structure and version."""
        if name not in tables:
            self._refuse(f"missing part {name!r}" if name else "missing rows")
        table = tables.pop(name)
        written = table.schema.metadata or {}
        found = {key.decode(): value.decode() for key, value in written.items()}
        if found != self._signature():
            kind, version = found.get("kind", "an unknown structure"), found.get("version", "?")
            self._refuse(f"written by {kind}, version {version}; expected version {self.version}")
        return table

    def _refuse(self, what: str) -> None:
        raise EngineError(f"cannot restore the state of {type(self).__name__}: {what}")


class RowStore(Stateful):
    """A part that is rows with these columns."""

    names: tuple[str, ...]

    @abstractmethod
    def __len__(self) -> int:
        """Return how many rows there are."""

    @abstractmethod
    def rows(self) -> Batch:
        """Return the rows; they stay."""

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
        """Return the rows of a table, which must have these columns."""
        rows = batch_of(table)
        if set(rows.columns) != set(names):
            found, expected = (", ".join(some) or "none" for some in (rows.columns, names))
            self._refuse(f"the columns are {found}; expected {expected}")
        return rows.project(names)


S = TypeVar("S", bound=Stateful)


class PartsByName(Stateful, Generic[S]):
    """Parts of one kind, each made when it is first asked for."""

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
    """Rows that an operator replaces as a whole, in `batch`.

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
    """Whether a column has term ids."""
    return not name.startswith(INTERNAL)


def id_columns(batch: Batch) -> Iterator[IntArray]:
    """Yield the columns of a batch that have term ids."""
    return (column for name, column in batch.columns.items() if is_of_terms(name))


# -- Batches and numbers as tables ---------------------------------------------------------------


def table_of(batch: Batch) -> pa.Table:
    """Return rows as an Arrow table; `batch_of` is the way back.

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
    """Return the rows of a table that `table_of` made."""
    arrays = arrays_of(table)
    start, end = (arrays.pop(name) for name in _TIMES)
    count = arrays.pop(_COUNT, None)
    columns = {name.removeprefix("?"): ids for name, ids in arrays.items()}
    return Batch(columns, start, end, count)


def table_of_arrays(arrays: Mapping[str, IntArray]) -> pa.Table:
    """Return arrays of int64 as the columns of a table."""
    return pa.table({name: pa.array(array, pa.int64()) for name, array in arrays.items()})


def arrays_of(table: pa.Table) -> dict[str, IntArray]:
    """Return the columns of a table as arrays of int64 that may be written to.

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
