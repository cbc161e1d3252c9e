"""The progress of a run, and a summary at its end, on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from time import monotonic
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from streamsparql.cli.screen import terminal_width
from streamsparql.errors import EngineError
from streamsparql.text.instants import instant
from streamsparql.text.visible import visible

if TYPE_CHECKING:
    from streamsparql.run.replay import Replay
    from streamsparql.run.session_replay import SessionReplay
    from streamsparql.sources import Reject

_REJECTS_SHOWN = 3
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
        self._first: list[Reject] = []
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
        self._first += rejects[: max(0, _REJECTS_SHOWN - len(self._first))]
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
        if self._quiet:
            return
        accounting = replay.accounting
        accepted = f"{accounting.accepted:,} accepted"
        if accounting.unmatched:
            accepted += f" ({accounting.unmatched:,} unmatched)"
        parts = [_plural(accounting.read, "item"), accepted]
        parts += [f"{accounting.late:,} late", f"{accounting.rejected:,} rejected"]
        if accounting.rows_without_triples:
            rows = _plural(accounting.rows_without_triples, "table row")
            parts.append(f"{rows} without triples")
        if replay.graph_rejects:
            parts.append(f"{_plural(replay.graph_rejects, 'triple')} of graphs rejected")
        seconds = monotonic() - self._began
        text = (
            f"{parts[0]}: {', '.join(parts[1:])}; {_plural(replay.rows, 'row')} in {seconds:.1f} s"
        )
        if interrupted is not None:
            up_to = f"complete up to {instant(interrupted)}" if interrupted >= 0 else "no results"
            text = f"interrupted, {up_to}: {text}"
        print(text, file=sys.stderr)
        self._show_first(accounting.late + accounting.rejected + replay.graph_rejects)

    def show_rejects(self, rejects: Sequence[Reject], rows: int | None) -> None:
        """Print the summary of a run on Spark, which counts only the items that it rejects."""
        self._record(rejects)
        if self._quiet:
            return
        parts = [] if rows is None else [_plural(rows, "row")]
        parts += [f"{len(rejects):,} late or rejected", f"{monotonic() - self._began:.1f} s"]
        print("; ".join(parts), file=sys.stderr)
        self._show_first(len(rejects))

    def _show_first(self, count: int) -> None:
        for reject in self._first:
            print(f"  {visible(str(reject))}", file=sys.stderr)
        more = count - len(self._first)
        if more > 0:
            where = f"; {self._name} has all" if self._name else "; --rejects FILE writes all"
            print(f"  … and {more:,} more{where}", file=sys.stderr)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def reject_as_json(reject: Reject) -> dict[str, Any]:
    """Return a reject as a JSON object; an item that is not text becomes text."""
    fields = dict(reject._asdict())
    item = fields["item"]
    fields["item"] = item if item is None or isinstance(item, str) else str(item)
    return fields
