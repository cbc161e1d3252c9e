"""Traversal of deep trees within Python's stack.

There are three ways to traverse a tree; a pass uses the first that fits:

- `Node.fold` and `Node.walk` do not recurse, whatever the depth of the tree.
- `descend` traverses top down, does not recurse either, and passes state from parent to child.
- A recursive function inside `recursion_headroom`. It recurses where a query *nests*, which the
  parser limits (`lalr_parser.MAX_NESTING`), and loops where a query is only *long*: a chain of
  UNION, OPTIONAL or `+` is a left-deep tree as deep as the chain is long.
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
"""Python frames for a recursive pass: twenty for each of the 500 nesting levels of a query."""


def descend(
    root: NodeT, state: StateT, below: Callable[[NodeT, StateT], Sequence[tuple[NodeT, StateT]]]
) -> Iterator[tuple[NodeT, StateT]]:
    """Yield nodes with the state of their place, parents first, children in order.

    `below` returns the nodes to visit below a node, each with its state.

    >>> tree = {"a": ["b", "c"], "b": ["d"]}
    >>> list(descend("a", 0, lambda node, depth: [(n, depth + 1) for n in tree.get(node, [])]))
    [('a', 0), ('b', 1), ('d', 2), ('c', 1)]
    """
    pending = [(root, state)]
    while pending:
        node, here = pending.pop()
        yield node, here
        pending.extend(reversed(below(node, here)))


def _use_frames(count: int) -> None:
    if count:
        _use_frames(count - 1)


class _RecursionLimit:
    """Python's recursion limit, which all threads share, and the number of its users.

    The first user raises it and the last one restores it, so that no thread lowers it while another
    one recurses.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before = 0
        self._raised = 0

    def enter(self) -> None:
        _use_frames(3)  # fail here: a caller at the limit could raise it, but not restore it
        with self._lock:
            if self._users == 0:
                limit = sys.getrecursionlimit()
                if limit != self._raised:  # else the last user failed to restore it
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
                except RecursionError:  # the caller's own stack is deeper than the old limit
                    return
                self._raised = 0


_LIMIT = _RecursionLimit()


@contextmanager
def recursion_headroom() -> Iterator[None]:
    """Allow the passes inside to recurse `HEADROOM` frames deeper than Python's limit.

    This is safe if no level of the recursion passes through C: a level then uses no space on the
    thread's C stack. `any(f(x) for x in ..)` and generators that delegate to themselves do pass
    through C; write list comprehensions and loops instead. Trees that do not originate from a
    query's text may nest deeper; for them an `EngineError` is raised.

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
        raise EngineError("the plan nests too deeply") from None
    finally:
        _LIMIT.leave()
