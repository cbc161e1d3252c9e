"""Server-Sent Events: a stream of events as a source, and a server that broadcasts rows as a sink.

    sse+https://stream.wikimedia.org/v2/stream/recentchange?map=m.rq     sse+listen://127.0.0.1:8080/

The position of a source is the id of its last event, which is sent as Last-Event-ID: whether the
events after it are sent again depends on the server. The ids of a sink are the keys of the rows.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from threading import Event, Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from streamsparql.connectors.broadcast import Broadcast, BroadcastSink
from streamsparql.connectors.http_server import QuietHandler, server_at
from streamsparql.connectors.inbox import InboxTransport
from streamsparql.connectors.interface import Position
from streamsparql.connectors.outage import Outage
from streamsparql.connectors.row_messages import RowMessages
from streamsparql.connectors.urls import ConnectorUrl
from streamsparql.overriding import override
from streamsparql.sinks.layout import Layout

_WAIT = 30.0


class ServerEvent(NamedTuple):
    """An event: its data, its type, and the last id so far."""

    data: bytes
    kind: str
    id: str


def events_of(lines: Iterable[bytes], last: str = "") -> Iterator[ServerEvent | int]:
    """Yield the events in lines, and the milliseconds of `retry`; an incomplete one is dropped.

    >>> list(events_of([b"id: 7\\n", b"data: a\\n", b"data: b\\n", b"\\n", b"data: c\\n"]))
    [ServerEvent(data=b'a\\nb', kind='message', id='7')]
    """
    data: list[bytes] = []
    kind = "message"
    for line in lines:
        line = line.rstrip(b"\r\n")
        if not line:
            if data:
                yield ServerEvent(b"\n".join(data), kind, last)
            data, kind = [], "message"
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                data.append(value)
            case b"event":
                kind = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                last = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit():
                yield int(value[:9])


def transport(url: ConnectorUrl, decoder: Any) -> ServerEvents:
    """Return the events of a server."""
    return ServerEvents(url)


class ServerEvents(InboxTransport):
    """A transport of the events of a server."""

    unit = "event"
    replayable = True

    def __init__(self, url: ConnectorUrl) -> None:
        super().__init__(url.shown)
        self._url = url.rest.removeprefix("sse+")
        kinds = url.text("events")
        self._kinds = None if kinds is None else set(kinds.split(","))
        self._headers = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
        self._headers["User-Agent"] = url.text("agent", "streamsparql")
        if url.user is not None:
            self._headers["Authorization"] = url.authorization
        self._outage, self._said = Outage(url.shown), list[object]()
        self._start = {"id": url.text("after", ""), "number": 0}
        self._retry: float | None = None
        self._closing = Event()
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._thread: Thread | None = None

    @override
    def seek(self, positions: Mapping[str, Position]) -> None:
        self._start = positions.get(self.inbox.partition, self._start)
        self.inbox.start_at(self._start["number"])

    @override
    def receive(self, timeout: float, paused: Any) -> list[Any]:
        if self._thread is None:
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()
        if self._said:
            self._outage.report(self._said.pop())
            self._said.clear()
        messages = super().receive(timeout, paused)
        if messages:
            self._outage.repaired()
        return messages

    def _run(self) -> None:
        """Receive events, and connect again, until the transport is closed or the server ends."""
        last, number = self._start["id"], self._start["number"]
        attempts = Outage(self.inbox.partition)
        while not self._closing.is_set():
            reason: object = "the server closed the connection"
            try:
                response = self._opened(last)
                if response is None:
                    return
                for event in events_of(response, last):
                    attempts.repaired()
                    if isinstance(event, int):
                        self._retry = event / 1000
                        continue
                    last = event.id
                    if self._kinds is None or event.kind in self._kinds:
                        number += 1
                        after = {"id": last, "number": number}
                        self.inbox.put(event.data, after=after, topic=event.kind)
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = error
            if self._closing.is_set():
                return
            self._said.append(reason)
            pause = attempts.silent_pause()
            self._closing.wait(pause if self._retry is None else max(self._retry, pause / 2))

    def _opened(self, last: str) -> http.client.HTTPResponse | None:
        """Return the response of the server; None if there are no more events, or never were."""
        parts = urlsplit(self._url)
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            secure = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(
                host, port, timeout=_WAIT, context=secure
            )
        else:
            self._connection = http.client.HTTPConnection(host, port, timeout=_WAIT)
        headers = {**self._headers, **({"Last-Event-ID": last} if last else {})}
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._connection.request("GET", path, headers=headers)
        self._socket = self._connection.sock
        response = self._connection.getresponse()
        if response.status == 204:
            self.inbox.end()
            return None
        if response.status >= 500 or response.status == 429:
            raise OSError(f"the server answers {response.status} {response.reason}")
        if response.status != 200:
            self.inbox.fail(
                f"{self.inbox.partition}: the server answers {response.status} {response.reason}"
            )
            return None
        return response

    @override
    def close(self) -> None:
        self._closing.set()
        super().close()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join(_WAIT)
        if self._connection is not None:
            self._connection.close()


def sink(url: ConnectorUrl, layout: Layout) -> BroadcastSink:
    """Return a server whose events are rows."""
    broadcast = Broadcast()
    path = f"/{url.path}"

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 -- the name that the server calls
            if self.path.partition("?")[0] != path:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-cache")
            self.end_headers()
            _send_events(self, broadcast)

    messages = RowMessages(layout, url.text("format", "json", among=("json", "sparql-json", "nq")))
    return BroadcastSink(messages, broadcast, server_at(url, Handler))


def _send_events(handler: BaseHTTPRequestHandler, broadcast: Broadcast) -> None:
    """Send events until the client leaves, or is too slow; those after Last-Event-ID first."""
    last = handler.headers.get("Last-Event-ID")
    known = None if last is None else broadcast.number_of(last)
    number = broadcast.number if known is None else known
    try:
        while (found := broadcast.after(number, 1.0)) is not None:
            text = b"".join(
                b"id: %s\ndata: %s\n\n" % (message.key.encode(), message.payload)
                for _, message in found
            )
            handler.wfile.write(text or b":\n\n")
            number = found[-1][0] if found else number
    except OSError:
        return
