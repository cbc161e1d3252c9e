"""What plans, expressions and property paths have in common: frozen trees of nodes.

A node is a frozen dataclass. Nodes compare by what they are made of, never by identity, and no
operation here recurses, so that a tree may be as deep as the query that it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """The base of all nodes: values in named fields, among them other nodes and tuples of them."""

    def members(self) -> tuple[Any, ...]:
        """The values of the fields, in the order of their definition."""
        return tuple(self.__dict__[name] for name in _field_names(type(self)))

    def parts(self) -> tuple[Node, ...]:
        """The nodes directly inside this one, in the order of the fields."""
        found: list[Node] = []
        pending = list(reversed(self.members()))
        while pending:
            value = pending.pop()
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, tuple):
                pending.extend(reversed(value))
        return tuple(found)

    def with_parts(self, parts: tuple[Node, ...]) -> Self:
        """The same node around other parts, given in the order of `parts()`."""
        new = iter(parts)

        def swap(value: Any) -> Any:
            if isinstance(value, Node):
                return next(new)
            if isinstance(value, tuple) and value:
                swapped = [swap(item) for item in value]
                plain = type(value) is tuple
                return tuple(swapped) if plain else type(value)(*swapped)  # a NamedTuple
            return value

        return type(self)(**{name: swap(self.__dict__[name]) for name in _field_names(type(self))})

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first, in the order they are written."""
        pending: list[Node] = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed(node.parts()))

    def fold(self, function: Callable[[Node, list[R]], R], keep: str | None = None) -> R:
        """Bottom up: `function` gets each node with the results for its parts.

        A part that stands in several places is worked out once; with `keep`, the name of an
        attribute, the results stay with the nodes and serve the next fold too.
        """
        if keep is not None and keep in self.__dict__:
            kept: R = self.__dict__[keep]
            return kept
        done: dict[int, R] = {}
        pending: list[tuple[Node, bool]] = [(self, False)]
        while pending:
            node, ready = pending.pop()
            if id(node) in done:
                continue
            if keep is not None and keep in node.__dict__:
                done[id(node)] = node.__dict__[keep]
                continue
            parts = node.parts()
            if ready or not parts:
                done[id(node)] = function(node, [done[id(part)] for part in parts])
                if keep is not None:
                    object.__setattr__(node, keep, done[id(node)])
            else:
                pending.append((node, True))
                pending.extend((part, False) for part in reversed(parts))
        return done[id(self)]

    def __hash__(self) -> int:
        return self.fold(_hash, keep="_hash")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and (self is other or _equal(self, other))

    def __repr__(self) -> str:
        return self.fold(_representation)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the fields, not what was kept (another process hashes otherwise)."""
        return {name: self.__dict__[name] for name in _field_names(type(self))}


def _field_names(kind: Any) -> tuple[str, ...]:
    """The names of a node class's fields, in the order of their definition."""
    names = _NAMES.get(kind)
    if names is None:
        names = _NAMES[kind] = tuple(field.name for field in fields(kind))
    return names


_NAMES: dict[type[Any], tuple[str, ...]] = {}


def _hash(node: Node, _: list[int]) -> int:
    return hash((type(node).__name__, node.members()))  # the parts' hashes are kept by now


def _representation(node: Node, parts: list[str]) -> str:
    if type(node).__repr__ is not Node.__repr__:
        return repr(node)
    texts = iter(parts)

    def show(value: Any) -> str:
        if isinstance(value, Node):
            return next(texts)
        if isinstance(value, tuple):
            items = ", ".join(show(item) for item in value)
            name = "" if type(value) is tuple else type(value).__name__
            return f"{name}({items}{',' if len(value) == 1 else ''})"
        return repr(value) if isinstance(value, str | int | None) else str(value)

    names = [name for name in _field_names(type(node)) if name != "span"]
    fields = (f"{name}={show(node.__dict__[name])}" for name in names)
    return f"{type(node).__name__}({', '.join(fields)})"


def _equal(one: Node, other: Node) -> bool:
    pending: list[tuple[Any, Any]] = [(one, other)]
    seen: set[tuple[int, int]] = set()
    while pending:
        a, b = pending.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        if type(a) is not type(b):
            return False
        if isinstance(a, Node):
            if hash(a) != hash(b):
                return False
            seen.add((id(a), id(b)))
            pending.extend(zip(a.members(), b.members(), strict=True))
        elif isinstance(a, tuple):
            if len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif a != b:
            return False
    return True
