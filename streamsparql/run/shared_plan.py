"""A plan that runs in a session, for one query or for many.

A *plain* plan has no parameters. Its queries are equal, up to the names of variables, and have the
same rows, each from its own start on. A plan with a *table* (physical/operators/queries.py) has the
rows of all queries of the table, each with the number of its query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from streamsparql.algebra.plan import Plan
from streamsparql.algebra.terms import Term
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.inline_ids import INTEGER_BASE
from streamsparql.physical.expressions.sort_keys import Ranking
from streamsparql.physical.hidden import QUERY
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.physical.operators.access import Always, Clock
from streamsparql.physical.operators.queries import QueryTable, SelectQueries
from streamsparql.physical.operators.report import Clip, Reports, TemporalCoalesce
from streamsparql.run.reports import Reporting
from streamsparql.run.routing import Emission, Outbox

if TYPE_CHECKING:
    from streamsparql.run.plan_reader import PlanReader
    from streamsparql.run.registered import Registered


_MANY = 1024
"""The number of instants of reports that are kept before those that were read are forgotten."""


class Shape(NamedTuple):
    """What queries must have in common to share a plan, except for constants."""

    skeleton: Plan
    form: str
    columns: tuple[str, ...]
    """The columns of the result, by their canonical names."""
    streams: tuple[str, ...]
    """The streams that the queries name; the first item of these begins the horizon."""
    graphs: tuple[str, ...]
    """The static graphs that the queries name, and that the session does not have."""
    report: Reporting | None
    output: str | None
    """The stream that the query feeds: two queries never feed the same one."""
    fed: Reporting | None
    """The reports that it feeds to that stream."""
    optimize: bool


class Operators(NamedTuple):
    """The operators of a plan that a session refers to."""

    clock: Clock
    table: QueryTable | None
    select: SelectQueries | None
    clip: Clip
    sink: Reports | TemporalCoalesce
    output: Operator | None
    """The operator of the reports that the plan feeds to a stream, if there is one."""
    columns: tuple[str, ...]
    """The columns of the sink that are shown, and those that sort its rows."""
    ranking: Ranking | None

    def with_shared(self, shared: Mapping[Operator, Operator]) -> Operators:
        """Return the operators, of which others take the places of some."""
        return Operators(*(shared.get(x, x) if isinstance(x, Operator) else x for x in self))  # type: ignore[arg-type]


class Directory(NamedTuple):
    """The queries of a plan, and the numbers of them and of their instances."""

    readers: Sequence[PlanReader]
    place: Mapping[PlanReader, int]
    """The place of each query in `readers`."""
    names: pa.Array
    """The names of the queries."""
    alike: Sequence[BoolArray]
    """Masks of the queries that have the same columns."""
    owners: OwnerLookup


class OwnerLookup:
    """The places of the queries that have numbers, which ascend because they were added in order.

    >>> OwnerLookup(np.array([5, 7]), np.array([0, 1])).of(np.array([7, 6, 5, 9]))
    array([ 1, -1,  0, -1])
    """

    def __init__(self, numbers: IntArray, places: IntArray) -> None:
        self._numbers, self._places = numbers, places
        self._dense: IntArray | None = None
        """The place of each number from the first on, if they are about consecutive."""
        if len(numbers) and numbers[-1] - numbers[0] < _DENSE * len(numbers):
            self._dense = np.full(int(numbers[-1] - numbers[0]) + 2, -1)
            self._dense[numbers - numbers[0]] = places

    def of(self, numbers: IntArray) -> IntArray:
        """Return the places of the queries that have numbers; -1 for those that were removed."""
        known = self._numbers
        if not len(known):
            return np.full(len(numbers), -1)
        if self._dense is not None:
            at = numbers - known[0]
            return self._dense[np.where((at < 0) | (at >= len(self._dense)), -1, at)]
        at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.where(known[at] == numbers, self._places[at], -1)


_DENSE = 4
"""Numbers that are at most this many times as far apart as consecutive ones are looked up."""


class SharedPlan:
    """One plan, its queries, and the rows that these have not read yet."""

    def __init__(
        self,
        shape: Shape,
        fixed: Mapping[str, Term],
        operators: Operators,
        since: Mapping[str, int],
        begin: int | None,
    ) -> None:
        self.shape, self.fixed, self.operators = shape, dict(fixed), operators
        self.since = dict(since)
        """The stamp of each stream from which on the plan has its items; 0 for all items."""
        self.begin = begin
        """The instant from which on the plan has rows; None for the first item of its streams."""
        self.outbox = Outbox["PlanReader"]()
        self.ahead: Batch | None = None
        """Rows of a plan without a table that were emitted and hold at the watermark or later."""
        self.with_rest: dict[PlanReader, None] = {}
        """The queries that have further rows: of removed instances, or from before they joined."""
        self.readers: dict[PlanReader, None] = {}
        """The queries that read the plan, each with its instances."""
        self.calling: dict[PlanReader, None] = {}
        """The queries with an `on_row`."""
        self._collected = 0, 0
        self.fresh = True
        """Whether it has not made a step, so that a query that is added misses nothing."""
        self.since_cut = self.rows_cut = 0
        """The number of items, and of rows, since its rows that hold were cut and at that time."""
        self._of_number: dict[int, PlanReader] = {}
        self._directory: Directory | None = None

    @property
    def table(self) -> QueryTable | None:
        """The table of its queries, unless the plan is plain."""
        return self.operators.table

    @property
    def reports(self) -> Reports | None:
        """The operator of its reports, if it has reports."""
        sink = self.operators.sink
        return sink if isinstance(sink, Reports) else None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that its queries have values of, in the order of the table's columns."""
        return () if self.table is None else self.table.parameters

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of its rows: those that are shown, that sort, and the number of a query."""
        return (*self.operators.columns, *((QUERY,) if self.table is not None else ()))

    @property
    def is_periodic(self) -> bool:
        """Whether it reports snapshots at regular instants."""
        report = self.shape.report
        return report is not None and report.kind == "rstream" and report.every is not None

    @property
    def reports_own_changes(self) -> bool:
        """Whether a query has a report at the instants at which its own rows change."""
        report = self.shape.report
        return report is not None and report.kind != "rstream" and report.every is None

    def admits(self, constants: Mapping[str, Term]) -> bool:
        """Return whether a query with these constants, besides parameters, can join the plan."""
        if any(constants.get(name) != term for name, term in self.fixed.items()):
            return False
        if self.table is not None:
            return True
        # Rows and whole snapshots can be clipped; changes since the start of a query cannot.
        return self.fresh or (
            bool(self.shape.streams) and (self.shape.report is None or self.is_periodic)
        )

    # -- queries

    def add(
        self, reader: PlanReader, numbers: IntArray, values: Sequence[IntArray], since: int
    ) -> None:
        """Add queries to the table from an instant on, which is not before the watermark."""
        assert self.table is not None
        self._of_number.update(dict.fromkeys(numbers.tolist(), reader))
        self._directory = None
        self.table.add(numbers, values, since)

    def remove(self, numbers: IntArray) -> None:
        """Remove queries from the table; their rows are not emitted any more."""
        table, (_, _, select, _, _, output, *_) = self.table, self.operators
        assert table is not None
        table.remove(numbers)
        for each in (select, output):
            if isinstance(each, SelectQueries):
                each.exclude(numbers, max(table.until, 1))
        for number in numbers.tolist():
            self._of_number.pop(number, None)
        self._directory = None

    def owner_of(self, number: int) -> PlanReader | None:
        """Return the query that has a number; None if it was removed."""
        return self._of_number.get(number)

    @property
    def numbers(self) -> Mapping[int, PlanReader]:
        """The numbers of its queries and instances, with the queries, in order."""
        return self._of_number

    @property
    def collected(self) -> tuple[int, int]:
        """The positions up to which rows and instants were handed to each `on_row`."""
        return self._collected

    def restore(self, numbers: Mapping[int, PlanReader], collected: tuple[int, int]) -> None:
        """Restore `numbers` and `collected`; the state of the table is that of its operator."""
        self._of_number, self._collected = dict(numbers), collected
        self._directory = None

    def join(self, reader: PlanReader) -> None:
        """Add a query, which reads the rows from its start on."""
        self.readers[reader] = None
        if reader.query.on_row is not None:
            self.calling[reader] = None
        self._directory = None
        if self.ahead is not None and reader.start is not None:
            reader.keep(self.ahead.where(self.ahead.end > reader.start))

    def leave(self, reader: PlanReader) -> None:
        """Remove a query."""
        del self.readers[reader]
        self.calling.pop(reader, None)
        self._directory = None

    @property
    def directory(self) -> Directory:
        """The queries and their numbers, as arrays."""
        if self._directory is None:
            readers = [*self.readers]
            place = {reader: k for k, reader in enumerate(readers)}
            numbers = np.fromiter(self._of_number, np.int64, len(self._of_number))
            owners = np.fromiter(
                (place[reader] for reader in self._of_number.values()), np.int64, len(numbers)
            )
            names = pa.array([reader.query.name for reader in readers], pa.string())
            kinds = [(r.query.decoder.names, r.query.parameters) for r in readers]
            alike = [np.array([each == kind for each in kinds]) for kind in dict.fromkeys(kinds)]
            self._directory = Directory(readers, place, names, alike, OwnerLookup(numbers, owners))
        return self._directory

    # -- rows

    def emit(self, rows: Batch, mark: int) -> None:
        """Store the output of a step, up to a watermark, until the queries read it."""
        self.fresh = False
        if self.table is None and self.reports is None:
            self._keep_ahead(rows, mark)
        instants = [] if self.reports is None else self.reports.done()
        if not len(rows) and not instants:
            return
        owners = None if self.table is not None else list(self.readers)
        self.outbox.put(Emission(rows.project(self.names), self.owner_of, owners), instants)

    def _keep_ahead(self, rows: Batch, mark: int) -> None:
        """Keep the rows that hold at the watermark or later for queries that are still to join.

        A row is emitted before its end if what follows it is known, such as the next value of a
        group whose window moves in steps.
        """
        ahead = rows.where(rows.end > mark).project(self.names)
        if self.ahead is not None:
            ahead = Batch.concat([self.ahead.where(self.ahead.end > mark), ahead])
        self.ahead = ahead if len(ahead) else None

    def due_calls(self) -> list[Registered]:
        """Return the queries whose `on_row` is to be called with what was emitted."""
        outbox = self.outbox
        if self._collected == (outbox.emissions.end, outbox.instants.end):
            return []
        emissions = outbox.emissions.since(self._collected[0])
        self._collected = outbox.emissions.end, outbox.instants.end
        if self.reports is not None and not self.reports_own_changes:
            return [reader.query for reader in self.calling]
        with_rows = dict.fromkeys(reader for emission in emissions for reader in emission.parts)
        return [reader.query for reader in with_rows if reader in self.calling]

    def readers_with_rows(self) -> Iterator[PlanReader]:
        """Yield the queries that have rows that they have not read."""
        for emission in self.outbox.emissions.since(0):
            yield from emission.parts
        yield from self.with_rest

    def forget_instants(self) -> None:
        """Forget the instants of reports that all queries have read, once there are many."""
        instants = self.outbox.instants
        if len(instants) > 2 * len(self.readers) + _MANY:
            read = min((reader.instants_read for reader in self.readers), default=instants.end)
            instants.drop_before(read)

    def open_rows(self, until: int, numbers: IntArray | None = None) -> Batch:
        """Return the rows of queries that hold at an instant, cut there, in canonical form."""
        sink = self.operators.sink
        if isinstance(sink, Reports):
            return sink.nothing().project(self.names)
        rows = sink.open_rows()
        kept = rows.start < until
        if numbers is not None:
            kept &= np.isin(rows.columns[QUERY], numbers)
        rows = rows.where(kept)
        rows = rows.over(rows.start, np.minimum(rows.end, until))
        rows = rows.project(self.names)
        final, _ = TemporalCoalesce(Always(rows)).step([rows], [INFINITY], False)
        return final

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the term ids of the rows that were not read yet, and of instances."""
        yield from self.outbox.retained_ids()
        if self.ahead is not None:
            yield from self.ahead.columns.values()
        for reader in self.readers:
            yield from reader.retained_ids()
            if reader.query.instances is not None:
                yield from reader.query.instances.retained_ids()


def numbers_from(first: int, count: int) -> IntArray:
    """Return the ids of consecutive numbers of queries.

    >>> numbers_from(1, 2) - INTEGER_BASE
    array([1, 2])
    """
    return np.arange(first, first + count, dtype=np.int64) + INTEGER_BASE
