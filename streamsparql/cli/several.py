"""The commands `run` and `explain` with several queries: they share their streams and their plans.

A query has the name of its REGISTER clause, or that of its file. The output of a CONSTRUCT is a
stream, which the other queries read by that name.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.cli.common_options import UsageError, compile_file, show_warnings
from streamsparql.cli.data_options import check_targets, run_arguments
from streamsparql.cli.runs import check_form, check_format, warn_of_bare_period
from streamsparql.connectors.urls import scheme_of

if TYPE_CHECKING:
    from streamsparql.query import Query
    from streamsparql.run.registered import Registered
    from streamsparql.run.session import Session
    from streamsparql.sinks.several import Write


class Several(NamedTuple):
    """Several queries, with their names and the files of their texts."""

    queries: Sequence[Query]
    names: Sequence[str]
    files: Sequence[str]

    @property
    def outputs(self) -> frozenset[str]:
        """The streams that they feed."""
        from streamsparql.run.registration import output_of

        pairs = zip(self.queries, self.names, strict=True)
        return frozenset(filter(None, (output_of(query, name) for query, name in pairs)))

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that they read, without those that they feed."""
        read = dict.fromkeys(stream for query in self.queries for stream in query.streams)
        return tuple(stream for stream in read if stream not in self.outputs)

    @property
    def graphs(self) -> tuple[str, ...]:
        """The static graphs that they name."""
        return tuple(dict.fromkeys(graph for query in self.queries for graph in query.graphs))

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that they declare, without those that two of them declare differently."""
        declared = {item for query in self.queries for item in query.prefixes.items()}
        count = Counter(prefix for prefix, _ in declared)
        return {prefix: iri for prefix, iri in declared if count[prefix] == 1}


def compile_several(options: argparse.Namespace) -> Several:
    """Compile the queries in several files."""
    queries = [compile_file(file, options) for file in options.query]
    pairs = zip(queries, options.query, strict=True)
    names = [query.report.name or _stem(file) for query, file in pairs]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UsageError(f"{count} queries are called {name!r}; rename a file, or REGISTER them")
    options.name = "streamsparql"
    return Several(queries, names, options.query)


def _stem(file: str) -> str:
    return "stdin" if file == "-" else Path(file).stem


@contextmanager
def registered(
    several: Several,
    session: Session,
    options: argparse.Namespace,
    *,
    quiet: bool = True,
    **report: Any,
) -> Iterator[list[Registered]]:
    """Register the queries; yield them, and close the session at the end."""
    queries = []
    with session:
        for query, name, file in zip(several.queries, several.names, several.files, strict=True):
            options.name = file
            show_warnings(query, file, quiet)
            queries.append(session.register(query, name, parameters=(), **report))
        options.name = "streamsparql"
        yield queries


# -- run -------------------------------------------------------------------------------------------


def run_several(options: argparse.Namespace) -> int:
    """Run several queries, and write their rows as soon as they are final."""
    from streamsparql.cli.interrupts import EndlessInput, Interrupts
    from streamsparql.cli.summary import Progress, Summary
    from streamsparql.physical.operator import INFINITY
    from streamsparql.run.session import Session
    from streamsparql.run.session_replay import SessionReplay

    several = compile_several(options)
    _check(several, options)
    arguments = run_arguments(several, options)
    targets = _targets(several, options)
    check_targets(
        several, options, arguments, options.rejects, *(targets.values() or [options.file])
    )
    streams = arguments.pop("streams")
    session = Session(**arguments)
    inputs = EndlessInput.replace_endless(streams)
    report = {"report": options.report, "every": options.every, "quiet": options.quiet}
    for query in several.queries:
        warn_of_bare_period(query, options)
    with (
        Summary(options.rejects, options.quiet) as summary,
        registered(several, session, options, **report) as queries,
    ):
        until = options.end if inputs else None
        replay = SessionReplay(session, streams, ordered=not inputs, until=until)
        progress = Progress(options.quiet)
        with Interrupts(replay.stop, inputs) as interrupts:
            tables = replay.tables()
            rows = next(tables, None)  # a run that fails at once must not overwrite a file
            with _open_sinks(queries, targets, options, not inputs) as write:
                while rows is not None:
                    if rows:
                        progress.clear()
                        write({query.name: table for query, table in rows.items()})
                    summary.record(replay)
                    progress.show(replay)
                    rows = next(tables, None)
                progress.clear()
            summary.record(replay)
            incomplete = interrupts.signal != 0 and replay.watermark < INFINITY
            summary.show(replay, replay.watermark if incomplete else None)
    return 128 + interrupts.signal if incomplete else 0


def _check(several: Several, options: argparse.Namespace) -> None:
    if options.engine == "spark":
        raise UsageError("--engine spark runs one query; run them one after the other")
    if options.max_delay == "auto":
        raise UsageError("--max-delay auto applies to one query; pass a duration")
    if options.emit == "eager":
        raise UsageError("--emit eager applies to one query")
    if scheme_of(options.file) is not None:
        raise UsageError(f"-o {options.file} takes the rows of one query; run them one by one")
    kind = _format(options)
    if kind is None:
        raise UsageError(f"-o {options.file}: unknown extension; add --output, or name a folder/")
    if kind == "nq" and not is_folder(options.file):
        raise UsageError("nq has no names of queries; write one file per query with -o FOLDER/")
    for query, file in zip(several.queries, several.files, strict=True):
        check_form(kind, query.form, f"the {query.form.upper()} of {file}")
    check_format(options, kind)


def _format(options: argparse.Namespace) -> str | None:
    """Return the format of the output; None if its file implies none."""
    from streamsparql.sinks import format_of

    if options.output is not None or options.file is None:
        return options.output or "table"
    return "csv" if is_folder(options.file) else format_of(options.file)


def _targets(several: Several, options: argparse.Namespace) -> dict[str, str]:
    """Return the file of each query, by name, if `-o` is a folder."""
    if not is_folder(options.file):
        return {}
    return files_of_queries(several, options, _format(options))


def files_of_queries(
    several: Several, options: argparse.Namespace, kind: str | None
) -> dict[str, str]:
    """Return the file of each query, by name, in the folder that `-o` names."""
    stems = Counter(map(_stem, several.files))
    stem, count = stems.most_common(1)[0]
    if count > 1:
        raise UsageError(f"-o {options.file}: {count} queries would write {stem}; rename a file")
    extension = "txt" if kind == "table" else kind
    paths = (os.path.join(options.file, f"{_stem(file)}.{extension}") for file in several.files)
    return dict(zip(several.names, paths, strict=True))


def is_folder(file: str | None) -> bool:
    """Return whether `-o` names a folder, in which each query has a file."""
    return file is not None and (os.path.isdir(file) or file.endswith(("/", os.sep)))


@contextmanager
def _open_sinks(
    queries: Sequence[Registered],
    targets: Mapping[str, str],
    options: argparse.Namespace,
    whole: bool,
) -> Iterator[Write]:
    """Open a file for each query, if there are `targets`, else one sink for the rows of all."""
    from streamsparql.run.replay import layout_of
    from streamsparql.sinks.several import open_apart, open_together

    kind, layouts = _format(options) or "table", {}
    for query in queries:
        layout = layout_of(query.query, query.decoder, query.reports, options.timestamps)
        layouts[query.name] = replace(
            layout, escape_formulas=options.escape_formulas, values=options.values
        )
    if targets:
        os.makedirs(options.file, exist_ok=True)
        with open_apart(targets, kind, layouts, whole=whole) as write:
            yield write
    else:
        with open_together(options.file or sys.stdout, kind, layouts, whole=whole) as write:
            yield write


# -- explain ---------------------------------------------------------------------------------------


def explain_several(options: argparse.Namespace) -> Callable[..., str]:
    """Return a function that draws the plans of several queries, which reads no data."""
    from streamsparql.run.session import Session

    if options.analyze or options.stage not in ("all", "physical"):
        what = "--analyze" if options.analyze else f"--stage {options.stage}"
        raise UsageError(f"{what} explains one query; of several the physical plan is shown")
    several = compile_several(options)
    session = Session.without_data()
    with registered(several, session, options):
        return partial(session.explain, options.format)
