"""Frozen trees of nodes: the common base of plans, expressions and property paths.

A node class declares its fields like a dataclass. Nodes compare by value, never by identity. No
operation here recurses, so a tree may be as deep as the query that it represents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import Any, ClassVar, NoReturn, Self, TypeVar, dataclass_transform

from streamsparql.errors import escape_controls

_R = TypeVar("_R")
_N = TypeVar("_N", bound="Node")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
class Node:
    """The base of all nodes: values in named fields, among them other nodes and tuples of them.

    A subclass is a frozen dataclass. There are over a hundred of them, and compiling the methods of
    `dataclass` for each takes half of the time until a first query is compiled. So `dataclass` only
    collects the fields, and this class implements the methods.

    >>> class Pair(Node):
    ...     left: int
    ...     right: int = 2
    >>> Pair(1), Pair(1) == Pair(1, right=2)
    (Pair(left=1, right=2), True)
    """

    field_names: ClassVar[tuple[str, ...]] = ()
    _known: ClassVar[frozenset[str]] = frozenset()
    _defaults: ClassVar[dict[str, Any]] = {}
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Make a dataclass of each subclass."""
        kind: Any = dataclass(init=False, repr=False, eq=False)(cls)
        known = fields(kind)
        cls.field_names = tuple(field.name for field in known)
        cls._known = frozenset(cls.field_names)
        cls._defaults = {f.name: f.default for f in known if f.default is not MISSING}

    def __init__(self, *values: Any, **named: Any) -> None:
        own, names = self.__dict__, self.__match_args__
        own.update(self._defaults)
        own.update(zip(names, values, strict=False))
        own.update(named)
        twice = not named.keys().isdisjoint(names[: len(values)])
        if own.keys() != self._known or len(values) > len(names) or twice:
            by_name = [f"{name}=" for name in self.field_names if name not in names]
            raise TypeError(f"{type(self).__name__} takes {', '.join([*names, *by_name])}")
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check constraints between the fields."""

    def __setattr__(self, name: str, _: Any) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete {name}")

    def members(self) -> tuple[Any, ...]:
        """Return the values of the fields, in the order of their definition."""
        return tuple(self.__dict__[name] for name in self.field_names)

    def parts(self) -> tuple[Node, ...]:
        """Return the child nodes, in the order of the fields."""
        parts: list[Node] = []
        own = self.__dict__
        for name in self.field_names:
            value = own[name]
            if isinstance(value, Node):
                parts.append(value)
            elif isinstance(value, tuple):
                _collect_nodes(value, parts)
        return tuple(parts)

    def with_parts(self, parts: tuple[Node, ...]) -> Self:
        """Return a copy of the node with other children, in the order of `parts()`."""
        new = iter(parts)

        def swap(value: Any) -> Any:
            if isinstance(value, Node):
                return next(new)
            if isinstance(value, tuple) and value:
                swapped = [swap(item) for item in value]
                plain = type(value) is tuple
                return tuple(swapped) if plain else type(value)(*swapped)  # a NamedTuple
            return value

        return type(self)(**{name: swap(self.__dict__[name]) for name in self.field_names})

    def walk(self) -> Iterator[Node]:
        """Yield this node and all nodes below it, parents first, children in order.

        A node that occurs in several places is yielded for each of them.
        """
        pending: list[Node] = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed(node.parts()))

    def fold(self, function: Callable[[Node, list[_R]], _R], keep: str | None = None) -> _R:
        """Compute bottom up: call `function` on each node with the results for its parts.

        A shared part is computed once. With `keep`, the name of an attribute, the results are
        memoised in the nodes for the next fold.
        """
        if keep is not None and keep in self.__dict__:
            kept: _R = self.__dict__[keep]
            return kept
        done: dict[int, _R] = {}
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
        return escape_controls(self.fold(_representation))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields without memoised values: hashes differ between processes."""
        return _rebuild, (type(self), {name: self.__dict__[name] for name in self.field_names})


def _collect_nodes(values: tuple[Any, ...], nodes: list[Node]) -> None:
    for value in values:
        if isinstance(value, Node):
            nodes.append(value)
        elif isinstance(value, tuple):
            _collect_nodes(value, nodes)


def flatten(root: _N, operands: Callable[[_N], Iterable[_N] | None]) -> Iterator[_N]:
    """Yield the leaves below nested nodes of one kind, left to right.

    `operands` returns the operands of a node of that kind, and None for a leaf.

    >>> class Sum(Node):
    ...     terms: tuple[Node, ...] = ()
    >>> nest = Sum((Sum((Sum(), Sum())), Sum()))
    >>> len(list(flatten(nest, lambda node: node.terms or None)))
    3
    """
    pending = [root]
    while pending:
        node = pending.pop()
        below = operands(node)
        if below is None:
            yield node
        else:
            pending.extend(reversed(tuple(below)))


def _rebuild(kind: type[Node], values: dict[str, Any]) -> Node:
    return kind(**values)


def _hash(node: Node, _: list[int]) -> int:
    return hash((type(node).__name__, node.members()))  # the parts' hashes are memoised


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

    names = [name for name in node.field_names if name != "span"]
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
