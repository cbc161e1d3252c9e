"""HTTP: an endpoint that messages are posted to as a source, and a webhook as a sink.

    http+listen://127.0.0.1:8080/items?map=m.rq&lines=yes&token=secret     https://example.org/hook

A message counts once the endpoint has answered 202: one whose body is cut off is not received. A
row is posted with its key as Idempotency-Key, until the webhook answers 2xx.
"""

from __future__ import annotations

import hmac
import http.client
import ssl
from threading import Thread
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from streamsparql.connectors.http_server import QuietHandler, server_at
from streamsparql.connectors.inbox import InboxTransport
from streamsparql.connectors.interface import Position
from streamsparql.connectors.outage import Outage
from streamsparql.connectors.row_messages import RowMessage, RowMessages
from streamsparql.connectors.urls import ConnectorUrl
from streamsparql.errors import EngineError
from streamsparql.overriding import override
from streamsparql.sinks.layout import Layout

_WAIT = 30.0
_LARGEST = 1 << 26


def transport(url: ConnectorUrl, decoder: Any) -> Endpoint:
    """Return an endpoint that listens."""
    return Endpoint(url)


class Endpoint(InboxTransport):
    """A transport of the messages that are posted to an endpoint."""

    def __init__(self, url: ConnectorUrl) -> None:
        super().__init__(url.shown)
        inbox, path = self.inbox, f"/{url.path}"
        lines, token = url.flag("lines"), url.text("token")

        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802 -- the name that the server calls
                given = self.headers.get("Authorization", "")
                size = self.headers.get("Content-Length", "")
                if self.path.partition("?")[0] != path:
                    self.send_error(404)
                elif token is not None and not hmac.compare_digest(
                    given.encode(), f"Bearer {token}".encode()
                ):
                    self.send_error(401)
                elif not size.isdigit():
                    self.send_error(411)
                elif int(size) > _LARGEST:
                    self.send_error(413)
                else:
                    self._accept(int(size))

            def _accept(self, size: int) -> None:
                body = self.rfile.read(size)
                if len(body) < size:  # the connection was cut
                    return
                messages = [line for line in body.split(b"\n") if line.strip()] if lines else [body]
                if not inbox.put_all(messages, _WAIT):
                    self.send_response(503)
                    self.send_header("Retry-After", "5")
                else:
                    self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

        self.server = server_at(url, Handler)
        self._thread = Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    @override
    def close(self) -> None:
        super().close()
        self.server.shutdown()
        self._thread.join(_WAIT)
        self.server.server_close()


def sink(url: ConnectorUrl, layout: Layout) -> Webhook:
    """Return a webhook."""
    kind = url.text("format", "json")
    return Webhook(url, RowMessages(layout, kind), _TYPES.get(kind, "application/json"))


_TYPES = {"nq": "application/n-quads", "arrow": "application/vnd.apache.arrow.stream"}


class Webhook:
    """A sink that posts each row, and tries again until it is accepted."""

    def __init__(self, url: ConnectorUrl, messages: RowMessages, kind: str) -> None:
        self._shown, self._messages = url.shown, messages
        parts = urlsplit(url.rest)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"Content-Type": kind, "User-Agent": "streamsparql"}
        if url.user is not None:
            self._headers["Authorization"] = url.authorization
        token = url.text("token")
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._outage = Outage(url.shown)
        secure = {"context": ssl.create_default_context()} if parts.scheme == "https" else {}
        make: Any = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._connection = make(url.host, url.port, timeout=_WAIT, **secure)

    def write(self, rows: pa.Table) -> None:
        """Post rows one after the other."""
        for message in self._messages.of(rows):
            while (reason := self._post(message)) is not None:
                sleep(self._outage.pause(reason))
            self._outage.repaired()

    def _post(self, message: RowMessage) -> str | None:
        """Post a row; return why it must be posted again; raise an error if it was refused."""
        headers = {**self._headers, "Idempotency-Key": message.key}
        try:
            self._connection.request("POST", self._path, message.payload, headers)
            response = self._connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return str(error) or type(error).__name__
        answer = f"the server answers {response.status} {response.reason}"
        if 200 <= response.status < 300:
            return None
        if response.status >= 500 or response.status in (408, 425, 429):
            return answer
        raise EngineError(f"{self._shown}: {answer}")

    def flush(self) -> None:
        """Do nothing: a row is written when it is accepted."""

    def position(self) -> Position:
        """Return None: rows that were posted cannot be removed."""
        return None

    def truncate(self, position: Position) -> None:
        """Remove nothing."""

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
