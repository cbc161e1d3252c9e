"""The progress of a run, and a summary at its end, on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from time import monotonic
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from streamsparql.cli.common_options import written_duration
from streamsparql.cli.screen import terminal_width
from streamsparql.errors import EngineError
from streamsparql.text.instants import instant
from streamsparql.text.visible import visible

if TYPE_CHECKING:
    from streamsparql.compiled import CompiledQuery
    from streamsparql.run.execution import Execution
    from streamsparql.run.input import RunInput
    from streamsparql.run.notes import DataNotes
    from streamsparql.run.replay import Replay
    from streamsparql.run.reports import Reporting
    from streamsparql.run.session_replay import SessionReplay
    from streamsparql.sources import Accounting, Reject
    from streamsparql.spark.spark_result import SparkComputation

_REJECTS_SHOWN = 3
_EMBEDDED_RATE = 100_000  # items per second, which simple queries exceed on one core
_PROGRESS_INTERVAL, _PROGRESS_DELAY = 0.2, 1.0  # in seconds


class Progress:
    """The progress of a long run: a line that is overwritten, only on a terminal."""

    def __init__(self, quiet: bool) -> None:
        err = sys.stderr
        self._enabled = not quiet and err is not None and err.isatty()
        self._enabled = self._enabled and os.environ.get("TERM") != "dumb"
        self._began = self._last = monotonic()
        self._visible = False

    def show(self, replay: Replay | SessionReplay) -> None:
        """Update the line, a few times per second."""
        now = monotonic()
        if not self._enabled or now - self._began < _PROGRESS_DELAY:
            return
        if now - self._last < _PROGRESS_INTERVAL:
            return
        self._last = now
        accounting = replay.accounting
        rate = accounting.read / (now - self._began)
        parts = [f"{accounting.read:,} items", f"{rate:,.0f}/s", f"{replay.rows:,} rows"]
        if accounting.late:
            parts.append(f"{accounting.late:,} late")
        if accounting.rejected:
            parts.append(f"{accounting.rejected:,} rejected")
        parts.append(f"at {instant(max(replay.watermark, 0))}")
        line = " · ".join(parts)[: (terminal_width(sys.stderr) or 80) - 1]
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        self._visible = True

    def clear(self) -> None:
        """Erase the line, before other output is written."""
        if self._visible:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._visible = False


class Summary:
    """The accounting of the items, printed at the end; all rejects can be written to a file."""

    def __init__(self, file: str | None, quiet: bool) -> None:
        self._name, self._quiet = file, quiet or sys.stderr is None
        self._file: IO[str] | None = None
        self._truncated = False
        self._first: list[tuple[Reject, int]] = []
        """The first rejects, and how many items each is: the triples of a row are late together."""
        self._began = monotonic()

    @property
    def needs_rejects(self) -> bool:
        """Whether rejects are shown or written."""
        return self._name is not None or not self._quiet

    def __enter__(self) -> Self:
        if self._name is not None:
            try:  # append: a run that fails at once must not empty the file
                self._file = open(self._name, "a", encoding="utf-8")
            except OSError as error:
                raise EngineError(f"cannot write {self._name}: {error.strerror}") from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is None:
            return
        try:
            self._file.close()
        except OSError as failure:  # if an error is on its way, that names the file already
            if error is None:
                raise EngineError(f"cannot write {self._name}: {failure.strerror}") from None

    def record(self, replay: Replay | SessionReplay) -> None:
        """Record the items that were rejected since the last call."""
        self._record(replay.drain())

    def _record(self, rejects: Sequence[Reject]) -> None:
        for reject in rejects:
            if self._first and _is_same(reject, self._first[-1][0]):
                self._first[-1] = (reject, self._first[-1][1] + 1)
            elif len(self._first) < _REJECTS_SHOWN:
                self._first.append((reject, 1))
            else:
                break
        if self._file is None:
            return
        try:
            if not self._truncated and os.path.isfile(self._name or ""):
                self._file.truncate(0)
            self._truncated = True
            for reject in rejects:
                self._file.write(json.dumps(reject_as_json(reject)) + "\n")
            self._file.flush()
        except OSError as error:
            raise EngineError(f"cannot write {self._name}: {error.strerror}") from None

    def show(self, replay: Replay | SessionReplay, interrupted: int | None = None) -> None:
        """Print the accounting of a run; `interrupted` is the watermark if it ended early."""
        from streamsparql.look.lints import without_schema

        if self._quiet:
            return
        accounting, graph_rejects = replay.accounting, replay.graph_rejects
        self._show_counts(accounting, graph_rejects, replay.rows, interrupted)
        for query in replay.without_schema():
            print(without_schema(query.translation), file=sys.stderr)
        self._show_first(accounting.late + accounting.rejected + graph_rejects)
        show_notes(replay.notes())

    def _show_counts(
        self, accounting: Accounting, graph_rejects: int, rows: int, interrupted: int | None = None
    ) -> None:
        accepted = f"{accounting.accepted:,} accepted"
        if accounting.unmatched:
            accepted += f" ({accounting.unmatched:,} unmatched)"
        parts = [_plural(accounting.read, "item"), accepted]
        parts += [f"{accounting.late:,} late", f"{accounting.rejected:,} rejected"]
        if accounting.rows_without_triples:
            without = _plural(accounting.rows_without_triples, "table row")
            parts.append(f"{without} without triples")
        if graph_rejects:
            parts.append(f"{_plural(graph_rejects, 'triple')} of graphs rejected")
        text = (
            f"{parts[0]}: {', '.join(parts[1:])}; {_plural(rows, 'row')} in {self._seconds:.1f} s"
        )
        if interrupted is not None:
            up_to = f"complete up to {instant(interrupted)}" if interrupted >= 0 else "no results"
            text = f"interrupted, {up_to}: {text}"
        print(text, file=sys.stderr)

    @property
    def _seconds(self) -> float:
        return monotonic() - self._began

    def show_rejects(self, rejects: Sequence[Reject], notes: DataNotes | None = None) -> None:
        """Print the summary of `prepare`, which counts only the items that it rejects."""
        self._record(rejects)
        if self._quiet:
            return
        print(f"{len(rejects):,} late or rejected; {self._seconds:.1f} s", file=sys.stderr)
        self._show_first(len(rejects))
        if notes is not None:
            show_notes(notes)

    def show_on_spark(self, computation: SparkComputation, rows: int) -> None:
        """Print the accounting of a run on Spark, for which the streams are read once more."""
        if not self.needs_rejects:
            return
        seconds = self._seconds
        rejects = computation.rejects()
        self._record(rejects)
        if self._quiet:
            return
        notes = computation.notes()
        self._show_counts(notes.items, len(computation.graph_rejects), rows)
        self._show_first(len(rejects))
        show_notes(notes)
        if notes.items.read / _EMBEDDED_RATE * 10 < seconds:
            show_lines(
                [
                    "note: this is little data for Spark; --engine embedded probably takes less"
                    " than a tenth of the time"
                ]
            )

    def _show_first(self, count: int) -> None:
        for reject, items in self._first:
            of_items = "" if items == 1 else f" ({items} items)"
            print(f"  {visible(str(reject))}{of_items}", file=sys.stderr)
        more = count - sum(items for _, items in self._first)
        if more > 0:
            where = f"; {self._name} has all" if self._name else "; --rejects FILE writes all"
            print(f"  … and {more:,} more{where}", file=sys.stderr)


def show_notes(notes: DataNotes) -> None:
    """Print the notes on the data of a run to standard error."""
    show_lines([f"note: {visible(line)}" for line in notes.lines(on_command_line)])


def on_command_line(name: str, value: str | int) -> str:
    """Return an option as it is written on the command line.

    >>> on_command_line("max_delay", 90_000), on_command_line("time_unit", "ms")
    ('--max-delay 90s', '--time-unit ms')
    """
    written = written_duration(value) if isinstance(value, int) else value
    return f"--{name.replace('_', '-')} {written}"


def show_why_empty(
    query: CompiledQuery, run_input: RunInput, execution: Execution, report: Reporting | None
) -> None:
    """Print why a run that has ended has no rows."""
    from streamsparql.look.emptiness import why_empty

    readable = run_input if run_input.repeatable else None
    show_lines(why_empty(query, readable, execution, report).lines())


def show_short_windows(query: CompiledQuery, execution: Execution, name: str) -> None:
    """Print a warning of windows without a unit that are far shorter than the data's steps."""
    if execution.last_stamp < 0:
        return
    from streamsparql.look.lints.short_windows import short_windows

    first, last = execution.first_stamp, execution.last_stamp
    for warning in short_windows(query.translation, first, last, execution.accounting.accepted):
        show_lines([f"{name}: {warning}"])


def show_lines(lines: Sequence[str]) -> None:
    """Print lines to standard error, if it is open."""
    if lines and sys.stderr is not None:
        print("\n".join(lines), file=sys.stderr)


def _is_same(reject: Reject, other: Reject) -> bool:
    """Return whether two rejects are of one row, for one reason."""
    return reject[:3] == other[:3] and reject.unit == other.unit


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def reject_as_json(reject: Reject) -> dict[str, Any]:
    """Return a reject as a JSON object; an item that is not text becomes text."""
    fields = dict(reject._asdict())
    item = fields["item"]
    fields["item"] = item if item is None or isinstance(item, str) else str(item)
    return fields
