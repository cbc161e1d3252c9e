"""Report alignment: where only reports are wanted, nothing changes between two of them.

Reports are at the instants of a grid, `origin + k*period` (SEMANTICS.md section 6). What is true
between two reports is seen by nobody, so intervals may be moved to the grid above the windows and
below all other snapshot operators: what happens between two reports then happens at once, and is
worked out once. What is reported stays the same, since all that is above is snapshot-reducible.

Which snapshot a report shows depends on the windows. A stepped window changes at the instant `r`,
so the report is `snapshot(r)`. A live-edge window jumps at `r`, so the report closes the period
before: it is `snapshot(r - 1)` (R15). A plan that has both kinds, or none that moves on a grid, has
no one answer: it is reported at each change, and nothing is aligned.
"""

from __future__ import annotations

from typing import Any

from streamsparql.algebra.event import Detect
from streamsparql.algebra.grid import Grid, Instants
from streamsparql.algebra.group import Aggregation
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import Distinct, Number, Projection, Slice
from streamsparql.algebra.streams import INFINITY, Snapshot
from streamsparql.algebra.window import Window
from streamsparql.overriding import override


class Align(Plan):
    """Its input as it was at the last grid point, or just before it. Section 6.

    With `g` the last grid point that is not after `t`: the input at `g`, or, where reports close
    the period before (`closing`), the input at `g - 1`. `consolidate` changes nothing: it says that
    columns are dropped between here and an Aggregation, so that many rows will be equal, and are
    worth being counted.
    """

    input: Plan
    period: int
    origin: int = 0
    closing: bool = False
    consolidate: bool = False

    def __post_init__(self) -> None:
        assert self.period > 0

    @override
    def at(self, t: int, inputs: Inputs) -> Snapshot[Any]:
        shown = (t - self.origin) // self.period * self.period + self.origin - self.closing
        return self.input.at(shown, inputs) if shown >= 0 else Snapshot()

    def interval(self, start: int, end: int) -> tuple[int, int]:
        """Return what becomes of an interval: the grid points in it; empty if there are none.

        >>> from streamsparql.algebra.shape import UNIT
        >>> Align(UNIT, 10).interval(3, 21), Align(UNIT, 10, closing=True).interval(3, 20)
        ((10, 30), (10, 30))
        """
        return self.grid_point(start), INFINITY if end == INFINITY else self.grid_point(end)

    def grid_point(self, t: Instants) -> Instants:
        """Return the first grid point that shows what changes at an instant."""
        return Grid(self.period, self.origin).ceil(t, later=int(self.closing))


def align(plan: Plan, period: int, origin: int = 0, closing: bool = False) -> Plan:
    """The plan with an `Align` right above each window, and above each Detect.

    Static sources need none: they do not change. Its snapshot at a grid point `r` is the plan's at
    `r`, or at `r - 1` where reports close the period before.

    >>> from streamsparql.algebra.rules.sketch import sketch, streamed
    >>> print(sketch(align(streamed("?x p ?y").input, 5)))
    Align(SlidingDeltaWindow(AccessStream(<s>), 10, 1), 5)
    """
    grid = (period, origin, closing)
    made: dict[tuple[int, int], Plan] = {}
    pending: list[tuple[Plan, int, bool]] = [(plan, _KEPT, False)]
    while pending:
        node, fate, ready = pending.pop()
        if (id(node), fate) in made:
            continue
        if isinstance(node, Window | Detect):
            made[id(node), fate] = Align(node, *grid, fate == _NARROWED)
            continue
        its_fate = _fate(node, fate)
        if ready:
            inputs = [made[id(one), its_fate] for one in node.inputs]
            same = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
            made[id(node), fate] = node if same else node.with_inputs(*inputs)
        else:
            pending.append((node, fate, True))
            pending.extend((one, its_fate, False) for one in node.inputs)
    return made[id(plan), _KEPT]


_KEPT, _COUNTED, _NARROWED = range(3)


def _fate(plan: Plan, fate: int) -> int:
    """What becomes of rows below an operator: are they aggregated, and do they lose columns?"""
    if isinstance(plan, Aggregation):
        return _COUNTED
    if isinstance(plan, Distinct | Number | Slice):
        return _KEPT
    if isinstance(plan, Projection) and fate == _COUNTED:
        narrower = len(plan.variables) < len(scope(plan.input).possible)
        return _NARROWED if narrower else fate
    return fate


def closes_periods(plan: Plan) -> bool | None:
    """Whether a report at `r` closes the period before it: then it shows `snapshot(r - 1)`.

    True where the windows have a live edge, False where they are stepped. None where a plan has
    both, or no window that moves on a grid: then each change is reported. Windows that count
    elements, `[NOW]` and `[ALL]` go along with the others.

    >>> from streamsparql.algebra.access import AccessStream
    >>> from streamsparql.algebra.terms import IRI
    >>> from streamsparql.algebra.window import FixedWindow, SteppedWindow
    >>> stream = AccessStream(IRI("s"))
    >>> live, stepped = FixedWindow(stream, 5), SteppedWindow(stream, 5, 5, "right")
    >>> closes_periods(live), closes_periods(stepped), closes_periods(stream)
    (True, False, None)
    """
    jumping = (one for one in plan.operators() if isinstance(one, Window) and one.grid is not None)
    edges = {window.live_edge for window in jumping}
    return edges.pop() if len(edges) == 1 else None
