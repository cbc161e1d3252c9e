"""The labels of boxes: the lines of text that all graphical formats show."""

from __future__ import annotations

from streamsparql.look.explain.boxes.box import Box, Measures
from streamsparql.text.numbers import count, percent, ratio, seconds
from streamsparql.text.widths import cells, in_picture, wrap

_LINE_WIDTH = 38
_MAX_LINE_WIDTH = 50
"""The width of a line in cells; the larger one applies where it keeps a long word whole."""

_MAX_TITLE_LINES = 4
_MAX_NOTE_LINES = 3


def title_lines(box: Box) -> list[str]:
    """Return the title, wrapped to the width of a box; a title with too many lines is cut.

    >>> title_lines(Box("Projection", "?x ?y"))
    ['?x ?y']
    """
    if not box.title:
        return []
    longest = max(cells(word, in_picture) for word in box.title.split(" "))
    width = longest if _LINE_WIDTH < longest <= _MAX_LINE_WIDTH else _LINE_WIDTH
    return wrap(box.title, width, _MAX_TITLE_LINES, in_picture)


def note_lines(box: Box) -> list[str]:
    """Return the note, wrapped to the width of a box; empty where measurements replace it."""
    if not box.note or box.measures is not None:
        return []
    return wrap(box.note, _LINE_WIDTH, _MAX_NOTE_LINES, in_picture)


def tooltip(box: Box) -> str:
    """Return the full description of a box: its meaning, whole title, facts and measurements."""
    parts = [f"{box.kind}: {box.meaning}" if box.meaning else box.kind, box.title]
    parts += (f"{name} = {value}" for name, value in box.facts)
    if box.measures is not None:
        parts += (f"{name}: {text}" for name, text in exact_measures(box.measures))
    return "\n".join(part for part in parts if part)


def exact_measures(measures: Measures) -> list[tuple[str, str]]:
    """Return the measurements of a box as pairs of a name and an exact figure.

    >>> exact_measures(Measures((12_345, 2), 7, 0.25, steps=3))
    [('rows in', '12,345 + 2'), ('rows out', '7'), ('steps', '3'), ('took', '250 ms')]
    """
    facts = [("rows in", " + ".join(f"{n:,}" for n in measures.rows_in))]
    if measures.rows_out is not None:
        facts.append(("rows out", f"{measures.rows_out:,}"))
    if measures.state is not None:
        name = "state" if measures.seconds is None else "peak state"
        facts.append((name, f"{measures.state:,} rows"))
    if measures.steps is not None:
        facts.append(("steps", f"{measures.steps:,}"))
    if measures.seconds is not None:
        facts.append(("took", seconds(measures.seconds)))
    if measures.share is not None:
        facts.append(("share of time", percent(measures.share)))
    return [(name, text) for name, text in facts if text]


def measure_lines(box: Box) -> list[str]:
    """Return the lines that show the measurements of a box; empty without measurements.

    >>> measure_lines(Box("Filter", measures=Measures((1200,), 300, 0.0021, 0.034, state=7)))
    ['1,200 → 300 rows, 25.0 %', '3.4 % of time, 2.10 ms, state 7']
    >>> measure_lines(Box("Always", measures=Measures((), 3, 0.0021)))
    ['3 rows', '2.10 ms']
    """
    measures = box.measures
    if measures is None:
        return []
    lines = []
    if (rows_out := measures.rows_out) is not None:
        rows_in = f"{' + '.join(map(count, measures.rows_in))} → " if measures.rows_in else ""
        selectivity = "" if measures.selectivity is None else f", {ratio(measures.selectivity)}"
        lines.append(f"{rows_in}{count(rows_out)} row{'s' * (rows_out != 1)}{selectivity}")
    share = "" if measures.share is None else f"{percent(measures.share)} of time, "
    took = "" if measures.seconds is None else f"{share}{seconds(measures.seconds)}"
    state = f"state {count(measures.state)}" if measures.state else ""
    return [*lines, ", ".join(filter(None, (took, state)))]
