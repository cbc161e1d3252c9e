"""Recursion without a stack: a function that would call itself yields the call instead.

A query of 5,000 nested groups is legal, and Python's call stack is not that deep. So passes over
the syntax tree are written as generators: `result = yield self.group(inner)` stands for the
recursive call, and `run` keeps the waiting generators in a list.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

R = TypeVar("R")
Steps = Generator[Any, Any, R]
"""A computation that yields the computations that it needs, and returns an `R`."""


def run(steps: Steps[R]) -> R:
    """Runs a computation to its end.

    >>> def depth(n: int) -> Steps[int]:
    ...     return 0 if n == 0 else 1 + (yield depth(n - 1))
    >>> run(depth(100_000))
    100000
    """
    waiting: list[Steps[Any]] = [steps]
    result: Any = None
    while waiting:
        try:
            needed = waiting[-1].send(result)
        except StopIteration as end:
            waiting.pop()
            result = end.value
        else:
            waiting.append(needed)
            result = None
    value: R = result
    return value
