"""What a run gives: rows with their validity, snapshots, reports (SEMANTICS.md section 6)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamsparql.errors import EngineError
from streamsparql.look.explain.boxes.box import visible
from streamsparql.physical.batch import UNBOUND, Batch, IntArray
from streamsparql.physical.expressions.sort_keys import sort_keys
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.operators.access import Always
from streamsparql.physical.operators.report import TemporalCoalesce
from streamsparql.physical.state.heap import Heap
from streamsparql.rdflib_terms import to_rdflib
from streamsparql.run.execution import (
    Execution,
    Reporting,
    RunInput,
    graphs_read,
    reporting,
    reports,
    reports_asked,
)
from streamsparql.sources import Mapped, Reject
from streamsparql.sources.paths import is_endless, path_of

if TYPE_CHECKING:
    import pandas as pd
    import rdflib
    from rdflib.term import Identifier

    from streamsparql.look.jupyter.picture import Picture
    from streamsparql.query import Query
    from streamsparql.run.replay import Replay
    from streamsparql.sinks import Layout

TRIPLE_NAMES = ("subject", "predicate", "object")


class Row(Mapping[str, Any]):
    """A row of a result and when it holds, `[start, end)` in milliseconds.

    `row["x"]` is an rdflib term, None where `?x` is unbound. CONSTRUCT and DESCRIBE give rows with
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
        """The variables with their terms."""
        return dict(self)

    def __repr__(self) -> str:
        cells = ", ".join(
            f"{name}={getattr(value, 'n3', value.__repr__)()}" for name, value in self.items()
        )
        end = "…" if self.end == INFINITY else self.end
        return f"Row({cells}{', ' if cells else ''}[{self.start}, {end}))"


class Shape:
    """How the columns of a run's batches become what users see."""

    def __init__(self, query: Query, run: Execution) -> None:
        self.form = query.form
        self.terms, self.ranking = run.terms, run.ranking
        self.names = {"select": query.variables, "ask": ("answer",)}.get(query.form, TRIPLE_NAMES)
        self._index = {name: k for k, name in enumerate(self.names)}

    def rows(self, batch: Batch) -> list[Row]:
        """The rows with rdflib's terms."""
        columns = [self._values(ids) for ids in list(batch.columns.values())[: len(self.names)]]
        cells: Any = zip(*columns, strict=True) if columns else [()] * len(batch)
        times = zip(batch.start.tolist(), batch.end.tolist(), strict=True)
        return [
            Row(self._index, values, start, end)
            for values, (start, end) in zip(cells, times, strict=True)
        ]

    def _values(self, ids: Any) -> list[Any]:
        distinct, places = np.unique(ids, return_inverse=True)
        terms = self.terms.terms_of(distinct)
        if self.form == "ask":
            found: list[Any] = [
                term is not None and str(term).startswith('"true"') for term in terms
            ]
        else:
            found = [None if term is None else to_rdflib(term) for term in terms]
        return [found[place] for place in places.tolist()]

    def snapshot(self, batch: Batch) -> Any:
        """A snapshot's rows as users get them: a list of dicts, a graph, a boolean."""
        if self.ranking is not None and len(batch):
            keys = sort_keys(self.ranking, batch, self.terms)
            order = sorted(range(len(batch)), key=keys.__getitem__)
            batch = batch.take(np.array(order, np.int64))
        rows = self.rows(batch)
        if self.form == "ask":
            return rows[0]["answer"] if rows else None
        if self.form == "select":
            return [row.asdict() for row in rows]
        return _graph(rows)

    def table(self, parts: Sequence[Batch], reports: bool) -> pa.Table:
        """Rows as Arrow: dictionary-encoded terms in N-Triples syntax, and columns of times.

        Parts become chunks; long columns are not put together.
        """
        columns = [list(part.columns.values()) for part in parts]
        made = {name: self._written([c[k] for c in columns]) for k, name in enumerate(self.names)}
        starts = pa.chunked_array([part.start for part in parts])
        times = [starts] if reports else [starts, pa.chunked_array([p.end for p in parts])]
        return pa.table({**made, **dict(zip(self.time_names(reports), times, strict=True))})

    def time_names(self, reports: bool) -> tuple[str, ...]:
        """How the columns of times are called."""
        return time_columns(self.names, *(("instant",) if reports else ("start", "end")))

    def _written(self, parts: Sequence[IntArray]) -> pa.DictionaryArray | pa.ChunkedArray:
        """A column with each term written once."""
        if len(parts) == 1:
            return self.terms.dictionary(parts[0])
        encoded = pa.chunked_array([pa.array(ids) for ids in parts]).dictionary_encode()
        ids = encoded.chunk(0).dictionary.to_numpy()
        texts = self.terms.texts(ids)
        chunks = []
        for chunk in encoded.chunks:
            codes = chunk.indices.to_numpy()
            null = ids[codes] == UNBOUND if UNBOUND in ids else None
            codes = pa.array(codes, mask=null)
            chunks.append(pa.DictionaryArray.from_arrays(codes, texts, safe=False))
        return pa.chunked_array(chunks)


def _graph(rows: Sequence[Row]) -> rdflib.Graph:
    import rdflib

    made = rdflib.Graph()
    for row in rows:
        triple: tuple[Identifier, Identifier, Identifier] = (
            row["subject"],
            row["predicate"],
            row["object"],
        )
        made.add(triple)
    return made


def time_columns(variables: Sequence[str], *names: str) -> tuple[str, ...]:
    """The names of columns of times: where a variable is called so, with an underscore.

    >>> time_columns(["x", "end"], "start", "end")
    ('start', 'end_')
    """
    found = []
    for name in names:
        while name in variables:
            name += "_"
        found.append(name)
    return tuple(found)


class First(NamedTuple):
    """The first rows of a result."""

    tables: list[pa.Table]
    more: bool
    """Whether there are more."""
    rejected: int
    """How many items were late or could not be read so far."""
    example: Reject | None
    """The first of these."""

    def with_rejects(self, rejects: Sequence[Reject]) -> First:
        """The same with more rejects."""
        example = next(iter(rejects), None) if self.example is None else self.example
        return self._replace(rejected=self.rejected + len(rejects), example=example)


def left_out(rejected: int, example: Reject | None) -> str:
    """What is said of so many rejects, of which one is shown; nothing where there are none.

    >>> left_out(2, Reject("a.nq", 7, "late by 8 ms", None, "line"))
    '2 items were late or not read; result.late says why: a.nq, line 7: late by 8 ms'
    """
    if example is None:
        return ""
    count = "one item was" if rejected == 1 else f"{rejected:,} items were"
    return visible(f"{count} late or not read; result.late says why: {example}")


class Result:
    """The result of a query over a whole history. Nothing is computed before it is asked for.

    Iterating gives rows in the canonical form, by start: the k-th row of equal ones holds where
    their multiplicity is k or more.

    >>> import streamsparql
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
    >>> result = streamsparql.compile(text).run([("<a>", "<p>", '"1"', t) for t in (3, 6)])
    >>> print(result)
    start  end  ?o
        3   10  "1"
        6   10  "1"
    """

    _partly = False
    """Whether somebody began to take rows and did not come to the end."""

    def __init__(self, query: Query, given: RunInput, replayable: bool) -> None:
        self._query, self._given = query, given
        self._replayable = replayable
        self._run = Execution(query, given)
        self._shape = Shape(query, self._run)
        self._source = self._run.replay()
        self._started = False
        self._late: list[Reject] | None = None

    # -- rows

    def __iter__(self) -> Iterator[Row]:
        if self._started or self._run.ranking is not None:
            yield from self._shape.rows(self._canonical())
            return
        self._started = self._partly = True
        ready, given = Heap(self._run.sink.names), 0
        for batch in self._source:
            ready.push(batch)
            known = ready.release(self._run.pipeline.watermark)
            given += len(known)
            yield from self._shape.rows(known)
        rows = self._canonical()  # somebody may have asked for a snapshot meanwhile, thus for all
        yield from self._shape.rows(rows.part(given, len(rows)))

    def snapshot(self, t: int) -> Any:
        """What holds at the instant `t`.

        SELECT: a list of dicts, a bag, in the order of ORDER BY. ASK: a bool, None outside of the
        horizon. CONSTRUCT and DESCRIBE: an rdflib graph.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> result = streamsparql.compile(text).run([("<a>", "<p>", "<b>", 3)])
        >>> result.snapshot(9), result.snapshot(10)
        ([{'o': rdflib.term.URIRef('b')}], [])
        """
        rows = self._all()
        return self._shape.snapshot(rows.where((rows.start <= t) & (t < rows.end)))

    def to_arrow(self, report: str | None = None, every: int | None = None) -> pa.Table:
        """The rows as an Arrow table: a column per variable, with terms in N-Triples syntax.

        The columns are dictionary-encoded. `start` and `end` tell when a row holds; of a report's
        rows, where one is asked for, `instant` tells which report they are in.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> result = streamsparql.compile(text).run([("<a>", "<p>", "<b>", 3)])
        >>> result.to_arrow().to_pydict()
        {'o': ['<b>'], 'start': [3], 'end': [10]}
        >>> result.to_arrow(report="rstream").to_pydict()
        {'o': ['<b>'], 'instant': [10]}
        """
        if report is None and every is None:
            rows = self._canonical()
            return self._shape.table([rows], reports=False)
        shape, parts, _ = self._reported(report, every)
        return shape.table(parts, reports=True)

    def to_pandas(self, report: str | None = None, every: int | None = None) -> pd.DataFrame:
        """The same as a pandas frame of strings and integers.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> streamsparql.compile(text).run([("<a>", "<p>", "<b>", 3)]).to_pandas()
             o  start  end
        0  <b>      3   10
        """
        if find_spec("pandas") is None:
            raise EngineError("to_pandas needs pandas: pip install 'streamsparql[pandas]'")
        table = self.to_arrow(report, every)
        names = self._shape.names
        plain = [table[n].cast(pa.string()) if n in names else table[n] for n in table.column_names]
        frame: pd.DataFrame = pa.table(plain, names=table.column_names).to_pandas()
        return frame

    def write(
        self,
        target: str | os.PathLike[str] | IO[Any],
        format: str | None = None,  # noqa: A002 -- the public name
        *,
        report: str | None = None,
        every: int | None = None,
        timestamps: str | None = None,
    ) -> int:
        """Writes the rows to a file, or those of reports where they are asked for; how many.

        The format is table, csv, jsonl, nq (of triples) or parquet; without one it is what the
        file's extension says (`.gz` and `.zst` after it pack), and a table for an open file.
        `timestamps` are ms, iso (UTC) or local. Rows go out as they become known.

        >>> import streamsparql, sys
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> result = streamsparql.compile(text).run([("<a>", "<p>", '"1"', 3)])
        >>> result.write(sys.stdout, "jsonl")
        {"o": {"type": "literal", "value": "1"}, "start": 3, "end": 10}
        1
        """
        from streamsparql.sinks import check_target, open_sink

        wanted = reports_asked(self._query, report, every)
        given = self._given
        graphs = graphs_read(self._query, given.graph, given.graphs)
        check_target(target, [*given.streams.values(), *graphs])
        tables, layout = self._written(wanted, timestamps)
        first = next(tables, None)  # what fails at once leaves an older file alone
        count = 0
        with open_sink(target, format, layout) as sink:
            for table in chain(() if first is None else (first,), tables):
                sink.write(table)
                count += len(table)
        return count

    def _written(
        self, wanted: Reporting | None, timestamps: str | None
    ) -> tuple[Iterator[pa.Table], Layout]:
        """The tables to be written, and their layout."""
        from streamsparql.run.replay import Replay, in_order, layout_of

        if not self._started and self._replayable:
            replay = Replay(self._query, self._given, report=wanted, shares_terms_with=self._run)
            layout = layout_of(self._query, replay.shape, wanted is not None, timestamps)
            return self._replayed(replay), layout
        if wanted is None:
            layout = layout_of(self._query, self._shape, False, timestamps)
            return iter([self._shape.table([self._canonical()], False)]), layout
        shape, parts, _ = self._reported(wanted.kind, wanted.every)
        rows = in_order(shape, Batch.concat(parts))
        return iter([shape.table([rows], True)]), layout_of(self._query, shape, True, timestamps)

    def _replayed(self, replay: Replay) -> Iterator[pa.Table]:
        """What a replay gives; at its end it is known what was late."""
        yield from replay.tables()
        self._late = [*self._run.rejects, *replay.drain()]

    @property
    def late(self) -> list[Reject]:
        """What is not part of the result: late items, and what could not be read, with reasons."""
        if self._late is None:
            self._all()
            self._late = self._run.late()
        return self._late

    # -- reports

    def report(
        self, kind: str | None = None, every: int | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Pairs of a report's instant and its rows: "rstream", "istream" or "dstream".

        The kind and the period are those that the query asks for, where they are not given; a query
        that asks for no kind gives whole snapshots. Rows come as `snapshot` gives them; of an ASK
        there is a boolean, or None where its answer is no different.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> result = streamsparql.compile(text).run([("<a>", "<p>", "<b>", t) for t in (3, 12)])
        >>> [(instant, len(rows)) for instant, rows in result.report("rstream")]
        [(10, 1), (20, 1), (30, 0)]
        """
        shape, parts, instants = self._reported(kind, every)
        return by_instant(shape, Batch.concat(parts), instants)

    def _reported(
        self, kind: str | None, every: int | None
    ) -> tuple[Shape, list[Batch], list[int]]:
        """The rows of all reports, and when these are.

        Where nothing was computed before, the reports get a run of their own, over intervals that
        are aligned to them; else they are made of the rows.
        """
        wanted = reporting(self._query, kind, every)
        if wanted.every is not None and not self._started and self._replayable:
            run = Execution(self._query, self._given, report=wanted, shares_terms_with=self._run)
            parts = [batch for batch in run.replay() if len(batch)]
            assert run.reports is not None
            self._late = [*self._run.rejects, *run.late()]
            return Shape(self._query, run), parts or [run.sink.nothing()], run.reports.done()
        rows = self._all()
        end = INFINITY if self._given.end is None else self._given.end
        made = reports(wanted, Always(rows), self._run.names, end)
        (made.begin, made.last), made.clock = self._span(), INFINITY
        shown, _ = made.step([rows], [INFINITY], True)
        return self._shape, [shown], made.done()

    # -- in a notebook

    def timeline(
        self,
        limit: int = 40,
        report: str | None = None,
        every: int | None = None,
        timestamps: str | None = None,
    ) -> Picture:
        """A picture of when each row holds: a lane for each of the first `limit` solutions.

        Lines are at the instants of the query's reports. With `report` or `every`, dots show which
        solutions are in the reports that these ask for. `timestamps` are ms, iso (UTC) or local.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> print(streamsparql.compile(text).run([("<a>", "<p>", '"1"', 5)]).timeline())
        "1"  ████████████████████████████████████████████████████████████
             5 to 10 ms
        """
        from streamsparql.look.jupyter.result_view import timeline_of

        return timeline_of(self, limit, report, every, timestamps)

    def __str__(self) -> str:
        from streamsparql.look.jupyter.result_view import as_text

        return as_text(self)

    def __repr__(self) -> str:
        columns = " ".join(self._shape.names)
        return f"<Result: {columns}, {'' if self._started else 'not '}computed>"

    def _repr_html_(self) -> str:
        """How a notebook shows the result: its first rows, and its timeline."""
        from streamsparql.look.jupyter.result_view import shown

        return shown(self)

    def _first(self, most: int | None) -> First | None:
        """The first rows, about so many or all of them, and whether there are more.

        None where somebody would have to compute the rows who did not ask for them.
        """
        from streamsparql.run.replay import Replay

        if most is None or (self._started and not self._partly):
            rows = self._canonical()
            count = len(rows) if most is None else most
            late = self._run.late() if self._late is None else self._late
            tables = [self._shape.table([rows.part(0, count)], False)]
            return First(tables, len(rows) > count, len(late), next(iter(late), None))
        if not self._replayable:
            return None
        beside = None if self._started else self._run
        replay = Replay(self._query, self._given, shares_terms_with=beside)
        found = First([], False, 0, None).with_rejects(self._run.rejects if beside else [])
        for table in replay.tables():
            found.tables.append(table)
            found = found.with_rejects(replay.drain())
            if sum(map(len, found.tables)) > most:
                return found._replace(more=True)
        return found

    # -- what was computed

    def _span(self) -> tuple[int | None, int]:
        """Where the horizon begins, and the greatest timestamp of all."""
        return self._run.begin, self._run.last_stamp

    def _all(self) -> Batch:
        """All rows, in canonical form by what a reader and ORDER BY see."""
        self._started = True
        for _ in self._source:
            pass
        self._partly = False
        parts = self._run.parts
        if len(parts) != 1:
            parts[:] = [Batch.concat(parts, self._run.sink.names).ordered()]
        return parts[0]

    def _canonical(self) -> Batch:
        """All rows, in canonical form by what a reader sees."""
        rows = self._all()
        if self._run.ranking is None:
            return rows.ordered()
        shown = rows.project(self._run.names)
        merged, _ = TemporalCoalesce(Always(shown)).step([shown], [INFINITY], False)
        return merged.ordered()


def by_instant(shape: Shape, rows: Batch, instants: list[int]) -> Iterator[tuple[int, Any]]:
    """The rows of each report, as users get them."""
    first = np.searchsorted(rows.start, instants, "left").tolist()
    after = np.searchsorted(rows.start, instants, "right").tolist()
    for instant, low, high in zip(instants, first, after, strict=True):
        yield instant, shape.snapshot(rows.part(low, high))


def replayable(given: RunInput) -> bool:
    """Whether all sources can be read once more.

    >>> once, stdin = RunInput({"s": iter([])}), RunInput({"s": "-"})
    >>> replayable(RunInput({"s": []})), replayable(once), replayable(stdin)
    (True, False, False)
    """
    return not any(map(read_once, [*given.streams.values(), *given.graphs.values(), given.graph]))


def read_once(source: Any) -> bool:
    """Whether a source is used up when it is read: an iterator, an open file, a pipe."""
    source = source.source if isinstance(source, Mapped) else source
    if isinstance(source, list | tuple):
        return (
            bool(source)
            and isinstance(source[0], str | os.PathLike)
            and any(map(read_once, source))
        )
    if isinstance(source, str | os.PathLike):
        return is_endless(path_of(source))
    return isinstance(source, Iterator) or hasattr(source, "read")
