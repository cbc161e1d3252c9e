"""Equality of snapshots up to the labels of the blank nodes that the plans create.

CONSTRUCT and BNODE() create nodes with arbitrary labels. So each new node gets a colour from the
items that contain it, which depends on the colours of the other nodes in them, and so on until
another round distinguishes no more nodes (colour refinement). Snapshots with equal coloured items
are equal as graphs. (Refinement cannot distinguish some graphs, such as two rings of three nodes
and one of six; plans do not create such rings.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from streamsparql.algebra.plan import Occurrence
from streamsparql.algebra.solutions import Solution
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import BlankNode, Triple

_Parts = tuple[Any, ...]


def are_isomorphic(
    one: Snapshot[Any], other: Snapshot[Any], known: Iterable[BlankNode] = (), ordered: bool = False
) -> bool:
    """Return whether two snapshots have the same items; nodes that are `known` keep their labels.

    >>> from streamsparql.algebra.solutions import Variable
    >>> one, other = (Snapshot.of([Solution({Variable("x"): BlankNode(n)})]) for n in "ab")
    >>> are_isomorphic(one, other), are_isomorphic(one, other, [BlankNode("a")])
    (True, False)
    """
    fixed = frozenset(known)
    sides = [[_parts(item) for item in snapshot] for snapshot in (one, other)]
    left, right = _coloured(sides, fixed)
    return left == right if ordered else Counter(left) == Counter(right)


def _coloured(sides: list[list[_Parts]], fixed: frozenset[BlankNode]) -> list[list[_Parts]]:
    """Return the items of both sides with colours in place of new nodes."""
    items_by_node = [_items_by_node(items, fixed) for items in sides]
    colours: list[dict[BlankNode, object]] = [
        dict.fromkeys(nodes, "new") for nodes in items_by_node
    ]
    count, before = 1, 0
    while count > before:
        colours = [
            {
                node: hash(tuple(sorted(repr(_colour_item(item, known, node)) for item in items)))
                for node, items in nodes.items()
            }
            for known, nodes in zip(colours, items_by_node, strict=True)
        ]
        count, before = len({x for known in colours for x in known.values()}), count
    return [
        [_colour_item(item, known) for item in items]
        for items, known in zip(sides, colours, strict=True)
    ]


def _items_by_node(
    items: list[_Parts], fixed: frozenset[BlankNode]
) -> dict[BlankNode, list[_Parts]]:
    """Return for each new node the items that contain it."""
    by_node: dict[BlankNode, list[_Parts]] = {}
    for item in items:
        for node in {x for x in item if isinstance(x, BlankNode) and x not in fixed}:
            by_node.setdefault(node, []).append(item)
    return by_node


def _colour_item(
    item: _Parts, colours: dict[BlankNode, object], itself: BlankNode | None = None
) -> _Parts:
    return tuple("itself" if x == itself else colours.get(x, x) for x in item)


def _parts(item: Any) -> _Parts:
    """Return the terms, variables and times of an item as a flat tuple."""
    if isinstance(item, Occurrence):
        return (*_parts(item.item), item.start, item.end)
    if isinstance(item, Solution):
        return tuple(x for v in sorted(item, key=str) for x in (v, item[v]))
    return tuple(item) if isinstance(item, Triple) else (item,)
