"""Runs with checkpoints, and the command `checkpoint show`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsparql.cli.common_options import Commands, UsageError
from streamsparql.cli.data_options import check_targets, run_arguments
from streamsparql.cli.runs import (
    check_form,
    check_format,
    check_live_target,
    warn_of_bare_period,
)
from streamsparql.cli.words import compile_query

if TYPE_CHECKING:
    from streamsparql.cli.several import Several
    from streamsparql.run.checkpoint.file import Checkpoint

EVERY = 10_000
"""The milliseconds between two checkpoints, unless `--checkpoint-every` says otherwise."""


def run_with_checkpoints(options: argparse.Namespace) -> int:
    """Run queries; continue from the last checkpoint, if the folder has one."""
    from streamsparql.cli.interrupts import Interrupts
    from streamsparql.cli.several import Several, compile_several, registered
    from streamsparql.cli.summary import Progress, Summary, show_lines
    from streamsparql.run.checkpoint.serving import Serving, default_layout
    from streamsparql.run.session import Session
    from streamsparql.run.session_replay import SessionReplay

    if len(options.query) > 1:
        several = compile_several(options)
    else:
        query = compile_query(options)
        several = Several([query], [query.report.name or _name_of(options)], [options.name])
        options.name = "streamsparql"
    kind, targets = _targets(several, options)
    arguments = run_arguments(several, options)
    check_targets(several, options, arguments, *targets.values())
    streams = arguments.pop("streams")
    session = Session(**arguments)
    report = {"report": options.report, "every": options.every, "quiet": options.quiet}
    for query in several.queries:
        warn_of_bare_period(query, options)
    written = {
        "timestamps": options.timestamps,
        "escape_formulas": options.escape_formulas,
        "values": options.values,
    }
    with (
        Summary(None, options.quiet) as summary,
        registered(several, session, options, **report) as queries,
    ):
        layouts = {query.name: default_layout(query, **written) for query in queries}
        every = (options.checkpoint_every or EVERY) / 1000
        progress = Progress(options.quiet)
        with (
            Serving(
                *(session, streams, targets, options.checkpoint, every), layouts=layouts, kind=kind
            ) as serving,
            Interrupts(serving.stop, []) as interrupts,
        ):
            replay = SessionReplay(session, {}, ordered=False)
            for replay.watermark in serving.steps():
                replay.rows = serving.rows
                summary.record(replay)
                progress.show(replay)
            progress.clear()
        incomplete = interrupts.signal != 0 and not session.closed
        if serving.resumed is not None and not options.quiet:
            show_lines([f"continued from {os.path.join(options.checkpoint, serving.resumed)}"])
        summary.record(replay)
        summary.show(replay, replay.watermark if incomplete else None)
    return 128 + interrupts.signal if incomplete else 0


def _name_of(options: argparse.Namespace) -> str:
    """Return the name of the only query: that of its file."""
    return Path(options.query[0]).stem if options.query else "query"


def _targets(several: Several, options: argparse.Namespace) -> tuple[str | None, dict[str, str]]:
    """Return the format of files, and the file of each query, or the URL of its live sink.

    Raise an error for options that do not fit.
    """
    from streamsparql.cli.several import files_of_queries, is_folder
    from streamsparql.connectors.sinks import is_live_sink
    from streamsparql.run.checkpoint.files import FORMATS
    from streamsparql.sinks import format_of

    if options.engine == "spark":
        raise UsageError("--checkpoint requires --engine embedded")
    if options.max_delay == "auto":
        raise UsageError("--max-delay auto sorts the whole input; with --checkpoint pass a delay")
    if options.emit == "eager":
        raise UsageError("--emit eager cannot be combined with --checkpoint")
    if options.rejects is not None:
        raise UsageError("--rejects cannot be combined with --checkpoint: it has no position")
    if options.file is None or (len(several.queries) > 1 and not is_folder(options.file)):
        raise UsageError(
            "--checkpoint requires -o FILE, or -o with the URL of a live sink; with several"
            " queries, -o FOLDER/"
        )
    if is_live_sink(options.file):
        check_live_target(options)
        return None, {several.names[0]: options.file}
    one = len(several.queries) == 1 and not is_folder(options.file)
    kind = options.output or (format_of(options.file) if one else "csv")
    if kind not in FORMATS:
        raise UsageError(f"--checkpoint requires --output {', '.join(FORMATS)}")
    for query, file in zip(several.queries, several.files, strict=True):
        check_form(kind, query.form, f"the {query.form.upper()} of {file}")
    check_format(options, kind)
    if one:
        return kind, {several.names[0]: options.file}
    os.makedirs(options.file, exist_ok=True)
    return kind, files_of_queries(several, options, kind)


# -- checkpoint show -------------------------------------------------------------------------------


def add_checkpoint(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command `checkpoint`."""
    parser = commands.add_parser(
        "checkpoint",
        help="show what is in a checkpoint",
        description="Show what is in a checkpoint: queries, streams, positions, tables.",
        epilog="example: streamsparql checkpoint show state/",
    )
    parser.add_argument("action", choices=("show",), metavar="show", help="the only action")
    parser.add_argument("file", metavar="FILE", help="a checkpoint, or a folder of checkpoints")
    parser.set_defaults(run=_show, name="streamsparql")


def _show(options: argparse.Namespace) -> int:
    from streamsparql.errors import EngineError
    from streamsparql.run.checkpoint.file import read_checkpoint
    from streamsparql.run.checkpoint.folder import CheckpointFolder
    from streamsparql.text.visible import visible

    file = options.file
    if os.path.isdir(file):
        names = CheckpointFolder(file).names()
        if not names:
            raise EngineError(f"{file} has no checkpoint")
        file = os.path.join(file, names[-1])
    checkpoint = read_checkpoint(file)
    try:
        lines = list(described(file, checkpoint))
    except (LookupError, TypeError, AttributeError) as error:
        raise EngineError(f"the content of {file} is invalid: {error}") from None
    print("\n".join(map(visible, lines)), file=sys.stdout)
    return 0


def described(file: str, checkpoint: Checkpoint) -> list[str]:
    """Return a description of a checkpoint, line by line."""
    from streamsparql.text.instants import instant

    content = checkpoint.content
    queries = content.get("queries", [content])
    size = sum(part.bytes for part in checkpoint.parts)
    lines = [
        f"{file}: a {content['kind']}, saved {checkpoint.saved} by version {checkpoint.package}",
        f"{size:,} bytes in {len(checkpoint.parts):,} tables",
        "",
    ]
    for query in queries:
        text = " ".join(query["query"]["text"].split())
        lines.append(f"query {query.get('name', '')}".rstrip() + f": {_cut(text)}")
    for stream in content["streams"]:
        sorter = stream["sorter"]
        waits = checkpoint_rows(checkpoint, f"streams/{content['streams'].index(stream)}/")
        seen = instant(sorter["seen"]) if sorter["seen"] >= 0 else "no item yet"
        lines.append(
            f"stream <{stream['name']}>: {sorter['read']:,} items read, {sorter['late']:,} late,"
            f" {sorter['rejected']:,} rejected, up to {seen}; {waits:,} retained"
        )
    for kind, positions in content.get("positions", {}).items():
        for name, position in positions.items():
            lines.append(f"{kind.removesuffix('s')} {name}: {_position(position)}")
    lines.append("")
    shown = [part for part in checkpoint.parts if part.rows]
    width = max((len(part.name) for part in shown), default=0)
    for part in shown:
        lines.append(f"{part.name:<{width}}  {part.rows:>9,} rows  {part.bytes:>11,} bytes")
    return lines


def checkpoint_rows(checkpoint: Checkpoint, start: str) -> int:
    """Return the number of rows of the tables below a name."""
    return sum(part.rows for part in checkpoint.parts if part.name.startswith(start))


def _position(position: Any) -> str:
    if isinstance(position, dict):
        return ", ".join(f"{key} {value}" for key, value in position.items())
    return str(position)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST = 60
