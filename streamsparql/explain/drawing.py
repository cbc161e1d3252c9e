"""What the pictures of all graphical formats have in common: the labels of their boxes."""

from __future__ import annotations

from streamsparql.explain.box import Box
from streamsparql.explain.measure import cells, in_picture, wrap

ROOM, MORE_ROOM = 38, 50
"""The cells of a line in a picture's box; and where that saves a long word from being cut."""

_LINES = 4


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


def tooltip(box: Box) -> str:
    """All that is known of a box: what it does, its whole title, its facts."""
    parts = [f"{box.kind}: {box.meaning}" if box.meaning else box.kind, box.title]
    parts += (f"{name} = {value}" for name, value in box.facts)
    return "\n".join(part for part in parts if part)
