"""Rows of batches as what they stand for, triples and solutions, and how these are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from streamsparql.algebra.access import Stamped
from streamsparql.algebra.hidden_variables import Hidden
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import Element
from streamsparql.algebra.terms import XSD, Literal, Term, Triple
from streamsparql.errors import EngineError
from streamsparql.look.explain.boxes.phrases import with_prefixes
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import ColumnKind, in_solution, variable_of
from streamsparql.physical.operator import INFINITY, NEVER
from streamsparql.physical.operators.window import INSIDE
from streamsparql.text.visible import isolated

_BARE = {XSD + name for name in ("integer", "decimal", "double", "float", "boolean", "dateTime")}

Item = Triple | Solution
Elements = tuple[Element[Any], ...]
_T = TypeVar("_T")


class Decoder:
    """Makes elements of batches: triples, or solutions of the variables that are not hidden.

    >>> import numpy as np
    >>> terms = TermDictionary()
    >>> batch = Batch({"x": terms.encode(["<a>"])}, np.array([3]), np.array([9]))
    >>> Decoder(terms).elements(batch)
    (Element(item={?x: <a>}, start=3, end=9),)
    """

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._known: dict[tuple[tuple[str, ...], tuple[int, ...]], Item] = {}

    def elements(self, batch: Batch) -> Elements:
        """The rows, each as often as it is there."""
        if not len(batch):
            return ()
        batch = batch.expanded()
        whole = all(name in batch.columns for name in TRIPLE)
        names = TRIPLE if whole else tuple(n for n in batch.columns if in_solution(n))
        columns = [batch.columns[name].tolist() for name in names]
        rows = zip(*columns, strict=True) if columns else [()] * len(batch)
        times = zip(batch.start.tolist(), batch.end.tolist(), strict=True)
        return tuple(
            Element(self._item(names, ids), start, end)
            for ids, (start, end) in zip(rows, times, strict=True)
        )

    def _item(self, names: tuple[str, ...], ids: tuple[int, ...]) -> Item:
        key = names, ids
        found = self._known.get(key)
        if found is None:
            terms = [self._terms.term_of(k) if k else None for k in ids]
            if names == TRIPLE:
                found = Triple(*terms)  # type: ignore[arg-type]
            else:
                pairs = zip(names, terms, strict=True)
                found = Solution({variable_of(name): t for name, t in pairs if t is not None})
            self._known[key] = found
        return found


def compared(items: Iterable[Any]) -> Iterator[Any]:
    """The items of a snapshot without what is hidden from solutions: stamps, keys of an order.

    >>> from streamsparql.algebra.terms import IRI
    >>> x, since = Variable("x"), variable_of(".t ?x")
    >>> list(compared([Solution({x: IRI("a"), since: IRI("b")})]))
    [{?x: <a>}]
    """
    for item in items:
        if isinstance(item, Solution):
            yield item.project(v for v in item if in_solution(v.name))
        else:
            yield item.triple if isinstance(item, Stamped) else item


class Wording:
    """How items and times are written for people, with a query's prefixes.

    >>> from streamsparql.algebra.terms import IRI
    >>> wording = Wording({"": "http://e/"}, str)
    >>> wording.element(Element(Solution({Variable("x"): IRI("http://e/a")}), 3, INFINITY))
    '?x :a  from 3 on'
    """

    def __init__(self, prefixes: Mapping[str, str], moment: Callable[[int], str]) -> None:
        self.write = with_prefixes(prefixes)
        self.moment = moment

    def item(self, item: Any) -> str:
        """A triple by its places, a solution by its variables."""
        if isinstance(item, Stamped):
            item = item.triple
        if isinstance(item, Triple):
            return " ".join(map(self.term, item))
        if not isinstance(item, Solution):
            return str(item)
        shown = [v for v in item if not v.hidden] or list(item)
        return ", ".join(f"{_called(v)} {self.term(item[v])}" for v in shown) or "(no columns)"

    def term(self, term: Term) -> str:
        """A term, numbers and times without their type."""
        if isinstance(term, Literal) and term.datatype.value in _BARE:
            return isolated(term.lexical)
        return isolated(self.write.term(term))

    def element(self, element: Element[Any]) -> str:
        """An item, and when it holds."""
        return f"{self.item(element.item)}  {self.times(element)}"

    def held(self, part: str, element: Element[Any]) -> str:
        """The same of a row in a part of a state. What a window of elements holds goes some time.

        >>> wording, element = Wording({}, str), Element("x", 0, INFINITY)
        >>> wording.held(INSIDE, element), wording.element(element)
        ('x  from 0 on', 'x  always')
        """
        if part == INSIDE and element.end >= INFINITY:
            return f"{self.item(element.item)}  from {self.moment(element.start)} on"
        return self.element(element)

    def times(self, element: Element[Any]) -> str:
        """When an element holds: a half-open interval."""
        _, start, end = element
        if end >= INFINITY:
            return "always" if start <= 0 else f"from {self.moment(start)} on"
        if start >= end:
            return f"nothing left before {self.moment(end)}"
        if start == NEVER:
            return f"until {self.moment(end)}"
        return f"[{self.moment(start)}, {self.moment(end)})"

    def instant(self, t: int) -> str:
        """What a step is of."""
        if t >= INFINITY:
            return "the end"
        return "before" if t == NEVER else self.moment(t)


def _called(variable: Variable) -> str:
    if not isinstance(variable, Hidden):
        return str(variable)
    return "answer" if variable.kind is ColumnKind.ANSWER else variable.name


def numbered(operators: Sequence[_T], number: int) -> _T:
    """The operator with a number, which count from 1.

    >>> numbered("ab", 2)
    'b'
    """
    if not 1 <= number <= len(operators):
        raise EngineError(f"there is no operator {number}: they are 1 to {len(operators)}")
    return operators[number - 1]
