"""The decoder of rows: from batches of term ids to the forms that users read.

Rows become `Row` objects with rdflib terms, Arrow tables of terms in N-Triples syntax or of native
values, snapshots (lists of dicts, graphs, booleans) and reports. Every engine has one: it needs the
form of the query, its variables and a dictionary, and no execution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamsparql.physical.batch import UNBOUND, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.sort_keys import Ranking, sort_keys
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import shown_times
from streamsparql.rdflib_terms import to_rdflib
from streamsparql.run.rows import Detection, Report, Row, SnapshotRow
from streamsparql.values.columns import native_column
from streamsparql.values.native_column import NativeColumn
from streamsparql.values.time_columns import instant_column

if TYPE_CHECKING:
    import rdflib
    from rdflib.term import Identifier

TRIPLE_NAMES = ("subject", "predicate", "object")


class RowDecoder:
    """A decoder of the rows of a query of this form, whose terms are in this dictionary.

    With a `ranking`, batches have its sort columns after those of the result.
    """

    def __init__(
        self,
        form: str,
        variables: Sequence[str],
        terms: TermDictionary,
        ranking: Ranking | None = None,
    ) -> None:
        self.form, self.terms, self.ranking = form, terms, ranking
        self.names = tuple({"select": variables, "ask": ("answer",)}.get(form, TRIPLE_NAMES))
        """The columns of the result, hidden ones left out."""
        self._index = {name: k for k, name in enumerate(self.names)}

    def ordered_by(self, ranking: Ranking | None) -> RowDecoder:
        """Return a decoder of rows that are sorted by their own columns."""
        return RowDecoder(self.form, self.names, self.terms, ranking)

    @property
    def sort_columns(self) -> tuple[str, ...]:
        """The columns of a batch that only sort its rows."""
        return () if self.ranking is None else tuple(self.ranking.columns)

    def rows(self, batch: Batch) -> list[Row]:
        """Decode a batch into rows with rdflib terms."""
        if not len(batch):
            return []
        columns = [self._values(ids) for ids in list(batch.columns.values())[: len(self.names)]]
        values: Any = zip(*columns, strict=True) if columns else [()] * len(batch)
        starts, ends = shown_times(batch)
        times = zip(starts.tolist(), ends.tolist(), strict=True)
        kind = Detection if SINCE in batch.columns else Row
        return [
            kind(self._index, terms, start, end)
            for terms, (start, end) in zip(values, times, strict=True)
        ]

    def _values(self, ids: IntArray) -> list[Any]:
        distinct, places = np.unique(ids, return_inverse=True)
        terms = self.terms.terms_of(distinct)
        if self.form == "ask":
            values: list[Any] = [
                term is not None and str(term).startswith('"true"') for term in terms
            ]
        else:
            values = [None if term is None else to_rdflib(term) for term in terms]
        return [values[place] for place in places.tolist()]

    def snapshot(self, batch: Batch) -> Any:
        """Decode a snapshot: a list of dicts, in the order of ORDER BY; a graph; a boolean."""
        if self.ranking is not None and len(batch):
            keys = sort_keys(self.ranking, batch, self.terms)
            order = sorted(range(len(batch)), key=keys.__getitem__)
            batch = batch.take(np.array(order, np.int64))
        return self.snapshot_of(self.rows(batch))

    def snapshot_of(self, rows: Sequence[Row]) -> Any:
        """Return decoded rows of one instant, which are in order, as a snapshot."""
        if self.form == "ask":
            return rows[0]["answer"] if rows else None
        if self.form == "select":
            return [SnapshotRow(row) for row in rows]
        return _graph(rows)

    def reports(self, rows: Batch, instants: Sequence[int]) -> Iterator[Report]:
        """Decode the rows of reports."""
        first = np.searchsorted(rows.start, instants, "left").tolist()
        after = np.searchsorted(rows.start, instants, "right").tolist()
        for instant, low, high in zip(instants, first, after, strict=True):
            yield Report(instant, self.snapshot(rows.part(low, high)))

    def native_table(self, rows: Batch, reports: bool, exact: bool = True) -> pa.Table:
        """Decode a batch into an Arrow table of native values, and of timestamps.

        Decimals are Arrow decimals if `exact`, else the nearest doubles.
        """
        ids = [rows.columns[name] for name in list(rows.columns)[: len(self.names)]]
        terms = [native_column(column, self.terms, exact) for column in ids]
        times = [instant_column(t) for t in ((rows.start,) if reports else (rows.start, rows.end))]
        names = [*self.names, *self.time_names(reports)]
        columns = [*terms, *(NativeColumn(time, {}) for time in times)]
        fields = [column.field(name) for name, column in zip(names, columns, strict=True)]
        return pa.table([column.values for column in columns], pa.schema(fields))

    def table(self, batches: Sequence[Batch], reports: bool) -> pa.Table:
        """Decode batches into an Arrow table: terms in N-Triples syntax, and columns of times.

        Terms are dictionary-encoded. Each batch becomes a chunk of the table.
        """
        columns = [list(batch.columns.values()) for batch in batches]
        terms = {name: self._texts([c[k] for c in columns]) for k, name in enumerate(self.names)}
        spans = [(batch.start,) if reports else shown_times(batch) for batch in batches]
        shown = map(pa.chunked_array, zip(*spans, strict=True))
        times = zip(self.time_names(reports), shown, strict=True)
        return pa.table({**terms, **dict(times)})

    def time_names(self, reports: bool) -> tuple[str, ...]:
        """Return the names of the columns of times."""
        return time_columns(self.names, *(("instant",) if reports else ("start", "end")))

    def in_order(self, rows: Batch) -> Batch:
        """Return the rows of reports by instant, then by ORDER BY, or triples by their text."""
        if not len(rows):
            return rows
        starts = rows.start.tolist()
        if self.ranking is not None:
            keys = sort_keys(self.ranking, rows, self.terms)
            order = sorted(range(len(rows)), key=lambda k: (starts[k], keys[k]))
        elif self.form in ("construct", "describe"):
            texts = [self.terms.texts(ids).to_pylist() for ids in rows.columns.values()]
            triples = list(zip(starts, *texts, strict=True))
            order = sorted(range(len(rows)), key=triples.__getitem__)
        else:
            return rows.ordered()
        return rows.take(np.array(order, np.int64))

    def _texts(self, chunks: Sequence[IntArray]) -> pa.DictionaryArray | pa.ChunkedArray:
        """Return a column of texts; each distinct term is converted once."""
        if len(chunks) == 1:
            return self.terms.dictionary(chunks[0])
        encoded = pa.chunked_array([pa.array(ids) for ids in chunks]).dictionary_encode()
        ids = encoded.chunk(0).dictionary.to_numpy()
        texts = self.terms.texts(ids)
        columns = []
        for chunk in encoded.chunks:
            codes = chunk.indices.to_numpy()
            null = ids[codes] == UNBOUND if UNBOUND in ids else None
            codes = pa.array(codes, mask=null)
            columns.append(pa.DictionaryArray.from_arrays(codes, texts, safe=False))
        return pa.chunked_array(columns)


def _graph(rows: Sequence[Row]) -> rdflib.Graph:
    import rdflib

    graph = rdflib.Graph()
    for row in rows:
        triple: tuple[Identifier, Identifier, Identifier] = (
            row["subject"],
            row["predicate"],
            row["object"],
        )
        graph.add(triple)
    return graph


def time_columns(variables: Sequence[str], *names: str) -> tuple[str, ...]:
    """Return the names of columns of times, with an underscore if a variable has the same name.

    >>> time_columns(["x", "end"], "start", "end")
    ('start', 'end_')
    """
    columns = []
    for name in names:
        while name in variables:
            name += "_"
        columns.append(name)
    return tuple(columns)
