"""What an execution of one query and the plans of a session have in common: their input.

Both have one term dictionary, static graphs, and for each stream a sorter and a way to read it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from typing import Any

from streamsparql.display import describe
from streamsparql.limits import Meter, naming
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import Operator, inputs_first
from streamsparql.physical.pipeline import Pipeline
from streamsparql.run.guard import Guard
from streamsparql.run.input import RunInput
from streamsparql.run.live_stats import OperatorStats
from streamsparql.run.notes import DataNotes
from streamsparql.sources import Accounting, Chunk, Reject, Wanted, read_graph, read_stream
from streamsparql.sources.disorder import Sorter
from streamsparql.sources.failed_cells import CellLog, merged
from streamsparql.sources.reading import Reading


class Engine(ABC):
    """The terms, static graphs and streams of a run, and the guard of its state.

    An engine that `shares_terms_with` another one uses its dictionary and static graphs. With
    `per_step` the limits of time are those of each step.
    """

    pipeline: Pipeline

    def __init__(
        self, run_input: RunInput, *, per_step: bool, shares_terms_with: Engine | None = None
    ) -> None:
        self.input, other = run_input, shares_terms_with
        self.terms: TermDictionary = TermDictionary() if other is None else other.terms
        self.guard: Guard = self._new_guard(per_step) if other is None else other.guard
        """The guard of the state of this engine and of those that share its terms."""
        self.graph_rejects: list[Reject] = [] if other is None else [*other.graph_rejects]
        """Triples of static graphs that were rejected."""
        self.graph_cells: CellLog = CellLog() if other is None else other.graph_cells
        """The cells of mapped static graphs without a value."""
        self.sorters: dict[str, Sorter] = {}
        self.readings: dict[str, Reading] = {}
        """How each stream is read, and its cells without a value."""

    def _new_guard(self, per_step: bool) -> Guard:
        if self.input.limits is None:
            return Guard()
        meter = Meter(self.input.limits, per_step)
        meter.terms = self.terms
        return Guard(meter)

    # -- input

    def _graph(self, source: Any, name: str, scope: str, quoted: bool = True) -> Batch:
        """Read a static graph."""
        strict, reading = self.input.strict, Reading(cells=self.graph_cells)
        batch, rejects = read_graph(
            source, name, self.terms, scope=scope, strict=strict, quoted=quoted, reading=reading
        )
        self.graph_rejects += rejects
        for ids in batch.columns.values():
            self.terms.keep(ids)
        return batch

    def _chunks(
        self, stream: str, source: Any, scope: str, wanted: Wanted | None, **options: Any
    ) -> Iterator[Chunk]:
        """Read the items of a stream that are wanted; the options are those of `read_stream`."""
        chunks = read_stream(
            source,
            f"<{stream}>",
            self.terms,
            scope=scope,
            wanted=wanted,
            strict=self.input.strict,
            reading=self.readings[stream],
            **options,
        )
        meter = self.guard.meter
        return chunks if meter is None else _metered(chunks, meter, f"<{stream}>")

    @abstractmethod
    def reader(
        self,
        stream: str,
        source: Any,
        first: int = 1,
        failures: list[BaseException] | None = None,
    ) -> Iterator[Chunk]:
        """Read a source of a stream, without the items that no query can match.

        `first` is the position of the first item, if other items were read before. With `failures`
        a source that raises ends there, and its exception is added to them.
        """

    # -- what is known of the input

    @property
    def last_stamp(self) -> int:
        """The greatest timestamp of all items; -1 before the first."""
        return max((sorter.seen for sorter in self.sorters.values()), default=-1)

    @property
    def accounting(self) -> Accounting:
        """The counts of the items that were read so far, over all streams."""
        return sum((sorter.accounting for sorter in self.sorters.values()), Accounting())

    @property
    def cells(self) -> CellLog:
        """The cells of mapped tables without a value, over all streams and graphs."""
        return merged([self.graph_cells, *(each.cells for each in self.readings.values())])

    def notes(self) -> DataNotes:
        """Return what a reader of the results should know about the data."""
        recognised = {name: each.stamps.recognised for name, each in self.readings.items()}
        return DataNotes(
            {name: unit for name, unit in recognised.items() if unit is not None},
            self.cells,
            self.accounting,
            max((sorter.needed_delay for sorter in self.sorters.values()), default=0),
        )

    def drain(self) -> list[Reject]:
        """Return the rejects since the last call, and clear them; the counts are not reset."""
        rejects, self.graph_rejects = self.graph_rejects, []
        for sorter in self.sorters.values():
            rejects += sorter.drain()
        return rejects

    def operator_stats(
        self, prefixes: Any, roots: Collection[Operator] = ()
    ) -> tuple[OperatorStats, ...]:
        """Return the rows and the state of each operator, those that read streams first.

        With roots, return only those of the operators from which they are computed.
        """
        state = self.pipeline.state()
        shown = inputs_first(*roots) if roots else state
        stats = []
        for operator in (each for each in self.pipeline.counts if each in shown):
            counts = self.pipeline.counts[operator]
            description = describe(operator, prefixes)
            rows = sum(counts.rows_in), counts.rows_out, state[operator]
            stats.append(OperatorStats(description.kind, description.title, *rows))
        return tuple(stats)


def _metered(chunks: Iterator[Chunk], meter: Meter, name: str) -> Iterator[Chunk]:
    """Yield chunks; check the time and the size of the terms after each."""
    with naming(lambda: f"reading {name}"):
        for chunk in chunks:
            meter.begin()
            yield chunk
