"""Streams of streams: the output of a query is a stream, which other queries read by its name.

The triples of a report are items that are stamped with the instant of the report (SEMANTICS.md,
R27). A query that reads an output reads the operator of these reports, so a network of queries is
one larger DAG in one pipeline: the items of a step pass through all levels within the step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from streamsparql.errors import EngineError
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operators.outputs import OutputStream
from streamsparql.physical.operators.queries import SelectQueries
from streamsparql.physical.operators.report import Reports

if TYPE_CHECKING:
    from streamsparql.run.shared_plan import SharedPlan


class FedStream:
    """The output of a query: the operators that read it, and the items of the last milliseconds."""

    def __init__(
        self, name: str, query: str, plan: SharedPlan, terms: TermDictionary, history: int
    ) -> None:
        self.name, self.query, self.plan = name, query, plan
        self._terms, self._history = terms, history
        self._accesses: dict[str | None, OutputStream] = {}
        self._kept: deque[Batch] = deque()

    def access(self, stamp: str | None = None) -> OutputStream:
        """Return the operator of its items, with a column of their stamps if that has a name."""
        if stamp not in self._accesses:
            source = self.plan.operators.output
            assert source is not None
            self._accesses[stamp] = OutputStream(source, self.name, self._terms, stamp)
        return self._accesses[stamp]

    def keep(self, items: Batch, mark: int) -> None:
        """Keep the items of a step for queries to come."""
        reports = self.plan.operators.output
        if isinstance(reports, SelectQueries):
            (reports,) = reports.inputs
        if isinstance(reports, Reports) and reports is not self.plan.reports:
            reports.done()  # no caller reads these instants
        if len(items) and self._history:
            self._kept.append(items)
        while self._kept and int(self._kept[0].start[-1]) < mark - self._history:
            self._kept.popleft()

    def kept(self, mark: int) -> Iterator[Batch]:
        """Yield the items that are kept, of the last milliseconds before an instant."""
        for batch in self._kept:
            yield batch.where(batch.start >= mark - self._history)

    @property
    def accesses(self) -> Collection[OutputStream]:
        """The operators of its items that plans read."""
        return self._accesses.values()

    @property
    def retained(self) -> list[Batch]:
        """The items that are kept, as they were reported."""
        return [*self._kept]

    def restore(self, items: Iterable[Batch]) -> None:
        """Keep items that another process has kept."""
        self._kept.extend(items)

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the term ids of the items that are kept."""
        for batch in self._kept:
            yield from batch.columns.values()


def refuse_cycle(
    query: str, output: str, streams: Iterable[str], outputs: Mapping[str, FedStream]
) -> None:
    """Raise an error if a query would read its own output, directly or through other queries.

    >>> refuse_cycle("a", "out", ["s"], {})
    >>> refuse_cycle("a", "out", ["s", "out"], {})
    Traceback (most recent call last):
    streamsparql.errors.EngineError: a cycle: a reads <out>, the output of a
    """
    pending = [(stream, f"{query} reads <{stream}>") for stream in streams]
    seen = set[str]()
    while pending:
        stream, way = pending.pop()
        if stream == output:
            raise EngineError(f"a cycle: {way}, the output of {query}")
        known = outputs.get(stream)
        if known is not None and stream not in seen:
            seen.add(stream)
            way += f", the output of {known.query}"
            pending += (
                (below, f"{way}, which reads <{below}>") for below in known.plan.shape.streams
            )
