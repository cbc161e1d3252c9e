"""The HTTP server of connectors that listen: threads of the standard library, quiet."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from streamsparql.connectors.urls import ConnectorUrl
from streamsparql.errors import EngineError
from streamsparql.overriding import override


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that prints no log."""

    timeout = 60

    @override
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base's name
        return


def server_at(url: ConnectorUrl, handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    """Return a server at the host and port of a URL; a host must be written."""
    try:
        server = ThreadingHTTPServer((url.host, url.port or 0), handler)
    except OSError as error:
        raise EngineError(f"{url.shown}: {error}") from None
    server.daemon_threads = True
    return server
