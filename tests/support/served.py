"""A server in a thread of the test, and requests to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import streamsparql
from streamsparql.server.app import application
from streamsparql.server.listening import serve
from streamsparql.server.security import Security
from streamsparql.server.service import Service


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Server(NamedTuple):
    """A server that is running."""

    url: str
    service: Service
    call: Callable[[Any], Any]
    """Awaits a coroutine in the event loop of the server."""

    def ask(
        self, method: str, path: str, body: str | bytes | None = None, **headers: str
    ) -> Answer:
        """Send a request; a header `content_type` is that of `Content-Type`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            connection.request(method, path, body, named)
            response = connection.getresponse()
            known = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, known, response.read())
        finally:
            connection.close()

    def put(self, name: str, text: str) -> Answer:
        """Register a query."""
        return self.ask("PUT", f"/queries/{quote(name)}", text)

    def push(self, stream: str, quads: str) -> Answer:
        """Push items in N-Quads."""
        return self.ask("POST", f"/streams/{stream}", quads, content_type="application/n-quads")


@contextmanager
def serving(
    security: Security = Security("127.0.0.1"),  # noqa: B008 -- it is immutable
    retained: int = 1_000,
    **options: Any,
) -> Iterator[Server]:
    """Run a server in a thread."""
    ready = threading.Event()
    known: dict[str, Any] = {}

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with (
            streamsparql.AsyncSession(**options) as session,
            Service(session, retained) as service,
        ):
            known.update(service=service, loop=loop, stop=asyncio.Event())
            app = application(service, security)

            def started(url: str) -> None:
                known["url"] = url
                ready.set()

            listening = asyncio.ensure_future(serve(app, "127.0.0.1", 0, started))
            await known["stop"].wait()
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(30)

    def call(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, known["loop"]).result(30)

    try:
        yield Server(known["url"], known["service"], call)
    finally:
        known["loop"].call_soon_threadsafe(known["stop"].set)
        thread.join(30)
        assert not thread.is_alive()
