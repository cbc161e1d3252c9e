"""Lineage: the items of the streams that a row derives from, which colour the rows of a picture.

Operators do not track lineage, so it is reconstructed from items and validities: a row derives
from the input rows that overlap it and agree with it on the variables that both bind. Where several
do, as under an aggregate, it derives from all of them. Rows of static data derive from no item.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streamsparql.algebra.solutions import Solution
from streamsparql.algebra.streams import Element
from streamsparql.algebra.terms import Triple
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.access import Always, StreamAccess
from streamsparql.physical.operators.filter import AntiJoin
from streamsparql.physical.operators.join import Join, Minus, Union
from streamsparql.physical.operators.left_join import LeftJoin, LeftJoinOn
from streamsparql.physical.operators.window import ElementWindow, TimeWindow

if TYPE_CHECKING:
    from streamsparql.look.traces.trace import StateRow, Trace

Origins = frozenset[int]
"""The positions of items in `trace.items`."""
TracedRow = tuple[Element[Any], Origins]
NO_ORIGINS: Origins = frozenset()
_MAX_ORIGINS = 24  # a row of more items, such as a large aggregate, is shown without origins
MAX_ROWS = 600
"""The number of rows of an operator above which its lineage is not computed."""


class Lineage:
    """The origins of the rows of a trace.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED {?s ?p ?o}")
    >>> trace = query.trace([("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 5)])
    >>> [sorted(origins) for _, origins in Lineage(trace).rows[-1]]
    [[0], [1]]
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.rows: list[list[TracedRow]] = []
        """By operator: the rows that it emitted, in order, with their origins."""
        self._candidates: list[list[_Candidates]] = []
        positions = {id(element): k for k, (_, element) in enumerate(trace.items)}
        for operator, physical in zip(trace.operators, trace.physical, strict=True):
            emitted = [element for _, element in trace.emitted_by(operator.number)]
            inputs = [self.rows[number - 1] for number in operator.inputs]
            candidates = _candidates(physical, inputs)
            if isinstance(physical, StreamAccess):
                origins = list(_item_origins(trace, physical.stream, emitted, positions))
            elif isinstance(physical, Always) or len(emitted) > MAX_ROWS:
                origins = [NO_ORIGINS] * len(emitted)
            elif isinstance(physical, TimeWindow | ElementWindow):
                origins = _window_origins(emitted, inputs[0])
            else:
                origins = [_derived_origins(element, candidates) for element in emitted]
            self._candidates.append(candidates)
            self.rows.append(list(zip(emitted, origins, strict=True)))
        self._by_item = [_rows_by_item(rows) for rows in self.rows]

    def of(self, number: int, row: StateRow) -> Origins:
        """Return the origins of a row in an operator's state.

        They are those of an equal row of its output or of its inputs, if there is one.
        """
        operator = self._trace.operators[number - 1]
        item, start, end = row.element
        for numbers in ((number,), operator.inputs):
            equal = [each for k in numbers for each in self._by_item[k - 1].get(item, ())]
            exact = [each for each in equal if each[0].end == end and each[0].start == start]
            close = [each for each in equal if each[0].end == end or each[0].start == start]
            if equal and (exact or close or numbers is operator.inputs):
                return (exact or close or equal)[0][1]
        if any(len(self.rows[k - 1]) > MAX_ROWS for k in operator.inputs):
            return NO_ORIGINS
        return _derived_origins(row.element, self._candidates[number - 1])


def _rows_by_item(rows: Sequence[TracedRow]) -> dict[Any, list[TracedRow]]:
    by_item: dict[Any, list[TracedRow]] = {}
    for row in rows:
        by_item.setdefault(row[0].item, []).append(row)
    return by_item


def _item_origins(
    trace: Trace, stream: str, emitted: Sequence[Element[Any]], positions: dict[int, int]
) -> Iterator[Origins]:
    """Yield the origins of the rows of a stream's access, which emits items in their order."""
    of_stream = [positions[id(element)] for name, element in trace.items if name == stream]
    return (frozenset([k]) for k, _ in zip(of_stream, emitted, strict=True))


def _window_origins(emitted: Sequence[Element[Any]], inputs: Sequence[TracedRow]) -> list[Origins]:
    """Return the origins of a window's rows: one equal input row each.

    It is the one with the same start, else the first with an earlier start. Each input row is used
    once, except that the last of equal ones may be used again.
    """
    unused = {item: list(rows) for item, rows in _rows_by_item(inputs).items()}
    origins = []
    for element in emitted:
        rows = unused.get(element.item, [])
        early = [row for row in rows if row[0].start <= element.start]
        exact = [row for row in early if row[0].start == element.start]
        chosen = (exact or early or rows)[:1]
        if len(rows) > 1:
            rows.remove(chosen[0])
        origins.append(chosen[0][1] if chosen else NO_ORIGINS)
    return origins


def _derived_origins(element: Element[Any], candidates: Sequence[_Candidates]) -> Origins:
    """Return the origins of all input rows that a row can derive from."""
    origins: set[int] = set()
    for rows in candidates:
        for origin in rows.of(element):
            origins |= origin
    return frozenset(origins) if len(origins) <= _MAX_ORIGINS else NO_ORIGINS


def _candidates(operator: Operator, inputs: Sequence[list[TracedRow]]) -> list[_Candidates]:
    """Return the input rows that rows of an operator can derive from."""
    if isinstance(operator, Minus | AntiJoin):
        inputs = inputs[:1]
    whole = isinstance(operator, Join | LeftJoin | LeftJoinOn | Union | Minus | AntiJoin)
    return [_Candidates(rows, whole) for rows in inputs]


class _Candidates:
    """Input rows that others derive from. With `whole`, all their variables are in the output."""

    def __init__(self, rows: Sequence[TracedRow], whole: bool) -> None:
        self._whole = whole
        self._rows = sorted(rows, key=lambda row: row[0].start)
        self._starts = [row[0].start for row in self._rows]

    def of(self, element: Element[Any]) -> list[Origins]:
        """Return the origins of the rows that the element can derive from."""
        before = self._rows[: bisect_left(self._starts, element.end)]
        overlapping = (row for row in before if row[0].end > element.start)
        matches = [row for row in overlapping if _agree(element.item, row[0].item, self._whole)]
        same = [
            row
            for row in matches
            if (row[0].start, row[0].end) == (element.start, element.end)
            and _adds_nothing(element.item, row[0].item)
        ]
        return [origins for _, origins in same or matches]


def _agree(item: Any, other: Any, whole: bool) -> bool:
    """Return whether an item can derive from another one, by their terms."""
    if isinstance(item, Solution):
        if isinstance(other, Solution):
            if whole and not other.keys() <= item.keys():
                return False
            return all(item.get(variable, term) == term for variable, term in other.items())
        return all(term in other for term in item.values())
    if isinstance(other, Solution):
        return any(term in item for term in other.values())
    return bool(item == other)


def _adds_nothing(item: Any, other: Any) -> bool:
    """Return whether an item binds no more than another one, as after a filter or a projection."""
    if isinstance(item, Triple) or isinstance(other, Triple):
        return True
    return bool(item.keys() <= other.keys())
