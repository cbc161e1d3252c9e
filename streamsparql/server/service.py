"""A session whose queries are named, and whose results are retained for those who ask for them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from time import time
from typing import Any, NamedTuple, Self

import pyarrow as pa

from streamsparql.algebra.terms import XSD
from streamsparql.connectors.decoder import Decoder
from streamsparql.connectors.interface import Delivery
from streamsparql.connectors.message import Message
from streamsparql.connectors.message_source import MessageSource
from streamsparql.connectors.row_messages import RowMessages
from streamsparql.connectors.sources import open_live_source
from streamsparql.errors import EngineError, StreamSparqlError, position
from streamsparql.look.lints.warning import LintWarning
from streamsparql.query import Query
from streamsparql.query import compile as compile_query
from streamsparql.run.async_session import AsyncRegistered, AsyncSession
from streamsparql.run.checkpoint.file import Checkpoint
from streamsparql.run.checkpoint.folder import CheckpointFolder
from streamsparql.run.registered import KEY
from streamsparql.run.session import Session, SessionStats
from streamsparql.server.results import RETAINED, Results
from streamsparql.sinks.layout import Layout
from streamsparql.sources.reading import Reading

_INTEGER = f"^^<{XSD}integer>"
_TIMES = ("start", "end", "instant")
_LOG = logging.getLogger(__name__)


class UnknownName(StreamSparqlError):
    """A query or a stream that the session does not have."""


class Conflict(StreamSparqlError):
    """A change that contradicts what other queries need."""


@dataclass
class Served:
    """A query, its results, and the task that reads them."""

    query: AsyncRegistered
    options: Mapping[str, str]
    results: Results
    taken: Results
    """The same as the thread of the session has taken it, for checkpoints."""
    failure: str | None = None
    """Why there are no more results, if the query has failed."""
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The text of the query."""
        return self.query.query.text

    def explain(self, stage: str, format: str) -> str:  # noqa: A002
        """Return the plan of the query at a stage, in a format of `explain`."""
        query = self.query.query
        assert isinstance(query, Query)
        return query.explain(stage, format=format)


@dataclass
class _Live:
    """A live source, its thread, and the position after the items that were pushed."""

    source: MessageSource
    thread: ThreadPoolExecutor
    position: Any


class Received(NamedTuple):
    """What was received for a stream."""

    items: int
    rejected: int
    reasons: list[str]


class Service:
    """The queries and streams of a server."""

    def __init__(
        self,
        session: AsyncSession,
        retained: int = RETAINED,
        checkpoints: CheckpointFolder | None = None,
    ) -> None:
        self.session, self._retained = session, retained
        self._checkpoints = checkpoints
        self.saved: float | None = None
        """When the last checkpoint was written."""
        self._live: dict[str, _Live] = {}
        self._positions: dict[str, Any] = {}
        """The positions of live sources in the checkpoint from which the service continues."""
        self.queries: dict[str, Served] = {}
        self.began = time()
        self._arrivals = 0
        self._changing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self.sources: dict[str, str] = {}
        """The live sources, and what has become of each."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._try_to_save()
        for live in self._live.values():
            live.thread.submit(live.source.close)
            live.thread.shutdown(wait=False)

    # -- checkpoints

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue with the queries, results and positions of a checkpoint.

        It is the one from which the session was restored.
        """
        for name, saved in checkpoint.content["served"].items():
            rows = checkpoint.tables[f"served/{name}"]["row"].to_pylist()
            self._serve(self.session.queries[name], saved["options"], saved["count"], rows)
        self._positions = checkpoint.content["positions"]["sources"]

    async def save_every(self, seconds: float) -> None:
        """Write a checkpoint now, and from time to time."""
        await self.save()

        async def repeat() -> None:
            while True:
                await asyncio.sleep(seconds)
                await self._try_to_save()

        self._tasks.append(asyncio.get_running_loop().create_task(repeat()))

    async def _try_to_save(self) -> None:
        try:
            await self.save()
        except StreamSparqlError as error:
            _LOG.warning("no checkpoint: %s", error)

    async def save(self) -> None:
        """Write a checkpoint: the session, the last results, and the positions of live sources."""
        if self._checkpoints is None:
            return
        async with self._changing:
            positions = await self.session.call(self._save)
            self.saved = time()
        loop = asyncio.get_running_loop()
        for name, reached in positions.items():
            live = self._live[name]
            await loop.run_in_executor(live.thread, live.source.commit, reached)

    def _save(self, session: Session) -> dict[str, Any]:
        """Write a checkpoint, in the thread of the session; return the positions in it."""
        assert self._checkpoints is not None
        checkpoint = session.checkpoint()
        positions = {name: live.position for name, live in self._live.items()}
        served = {
            name: {"options": dict(each.options), "count": each.taken.count}
            for name, each in self.queries.items()
        }
        rows = {
            f"served/{name}": pa.table({"row": pa.array(each.taken.retained, pa.binary())})
            for name, each in self.queries.items()
        }
        unopened = {name: at for name, at in self._positions.items() if name not in positions}
        sources = {**unopened, **positions}
        content = {
            **checkpoint.content,
            "served": served,
            "positions": {"sources": sources, "sinks": {}},
        }
        whole = checkpoint._replace(content=content, tables={**checkpoint.tables, **rows})
        self._checkpoints.remove_before(self._checkpoints.write(whole))
        return positions

    # -- queries

    async def put(self, name: str, text: str, options: Mapping[str, str]) -> bool:
        """Register a query, or replace that of the name; return whether anything changed."""
        async with self._changing:
            served = self.queries.get(name)
            if served is not None:
                if served.text == text and served.options == options:
                    return False
            compiled = _compiled(text, options)  # before the query that it replaces is removed
            if served is not None:
                await self._remove(served)
            try:
                await self._register(name, compiled, options)
            except StreamSparqlError:
                if served is not None:  # what was wrong is not in the text alone
                    again = _compiled(served.text, served.options)
                    await self._register(name, again, served.options)
                raise
            return True

    async def _register(self, name: str, query: Query, options: Mapping[str, str]) -> None:
        reports = {key: value for key, value in options.items() if key != "dialect"}
        registered = await self.session.register(query, name, **reports)
        self._serve(registered, options, 0, [])

    def _serve(
        self, query: AsyncRegistered, options: Mapping[str, str], count: int, rows: list[bytes]
    ) -> None:
        """Retain the results of a query, after some that there were."""
        served = Served(query, dict(options), Results(self._retained), Results(self._retained))
        for results in (served.results, served.taken):
            results.restore(count, rows)
        served.task = asyncio.get_running_loop().create_task(self._read(served))
        self.queries[query.name] = served

    async def delete(self, name: str) -> None:
        """Remove a query."""
        async with self._changing:
            await self._remove(self.query(name))

    async def _remove(self, served: Served) -> None:
        try:
            await self.session.unregister(served.query.name)
        except EngineError as error:
            if " feeds " in str(error):
                raise Conflict(str(error)) from None
            raise
        del self.queries[served.query.name]
        if served.task is not None:
            await served.task

    def query(self, name: str) -> Served:
        """Return the query of a name."""
        served = self.queries.get(name)
        if served is None:
            known = ", ".join(self.queries) or "none"
            raise UnknownName(f"unknown query {name!r}; registered: {known}")
        return served

    async def _read(self, served: Served) -> None:
        messages: RowMessages | None = None

        def take() -> list[list[bytes]]:
            nonlocal messages
            table = served.query.registered.to_arrow()
            if not len(table):
                return []
            rows = _with_terms(table)
            if messages is None:
                messages = RowMessages(_layout(served.query, rows), "json")
            payloads = [message.payload for message in messages.of(rows)]
            served.taken.add(payloads)
            return [payloads]

        try:
            async for payloads in served.query.taken_by(take):
                served.results.add(payloads)
        except StreamSparqlError as error:
            served.failure = str(error)
        finally:
            served.results.end()

    # -- streams

    async def streams(self) -> dict[str, int]:
        """Return the watermark of each stream."""
        return await self.session.call(lambda session: session.watermarks)

    async def stream(self, name: str) -> str:
        """Return the IRI of a stream: the name itself, or the only one that ends with it."""
        known = await self.streams()
        if name in known:
            return name
        ending = [iri for iri in known if re.split(r"[/#:]", iri)[-1] == name]
        if len(ending) == 1:
            return ending[0]
        names = ", ".join(f"<{iri}>" for iri in known) or "none"
        raise UnknownName(f"unknown stream {name!r}; the queries read {names}")

    async def connect(self, stream: str, url: str) -> None:
        """Read a live source into a stream until it ends, or the service does."""
        thread = ThreadPoolExecutor(1, "source")  # which all calls of a source come from
        loop = asyncio.get_running_loop()
        source = await loop.run_in_executor(thread, open_live_source, url, stream)
        shown = url.partition("?")[0]
        name = f"{shown} of <{stream}>"
        if name in self._live:
            raise EngineError(f"{shown} is read into <{stream}> twice")
        live = self._live[name] = _Live(source, thread, None)
        if (saved := self._positions.get(name)) is not None:
            await loop.run_in_executor(thread, source.seek, saved)
        live.position = await loop.run_in_executor(thread, source.position)
        self.sources[shown] = "open"

        def poll() -> tuple[list[Delivery], Any]:
            return source.poll(0.2), source.position()

        async def pump() -> None:
            try:
                while not source.ended:
                    deliveries, reached = await loop.run_in_executor(thread, poll)
                    if deliveries:
                        await self.session.call(partial(push, deliveries, reached))
                        if self._checkpoints is None:
                            await loop.run_in_executor(thread, source.commit, reached)
                self.sources[shown] = "ended"
            except StreamSparqlError as error:
                self.sources[shown] = str(error)

        def push(deliveries: list[Delivery], reached: Any, session: Session) -> None:
            for _, items in deliveries:
                session.push_many(stream, items)
            live.position = reached  # together: a checkpoint has both, or none

        self._tasks.append(loop.create_task(pump()))

    async def receive(
        self, stream: str, kind: str, payloads: Sequence[bytes], **options: Any
    ) -> Received:
        """Push the items in messages: each is an item, a record of a mapping, or a small graph."""
        if not payloads:
            return Received(0, 0, [])
        decoder = Decoder(f"<{stream}>", kind, reading=Reading(), **options)
        first, self._arrivals = self._arrivals, self._arrivals + len(payloads)
        messages = [
            Message(payload, "request", first + k + 1, None) for k, payload in enumerate(payloads)
        ]
        block = await asyncio.to_thread(decoder.decode, messages, "message")
        decoded = block.decoded
        await self.session.push_many(stream, decoded)
        reasons = [str(reject) for reject in decoded.rejects[:3]]
        return Received(len(decoded.places), len(decoded.rejects), reasons)

    # -- what is known

    async def stats(self) -> tuple[SessionStats, dict[str, int]]:
        """Return the figures of the session, and the numbers of rows of its queries so far."""
        stats = await self.session.call(_stats)
        return stats, {name: served.results.count for name, served in self.queries.items()}

    async def explain(self, format: str) -> str:  # noqa: A002
        """Return the plans of all queries with their counts, in a format of `explain`."""
        return await self.session.call(lambda session: session.explain(format, counts=True))


def _stats(session: Session) -> SessionStats:
    assert session.watermarks is not None  # all items are processed
    return session.stats()


def _compiled(text: str, options: Mapping[str, str]) -> Query:
    query = compile_query(text, dialect=options.get("dialect", "auto"))
    query.warned = True  # `check` has the warnings
    return query


def diagnostics(text: str) -> list[dict[str, Any]]:
    """Return the error of a text, or the warnings about it, with their places.

    >>> [(each["severity"], each["line"]) for each in diagnostics("SELECT ?x")]
    [('error', 1)]
    """
    try:
        query: Query = compile_query(text)
    except StreamSparqlError as error:
        return [
            {
                "severity": "error",
                "message": getattr(error, "message", None) or str(error),
                "line": getattr(error, "line", None),
                "column": getattr(error, "column", None),
                "hint": getattr(error, "hint", "") or "",
                "text": str(error),
            }
        ]
    return [
        {
            "severity": "warning",
            "message": warning.message,
            **_place(warning),
            "hint": warning.hint,
            "text": str(warning),
        }
        for warning in query.check()
    ]


def _place(warning: LintWarning) -> dict[str, int | None]:
    if warning.span is None:
        return {"line": None, "column": None}
    line, column = position(warning.text, warning.span.start)
    return {"line": line, "column": column}


def _with_terms(table: pa.Table) -> pa.Table:
    """Return rows whose key, a number, is a term as all columns but the times are."""
    for k, name in enumerate(table.column_names):
        if name == KEY and pa.types.is_integer(table.schema.field(k).type):
            keys = [f'"{key}"{_INTEGER}' for key in table.column(k).to_pylist()]
            table = table.set_column(k, name, pa.array(keys))
    return table


def _layout(query: AsyncRegistered, rows: pa.Table) -> Layout:
    times = [
        field.name for field in rows.schema if pa.types.is_integer(field.type)
    ]  # the last columns
    names = tuple(name for name in rows.column_names if name not in times)
    compiled = query.query
    return Layout(compiled.form, names, tuple(times), compiled.prefixes)
