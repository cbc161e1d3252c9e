"""What a run says of itself on standard error: its progress, and a summary at the end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from time import monotonic
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from streamsparql.cli.screen import columns_of
from streamsparql.errors import EngineError
from streamsparql.text.instants import instant
from streamsparql.text.visible import visible

if TYPE_CHECKING:
    from streamsparql.run.replay import Replay
    from streamsparql.sources import Reject

_SHOWN = 3
_EVERY, _AFTER = 0.2, 1.0


class Progress:
    """How far a long run has come, on one line that is written over; on a terminal only."""

    def __init__(self, quiet: bool) -> None:
        err = sys.stderr
        self._shows = not quiet and err is not None and err.isatty()
        self._shows = self._shows and os.environ.get("TERM") != "dumb"
        self._began = self._last = monotonic()
        self._shown = False

    def show(self, replay: Replay) -> None:
        """Writes the line anew, some times a second."""
        now = monotonic()
        if not self._shows or now - self._began < _AFTER or now - self._last < _EVERY:
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
        line = " · ".join(parts)[: (columns_of(sys.stderr) or 80) - 1]
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        self._shown = True

    def clear(self) -> None:
        """Takes the line away, before something else is written."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False


class Summary:
    """What became of what came in, told at the end; all rejects can go to a file."""

    def __init__(self, file: str | None, quiet: bool) -> None:
        self._name, self._quiet = file, quiet or sys.stderr is None
        self._file: IO[str] | None = None
        self._noted = False
        self._first: list[Reject] = []
        self._began = monotonic()

    @property
    def asks(self) -> bool:
        """Whether anybody wants to know of rejects."""
        return self._name is not None or not self._quiet

    def __enter__(self) -> Self:
        if self._name is not None:
            try:  # a run that fails at once leaves an older file as it is
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
        if self._file is not None:
            self._file.close()

    def take(self, replay: Replay) -> None:
        """Takes note of what was rejected lately."""
        self._note(replay.drain())

    def _note(self, rejects: Sequence[Reject]) -> None:
        self._first += rejects[: max(0, _SHOWN - len(self._first))]
        if self._file is None:
            return
        try:
            if not self._noted and os.path.isfile(self._name or ""):
                self._file.truncate(0)
            self._noted = True
            for reject in rejects:
                self._file.write(json.dumps(as_json(reject)) + "\n")
            self._file.flush()
        except OSError as error:
            raise EngineError(f"cannot write {self._name}: {error.strerror}") from None

    def tell(self, replay: Replay, interrupted: int | None = None) -> None:
        """Says what became of the items."""
        if self._quiet:
            return
        accounting = replay.accounting
        accepted = f"{accounting.accepted:,} accepted"
        if accounting.unmatched:
            accepted += f" ({accounting.unmatched:,} unmatched)"
        said = [_plural(accounting.read, "item"), accepted]
        said += [f"{accounting.late:,} late", f"{accounting.rejected:,} rejected"]
        if accounting.rows_without_triples:
            said.append(
                f"no triple made of {_plural(accounting.rows_without_triples, 'row')} of tables"
            )
        if replay.graph_rejects:
            said.append(f"{_plural(replay.graph_rejects, 'triple')} of graphs rejected")
        seconds = monotonic() - self._began
        text = f"{said[0]}: {', '.join(said[1:])}; {_plural(replay.rows, 'row')} in {seconds:.1f} s"
        if interrupted is not None:
            known = instant(interrupted) if interrupted >= 0 else "nothing"
            text = f"interrupted, complete up to {known}: {text}"
        print(text, file=sys.stderr)
        self._show(accounting.late + accounting.rejected + replay.graph_rejects)

    def tell_rejects(self, rejects: Sequence[Reject], rows: int | None) -> None:
        """Says what is known of a run on Spark, which counts no items but those it rejects."""
        self._note(rejects)
        if self._quiet:
            return
        said = [] if rows is None else [_plural(rows, "row")]
        said += [f"{len(rejects):,} late or rejected", f"{monotonic() - self._began:.1f} s"]
        print("; ".join(said), file=sys.stderr)
        self._show(len(rejects))

    def _show(self, count: int) -> None:
        for reject in self._first:
            print(f"  {visible(str(reject))}", file=sys.stderr)
        more = count - len(self._first)
        if more > 0:
            where = f": all are in {self._name}" if self._name else ": --rejects FILE has them all"
            print(f"  … and {more:,} more{where}", file=sys.stderr)


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def as_json(reject: Reject) -> dict[str, Any]:
    """A reject as an object of JSON."""
    made = dict(reject._asdict())
    item = made["item"]
    made["item"] = item if item is None or isinstance(item, str) else str(item)
    return made
