"""What the pictures of all graphical formats have in common: the labels of their boxes."""

from __future__ import annotations

from streamsparql.look.explain.boxes.box import Box, Measures
from streamsparql.text.numbers import count, percent, ratio, seconds
from streamsparql.text.widths import cells, in_picture, wrap

ROOM, MORE_ROOM = 38, 50
"""The cells of a line in a picture's box; and where that saves a long word from being cut."""

_LINES = 4
_REMARK = 3


def label(box: Box) -> list[str]:
    """The title in the lines of a picture's box; what is too long is cut.

    >>> label(Box("Projection", "?x ?y"))
    ['?x ?y']
    """
    if not box.title:
        return []
    longest = max(cells(word, in_picture) for word in box.title.split(" "))
    room = longest if ROOM < longest <= MORE_ROOM else ROOM
    return wrap(box.title, room, _LINES, in_picture)


def remark(box: Box) -> list[str]:
    """The note in the lines of a picture's box; numbers of a run take its place."""
    if not box.note or box.measures is not None:
        return []
    return wrap(box.note, ROOM, _REMARK, in_picture)


def tooltip(box: Box) -> str:
    """All that is known of a box: what it does, its whole title, its facts."""
    parts = [f"{box.kind}: {box.meaning}" if box.meaning else box.kind, box.title]
    parts += (f"{name} = {value}" for name, value in box.facts)
    if box.measures is not None:
        parts += (f"{name}: {text}" for name, text in exact_measures(box.measures))
    return "\n".join(part for part in parts if part)


def exact_measures(measures: Measures) -> list[tuple[str, str]]:
    """Return all that was measured of a box, exact, by name.

    >>> exact_measures(Measures((12_345, 2), 7, 0.25, steps=3))
    [('rows in', '12,345 + 2'), ('rows out', '7'), ('steps', '3'), ('took', '250 ms')]
    """
    facts = [("rows in", " + ".join(f"{n:,}" for n in measures.rows_in))]
    if measures.rows_out is not None:
        facts.append(("rows out", f"{measures.rows_out:,}"))
    if measures.state is not None:
        facts.append(("state at most", f"{measures.state:,} rows"))
    if measures.steps is not None:
        facts.append(("steps", f"{measures.steps:,}"))
    facts.append(("took", seconds(measures.seconds)))
    if measures.share is not None:
        facts.append(("share of the time", percent(measures.share)))
    return [(name, text) for name, text in facts if text]


def measured(box: Box) -> list[str]:
    """What a picture's box shows of a run; nothing where there was none.

    >>> measured(Box("Filter", measures=Measures((1200,), 300, 0.0021, 0.034, state=7)))
    ['1,200 → 300 rows, 25.0 %', '3.4 % of time, 2.10 ms, state 7']
    >>> measured(Box("Always", measures=Measures((), 3, 0.0021)))
    ['3 rows', '2.10 ms']
    """
    of = box.measures
    if of is None:
        return []
    lines = []
    if of.rows_out is not None:
        came = f"{' + '.join(map(count, of.rows_in))} → " if of.rows_in else ""
        kept = "" if of.selectivity is None else f", {ratio(of.selectivity)}"
        lines.append(f"{came}{count(of.rows_out)} row{'s' * (of.rows_out != 1)}{kept}")
    share = "" if of.share is None else f"{percent(of.share)} of time, "
    state = f", state {count(of.state)}" if of.state else ""
    return [*lines, f"{share}{seconds(of.seconds)}{state}"]
