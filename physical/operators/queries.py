"""Queries as data: many queries that share a plan are the rows of a table.

A query is a row `(number, value of $1, value of $2, ..)` that holds from the instant at which the
query was added. Operators join it like any other row, so the result of a query are the rows with
its number, and by snapshot reducibility these are, from that instant on, the rows of the query
alone. The table never ends, so the joins above retain the live rows of their other inputs, and a
query that is added later meets them at once.

The end of a query is not known when it is added, and a row cannot be taken back. So a row of the
table holds for a *lease* only. When the time of the sources reaches its end, the rows of the
queries that are still there are emitted for the next lease; those of removed queries expire with
all that depends on them. A cut of a validity has no meaning (SEMANTICS.md section 2), so leases
change no result. A lease is many times as long as the windows, and twice as long as the last one if
no query was removed meanwhile, so renewals cost little. Rows of removed queries are filtered out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.hidden import QUERY, parameter_column
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.state.parts import RowBuffer, Stateful

LEASES = 32
"""The length of the first lease, as a multiple of the greatest reach of a window."""


class QueryTable(Operator):
    """The queries that share a plan, with the values of their parameters.

    Its input is the `Clock` of the streams of the plan; `lag` is added to its time. `reach` is the
    longest time that an element of these streams holds.

    >>> from streamsparql.physical.operators.access import Clock
    >>> table = QueryTable(Clock(), ["p"], reach=10)
    >>> table.add(np.array([-5, -4]), [np.array([70, 80])], since=3)
    >>> rows, watermark = table.step([table.nothing()], [7], False)
    >>> rows.start.tolist(), rows.end.tolist(), watermark
    ([3, 3], [327, 327], 7)
    >>> table.remove(np.array([-5]))
    >>> rows, _ = table.step([table.nothing()], [400], False)
    >>> rows.columns["..query p"].tolist(), rows.start.tolist(), len(table)
    ([80], [327], 1)
    """

    family = "access"
    state = "the queries"
    scalars = ("until", "_before", "_lease", "_removed")

    def __init__(
        self, clock: Operator, parameters: Sequence[str], reach: int, lag: int = 0
    ) -> None:
        super().__init__((QUERY, *map(parameter_column, parameters)), clock)
        self.parameters, self.lag = tuple(parameters), lag
        self._queries = RowBuffer(self.names)
        """Those whose rows were emitted, from the start of the lease on."""
        self._added = RowBuffer(self.names)
        """Those whose rows are still to be emitted, each from its own start on."""
        self.until = 0
        """The end of the lease; 0 before the first one."""
        self._before = 0
        """The end of the lease before."""
        self._endless = reach >= INFINITY
        self._lease = LEASES * max(1 if self._endless else reach, 1)
        self._removed = False
        """Whether a query was removed in this lease."""

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self._queries) + len(self._added)

    @property
    def cuts(self) -> tuple[int, int]:
        """The instants at which the last two leases end: cuts of validities, which mean nothing."""
        return self._before, self.until

    def add(self, numbers: IntArray, values: Sequence[IntArray], since: int) -> None:
        """Add queries from an instant on, not before the watermark.

        `numbers` are ids of integers, each used once; `values` are the ids of the parameters.
        """
        columns = dict(zip(self.names, [numbers, *values], strict=True))
        start = np.full(len(numbers), since)
        new = Batch(columns, start, np.full(len(numbers), INFINITY))
        self._added.batch = Batch.concat([self._added.batch, new], self.names)

    def remove(self, numbers: IntArray) -> None:
        """Remove queries."""
        for buffer in (self._added, self._queries):
            rows = buffer.batch
            buffer.batch = rows.where(~np.isin(rows.columns[QUERY], numbers))
        self._removed = True

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        watermark = min(watermarks[0], INFINITY - self.lag) + self.lag
        added, rows = self._added.batch, [self.nothing()]
        if not self.until or self.until <= watermark:
            rows.append(self._renewed(max(watermark, int(added.start.max(initial=0)))))
        if len(added):
            rows.append(added.over(added.start, np.full(len(added), self.until)))
            self._queries.batch = Batch.concat([self._queries.batch, added], self.names)
            self._added.batch = self.nothing()
        return Batch.concat(rows).ordered(), watermark

    def _renewed(self, now: int) -> Batch:
        """Begin the next lease; return the rows of the queries."""
        since, rows = self.until, self._queries.batch
        if since and (self._endless or not self._removed):
            self._lease *= 2
        self._before = since
        self.until = now + self._lease if now < INFINITY - self._lease else INFINITY
        self._removed = False
        if since == INFINITY:
            return self.nothing()
        return rows.over(np.full(len(rows), since), np.full(len(rows), self.until))

    @override
    def due(self) -> bool:
        return len(self._added.batch) > 0

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"queries": self._queries, "added": self._added}

    @override
    def facts(self) -> str:
        return f"{len(self)} queries" if len(self) != 1 else "one query"


class SelectQueries(Operator):
    """The rows of queries that were not removed.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Always.of({QUERY: np.array([-5, -4])}, 2)
    >>> select = SelectQueries(rows)
    >>> select.exclude(np.array([-5]), until=9)
    >>> select.step([rows.rows], [0], False)[0].columns[QUERY].tolist()
    [-4]
    """

    family = "filter"
    state = "the numbers of removed queries, until their leases have ended"

    def __init__(self, input: Operator) -> None:  # noqa: A002 -- the role
        super().__init__(input.names, input)
        self._excluded = RowBuffer((QUERY,))

    def exclude(self, numbers: IntArray, until: int) -> None:
        """Exclude the rows of removed queries, which all start before `until`."""
        end = np.full(len(numbers), until)
        new = Batch({QUERY: numbers}, np.zeros_like(end), end)
        self._excluded.batch = Batch.concat([self._excluded.batch, new], (QUERY,))

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,), excluded = batches, watermarks, self._excluded
        if len(excluded):
            batch = batch.where(~np.isin(batch.columns[QUERY], excluded.batch.columns[QUERY]))
            excluded.batch = excluded.batch.where(excluded.batch.end > watermark)
        return batch, watermark

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"removed": self._excluded}
