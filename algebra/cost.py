"""Cardinality estimates: the expected number of rows in a plan's snapshots.

Estimates choose between equivalent plans, so they may be wrong without affecting results. The
estimate of a window is the stream's rate times the window's length, or the number of elements that
it counts; that of a static graph is its size. Each bound place of a triple pattern has a
selectivity, and a join divides by the number of distinct values of each shared variable, as
relational systems do (Selinger et al., SIGMOD 1979). Observed rates, sizes and predicate
frequencies replace the defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from math import prod

from streamsparql.algebra import filter, graph, group, join, match, path, shape
from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
from streamsparql.algebra.entailment import Entailed, Entailing
from streamsparql.algebra.expressions import Call
from streamsparql.algebra.join_cost import JoinSide, join_sides
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import conjuncts
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.window import Window


@dataclass(frozen=True)
class Statistics:
    """Observed properties of the data; defaults replace a missing stream, graph or predicate.

    `rates` are elements per millisecond, `sizes` the triples of static graphs (the name None is the
    background graph), `predicates` the fraction of all triples that have each predicate. `rate` and
    `size` are the defaults.
    """

    rates: Mapping[IRI, float] = field(default_factory=dict)
    sizes: Mapping[IRI | None, int] = field(default_factory=dict)
    predicates: Mapping[IRI, float] = field(default_factory=dict)
    rate: float = 1.0
    size: int = 10_000


HISTORY = 86_400_000
"""The assumed history of an unbounded window: a day, in milliseconds."""
_SUBJECT, _PREDICATE, _OBJECT = 0.01, 0.1, 0.1
"""Selectivity of a bound subject, predicate or object."""
_PER_SUBJECT, _PER_OBJECT, _PREDICATES = 3.0, 4.0, 10.0
"""Triples per subject, triples per object, and the number of distinct predicates."""
_ENTAILED = 3.0
"""Triples that a triple entails, itself included."""
_EQUAL, _OTHER = 0.1, 0.33
"""Selectivity of an equality, and of any other condition."""


class Costs:
    """Memoised cardinality estimates for one set of statistics."""

    def __init__(self, statistics: Statistics | None = None) -> None:
        self.statistics = statistics or Statistics()
        self._rows: dict[int, tuple[Plan, float]] = {}
        self._arrivals: dict[int, tuple[Plan, float]] = {}

    def rows(self, plan: Plan) -> float:
        """Estimate the number of rows, or triples, that hold at an instant.

        >>> from streamsparql.algebra.rules.sketch import streamed, triples
        >>> costs = Costs(Statistics(sizes={None: 500}, rates={IRI("s"): 40}))
        >>> costs.rows(triples("?x p ?y")), costs.rows(streamed("?x p ?y"))
        (50.0, 40.0)
        """
        for node in plan.bottom_up(self._rows):
            below = [self._rows[id(child)][1] for child in node.inputs]
            self._rows[id(node)] = (node, self._estimate(node, below))
        return self._rows[id(plan)][1]

    def values(self, plan: Plan, variable: Variable) -> float:
        """Estimate the number of distinct values of a variable among the rows of a plan.

        >>> from streamsparql.algebra.rules.sketch import triples
        >>> plan = triples("?x p ?y")
        >>> Costs().values(plan, Variable("x")) > Costs().values(plan, Variable("y"))
        True
        """
        rows = max(self.rows(plan), 1.0)
        while type(plan) is not match.TriplePatternMatching and len(plan.inputs) == 1:
            plan = plan.inputs[0]
        if not isinstance(plan, match.TriplePatternMatching):
            return rows
        subject, predicate, _ = plan.pattern
        if variable == subject:
            return rows if isinstance(predicate, IRI) else max(rows / _PER_SUBJECT, 1.0)
        if variable == predicate:
            return min(rows, _PREDICATES)
        return max(rows / _PER_OBJECT, 1.0)

    def arrivals(self, plan: Plan) -> float:
        """Estimate the number of rows, or triples, that begin to hold per millisecond.

        >>> from streamsparql.algebra.rules.sketch import streamed, triples
        >>> Costs().arrivals(streamed("?x p ?y")), Costs().arrivals(triples("?x p ?y"))
        (0.1, 0.0)
        """
        for node in plan.bottom_up(self._arrivals):
            below = [(self._arrivals[id(child)][1], self.rows(child)) for child in node.inputs]
            self._arrivals[id(node)] = (node, self._estimate_arrivals(node, below))
        return self._arrivals[id(plan)][1]

    def _estimate_arrivals(self, plan: Plan, below: list[tuple[float, float]]) -> float:
        match plan:
            case AccessStream():
                return self.rows(plan)
            case Window():
                return below[0][0]
            case Merge() | join.Union():
                return sum(arrivals for arrivals, _ in below)
            case group.Aggregation():
                return min(below[0][0], self.rows(plan) * self._changes(plan))
        renewal = sum(arrivals / rows for arrivals, rows in below if rows)
        return self.rows(plan) * renewal

    def _changes(self, plan: Plan) -> float:
        """Estimate the number of instants per millisecond at which rows begin to hold.

        A window with a live edge changes with each element, others at their steps only.
        """
        windows = {node for node in plan.operators() if isinstance(node, Window)}
        stepped = {each.grid for each in windows if each.grid and not each.live_edge}
        live = (self.arrivals(each) for each in windows if each.grid not in stepped)
        return sum(1 / grid.step for grid in stepped) + sum(live)

    def side(self, plan: Plan) -> JoinSide:
        """Estimate a plan as a side of a join."""
        return JoinSide(self.rows(plan), self.arrivals(plan), self._values(plan))

    def _estimate(self, plan: Plan, below: list[float]) -> float:
        match plan:
            case AccessStream(stream):
                return self.statistics.rates.get(stream, self.statistics.rate)
            case AccessGraph(graphs, background):
                return float(sum(map(self._size, _names(graphs, background))))
            case Entailed():
                return below[0] * _ENTAILED
            case Entailing(pattern):
                return below[0] * self._pattern_selectivity(pattern)
            case Window():
                return plan.expected_size(below[0], HISTORY)
            case match.TriplePatternMatching(pattern):
                return below[0] * self._pattern_selectivity(pattern)
            case path.Path(subject, _, value):
                ends = sum(not isinstance(end, Variable) for end in (subject, value))
                return below[0] * _OBJECT**ends
            case filter.Filter(condition):
                return below[0] * prod(map(condition_selectivity, conjuncts(condition)))
            case join.Join() | match.BasicGraphPattern():
                return self._join(plan.inputs, below)
            case join.LeftJoin(left, right):
                return max(below[0], self._join((left, right), below[:2]))
        return _estimate_row_operator(plan, below)

    def _size(self, name: IRI | None) -> int:
        return self.statistics.sizes.get(name, self.statistics.size)

    def _pattern_selectivity(self, pattern: match.TriplePattern) -> float:
        subject, predicate, value = pattern
        selectivity = 1.0
        if isinstance(predicate, IRI):
            selectivity = self.statistics.predicates.get(predicate, _PREDICATE)
        if not isinstance(subject, Variable):
            selectivity *= _SUBJECT
        if not isinstance(value, Variable):
            selectivity *= _OBJECT
        places = [place for place in pattern if isinstance(place, Variable)]
        return selectivity * _EQUAL ** (len(places) - len(set(places)))

    def _join(self, sides: Iterable[Plan], below: list[float]) -> float:
        estimates = (
            JoinSide(rows, 0.0, self._values(side)) for side, rows in zip(sides, below, strict=True)
        )
        return reduce(join_sides, estimates).rows

    def _values(self, plan: Plan) -> dict[Variable, float]:
        variables = (variable for variable in scope(plan).possible if not variable.stamp)
        return {variable: self.values(plan, variable) for variable in variables}


def _names(graphs: tuple[IRI | Variable, ...], background: bool) -> Iterator[IRI | None]:
    yield from (name if isinstance(name, IRI) else None for name in graphs)
    if background:
        yield None


def condition_selectivity(condition: Expression) -> float:
    """Estimate the fraction of rows that pass a condition.

    >>> from streamsparql.algebra.rules.sketch import equals
    >>> condition_selectivity(equals("?x", "1"))
    0.1
    """
    return _EQUAL if isinstance(condition, Call) and condition.function == "=" else _OTHER


def _estimate_row_operator(plan: Plan, below: list[float]) -> float:
    match plan:
        case shape.Table(_, rows):
            return float(len(rows))
        case join.Minus() | filter.SemiJoin() | filter.AntiJoin():
            return below[0] / 2
        case shape.Slice(_, limit):
            return below[0] if limit is None else min(below[0], float(limit))
        case group.Aggregation(keys):
            return max(below[0] / 10, 1.0) if keys else 1.0
        case filter.Mark() | graph.Describe():
            return below[0]
        case graph.Ask():
            return 1.0
    return sum(below)
