"""A lint of a query with its data: windows without a unit that are far too short for the data."""

from __future__ import annotations

from collections.abc import Iterator

from streamsparql.look.lints.text import ignored_codes
from streamsparql.look.lints.warning import LintWarning
from streamsparql.text.instants import DisplayClock
from streamsparql.text.numbers import seconds
from streamsparql.translator import syntax as s
from streamsparql.translator.translate import Translation

_CLEARLY = 10
"""How many times as long as the window the time between two items is."""


def short_windows(
    translation: Translation, first: int, last: int, items: int
) -> Iterator[LintWarning]:
    """Warn of lengths without a unit, if items from `first` to `last` are much further apart.

    Timestamps that are not dates are in an arbitrary unit, as in an example.
    """
    if items < 2 or DisplayClock.of(None, first).style == "ms":
        return
    apart = (last - first) // (items - 1)
    if "bare-duration" in ignored_codes(translation.text):
        return
    for node in translation.syntax.walk():
        if isinstance(node, s.WindowSlide | s.WindowFixed | s.WindowRange):
            width = node.width
            if width.unit is None and width.milliseconds * _CLEARLY <= apart:
                number = width.span.of(translation.text)
                yield LintWarning(
                    "bare-duration",
                    f"{number} without a unit is {number} ms; the items are"
                    f" {seconds(apart / 1000)} apart on average",
                    width.span,
                    translation.text,
                    hint=f"write {number} SECOND",
                )
