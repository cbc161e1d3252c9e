"""Windows: the elements of a stream that hold at an instant (SEMANTICS.md section 3).

Every window is defined twice. Its *content* at an instant is the definition: a time window selects
elements by timestamp (`holds`), an element window by rank among the elements so far (`last`). Its
*validity* is the interval assigned to an element: a time window computes it from the timestamp
alone (`interval`) and is stateless, an element window from the element's rank (`ranks`). `interval`
and `ranks` accept single numbers and arrays; the engine uses them too. Tests check that both
definitions agree at every instant: `snapshot(validity(S), t) == content(S, t)`.

A window also states its properties: its reach, the grid on which it jumps, the expected size of its
content. So cost estimates, partitioning, report alignment and the engine do not depend on its
class; only code that displays or writes a window does.

*Live edge or stepped.* In a `SlidingDeltaWindow` an element is visible as soon as it arrives, and
expires when the left edge jumps. In a stepped window the content is frozen between steps: elements
enter and expire at steps only.

    stamps   |  a     b c        d      |
    live     |--a=====b=c========d      |   range 10, slide 5: a, b, c expire together
    stepped  |-------[a b]------[..c d] |   range 10, step 10: visible from the next step on
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
    """The base of all windows; `name` is the name that a query may assign to a window."""

    family = "window"

    input: Plan
    name: str | None = field(default=None, kw_only=True)

    @abstractmethod
    def content(self, elements: PhysicalStream, t: int) -> PhysicalStream:
        """Return the elements in the window at the instant `t`."""

    @abstractmethod
    def validity(self, elements: PhysicalStream) -> PhysicalStream:
        """Return the elements with their intervals in the window, without empty intervals."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """The longest time that an element holds after its timestamp; 0 if elements are counted."""

    @property
    def grid(self) -> Grid | None:
        """The instants at which the content jumps; None if it changes with the elements only."""
        return None

    @property
    def live_edge(self) -> bool:
        """Whether an element is visible as soon as it arrives, rather than at the next jump."""
        return True

    @property
    def misses_elements(self) -> bool:
        """Whether some elements are never visible: the window moves by more than its size."""
        return False

    @abstractmethod
    def expected_size(self, rate: float, history: int) -> float:
        """Estimate the number of elements in the window.

        `rate` elements arrive per millisecond; an unbounded window covers `history` milliseconds.
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
    """A window that depends on timestamps only; its grid is anchored at `origin`."""

    origin: int = field(default=0, kw_only=True)

    @property
    @abstractmethod
    def length(self) -> int:
        """The width of the window in milliseconds."""

    @abstractmethod
    def holds(self, t: int, stamp: int) -> bool:
        """Return whether an element with this stamp is in the window at `t`.

        Both are relative to `origin`.
        """

    @abstractmethod
    def interval(self, stamp: Instants) -> tuple[Instants, Instants]:
        """Return the start and end of the validity of elements with these stamps.

        It is empty for elements that the window misses. Starts are monotonic in the stamps.
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
        valid = (Element(item, *self.interval(stamp)) for item, stamp, _ in elements)
        return [element for element in valid if element.start < element.end]

    @override
    def expected_size(self, rate: float, history: int) -> float:
        return rate * (history if self.length == INFINITY else self.length)


class SlidingDeltaWindow(TimeWindow):
    """Streaming SPARQL `WINDOW RANGE w SLIDE d`. Section 3, R1, R15; ESWC 2008, Definition 3.

    omega_{w,d}(S, t) contains the elements stamped in `[max(i*d - w, 0), t]`, where i is the
    integer with `(i - 1)*d <= t < i*d`. With `d = 1` the window slides at every instant.
    """

    width: int
    slide: int

    def __post_init__(self) -> None:
        assert 0 < self.slide <= self.width, "Definition 3: d <= w, else elements are missed"

    @override
    def holds(self, t: int, stamp: int) -> bool:
        """Apply ESWC 2008, Definition 3."""
        w, d = self.width, self.slide
        i = t // d + 1
        return i * d - w <= stamp <= t

    @override
    def interval(self, stamp: Instants) -> tuple[Instants, Instants]:
        """Apply ESWC 2008, Algorithm 2, corrected by R1.

        The paper prints `(stamp div d)*d + w`, which is right only if d divides w.
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
    """A window whose content changes at steps only. Section 3, R3, R4.

    `closed="right"`, C-SPARQL `[RANGE w STEP d]`: from the step `tf` on, its content is
    `tf - w < stamp <= tf`. `closed="left"`, RSP-QL: windows are `[o, o + w)` with `o = k*d`; from
    its close `c = o + w` until the next close, the content is `c - w <= stamp < c`.
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
        after = int(self.closed == "left")  # [c - w, c) excludes the stamp c
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
    """CQELS `[ALL]`: an element never expires. Section 3."""

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
    """A window that counts elements, in stream order (R2: ties keep the order of arrival)."""

    count: int

    @abstractmethod
    def last(self, arrived: int) -> tuple[int, int]:
        """Return the first and end rank in the window after `arrived` elements, from 0."""

    @abstractmethod
    def ranks(self, rank: Instants) -> tuple[Instants, Instants]:
        """Return the ranks of the elements at which elements of these ranks enter and expire.

        Both are monotonic in the rank.
        """

    @property
    @abstractmethod
    def moves_by(self) -> int:
        """The number of elements by which the window moves."""

    @property
    def look_back(self) -> int:
        """The number of elements before an instant on which the content there may depend."""
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

        valid = (Element(e.item, *map(stamp, self.ranks(k))) for k, e in enumerate(elements))
        return [element for element in valid if element.start < element.end]

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
    """Streaming SPARQL `WINDOW ELEMS c`. Section 3, R2; ESWC 2008, Definition 4 and Definition 5.

    omega^count_c(S, t) contains the elements with `max(m(t) - c + 1, 0) <= m(stamp) <= m(t)`, the
    last c, where m(t) is the number of elements up to t.
    """

    def __post_init__(self) -> None:
        assert self.count > 0

    @override
    def last(self, arrived: int) -> tuple[int, int]:
        """Apply ESWC 2008, Definition 5."""
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
    """C-SPARQL `[RANGE TRIPLES n STEP m]`: the last n, as of the last m-th. Section 3.

    The content is refreshed when the number of elements so far is a multiple of m.
    """

    step: int

    def __post_init__(self) -> None:
        assert min(self.count, self.step) > 0

    @override
    def last(self, arrived: int) -> tuple[int, int]:
        visible = arrived // self.step * self.step
        return visible - self.count, visible

    @override
    def ranks(self, rank: Instants) -> tuple[Instants, Instants]:
        refreshing = Grid(self.step, self.step - 1)
        return refreshing.ceil(rank), refreshing.ceil(rank, later=self.count)

    @property
    @override
    def moves_by(self) -> int:
        return self.step
