"""Sessions: many queries over the same streams, which come and go while these run.

A session has one term dictionary, one catalog of static graphs and one pipeline. Each stream is
read, encoded and ordered once. Equal subplans of queries are computed once, and queries that differ
in constants share a plan (run/session_engine.py).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack

import numpy as np
import pyarrow as pa

from streamsparql.algebra.sharing import bind
from streamsparql.algebra.terms import Term
from streamsparql.compiled import CompiledQuery, Recipe
from streamsparql.connectors.live_stream import LiveStream
from streamsparql.connectors.loop import pump
from streamsparql.display import draw_session
from streamsparql.errors import EngineError, SourceError, StreamSparqlError
from streamsparql.limits import check_text, metered
from streamsparql.overriding import override
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.inline_ids import INTEGER_BASE
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.entailment.schema import NO_SCHEMA
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.run.input import RunInput, session_input_of
from streamsparql.run.instances import Instances, rows_of_table
from streamsparql.run.live_stats import OperatorStats, Stats
from streamsparql.run.notes import DataNotes
from streamsparql.run.open_input import OpenInput
from streamsparql.run.plan_reader import PlanReader
from streamsparql.run.registered import Registered
from streamsparql.run.registration import Registration
from streamsparql.run.run_options import (
    InputOptions,
    SessionOptions,
    pop_options,
    with_options,
)
from streamsparql.run.session_engine import PlanSummary, SessionEngine
from streamsparql.run.session_streams import SessionStream
from streamsparql.run.session_table import session_table
from streamsparql.run.shared_plan import Shape, SharedPlan, numbers_from
from streamsparql.run.time_arguments import duration_argument, period_argument
from streamsparql.sources import Accounting, Chunk, Reject
from streamsparql.sources.failed_cells import merged
from streamsparql.values import check_values
from streamsparql.values.frames import check_library, pandas_frame, polars_frame

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.checkpoint.file import Checkpoint
    from streamsparql.run.time_arguments import Duration
    from streamsparql.values import Values

_Taken = TypeVar("_Taken")


class SessionStats(NamedTuple):
    """Figures of a session: the counts of its items, its queries and plans, its state."""

    items: Accounting
    graph_rejects: int
    """Triples of static graphs that were rejected."""
    watermarks: Mapping[str, int]
    """The watermark of each stream."""
    terms: int
    """Terms in the dictionary."""
    queries: int
    """The queries that are registered; each instance of a query with parameters is one."""
    plans: int
    """The plans that compute them."""
    operators: tuple[OperatorStats, ...]
    """Those that read streams first."""

    @property
    def late(self) -> int:
        """Items that arrived below the watermark."""
        return self.items.late

    @property
    def rejected(self) -> int:
        """Items that could not be read or stamped, and triples of static graphs."""
        return self.items.rejected + self.graph_rejects

    @property
    def state(self) -> int:
        """Rows that all operators retain."""
        return sum(each.state for each in self.operators)


class Session(OpenInput):
    """Many continuous queries over the same streams. A `with` statement closes it.

    An exception in the middle of a step, such as that of Ctrl-C, makes it unusable: every later
    call raises an `EngineError` that names it. Errors of arguments, of texts, of sources and of
    `on_row` leave it usable.

    >>> import streamsparql
    >>> window = "FROM STREAM <s> WINDOW RANGE 10 MS FIXED"
    >>> with streamsparql.Session() as session:
    ...     one = session.register(f"SELECT ?o {window} {{ <a> <p> ?o }}", "one")
    ...     two = session.register(f"SELECT ?x {window} {{ <b> <p> ?x }}", "two")
    ...     session.push("s", ("<a>", "<p>", '"1"'), 3)
    ...     session.push("s", ("<b>", "<p>", '"2"'), 4)
    >>> one.rows(), two.rows()
    ([Row(o="1", [3, 10))], [Row(x="2", [4, 10))])
    """

    _kind = "session"

    @with_options(SessionOptions)
    def __init__(
        self,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        **options: Unpack[SessionOptions],
    ) -> None:
        run_input = session_input_of(graph, graphs, **pop_options(options, InputOptions))
        history, idle = options["history"], options["idle"]
        self._start(
            run_input,
            duration_argument("history", history),
            None if idle is None else period_argument("idle", idle),
        )

    def _start(self, run_input: RunInput, history: int, idle: int | None) -> None:
        """Start without queries."""
        self._engine = SessionEngine(run_input, history, idle)
        super().__init__(self._engine, self._engine.streams, self._engine.clock)
        self._queries: dict[str, Registered] = {}
        self._callers = 0
        """The number of queries with an `on_row`."""
        self._numbers = 0
        """The number of queries and instances so far."""
        self._drained: list[Reject] | None = None
        """All items that were rejected since `take_rejects` was called, if it ever was."""
        self._graph_rejects = len(self._engine.graph_rejects)

    @classmethod
    def without_data(cls) -> Session:
        """Return a session whose plans are only explained: it reads no static graph."""
        session = cls()
        session._engine.known = False
        return session

    @classmethod
    def restore(
        cls,
        path: str | os.PathLike[str],
        *,
        on_row: Mapping[str, Callable[[Any], object]] | None = None,
        files: str | os.PathLike[str] | Callable[[str], Any] | None = None,
    ) -> Session:
        """Return a session that continues where another one was saved.

        Its queries, their instances and unread rows, options and static graphs are those that were
        saved. Functions are passed again: `on_row` by the names of queries, and `files`.

        >>> import streamsparql, tempfile
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { $x <p> ?o }"
        >>> key = session.register(text, "values").add(x="<a>")
        >>> session.push("s", ("<a>", "<p>", '"1"'), 3)
        >>> size = session.save(path := tempfile.mkdtemp() + "/state.ckpt")
        >>> again = streamsparql.Session.restore(path)
        >>> again.close(), again.queries["values"].rows()
        (None, {1: [Row(o="1", [3, 9))]})
        """
        from streamsparql.run.checkpoint.opening import restored_session

        return restored_session(path, on_row or {}, files)

    # -- queries

    def register(
        self,
        query: str | CompiledQuery,
        name: str | None = None,
        *,
        on_row: Callable[[Any], object] | None = None,
        report: RelationToStream | None = None,
        every: Duration | None = None,
        dialect: str = "auto",
        parameters: Collection[str] | None = None,
    ) -> Registered:
        """Register a query, a text or a compiled one. It starts at the watermark.

        Its name is `name`, else that of its REGISTER clause, else q1, q2 and so on. A CONSTRUCT or
        DESCRIBE with a name, unless that is of REGISTER QUERY, feeds the stream of that name
        (`Registered.output`), which other queries read; its triples are stamped with the instants
        of its reports.

        `$name` in a text is a parameter: its values are those of instances (`Registered.add`);
        `parameters` are the names of parameters if these are others. With `report` (rstream,
        istream or dstream) or `every`, the query has reports instead of rows. `on_row` is called
        with each row, or report, as `rows` returns them; a coroutine function is awaited.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s <p> ?o }"
        >>> query = session.register(text, report="rstream")
        >>> session.push_many("s", [("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 11)])
        >>> query.rows()
        [(9, [{'o': rdflib.term.Literal('1')}])]
        """
        self._check_open()
        self._check_on_row(on_row)
        query = self._compiled(query, dialect)
        registration = Registration.of(query, name, report, every, parameters)
        if not query.warned:  # first: a warning may be raised
            for warning in registration.warnings():
                warnings.warn(warning, stacklevel=2)
            query.warned = True
        name = self._free_name(query.report.name if name is None else name)
        self._process()
        with self._refusing():
            return self._register(name, registration, on_row)

    def _compiled(self, query: str | CompiledQuery, dialect: str) -> CompiledQuery:
        """Return a query that is compiled within the limits of the session."""
        limits = self._engine.input.limits
        if isinstance(query, CompiledQuery):
            own = query.recipe.limits
            if own is not None and own != limits:
                raise EngineError(
                    f"the query was compiled with {own}, but the session has"
                    f" {limits or 'no limits'}; pass the same limits to both"
                )
            return query
        if not isinstance(query, str):
            raise TypeError(
                f"query must be a text or a compiled query, not {query!r:.60};"
                " a file is read by streamsparql.compile(path)"
            )
        with metered(limits, "the compilation"):
            check_text(len(query))
            return CompiledQuery(Recipe(query, dialect, limits=limits))

    def unregister(self, query: Registered | str) -> None:
        """Remove a query; its rows that hold end at the watermark, and can still be read.

        What no other query needs is removed with it. A query whose output others read stays.
        """
        self._check_open()
        registered = self._known(query)
        output = registered.output
        readers = [q.name for q in self._queries.values() if output in q.query.streams]
        if output is not None and readers:
            read, those = ("reads", "that") if len(readers) == 1 else ("read", "these")
            raise EngineError(
                f"{registered.name} feeds <{output}>, which {' and '.join(readers)} {read}:"
                f" unregister {those} first"
            )
        self._process()
        with self._guard:
            for reader in registered.readers:
                self._end(reader, registered.numbers_in(reader))
                self._leave(reader)
            registered.end = self._engine.mark_of(registered.registration.query.streams)
            del self._queries[registered.name]
            self._collect([registered])
            self._callers -= registered.on_row is not None
        self._call_on_row()

    @property
    def queries(self) -> Mapping[str, Registered]:
        """The queries that are registered, by name."""
        return MappingProxyType(self._queries)

    def _free_name(self, name: str | None) -> str:
        if name is None:
            k = len(self._queries) + 1
            while f"q{k}" in self._queries:
                k += 1
            return f"q{k}"
        if name in self._queries:
            raise EngineError(f"a query is registered as {name!r} already")
        return name

    def _known(self, query: Registered | str) -> Registered:
        name = query if isinstance(query, str) else query.name
        known = self._queries.get(name)
        if known is None or (isinstance(query, Registered) and known is not query):
            names = ", ".join(self._queries) or "none"
            raise EngineError(f"unknown query {name!r}; registered: {names}")
        return known

    def _register(
        self, name: str, registration: Registration, on_row: Callable[[Any], object] | None
    ) -> Registered:
        engine, query = self._engine, registration.query
        if registration.output is not None:
            engine.check_output(name, registration.output, query.streams)
        graphs = engine.read_named_graphs(query.graphs)
        for stream in query.streams:
            if stream not in engine.outputs:
                engine.stream(stream)
        shape = registration.shape(graphs)
        registered = Registered(self, name, registration, shape, on_row)
        if registration.parameters:
            registered.instances = Instances(
                registration.parameters, registration.subjects, engine.terms
            )
        if not registration.parameters:
            self._place(registered, shape, registration.constants)
        elif engine.is_shareable(shape, {}):
            named = registration.skeleton.named.values()
            plan = engine.place(shape, registration.constants, named)
            registered.readers[self._reader(registered, plan)] = 0
        elif registration.output is not None:
            raise EngineError(
                f"{name} cannot feed <{registration.output}>: each instance of its parameters"
                " needs a plan of its own"
            )
        if registration.output is not None:
            engine.feed(name, next(iter(registered.readers)).plan)
        self._queries[name] = registered
        self._callers += on_row is not None
        return registered

    def _place(
        self, registered: Registered, shape: Shape, constants: Mapping[str, Term], key: int = 0
    ) -> PlanReader:
        """Compute a query, or an instance that needs a plan of its own; return its reader."""
        plan = self._engine.place(shape, constants, ())
        reader = self._reader(registered, plan)
        registered.readers[reader] = key
        if plan.table is not None:
            ids = (self._engine.terms.id_of(constants[name]) for name in plan.parameters)
            values = [np.array([term], np.int64) for term in ids]
            reader.number = int(self._next_numbers(1)[0])
            self._engine.add(plan, reader, np.array([reader.number]), values)
        return reader

    def _reader(self, registered: Registered, plan: SharedPlan) -> PlanReader:
        reader = PlanReader(registered, plan, self._engine.start_of(plan))
        plan.join(reader)
        return reader

    def _next_numbers(self, count: int) -> IntArray:
        """Return unused numbers for queries and instances."""
        first, self._numbers = self._numbers + 1, self._numbers + count
        return numbers_from(first, count)

    def _end(self, reader: PlanReader, numbers: IntArray | None = None) -> None:
        """End a query, or instances of it, at the watermark."""
        plan = reader.plan
        end = self._engine.end_of(plan)
        if numbers is not None and not len(numbers):
            return
        reader.settle()
        reader.keep(plan.open_rows(end, numbers))
        if numbers is not None:
            plan.remove(numbers)

    def _leave(self, reader: PlanReader) -> None:
        """Let a query leave its plan, which goes if no other query reads it."""
        reader.end(self._engine.mark_of(reader.plan.shape.streams))
        self._engine.ended.add(reader)
        reader.plan.leave(reader)
        if not reader.plan.readers:
            self._engine.remove(reader.plan)

    # -- instances

    def add_instances(self, registered: Registered, source: Any) -> list[int]:
        """Add instances of a query with parameters; return their keys. See `Registered.add`."""
        self._check_open()
        instances = self._instances_of(registered)
        rows = rows_of_table(source)
        self._process()
        with self._refusing():
            values = instances.encode(rows)
            numbers = self._next_numbers(len(rows))
            keys: list[int] = (numbers - INTEGER_BASE).tolist()
            shared = next(iter(registered.readers), None) if registered.shared else None
            if shared is not None:
                starts = [self._add_to_table(registered, shared, numbers, values)] * len(keys)
            else:
                starts = self._add_separately(registered, keys, values)
            instances.add(numbers - INTEGER_BASE, values, starts)
        return keys

    def _add_to_table(
        self,
        registered: Registered,
        reader: PlanReader,
        numbers: IntArray,
        values: Sequence[IntArray],
    ) -> int | None:
        """Add instances to the table of the plan that computes them; return their start."""
        registration, engine = registered.registration, self._engine
        named = registration.skeleton.named
        by_name = {named[n]: ids for n, ids in zip(registration.parameters, values, strict=True)}
        columns = []
        for name in reader.plan.parameters:
            term = registration.constants.get(name)
            constant = 0 if term is None else engine.terms.id_of(term)
            columns.append(by_name.get(name, np.full(len(numbers), constant)))
        return engine.add(reader.plan, reader, numbers, columns)

    def _add_separately(
        self, registered: Registered, keys: Sequence[int], values: Sequence[IntArray]
    ) -> list[int | None]:
        """Add instances that one plan cannot compute, each with a plan; return their starts."""
        starts = []
        registration, terms = registered.registration, self._engine.terms
        named = [registration.skeleton.named[name] for name in registration.parameters]
        for k, key in enumerate(keys):
            own = {n: terms.term_of(int(ids[k])) for n, ids in zip(named, values, strict=True)}
            bound = bind(registered.shape.skeleton, {n: t for n, t in own.items() if t is not None})
            shape = registered.shape._replace(skeleton=bound)
            starts.append(self._place(registered, shape, registration.constants, key).start)
        return starts

    def remove_instances(self, registered: Registered, keys: Collection[int]) -> None:
        """Remove instances of a query with parameters. See `Registered.remove`."""
        self._check_open()
        instances = self._instances_of(registered)
        instances.check(keys)
        self._process()
        with self._guard:
            if registered.shared:
                (reader,) = registered.readers
                self._end(reader, np.array(sorted(keys), np.int64) + INTEGER_BASE)
            else:
                for reader, key in registered.readers.items():
                    if key in keys:
                        self._end(reader)
                        self._leave(reader)
            instances.remove(keys)
            self._collect([registered])
        self._call_on_row()

    def _instances_of(self, registered: Registered) -> Instances:
        self._known(registered)
        if registered.instances is None:
            raise EngineError(f"the query {registered.name!r} has no parameters")
        return registered.instances

    # -- input

    def run(self, streams: Mapping[str, Any]) -> None:
        """Read sources of streams side by side, from their first items to their last, and close.

        If all are URLs of live sources (docs/live-sources.md), their items are read as they arrive,
        and `on_row` is called at once; most of them end only with an exception.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s <p> ?o }"
        >>> query = session.register(text)
        >>> session.run({"s": [("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 11)]})
        >>> query.rows()
        [Row(o="1", [3, 9)), Row(o="2", [11, 18))]
        """
        live = {str(name): LiveStream.of(source) for name, source in streams.items()}
        if not live or not all(isinstance(source, LiveStream) for source in live.values()):
            for _ in self.replay(streams):
                pass
            return
        self._check_sources(live)
        readings = {name: self._stream(name).reading for name in live}
        pump(self, {name: source.open(name, readings[name]) for name, source in live.items()})
        self.close()

    def replay(self, streams: Mapping[str, Any]) -> Iterator[int]:
        """Do the same step by step; yield the least watermark of all streams after each step."""
        self._check_open()
        if self._guard.meter is not None:
            self._guard.meter.count_whole_run()
        sources = {str(name): source for name, source in streams.items()}
        self._check_sources(sources)
        read = {name: self._stream(name) for name in sources}
        chunks = {name: self._engine.reader(name, sources[name]) for name in read}
        while chunks:
            name = min(chunks, key=lambda name: read[name].sorter.watermark)
            failures = list[BaseException]()
            if not self._read(read[name], chunks[name], failures):
                del chunks[name]
                for error in failures:
                    raise error
                with self._guard:
                    self._advance(INFINITY, [read[name]])
                self._call_on_row()
            else:
                self._process()
            yield self._engine.mark_of(read)
        self.close()

    def _check_sources(self, sources: Mapping[str, Any]) -> None:
        """Raise an error if a stream has no source."""
        for name in self._engine.streams:
            if name not in sources:
                passed = ", ".join(f"<{other}>" for other in sources) or "none"
                raise SourceError(f"missing stream <{name}>: a query reads it; passed: {passed}")

    def serve(
        self,
        sources: Mapping[str, Any],
        sinks: Mapping[str, Any],
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        every: Duration = "10s",
    ) -> None:
        """Read sources until they end, write the rows of queries to sinks, and save it all.

        A source is a path, a folder, a mapped table, or the URL of a live source; a sink is the
        path of a CSV, JSON lines or N-Quads file, or the URL of a live sink. Both may be objects of
        `streamsparql.connectors`.

        With a folder as `checkpoint`, the state, the positions of the sources and those of the
        sinks are saved there as one unit; `every` is the time from one checkpoint to the next. If
        the folder has a checkpoint, the session continues from it, with the same queries, and the
        sinks are cut to their positions. So a process that was killed at any moment is started
        again by the same program (docs/running.md).

        >>> import streamsparql, tempfile
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format
        >>> text = "".join(f"<a> <p> {number(t)} {number(t)} .\\n" for t in (3, 25))
        >>> _ = (folder / "s.nq").write_text(text)
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }"
        >>> query = session.register(text, "values")
        >>> sources, sinks = {"s": folder / "s.nq"}, {"values": folder / "rows.csv"}
        >>> session.serve(sources, sinks, checkpoint=folder / "state")
        >>> print((folder / "rows.csv").read_text())
        o,start,end
        3,3,10
        25,25,30
        <BLANKLINE>
        """
        from streamsparql.run.checkpoint.serving import Serving

        period = period_argument("every", every)
        with Serving(self, sources, sinks, checkpoint, period / 1000) as serving:
            serving.run()

    # -- output

    def rows(self) -> dict[str, Any]:
        """Return the rows of all queries since the last call, by name, of those that have some.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED {{ <{}> <p> ?o }}"
        >>> for name in "abc":
        ...     query = session.register(text.format(name), name)
        >>> session.run({"s": [("<a>", "<p>", '"1"', 3), ("<c>", "<p>", '"2"', 11)]})
        >>> session.rows()
        {'a': [Row(o="1", [3, 9))], 'c': [Row(o="2", [11, 18))]}
        """
        return {query.name: rows for query, rows in self._taken(Registered.take).items()}

    def tables(self) -> dict[Registered, pa.Table]:
        """Return a table for each query that has rows since the last call, as `to_arrow` does."""
        return self._taken(Registered.take_table)

    def _taken(self, take: Callable[[Registered], _Taken]) -> dict[Registered, _Taken]:
        """Return what `take` returns for the queries that have rows, which they then have read."""
        self._prompt(self._engine.plans)
        with self._guard:
            reading = dict.fromkeys(
                reader.query for plan in self._engine.plans for reader in plan.readers_with_rows()
            )
            taken = {query: take(query) for query in reading}
            for plan in self._engine.plans:
                plan.outbox.clear()
        self._call_on_row()
        return taken

    def to_arrow(self, *, values: Values = "terms") -> pa.Table:
        """Return the rows of all queries since the last call as one Arrow table.

        It has the name of the query of each row; of instances their keys and terms; the variables
        of all queries; `start` and `end`, or `instant` for reports. With values="native", numbers
        are numbers and times are times: this is the fastest way to read the rows of many queries.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED {{ <{}> <p> ?o }}"
        >>> for name in "abc":
        ...     query = session.register(text.format(name), name)
        >>> session.run({"s": [("<a>", "<p>", '"1"', 3), ("<c>", "<p>", '"2"', 11)]})
        >>> session.to_arrow().to_pydict()
        {'query': ['a', 'c'], 'o': ['"1"', '"2"'], 'start': [3, 11], 'end': [9, 18]}
        """
        check_values(values)
        return self._table(values, exact=True)

    def to_pandas(self, *, values: Values = "native") -> pd.DataFrame:
        """Return the rows of all queries since the last call as a frame of pandas.

        The columns are those of `to_arrow`.
        """
        check_values(values)
        check_library("pandas")
        return pandas_frame(self._table(values, exact=False))

    def to_polars(self, *, values: Values = "native") -> pl.DataFrame:
        """Return the rows of all queries since the last call as a frame of Polars.

        The columns are those of `to_arrow`.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED {{ <{}> <p> ?o }}"
        >>> for name in "ab":
        ...     query = session.register(text.format(name), name)
        >>> session.run({"s": [("<a>", "<p>", 1, 3), ("<b>", "<p>", 2, 11)]})
        >>> session.to_polars().select("query", "o").rows()
        [('a', 1), ('b', 2)]
        """
        check_values(values)
        check_library("polars")
        return polars_frame(self._table(values, exact=False))

    def _table(self, values: Values, exact: bool) -> pa.Table:
        self._prompt(self._engine.plans)
        with self._guard:
            table = session_table(self._engine.plans, self.terms, values, exact)
        self._call_on_row()
        return table

    def read(self, registered: Registered, take: Callable[[], _Taken]) -> _Taken:
        """Return the rows of a query since the last call, as `take` returns them."""
        self._guard.verify()
        if not registered.closed:
            self._prompt([reader.plan for reader in registered.readers])
        with self._guard:
            read = take()
        self._call_on_row()
        return read

    def take_rejects(self) -> list[Reject]:
        """Return all items that were rejected since the last call.

        From the first call on, they are kept until the next one.
        """
        self._read_rejects()
        drained, self._drained = self._drained, []
        return [*self._rejected, *self._late] if drained is None else drained

    @property
    def rows_before(self) -> int:
        """The instant before which all rows that start were emitted, of all queries."""
        with self._guard:
            return self._engine.rows_before

    @property
    def watermarks(self) -> dict[str, int]:
        """The watermark of each stream: the instant before which all items were processed."""
        self._guard.verify()
        if not self._closed:
            self._process()
        return self._engine.watermarks

    def stats(self) -> SessionStats:
        """Return the counts of items, queries and plans, and the rows and state of operators.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED {{ <{}> <p> ?o }}"
        >>> queries = [session.register(text.format(k)) for k in range(100)]
        >>> stats = session.stats()
        >>> stats.queries, stats.plans
        (100, 2)
        """
        if not self._closed:
            self._process()
        with self._guard:
            return self._stats()

    def _stats(self) -> SessionStats:
        engine = self._engine
        return SessionStats(
            engine.accounting,
            self._graph_rejects,
            engine.watermarks,
            len(engine.terms),
            sum(q.instances is None or len(q.instances) for q in self._queries.values()),
            len(engine.plans),
            engine.operator_stats({}),
        )

    def stats_of(self, registered: Registered) -> Stats:
        """Return the figures of one query: see `Registered.stats`."""
        if not self._closed:
            self._process()
        with self._guard:
            engine, streams = self._engine, registered.query.streams
            marks = engine.watermarks
            pushed = [name for name in streams if name in engine.sorters]
            items = (engine.sorters[name].accounting for name in pushed)
            cells = merged([engine.readings[name].cells for name in pushed])
            roots = {reader.plan.operators.sink for reader in registered.readers}
            return Stats(
                sum(items, Accounting()),
                self._graph_rejects,
                min((mark for name, mark in marks.items() if name in streams), default=INFINITY),
                len(engine.terms),
                engine.operator_stats(registered.query.prefixes, roots) if roots else (),
                cells.failed,
            )

    def notes(self) -> DataNotes:
        """Return what a reader of the results should know about the data."""
        with self._guard:
            return self._engine.notes()

    def has_no_schema(self, registered: Registered) -> bool:
        """Return whether a query has entailment, and its static graphs no schema."""
        if registered.query.translation.entailment is None:
            return False
        return self._engine.catalog(registered.shape.graphs).schema == NO_SCHEMA

    def explain(
        self,
        format: str = "text",  # noqa: A002 -- the public name
        color: bool = False,
        width: int = 100,
        counts: bool = False,
    ) -> str:
        """Return the plans of all queries as one picture, with the queries that read each of them.

        The formats are those of `Query.explain`: text, json, dot, mermaid, svg and html. With
        `counts`, it shows the rows and the state of each operator.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?{0} FROM STREAM <s> WINDOW RANGE 9 MS FIXED {{ ?x <p> ?{0} }}"
        >>> queries = [session.register(text.format(name)) for name in "ab"]
        >>> print(session.explain())
        Session  2 queries, 1 plan
        Queries  q1, q2
        TemporalCoalesce
        Clip
        ├─ Projection  ?v1
        │  TriplePatternMatching  ?v2 <p> ?v1
        │  TimeWindow  range 9 ms
        │  StreamAccess  <s>
        └─ Clock
           StreamAccess  <s>
        """
        return draw_session(self, format, color, width, counts)

    def operator_counts(self) -> dict[Operator, tuple[tuple[int, ...], int, int]]:
        """Return the rows in, the rows out and the state of each operator of the plans."""
        with self._guard:
            pipeline = self._engine.pipeline
            state = pipeline.state()
            return {
                operator: (tuple(counts.rows_in), counts.rows_out, state[operator])
                for operator, counts in pipeline.counts.items()
            }

    def plans(self) -> list[PlanSummary]:
        """Return the plans that compute the queries, with the queries that read each of them."""
        with self._guard:
            return self._engine.summaries()

    @property
    def terms(self) -> TermDictionary:
        """The term dictionary of all queries."""
        return self._engine.terms

    def __repr__(self) -> str:
        state = "unusable" if self._guard.broken else "closed" if self._closed else "open"
        return f"<Session: {state}, {len(self._queries)} queries>"

    def read_chunks(self, stream: str, chunks: Iterator[Chunk]) -> bool:
        """Push the next chunks of a source; return whether there were any."""
        known, failures, count = self._stream(stream), list[BaseException](), 0
        while self._read(known, chunks, failures):
            count += 1
        for error in failures:
            raise error
        self._process()
        return count > 0

    # -- inside

    @override
    def _checkpoint(self) -> Checkpoint:
        from streamsparql.run.checkpoint.sessions import save_session

        return save_session(self)

    @property
    @override
    def _calling(self) -> bool:
        return self._callers > 0

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Guard a change that an error of what is registered refuses, and leaves as it was."""
        refused: StreamSparqlError | None = None
        streams = set(self._engine.streams)
        with self._guard:
            try:
                yield
            except StreamSparqlError as error:
                refused = error
                self._engine.forget_streams(self._engine.streams.keys() - streams)
        if refused is not None:
            raise refused

    @override
    def _unknown(self, name: str) -> SessionStream:
        output = self._engine.outputs.get(name)
        if output is not None:
            raise EngineError(f"<{name}> is the output of {output.query}: only that feeds it")
        if self._engine.history:
            return self._engine.stream(name)  # for queries to come
        names = ", ".join(f"<{known}>" for known in self._streams) or "no stream"
        raise EngineError(f"unknown stream <{name}>; the queries read {names}")

    def _prompt(self, plans: Collection[SharedPlan]) -> None:
        """Process all items, and let no rows of these plans that are final be delayed."""
        if not self._closed:
            with self._guard:
                self._read_buffers()
                self._step_promptly(plans, reading=True)
            self._warn_of_units()
            self._call_on_row()

    # The methods below change the state: their callers enter the guard.

    @override
    def _keep_rejects(self) -> None:
        for reject in self._engine.drain():
            (self._late if reject.late else self._rejected).append(reject)
            if self._drained is not None:
                self._drained.append(reject)

    @override
    def _step(self, *, reading: bool = False) -> None:
        self._step_promptly((), reading)

    def _step_promptly(self, prompt: Collection[SharedPlan], reading: bool) -> None:
        """Process the items below the watermarks, promptly for some plans."""
        calling = [plan for plan in self._engine.plans if plan.calling]
        self._engine.step({*prompt, *calling}, reading or bool(calling))
        for plan in calling:
            self._collect(plan.due_calls())

    def _collect(self, queries: Collection[Registered]) -> None:
        """Queue the rows of queries for their `on_row`, if they have one."""
        for query in queries:
            if query.on_row is not None:
                self._calls.add(query.on_row, query.take_elements(), query.name)
