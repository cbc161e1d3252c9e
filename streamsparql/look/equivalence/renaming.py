"""Snapshots that are the same but for what blank nodes are called that the plans made themselves.

CONSTRUCT and BNODE() make new nodes, and how they label them is nobody's business. So each new node
is described by the items that it is in, these by the descriptions of the others in them, and so on
while that tells more nodes apart. Snapshots whose items are then the same are equal as graphs.
(Nodes that no number of such rounds tells apart, as in two rings of three and one of six, would
pass for each other; plans do not make such rings.)
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


def same_but_for_names(
    one: Snapshot[Any], other: Snapshot[Any], known: Iterable[BlankNode] = (), ordered: bool = False
) -> bool:
    """Whether two snapshots have the same items; nodes that are `known` keep their names.

    >>> from streamsparql.algebra.solutions import Variable
    >>> one, other = (Snapshot.of([Solution({Variable("x"): BlankNode(n)})]) for n in "ab")
    >>> same_but_for_names(one, other), same_but_for_names(one, other, [BlankNode("a")])
    (True, False)
    """
    named = frozenset(known)
    sides = [[_parts(item) for item in snapshot] for snapshot in (one, other)]
    described, its = _described(sides, named)
    return described == its if ordered else Counter(described) == Counter(its)


def _described(sides: list[list[_Parts]], named: frozenset[BlankNode]) -> list[list[_Parts]]:
    """The items of both sides, new nodes by what they are in; as long as that tells more apart."""
    having = [_by_node(items, named) for items in sides]
    told: list[dict[BlankNode, object]] = [dict.fromkeys(nodes, "new") for nodes in having]
    apart, before = 1, 0
    while apart > before:
        told = [
            {
                node: hash(tuple(sorted(repr(_told(item, known, node)) for item in items)))
                for node, items in nodes.items()
            }
            for known, nodes in zip(told, having, strict=True)
        ]
        apart, before = len({x for known in told for x in known.values()}), apart
    return [
        [_told(item, known) for item in items] for items, known in zip(sides, told, strict=True)
    ]


def _by_node(items: list[_Parts], named: frozenset[BlankNode]) -> dict[BlankNode, list[_Parts]]:
    """Of each new node the items that it is in."""
    found: dict[BlankNode, list[_Parts]] = {}
    for item in items:
        for node in {x for x in item if isinstance(x, BlankNode) and x not in named}:
            found.setdefault(node, []).append(item)
    return found


def _told(item: _Parts, told: dict[BlankNode, object], itself: BlankNode | None = None) -> _Parts:
    return tuple("itself" if x == itself else told.get(x, x) for x in item)


def _parts(item: Any) -> _Parts:
    """What an item consists of, nodes by themselves."""
    if isinstance(item, Occurrence):
        return (*_parts(item.item), item.start, item.end)
    if isinstance(item, Solution):
        return tuple(x for v in sorted(item, key=str) for x in (v, item[v]))
    return tuple(item) if isinstance(item, Triple) else (item,)
