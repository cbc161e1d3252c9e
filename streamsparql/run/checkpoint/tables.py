"""The tables of a checkpoint by name, as a tree of folders."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from streamsparql.errors import EngineError
from streamsparql.physical.batch import Batch
from streamsparql.physical.state.parts import Tables, batch_of, table_of


class TableFolder:
    """The tables below a name.

    >>> tables = {}
    >>> TableFolder(tables).inside("streams").put_all("s", {"items": pa.table({"a": [1]})})
    >>> list(tables), TableFolder(tables).inside("streams").all("s")["items"].num_rows
    (['streams/s/items'], 1)
    """

    def __init__(self, tables: Tables, folder: str = "") -> None:
        self._tables, self._folder = tables, folder

    def inside(self, name: object) -> TableFolder:
        """Return the tables in a folder."""
        return TableFolder(self._tables, f"{self._folder}{name}/")

    def put(self, name: str, table: pa.Table) -> None:
        """Add a table."""
        self._tables[self._folder + name] = table

    def put_all(self, name: str, tables: Mapping[str, pa.Table]) -> None:
        """Add the tables of a structure."""
        for inner, table in tables.items():
            self.put(f"{name}/{inner}", table)

    def put_rows(self, name: str, rows: Batch) -> None:
        """Add the rows of a batch."""
        self.put(name, table_of(rows))

    def get(self, name: str) -> pa.Table:
        """Return a table; raise an error if it is missing."""
        table = self._tables.get(self._folder + name)
        if table is None:
            raise EngineError(f"missing part {self._folder + name!r}")
        return table

    def rows(self, name: str, *names: str) -> Batch:
        """Return the rows of a table, with these columns."""
        rows = batch_of(self.get(name))
        missing = [each for each in names if each not in rows.columns]
        if missing:
            raise EngineError(f"the part {self._folder + name!r} has no column {missing[0]!r}")
        return rows.project(names) if names else rows

    def all(self, name: str) -> Tables:
        """Return the tables of a structure."""
        start = f"{self._folder}{name}/"
        return {key[len(start) :]: t for key, t in self._tables.items() if key.startswith(start)}
