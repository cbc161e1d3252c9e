"""Windows: which elements of a stream hold at an instant (SEMANTICS.md section 3).

Every window here is given twice. Its *content* at an instant is the definition: a time window says
which stamps belong (`holds`), an element window which elements of the stream so far (`last`). Its
*validity* is the interval that an element gets when it comes: time windows look at nothing but the
stamp, which makes them stateless, element windows at the element's rank. That the two agree,
`snapshot(validity(S), t) == content(S, t)`, is tested for every window, width and instant.

*Live edge or stepped.* In a `SlidingDeltaWindow` an element is visible at once, when it comes, and
leaves when the left edge jumps. In a stepped window the content is frozen between steps: elements
and departures both wait for one.

    stamps   |  a     b c        d      |
    live     |--a=====b=c========d      |   range 10, slide 5: a, b, c leave together
    stepped  |-------[a b]------[..c d] |   range 10, step 10: seen from the next step on
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import field
from typing import Literal

from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Solution, compatible
from streamsparql.algebra.streams import INFINITY, Element, Snapshot
from streamsparql.overriding import override

Elements = list[Element[Hashable]]


def floor(x: int, d: int) -> int:
    """The greatest multiple of `d` that is not above `x`.

    >>> floor(17, 5), floor(-1, 5)
    (15, -5)
    """
    return x // d * d


def ceil(x: int, d: int) -> int:
    """The least multiple of `d` that is not below `x`.

    >>> ceil(17, 5), ceil(15, 5)
    (20, 15)
    """
    return -(-x // d) * d


class Window(Plan, ABC):
    """The base of all windows. `name` is the slot's own name, where the query gives it one."""

    input: Plan
    name: str | None = field(default=None, kw_only=True)

    @abstractmethod
    def content(self, elements: Elements, t: int) -> Elements:
        """The elements of a stream that are in the window at the instant `t`."""

    @abstractmethod
    def validity(self, elements: Elements) -> Elements:
        """The stream with the intervals that the window gives; empty ones are dropped."""

    @override
    def at(self, t: int, inputs: Inputs) -> Snapshot[Hashable]:
        elements = self.input.elements(inputs.without(*inputs.outer))
        return Snapshot.of(
            item
            for item, *_ in self.content(elements, t)
            if not isinstance(item, Solution) or compatible(item, inputs.outer)
        )


class TimeWindow(Window):
    """A window that looks at stamps only. Grids are anchored at `origin`."""

    origin: int = field(default=0, kw_only=True)

    @abstractmethod
    def holds(self, t: int, stamp: int) -> bool:
        """Whether an element with this stamp is in the window at `t` (both counted from origin)."""

    @abstractmethod
    def interval(self, stamp: int) -> tuple[int, int]:
        """When an element with this stamp is in the window (all counted from origin)."""

    @override
    def content(self, elements: Elements, t: int) -> Elements:
        return [e for e in elements if self.holds(t - self.origin, e.start - self.origin)]

    @override
    def validity(self, elements: Elements) -> Elements:
        made: Elements = []
        for item, stamp, _ in elements:
            start, end = self.interval(stamp - self.origin)
            end = INFINITY if end == INFINITY else end + self.origin
            made.append(Element(item, start + self.origin, end))
        return [element for element in made if element.start < element.end]


class SlidingDeltaWindow(TimeWindow):
    """Streaming SPARQL `WINDOW RANGE w SLIDE d`. Definition 3; SEMANTICS.md section 3, R1, R15.

    omega_{w,d}(S, t) holds what is stamped in `[max(i*d - w, 0), t]`, where i is the one number
    with `(i - 1)*d <= t < i*d`. With `d = 1` the window slides with every instant.
    """

    width: int
    slide: int

    def __post_init__(self) -> None:
        assert 0 < self.slide <= self.width, "Definition 3: d <= w, else elements would be missed"

    @override
    def holds(self, t: int, stamp: int) -> bool:
        """Definition 3."""
        w, d = self.width, self.slide
        i = t // d + 1
        return i * d - w <= stamp <= t

    @override
    def interval(self, stamp: int) -> tuple[int, int]:
        """Algorithm 2, corrected (R1): it prints `(stamp div d)*d + w`, right where d divides w."""
        return stamp, floor(stamp + self.width, self.slide)


class FixedWindow(TimeWindow):
    """Streaming SPARQL `WINDOW RANGE w FIXED`: a sliding delta window with d = w. Section 3."""

    width: int

    def __post_init__(self) -> None:
        assert self.width > 0

    @override
    def holds(self, t: int, stamp: int) -> bool:
        return floor(t, self.width) <= stamp <= t

    @override
    def interval(self, stamp: int) -> tuple[int, int]:
        return stamp, floor(stamp, self.width) + self.width


class SteppedWindow(TimeWindow):
    """A window that is refreshed at steps and frozen between them. Section 3, R3, R4.

    `closed="right"`, C-SPARQL `[RANGE w STEP d]`: at the step `tf` it holds `tf - w < stamp <= tf`.
    `closed="left"`, RSP-QL: windows are `[o, o + w)` with `o = k*d`; at its close `c = o + w` one
    holds `c - w <= stamp < c`, and stands until the next close.
    """

    width: int
    step: int
    closed: Literal["left", "right"]

    def __post_init__(self) -> None:
        assert min(self.width, self.step) > 0

    @property
    def _phase(self) -> int:
        """Where the grid of the instants lies at which the content changes."""
        return self.width % self.step if self.closed == "left" else 0

    @override
    def holds(self, t: int, stamp: int) -> bool:
        last = floor(t - self._phase, self.step) + self._phase
        if self.closed == "right":
            return last - self.width < stamp <= last
        return last - self.width <= stamp < last

    @override
    def interval(self, stamp: int) -> tuple[int, int]:
        d, w, phase = self.step, self.width, self._phase
        if self.closed == "right":
            return ceil(stamp, d), ceil(stamp + w, d)
        first = ceil(stamp + 1 - phase, d) + phase
        last = floor(stamp + w - phase, d) + phase
        return first, last + d


class NowWindow(TimeWindow):
    """CQELS `[NOW]`: an element holds at its own instant only. Section 3."""

    @override
    def holds(self, t: int, stamp: int) -> bool:
        return stamp == t

    @override
    def interval(self, stamp: int) -> tuple[int, int]:
        return stamp, stamp + 1


class UnboundedWindow(TimeWindow):
    """CQELS `[ALL]`: an element holds for ever. Section 3."""

    @override
    def holds(self, t: int, stamp: int) -> bool:
        return stamp <= t

    @override
    def interval(self, stamp: int) -> tuple[int, int]:
        return stamp, INFINITY


class ElementWindow(Window):
    """A window that counts elements, in stream order (R2: ties keep the order they came in)."""

    count: int

    @abstractmethod
    def last(self, arrived: int) -> tuple[int, int]:
        """The ranks, from 0 and the end left out, in the window once `arrived` elements came."""

    @override
    def content(self, elements: Elements, t: int) -> Elements:
        arrived = [element for element in elements if element.start <= t]
        start, end = self.last(len(arrived))
        return arrived[max(start, 0) : max(end, 0)]


class SlidingTupleWindow(ElementWindow):
    """Streaming SPARQL `WINDOW ELEMS c`. Definitions 4 and 5; SEMANTICS.md section 3, R2.

    omega^count_c(S, t) holds the elements with `max(m(t) - c + 1, 0) <= m(stamp) <= m(t)`, where
    m(t) is the number of elements up to t: the last c.
    """

    def __post_init__(self) -> None:
        assert self.count > 0

    @override
    def last(self, arrived: int) -> tuple[int, int]:
        """Definition 5."""
        return arrived - self.count, arrived

    @override
    def validity(self, elements: Elements) -> Elements:
        return _until(elements, lambda k: (k, k + self.count))


class SteppedTupleWindow(ElementWindow):
    """C-SPARQL `[RANGE TRIPLES n STEP m]`: the last n, refreshed by every m-th. Section 3."""

    step: int

    def __post_init__(self) -> None:
        assert min(self.count, self.step) > 0

    @override
    def last(self, arrived: int) -> tuple[int, int]:
        seen = floor(arrived, self.step)
        return seen - self.count, seen

    @override
    def validity(self, elements: Elements) -> Elements:
        m, n = self.step, self.count
        return _until(elements, lambda k: (ceil(k + 1, m) - 1, ceil(k + 1 + n, m) - 1))


def _until(elements: Elements, ranks: Callable[[int], tuple[int, int]]) -> Elements:
    """Each element from the stamp of one rank to that of another, INFINITY where it never comes."""

    def stamp(rank: int) -> int:
        return elements[rank].start if rank < len(elements) else INFINITY

    made = [
        Element(e.item, stamp(first), stamp(after))
        for k, e in enumerate(elements)
        for first, after in [ranks(k)]
    ]
    return [element for element in made if element.start < element.end]
