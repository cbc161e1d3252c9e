"""Boxes: the nodes of the trees in which the stages of a query are drawn.

A stage (the syntax tree, the logical plan, ..) has one visitor that turns its nodes into boxes, and
a format renders boxes; no format knows the nodes. A box has

- a *kind*, the name of the operator as in the papers;
- a *title*, its parameters for readers: complete, with the query's prefixes;
- *facts*, the parameters of the node by name: exact, with whole IRIs and milliseconds.

A subtree that occurs in several places is one box with a number. It is drawn at its first place;
the others have a `Reference` to the number. So ten triple patterns over the same windows do not
show the windows ten times, and a reader sees that they are the same.

Boxes may be nested as deeply as queries, so nothing here recurses, compares or prints them whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple, TypeVar

from streamsparql.text.numbers import count

N = TypeVar("N", bound=Hashable)


class Measures(NamedTuple):
    """The measurements of a box: of an operator, a stage or a slab.

    `rows_in` has a count per input. `share` is the part of the time of all boxes of the tree;
    `state` is the peak, in rows; for a session, that of the moment, and no time is measured.
    `steps` is the number of calls.
    """

    rows_in: tuple[int, ...]
    rows_out: int | None
    seconds: float | None
    share: float | None = None
    state: int | None = None
    steps: int | None = None
    orders: tuple[tuple[tuple[int, ...], int], ...] = ()
    """The orders in which rows met the inputs of a join of several, with their numbers of rows."""

    @property
    def selectivity(self) -> float | None:
        """The quotient of rows out and rows in, over all inputs; None without input rows."""
        rows_in = sum(self.rows_in)
        return self.rows_out / rows_in if rows_in and self.rows_out is not None else None

    @property
    def of_pairs(self) -> float | None:
        """The quotient of rows out and pairs of input rows; None unless there are two inputs."""
        pairs = prod(self.rows_in) if len(self.rows_in) == 2 else 0
        return self.rows_out / pairs if pairs and self.rows_out is not None else None

    def numbers(self) -> dict[str, Any]:
        """Return the numbers that are known, by name, for JSON."""
        numbers: dict[str, Any] = {
            "rows_in": list(self.rows_in),
            "rows_out": self.rows_out,
            "selectivity": self.selectivity,
            "of_pairs": self.of_pairs,
            "state": self.state,
            "steps": self.steps,
            "seconds": self.seconds,
            "share": self.share,
        }
        if self.orders:
            numbers["orders"] = [{"inputs": list(order), "rows": n} for order, n in self.orders]
        return {name: value for name, value in numbers.items() if value is not None}

    @property
    def heat(self) -> int:
        """The level of its share of the time, from 0 to 3: where to look first.

        >>> [Measures((1,), 1, 0.1, share).heat for share in (None, 0.01, 0.05, 0.12, 0.4)]
        [0, 0, 1, 2, 3]
        """
        return bisect_right((0.03, 0.1, 0.25), self.share or 0.0)


class Reference(NamedTuple):
    """A place that shows the box with this number again."""

    number: int
    role: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Box:
    """One node of a stage.

    `role` says which input of its parent the box is, if the order does not show it. `family` groups
    kinds (window, join, ..) and determines the colour. `meaning` is one line on the kind,
    `definition` the rest of its documentation. `number` identifies the box for references; 0
    without references. `measures` is set after a run.
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
    """The change that a picture of two trees shows: gone, new, moved."""
    note: str = ""
    """The line below the title in pictures: the state that an operator retains."""
    reason: str = ""
    """Why this operator computes the plan, if another one could."""


def build_tree(
    root: N,
    inputs: Callable[[N], Iterable[tuple[str, N]]],
    make: Callable[[N], Box],
    repeated: bool = True,
) -> Box:
    """Return the boxes of a node and its descendants; equal subtrees share one box.

    `inputs` returns the inputs of a node with their roles; `make` returns a node's box, without
    children. A reference interrupts the reader, so a leaf that occurs twice is `repeated`; from
    three occurrences on, or with `repeated` off, it is drawn once.
    """
    shared = _shared_nodes(root, inputs, repeated)
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
    for index in reversed(range(len(boxes))):  # children first
        below = (boxes[child] if isinstance(child, int) else child for child in children[index])
        boxes[index] = replace(boxes[index], children=tuple(below))
    return boxes[0]


def _shared_nodes(
    root: N, inputs: Callable[[N], Iterable[tuple[str, N]]], repeated: bool
) -> set[N]:
    """Return the nodes that are drawn once and referenced elsewhere."""
    occurrences: Counter[N] = Counter()
    pending = [root]
    while pending:
        for _, node in inputs(pending.pop()):
            if node not in occurrences:
                pending.append(node)
            occurrences[node] += 1
    once = {node for node in occurrences if not repeated or any(inputs(node))}
    return {node for node, n in occurrences.items() if n > 2 or (n == 2 and node in once)}


class BoxPlace(NamedTuple):
    """A box or a reference in a drawing, with its parent and children by index.

    `reads` is the number of the box that it reads, if a reference is its only child: formats show
    it on the box itself.
    """

    item: Box | Reference
    parent: int
    children: list[int]
    reads: int = 0


def places(root: Box) -> list[BoxPlace]:
    """Return all places of a tree, in reading order.

    >>> tree = Box("Join", children=(Box("Distinct", children=(Reference(1),)), Box("Table")))
    >>> [(place.parent, place.children, place.reads) for place in places(tree)]
    [(-1, [1, 2], 0), (0, [], 1), (0, [], 0)]
    """
    all_places: list[BoxPlace] = []
    pending: list[tuple[Box | Reference, int]] = [(root, -1)]
    while pending:
        item, parent = pending.pop()
        if parent >= 0:
            all_places[parent].children.append(len(all_places))
        children = item.children if isinstance(item, Box) else ()
        match children:
            case (Reference(number, ""),):
                all_places.append(BoxPlace(item, parent, [], number))
            case _:
                pending += [(child, len(all_places)) for child in reversed(children)]
                all_places.append(BoxPlace(item, parent, []))
    return all_places


def remarks(root: Box) -> list[tuple[str, str]]:
    """Return what a tree of operators does not show, as named lines.

    >>> remarks(Box("Join", "on x", reason="in pairs, as that costs less"))
    [('joins', 'in pairs, as that costs less (Join on x)')]
    """
    boxes = [place.item for place in places(root) if isinstance(place.item, Box)]
    lines = [
        ("rules" if box.kind == "RuleClosure" else "joins", _of(box, box.reason))
        for box in boxes
        if box.reason
    ]
    for box in boxes:
        if box.measures is not None and box.measures.orders:
            lines.append(("orders", _of(box, _orders(box.measures.orders))))
    return lines


def _of(box: Box, text: str) -> str:
    return f"{text} ({box.kind} {box.title})"


def _orders(orders: tuple[tuple[tuple[int, ...], int], ...]) -> str:
    """Return the most frequent orders as text; inputs are numbered from 1, in reading order."""
    frequent = sorted(orders, key=lambda each: -each[1])
    texts = [
        f"{' → '.join(str(k + 1) for k in order)}: {count(rows)} row{'s' * (rows != 1)}"
        for order, rows in frequent[:_MAX_ORDERS]
    ]
    if len(orders) > _MAX_ORDERS:
        texts.append(f"{len(orders) - _MAX_ORDERS} more")
    return ", ".join(texts)


_MAX_ORDERS = 6


def has_measures(root: Box) -> bool:
    """Return whether any box of a tree has measurements."""
    items = (place.item for place in places(root))
    return any(isinstance(item, Box) and item.measures is not None for item in items)


def circled(number: int) -> str:
    """Return the mark of a shared box.

    >>> circled(2), circled(21)
    ('②', '(21)')
    """
    return chr(ord("①") + number - 1) if number <= 20 else f"({number})"
