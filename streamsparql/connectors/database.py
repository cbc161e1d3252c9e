"""Tables of databases as sinks: PostgreSQL, SQLite, and any module of Python's DB-API.

    postgresql://user@host/db?table=rows     sqlite:results.db?table=rows

The table has a column per variable, those of the times, and a unique `row_key`: a row that is
written again changes nothing, so each row is there once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from time import sleep
from typing import Any

import pyarrow as pa

from streamsparql.connectors.interface import Position
from streamsparql.connectors.outage import Outage
from streamsparql.connectors.row_messages import RowMessages
from streamsparql.connectors.urls import ConnectorUrl, client
from streamsparql.errors import EngineError
from streamsparql.sinks.layout import Layout

_MOST_UNCOMMITTED = 10_000
ROW_KEY = "row_key"
"""The column of the keys of rows."""


def database_sink(url: ConnectorUrl, layout: Layout) -> DatabaseSink:
    """Return a table of the database of a URL."""
    table = url.text("table")
    if table is None:
        raise EngineError(f"{url.shown}: missing table: add ?table=NAME")
    if url.scheme == "sqlite":
        sqlite = client("sqlite3", "")
        return DatabaseSink(sqlite, lambda: sqlite.connect(url.path), table, layout, "?", url.shown)
    psycopg = client("psycopg", "postgresql")
    options = {"host": url.host, "port": url.port, "user": url.user, "password": url.password}
    options = {name: value for name, value in options.items() if value}

    def connect() -> Any:
        return psycopg.connect(dbname=url.path or None, connect_timeout=15, **options)

    return DatabaseSink(psycopg, connect, table, layout, "%s", url.shown)


class DatabaseSink:
    """A sink that inserts rows into a table, with a module of the DB-API and its placeholder.

    >>> import sqlite3
    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute('CREATE TABLE r (row_key PRIMARY KEY, v, "start", "end")')
    >>> layout = Layout("select", ("v",), ("start", "end"))
    >>> sink = DatabaseSink(sqlite3, lambda: connection, "r", layout, "?")
    >>> for _ in range(2):
    ...     sink.write(pa.table({"v": ['"a"'], "start": [3], "end": [7]}))
    ...     sink.flush()
    >>> connection.execute('SELECT v, "start", "end" FROM r').fetchall()
    [('a', 3, 7)]
    >>> sink.close()
    """

    def __init__(
        self,
        module: Any,
        connect: Callable[[], Any],
        table: str,
        layout: Layout,
        placeholder: str = "%s",
        shown: str = "the database",
    ) -> None:
        self._module, self._connect, self._shown = module, connect, shown
        self._messages = RowMessages(layout, "json")
        self._columns = [*layout.names, *layout.times]
        names = ", ".join(map(_quoted, [ROW_KEY, *self._columns]))
        values = ", ".join([placeholder] * (len(self._columns) + 1))
        self._insert = (
            f"INSERT INTO {'.'.join(map(_quoted, table.split('.')))} ({names})"
            f" VALUES ({values}) ON CONFLICT ({_quoted(ROW_KEY)}) DO NOTHING"
        )
        self._uncommitted: list[tuple[Any, ...]] = []
        self._outage = Outage(shown)
        try:
            self._connection = connect()
        except module.Error as error:
            raise EngineError(f"{shown}: {error}") from None

    def write(self, rows: pa.Table) -> None:
        """Retain rows until they are committed together."""
        for key, payload in self._messages.of(rows):
            row = json.loads(payload, parse_float=Decimal)
            self._uncommitted.append((key, *map(row.get, self._columns)))
        if len(self._uncommitted) >= _MOST_UNCOMMITTED:
            self.flush()

    def flush(self) -> None:
        """Insert the rows in one transaction; connect again until that succeeds."""
        while self._uncommitted:
            try:
                cursor = self._connection.cursor()
                cursor.executemany(self._insert, self._uncommitted)
                cursor.close()
                self._connection.commit()
            except (self._module.OperationalError, self._module.InterfaceError) as error:
                if not self._is_broken():
                    raise self._failure(error) from None
                self._reconnect(error)
            except self._module.Error as error:
                self._connection.rollback()
                raise self._failure(error) from None
            else:
                self._uncommitted.clear()
                self._outage.repaired()

    def _failure(self, error: Exception) -> EngineError:
        columns = ", ".join([f"{ROW_KEY} TEXT PRIMARY KEY", *map(_quoted, self._columns)])
        return EngineError(f"{self._shown}: {error}; expected a table with the columns {columns}")

    def _is_broken(self) -> bool:
        """Return whether the connection does not work, in contrast to a statement."""
        try:
            self._connection.rollback()
            self._connection.cursor().execute("SELECT 1").close()
        except self._module.Error:
            return True
        return False

    def _reconnect(self, reason: object) -> None:
        while True:
            sleep(self._outage.pause(reason))
            try:
                self._connection.close()
                self._connection = self._connect()
            except self._module.Error as error:
                reason = error
            else:
                return

    def position(self) -> Position:
        """Return None: rows have keys, and need not be removed."""
        return None

    def truncate(self, position: Position) -> None:
        """Remove nothing."""

    def close(self) -> None:
        """Insert what is left, and close the connection."""
        try:
            self.flush()
        finally:
            self._connection.close()


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
