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

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

N = TypeVar("N", bound=Hashable)


class Reference(NamedTuple):
    """Here stands what the box with this number shows."""

    number: int
    role: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Box:
    """One node of a stage.

    `role` is what the box is to the one above it, where the order does not tell. `family` groups
    kinds (window, join, ..) and gives the colour, `meaning` says what the kind does. `number` is
    what other places refer to the box by, 0 if none does.
    """

    kind: str
    title: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    children: tuple[Box | Reference, ...] = ()
    role: str = ""
    family: str = "shape"
    meaning: str = ""
    number: int = 0


def drawn(root: N, inputs: Callable[[N], Iterable[tuple[str, N]]], make: Callable[[N], Box]) -> Box:
    """The boxes of a node and all below it, what is equal drawn once.

    `inputs` gives the nodes that one reads, with their roles; `make` gives a node's own box. A
    reference costs the reader a look, so a leaf is rather repeated, unless it stood there
    three times.
    """
    shared = _shared(root, inputs)
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


def _shared(root: N, inputs: Callable[[N], Iterable[tuple[str, N]]]) -> set[N]:
    """The nodes that are drawn once and referred to."""
    stands: Counter[N] = Counter()
    pending = [root]
    while pending:
        for _, node in inputs(pending.pop()):
            if node not in stands:
                pending.append(node)
            stands[node] += 1
    return {node for node, n in stands.items() if n > 2 or (n == 2 and any(inputs(node)))}


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


def visible(text: str) -> str:
    r"""The text with what cannot be seen written as SPARQL's escapes, so that it is one line.

    >>> print(visible("a\u2028b\u202e"))
    a\u2028b\u202E
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(ord(char)) for char in text)


def _escaped(code: int) -> str:
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def circled(number: int) -> str:
    """The mark of a shared box.

    >>> circled(2), circled(21)
    ('②', '(21)')
    """
    return chr(ord("①") + number - 1) if number <= 20 else f"({number})"
