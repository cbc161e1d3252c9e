"""The decoder of rows: from batches of term ids to the forms that users read.

Rows become `Row` objects with rdflib terms, Arrow tables with terms in N-Triples syntax, snapshots
(lists of dicts, graphs, booleans) and reports. Every engine has one: it needs the form of the
query, its variables and a dictionary, and no execution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamsparql.errors import escape_controls
from streamsparql.physical.batch import UNBOUND, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.sort_keys import Ranking, sort_keys
from streamsparql.physical.operator import INFINITY
from streamsparql.rdflib_terms import to_rdflib

if TYPE_CHECKING:
    import rdflib
    from rdflib.term import Identifier

TRIPLE_NAMES = ("subject", "predicate", "object")


class Row(Mapping[str, Any]):
    """A row of a result and its validity, `[start, end)` in milliseconds.

    `row["x"]` is an rdflib term, None if `?x` is unbound. CONSTRUCT and DESCRIBE have rows with
    `subject`, `predicate` and `object`, ASK one with `answer`, which is True or False.

    >>> import streamsparql
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
    >>> (row,) = streamsparql.compile(text).run([("<a>", "<p>", '"1"', 3)])
    >>> row["o"].n3(), row.start, row.end
    ('"1"', 3, 10)
    """

    __slots__ = ("_index", "_values", "end", "start")

    def __init__(
        self, index: Mapping[str, int], values: tuple[Any, ...], start: int, end: int
    ) -> None:
        self._index, self._values = index, values
        self.start, self.end = start, end

    def __getitem__(self, name: str) -> Any:
        return self._values[self._index[name.removeprefix("?")]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Row):
            return (self.start, self.end) == (other.start, other.end) and dict(self) == dict(other)
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]

    def asdict(self) -> dict[str, Any]:
        """Return a dict of the variables and their terms."""
        return dict(self)

    def __repr__(self) -> str:
        cells = ", ".join(
            f"{name}={getattr(value, 'n3', value.__repr__)()}" for name, value in self.items()
        )
        end = "…" if self.end == INFINITY else self.end
        return escape_controls(f"Row({cells}{', ' if cells else ''}[{self.start}, {end}))")


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

    @property
    def sort_columns(self) -> tuple[str, ...]:
        """The columns of a batch that only sort its rows."""
        return () if self.ranking is None else tuple(self.ranking.columns)

    def rows(self, batch: Batch) -> list[Row]:
        """Decode a batch into rows with rdflib terms."""
        columns = [self._values(ids) for ids in list(batch.columns.values())[: len(self.names)]]
        values: Any = zip(*columns, strict=True) if columns else [()] * len(batch)
        times = zip(batch.start.tolist(), batch.end.tolist(), strict=True)
        return [
            Row(self._index, terms, start, end)
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
            return [row.asdict() for row in rows]
        return _graph(rows)

    def reports(self, rows: Batch, instants: Sequence[int]) -> Iterator[tuple[int, Any]]:
        """Decode the rows of reports: pairs of an instant and a snapshot."""
        first = np.searchsorted(rows.start, instants, "left").tolist()
        after = np.searchsorted(rows.start, instants, "right").tolist()
        for instant, low, high in zip(instants, first, after, strict=True):
            yield instant, self.snapshot(rows.part(low, high))

    def table(self, batches: Sequence[Batch], reports: bool) -> pa.Table:
        """Decode batches into an Arrow table: terms in N-Triples syntax, and columns of times.

        Terms are dictionary-encoded. Each batch becomes a chunk of the table.
        """
        columns = [list(batch.columns.values()) for batch in batches]
        terms = {name: self._texts([c[k] for c in columns]) for k, name in enumerate(self.names)}
        starts = pa.chunked_array([batch.start for batch in batches])
        ends = [] if reports else [pa.chunked_array([batch.end for batch in batches])]
        times = zip(self.time_names(reports), [starts, *ends], strict=True)
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
