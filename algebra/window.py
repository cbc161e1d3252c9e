"""Windows: which elements of a stream hold at an instant (SEMANTICS.md section 3).

Every window is defined twice. Its *content* at an instant is the definition: a time window says
which stamps belong (`holds`), an element window which elements of the stream so far (`last`). Its
*validity* is the interval that an element gets when it arrives: a time window looks at nothing but
the stamp (`interval`), which makes it stateless, an element window at the element's rank (`ranks`).
Both work on single numbers and on arrays, and the engine computes with them. That content and
validity agree, `snapshot(validity(S), t) == content(S, t)`, is tested for every window, width and
instant.

A window also states what others need to know of it: how far it reaches, on which grid it jumps, how
much it holds. Nothing outside asks which class of windows it is, but for those that write one down.

*Live edge or stepped.* In a `SlidingDeltaWindow` an element is visible at once, when it comes, and
leaves when the left edge jumps. In a stepped window the content is frozen between steps: elements
and departures both wait for one.

    stamps   |  a     b c        d      |
    live     |--a=====b=c========d      |   range 10, slide 5: a, b, c leave together
    stepped  |-------[a b]------[..c d] |   range 10, step 10: seen from the next step on
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import field
from typing import Literal

from streamsparql.algebra.grid import Grid, Instants
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Solution, compatible
from streamsparql.algebra.streams import INFINITY, Element, Snapshot
from streamsparql.overriding import override

PhysicalStream = list[Element[Hashable]]


class Window(Plan, ABC):
    """The base of all windows. `name` is the slot's own name, where the query gives it one."""

    input: Plan
    name: str | None = field(default=None, kw_only=True)

    @abstractmethod
    def content(self, elements: PhysicalStream, t: int) -> PhysicalStream:
        """Return the elements of a stream that are in the window at the instant `t`."""

    @abstractmethod
    def validity(self, elements: PhysicalStream) -> PhysicalStream:
        """Return the elements with their intervals in the window; empty ones are left out."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """How long after its stamp an element may hold at most; 0 where elements are counted."""

    @property
    def grid(self) -> Grid | None:
        """The instants at which the content jumps; None where it follows the elements alone."""
        return None

    @property
    def live_edge(self) -> bool:
        """Whether an element is visible as soon as it arrives, not only at the next jump."""
        return True

    @property
    def misses_elements(self) -> bool:
        """Whether elements can pass by unseen: the window moves by more than it holds."""
        return False

    @abstractmethod
    def expected_size(self, rate: float, history: int) -> float:
        """Estimate how many elements the window holds.

        `rate` of them arrive per millisecond; a window without an end has seen `history`
        milliseconds.
        """

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

    @property
    @abstractmethod
    def length(self) -> int:
        """From how many milliseconds the window holds elements."""

    @abstractmethod
    def holds(self, t: int, stamp: int) -> bool:
        """Whether an element with this stamp is in the window at `t` (both counted from origin)."""

    @abstractmethod
    def interval(self, stamp: Instants) -> tuple[Instants, Instants]:
        """Return from when to when elements with these stamps are in the window.

        It is empty where the window misses them; the starts never fall as stamps grow.
        """

    @property
    @override
    def reach(self) -> int:
        return self.length

    @override
    def content(self, elements: PhysicalStream, t: int) -> PhysicalStream:
        return [e for e in elements if self.holds(t - self.origin, e.start - self.origin)]

    @override
    def validity(self, elements: PhysicalStream) -> PhysicalStream:
        made = (Element(item, *self.interval(stamp)) for item, stamp, _ in elements)
        return [element for element in made if element.start < element.end]

    @override
    def expected_size(self, rate: float, history: int) -> float:
        return rate * (history if self.length == INFINITY else self.length)


class SlidingDeltaWindow(TimeWindow):
    """Streaming SPARQL `WINDOW RANGE w SLIDE d`. ESWC 2008, Definition 3; section 3, R1, R15.

    omega_{w,d}(S, t) holds what is stamped in `[max(i*d - w, 0), t]`, where i is the one number
    with `(i - 1)*d <= t < i*d`. With `d = 1` the window slides with every instant.
    """

    width: int
    slide: int

    def __post_init__(self) -> None:
        assert 0 < self.slide <= self.width, "ESWC 2008, Definition 3: d <= w"

    @override
    def holds(self, t: int, stamp: int) -> bool:
        """Return whether it is in the window at `t` (ESWC 2008, Definition 3)."""
        w, d = self.width, self.slide
        i = t // d + 1
        return i * d - w <= stamp <= t

    @override
    def interval(self, stamp: Instants) -> tuple[Instants, Instants]:
        """Return ESWC 2008, Algorithm 2, corrected (R1).

        It prints `(stamp div d)*d + w`, which is right where d divides w.
        """
        return stamp, self.grid.floor(stamp, later=self.width)

    @property
    @override
    def grid(self) -> Grid:
        return Grid(self.slide, self.origin)

    @property
    @override
    def length(self) -> int:
        return self.width


class FixedWindow(TimeWindow):
    """Streaming SPARQL `WINDOW RANGE w FIXED`: ESWC 2008, Definition 3, with d = w. Section 3."""

    width: int

    def __post_init__(self) -> None:
        assert self.width > 0

    @override
    def holds(self, t: int, stamp: int) -> bool:
        return t // self.width * self.width <= stamp <= t

    @override
    def interval(self, stamp: Instants) -> tuple[Instants, Instants]:
        return stamp, self.grid.floor(stamp, later=self.width)

    @property
    @override
    def grid(self) -> Grid:
        return Grid(self.width, self.origin)

    @property
    @override
    def length(self) -> int:
        return self.width


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

    @override
    def holds(self, t: int, stamp: int) -> bool:
        if self.closed == "right":
            last = t // self.step * self.step
            return last - self.width < stamp <= last
        first_close = self.width % self.step
        last = (t - first_close) // self.step * self.step + first_close
        return last - self.width <= stamp < last

    @override
    def interval(self, stamp: Instants) -> tuple[Instants, Instants]:
        after = int(self.closed == "left")  # what is stamped c is not in [c - w, c)
        return self.grid.ceil(stamp, after), self.grid.ceil(stamp, after + self.width)

    @property
    @override
    def grid(self) -> Grid:
        first = 0 if self.closed == "right" else self.width % self.step
        return Grid(self.step, self.origin + first)

    @property
    @override
    def live_edge(self) -> bool:
        return False

    @property
    @override
    def misses_elements(self) -> bool:
        return self.step > self.width

    @property
    @override
    def length(self) -> int:
        return self.width

    @property
    @override
    def reach(self) -> int:
        return self.width + self.step


class NowWindow(TimeWindow):
    """CQELS `[NOW]`: an element holds at its own instant only. Section 3."""

    @override
    def holds(self, t: int, stamp: int) -> bool:
        return stamp == t

    @override
    def interval(self, stamp: Instants) -> tuple[Instants, Instants]:
        return stamp, stamp + 1

    @property
    @override
    def length(self) -> int:
        return 1


class UnboundedWindow(TimeWindow):
    """CQELS `[ALL]`: an element holds for ever. Section 3."""

    @override
    def holds(self, t: int, stamp: int) -> bool:
        return stamp <= t

    @override
    def interval(self, stamp: Instants) -> tuple[Instants, Instants]:
        return stamp, stamp * 0 + INFINITY

    @property
    @override
    def length(self) -> int:
        return INFINITY


class ElementWindow(Window):
    """A window that counts elements, in stream order (R2: ties keep the order they came in)."""

    count: int

    @abstractmethod
    def last(self, arrived: int) -> tuple[int, int]:
        """Return the ranks, from 0 and the end left out, in the window of `arrived` elements."""

    @abstractmethod
    def ranks(self, rank: Instants) -> tuple[Instants, Instants]:
        """Return the ranks of the elements that let elements of these ranks in and push them out.

        Both grow with the rank.
        """

    @property
    @abstractmethod
    def moves_by(self) -> int:
        """By how many elements the window moves at once."""

    @property
    def look_back(self) -> int:
        """How many elements before an instant the content at the instant may depend on."""
        return self.count + self.moves_by

    @override
    def content(self, elements: PhysicalStream, t: int) -> PhysicalStream:
        # ESWC 2008, Definition 4: the window depends on how many elements have arrived by t
        arrived = [element for element in elements if element.start <= t]
        start, end = self.last(len(arrived))
        return arrived[max(start, 0) : max(end, 0)]

    @override
    def validity(self, elements: PhysicalStream) -> PhysicalStream:
        def stamp(rank: int) -> int:
            return elements[rank].start if rank < len(elements) else INFINITY

        made = (Element(e.item, *map(stamp, self.ranks(k))) for k, e in enumerate(elements))
        return [element for element in made if element.start < element.end]

    @property
    @override
    def reach(self) -> int:
        return 0

    @property
    @override
    def live_edge(self) -> bool:
        return self.moves_by == 1

    @property
    @override
    def misses_elements(self) -> bool:
        return self.moves_by > self.count

    @override
    def expected_size(self, rate: float, history: int) -> float:
        return min(float(self.count), rate * history)


class SlidingTupleWindow(ElementWindow):
    """Streaming SPARQL `WINDOW ELEMS c`. ESWC 2008, Definition 5; section 3, R2.

    omega^count_c(S, t) holds the elements with `max(m(t) - c + 1, 0) <= m(stamp) <= m(t)`, where
    m(t) is the number of elements up to t (ESWC 2008, Definition 4): the last c.
    """

    def __post_init__(self) -> None:
        assert self.count > 0

    @override
    def last(self, arrived: int) -> tuple[int, int]:
        """Return the ranks of the last c elements (ESWC 2008, Definition 5)."""
        return arrived - self.count, arrived

    @override
    def ranks(self, rank: Instants) -> tuple[Instants, Instants]:
        return rank, rank + self.count

    @property
    @override
    def moves_by(self) -> int:
        return 1

    @property
    @override
    def look_back(self) -> int:
        return self.count


class SteppedTupleWindow(ElementWindow):
    """C-SPARQL `[RANGE TRIPLES n STEP m]`: the last n, refreshed by every m-th. Section 3."""

    step: int

    def __post_init__(self) -> None:
        assert min(self.count, self.step) > 0

    @override
    def last(self, arrived: int) -> tuple[int, int]:
        seen = arrived // self.step * self.step
        return seen - self.count, seen

    @override
    def ranks(self, rank: Instants) -> tuple[Instants, Instants]:
        refreshing = Grid(self.step, self.step - 1)
        return refreshing.ceil(rank), refreshing.ceil(rank, later=self.count)

    @property
    @override
    def moves_by(self) -> int:
        return self.step
