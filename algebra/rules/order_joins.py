"""Joins are ordered by estimated cost.

Law: the join is associative and commutative on multisets of solutions, so any order of P1 .. Pn has
the same rows. Source: SPARQL 1.1 section 18.5, Join; Perez, Arenas and Gutierrez, "Semantics and
complexity of SPARQL", TODS 2009, Lemma 2.5.

Side condition: none. Nested `Join`s and `BasicGraphPattern`s are one chain. The rule is sound in
the pattern of an EXISTS, and over events: the first start and the last end of all parts are those
of the parts in any order.

The order is greedy: first the part with the fewest rows, then repeatedly the part with the lowest
growth factor of the rows so far. Parts that share a variable with those before precede parts that
share none. Ties go to parts with a subject that is already bound (a star), then to parts with fewer
rows, then to the original order. A heap keeps the candidates: when a variable is bound, the parts
that read it are reprioritised.

If some parts of a chain read streams, connected static parts become a subplan: static data never
changes, so the subplan is evaluated once.

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
"""The operators that may be between a part of a chain and its triple pattern."""


def order_joins(plan: Plan, costs: Costs | None = None) -> Plan | None:
    """Reorder the chain of joins at the root of a plan."""
    parts = _parts(plan)
    if len(parts) < 2:
        return None
    costs = costs or Costs()
    ordered = _join_all(_GreedyOrder(_with_static_subplans(parts, costs), costs).parts())
    return None if ordered == plan else ordered


def _parts(plan: Plan) -> list[Plan]:
    """Return the parts of a chain of joins, left to right."""
    return list(flatten(plan, lambda one: one.inputs if isinstance(one, JOINS) else None))


def _join_all(parts: list[Plan]) -> Plan:
    """Join from left to right; if all parts are matchings, into a basic graph pattern."""
    if not any(isinstance(part, BasicGraphPattern) for part in parts):
        if all(map(_is_matching, parts)):
            return BasicGraphPattern(tuple(parts))
    joined, *rest = parts
    for part in rest:
        joined = Join(joined, part)
    return joined


def _is_matching(plan: Plan) -> bool:
    """Return whether a part is a triple pattern, possibly with a window, filter or union."""
    sources = flatten(plan, lambda one: one.inputs if isinstance(one, _ABOVE_MATCHINGS) else None)
    return all(isinstance(source, TriplePatternMatching) for source in sources)


def _with_static_subplans(parts: list[Plan], costs: Costs) -> list[Plan]:
    static = [part for part in parts if is_static(part)]
    if len(static) < 2 or len(static) == len(parts):
        return parts
    whole: dict[int, Plan] = {}
    for connected in _connected_groups(static):
        if len(connected) > 1:
            subplan = _join_all(_GreedyOrder(connected, costs).parts())
            whole.update((id(part), subplan) for part in connected)
    mixed: list[Plan] = []
    placed: set[int] = set()
    for part in parts:
        if id(part) not in whole:
            mixed.append(part)
        elif id(whole[id(part)]) not in placed:
            placed.add(id(whole[id(part)]))
            mixed.append(whole[id(part)])
    return mixed


def _connected_groups(parts: list[Plan]) -> list[list[Plan]]:
    """Group the parts that share variables, directly or through others."""
    holders: dict[Variable, list[int]] = {}
    for k, part in enumerate(parts):
        for variable in _shareable(part):
            holders.setdefault(variable, []).append(k)
    left = dict.fromkeys(range(len(parts)))
    groups: list[list[Plan]] = []
    while left:
        pending, group = [next(iter(left))], list[int]()
        while pending:
            k = pending.pop()
            if k in left:
                del left[k]
                group.append(k)
                for variable in _shareable(parts[k]):
                    pending.extend(holders.pop(variable, ()))
        groups.append([parts[k] for k in sorted(group)])
    return groups


def _shareable(plan: Plan) -> Iterable[Variable]:
    return (variable for variable in scope(plan).possible if not variable.stamp)


class _GreedyOrder:
    """The greedy order of the parts of a chain."""

    def __init__(self, parts: list[Plan], costs: Costs) -> None:
        self._all = parts
        self._costs = costs
        self._rows = [costs.rows(part) for part in parts]
        self._grows = list(self._rows)  # the factor by which a part multiplies the rows so far
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
        """Return the parts in join order."""
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
            for k in self._reprioritise(chosen):
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

    def _reprioritise(self, placed: int) -> set[int]:
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
    """Return the subject of a part's triple pattern, if it is a variable."""
    while not isinstance(plan, TriplePatternMatching):
        if not isinstance(plan, _ABOVE_MATCHINGS):
            return ()
        plan = plan.inputs[0]
    subject = plan.pattern.subject
    return (subject,) if isinstance(subject, Variable) else ()


RULE = Rule(order_joins, at=JOINS, inside_chains=False, by_cost=True, over_events=True)
