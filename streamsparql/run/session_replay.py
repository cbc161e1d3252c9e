"""A history, read once by the queries of a session: rows are emitted and not retained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.compiled import CompiledQuery
from streamsparql.physical.operator import INFINITY
from streamsparql.run.notes import DataNotes
from streamsparql.run.registered import Registered
from streamsparql.run.replay import Stopped
from streamsparql.run.session import Session
from streamsparql.sources import Accounting, Reject

QueryRows = dict[Registered, pa.Table]


class SessionReplay:
    """A run of the queries of a session, whose rows are read once, when they become final.

    Rows that are `ordered` are emitted by start, over all queries. The run ends at `until`, if
    that is set, or at the end of the streams.

    >>> import streamsparql
    >>> session = streamsparql.Session()
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 1 MS FIXED {{ <{}> <p> ?o }}"
    >>> queries = [session.register(text.format(name), name) for name in "ab"]
    >>> items = [("<b>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 7)]
    >>> replay = SessionReplay(session, {"s": items})
    >>> emitted = [(query.name, t) for rows in replay.tables() for query, t in rows.items()]
    >>> [(name, table.to_pydict()["start"]) for name, table in emitted]
    [('b', [3]), ('a', [7])]
    """

    def __init__(
        self,
        session: Session,
        streams: Mapping[str, Any],
        *,
        ordered: bool = True,
        until: int | None = None,
    ) -> None:
        self.session, self.rows, self.watermark = session, 0, -1
        self.graph_rejects = session.stats().rejected
        """The number of triples of static graphs that were rejected."""
        self._queries = [*session.queries.values()]
        self._streams, self._ordered, self._until = streams, ordered, until
        self._held: dict[Registered, list[pa.Table]] = {}
        self._stopping = False
        self._drained = session.take_rejects()
        """The triples of static graphs that were rejected, until `drain` is called."""

    @property
    def accounting(self) -> Accounting:
        """The counts of the items that were read so far, over all streams."""
        return self.session.stats().items

    def notes(self) -> DataNotes:
        """Return what a reader of the results should know about the data."""
        return self.session.notes()

    def without_schema(self) -> list[CompiledQuery]:
        """Return the queries with entailment whose static graphs have no schema."""
        return [each.query for each in self._queries if self.session.has_no_schema(each)]

    def stop(self) -> None:
        """End the run after the current step, as if the queries were removed there."""
        self._stopping = True

    def drain(self) -> list[Reject]:
        """Return the rejects since the last call."""
        before, self._drained = self._drained, []
        return before + self.session.take_rejects()

    def tables(self) -> Iterator[QueryRows]:
        """Emit the rows of the queries that have some; one dict after each step."""
        try:
            for watermark in self.session.replay(self._streams):
                self.watermark = watermark
                yield self._emitted(self.session.rows_before)
                if self._until is not None and watermark >= self._until:
                    self.stop()
                if self._stopping and watermark < INFINITY:
                    break
        except Stopped:
            pass
        if not self.session.closed:
            self._remove_all()
        yield self._emitted(INFINITY)

    def _remove_all(self) -> None:
        """Remove all queries, so that the rows that hold end at the watermark."""
        while self.session.queries:
            read = {stream for q in self.session.queries.values() for stream in q.query.streams}
            for query in [*self.session.queries.values()]:
                if query.output not in read:
                    query.close()
        self.session.close()

    def _emitted(self, before: int) -> QueryRows:
        """Return the rows since the last call; if they are ordered, those that start before."""
        emitted: QueryRows = {}
        for query in self._queries:
            table = query.to_arrow()
            if self._ordered and not query.reports:
                table = self._in_order(query, table, before)
            if len(table):
                emitted[query] = table
                self.rows += len(table)
        return emitted

    def _in_order(self, query: Registered, table: pa.Table, before: int) -> pa.Table:
        held = self._held.pop(query, [])
        table = pa.concat_tables([*held, table]) if held else table
        start = query.decoder.time_names(False)[0]
        ready = pc.less(table[start], before)
        if not pc.all(ready).as_py():
            self._held[query] = [table.filter(pc.invert(ready))]
            table = table.filter(ready)
        return table.sort_by(start) if len(table) else table
