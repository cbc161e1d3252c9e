"""Report alignment: validities snap to the report grid when a query is read by reports only.

Report instants form a grid, `origin + k*period` (SEMANTICS.md section 6). No report shows the
changes between two of them, so the validities of window output can move to the grid: all changes
of a period then fall on one instant, and the operators above process them once. The reports stay
the same because all operators above the windows are snapshot-reducible.

The snapshot that a report shows depends on the windows. A stepped window changes at the instant
`r`, so the report is `snapshot(r)`. A live-edge window jumps at `r`, so the report closes the
period before: it is `snapshot(r - 1)` (R15). A plan with both kinds, or without a window that moves
on a grid, reports each change; if a caller requests a period, reports are `snapshot(r)`.
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
    """The input's snapshot at the last grid point, or just before it. Section 6.

    With `g` the last grid point that is not after `t`: the input at `g`, or, where reports close
    the period before (`closing`), the input at `g - 1`. `consolidate` is a hint to the engine
    without an effect on results: a projection above removes columns before an aggregation, which
    makes rows equal, and counting equal rows pays off.
    """

    family = "align"

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
        """Return an interval snapped to the grid; it is empty if no grid point shows it.

        >>> from streamsparql.algebra.shape import UNIT
        >>> Align(UNIT, 10).interval(3, 21), Align(UNIT, 10, closing=True).interval(3, 20)
        ((10, 30), (10, 30))
        """
        return self.grid_point(start), INFINITY if end == INFINITY else self.grid_point(end)

    def grid_point(self, t: Instants) -> Instants:
        """Return the first grid point that shows what changes at an instant."""
        return Grid(self.period, self.origin).ceil(t, later=int(self.closing))


def align(plan: Plan, period: int, origin: int = 0, closing: bool = False) -> Plan:
    """Insert an `Align` right above each window and each Detect.

    Static sources do not change and need none. At a grid point `r`, the result has the plan's
    snapshot at `r`, or at `r - 1` where reports close the period before (`closing`).

    >>> from streamsparql.algebra.rules.sketch import sketch, streamed
    >>> print(sketch(align(streamed("?x p ?y").input, 5)))
    Align(SlidingDeltaWindow(AccessStream(<s>), 10, 1), 5)
    """
    grid = (period, origin, closing)
    aligned: dict[tuple[int, int], Plan] = {}
    pending: list[tuple[Plan, int, bool]] = [(plan, _KEPT, False)]
    while pending:
        node, fate, ready = pending.pop()
        if (id(node), fate) in aligned:
            continue
        if isinstance(node, Window | Detect):
            aligned[id(node), fate] = Align(node, *grid, fate == _NARROWED)
            continue
        fate_below = _fate(node, fate)
        if ready:
            inputs = [aligned[id(child), fate_below] for child in node.inputs]
            same = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
            aligned[id(node), fate] = node if same else node.with_inputs(*inputs)
        else:
            pending.append((node, fate, True))
            pending.extend((child, fate_below, False) for child in node.inputs)
    return aligned[id(plan), _KEPT]


_KEPT, _COUNTED, _NARROWED = range(3)
"""What happens to rows above: nothing, they are aggregated, or they lose columns before that."""


def _fate(plan: Plan, fate: int) -> int:
    """Return what happens above to the rows of an operator's inputs."""
    if isinstance(plan, Aggregation):
        return _COUNTED
    if isinstance(plan, Distinct | Number | Slice):
        return _KEPT
    if isinstance(plan, Projection) and fate == _COUNTED:
        narrower = len(plan.variables) < len(scope(plan.input).possible)
        return _NARROWED if narrower else fate
    return fate


def closes_periods(plan: Plan) -> bool | None:
    """Return whether a report at `r` closes the period before it and shows `snapshot(r - 1)`.

    True where the windows have a live edge, False where they are stepped. None if a plan has
    both kinds, or no window that moves on a grid: each change is then reported. Windows that count
    elements, `[NOW]` and `[ALL]` do not affect the choice.

    >>> from streamsparql.algebra.access import AccessStream
    >>> from streamsparql.algebra.terms import IRI
    >>> from streamsparql.algebra.window import FixedWindow, SteppedWindow
    >>> stream = AccessStream(IRI("s"))
    >>> live, stepped = FixedWindow(stream, 5), SteppedWindow(stream, 5, 5, "right")
    >>> closes_periods(live), closes_periods(stepped), closes_periods(stream)
    (True, False, None)
    """
    jumping = (x for x in plan.operators() if isinstance(x, Window) and x.grid is not None)
    edges = {window.live_edge for window in jumping}
    return edges.pop() if len(edges) == 1 else None
