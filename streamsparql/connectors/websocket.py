"""WebSocket: the messages of a server as a source, and a server that broadcasts rows as a sink.

    wss://feed.example/ticks?map=m.rq&send={"subscribe":"ticks"}     ws+listen://127.0.0.1:8765/

A WebSocket has no positions: what was sent while the connection was down is missing.
"""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

from streamsparql.connectors.broadcast import Broadcast, BroadcastSink
from streamsparql.connectors.inbox import InboxTransport
from streamsparql.connectors.outage import Outage
from streamsparql.connectors.row_messages import RowMessages
from streamsparql.connectors.urls import ConnectorUrl, client
from streamsparql.errors import EngineError, SourceError
from streamsparql.overriding import override
from streamsparql.sinks.layout import Layout

_WAIT = 15.0


def websocket_transport(url: ConnectorUrl, decoder: Any) -> WebSocket:
    """Return the messages of a server."""
    return WebSocket(client("websockets.sync.client", "websocket"), url)


class WebSocket(InboxTransport):
    """A transport of the messages that a server sends."""

    def __init__(self, websockets: Any, url: ConnectorUrl) -> None:
        super().__init__(url.shown)
        self._connect = websockets.connect
        self._url, self._send = url.rest, url.text("send")
        self._options: dict[str, Any] = {"open_timeout": _WAIT, "max_size": 1 << 26}
        if url.user is not None:
            self._options["additional_headers"] = {"Authorization": url.authorization}
        self._outage, self._said = Outage(url.shown), list[object]()
        self._broken = (OSError, client("websockets.exceptions", "websocket").WebSocketException)
        self._closing, self._ready = Event(), Event()
        self._socket: Any = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        if not self._ready.wait(2 * _WAIT) or self._socket is None:
            self.close()
            raise SourceError(f"{url.shown}: {(self._said or ['no answer'])[-1]}")

    def _run(self) -> None:
        """Receive messages, and connect again, until the transport is closed."""
        attempts = Outage(self.inbox.partition)
        while not self._closing.is_set():
            try:
                with self._connect(self._url, **self._options) as opened:
                    self._socket = opened
                    attempts.repaired()
                    if self._send is not None:
                        opened.send(self._send)
                    self._ready.set()
                    for message in opened:
                        self.inbox.put(message.encode() if isinstance(message, str) else message)
                self._said.append("the server closed the connection")
            except self._broken as error:
                self._said.append(error)
                self._ready.set()
            self._closing.wait(attempts.silent_pause())

    @override
    def receive(self, timeout: float, paused: Any) -> list[Any]:
        if self._said and not self._closing.is_set():
            self._outage.report(self._said.pop())
            self._said.clear()
        messages = super().receive(timeout, paused)
        if messages:
            self._outage.repaired()
        return messages

    @override
    def close(self) -> None:
        self._closing.set()
        super().close()
        if self._socket is not None:
            self._socket.close()
        self._thread.join(_WAIT)


def websocket_sink(url: ConnectorUrl, layout: Layout) -> BroadcastSink:
    """Return a server that sends rows to all who are connected."""
    server = client("websockets.sync.server", "websocket")
    closed = client("websockets.exceptions", "websocket").ConnectionClosed
    broadcast = Broadcast()

    def begin(socket: Any, _: Any) -> None:
        socket.begins_after = broadcast.number  # before the client knows that it is connected

    def handle(socket: Any) -> None:
        number = socket.begins_after
        try:
            while (sent := broadcast.after(number, 1.0)) is not None:
                for _, message in sent:
                    socket.send(message.payload.decode())
                if sent:
                    number = sent[-1][0]
                else:
                    socket.ping()
            socket.close(1013 if not broadcast.closed else 1001)
        except closed:
            return

    messages = RowMessages(layout, url.text("format", "json", among=("json", "sparql-json", "nq")))
    try:
        listening = server.serve(handle, url.host, url.port or 0, process_request=begin)
    except OSError as error:
        raise EngineError(f"{url.shown}: {error}") from None
    return BroadcastSink(messages, broadcast, listening)
