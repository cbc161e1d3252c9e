"""A query that is registered in a session: its rows, and the instances of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamsparql.compiled import CompiledQuery
from streamsparql.display import Displayed
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.inline_ids import INTEGER_BASE
from streamsparql.physical.hidden import QUERY
from streamsparql.physical.operator import INFINITY
from streamsparql.run.decoder import RowDecoder, time_columns
from streamsparql.run.instances import Instances
from streamsparql.run.plan_reader import PlanReader
from streamsparql.run.registration import Registration
from streamsparql.run.rows import Row
from streamsparql.run.shared_plan import Shape
from streamsparql.values import check_values
from streamsparql.values.columns import native_column
from streamsparql.values.frames import check_library, pandas_frame, polars_frame

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from streamsparql.run.live_stats import Stats
    from streamsparql.run.session import Session
    from streamsparql.values import Values

KEY = "key"
"""The column of the key of an instance."""


class Registered(Displayed):
    """A query in a session, with rows from its `start` until it is closed.

    A query whose text has parameters (`$name`) has rows for each of its instances, which `add`
    creates: `rows` then returns a dict by instance.

    >>> import streamsparql
    >>> session = streamsparql.Session()
    >>> text = "SELECT ?place FROM STREAM <s> WINDOW RANGE 9 MS FIXED { $who <at> ?place }"
    >>> at = session.register(text)
    >>> ann, bob = at.add(who="<ann>"), at.add(who="<bob>")
    >>> session.push_many("s", [("<ann>", "<at>", "<home>", 3), ("<eve>", "<at>", "<work>", 4)])
    >>> session.close()
    >>> at.rows() == {ann: [{"place": "home"}]}, at.parameters
    (False, ('who',))
    """

    def __init__(
        self,
        session: Session,
        name: str,
        registration: Registration,
        shape: Shape,
        on_row: Callable[[Any], object] | None,
    ) -> None:
        self.session, self.name = session, name
        self.registration, self.shape, self.on_row = registration, shape, on_row
        self.end: int | None = None
        """The instant at which it was closed; None while it is open."""
        self.instances: Instances | None = None
        """The instances of its parameters; None for a query without parameters."""
        self.readers: dict[PlanReader, int] = {}
        """The readers of its plan; or of a plan for each instance, with the key of that."""
        self._decoder: RowDecoder | None = None

    @property
    def query(self) -> CompiledQuery:
        """The compiled query."""
        return self.registration.query

    @property
    def output(self) -> str | None:
        """The stream that it feeds; None if it feeds none.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "REGISTER STREAM <hot> AS CONSTRUCT {{ ?t <is> <hot> }} {} {{ ?t <heat> ?h }}"
        >>> window = "FROM STREAM <s> [RANGE 10ms STEP 10ms]"
        >>> session.register(text.format(window)).output
        'hot'
        >>> window = "FROM STREAM <hot> [RANGE 20ms STEP 10ms]"
        >>> query = session.register(f"SELECT ?t {window} {{ ?t ?p ?o }}")
        >>> session.run({"s": [("<a>", "<heat>", '"90"', 3)]})
        >>> query.rows()
        [Row(t=<a>, [10, 30))]
        """
        return self.registration.output

    # -- instances

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return () if self.instances is None else self.instances.parameters

    def add(self, **terms: Any) -> int:
        """Add an instance with these terms as parameters; return its key.

        It starts at the watermark, with all that the windows of the query contain.
        """
        return self.session.add_instances(self, [terms])[0]

    def add_many(self, source: Any) -> list[int]:
        """Add an instance for each row of a table, or for each of several dicts; return their keys.

        The columns of the table are the parameters.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { $x $p ?o }"
        >>> table = pa.table({"x": ["<a>", "<b>"], "p": ["<p>", "<p>"]})
        >>> session.register(text).add_many(table)
        [1, 2]
        """
        return self.session.add_instances(self, source)

    def remove(self, *keys: int) -> None:
        """Remove instances; their rows that hold end at the watermark."""
        self.session.remove_instances(self, keys)

    # -- rows

    @property
    def start(self) -> int | None:
        """The instant of its first rows; None if that is the first item of its streams."""
        return next((reader.start for reader in self.readers), None)

    @property
    def since(self) -> dict[str, int]:
        """The stamp of each stream from which on its items count; 0 for all items.

        A query that joins a plan that runs starts warm: its windows contain items from before its
        start. From the longest window after `since` on, they contain all.
        """
        return next((dict(reader.plan.since) for reader in self.readers), {})

    def start_of(self, key: int) -> int | None:
        """Return the start of an instance, as `start` is that of the query."""
        assert self.instances is not None
        self.instances.check([key])
        return self.instances.start_of(key)

    def since_of(self, key: int) -> dict[str, int]:
        """Return the stamps from which on items count for an instance: see `since`."""
        assert self.instances is not None
        self.instances.check([key])
        return dict(self._reader_of(key).plan.since)

    def _reader_of(self, key: int) -> PlanReader:
        return next(reader for reader, own in self.readers.items() if own in (0, key))

    @property
    def watermark(self) -> int:
        """The instant before which all items of its streams were processed; its end once closed."""
        if self.end is not None:
            return self.end
        marks = self.session.watermarks
        return min((marks[name] for name in self.query.streams), default=INFINITY)

    @property
    def reports(self) -> bool:
        """Whether it has reports instead of rows."""
        return any(reader.plan.reports is not None for reader in self.readers)

    def rows(self) -> Any:
        """Return the rows since the last call, by start.

        For reports: pairs of an instant and the rows of the report. With parameters: a dict of the
        rows of each instance that has some, or pairs of an instant and such a dict.
        """
        return self.session.read(self, self.take)

    def to_arrow(self, *, values: Values = "terms") -> pa.Table:
        """Return the rows since the last call as an Arrow table, as `Live.to_arrow` does.

        With parameters the table also has the key of each instance, and its terms.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { $x <p> ?o }"
        >>> query = session.register(text)
        >>> key = query.add(x="<a>")
        >>> session.run({"s": [("<a>", "<p>", 5, 3)]})
        >>> query.to_arrow(values="native").select(["key", "x", "o"]).to_pydict()
        {'key': [1], 'x': ['a'], 'o': [5]}
        """
        check_values(values)
        return self.session.read(self, partial(self.take_table, values))

    def to_pandas(self, *, values: Values = "native") -> pd.DataFrame:
        """Return the rows since the last call as a frame of pandas, as `Live.to_pandas` does."""
        check_values(values)
        check_library("pandas")
        return self.session.read(self, lambda: pandas_frame(self.take_table(values, exact=False)))

    def to_polars(self, *, values: Values = "native") -> pl.DataFrame:
        """Return the rows since the last call as a frame of Polars, as `Live.to_polars` does."""
        check_values(values)
        check_library("polars")
        return self.session.read(self, lambda: polars_frame(self.take_table(values, exact=False)))

    def stats(self) -> Stats:
        """Return the counts of items and the rows and state of operators, as `Live.stats` does.

        The items are those of the streams that it reads. An operator that other queries read, too,
        counts rows once for all of them. A query that was closed has no operators.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> query = session.register(text)
        >>> session.push_many("s", [("<a>", "<p>", "<b>", t) for t in (3, 25, 4)])
        >>> stats = query.stats()
        >>> stats.items.accepted, stats.items.late, stats.watermark
        (2, 1, 25)
        """
        return self.session.stats_of(self)

    def close(self) -> None:
        """Unregister the query; its rows that hold end at the watermark."""
        self.session.unregister(self)

    @property
    def closed(self) -> bool:
        """Whether the query was unregistered, or the session closed."""
        return self.end is not None or self.session.closed

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        instances = "" if self.instances is None else f", {len(self.instances)} instances"
        return f"<Registered: {self.name}, {state}{instances}>"

    # -- inside: the session guards its state

    @property
    def shared(self) -> bool:
        """Whether one plan computes all of its instances."""
        return self.instances is not None and all(key == 0 for key in self.readers.values())

    def numbers_in(self, reader: PlanReader) -> IntArray | None:
        """Return its numbers in the table of a plan; None for a plan without a table."""
        if reader.plan.table is None:
            return None
        if self.instances is None or not self.shared:
            return np.array([reader.number], np.int64)
        return self.instances.numbers + INTEGER_BASE

    @property
    def decoder(self) -> RowDecoder:
        """The decoder of its rows."""
        if self._decoder is None:
            ranking = next((reader.plan.operators.ranking for reader in self.readers), None)
            terms, variables = self.session.terms, self.registration.variables
            self._decoder = RowDecoder(self.query.form, variables, terms, ranking)
        return self._decoder

    def take(self) -> Any:
        """Return the rows, or reports, since the last call."""
        if self.reports:
            taken: Any = self._take_reports()
        elif self.instances is None:
            (reader,) = self.readers
            taken = [row for rows in reader.rows(self.decoder).values() for row in rows]
        else:
            taken = dict(self._rows_by_key())
        self._forget_removed()
        return taken

    def _forget_removed(self) -> None:
        """Forget the instances that were removed, whose last rows were read."""
        if self.instances is not None:
            self.instances.forget()
            if not self.shared:
                open_readers = ((r, key) for r, key in self.readers.items() if not r.ended)
                self.readers = dict(open_readers)

    def take_elements(self) -> list[Any]:
        """Return what `on_row` is to be called with, one after the other."""
        taken = self.take()
        if not isinstance(taken, dict):
            return list(taken)
        return [(key, row) for key, rows in taken.items() for row in rows]

    def _rows_by_key(self) -> Iterator[tuple[int, list[Row]]]:
        for reader, key in self.readers.items():
            for number, rows in sorted(reader.rows(self.decoder).items()):
                yield key or number - INTEGER_BASE, rows

    def _take_reports(self) -> list[tuple[int, Any]]:
        if self.instances is None:
            (reader,) = self.readers
            nothing = self.decoder.snapshot_of([])
            reports = reader.reports(self.decoder)
            return [(instant, next(iter(shown.values()), nothing)) for instant, shown in reports]
        by_instant: dict[int, dict[int, Any]] = {}
        for reader, key in self.readers.items():
            for instant, shown in reader.reports(self.decoder):
                by_key = {key or n - INTEGER_BASE: rows for n, rows in shown.items()}
                by_instant.setdefault(instant, {}).update(by_key)
        return sorted(by_instant.items())

    def take_table(self, values: Values = "terms", exact: bool = True) -> pa.Table:
        """Return the rows since the last call as a table."""
        parts = [self._in_order(reader.batch(), key) for reader, key in self.readers.items()]
        parts = parts or [Batch.empty((*self.decoder.names, QUERY))]
        self._forget_removed()
        return self._table(Batch.concat(parts, [*parts[0].columns]), values, exact)

    def _in_order(self, rows: Batch, key: int) -> Batch:
        """Return the rows of a reader in order, those of instances with their numbers."""
        rows = self.decoder.in_order(rows) if self.reports else rows
        if self.instances is None or QUERY in rows.columns:
            return rows
        return rows.with_columns({QUERY: np.full(len(rows), key + INTEGER_BASE)})

    def _table(self, rows: Batch, values: Values, exact: bool) -> pa.Table:
        decoder, native = self.decoder, values == "native"
        if native:
            table = decoder.native_table(rows, self.reports, exact)
        else:
            table = decoder.table([rows], self.reports)
        if self.instances is None:
            return table
        keys = rows.columns[QUERY] - INTEGER_BASE
        columns, fields = [pa.array(keys)], []
        for name, ids in zip(self.parameters, self.instances.values_of(keys), strict=True):
            if native:
                column = native_column(ids, decoder.terms, exact)
                columns.append(column.values)
                fields.append(column.field(name))
            else:
                columns.append(decoder.terms.dictionary(ids))
                fields.append(pa.field(name, columns[-1].type))
        key_name = time_columns((*self.parameters, *table.column_names), KEY)[0]
        schema = pa.schema([pa.field(key_name, pa.int64()), *fields, *table.schema])
        return pa.table([*columns, *table.columns], schema)
