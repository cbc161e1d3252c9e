"""The decoding of batches to triples and solutions, and the formatting of these as text."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from streamsparql.algebra.access import Stamped
from streamsparql.algebra.hidden_variables import Hidden
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import Element
from streamsparql.algebra.terms import XSD, Literal, Term, Triple
from streamsparql.errors import EngineError
from streamsparql.look.explain.boxes.phrases import plan_writer
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import SINCE, ColumnKind, in_solution, variable_of
from streamsparql.physical.kernels.occurrences import starts_of, static_rows
from streamsparql.physical.operator import INFINITY, NEVER
from streamsparql.physical.operators.window import INSIDE
from streamsparql.text.visible import isolated

_PLAIN_TYPES = {
    XSD + name for name in ("integer", "decimal", "double", "float", "boolean", "dateTime")
}

_Item = Triple | Solution
Elements = tuple[Element[Any], ...]
_T = TypeVar("_T")


class EventElement(Element[Any]):
    """A row about an event, which started at `since` and ended at the start of the validity."""

    since: int


def occurrence(element: Element[Any]) -> tuple[int, int]:
    """Return the start and the end of an event; of another element, its first instant.

    >>> occurrence(Element("x", 3, 9))
    (3, 3)
    """
    since = element.since if isinstance(element, EventElement) else element.start
    return since, element.start


class ElementDecoder:
    """A decoder of batches to elements: triples, or solutions of the variables that are not hidden.

    >>> import numpy as np
    >>> terms = TermDictionary()
    >>> batch = Batch({"x": terms.encode(["<a>"])}, np.array([3]), np.array([9]))
    >>> ElementDecoder(terms).elements(batch)
    (Element(item={?x: <a>}, start=3, end=9),)
    """

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._decoded: dict[tuple[tuple[str, ...], tuple[int, ...]], _Item] = {}

    def elements(self, batch: Batch) -> Elements:
        """Decode a batch; a row with a count becomes that many elements."""
        if not len(batch):
            return ()
        batch = batch.expanded()
        is_triples = all(name in batch.columns for name in TRIPLE)
        names = TRIPLE if is_triples else tuple(n for n in batch.columns if in_solution(n))
        columns = [batch.columns[name].tolist() for name in names]
        rows = zip(*columns, strict=True) if columns else [()] * len(batch)
        times = zip(batch.start.tolist(), batch.end.tolist(), strict=True)
        elements = [
            Element(self._item(names, ids), start, end)
            for ids, (start, end) in zip(rows, times, strict=True)
        ]
        return tuple(_with_starts(elements, batch) if SINCE in batch.columns else elements)

    def _item(self, names: tuple[str, ...], ids: tuple[int, ...]) -> _Item:
        key = names, ids
        item = self._decoded.get(key)
        if item is None:
            terms = [self._terms.term_of(k) if k else None for k in ids]
            if names == TRIPLE:
                item = Triple(*terms)  # type: ignore[arg-type]
            else:
                pairs = zip(names, terms, strict=True)
                item = Solution({variable_of(name): t for name, t in pairs if t is not None})
            self._decoded[key] = item
        return item


def _with_starts(elements: Sequence[Element[Any]], batch: Batch) -> Iterator[Element[Any]]:
    """Yield elements with the starts of their events; static ones have none."""
    static, starts = static_rows(batch).tolist(), starts_of(batch.columns[SINCE]).tolist()
    for element, is_static, start in zip(elements, static, starts, strict=True):
        if is_static:
            yield element
        else:
            event = EventElement(*element)
            event.since = start
            yield event


def without_hidden(items: Iterable[Any], others: Container[str] = ()) -> Iterator[Any]:
    """Yield items without the columns that solutions do not have: timestamps, sort keys; `others`.

    >>> from streamsparql.algebra.terms import IRI
    >>> x, since = Variable("x"), variable_of(".t ?x")
    >>> list(without_hidden([Solution({x: IRI("a"), since: IRI("b")})]))
    [{?x: <a>}]
    """
    for item in items:
        if isinstance(item, Solution):
            yield item.project(v for v in item if in_solution(v.name) and v.name not in others)
        else:
            yield item.triple if isinstance(item, Stamped) else item


class TraceWording:
    """The formatting of items and times as text, with a query's prefixes.

    `moment` formats an instant.

    >>> from streamsparql.algebra.terms import IRI
    >>> wording = TraceWording({"": "http://e/"}, str)
    >>> wording.element(Element(Solution({Variable("x"): IRI("http://e/a")}), 3, INFINITY))
    '?x :a  from 3 on'
    """

    def __init__(self, prefixes: Mapping[str, str], moment: Callable[[int], str]) -> None:
        self.write = plan_writer(prefixes)
        self.moment = moment

    def item(self, item: Any) -> str:
        """Format a triple by its terms, a solution by its variables that are not hidden."""
        if isinstance(item, Stamped):
            item = item.triple
        if isinstance(item, Triple):
            return " ".join(map(self.term, item))
        if not isinstance(item, Solution):
            return str(item)
        variables = [v for v in item if not v.hidden] or list(item)
        return ", ".join(f"{_label(v)} {self.term(item[v])}" for v in variables) or "(no columns)"

    def term(self, term: Term) -> str:
        """Format a term; numbers, booleans and times without their datatype."""
        if isinstance(term, Literal) and term.datatype.value in _PLAIN_TYPES:
            return isolated(term.lexical)
        return isolated(self.write.term(term))

    def element(self, element: Element[Any]) -> str:
        """Format an item and its validity."""
        return f"{self.item(element.item)}  {self.times(element)}"

    def state_row(self, part: str, element: Element[Any]) -> str:
        """Format a row in a part of a state.

        The end of an element in a window of elements is unknown, so it is never "always".

        >>> wording, element = TraceWording({}, str), Element("x", 0, INFINITY)
        >>> wording.state_row(INSIDE, element), wording.element(element)
        ('x  from 0 on', 'x  always')
        """
        if part == INSIDE and element.end >= INFINITY:
            return f"{self.item(element.item)}  from {self.moment(element.start)} on"
        return self.element(element)

    def times(self, element: Element[Any]) -> str:
        """Format the validity of an element, a half-open interval; the occurrence of an event.

        A row about an event that is retained has a validity: the time for which it is needed.
        """
        _, start, end = element
        if isinstance(element, EventElement) and end == start + 1:
            return f"[{self.moment(element.since)}, {self.moment(start)}]"
        if end >= INFINITY:
            return "always" if start <= 0 else f"from {self.moment(start)} on"
        if start >= end:
            return f"empty at {self.moment(end)}"
        if start == NEVER:
            return f"until {self.moment(end)}"
        return f"[{self.moment(start)}, {self.moment(end)})"

    def instant(self, t: int) -> str:
        """Format the instant of a step."""
        if t >= INFINITY:
            return "the end"
        return "before" if t == NEVER else self.moment(t)


def _label(variable: Variable) -> str:
    if not isinstance(variable, Hidden):
        return str(variable)
    return "answer" if variable.kind is ColumnKind.ANSWER else variable.name


def numbered(operators: Sequence[_T], number: int) -> _T:
    """Return the operator with a number; numbers start at 1.

    >>> numbered("ab", 2)
    'b'
    """
    if not 1 <= number <= len(operators):
        raise EngineError(
            f"unknown operator {number}; operators are numbered 1 to {len(operators)}"
        )
    return operators[number - 1]
