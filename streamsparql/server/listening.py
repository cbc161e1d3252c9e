"""The server that listens: uvicorn, on a socket that is opened first, so that errors are named."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from streamsparql.errors import EngineError


async def serve(app: Any, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve an application until a signal ends it, or it is cancelled; call `started` first."""
    listening = _socket(host, port)
    config = uvicorn.Config(
        app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1, access_log=False
    )
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve([listening]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            shown = f"[{host}]" if ":" in host else host
            started(f"http://{shown}:{listening.getsockname()[1]}")
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving
        listening.close()


def _socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EngineError(f"cannot listen on {host}, port {port}: {reason}") from None
