"""WebSocket, Server-Sent Events, HTTP: what is cut off, repeated, refused, and what is no message."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from support.brokers import free_port, wait_for

from streamsparql.connectors.message_source import MessageSource
from streamsparql.connectors.sinks import open_live_sink
from streamsparql.connectors.sources import open_source
from streamsparql.errors import DataWarning, EngineError, SourceError
from streamsparql.sinks import Layout

MAPPING = "CONSTRUCT { <x> <v> ?v } {}"
LAYOUT = Layout("select", ("v",), ("start", "end"))


@contextmanager
def opened(url: str) -> Iterator[MessageSource]:
    source = open_source(url, mapping=MAPPING)
    try:
        yield source
    finally:
        source.close()


def values(source: MessageSource, least: int) -> list[str]:
    """Return the values of the next items, at least some."""
    read: list[str] = []

    def enough() -> bool:
        for _, items in source.poll(0.1):
            read.extend(text.split('"')[1] for text in items.items["object"].to_pylist())
        return len(read) >= least

    wait_for(enough, f"{least} items")
    return read


def rows(*starts: int) -> pa.Table:
    return pa.table({"v": ['"a"'] * len(starts), "start": starts, "end": [99] * len(starts)})


@contextmanager
def served(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Run a server whose requests a function answers; yield its host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


# -- Server-Sent Events ----------------------------------------------------------------------------


def test_an_event_that_is_cut_off_is_received_whole_after_it() -> None:
    """The server cuts the second event in the middle; the client returns with the first one's id."""
    asked: list[str | None] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.headers.get("Last-Event-ID"))
        request.send_response(200)
        request.end_headers()
        if len(asked) == 1:
            request.wfile.write(b'retry: 10\n\nid: 1\ndata: {"v": 1,\ndata: "t": 1}\n\nid: 2\n')
            request.wfile.write(b'data: {"v"')
        else:
            request.wfile.write(b'id: 2\ndata: {"v": 2, "t": 2}\n\n')

    with served(answer) as host, opened(f"sse+http://{host}/events") as source:
        with pytest.warns(DataWarning, match="connecting again"):
            assert values(source, 2) == ["1", "2"]
        assert source.position()["partitions"].popitem()[1] == {"id": "2", "number": 2}
    assert asked[:2] == [None, "1"]


def test_a_position_is_the_id_of_the_last_event() -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        if request.headers.get("Last-Event-ID") == "3":
            request.send_response(204)
        else:
            request.send_response(200)
            request.end_headers()
            last = int(request.headers.get("Last-Event-ID", 0))
            for k in range(last + 1, 4):
                request.wfile.write(b'id: %d\ndata: {"v": %d, "t": %d}\n\n' % (k, k, k))
            return
        request.end_headers()

    with served(answer) as host:
        url = f"sse+http://{host}/events"
        with opened(url) as source:
            source.seek({"partitions": {url: {"id": "1", "number": 1}}})
            assert values(source, 2) == ["2", "3"]
            wait_for(lambda: not source.poll(0.1) and source.ended, "the end")


def test_a_server_that_refuses_is_an_error() -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_error(403)

    with (
        served(answer) as host,
        opened(f"sse+http://{host}/events") as source,
        pytest.raises(SourceError, match="answers 403"),
    ):
        source.poll(10)


def test_rows_are_broadcast_as_events_and_resumed() -> None:
    port = free_port()
    sink = open_live_sink(f"sse+listen://127.0.0.1:{port}/rows", LAYOUT)
    url = f"sse+http://127.0.0.1:{port}/rows"
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /rows HTTP/1.0\r\n\r\n")
        lines = client.makefile("rb")
        wait_for(lambda: lines.readline() == b"\r\n", "the headers")
        sink.write(rows(1, 2))
        first = [lines.readline() for _ in range(3)]
        lines.close()
    assert json.loads(first[1].removeprefix(b"data: "))["start"] == 1
    last = first[0].removeprefix(b"id: ").strip().decode()
    source = open_source(f"{url}?after={last}", mapping="CONSTRUCT { <x> <v> ?start } {}")
    assert source.position() == {"partitions": {url: {"id": last, "number": 0}}}
    ((_, items),) = wait_for(lambda: source.poll(0.2), "the second row")
    assert [text[:2] for text in items.items["object"].to_pylist()] == ['"2']
    source.close()
    sink.close()


# -- WebSocket -------------------------------------------------------------------------------------


def test_websockets_connect_again() -> None:
    server_of = pytest.importorskip("websockets.sync.server")
    connections: list[str] = []

    def handle(connection: Any) -> None:
        connections.append(connection.recv())
        n = len(connections)
        connection.send(json.dumps({"v": n, "t": n}))
        connection.send(b"\xff")
        if n == 1:
            connection.socket.shutdown(socket.SHUT_RDWR)
        else:
            for _ in connection:
                pass

    with server_of.serve(handle, "127.0.0.1", 0) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        port = server.socket.getsockname()[1]
        with (
            opened(f"ws://127.0.0.1:{port}/feed?send=hello") as source,
            pytest.warns(DataWarning, match="connecting again"),
        ):
            assert values(source, 2) == ["1", "2"]
        server.shutdown()
        thread.join()
    assert connections == ["hello", "hello"]


def test_rows_are_broadcast_to_websockets() -> None:
    client = pytest.importorskip("websockets.sync.client")
    port = free_port()
    sink = open_live_sink(f"ws+listen://127.0.0.1:{port}/", LAYOUT)
    with client.connect(f"ws://127.0.0.1:{port}/") as one:
        with client.connect(f"ws://127.0.0.1:{port}/") as other:
            for start in (1, 2):
                sink.write(rows(start))
            for listener in (one, other):
                assert [json.loads(listener.recv(10))["start"] for _ in range(2)] == [1, 2]
        sink.close()


# -- HTTP ------------------------------------------------------------------------------------------


def post(port: int, body: bytes, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/items", body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_an_endpoint_accepts_messages() -> None:
    port = free_port()
    with opened(f"http+listen://127.0.0.1:{port}/items?lines=yes&token=secret") as source:
        token = {"Authorization": "Bearer secret"}
        assert post(port, b'{"v": 1, "t": 1}\n{"v": 2, "t": 2}', **token) == 202
        assert post(port, b'{"v": 3, "t": 3}') == 401
        with socket.create_connection(("127.0.0.1", port)) as cut:
            cut.sendall(b"POST /items HTTP/1.0\r\nAuthorization: Bearer secret\r\n")
            cut.sendall(b'Content-Length: 40\r\n\r\n{"v": 4, "t": 4}')
        assert post(port, b'{"v": 5, "t": 5}', **token) == 202
        assert values(source, 3) == ["1", "2", "5"]


def test_a_webhook_is_called_until_it_accepts() -> None:
    calls: list[tuple[str, bytes]] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        calls.append((request.headers["Idempotency-Key"], body))
        request.send_response(503 if len(calls) == 1 else 200)
        request.end_headers()

    with served(answer) as host:
        sink = open_live_sink(f"http://{host}/hook", LAYOUT)
        with pytest.warns(DataWarning, match="503"):
            sink.write(rows(1, 2))
        sink.close()
    assert calls[0] == calls[1] != calls[2]
    assert [json.loads(body)["start"] for _, body in calls] == [1, 1, 2]


def test_a_webhook_that_refuses_is_an_error() -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["Content-Length"]))
        request.send_error(400)

    with served(answer) as host:
        sink = open_live_sink(f"http://{host}/hook", LAYOUT)
        with pytest.raises(EngineError, match="answers 400"):
            sink.write(rows(1))
        sink.close()
