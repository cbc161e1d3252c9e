"""A reader of a shared plan: it takes the rows of one query, or of all instances of a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamsparql.physical.batch import Batch, IntArray
from streamsparql.run.decoder import RowDecoder
from streamsparql.run.routing import Emission, RoutedRows
from streamsparql.run.rows import Row

if TYPE_CHECKING:
    from streamsparql.run.registered import Registered
    from streamsparql.run.shared_plan import SharedPlan


class Taken(NamedTuple):
    """A part of an emission that was taken."""

    emission: Emission[PlanReader]
    part: RoutedRows


class PlanReader:
    """The rows of a plan that belong to one query, or to the instances of one, from `start` on.

    `start` is None if the rows begin with the first item of the plan's streams.
    """

    def __init__(self, query: Registered, plan: SharedPlan, start: int | None) -> None:
        self.query, self.plan, self.start = query, plan, start
        self.number = 0
        """The number of the query in the plan's table, unless it has instances."""
        self._position = plan.outbox.emissions.end
        self._instants_read = plan.outbox.instants.end
        self._rest: list[Taken] = []
        """Rows that were taken and not read: of instances that were removed, or kept for it."""
        self._end: int | None = None
        self._last_instants: list[int] | None = None
        """The instants of the last reports, once the query was removed."""

    # -- taking

    def take(self) -> list[Taken]:
        """Return the rows since the last call, by query within each step."""
        outbox = self.plan.outbox
        taken, self._rest = self._rest, []
        self.plan.with_rest.pop(self, None)
        if not self.ended:
            for emission in outbox.emissions.since(self._position):
                taken += (Taken(emission, part) for part in emission.take(self))
            self._position = outbox.emissions.end
            outbox.trim()
        return taken

    def take_instants(self) -> list[int]:
        """Return the instants of the plan's reports since the last call, from `start` on."""
        if self._last_instants is not None:
            last, self._last_instants = self._last_instants, []
            return last
        instants = self.plan.outbox.instants
        new, self._instants_read = instants.since(self._instants_read), instants.end
        self.plan.forget_instants()
        first = self._first_report()
        return new if first is None else [instant for instant in new if instant >= first]

    @property
    def instants_read(self) -> int:
        """The position of the first report that was not read."""
        return self._instants_read

    def keep(self, rows: Batch) -> None:
        """Keep final rows until they are read: of queries that are removed, or that join."""
        if not len(rows):
            return
        emission = Emission[PlanReader](rows, lambda _: self, None if self._numbered else [self])
        self._rest += (Taken(emission, part) for part in emission.take(self))
        self.plan.with_rest[self] = None

    def settle(self) -> None:
        """Take what was emitted so far, before the numbers of queries are forgotten."""
        self._rest = self.take()
        if self._rest:
            self.plan.with_rest[self] = None

    def end(self, t: int) -> None:
        """Take what was emitted so far, up to an instant; no more follows."""
        self.settle()
        self._end = t
        self.plan.with_rest.pop(self, None)
        self._last_instants = self.take_instants()

    def save(self) -> tuple[dict[str, Any], list[tuple[int, Batch]]]:
        """Return what was read, and the rows that were taken and not read, by number."""
        rest = [
            (part.number, emission.rows.part(part.first, part.after))
            for emission, part in self._rest
        ]
        return {
            "start": self.start,
            "number": self.number,
            "position": self._position,
            "instants_read": self._instants_read,
            "end": self._end,
            "last_instants": self._last_instants,
        }, rest

    def restore(self, saved: Mapping[str, Any], rest: Iterable[tuple[int, Batch]]) -> None:
        """Restore what `save` returned, in a new reader with the same start."""
        self.number = saved["number"]
        self._position, self._instants_read = saved["position"], saved["instants_read"]
        self._end, self._last_instants = saved["end"], saved["last_instants"]
        for number, rows in rest:
            emission = Emission[PlanReader](rows, lambda _: None, [])
            self._rest.append(Taken(emission, RoutedRows(0, len(rows), number)))

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the term ids of the rows that were taken and not read."""
        for taken in self._rest:
            yield from taken.emission.rows.columns.values()

    @property
    def ended(self) -> bool:
        """Whether the query was removed."""
        return self._last_instants is not None

    @property
    def _numbered(self) -> bool:
        return self.plan.table is not None

    def _first_report(self) -> int | None:
        reports = self.plan.reports
        if reports is None or self.start is None:
            return None
        return int(reports.first_report(self.start + self.plan.operators.clip.lag))

    def clipped(self, rows: Batch) -> Batch:
        """Return rows from the start to the end; those of a table begin at the start anyway."""
        if not len(rows):
            return rows
        first = self._first_report()
        if first is not None:
            return rows if self._numbered else rows.where(rows.start >= first)
        if self.plan.reports is not None:
            return rows
        begin = None if self._numbered else self.start
        if begin is not None and int(rows.start.min()) < begin:
            rows = rows.where(rows.end > begin)
            rows = rows.over(np.maximum(rows.start, begin), rows.end)
        if self._end is not None and int(rows.end.max(initial=0)) > self._end:
            # rows of static graphs are final at once, and were emitted without an end
            rows = rows.where(rows.start < self._end)
            rows = rows.over(rows.start, np.minimum(rows.end, self._end))
        return rows

    def rest(self) -> list[Batch]:
        """Return the rows that were taken and not read, and forget them."""
        taken, self._rest = self._rest, []
        return [self.clipped(e.rows.part(part.first, part.after)) for e, part in taken]

    def batches(self) -> Iterator[Batch]:
        """Yield the rows since the last call."""
        for emission, part in self.take():
            yield self.clipped(emission.rows.part(part.first, part.after))

    # -- decoding

    def rows(self, decoder: RowDecoder) -> dict[int, list[Row]]:
        """Return the rows since the last call, by start, for each query by number."""
        rows: dict[int, list[Row]] = {}
        for taken in self.take():
            rows.setdefault(taken.part.number, []).extend(self._decoded(taken, decoder))
        for own in rows.values():
            own.sort(key=attrgetter("start"))
        return rows

    def _decoded(self, taken: Taken, decoder: RowDecoder) -> list[Row]:
        emission, part = taken
        rows = emission.rows.part(part.first, part.after)
        clipped = self.clipped(rows)
        if clipped is not rows:
            return decoder.rows(clipped)
        decoded: list[Row] = emission.decoded(
            part, decoder.rows, lambda rows, a, b: rows[a:b], ("rows", decoder.names)
        )
        return decoded

    def reports(self, decoder: RowDecoder) -> list[tuple[int, dict[int, Any]]]:
        """Return the reports since the last call: an instant, and snapshots by number of a query.

        A report has the snapshots of the queries that have rows in it.
        """
        ordered = decoder.ranking is not None or decoder.form in ("construct", "describe")
        snapshots: dict[int, dict[int, Any]] = {}
        for taken in self.take():
            if ordered:
                rows = self.clipped(taken.emission.rows.part(taken.part.first, taken.part.after))
                for instant in np.unique(rows.start).tolist():
                    shown = decoder.snapshot(rows.where(rows.start == instant))
                    snapshots.setdefault(instant, {})[taken.part.number] = shown
                continue
            by_instant: dict[int, list[Row]] = {}
            for row in self._decoded(taken, decoder):
                by_instant.setdefault(row.start, []).append(row)
            for instant, own in by_instant.items():
                snapshots.setdefault(instant, {})[taken.part.number] = decoder.snapshot_of(own)
        instants = self.take_instants()
        if self.plan.reports_own_changes:
            return sorted(snapshots.items())
        return [(instant, snapshots.get(instant, {})) for instant in instants]

    def batch(self) -> Batch:
        """Return the rows since the last call, with the numbers of queries if there are any."""
        return Batch.concat(list(self.batches()), self.plan.names).ordered()
