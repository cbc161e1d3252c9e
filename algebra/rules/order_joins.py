"""The order of joins, by what they are expected to cost.

Law: the join is associative and commutative on multisets of solutions, so any order of P1 .. Pn has
the same rows. Source: SPARQL 1.1 section 18.5, Join; Perez, Arenas and Gutierrez, "Semantics and
complexity of SPARQL", TODS 2009, Lemma 2.5.

Side condition: none for the law; `Join`s and `BasicGraphPattern`s that stand below one another are
one chain. It holds in the pattern of an EXISTS.

The order is greedy: the part with the fewest rows first, then each time the part that multiplies
the rows so far by the least. Parts that share a variable with those before come before those that
do not; among parts that multiply alike, those about a subject that is there already (a star) come
first; then what has fewer rows; then what stood first. Work is that of a heap: each time a variable
becomes known, the parts that read it are weighed anew.

Parts that read no stream, are connected with each other and are mixed with parts that do are put
into a subplan of their own: static data never changes, so that is evaluated once.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> plan = Join(Join(streamed("?x p ?y"), triples("?z q ?w")), triples("?y r ?z"))
    >>> print(sketch(order_joins(plan)))
    Join(?x p ?y, BasicGraphPattern(?z q ?w, ?y r ?z))
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from streamsparql.algebra.cost import Costs
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.join import Join, Union
from streamsparql.algebra.match import BasicGraphPattern, TriplePatternMatching
from streamsparql.algebra.node import flatten
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import JOINS, is_static
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import Distinct
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.window import Window

_ABOVE_MATCHINGS = (Union, Distinct, Filter, Window)
"""The operators below which a part of a chain still counts as a triple pattern."""


def order_joins(plan: Plan, costs: Costs | None = None) -> Plan | None:
    """The whole chain of joins at the root of a plan, in another order."""
    parts = _parts(plan)
    if len(parts) < 2:
        return None
    costs = costs or Costs()
    ordered = _Order(_with_static_subplans(parts, costs), costs).parts()
    made = _joined(ordered)
    return None if made == plan else made


def _parts(plan: Plan) -> list[Plan]:
    """Return what a chain of joins joins, left to right."""
    return list(flatten(plan, lambda one: one.inputs if isinstance(one, JOINS) else None))


def _joined(parts: list[Plan]) -> Plan:
    """Left to right; a run of parts from the start that are all matchings is one pattern."""
    if not any(isinstance(part, BasicGraphPattern) for part in parts):
        if all(map(_is_matching, parts)):
            return BasicGraphPattern(tuple(parts))
    made, *rest = parts
    for part in rest:
        made = Join(made, part)
    return made


def _is_matching(plan: Plan) -> bool:
    """Whether it is a triple pattern, perhaps below its window, its filter and static data."""
    sources = flatten(plan, lambda one: one.inputs if isinstance(one, _ABOVE_MATCHINGS) else None)
    return all(isinstance(source, TriplePatternMatching) for source in sources)


def _with_static_subplans(parts: list[Plan], costs: Costs) -> list[Plan]:
    static = [part for part in parts if is_static(part)]
    if len(static) < 2 or len(static) == len(parts):
        return parts
    whole: dict[int, Plan] = {}
    for connected in _connected(static):
        if len(connected) > 1:
            subplan = _joined(_Order(connected, costs).parts())
            whole.update((id(part), subplan) for part in connected)
    mixed: list[Plan] = []
    made: set[int] = set()
    for part in parts:
        if id(part) not in whole:
            mixed.append(part)
        elif id(whole[id(part)]) not in made:
            made.add(id(whole[id(part)]))
            mixed.append(whole[id(part)])
    return mixed


def _connected(parts: list[Plan]) -> list[list[Plan]]:
    """The parts that share variables, directly or through others, together."""
    holders: dict[Variable, list[int]] = {}
    for k, part in enumerate(parts):
        for variable in _shareable(part):
            holders.setdefault(variable, []).append(k)
    left = dict.fromkeys(range(len(parts)))
    groups: list[list[Plan]] = []
    while left:
        pending, found = [next(iter(left))], list[int]()
        while pending:
            k = pending.pop()
            if k in left:
                del left[k]
                found.append(k)
                for variable in _shareable(parts[k]):
                    pending.extend(holders.pop(variable, ()))
        groups.append([parts[k] for k in sorted(found)])
    return groups


def _shareable(plan: Plan) -> Iterable[Variable]:
    return (variable for variable in scope(plan).possible if not variable.stamp)


class _Order:
    """The greedy order of some parts."""

    def __init__(self, parts: list[Plan], costs: Costs) -> None:
        self._all = parts
        self._costs = costs
        self._rows = [costs.rows(part) for part in parts]
        self._grows = list(self._rows)  # what a part multiplies the rows so far by
        self._connected = [False] * len(parts)
        self._star = [False] * len(parts)
        self._readers: dict[Variable, list[int]] = {}
        self._subjects: dict[Variable, list[int]] = {}
        for k, part in enumerate(parts):
            for variable in _shareable(part):
                self._readers.setdefault(variable, []).append(k)
            for subject in _subject(part):
                self._subjects.setdefault(subject, []).append(k)

    def parts(self) -> list[Plan]:
        """The parts, the first to be joined first."""
        first = min(range(len(self._all)), key=lambda k: (self._rows[k], k))
        ordered: list[int] = []
        placed = [False] * len(self._all)
        heap: list[tuple[tuple[bool, float, bool, float, int], int]] = []
        for k in range(len(self._all)):
            heappush(heap, (self._key(k), k))
        chosen: int | None = first
        while chosen is not None:
            ordered.append(chosen)
            placed[chosen] = True
            for k in self._weighed_anew(chosen):
                if not placed[k]:
                    heappush(heap, (self._key(k), k))
            chosen = self._next(heap, placed)
        return [self._all[k] for k in ordered]

    def _next(
        self, heap: list[tuple[tuple[bool, float, bool, float, int], int]], placed: list[bool]
    ) -> int | None:
        while heap:
            key, k = heappop(heap)
            if not placed[k] and key == self._key(k):
                return k
        return None

    def _key(self, k: int) -> tuple[bool, float, bool, float, int]:
        return not self._connected[k], self._grows[k], not self._star[k], self._rows[k], k

    def _weighed_anew(self, placed: int) -> set[int]:
        changed: set[int] = set()
        part = self._all[placed]
        for variable in _shareable(part):
            for k in self._readers.pop(variable, ()):
                self._connected[k] = True
                self._grows[k] /= self._costs.values(self._all[k], variable)
                changed.add(k)
        for subject in _subject(part):
            for k in self._subjects.pop(subject, ()):
                self._star[k] = True
                changed.add(k)
        return changed


def _subject(plan: Plan) -> Iterable[Variable]:
    """The variable that a triple pattern, below whatever, is about."""
    while not isinstance(plan, TriplePatternMatching):
        if not isinstance(plan, _ABOVE_MATCHINGS):
            return ()
        plan = plan.inputs[0]
    subject = plan.pattern.subject
    return (subject,) if isinstance(subject, Variable) else ()


RULE = Rule(order_joins, at=JOINS, inside_chains=False, by_cost=True)
