"""A stream as points over time, and how long its items count in windows.

A few items have a lane each, with a bar for each window below each other: when the item is visible
in it. A dotted line is the time that an item waits for a stepped window. Many items have a lane per
subject and predicate, and for each window there is a curve of how many items it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.inputs import Inputs, StreamItem
from streamsparql.algebra.partition import windows as windows_of
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import INFINITY, Element
from streamsparql.algebra.terms import IRI, Term, Triple
from streamsparql.algebra.window import ElementWindow, TimeWindow, Window
from streamsparql.compiled import CompiledQuery
from streamsparql.display.picture import Picture
from streamsparql.errors import EngineError, SourceError
from streamsparql.look.explain.boxes.phrases import plan_writer
from streamsparql.look.explain.boxes.titles import title
from streamsparql.look.jupyter.canvas import CELL, SERIES, Canvas, fitted
from streamsparql.look.jupyter.label_columns import columns, shared
from streamsparql.look.jupyter.moving_window import positions
from streamsparql.sources.chunk import Reject
from streamsparql.text.instants import DisplayClock
from streamsparql.text.visible import isolated, visible
from streamsparql.text.widths import cells
from streamsparql.translator.sparql_text import Writer

WIDTH = 880.0
FEW = 24
"""Up to so many items have a lane each."""
MOST = 30
"""So many lanes of subjects and predicates are drawn."""

_ROOM = 42
_BAR, _GAP = 8.0, 2.0
_CURVE = 56.0
_CLOSE = 2.0  # points that are closer, in pixels, are one
_READ = 100_000


class Interval(NamedTuple):
    """When an item is in a window; `item` is its place among the items."""

    item: int
    start: int
    end: int


@dataclass(frozen=True)
class Seen:
    """A window, what it is called, and when each item is in it."""

    window: Window
    label: str
    intervals: tuple[Interval, ...]

    @property
    def curve(self) -> list[tuple[int, int]]:
        """How many items the window holds, from which instant on.

        >>> from streamsparql.algebra.shape import UNIT
        >>> from streamsparql.algebra.window import NowWindow
        >>> Seen(NowWindow(UNIT), "", (Interval(0, 3, 9), Interval(1, 5, 9))).curve
        [(3, 1), (5, 2), (9, 0)]
        """
        changes: dict[int, int] = {}
        for _, start, end in self.intervals:
            changes[start] = changes.get(start, 0) + 1
            changes[end] = changes.get(end, 0) - 1
        held, made = 0, []
        for t in sorted(changes):
            held += changes[t]
            made.append((t, held))
        return made


@dataclass(frozen=True)
class Shown:
    """Items, by time, and windows over them."""

    items: Sequence[StreamItem]
    windows: tuple[Seen, ...]
    clock: DisplayClock
    write: Writer = field(default_factory=Writer)
    rejects: tuple[Reject, ...] = ()

    @property
    def span(self) -> tuple[int, int]:
        """The part of time that is drawn."""
        first = min((item.start for item in self.items), default=0)
        last = max((item.end for item in self.items), default=first) + 1
        edges = [t for seen in self.windows for _, *both in seen.intervals for t in both]
        end = max([last, *(t for t in edges if t < INFINITY)])
        return first, end + (max(1, (end - first) // 12) if INFINITY in edges else 0)

    def texts(self, item: StreamItem) -> list[str]:
        """An item's terms."""
        subject, predicate, value = item.triple
        write = self.write
        texts = write.term(subject), write.predicate(predicate), write.term(value)
        return [isolated(text) for text in texts]


def show(
    source: Any,
    windows: Any = None,
    *,
    stream: str | None = None,
    limit: int = FEW,
    timestamps: str | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> Picture:
    """A picture of a stream, and of how long its items count in windows.

    `source` is what `Query.run` reads: a file, a table, a list of items. `windows` are a query (all
    its windows; of several streams those of `stream`), a window of a plan, one that is written as
    in a query (`"RANGE 10 SLIDE 5"`), or a list of those. Up to `limit` items have a lane each.
    `timestamps` are ms, iso (UTC) or local. IRIs are shortened with the queries' prefixes, and with
    `prefixes`.

    >>> items = [("<a>", "<p>", "<b>", 3), ("<a>", "<p>", "<c>", 7)]
    >>> print(show(items, "RANGE 10 SLIDE 5"))
    ① SlidingDeltaWindow  range 10 ms, slide 5 ms
    3  <a> <p> <b>  ① [3, 10)
    7  <a> <p> <c>  ① [7, 15)
    """
    if type(limit) is not int or limit < 0:
        raise EngineError(f"limit is a number of items, from 0 on, not {limit!r}")
    given = windows if isinstance(windows, list | tuple) else [windows]
    given = [one for one in given if one is not None]
    known = dict(prefixes or {})
    for one in given:
        if isinstance(one, CompiledQuery):
            known = {**one.prefixes, **known}
    write = plan_writer(known)
    items, rejects = read(source)
    seen = tuple(_seen(window, items, write) for one in given for window in _windows(one, stream))
    clock = DisplayClock.of(timestamps, min((item.start for item in items), default=0))
    return drawn(Shown(items, tuple(dict.fromkeys(seen)), clock, write, rejects), limit)


# -- what is given ---------------------------------------------------------------------------------


def read(source: Any) -> tuple[list[StreamItem], tuple[Reject, ...]]:
    """The items of a source, by time, ties in the order in which they come; and what is none."""
    from streamsparql.physical.dictionary.term_dictionary import TermDictionary
    from streamsparql.run.input import read_once
    from streamsparql.sources import read_stream

    if read_once(source):
        raise SourceError("the source can be read once, and showing it would: give a list of it")
    terms: TermDictionary = TermDictionary()
    items: list[StreamItem] = []
    rejects: list[Reject] = []
    for chunk in read_stream(source, "the stream", terms, chunk=_READ):
        rejects += chunk.rejects
        stamps = chunk.stamps if chunk.kept is None else chunk.stamps[chunk.kept]
        since = stamps if chunk.since is None else chunk.since
        triples = zip(*(terms.terms_of(ids) for ids in (chunk.s, chunk.p, chunk.o)), strict=True)
        times = zip(since.tolist(), stamps.tolist(), strict=True)
        items += (StreamItem(_triple(*t), *both) for t, both in zip(triples, times, strict=True))
        if len(items) >= _READ:
            raise EngineError(
                f"the stream has {_READ:,} items or more, too many for a picture: show a part of it"
            )
    return sorted(items, key=lambda item: item.end), tuple(rejects)


def _triple(subject: Term | None, predicate: Term | None, value: Term | None) -> Triple:
    assert subject is not None
    assert isinstance(predicate, IRI)
    assert value is not None
    return Triple(subject, predicate, value)


def _windows(given: Any, stream: str | None) -> Iterator[Window]:
    """The windows that are meant; of plans, all that are over the stream."""
    if isinstance(given, str):
        from streamsparql.look.by_hand import access

        given = access("urn:stream").window(given).plan
    elif isinstance(given, CompiledQuery):
        if len(given.streams) > 1 and stream is None:
            names = ", ".join(f"<{name}>" for name in given.streams)
            raise EngineError(f"say with stream=... which one it is: the query reads {names}")
        if stream is not None and stream not in given.streams:
            raise EngineError(f"the query does not read the stream <{stream}>")
        given = given.logical
    given = getattr(given, "plan", given)
    if not isinstance(given, Plan):
        raise EngineError(
            f"windows are those of a query or of a plan, or texts such as 'RANGE 10 S SLIDE 5 S',"
            f" not {given!r:.60}"
        )
    if isinstance(given, Window):
        yield given
        return
    for window in windows_of(given):
        if stream is None or any(
            isinstance(node, AccessStream) and node.stream.value == stream for node in window.walk()
        ):
            yield window


def _seen(window: Window, items: Sequence[StreamItem], write: Writer) -> Seen:
    """A window over the items; one that counts elements counts those that its patterns match."""
    counted: Sequence[int] = range(len(items))
    if isinstance(window, ElementWindow):
        counted = [k for k in counted if _passes(window.input, items[k])]
    elements = [Element(k, items[k].end, items[k].end + 1) for k in counted]
    found = window.validity(elements)  # type: ignore[arg-type]
    intervals = tuple(Interval(k, start, end) for k, start, end in found)  # type: ignore[arg-type]
    label = f"{type(window).__name__}  {title(window, write)}".strip()
    plain = replace(window, input=AccessStream(IRI("")))
    return Seen(plain if isinstance(window, TimeWindow) else window, label, intervals)


def _passes(plan: Plan, item: StreamItem) -> bool:
    """Whether an item gets through what is below a window."""
    names = {node.stream for node in plan.walk() if isinstance(node, AccessStream)}
    return bool(plan.elements(Inputs(streams={name: [item] for name in names})))


# -- the picture -----------------------------------------------------------------------------------


def drawn(shown: Shown, limit: int = FEW) -> Picture:
    """The picture of items and windows."""
    few = len(shown.items) <= limit
    start, end = shown.span
    rows = [shown.texts(item)[: 3 if few else 2] for item in shown.items]
    if not few:
        rows = [list(row) for row in dict.fromkeys(map(tuple, rows))]
    lanes = rows if few else rows[:MOST]
    widths = shared(lanes, _ROOM)
    left = max(sum(widths) + 2 * len(widths), 18) * CELL + 14
    canvas = Canvas("a stream and its windows", start, end, left=left, width=WIDTH)
    _legend(canvas, shown.windows)
    top = canvas.y
    if few:
        _lanes(canvas, shown, widths)
    else:
        _series(canvas, shown, lanes, widths)
        _curves(canvas, shown)
    for k, seen in enumerate(shown.windows if shown.items else ()):
        positions(canvas, seen.window, k, shown.items[-1].end)
    if not shown.items:
        canvas.text(canvas.left + 6, canvas.y + 14, "no items", "soft")
        canvas.y += 20
    canvas.ruler(top, canvas.y, shown.clock)
    notes = [] if few or len(rows) <= MOST else [f"the first {MOST} of {len(rows):,} lanes"]
    return canvas.picture(as_text(shown, limit), "; ".join([*notes, *_rejected(shown.rejects)]))


def _rejected(rejects: Sequence[Reject]) -> Iterator[str]:
    """What is said of items that could not be read."""
    if rejects:
        count = f"{len(rejects):,} item{'s' * (len(rejects) > 1)}"
        yield visible(f"{count} could not be read: {rejects[0]}{' …' * (len(rejects) > 1)}")


def _legend(canvas: Canvas, windows: Sequence[Seen]) -> None:
    """What the colours of windows mean."""
    for k, seen in enumerate(windows):
        canvas.box(8, canvas.y + 3, 16, 9, f"c{k % len(SERIES)}")
        canvas.text(30, canvas.y + 12, fitted(seen.label, WIDTH - 40), "code", seen.label)
        canvas.y += 17
    canvas.y += 6


def _lanes(canvas: Canvas, shown: Shown, widths: Sequence[int]) -> None:
    """A lane per item: its point, and a bar for each window that it is in."""
    found: dict[int, list[tuple[int, Interval]]] = {}
    for k, seen in enumerate(shown.windows):
        for interval in seen.intervals:
            found.setdefault(interval.item, []).append((k, interval))
    height = max(18.0, len(shown.windows) * (_BAR + _GAP) + 8)
    for place, item in enumerate(shown.items):
        texts, y = shown.texts(item), canvas.y
        whole = f"{' '.join(texts)}\nat {_moments(item, shown.clock)}"
        _label(canvas, texts, widths, whole)
        for k, (_, start, end) in found.get(place, ()):
            at = y + 4 + k * (_BAR + _GAP)
            if start > item.end:
                middle = at + _BAR / 2
                line = f"wait l{k % len(SERIES)}"
                canvas.line(canvas.x(item.end), middle, canvas.x(start), middle, line)
            tip = f"{whole}\n{shown.windows[k].label}: {_until(start, end, shown.clock)}"
            canvas.bar(start, end, at, f"c{k % len(SERIES)}", _BAR, tip=tip)
        middle = y + height / 2 - 1
        if item.start < item.end:
            canvas.line(canvas.x(item.start), middle, canvas.x(item.end), middle, "axis")
        canvas.dot(canvas.x(item.end), middle, "point", 3.5, whole)
        canvas.y += height


def _label(canvas: Canvas, texts: Sequence[str], widths: Sequence[int], tip: str) -> None:
    for text, (x, width) in zip(texts, columns(widths), strict=True):
        canvas.text(x, canvas.y + 13, fitted(text, width), "code", tip)


def _series(
    canvas: Canvas, shown: Shown, lanes: Sequence[Sequence[str]], widths: Sequence[int]
) -> None:
    """A lane per subject and predicate, with a point for each item."""
    points: dict[tuple[str, ...], list[StreamItem]] = {}
    for item in shown.items:
        points.setdefault(tuple(shown.texts(item)[:2]), []).append(item)
    for lane in lanes:
        _label(canvas, lane, widths, " ".join(lane))
        close: dict[int, list[StreamItem]] = {}
        for item in points[tuple(lane)]:
            close.setdefault(int(canvas.x(item.end) / _CLOSE), []).append(item)
        for first, *others in close.values():
            tip = f"{' '.join(shown.texts(first))}\nat {_moments(first, shown.clock)}"
            tip += f"\nand {len(others):,} more close to it" * bool(others)
            canvas.dot(canvas.x(first.end), canvas.y + 9, "point faint", 2.5, tip)
        canvas.y += 18


def _curves(canvas: Canvas, shown: Shown) -> None:
    """How many items each window holds."""
    for k, seen in enumerate(shown.windows):
        kind = f"c{k % len(SERIES)}"
        most = max((held for _, held in seen.curve), default=0)
        bottom = canvas.y + _CURVE + 10
        path, heights = f"M{canvas.x(canvas.start):g} {bottom:g}", dict[float, float]()
        for t, held in seen.curve:
            x, height = canvas.x(t), _CURVE * held / max(most, 1)
            heights[x] = max(height, heights.get(x, 0)) if held else height
        for x, height in heights.items():
            path += f"H{x:g}V{bottom - height:.1f}"
        canvas.add(f'<path d="{path}H{canvas.right:g}V{bottom:g}z" class="{kind} area"/>')
        canvas.text(canvas.left - 8, bottom - _CURVE + 9, str(most), "soft end")
        canvas.text(canvas.left - 8, bottom, "0", "soft end")
        canvas.text(8, bottom - _CURVE / 2 + 4, "items in it", "soft")
        canvas.y = bottom + 4


# -- in words --------------------------------------------------------------------------------------


def _moments(item: StreamItem, clock: DisplayClock) -> str:
    both = [item.end] if item.start == item.end else [item.start, item.end]
    return " to ".join(clock.moment(t) for t in both)


def _until(start: int, end: int, clock: DisplayClock) -> str:
    return f"[{clock.moment(start)}, {'…' if end >= INFINITY else clock.moment(end)})"


def as_text(shown: Shown, limit: int) -> str:
    """The items with their intervals, for a terminal."""
    marks = [chr(0x2460 + k) if k < 20 else f"({k + 1})" for k in range(len(shown.windows))]
    found: dict[int, list[str]] = {}
    for mark, seen in zip(marks, shown.windows, strict=True):
        for item, start, end in seen.intervals:
            found.setdefault(item, []).append(f"{mark} {_until(start, end, shown.clock)}")
    lines = [f"{mark} {seen.label}" for mark, seen in zip(marks, shown.windows, strict=True)]
    items = shown.items[:limit]
    heads = [_moments(item, shown.clock) for item in items]
    texts = [" ".join(shown.texts(item)) for item in items]
    side, broad = (max((cells(one) for one in many), default=0) for many in (heads, texts))
    for k, (head, text) in enumerate(zip(heads, texts, strict=True)):
        spans = "  ".join(found.get(k, ["in no window"] if marks else []))
        pad = " " * (broad - cells(text))
        lines.append(f"{head:>{side}}  {text}{pad}  {spans}".rstrip())
    if len(shown.items) > limit:
        lines.append(f"and {len(shown.items) - limit:,} more")
    lines += _rejected(shown.rejects)
    return "\n".join(lines)
