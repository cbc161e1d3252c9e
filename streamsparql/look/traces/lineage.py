"""Which items of the streams a row comes from: what gives rows their colours in a picture.

Operators do not keep this, so it is found afterwards, from what a row says and when it holds: a row
comes from rows of the operators below that overlap it and agree with it in what both bind. Where
several do, as under an aggregate, it comes from all of them. Rows of static data come from no item.
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
    from streamsparql.look.traces.trace import Held, Trace

Origins = frozenset[int]
Row = tuple[Element[Any], Origins]
NONE: Origins = frozenset()
_MOST = 24
MANY = 600
"""Of operators that give more rows it is not found out: nobody could follow so many."""


class Lineage:
    """The origins of the rows of a trace: the places of items among `trace.items`.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED {?s ?p ?o}")
    >>> trace = query.trace([("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 5)])
    >>> [sorted(origins) for _, origins in Lineage(trace).rows[-1]]
    [[0], [1]]
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.rows: list[list[Row]] = []
        """By operator: what it gave, in order, with the origins."""
        self._below: list[list[_Source]] = []
        places = {id(element): k for k, (_, element) in enumerate(trace.items)}
        for operator, physical in zip(trace.operators, trace.physical, strict=True):
            given = [element for _, element in trace.given_by(operator.number)]
            below = [self.rows[number - 1] for number in operator.inputs]
            sources = _sources(physical, below)
            if isinstance(physical, StreamAccess):
                found = list(_items(trace, physical.stream, given, places))
            elif isinstance(physical, Always) or len(given) > MANY:
                found = [NONE] * len(given)
            elif isinstance(physical, TimeWindow | ElementWindow):
                found = _windowed(given, below[0])
            else:
                found = [_derived(element, sources) for element in given]
            self._below.append(sources)
            self.rows.append(list(zip(given, found, strict=True)))
        self._known = [_by_item(rows) for rows in self.rows]

    def of(self, number: int, held: Held) -> Origins:
        """The origins of a row in an operator's state: it came in, or will go out."""
        operator = self._trace.operators[number - 1]
        _, start, end = held.element
        for places in ((number,), operator.inputs):
            found = [row for k in places for row in self._known[k - 1].get(held.element.item, ())]
            exact = [row for row in found if row[0].end == end and row[0].start == start]
            ends = [row for row in found if row[0].end == end or row[0].start == start]
            if found and (exact or ends or places is operator.inputs):
                return (exact or ends or found)[0][1]
        if any(len(self.rows[k - 1]) > MANY for k in operator.inputs):
            return NONE
        return _derived(held.element, self._below[number - 1])


def _by_item(rows: Sequence[Row]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[0].item, []).append(row)
    return found


def _items(
    trace: Trace, stream: str, given: Sequence[Element[Any]], places: dict[int, int]
) -> Iterator[Origins]:
    """Items are given as they come."""
    own = [places[id(element)] for name, element in trace.items if name == stream]
    return (frozenset([k]) for k, _ in zip(own, given, strict=True))


def _windowed(given: Sequence[Element[Any]], below: Sequence[Row]) -> list[Origins]:
    """Of equal items, the last that came before the row begins to hold and was not taken yet."""
    known = {item: list(rows) for item, rows in _by_item(below).items()}
    found = []
    for element in given:
        rows = known.get(element.item, [])
        early = [row for row in rows if row[0].start <= element.start]
        exact = [row for row in early if row[0].start == element.start]
        chosen = (exact or early or rows)[:1]
        if len(rows) > 1:
            rows.remove(chosen[0])
        found.append(chosen[0][1] if chosen else NONE)
    return found


def _derived(element: Element[Any], sources: Sequence[_Source]) -> Origins:
    """The origins of all rows below that a row can come from."""
    origins: set[int] = set()
    for source in sources:
        for origin in source.of(element):
            origins |= origin
    return frozenset(origins) if len(origins) <= _MOST else NONE


def _sources(operator: Operator, below: Sequence[list[Row]]) -> list[_Source]:
    """What the rows of an operator come from."""
    if isinstance(operator, Minus | AntiJoin):
        below = below[:1]
    whole = isinstance(operator, Join | LeftJoin | LeftJoinOn | Union | Minus | AntiJoin)
    return [_Source(rows, whole) for rows in below]


class _Source:
    """Rows that others come from. If they are taken `whole`, nothing that they bind gets lost."""

    def __init__(self, rows: Sequence[Row], whole: bool) -> None:
        self._whole = whole
        self._rows = sorted(rows, key=lambda row: row[0].start)
        self._starts = [row[0].start for row in self._rows]

    def of(self, element: Element[Any]) -> list[Origins]:
        """The origins of the rows that the element can come from."""
        before = self._rows[: bisect_left(self._starts, element.end)]
        over = (row for row in before if row[0].end > element.start)
        found = [row for row in over if _agree(element.item, row[0].item, self._whole)]
        whole = [
            row
            for row in found
            if (row[0].start, row[0].end) == (element.start, element.end)
            and _says_no_more(element.item, row[0].item)
        ]
        return [origins for _, origins in whole or found]


def _agree(item: Any, other: Any, whole: bool) -> bool:
    """Whether an item can come from another one."""
    if isinstance(item, Solution):
        if isinstance(other, Solution):
            if whole and not other.keys() <= item.keys():
                return False
            return all(item.get(variable, term) == term for variable, term in other.items())
        return all(term in other for term in item.values())
    if isinstance(other, Solution):
        return any(term in item for term in other.values())
    return bool(item == other)


def _says_no_more(item: Any, other: Any) -> bool:
    """Whether nothing was added: a filter, a projection, a pattern."""
    if isinstance(item, Triple) or isinstance(other, Triple):
        return True
    return bool(item.keys() <= other.keys())
