"""The command `serve`: queries over live streams behind an HTTP interface, with a page."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsparql.cli.checkpoints import EVERY
from streamsparql.cli.common_options import (
    Commands,
    UsageError,
    duration_option,
    files_by_name,
    parse_delay,
    parse_whole_number,
    read_text,
)
from streamsparql.errors import EngineError

if TYPE_CHECKING:
    from streamsparql.run.checkpoint.file import Checkpoint
    from streamsparql.run.checkpoint.folder import CheckpointFolder

_TOKEN = "STREAMSPARQL_TOKEN"


def add_serve(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command `serve`."""
    parser = commands.add_parser(
        "serve",
        help="serve queries over HTTP, with a page",
        description="Run queries over live streams; show them on a page; take queries and items\n"
        "by HTTP. The server listens on this machine only, unless --host says otherwise.",
        epilog="examples:\n"
        "  streamsparql serve                     then open http://127.0.0.1:8080\n"
        "  streamsparql serve jams.rq --stream mqtt://broker/traffic?format=json&map=auto",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("query", metavar="QUERY", nargs="*", help="files with queries, named as the files are")
    add("--host", default="127.0.0.1", help="the address to listen on; default: 127.0.0.1")
    add("--port", type=parse_whole_number, default=8080, help="the port; 0: any that is free")
    token = f"file with the token that changes need; default: the variable {_TOKEN}"
    add("--token-file", metavar="FILE", help=token)
    origin = "origin whose pages may use the server, or *; may be repeated"
    add("--allow-origin", metavar="ORIGIN", action="append", default=[], help=origin)
    repeated = partial(add, action="append", default=[])
    repeated("--stream", metavar="[IRI=]URL", help="live source of a stream that a QUERY reads")
    repeated("--graph", metavar="FILE", help="file or folder of the static default graph")
    repeated("--named", metavar="IRI=FILE", help="file or folder of a static named graph")
    add("--max-delay", metavar="DUR", type=parse_delay, default=0, help="how late items may be")
    silence = "leave out of the watermark streams that are silent for so long"
    add("--idle", metavar="DUR", type=duration_option, help=silence)
    kept = "keep items for so long, so that new queries start with them"
    add("--history", metavar="DUR", type=duration_option, default=0, help=kept)
    state = "save queries, state, results and positions there; continue from it"
    add("--checkpoint", metavar="DIR", help=state)
    every = "time between two checkpoints; default: 10s"
    add("--checkpoint-every", metavar="DUR", type=duration_option, help=every)
    parser.set_defaults(run=_serve)


def _serve(options: argparse.Namespace) -> int:
    try:
        from streamsparql.server.app import application
        from streamsparql.server.listening import serve
    except ImportError as error:
        from streamsparql.text.extras import install

        raise EngineError(f"{error.name} is missing: {install('server')}") from None
    from streamsparql.run.async_session import AsyncSession
    from streamsparql.run.checkpoint.folder import CheckpointFolder
    from streamsparql.server.security import Security
    from streamsparql.server.service import Service

    options.name = "streamsparql"
    if options.checkpoint_every is not None and options.checkpoint is None:
        raise UsageError("--checkpoint-every requires --checkpoint DIR")
    if options.max_delay == "auto":
        raise UsageError("--max-delay auto sorts a whole input; a stream has no end")
    texts = {Path(file).stem: file for file in options.query}
    if len(texts) < len(options.query):
        raise UsageError("two files have the same name; queries are named as their files are")
    security = Security(options.host, _token(options.token_file), frozenset(options.allow_origin))
    security.check()
    graphs = files_by_name(options.named, (), "named") if options.named else {}
    session: dict[str, Any] = {
        "graph": options.graph or None,
        "graphs": graphs,
        "max_delay": options.max_delay,
        "idle": options.idle,
        "history": options.history,
    }

    folder = last = None
    if options.checkpoint is not None:
        folder = CheckpointFolder(options.checkpoint)
        folder.open()
        last = last_of(folder, session)

    async def main() -> None:
        new = AsyncSession(**session)
        if folder is not None and last is not None:
            new = AsyncSession.restore(folder.file(folder.names()[-1]))
        async with new as opened:
            service = Service(opened, checkpoints=folder)
            if last is not None:
                service.restore(last)
            for name, file in texts.items():
                options.name = file
                await service.put(name, read_text(file), {})
            options.name = "streamsparql"
            known = [*await service.streams()]
            for stream, urls in files_by_name(options.stream, known, "stream").items():
                for url in urls:
                    await service.connect(stream, url)
            async with service:
                await service.save_every((options.checkpoint_every or EVERY) / 1000)
                await serve(application(service, security), options.host, options.port, _announce)

    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(main())
    finally:
        if folder is not None:
            folder.close()
    return 0


def last_of(folder: CheckpointFolder, options: dict[str, Any]) -> Checkpoint | None:
    """Return the last checkpoint of a server; raise an error if it has other options."""
    names = folder.names()
    if not names:
        return None
    checkpoint = folder.read(names[-1])
    content = checkpoint.content
    if "served" not in content:
        raise EngineError(f"{folder.file(names[-1])} is not a checkpoint of a server")
    saved = {"max_delay": content["input"]["max_delay"], **content}
    for name in ("max_delay", "idle", "history"):
        if saved[name] != options[name]:
            raise EngineError(
                f"{folder.file(names[-1])}: the option {name} has changed from {saved[name]} to"
                f" {options[name]}; use another folder, or remove the checkpoint to start again"
            )
    return checkpoint


def _announce(url: str) -> None:
    print(f"serving at {url}; Ctrl-C ends it", file=sys.stderr, flush=True)


def _token(file: str | None) -> str | None:
    if file is None:
        return os.environ.get(_TOKEN) or None
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise EngineError(f"{file}: {error.strerror}") from None
    if not token:
        raise EngineError(f"{file}: the file is empty; it must have a token")
    return token
