"""What every stage of a query is drawn from: boxes.

A stage (the syntax tree, the logical plan, ..) has one visitor that makes boxes of its nodes, and a
format is one way to draw boxes; no format knows what the nodes were. A box has

- a *kind*, the name of the operator as in the papers;
- a *title*, what a reader wants to see of it: complete, with the query's prefixes;
- *facts*, the parameters of the node by their names: exact, with whole IRIs and milliseconds.

What stands in several places is one box with a number. It is drawn where it comes first; the other
places have a `Reference` to the number. So ten triple patterns over the same windows do not show
the windows ten times, and a reader sees that they are the same.

Boxes may be nested as deep as queries are, so nothing here recurses, compares or prints them whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple, TypeVar

N = TypeVar("N", bound=Hashable)


class Measures(NamedTuple):
    """What a run measured of a box: of an operator, a stage or a slab.

    Rows in are counted per input. A share is one of the time of all that is drawn beside the box;
    `heat` says how much of it that is, from 0 to 3.
    """

    rows_in: tuple[int, ...]
    rows_out: int | None
    seconds: float
    share: float | None = None
    state: int | None = None
    steps: int | None = None

    @property
    def selectivity(self) -> float | None:
        """Rows out by rows in, of all inputs; None where nothing came in."""
        came = sum(self.rows_in)
        return self.rows_out / came if came and self.rows_out is not None else None

    @property
    def of_pairs(self) -> float | None:
        """Of two inputs: rows out by the pairs of rows that could meet."""
        pairs = prod(self.rows_in) if len(self.rows_in) == 2 else 0
        return self.rows_out / pairs if pairs and self.rows_out is not None else None

    def numbers(self) -> dict[str, Any]:
        """Return the numbers that there are, by name."""
        numbers = {
            "rows_in": list(self.rows_in),
            "rows_out": self.rows_out,
            "selectivity": self.selectivity,
            "of_pairs": self.of_pairs,
            "state": self.state,
            "steps": self.steps,
            "seconds": self.seconds,
            "share": self.share,
        }
        return {name: value for name, value in numbers.items() if value is not None}

    @property
    def heat(self) -> int:
        """How hot the box is: where to look first.

        >>> [Measures((1,), 1, 0.1, share).heat for share in (None, 0.01, 0.05, 0.12, 0.4)]
        [0, 0, 1, 2, 3]
        """
        return bisect_right((0.03, 0.1, 0.25), self.share or 0.0)


class Reference(NamedTuple):
    """Here stands what the box with this number shows."""

    number: int
    role: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Box:
    """One node of a stage.

    `role` is what the box is to the one above it, where the order does not tell. `family` groups
    kinds (window, join, ..) and gives the colour, `meaning` says what the kind does, `definition`
    the same at length. `number` is
    what other places refer to the box by, 0 if none does. `measures` are there after a run.
    """

    kind: str
    title: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    children: tuple[Box | Reference, ...] = ()
    role: str = ""
    family: str = "shape"
    meaning: str = ""
    definition: str = ""
    number: int = 0
    measures: Measures | None = None
    mark: str = ""
    """What a picture that compares trees says of it: gone, new, moved."""
    note: str = ""
    """What a picture says below the title: what an operator remembers."""


def drawn(
    root: N,
    inputs: Callable[[N], Iterable[tuple[str, N]]],
    make: Callable[[N], Box],
    repeated: bool = True,
) -> Box:
    """The boxes of a node and all below it, what is equal drawn once.

    `inputs` gives the nodes that one reads, with their roles; `make` gives a node's own box. A
    reference costs the reader a look, so a leaf is rather `repeated`, unless it stood there
    three times, or it is asked for that all is there once.
    """
    shared = _shared(root, inputs, repeated)
    numbers: dict[N, int] = {}
    boxes: list[Box] = []
    children: list[list[int | Reference]] = []
    pending: list[tuple[N, str, int]] = [(root, "", -1)]
    while pending:
        node, role, parent = pending.pop()
        if node in numbers:
            children[parent].append(Reference(numbers[node], role))
            continue
        if node in shared:
            numbers[node] = len(numbers) + 1
        if parent >= 0:
            children[parent].append(len(boxes))
        pending += [(child, as_, len(boxes)) for as_, child in reversed(list(inputs(node)))]
        boxes.append(replace(make(node), role=role, number=numbers.get(node, 0)))
        children.append([])
    for index in reversed(range(len(boxes))):  # what is below comes later
        below = (boxes[child] if isinstance(child, int) else child for child in children[index])
        boxes[index] = replace(boxes[index], children=tuple(below))
    return boxes[0]


def _shared(root: N, inputs: Callable[[N], Iterable[tuple[str, N]]], repeated: bool) -> set[N]:
    """The nodes that are drawn once and referred to."""
    stands: Counter[N] = Counter()
    pending = [root]
    while pending:
        for _, node in inputs(pending.pop()):
            if node not in stands:
                pending.append(node)
            stands[node] += 1
    once = {node for node in stands if not repeated or any(inputs(node))}
    return {node for node, n in stands.items() if n > 2 or (n == 2 and node in once)}


class Place(NamedTuple):
    """Where a box, or a reference, stands in a drawing: one of the `places` of a tree.

    `reads` is the number that the box reads where a reference is its only child: formats show it on
    the box itself.
    """

    item: Box | Reference
    parent: int
    children: list[int]
    reads: int = 0


def places(root: Box) -> list[Place]:
    """All places of a tree in reading order; a place knows its parent and children by index.

    >>> tree = Box("Join", children=(Box("Distinct", children=(Reference(1),)), Box("Table")))
    >>> [(place.parent, place.children, place.reads) for place in places(tree)]
    [(-1, [1, 2], 0), (0, [], 1), (0, [], 0)]
    """
    found: list[Place] = []
    pending: list[tuple[Box | Reference, int]] = [(root, -1)]
    while pending:
        item, parent = pending.pop()
        if parent >= 0:
            found[parent].children.append(len(found))
        children = item.children if isinstance(item, Box) else ()
        match children:
            case (Reference(number, ""),):
                found.append(Place(item, parent, [], number))
            case _:
                pending += [(child, len(found)) for child in reversed(children)]
                found.append(Place(item, parent, []))
    return found


def measured(root: Box) -> bool:
    """Whether a run measured any box of a tree."""
    items = (place.item for place in places(root))
    return any(isinstance(item, Box) and item.measures is not None for item in items)


def circled(number: int) -> str:
    """The mark of a shared box.

    >>> circled(2), circled(21)
    ('②', '(21)')
    """
    return chr(ord("①") + number - 1) if number <= 20 else f"({number})"
