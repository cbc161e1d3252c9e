"""The picture of a stream: its items as points over time, and their validity in windows.

A few items have a lane each, with a bar per window for the item's validity in it. A dotted line is
the time until a stepped window contains the item. Many items share a lane per subject and
predicate, and each window has a curve of the number of items that it contains.
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
from streamsparql.look.jupyter.canvas import CELL, SERIES, Canvas, fit_text
from streamsparql.look.jupyter.label_columns import column_places, column_widths
from streamsparql.look.jupyter.moving_window import draw_positions
from streamsparql.sources.chunk import Reject
from streamsparql.text.instants import DisplayClock
from streamsparql.text.visible import isolated, visible
from streamsparql.text.widths import cells
from streamsparql.translator.sparql_text import Writer

_WIDTH = 880.0
MAX_ITEM_LANES = 24
"""The number of items up to which each has a lane."""
MAX_SERIES = 30
"""The number of lanes of a subject and predicate that are drawn."""

_LABELS = 42  # cells, of all label columns together
_BAR, _GAP = 8.0, 2.0
_CURVE = 56.0
_MIN_GAP = 2.0  # pixels; points that are closer are drawn as one
_MAX_ITEMS = 100_000


class ItemInterval(NamedTuple):
    """The validity of an item in a window; `item` is the item's index."""

    item: int
    start: int
    end: int


@dataclass(frozen=True)
class WindowContent:
    """A window, its label, and the validity of each item in it."""

    window: Window
    label: str
    intervals: tuple[ItemInterval, ...]

    @property
    def curve(self) -> list[tuple[int, int]]:
        """The number of items in the window, from each instant at which it changes.

        >>> from streamsparql.algebra.shape import UNIT
        >>> from streamsparql.algebra.window import NowWindow
        >>> intervals = ItemInterval(0, 3, 9), ItemInterval(1, 5, 9)
        >>> WindowContent(NowWindow(UNIT), "", intervals).curve
        [(3, 1), (5, 2), (9, 0)]
        """
        changes: dict[int, int] = {}
        for _, start, end in self.intervals:
            changes[start] = changes.get(start, 0) + 1
            changes[end] = changes.get(end, 0) - 1
        count, curve = 0, []
        for t in sorted(changes):
            count += changes[t]
            curve.append((t, count))
        return curve


@dataclass(frozen=True)
class WindowedStream:
    """Items by time, and windows over them."""

    items: Sequence[StreamItem]
    windows: tuple[WindowContent, ...]
    clock: DisplayClock
    write: Writer = field(default_factory=Writer)
    rejects: tuple[Reject, ...] = ()

    @property
    def span(self) -> tuple[int, int]:
        """The time that is drawn: to the last end, and with a margin if a validity has no end."""
        first = min((item.start for item in self.items), default=0)
        last = max((item.end for item in self.items), default=first) + 1
        edges = [t for each in self.windows for _, *both in each.intervals for t in both]
        end = max([last, *(t for t in edges if t < INFINITY)])
        return first, end + (max(1, (end - first) // 12) if INFINITY in edges else 0)

    def texts(self, item: StreamItem) -> list[str]:
        """Return the terms of an item as text."""
        subject, predicate, value = item.triple
        write = self.write
        texts = write.term(subject), write.predicate(predicate), write.term(value)
        return [isolated(text) for text in texts]


def show(
    source: Any,
    windows: Any = None,
    *,
    stream: str | None = None,
    limit: int = MAX_ITEM_LANES,
    timestamps: str | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> Picture:
    """Draw a stream, and the validity of its items in windows.

    `source` is anything that `Query.run` accepts: a file, a table, a list of items. `windows` is a
    query (all its windows; those over `stream` if it reads several), a window of a plan, the text
    of a window clause (`"RANGE 10 SLIDE 5"`), or a list of those. Up to `limit` items have a lane
    each. `timestamps` is ms, iso (UTC) or local. IRIs are shortened with the queries' prefixes and
    with `prefixes`.

    >>> items = [("<a>", "<p>", "<b>", 3), ("<a>", "<p>", "<c>", 7)]
    >>> print(show(items, "RANGE 10 SLIDE 5"))
    ① SlidingDeltaWindow  range 10 ms, slide 5 ms
    3  <a> <p> <b>  ① [3, 10)
    7  <a> <p> <c>  ① [7, 15)
    """
    if type(limit) is not int or limit < 0:
        raise EngineError(f"limit must be a non-negative number of items, not {limit!r}")
    specified = windows if isinstance(windows, list | tuple) else [windows]
    specified = [each for each in specified if each is not None]
    all_prefixes = dict(prefixes or {})
    for each in specified:
        if isinstance(each, CompiledQuery):
            all_prefixes = {**each.prefixes, **all_prefixes}
    write = plan_writer(all_prefixes)
    items, rejects = read_items(source)
    contents = dict.fromkeys(
        _content(window, items, write) for each in specified for window in _windows(each, stream)
    )
    clock = DisplayClock.of(timestamps, min((item.start for item in items), default=0))
    return stream_picture(WindowedStream(items, tuple(contents), clock, write, rejects), limit)


# -- input -----------------------------------------------------------------------------------------


def read_items(source: Any) -> tuple[list[StreamItem], tuple[Reject, ...]]:
    """Return the items of a source by time, ties in input order, and the rejected items."""
    from streamsparql.physical.dictionary.term_dictionary import TermDictionary
    from streamsparql.run.input import read_once
    from streamsparql.sources import read_stream

    if read_once(source):
        raise SourceError(
            "the source can be read only once, and a picture would consume it; pass a list of items"
        )
    terms: TermDictionary = TermDictionary()
    items: list[StreamItem] = []
    rejects: list[Reject] = []
    for chunk in read_stream(source, "the stream", terms, chunk=_MAX_ITEMS):
        rejects += chunk.rejects
        stamps = chunk.stamps if chunk.kept is None else chunk.stamps[chunk.kept]
        since = stamps if chunk.since is None else chunk.since
        triples = zip(*(terms.terms_of(ids) for ids in (chunk.s, chunk.p, chunk.o)), strict=True)
        times = zip(since.tolist(), stamps.tolist(), strict=True)
        items += (StreamItem(_triple(*t), *both) for t, both in zip(triples, times, strict=True))
        if len(items) >= _MAX_ITEMS:
            raise EngineError(
                f"the stream has at least {_MAX_ITEMS:,} items, too many to draw; show a part of it"
            )
    return sorted(items, key=lambda item: item.end), tuple(rejects)


def _triple(subject: Term | None, predicate: Term | None, value: Term | None) -> Triple:
    assert subject is not None
    assert isinstance(predicate, IRI)
    assert value is not None
    return Triple(subject, predicate, value)


def _windows(specified: Any, stream: str | None) -> Iterator[Window]:
    """Yield the windows of a query, plan, draft or window clause; of plans, those over `stream`."""
    plan = specified
    if isinstance(plan, str):
        from streamsparql.look.by_hand import access

        plan = access("urn:stream").window(plan).plan
    elif isinstance(plan, CompiledQuery):
        names = ", ".join(f"<{name}>" for name in plan.streams) or "no stream"
        if len(plan.streams) > 1 and stream is None:
            raise EngineError(
                f"ambiguous stream; the query reads {names}: select one with stream=..."
            )
        if stream is not None and stream not in plan.streams:
            raise EngineError(f"unknown stream <{stream}>; the query reads {names}")
        plan = plan.logical
    plan = getattr(plan, "plan", plan)
    if not isinstance(plan, Plan):
        raise EngineError(
            "windows must be a query, a plan, or window clauses such as 'RANGE 10 S SLIDE 5 S',"
            f" not {plan!r:.60}"
        )
    if isinstance(plan, Window):
        yield plan
        return
    for window in windows_of(plan):
        if stream is None or any(
            isinstance(node, AccessStream) and node.stream.value == stream for node in window.walk()
        ):
            yield window


def _content(window: Window, items: Sequence[StreamItem], write: Writer) -> WindowContent:
    """Compute the validity of the items in a window.

    A window that counts elements counts the items that match the patterns below it.
    """
    counted: Sequence[int] = range(len(items))
    if isinstance(window, ElementWindow):
        counted = [k for k in counted if _matches(window.input, items[k])]
    elements = [Element(k, items[k].end, items[k].end + 1) for k in counted]
    validity = window.validity(elements)  # type: ignore[arg-type]
    intervals = tuple(ItemInterval(*interval) for interval in validity)  # type: ignore[arg-type]
    label = f"{type(window).__name__}  {title(window, write)}".strip()
    plain = replace(window, input=AccessStream(IRI("")))
    return WindowContent(plain if isinstance(window, TimeWindow) else window, label, intervals)


def _matches(plan: Plan, item: StreamItem) -> bool:
    """Return whether the plan below a window emits anything for an item."""
    names = {node.stream for node in plan.walk() if isinstance(node, AccessStream)}
    return bool(plan.elements(Inputs(streams={name: [item] for name in names})))


# -- the picture -----------------------------------------------------------------------------------


def stream_picture(shown: WindowedStream, limit: int = MAX_ITEM_LANES) -> Picture:
    """Draw items and windows; with more than `limit` items, a lane per subject and predicate."""
    few = len(shown.items) <= limit
    start, end = shown.span
    rows = [shown.texts(item)[: 3 if few else 2] for item in shown.items]
    if not few:
        rows = [list(row) for row in dict.fromkeys(map(tuple, rows))]
    lanes = rows if few else rows[:MAX_SERIES]
    widths = column_widths(lanes, _LABELS)
    left = max(sum(widths) + 2 * len(widths), 18) * CELL + 14
    canvas = Canvas("a stream and its windows", start, end, left=left, width=_WIDTH)
    _draw_legend(canvas, shown.windows)
    top = canvas.y
    if few:
        _draw_lanes(canvas, shown, widths)
    else:
        _draw_series(canvas, shown, lanes, widths)
        _draw_curves(canvas, shown)
    for k, content in enumerate(shown.windows if shown.items else ()):
        draw_positions(canvas, content.window, k, shown.items[-1].end)
    if not shown.items:
        canvas.text(canvas.left + 6, canvas.y + 14, "no items", "soft")
        canvas.y += 20
    canvas.ruler(top, canvas.y, shown.clock)
    notes = []
    if not few and len(rows) > MAX_SERIES:
        notes.append(f"the first {MAX_SERIES} of {len(rows):,} lanes")
    return canvas.picture(stream_text(shown, limit), "; ".join([*notes, *_rejected(shown.rejects)]))


def _rejected(rejects: Sequence[Reject]) -> Iterator[str]:
    """Yield a note of the rejected items, with the first as an example, if there are any."""
    if rejects:
        count = f"{len(rejects):,} item{'s' * (len(rejects) > 1)}"
        yield visible(f"{count} rejected: {rejects[0]}{' …' * (len(rejects) > 1)}")


def _draw_legend(canvas: Canvas, windows: Sequence[WindowContent]) -> None:
    for k, content in enumerate(windows):
        canvas.box(8, canvas.y + 3, 16, 9, f"c{k % len(SERIES)}")
        canvas.text(30, canvas.y + 12, fit_text(content.label, _WIDTH - 40), "code", content.label)
        canvas.y += 17
    canvas.y += 6


def _draw_lanes(canvas: Canvas, shown: WindowedStream, widths: Sequence[int]) -> None:
    """Draw a lane per item: its point, and a bar for each window that contains it."""
    intervals: dict[int, list[tuple[int, ItemInterval]]] = {}
    for k, content in enumerate(shown.windows):
        for interval in content.intervals:
            intervals.setdefault(interval.item, []).append((k, interval))
    height = max(18.0, len(shown.windows) * (_BAR + _GAP) + 8)
    for index, item in enumerate(shown.items):
        texts, y = shown.texts(item), canvas.y
        whole = f"{' '.join(texts)}\nat {_occurrence(item, shown.clock)}"
        _draw_label(canvas, texts, widths, whole)
        for k, (_, start, end) in intervals.get(index, ()):
            bar_y = y + 4 + k * (_BAR + _GAP)
            if start > item.end:
                middle = bar_y + _BAR / 2
                line = f"wait l{k % len(SERIES)}"
                canvas.line(canvas.x(item.end), middle, canvas.x(start), middle, line)
            tip = f"{whole}\n{shown.windows[k].label}: {_validity(start, end, shown.clock)}"
            canvas.bar(start, end, bar_y, f"c{k % len(SERIES)}", _BAR, tip=tip)
        middle = y + height / 2 - 1
        if item.start < item.end:
            canvas.line(canvas.x(item.start), middle, canvas.x(item.end), middle, "axis")
        canvas.dot(canvas.x(item.end), middle, "point", 3.5, whole)
        canvas.y += height


def _draw_label(canvas: Canvas, texts: Sequence[str], widths: Sequence[int], tip: str) -> None:
    for text, (x, width) in zip(texts, column_places(widths), strict=True):
        canvas.text(x, canvas.y + 13, fit_text(text, width), "code", tip)


def _draw_series(
    canvas: Canvas, shown: WindowedStream, lanes: Sequence[Sequence[str]], widths: Sequence[int]
) -> None:
    """Draw a lane per subject and predicate, with a point for each item or group of close items."""
    points: dict[tuple[str, ...], list[StreamItem]] = {}
    for item in shown.items:
        points.setdefault(tuple(shown.texts(item)[:2]), []).append(item)
    for lane in lanes:
        _draw_label(canvas, lane, widths, " ".join(lane))
        close: dict[int, list[StreamItem]] = {}
        for item in points[tuple(lane)]:
            close.setdefault(int(canvas.x(item.end) / _MIN_GAP), []).append(item)
        for first, *others in close.values():
            tip = f"{' '.join(shown.texts(first))}\nat {_occurrence(first, shown.clock)}"
            tip += f"\nand {len(others):,} more next to it" * bool(others)
            canvas.dot(canvas.x(first.end), canvas.y + 9, "point faint", 2.5, tip)
        canvas.y += 18


def _draw_curves(canvas: Canvas, shown: WindowedStream) -> None:
    """Draw for each window an area chart of the number of items that it contains."""
    for k, content in enumerate(shown.windows):
        kind = f"c{k % len(SERIES)}"
        most = max((count for _, count in content.curve), default=0)
        bottom = canvas.y + _CURVE + 10
        path, heights = f"M{canvas.x(canvas.start):g} {bottom:g}", dict[float, float]()
        for t, count in content.curve:
            x, height = canvas.x(t), _CURVE * count / max(most, 1)
            heights[x] = max(height, heights.get(x, 0)) if count else height
        for x, height in heights.items():
            path += f"H{x:g}V{bottom - height:.1f}"
        canvas.add(f'<path d="{path}H{canvas.right:g}V{bottom:g}z" class="{kind} area"/>')
        canvas.text(canvas.left - 8, bottom - _CURVE + 9, str(most), "soft end")
        canvas.text(canvas.left - 8, bottom, "0", "soft end")
        canvas.text(8, bottom - _CURVE / 2 + 4, "items in window", "soft")
        canvas.y = bottom + 4


# -- text ------------------------------------------------------------------------------------------


def _occurrence(item: StreamItem, clock: DisplayClock) -> str:
    both = [item.end] if item.start == item.end else [item.start, item.end]
    return " to ".join(clock.moment(t) for t in both)


def _validity(start: int, end: int, clock: DisplayClock) -> str:
    return f"[{clock.moment(start)}, {'…' if end >= INFINITY else clock.moment(end)})"


def stream_text(shown: WindowedStream, limit: int) -> str:
    """Return the items with their validity in each window, for a terminal."""
    marks = [chr(0x2460 + k) if k < 20 else f"({k + 1})" for k in range(len(shown.windows))]
    spans: dict[int, list[str]] = {}
    for mark, content in zip(marks, shown.windows, strict=True):
        for item, start, end in content.intervals:
            spans.setdefault(item, []).append(f"{mark} {_validity(start, end, shown.clock)}")
    lines = [f"{mark} {each.label}" for mark, each in zip(marks, shown.windows, strict=True)]
    items = shown.items[:limit]
    heads = [_occurrence(item, shown.clock) for item in items]
    texts = [" ".join(shown.texts(item)) for item in items]
    head_width, text_width = (max(map(cells, column), default=0) for column in (heads, texts))
    for k, (head, text) in enumerate(zip(heads, texts, strict=True)):
        windows = "  ".join(spans.get(k, ["in no window"] if marks else []))
        pad = " " * (text_width - cells(text))
        lines.append(f"{head:>{head_width}}  {text}{pad}  {windows}".rstrip())
    if len(shown.items) > limit:
        lines.append(f"and {len(shown.items) - limit:,} more")
    lines += _rejected(shown.rejects)
    return "\n".join(lines)
