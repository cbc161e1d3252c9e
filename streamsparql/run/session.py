"""Sessions: many queries over the same streams, which come and go while these run.

A session has one term dictionary, one catalog of static graphs and one pipeline. Each stream is
read, encoded and ordered once. Equal subplans of queries are computed once, and queries that differ
in constants share a plan (run/session_engine.py).
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, Unpack

import numpy as np
import pyarrow as pa

from streamsparql.algebra.sharing import bind
from streamsparql.algebra.terms import Term
from streamsparql.compiled import CompiledQuery, Recipe
from streamsparql.display import Displayed, describe, draw_session
from streamsparql.errors import EngineError, SourceError, StreamSparqlError, warn
from streamsparql.limits import check_text, metered
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.inline_ids import INTEGER_BASE
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.entailment.schema import NO_SCHEMA
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.run.input import session_input_of
from streamsparql.run.instances import Instances, rows_of_table
from streamsparql.run.live import BUFFER_SIZE, MAX_REJECTS
from streamsparql.run.live_stats import OperatorStats
from streamsparql.run.notes import DataNotes, warn_of_units
from streamsparql.run.plan_reader import PlanReader
from streamsparql.run.pushed import pushed_item
from streamsparql.run.record_check import RecordCheck, record_mapping
from streamsparql.run.registered import Registered
from streamsparql.run.registration import Registration
from streamsparql.run.replay import Stopped
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
from streamsparql.run.time_arguments import duration_argument, instant_argument, period_argument
from streamsparql.sources import Accounting, Chunk, Mapped, Reject
from streamsparql.sources.chunk import Rejected
from streamsparql.sources.folders import files_of

if TYPE_CHECKING:
    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.time_arguments import Duration, Instant

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


class Session(Displayed):
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

    @with_options(SessionOptions)
    def __init__(
        self,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        **options: Unpack[SessionOptions],
    ) -> None:
        run_input = session_input_of(graph, graphs, **pop_options(options, InputOptions))
        history, idle = options["history"], options["idle"]
        self._engine = SessionEngine(
            run_input,
            duration_argument("history", history),
            None if idle is None else period_argument("idle", idle),
        )
        self._guard = self._engine.guard
        self._queries: dict[str, Registered] = {}
        self._calling = 0
        """The number of queries with an `on_row`."""
        self._emitted: deque[tuple[Registered, Any]] = deque()
        """The rows, or reports, that an `on_row` is still to be called with."""
        self._numbers = 0
        """The number of queries and instances so far."""
        self._pushed = 0
        """The number of items that were pushed one by one and not read yet."""
        self._late: deque[Reject] = deque(maxlen=MAX_REJECTS)
        self._rejected: deque[Reject] = deque(maxlen=MAX_REJECTS)
        self._drained: list[Reject] | None = None
        """All items that were rejected since `drain` was called, if it ever was."""
        self._noted: set[str] = set()
        """The streams of which a recognised unit was reported."""
        self._graph_rejects = len(self._engine.graph_rejects)
        self._closed = False

    @classmethod
    def without_data(cls) -> Session:
        """Return a session whose plans are only explained: it reads no static graph."""
        session = cls()
        session._engine.known = False
        return session

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
        with each row, or report, as `rows` returns them.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s <p> ?o }"
        >>> query = session.register(text, report="rstream")
        >>> session.push_many("s", [("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 11)])
        >>> query.rows()
        [(9, [{'o': rdflib.term.Literal('1')}])]
        """
        self._check_open()
        if on_row is not None and not callable(on_row):
            raise EngineError(f"on_row must be a function of a row, not {on_row!r}")
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
            self._calling -= registered.on_row is not None
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
        self._calling += on_row is not None
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

    def push(self, stream: str, triple: Any, t: Instant | None = None, *times: Instant) -> None:
        """Push an item to a stream: a triple and its timestamp, or the start and end of an event.

        The parts of the triple are terms or plain values; what cannot be understood raises a
        `SourceError`. An item with no timestamp gets the time of this machine's clock.
        """
        known = self._stream(stream)
        self._append(known, pushed_item(stream, known.reading, triple, t, times), None)

    def push_record(self, stream: str, record: Any, mapping: Any) -> None:
        """Push a record, a dict or the text of a JSON object, of which a mapping makes triples.

        `mapping` is the text of a CONSTRUCT over the keys of the record, the path of a file with
        one, or "auto". A record that cannot be read raises a `SourceError`.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?v FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <v> ?v }"
        >>> query = session.register(text)
        >>> for t in (3, 25):
        ...     session.push_record("s", {"v": "a", "t": t}, "CONSTRUCT { [] <v> ?v } {}")
        >>> query.rows()
        [Row(v="a", [3, 10))]
        """
        known = self._stream(stream)
        check = known.checks.get(mapping)
        if check is None:
            check = RecordCheck(known.name, record_mapping(mapping), known.reading)
            known.checks[mapping] = check
        parsed = check.parsed(record)
        self._append(known, parsed, check.mapped)

    def _append(self, stream: SessionStream, item: Any, mapping: Mapped | None) -> None:
        """Add an item, or a record with its mapping, to the buffer of its stream."""
        if mapping is not stream.mapped:
            if stream.buffer:
                with self._guard:
                    self._read_buffers()
            stream.mapped = mapping
        self._pushed += 1  # first: an item that is not counted would wait for the next push
        stream.buffer.append(item)
        if self._pushed >= BUFFER_SIZE or self._calling:
            self._process()

    def push_many(self, stream: str, source: Any) -> None:
        """Push all items of a source, in its order. Short lists are buffered.

        If the source raises, the items before are pushed, a note on the error has their number, and
        the session remains usable.
        """
        known = self._stream(stream)
        few = isinstance(source, list | tuple) and len(source) < BUFFER_SIZE
        few = few and files_of(source) is None and known.mapped is None
        if few and not self._calling and not self._strict:
            self._pushed += len(source)
            known.buffer.extend(source)
            if self._pushed >= BUFFER_SIZE:
                self._process()
            return
        with self._guard:
            self._read_buffers()
        before, failures = known.sorter.read, list[BaseException]()
        chunks = self._engine.reader(known, source, failures=failures)
        while self._read(known, chunks, failures):
            if len(known.sorter) >= BUFFER_SIZE or self._calling:
                self._process()
        self._warn_of_units()
        for error in failures:
            read = known.sorter.read - before
            error.add_note(f"<{known.name}>: {read:,} items were read before this error")
            raise error

    def advance(self, t: Instant, stream: str | None = None) -> None:
        """Promise that no item before `t` will be pushed: to this stream, or by default to any."""
        self._check_open()
        until = INFINITY if t == INFINITY else instant_argument("t", t)
        named = None if stream is None else self._stream(stream)
        with self._guard:
            self._advance(until, [*self._engine.streams.values()] if named is None else [named])
        self._call_on_row()

    def run(self, streams: Mapping[str, Any]) -> None:
        """Read sources of streams side by side, from their first items to their last, and close.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s <p> ?o }"
        >>> query = session.register(text)
        >>> session.run({"s": [("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 11)]})
        >>> query.rows()
        [Row(o="1", [3, 9)), Row(o="2", [11, 18))]
        """
        for _ in self.replay(streams):
            pass

    def replay(self, streams: Mapping[str, Any]) -> Iterator[int]:
        """Do the same step by step; yield the least watermark of all streams after each step."""
        self._check_open()
        if self._guard.meter is not None:
            self._guard.meter.count_whole_run()
        sources = {str(name): source for name, source in streams.items()}
        for name in self._engine.streams:
            if name not in sources:
                passed = ", ".join(f"<{other}>" for other in sources) or "none"
                raise SourceError(f"missing stream <{name}>: a query reads it; passed: {passed}")
        read = {name: self._stream(name) for name in sources}
        chunks = {n: self._engine.reader(known, sources[n]) for n, known in read.items()}
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
            yield min((known.mark for known in read.values()), default=INFINITY)
        self.close()

    def close(self) -> None:
        """End all streams, and emit the rows of the last windows; they can still be read."""
        with self._guard:
            if not self._closed:
                self._advance(INFINITY, [*self._engine.streams.values()])
            self._closed = True
        self._warn_of_units()
        for note in self._engine.cells.missing_keys:
            warn(note)
        self._call_on_row()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._guard.broken:
            self._closed = True  # the error under way says more than a second one
            return
        self.close()

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
        self._prompt(self._engine.plans)
        with self._guard:
            reading = dict.fromkeys(
                reader.query for plan in self._engine.plans for reader in plan.readers_with_rows()
            )
            taken = {query.name: query.take() for query in reading}
            for plan in self._engine.plans:
                plan.outbox.clear()
        self._call_on_row()
        return taken

    def to_arrow(self) -> pa.Table:
        """Return the rows of all queries since the last call as one Arrow table.

        It has the name of the query of each row; of instances their keys and terms; the variables
        of all queries; `start` and `end`, or `instant` for reports. This is the fastest way to read
        the rows of many queries.

        >>> import streamsparql
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED {{ <{}> <p> ?o }}"
        >>> for name in "abc":
        ...     query = session.register(text.format(name), name)
        >>> session.run({"s": [("<a>", "<p>", '"1"', 3), ("<c>", "<p>", '"2"', 11)]})
        >>> session.to_arrow().to_pydict()
        {'query': ['a', 'c'], 'o': ['"1"', '"2"'], 'start': [3, 11], 'end': [9, 18]}
        """
        self._prompt(self._engine.plans)
        with self._guard:
            table = session_table(self._engine.plans)
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

    @property
    def late(self) -> list[Reject]:
        """The last 1,000 items that arrived below the watermark; `stats` counts all."""
        self._drain()
        return list(self._late)

    @property
    def rejected(self) -> list[Reject]:
        """The last 1,000 items that could not be read or stamped; `stats` counts all."""
        self._drain()
        return list(self._rejected)

    def drain(self) -> list[Reject]:
        """Return all items that were rejected since the last call.

        From the first call on, they are kept until the next one.
        """
        self._drain()
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
        state = engine.pipeline.state()
        operators = []
        for operator, counts in engine.pipeline.counts.items():
            description = describe(operator, {})
            rows = sum(counts.rows_in), counts.rows_out, state[operator]
            operators.append(OperatorStats(description.kind, description.title, *rows))
        accountings = (stream.sorter.accounting for stream in engine.streams.values())
        return SessionStats(
            sum(accountings, Accounting()),
            self._graph_rejects,
            engine.watermarks,
            len(engine.terms),
            sum(q.instances is None or len(q.instances) for q in self._queries.values()),
            len(engine.plans),
            tuple(operators),
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

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._closed

    def __repr__(self) -> str:
        state = "unusable" if self._guard.broken else "closed" if self._closed else "open"
        return f"<Session: {state}, {len(self._queries)} queries>"

    # -- inside

    @property
    def _strict(self) -> bool:
        return self._engine.input.strict

    def _check_open(self) -> None:
        self._guard.verify()
        if self._closed:
            raise EngineError("the session is closed")

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

    def _stream(self, name: str) -> SessionStream:
        self._check_open()
        output = self._engine.outputs.get(str(name))
        if output is not None:
            raise EngineError(f"<{name}> is the output of {output.query}: only that feeds it")
        stream = self._engine.streams.get(str(name))
        if stream is None and self._engine.history:
            stream = self._engine.stream(str(name))  # for queries to come
        if stream is None:
            names = ", ".join(f"<{known}>" for known in self._engine.streams) or "no stream"
            raise EngineError(f"unknown stream <{name}>; the queries read {names}")
        return stream

    def _read(
        self, stream: SessionStream, chunks: Iterator[Chunk], failures: list[BaseException]
    ) -> bool:
        """Sort the next chunk of a source; return False after the last one, and after an error.

        A source that cannot be read further does not harm the session, unlike other exceptions.
        """
        with self._guard:
            try:
                chunk = next(chunks, None)
            except (SourceError, OSError, Stopped) as error:
                if isinstance(error, Rejected):
                    raise
                failures.append(error)
                return False
            if chunk is not None:
                self._sort(stream, chunk)
            return chunk is not None

    def _process(self) -> None:
        """Process all items that were pushed; call `on_row` with what is emitted."""
        with self._guard:
            self._read_buffers()
            self._step()
        self._warn_of_units()
        self._call_on_row()

    def _warn_of_units(self) -> None:
        """Warn of units of timestamps that were recognised by their size, once for each stream."""
        if len(self._noted) < len(self._engine.streams):
            warn_of_units(self._engine.readings, self._noted)

    def _prompt(self, plans: Collection[SharedPlan]) -> None:
        """Process all items, and let no rows of these plans that are final be delayed."""
        if not self._closed:
            with self._guard:
                self._read_buffers()
                self._step(plans, reading=True)
            self._warn_of_units()
            self._call_on_row()

    def _call_on_row(self) -> None:
        """Call each `on_row` with the rows that are due; once, whether or not it raises.

        An `on_row` that raises is not called again before its error has been raised, which is after
        those of other queries were called.
        """
        errors: dict[Registered, Exception] = {}
        left: list[tuple[Registered, Any]] = []
        try:
            while self._emitted:
                query = self._emitted[0][0]
                if query in errors:
                    left.append(self._emitted.popleft())
                    continue
                assert query.on_row is not None
                try:
                    # In one line: between the two calls no exception could get lost with its row.
                    query.on_row(self._next_emitted())
                except Exception as error:
                    error.add_note(f"in on_row of the query {query.name!r}")
                    errors[query] = error
        finally:
            self._emitted.extendleft(reversed(left))
        if errors:
            first, *others = errors.values()
            for other in others:
                first.add_note(f"{type(other).__name__} {other}: {other.__notes__[-1]}")
            raise first

    def _next_emitted(self) -> Any:
        with self._guard:
            return self._emitted.popleft()[1]

    # The methods below change the state: their callers enter the guard.

    def _read_buffers(self) -> None:
        """Sort the items that were pushed one by one."""
        if not self._pushed:
            return
        self._pushed = 0
        for stream in self._engine.streams.values():
            if stream.buffer:
                items, stream.buffer = stream.buffer, []
                first = stream.arrived + 1
                stream.arrived += len(items)
                source = items if stream.mapped is None else stream.mapped.over(items)
                for chunk in self._engine.reader(stream, source, first):
                    self._sort(stream, chunk)

    def _sort(self, stream: SessionStream, chunk: Chunk) -> None:
        stream.sort(chunk)
        self._keep_rejects()
        self._engine.clock.advance(stream.name, stream.sorter.watermark)

    def _drain(self) -> None:
        with self._guard:
            if not self._closed:
                self._read_buffers()
            self._keep_rejects()

    def _keep_rejects(self) -> None:
        rejects, self._engine.graph_rejects = self._engine.graph_rejects, []
        for stream in self._engine.streams.values():
            rejects += stream.sorter.drain()
        for reject in rejects:
            (self._late if reject.late else self._rejected).append(reject)
        if self._drained is not None:
            self._drained += rejects

    def _advance(self, t: int, streams: Collection[SessionStream]) -> None:
        self._read_buffers()
        for stream in streams:
            stream.sorter.advance(t)
            self._engine.clock.advance(stream.name, t)
        self._step(reading=True)

    def _step(self, prompt: Collection[SharedPlan] = (), reading: bool = False) -> None:
        """Process the items below the watermarks, promptly for some plans."""
        calling = [plan for plan in self._engine.plans if plan.calling]
        self._engine.step({*prompt, *calling}, reading or bool(calling))
        for plan in calling:
            self._collect(plan.due_calls())

    def _collect(self, queries: Collection[Registered]) -> None:
        """Queue the rows of queries for their `on_row`, if they have one."""
        for query in queries:
            if query.on_row is not None:
                self._emitted += ((query, element) for element in query.take_elements())
