"""How passes over deep trees stay within Python's stack.

There are three ways to go through a tree, and a pass takes the first that fits:

- `Node.fold` and `Node.walk` do not recurse, whatever the depth of the tree.
- `descend` goes from the top down, does not recurse either, and carries what holds at a place.
- A function that calls itself, inside `recursion_headroom`. It recurses where a query *nests*,
  which the parser limits (`lalr_parser.MAX_NESTING`), and loops where a query is only *long*: a
  chain of UNION, OPTIONAL or `+` is a tree as deep as the chain is long, on its left side.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from streamsparql.errors import EngineError

NodeT = TypeVar("NodeT")
StateT = TypeVar("StateT")

HEADROOM = 10_000
"""Python frames for a recursive pass: twenty for each of the 500 levels that a query may nest."""


def descend(
    root: NodeT, state: StateT, below: Callable[[NodeT, StateT], Sequence[tuple[NodeT, StateT]]]
) -> Iterator[tuple[NodeT, StateT]]:
    """Yield nodes with what holds at their place, parents first, in the order they are written.

    `below` returns the nodes to visit below a node, each with what holds there.

    >>> tree = {"a": ["b", "c"], "b": ["d"]}
    >>> list(descend("a", 0, lambda node, depth: [(n, depth + 1) for n in tree.get(node, [])]))
    [('a', 0), ('b', 1), ('d', 2), ('c', 1)]
    """
    pending = [(root, state)]
    while pending:
        node, known = pending.pop()
        yield node, known
        pending.extend(reversed(below(node, known)))


def _use_frames(count: int) -> None:
    if count:
        _use_frames(count - 1)


class _Limit:
    """Python's recursion limit, which is one for all threads, and who needs it to be higher.

    The first that needs it raises it, the last restores it, so that no thread lowers it while
    another one recurses.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before = 0
        self._raised = 0

    def enter(self) -> None:
        _use_frames(3)  # a caller right at the limit could raise it, but not restore it
        with self._lock:
            if self._users == 0:
                limit = sys.getrecursionlimit()
                if limit != self._raised:  # else the last user could not restore it
                    self._before = limit
                self._raised = self._before + HEADROOM
                sys.setrecursionlimit(self._raised)
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and sys.getrecursionlimit() == self._raised:
                try:
                    sys.setrecursionlimit(self._before)
                except RecursionError:  # the caller's own stack is deeper than that by now
                    return
                self._raised = 0


_LIMIT = _Limit()


@contextmanager
def recursion_headroom() -> Iterator[None]:
    """Let the passes inside recurse `HEADROOM` deeper than Python's recursion limit allows.

    It is safe as long as no level of the recursion passes through C, as in `any(f(x) for x in ..)`
    or in a generator that delegates to itself: then a level takes no space on the C stack, however
    small the thread's stack is. Write list comprehensions and loops instead. Trees that are not
    made from a query's text may nest deeper; they are refused with an `EngineError`.

    >>> def depth(n: int) -> int:
    ...     return 0 if n == 0 else 1 + depth(n - 1)
    >>> with recursion_headroom():
    ...     depth(5_000)
    5000
    """
    _LIMIT.enter()
    try:
        yield
    except RecursionError:
        raise EngineError("the plan nests too deep") from None
    finally:
        _LIMIT.leave()
