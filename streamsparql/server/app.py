"""The HTTP interface of a service (docs/serving.md)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from streamsparql.connectors.decoder import GUESSED
from streamsparql.errors import SourceError, StreamSparqlError, TextError, UnsupportedFeature
from streamsparql.physical.operator import INFINITY
from streamsparql.server import metrics
from streamsparql.server.security import Security
from streamsparql.server.service import Conflict, Served, Service, UnknownName, diagnostics
from streamsparql.values.python_values import aware_datetime

MAX_BODY = 64 << 20
"""The greatest size of a request, in bytes."""
POLL_SECONDS = 30.0
"""How long a request for results waits for the next row, unless it says how long."""
_KEEP_ALIVE = 15.0
_PAGE = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline';"
_POLICY += " img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none';"
_POLICY += " frame-ancestors 'none'"
_OPTIONS = ("report", "every", "dialect")
_FORMATS = {
    "application/n-quads": "nq",
    "application/n-triples": "nt",
    "text/turtle": "ttl",
    "application/trig": "trig",
    "application/ld+json": "jsonld",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
    "application/json": "json",
    "text/csv": "csv",
}
"""The formats of items, by the type of their content."""


def application(service: Service, security: Security) -> ASGIApp:
    """Return the interface of a service, as an ASGI application."""
    interface = _Interface(service)
    routes: list[Any] = [
        Route("/", interface.page),
        Route("/page.css", interface.page),
        Route("/page.js", interface.page),
        Route("/healthz", interface.health),
        Route("/metrics", interface.metrics),
        Route("/explain", interface.explain_all),
        Route("/check", interface.check, methods=["POST"]),
        Route("/queries", interface.queries),
        Route("/queries/{name}", interface.query),
        Route("/queries/{name}", interface.put, methods=["PUT"]),
        Route("/queries/{name}", interface.delete, methods=["DELETE"]),
        Route("/queries/{name}/explain", interface.explain),
        Route("/queries/{name}/results", interface.results),
        WebSocketRoute("/queries/{name}/results", interface.results_by_websocket),
        Route("/queries/{name}/instances", interface.add, methods=["POST"]),
        Route("/queries/{name}/instances/{key:int}", interface.remove, methods=["DELETE"]),
        Route("/streams", interface.streams),
        Route("/streams/{name:path}", interface.receive, methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {StreamSparqlError: _error}
    app = Starlette(routes=routes, exception_handlers=handlers)
    return _Guarded(app, security)


class _Guarded:
    """An application behind the rules of a server."""

    def __init__(self, app: ASGIApp, security: Security) -> None:
        self._app, self._security = app, security

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        if scope["type"] == "websocket":
            headers["upgrade"] = "websocket"
        method = scope.get("method", "GET")
        refusal = self._security.refusal(method, headers)
        if refusal is not None and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.reason})
            return
        if refusal is not None:
            answer = JSONResponse({"error": refusal.reason}, refusal.status)
            await answer(scope, receive, send)
            return
        origin = headers.get("origin")
        allowed = origin is not None and self._security.allows(origin, headers)
        if allowed and method == "OPTIONS":
            await Response(status_code=204, headers=_cors(origin))(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = {"x-content-type-options": "nosniff", **(_cors(origin) if allowed else {})}
                added = [(name.encode(), value.encode()) for name, value in more.items()]
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        await self._app(scope, receive, with_headers)


def _cors(origin: str | None) -> dict[str, str]:
    return {
        "access-control-allow-origin": origin or "",
        "access-control-allow-methods": "GET, PUT, POST, DELETE",
        "access-control-allow-headers": "authorization, content-type, last-event-id",
        "vary": "origin",
    }


async def _error(_: Request, error: Exception) -> Response:
    """Return an error of the package as the answer to the request that caused it."""
    assert isinstance(error, StreamSparqlError)
    status = 500
    if isinstance(error, UnknownName):
        status = 404
    elif isinstance(error, Conflict):
        status = 409
    elif isinstance(error, UnsupportedFeature):
        status = 422
    elif "unusable" not in str(error):
        status = 400
    content: dict[str, Any] = {"error": str(error), "type": type(error).__name__}
    if isinstance(error, TextError):
        place = {"line": error.line, "column": error.column}
        content |= {"message": error.message, **place, "hint": error.hint}
    return JSONResponse(content, status)


class _Interface:
    """The answers to requests."""

    def __init__(self, service: Service) -> None:
        self._service = service

    # -- the page, and what is known

    async def page(self, request: Request) -> Response:
        name = request.url.path.lstrip("/")
        content = (files("streamsparql.server") / "page" / (name or "index.html")).read_bytes()
        headers = {"content-security-policy": _POLICY, "cache-control": "no-cache"}
        return Response(content, media_type=_PAGE[name], headers=headers)

    async def health(self, _: Request) -> Response:
        """Answer once the engine does: it fails if a step has made it unusable."""
        await self._service.stats()
        return JSONResponse({"status": "ok"})

    async def metrics(self, _: Request) -> Response:
        service = self._service
        stats, rows = await service.stats()
        worker = service.session.worker_stats
        text = metrics.metrics(stats, rows, worker, service.began, service.saved)
        return Response(text, headers={"content-type": metrics.CONTENT_TYPE})

    async def explain_all(self, request: Request) -> Response:
        return await self._explained(request, self._service.explain)

    async def check(self, request: Request) -> Response:
        return JSONResponse(diagnostics(await _text(request)))

    # -- queries

    async def queries(self, _: Request) -> Response:
        return JSONResponse([self._described(each) for each in self._service.queries.values()])

    async def query(self, request: Request) -> Response:
        return JSONResponse(self._described(self._named(request)))

    async def put(self, request: Request) -> Response:
        text = await _text(request)
        options = dict(request.query_params)
        unknown = [name for name in options if name not in _OPTIONS]
        if unknown:
            raise StreamSparqlError(f"unknown option {unknown[0]}; known: {', '.join(_OPTIONS)}")
        name = request.path_params["name"]
        new = name not in self._service.queries
        await self._service.put(name, text, options)
        return JSONResponse(self._described(self._service.query(name)), 201 if new else 200)

    async def delete(self, request: Request) -> Response:
        await self._service.delete(request.path_params["name"])
        return Response(status_code=204)

    async def explain(self, request: Request) -> Response:
        served = self._named(request)
        stage = request.query_params.get("stage", "optimized")

        async def explained(kind: str) -> str:
            return served.explain(stage, kind)

        return await self._explained(request, explained)

    async def add(self, request: Request) -> Response:
        terms = await _json(request)
        rows = terms if isinstance(terms, list) else [terms]
        if not all(isinstance(row, dict) for row in rows):
            raise SourceError(
                "expected an object of parameters and terms, or a list of such objects"
            )
        keys = await self._named(request).query.add_many(rows)
        return JSONResponse({"keys": keys}, 201)

    async def remove(self, request: Request) -> Response:
        await self._named(request).query.remove(request.path_params["key"])
        return Response(status_code=204)

    # -- results

    async def results(self, request: Request) -> Response:
        """Answer with events, if the request accepts them, else with the rows after a number."""
        served = self._named(request)
        after = _number(request.query_params.get("after"), "after")
        if "text/event-stream" in request.headers.get("accept", ""):
            last = _number(request.headers.get("last-event-id"), "Last-Event-ID")
            start = next((n for n in (last, after) if n is not None), served.results.count)
            headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
            events = _events(served, start)
            return StreamingResponse(events, headers=headers, media_type="text/event-stream")
        wait = request.query_params.get("wait")
        seconds = POLL_SECONDS if wait is None else float(_number(wait, "wait") or 0)
        await served.results.wait(after or 0, min(seconds, 300.0))
        rows = served.results.after(after or 0)
        return Response(_page_of(served, after or 0, rows), media_type="application/json")

    async def results_by_websocket(self, socket: WebSocket) -> None:
        served = self._service.queries.get(socket.path_params["name"])
        if served is None:
            await socket.close(1008, "unknown query")
            return
        await socket.accept()
        last = _number(socket.query_params.get("after"), "after")
        last = served.results.count if last is None else last
        try:
            while True:
                for number, row in served.results.after(last):
                    await socket.send_text(_numbered(number, row).decode())
                    last = number
                if served.results.ended and served.results.count <= last:
                    await socket.close(1000)
                    return
                await served.results.wait(last, _KEEP_ALIVE)
        except (WebSocketDisconnect, RuntimeError):
            return  # who listened has gone

    # -- streams

    async def streams(self, _: Request) -> Response:
        marks = await self._service.streams()
        stats, _rows = await self._service.stats()
        items = stats.items._asdict()
        known = ((name, mark if 0 <= mark < INFINITY else None) for name, mark in marks.items())
        shown = [{"stream": name, "watermark": mark, "time": _time(mark)} for name, mark in known]
        sources = self._service.sources
        return JSONResponse({"streams": shown, "items": items, "sources": sources})

    async def receive(self, request: Request) -> Response:
        """Push items; with `advance`, promise that no earlier ones follow."""
        stream = await self._service.stream(request.path_params["name"])
        options = dict(request.query_params)
        body = await _body(request)
        received = None
        if body:
            kind, payloads, more = _messages(request.headers.get("content-type", ""), body, options)
            received = await self._service.receive(stream, kind, payloads, **more)
        if (until := options.pop("advance", None)) is not None:
            await self._service.session.advance(int(until) if until.isdigit() else until, stream)
        if options:
            raise SourceError(f"unknown option {next(iter(options))}")
        content = received._asdict() if received else {"items": 0, "rejected": 0, "reasons": []}
        failed = received is not None and received.rejected and not received.items
        return JSONResponse(content, 400 if failed else 200)

    # -- inside

    def _named(self, request: Request) -> Served:
        return self._service.query(request.path_params["name"])

    def _described(self, served: Served) -> dict[str, Any]:
        query = served.query
        return {
            "name": query.name,
            "text": served.text,
            "dialect": query.query.dialect,
            "variables": list(query.query.variables),
            "streams": list(query.query.streams),
            "output": query.output,
            "parameters": list(query.registered.parameters),
            "options": dict(served.options),
            "rows": served.results.count,
            "failure": served.failure,
        }

    async def _explained(
        self, request: Request, explain: Callable[[str], Awaitable[str]]
    ) -> Response:
        kind = request.query_params.get("format", "text")
        types = {"svg": "image/svg+xml", "json": "application/json", "html": "text/html"}
        content = await explain(kind)
        headers = {"cache-control": "no-store"}
        return Response(content, media_type=types.get(kind, "text/plain"), headers=headers)


# -- requests and answers --------------------------------------------------------------------------


async def _body(request: Request) -> bytes:
    """Return the body of a request; an error if it is too long."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            raise SourceError(f"the request is longer than {MAX_BODY >> 20} MB")
        parts.append(part)
    return b"".join(parts)


async def _text(request: Request) -> str:
    try:
        return (await _body(request)).decode()
    except UnicodeDecodeError:
        raise SourceError("the request is not UTF-8") from None


async def _json(request: Request) -> Any:
    try:
        return json.loads(await _text(request))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"not JSON: {error}") from None


def _messages(
    content_type: str, body: bytes, options: dict[str, str]
) -> tuple[str, Sequence[bytes], dict[str, Any]]:
    """Return the format of a body, its messages, and the options of their decoder."""
    sort = content_type.partition(";")[0].strip().lower()
    kind = _FORMATS.get(sort)
    if kind is None:
        known = ", ".join(_FORMATS)
        raise SourceError(f"unknown Content-Type {sort!r} of items; known: {known}")
    more: dict[str, Any] = {}
    if (stamp := options.pop("stamp", None)) is not None:
        if stamp != "arrival":
            raise SourceError(f"stamp must be arrival, not {stamp!r}")
        more["stamp"] = stamp
    mapping = options.pop("map", None)
    if mapping is not None:
        more["mapping"] = mapping if mapping == GUESSED or "{" in mapping else None
        if more["mapping"] is None:
            raise SourceError("map must be auto, or the text of a CONSTRUCT")
    if kind == "csv":
        lines = body.splitlines()
        try:
            more["columns"] = next(csv.reader([lines[0].decode("utf-8-sig")])) if lines else ()
        except (UnicodeDecodeError, csv.Error, StopIteration):
            raise SourceError("the first line is not a header of CSV") from None
        return kind, lines[1:], more
    if kind == "lines":
        return "json", [line for line in body.splitlines() if line.strip()], more
    if kind == "json" and re.match(rb"\s*\[", body):
        try:
            records = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise SourceError(f"not JSON: {error}") from None
        return kind, [json.dumps(record).encode() for record in records], more
    if kind == "nq":
        return kind, [line for line in body.split(b"\n") if line.strip()], more
    return kind, [body], more


def _number(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,15}", text):
        raise SourceError(f"{name} must be a number, not {text!r:.40}")
    return int(text)


def _time(mark: int | None) -> str | None:
    time = None if mark is None else aware_datetime(mark)
    return None if time is None else time.isoformat().replace("+00:00", "Z")


def _numbered(number: int, row: bytes) -> bytes:
    return b'{"id": %d, "row": %s}' % (number, row)


def _page_of(served: Served, after: int, rows: Sequence[tuple[int, bytes]]) -> bytes:
    """Return the rows after a number, the number to ask for next, and whether some are missing."""
    last = rows[-1][0] if rows else min(after, served.results.count)
    known = {
        "next": last,
        "missing": max(0, served.results.first - after - 1) if rows else 0,
        "ended": served.results.ended and last >= served.results.count,
    }
    listed = b", ".join(_numbered(number, row) for number, row in rows)
    return json.dumps(known)[:-1].encode() + b', "results": [' + listed + b"]}"


async def _events(served: Served, last: int) -> AsyncIterator[bytes]:
    """Yield rows as Server-Sent Events, with their numbers as ids."""
    yield b"retry: 2000\n\n"
    results = served.results
    while True:
        if results.first > last + 1 and results.count:
            yield b"event: missing\ndata: %d\n\n" % (results.first - last - 1)
        rows = results.after(last)
        if rows:
            last = rows[-1][0]
            yield b"".join(b"id: %d\ndata: %s\n\n" % row for row in rows)
        elif results.ended:
            yield b"event: end\ndata: %s\n\n" % json.dumps(served.failure).encode()
            return
        else:
            before = results.count
            await results.wait(last, _KEEP_ALIVE)
            if results.count == before and not results.ended:
                yield b": still here\n\n"
