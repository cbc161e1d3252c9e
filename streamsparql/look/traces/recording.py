"""Recording: a run that takes its items instant by instant, and forgets nothing.

All items of an instant come in one round, after which it is over: the watermark is the instant
after it. So what a state holds after a round is what is needed of the past once everything up to
that instant is known. The last round says that all streams have ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamsparql.errors import EngineError
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.operator import INFINITY, NEVER, Operator
from streamsparql.physical.operators.group import Aggregation, Annotate
from streamsparql.physical.state.parts import NamedRows
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput
from streamsparql.sources import Chunk, Wanted

if TYPE_CHECKING:
    from streamsparql.compiled import CompiledQuery

STANDING = "values"
"""The part of a state that tells each group's value, and since when it has it."""

MOST_ROUNDS = 5_000
"""A trace of more would be read by nobody."""

MOST_ROWS = 300_000
"""So many rows of states, of all steps together, are noted at most."""


class Frame(NamedTuple):
    """A round: what came, what each operator gave, and what it held afterwards."""

    instant: int
    """What is over: all up to this instant has come. NEVER for what came before the trace."""
    offered: Mapping[str, Batch]
    given: Mapping[Operator, Batch]
    content: Mapping[Operator, tuple[NamedRows, ...]]


class Recorded(NamedTuple):
    """A run, and its rounds."""

    run: Recording
    frames: tuple[Frame, ...]
    until: int | None
    """Where the trace was broken off, if there were more items than wanted, or too many rows."""
    heavy: bool
    """Whether it was because of the rows."""


class Recorder:
    """An observer of a pipeline that keeps what operators give in a round.

    >>> from streamsparql.physical.operators.access import Always
    >>> recorder, one = Recorder(), Always.of({"x": np.array([5, 6])}, 2)
    >>> recorder.observe(one, [], one.rows)
    >>> recorder.given[one].columns["x"].tolist()
    [5, 6]
    """

    def __init__(self) -> None:
        self.given: dict[Operator, Batch] = {}

    def observe(self, operator: Operator, inputs: Sequence[Batch], output: Batch) -> None:
        """Retain the output of a step of an operator."""
        self.given[operator] = _copied(output)


class Recording(Execution):
    """A run that keeps all that passes its operators, also items that no pattern can match.

    Those are set aside as they are read, so that what is late is what is late in any other run.
    """

    def __init__(self, query: CompiledQuery, given: RunInput) -> None:
        self.frames: list[Frame] = []
        self.waiting: Mapping[str, Batch] = {}
        """The items that are read, of which some are still to be taken."""
        self._unmatched: dict[str, list[Batch]] = {}
        self.noted = 0
        """How many rows of states were noted."""
        self._recorder = Recorder()
        super().__init__(query, given, observer=self._recorder)

    @override
    def wanted(self, stream: str) -> Wanted | None:
        return None

    @override
    def reader(self, stream: str, source: Any, first: int = 1) -> Iterator[Chunk]:
        wanted = super().wanted(stream)
        for chunk in super().reader(stream, source, first):
            matched = None if wanted is None else wanted.mask(chunk.p)
            if matched is None or matched.all():
                yield chunk
                continue
            columns = dict(zip(TRIPLE, (chunk.s, chunk.p, chunk.o), strict=True))
            rows = Batch(columns, chunk.end, chunk.end + 1).where(~matched)
            self._unmatched.setdefault(stream, []).append(rows)
            kept = np.arange(len(chunk)) if chunk.kept is None else chunk.kept
            since = None if chunk.since is None else chunk.since[matched]
            s, p, o = (ids[matched] for ids in columns.values())
            yield replace(chunk, s=s, p=p, o=o, since=since, kept=kept[matched])

    def unmatched(self) -> dict[str, list[Batch]]:
        """What was set aside since the last call."""
        found, self._unmatched = self._unmatched, {}
        return found

    def take(self, instant: int, watermark: int, offered: Mapping[str, Batch]) -> None:
        """A round, which is noted."""
        given = self._recorder.given = {}
        self.step(offered, watermark)
        before = self.frames[-1].content if self.frames else {}
        content = {
            operator: _content(operator) if operator in given else before.get(operator, ())
            for operator in self.pipeline.operators
        }
        self.noted += sum(len(rows) for o in given for _, rows in content[o])
        self.frames.append(Frame(instant, offered, given, content))

    def break_off(self, t: int) -> None:
        """The horizon ends here."""
        self._clip.end = min(self._clip.end, t)

    @override
    def _ids(self) -> Iterator[IntArray]:
        yield from super()._ids()
        for rows in self.waiting.values():
            yield from rows.columns.values()
        for frame in self.frames:
            parts = (rows for part in frame.content.values() for _, rows in part)
            for rows in chain(frame.offered.values(), frame.given.values(), parts):
                yield from rows.columns.values()


def record(query: CompiledQuery, given: RunInput, limit: int, step: int | None) -> Recorded:
    """Runs a query over at most so many items of the horizon; with `step` time goes on in between.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 1 MS FIXED {?s ?p ?o}")
    >>> items = [("<a>", "<p>", '"1"', t) for t in (3, 5, 5, 9)]
    >>> recorded = record(query, RunInput({"s": items}), 3, None)
    >>> [frame.instant for frame in recorded.frames][:2], recorded.until
    ([3, 5], 9)
    """
    run = Recording(query, given)
    rows, until = _read(run, given, limit)
    run.waiting = rows
    if until is not None:
        run.break_off(until)
    early, stamps = _stamps(rows, given.start)
    if early:
        assert given.start is not None
        run.take(NEVER, given.start, _at(rows, 0, given.start))
    if step is not None:
        first = stamps[0] if given.start is None and stamps else given.start or 0
        ticks = range(-(-first // step) * step, stamps[-1] if stamps else first, step)
        _refuse(len(ticks), step)
        stamps = sorted({*stamps, *ticks})
    heavy = False
    for t in stamps:
        heavy = run.noted > MOST_ROWS
        if heavy:
            until = t
            run.break_off(t)
            break
        run.take(t, t + 1, _at(rows, t, t + 1))
    if step is not None and not heavy:
        _on(run, step, given.end if until is None else until)
    run.take(INFINITY, INFINITY, {})
    return Recorded(run, tuple(run.frames), until, heavy)


def _read(run: Recording, given: RunInput, limit: int) -> tuple[dict[str, Batch], int | None]:
    """The items before the end of the horizon; where they are too many, up to when they are not."""
    first = 0 if given.start is None else given.start
    end = INFINITY if given.end is None else given.end
    parts: dict[str, list[Batch]] = {name: [] for name in run.streams}
    stamps: list[int] = []
    until = None
    for batches, watermark in run.input_steps():
        came = chain(batches.items(), ((n, b) for n, some in run.unmatched().items() for b in some))
        for name, batch in came:
            parts[name].append(batch)
            stamps += batch.start[(batch.start >= first) & (batch.start < end)].tolist()
        if len(stamps) > limit:
            stamps.sort()
            until = stamps[limit] if stamps[limit] > stamps[0] else stamps[0] + 1
            if watermark >= until:
                break
        if watermark >= end:
            break
    last = end if until is None else until
    rows = {name: Batch.concat(found).ordered() for name, found in parts.items() if found}
    kept = {name: batch.where(batch.start < last) for name, batch in rows.items()}
    return kept, until


def _stamps(rows: Mapping[str, Batch], start: int | None) -> tuple[bool, list[int]]:
    """Whether there are items before the start, and the instants of the others."""
    found = sorted({t for batch in rows.values() for t in batch.start.tolist()})
    if start is None:
        return False, found
    kept = [t for t in found if t >= start]
    return len(kept) < len(found), kept


def _at(rows: Mapping[str, Batch], begin: int, end: int) -> dict[str, Batch]:
    """The items within a part of time."""
    found = {}
    for name, batch in rows.items():
        first, after = np.searchsorted(batch.start, [begin, end]).tolist()
        if first < after:
            found[name] = batch.part(first, after)
    return found


def _on(run: Recording, step: int, end: int | None) -> None:
    """Time goes on step by step until all that ends has ended."""
    t = 0 if not run.frames else (max(run.frames[-1].instant, 0) // step + 1) * step
    last = INFINITY if end is None else end
    while t < last and t <= _last_end(run.frames):
        run.take(t, t + 1, {})
        _refuse(len(run.frames), step)
        t += step


def _last_end(frames: Sequence[Frame]) -> int:
    """When the last row ends of those that were given or are held, and that end."""
    held = (rows for part in frames[-1].content.values() for _, rows in part) if frames else ()
    given = (rows for frame in frames for rows in frame.given.values())
    ends = [rows.end[rows.end < INFINITY].max(initial=-1) for rows in chain(held, given)]
    return int(max(ends, default=-1))


def _refuse(rounds: int, step: int) -> None:
    if rounds > MOST_ROUNDS:
        raise EngineError(
            f"step={step} makes more than {MOST_ROUNDS} steps: take a longer one, or trace a part"
            " of the time, from start= to end="
        )


def _content(operator: Operator) -> tuple[NamedRows, ...]:
    """The parts of a state, as they are now."""
    parts = [(name, _copied(rows)) for name, rows in operator.content()]
    if isinstance(operator, Aggregation | Annotate):
        parts.append((STANDING, _copied(operator.values())))
    return tuple(parts)


def _copied(rows: Batch) -> Batch:
    columns = {name: column.copy() for name, column in rows.columns.items()}
    count = None if rows.count is None else rows.count.copy()
    return Batch(columns, rows.start.copy(), rows.end.copy(), count)
