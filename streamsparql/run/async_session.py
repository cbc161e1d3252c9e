"""A session in a thread of its own: coroutines push items to it, and wait for rows.

A step of the engine computes for microseconds to seconds. In an event loop it would hold up
everything else, so a worker thread does it. Calls are jobs of the worker, in the order in which
they were made; a call is over once its job is, which bounds the items that wait. Once no job is
left, the worker reads the rows of the queries that are waited for: under load, many pushes have
their rows read together.

A task that is cancelled does not end the job that it waits for: the session stays whole.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar, Unpack

import pyarrow as pa

from streamsparql.display import Displayed
from streamsparql.errors import EngineError
from streamsparql.run.registered import Registered
from streamsparql.run.run_options import SessionOptions
from streamsparql.run.session import Session, SessionStats

if TYPE_CHECKING:
    from streamsparql.compiled import CompiledQuery
    from streamsparql.run.time_arguments import Instant

_T = TypeVar("_T")
_Then = TypeVar("_Then")

PUSHED_TOGETHER = 4096
"""The number of items of an asynchronous source that are pushed together, at most."""


def _unchanged(result: Any) -> Any:
    return result


class WorkerStats(NamedTuple):
    """What the worker has done: the number of its jobs, and the seconds that they took."""

    jobs: int
    seconds: float
    longest: float


class _Worker:
    """A thread that does jobs in their order, and then what is due when none is left."""

    def __init__(self, idle: Callable[[], None]) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle = idle
        self.stats = WorkerStats(0, 0.0, 0.0)
        self.ended = False
        """Whether it takes no more jobs."""
        Thread(target=self._run, name="streamsparql", daemon=True).start()

    def submit(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)

    def end(self) -> None:
        self.ended = True
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            began = perf_counter()
            job()
            if self._jobs.empty():
                self._idle()
            seconds = perf_counter() - began
            jobs, total, longest = self.stats
            self.stats = WorkerStats(jobs + 1, total + seconds, max(longest, seconds))


class AsyncSession(Displayed):
    """A `Session` for coroutines: it computes in a thread of its own. Use it with `async with`.

    It has the methods of a session, as coroutines. A query that is registered is read by
    `async for`, or by `await query.rows()`. Coroutines of one event loop use it; other threads call
    `asyncio.run_coroutine_threadsafe`. A task that is cancelled while it waits leaves the session
    as it was: what it asked for is done, and rows that it did not get are the next ones.

    >>> import asyncio, streamsparql
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }"
    >>> async def main():
    ...     async with streamsparql.AsyncSession() as session:
    ...         query = await session.register(text)
    ...         await session.push("s", ("<a>", "<p>", 5), 3)
    ...         await session.advance(20)
    ...         async for row in query:
    ...             return row
    >>> asyncio.run(main())
    Row(o="5"^^<http://www.w3.org/2001/XMLSchema#integer>, [3, 10))
    """

    def __init__(
        self,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        **options: Unpack[SessionOptions],
    ) -> None:
        self._open = lambda: Session(graph, graphs, **options)
        self._session: Session | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: _Worker | None = None
        self._queries: dict[str, AsyncRegistered] = {}
        self._closed = False

    @classmethod
    def restore(
        cls,
        path: str | os.PathLike[str],
        *,
        files: str | os.PathLike[str] | Callable[[str], Any] | None = None,
    ) -> Self:
        """Return a session that continues where one was saved, as `Session.restore` does.

        >>> import asyncio, streamsparql, tempfile
        >>> session = streamsparql.Session()
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s <p> ?o }"
        >>> query = session.register(text, "values")
        >>> size = session.save(path := tempfile.mkdtemp() + "/state.ckpt")
        >>> async def main():
        ...     async with streamsparql.AsyncSession.restore(path) as session:
        ...         return [*session.queries]
        >>> asyncio.run(main())
        ['values']
        """
        restored = cls()
        restored._open = lambda: Session.restore(path, files=files)
        return restored

    async def __aenter__(self) -> Self:
        if self._worker is not None:
            raise EngineError("the session was opened already")
        self._loop = asyncio.get_running_loop()
        self._worker = _Worker(self._read_waited)
        try:
            session: Session = await self._do(self._open)
            self._session = session
            for name, registered in session.queries.items():
                self._queries[name] = AsyncRegistered(self, registered)
        except BaseException:
            self._worker.end()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._worker is not None
        try:
            if kind is None or issubclass(kind, Exception):
                with _unless(error):
                    await self.close()
        finally:
            self._closed = True
            self._worker.end()
            for query in self._queries.values():
                query._wake()

    # -- queries

    async def register(
        self, query: str | CompiledQuery, name: str | None = None, **options: Any
    ) -> AsyncRegistered:
        """Register a query, as `Session.register` does; its rows are read by `async for`."""
        if "on_row" in options:
            raise EngineError("on_row is not an option here: read the query with async for")

        def add(registered: Registered) -> AsyncRegistered:
            known = self._queries[registered.name] = AsyncRegistered(self, registered)
            return known

        return await self._call(lambda session: session.register(query, name, **options), add)

    async def unregister(self, query: AsyncRegistered | str) -> None:
        """Remove a query, as `Session.unregister` does; rows that it still has can be read."""
        name = query if isinstance(query, str) else query.name
        known = self._queries.get(name)

        def unregister(session: Session) -> list[Any]:
            session.unregister(name)
            return [] if known is None else known._readers[-1].take()

        def end(rest: list[Any]) -> None:
            if known is not None:
                del self._queries[name]
                known._end(rest)

        await self._call(unregister, end)

    @property
    def queries(self) -> Mapping[str, AsyncRegistered]:
        """The queries that are registered, by name."""
        return dict(self._queries)

    # -- input

    async def push(
        self, stream: str, triple: Any, t: Instant | None = None, *times: Instant
    ) -> None:
        """Push an item, as `Session.push` does. `push_many` is faster for many."""
        await self._call(lambda session: session.push(stream, triple, t, *times))

    async def push_record(self, stream: str, record: Any, mapping: Any = None) -> None:
        """Push a record of which a mapping makes triples, as `Session.push_record` does."""
        await self._call(lambda session: session.push_record(stream, record, mapping))

    async def push_many(self, stream: str, source: Any) -> None:
        """Push all items of a source; those of an asynchronous one as they arrive.

        >>> import asyncio, streamsparql
        >>> async def sensor():
        ...     for t in (3, 25):
        ...         yield "<a>", "<p>", t, t
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> async def main():
        ...     async with streamsparql.AsyncSession() as session:
        ...         query = await session.register(text)
        ...         await session.push_many("s", sensor())
        ...         return [row.value("o") for row in await query.rows()]
        >>> asyncio.run(main())
        [3]
        """
        if not isinstance(source, AsyncIterable):
            await self._call(lambda session: session.push_many(stream, source))
            return
        waiting: list[Any] = []
        pushing: asyncio.Task[None] | None = None
        try:
            async for item in source:
                waiting.append(item)
                if pushing is None or pushing.done() or len(waiting) >= PUSHED_TOGETHER:
                    if pushing is not None:
                        await pushing
                    items, waiting = waiting, []
                    pushing = asyncio.ensure_future(self.push_many(stream, items))
                    await asyncio.sleep(0)
        finally:
            if pushing is not None:
                await pushing
            if waiting:
                await self.push_many(stream, waiting)

    async def advance(self, t: Instant, stream: str | None = None) -> None:
        """Promise that no item before `t` will be pushed, as `Session.advance` does."""
        await self._call(lambda session: session.advance(t, stream))

    async def close(self) -> None:
        """End all streams; the rows of the last windows can still be read."""
        queries = list(self._queries.values())

        def close(session: Session) -> list[list[Any]]:
            session.close()
            return [query._readers[-1].take() for query in queries]

        def end(rests: list[list[Any]]) -> None:
            self._closed = True
            for query, rest in zip(queries, rests, strict=True):
                query._end(rest)

        if not self._closed:
            await self._call(close, end)

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._closed

    # -- what is known

    async def stats(self) -> SessionStats:
        """Return the counts of items, queries and plans, and the state of operators."""
        return await self._call(Session.stats)

    async def explain(self, format: str = "text", width: int = 100) -> str:  # noqa: A002
        """Return the plans of all queries as one picture, as `Session.explain` does."""
        return await self._call(lambda session: session.explain(format, width=width))

    async def call(self, function: Callable[[Session], _T]) -> _T:
        """Call a function with the session, in its thread; return what it returns.

        It is for methods that this class lacks.

        >>> import asyncio, streamsparql
        >>> async def main():
        ...     async with streamsparql.AsyncSession() as session:
        ...         return await session.call(lambda session: session.watermarks)
        >>> asyncio.run(main())
        {}
        """
        return await self._call(function)

    @property
    def worker_stats(self) -> WorkerStats:
        """The number of the calls so far, and the seconds that they took."""
        return WorkerStats(0, 0.0, 0.0) if self._worker is None else self._worker.stats

    def __repr__(self) -> str:
        state = "closed" if self._closed else "new" if self._session is None else "open"
        return f"<AsyncSession: {state}, {len(self._queries)} queries>"

    # -- inside

    async def _call(
        self, function: Callable[[Session], _T], then: Callable[[_T], _Then] = _unchanged
    ) -> _Then:
        session = self._session
        if session is None:
            raise EngineError("the session is not open: use async with")
        return await self._do(lambda: function(session), then)

    async def _do(self, job: Callable[[], _T], then: Callable[[_T], _Then] = _unchanged) -> _Then:
        """Do a job in the thread of the session, and then in the event loop what follows from it.

        A task that is cancelled meanwhile ends neither.
        """
        loop, worker = self._loop, self._worker
        assert loop is not None
        assert worker is not None
        if asyncio.get_running_loop() is not loop:
            raise EngineError(
                "the session is open in another event loop; call"
                " asyncio.run_coroutine_threadsafe(.., loop)"
            )
        if worker.ended:
            raise EngineError("the session is closed")
        done: asyncio.Future[_Then] = loop.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            following = then(result) if error is None else None
            if done.cancelled():
                return
            if error is None:
                done.set_result(following)  # type: ignore[arg-type]
            else:
                done.set_exception(error)

        def run() -> None:
            try:
                result, error = job(), None
            except BaseException as raised:
                result, error = None, raised
            _in_loop(loop, settle, result, error)

        worker.submit(run)
        return await done

    def _read_waited(self) -> None:
        """Read the rows that are waited for; in the thread of the session."""
        loop = self._loop
        assert loop is not None
        for query in tuple(self._queries.values()):
            for reader in query._readers:
                if reader.waiting:
                    try:
                        taken, error = reader.take(), None
                    except BaseException as raised:
                        taken, error = [], raised
                    if taken or error is not None:
                        _in_loop(loop, reader.deliver, taken, error)


class _Reader(Generic[_T]):
    """What of a query's rows has been read, and the tasks that wait for more."""

    def __init__(self, query: AsyncRegistered, take: Callable[[], list[_T]]) -> None:
        self._query, self.take = query, take
        self.taken: deque[_T] = deque()
        self.waiting: list[asyncio.Future[None]] = []
        self._errors: deque[BaseException] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _T:
        while not self.taken:
            if self._errors:
                raise self._errors.popleft()
            if self._query.ended:
                raise StopAsyncIteration
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiting.append(future)
            try:
                await self._query.session._do(_nothing)  # after it the worker is idle, at some time
                if not self.taken and not self._errors and not self._query.ended:
                    await future
            finally:
                if future in self.waiting:
                    self.waiting.remove(future)
        return self.taken.popleft()

    def deliver(self, taken: list[_T], error: BaseException | None = None) -> None:
        self.taken.extend(taken)
        if error is not None:
            self._errors.append(error)
        self.wake()

    def wake(self) -> None:
        waiting, self.waiting = self.waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


class AsyncRegistered(Displayed):
    """A query of an `AsyncSession`: rows, or reports, that a coroutine waits for.

    `async for` ends when the query is unregistered or the session is closed.
    """

    def __init__(self, session: AsyncSession, registered: Registered) -> None:
        self.session, self.registered = session, registered
        self.ended = False
        """Whether there are no more rows: the query, or the session, was closed."""
        self._rows = _Reader(self, lambda: [*_elements(registered.rows())])
        self._readers: list[_Reader[Any]] = [self._rows]

    @property
    def name(self) -> str:
        """The name of the query."""
        return self.registered.name

    @property
    def query(self) -> CompiledQuery:
        """The compiled query."""
        return self.registered.query

    @property
    def output(self) -> str | None:
        """The stream that it feeds; None if it feeds none."""
        return self.registered.output

    async def rows(self) -> list[Any]:
        """Return the rows since the last call, or reports; with parameters, pairs with the key."""
        if not self.ended:
            await self.session._do(self._rows.take, self._rows.deliver)
        rows = [*self._rows.taken]
        self._rows.taken.clear()
        return rows

    def tables(self) -> AsyncIterator[pa.Table]:
        """Return an asynchronous iterator over the rows as tables, as `Registered.to_arrow` does.

        A table has the rows of all items that were pushed meanwhile: under load, many. Rows that
        are read as tables are not read one by one, and vice versa.

        >>> import asyncio, streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }"
        >>> async def main():
        ...     async with streamsparql.AsyncSession() as session:
        ...         query = await session.register(text)
        ...         await session.push_many("s", [("<a>", "<p>", 5, 3), ("<a>", "<p>", 6, 14)])
        ...         async for table in query.tables():
        ...             return table.to_pydict()
        >>> asyncio.run(main())
        {'o': ['"5"^^<http://www.w3.org/2001/XMLSchema#integer>'], 'start': [3], 'end': [10]}
        """
        registered = self.registered

        def take() -> list[pa.Table]:
            table = registered.to_arrow()
            return [table] if len(table) else []

        return self.taken_by(take)

    def taken_by(self, take: Callable[[], list[_T]]) -> AsyncIterator[_T]:
        """Return an asynchronous iterator over what a function makes of the rows of the query.

        The function is called in the thread of the session, once there may be new rows.
        """
        reader = _Reader(self, take)
        self._readers.append(reader)
        return reader

    async def add(self, **terms: Any) -> int:
        """Add an instance with these terms as parameters; return its key."""
        return await self.session._do(lambda: self.registered.add(**terms))

    async def add_many(self, source: Any) -> list[int]:
        """Add an instance for each row of a table, or each of several dicts; return their keys."""
        return await self.session._do(lambda: self.registered.add_many(source))

    async def remove(self, *keys: int) -> None:
        """Remove instances."""
        await self.session._do(lambda: self.registered.remove(*keys))

    async def close(self) -> None:
        """Unregister the query."""
        await self.session.unregister(self)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._rows

    def __repr__(self) -> str:
        return repr(self.registered).replace("<Registered", "<AsyncRegistered", 1)

    def _end(self, rest: list[Any]) -> None:
        """End with the last rows, which the latest reader receives."""
        self._readers[-1].deliver(rest)
        self._wake()

    def _wake(self) -> None:
        self.ended = True
        for reader in self._readers:
            reader.wake()


def _elements(taken: Any) -> Iterator[Any]:
    """Yield rows or reports; those of instances as pairs with the key."""
    if isinstance(taken, dict):
        yield from ((key, row) for key, rows in taken.items() for row in rows)
    else:
        yield from taken or ()


def _nothing() -> None:
    pass


def _in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *values: Any) -> None:
    """Call a function in an event loop, unless that has been closed meanwhile."""
    try:
        loop.call_soon_threadsafe(function, *values)
    except RuntimeError:  # the program ended without closing the session
        if not loop.is_closed():
            raise


@contextmanager
def _unless(error: BaseException | None) -> Iterator[None]:
    """Suppress errors of the package if another error is under way, which says more."""
    try:
        yield
    except EngineError:
        if error is None:
            raise
