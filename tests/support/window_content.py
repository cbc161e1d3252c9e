"""The content of windows, computed from the text of their clauses, independently of the product."""

from __future__ import annotations

import re
from collections.abc import Callable

Stamps = list[int]
Content = Callable[[Stamps, int], list[int]]
"""A function from the timestamps of a stream and an instant to the positions in the window."""


def content(clause: str, dialect: str) -> Content:
    """Return the content of a window clause, as SEMANTICS.md section 3 defines it."""
    numbers = [int(n) for n in re.findall(r"\d+", clause)] or [0]
    width, step = numbers[0], numbers[-1]

    def last(arrived: int, t: int) -> list[int]:
        return list(range(max(arrived - width, 0), arrived))

    def of(test: Callable[[int, int], bool]) -> Content:
        return lambda stamps, t: [k for k, stamp in enumerate(stamps) if test(stamp, t)]

    if "ELEMS" in clause or "TRIPLES" in clause:
        every = numbers[1] if len(numbers) > 1 else 1
        return lambda stamps, t: last(sum(s <= t for s in stamps) // every * every, t)
    if "NOW" in clause:
        return of(lambda s, t: s == t)
    if "ALL" in clause:
        return of(lambda s, t: s <= t)
    if "SLIDE" in clause or "FIXED" in clause or dialect == "cqels":
        d = step if len(numbers) > 1 else width if re.search("FIXED|TUMBLING", clause) else 1
        return of(lambda s, t: (t // d + 1) * d - width <= s <= t)
    d = width if "TUMBLING" in clause else step
    if dialect == "csparql":
        return of(lambda s, t: t // d * d - width < s <= t // d * d)
    # RSP-QL: the window that closed last
    return of(lambda s, t: (c := (t - width) // d * d + width) - width <= s < c)
