"""From logical plans to physical ones: the operators that compute a plan.

`lower` traverses a logical plan from the left, bottom up. Equal subplans become one operator.
Stateless operators over static rows are computed here, once; a pattern over a stream and the
background graph becomes a union of the two, or no union if the graph has no match.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from streamsparql.algebra import access, entailment, event, graph, group, match, shape
from streamsparql.algebra import path as p
from streamsparql.algebra import window as w
from streamsparql.algebra.align import Align
from streamsparql.algebra.bounds import bounds_below
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.functions import Run
from streamsparql.algebra.parameter import Parameter, parameters_in
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import is_static
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import IRI, Term
from streamsparql.algebra.traversal import recursion_headroom
from streamsparql.errors import EngineError
from streamsparql.limits import naming
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.entailment.schema import Schema
from streamsparql.physical.expressions.compiler import BatchExpression, compile_expression
from streamsparql.physical.expressions.sort_keys import Ranking
from streamsparql.physical.hidden import FROM, TO
from streamsparql.physical.kernels.occurrences import with_since
from streamsparql.physical.lowering.lower_events import LOWER_EVENTS, times_read
from streamsparql.physical.lowering.lower_exists import Outer, Sighted, at_leaf
from streamsparql.physical.lowering.lower_joins import JoinLowering
from streamsparql.physical.lowering.lower_operators import (
    LOWER,
    LOWER_ABOVE,
    LowerAbove,
    lower_distinct_rows,
)
from streamsparql.physical.lowering.lower_parameters import (
    late,
    reading_columns,
    tables_of_outer_rows,
    without_parameters,
)
from streamsparql.physical.lowering.lower_path import PathEnds, lower_path
from streamsparql.physical.lowering.lower_rules import (
    RuleScope,
    enter_stratum,
    with_derived,
)
from streamsparql.physical.operator import Operator, Stateless, computed_rows
from streamsparql.physical.operators.access import Always, StreamAccess
from streamsparql.physical.operators.columns import Rename, SelectBound, SelectEqual
from streamsparql.physical.operators.entailment import EntailedMatching
from streamsparql.physical.operators.join import Union
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.operators.report import Clip
from streamsparql.physical.operators.shape import projected_to
from streamsparql.physical.operators.window import (
    AlignToReports,
    ElementWindow,
    SteppedTupleWindow,
    TimeWindow,
    TupleWindow,
)


@dataclass(frozen=True)
class Catalog:
    """The static graphs of a run, as batches of triples: the default one and the named ones.

    They are not `known` if a plan is lowered only to be shown.
    """

    default: Batch = field(default_factory=lambda: Batch.empty(TRIPLE))
    named: Mapping[IRI, Batch] = field(default_factory=dict)
    known: bool = True
    results: Mapping[Plan, Batch] = field(default_factory=dict)
    """The rows of static plans that were precomputed."""
    schemas: dict[tuple[tuple[IRI, ...], bool], Schema] = field(default_factory=dict)
    """The schemas for entailment that were read so far: by graphs, and whether the default one."""

    @property
    def schema(self) -> str:
        """The size of the schemas, as text; empty without entailment."""
        return "; ".join(dict.fromkeys(each.describe() for each in self.schemas.values()))


@dataclass(frozen=True)
class TimeSlab:
    """The part of time for which a plan is computed, if not for all of time.

    Windows emit the parts of validities within `[begin, end)`. Windows that count elements continue
    from `ranks`: the number of elements of each window before the first element of the input.
    Operators over events with an optional side continue from its `evidence` before `begin`.
    """

    begin: int = 0
    end: int = INFINITY
    ranks: Mapping[w.ElementWindow, int] = field(default_factory=dict)
    evidence: Mapping[Plan, Batch] = field(default_factory=dict)
    first: tuple[int, int] | None = None
    """The first instants of the whole input and of the horizon; None if the slab has all of it."""


class Lowered(NamedTuple):
    """An operator, and the ranking of its rows if they are ordered."""

    operator: Operator
    ranking: Ranking | None = None

    @property
    def plain(self) -> Operator:
        """The operator without the columns that only order its rows."""
        if self.ranking is None:
            return self.operator
        return projected_to(self.operator, self.ranking.others(self.operator.names))


class At(NamedTuple):
    """The place of a plan in a query: its outer rows, and the graph of each outer `GRAPH ?g`."""

    outer: Outer | None = None
    graphs: tuple[tuple[Variable, IRI], ...] = ()
    events: int | None = None
    """Below a Detect, the bound of the rows (algebra/bounds.py); None elsewhere."""
    rules: RuleScope | None = None
    """The rules whose triples patterns match."""
    stratum: int | None = None
    """The recursive stratum of the rules to which the plan belongs."""

    def below_names_of(self, *variables: Variable) -> At:
        """Return the place below an operator that binds these variables: it hides outer ones."""
        return self if self.outer is None else self._replace(outer=self.outer.without(variables))

    def of_inputs(self, node: Plan) -> tuple[At, ...]:
        """Return the places of the inputs of an operator over events at this place."""
        assert self.events is not None
        return tuple(self._replace(events=bound) for bound in bounds_below(node, self.events))

    def of_input(self, node: Plan) -> At:
        """Return the place of the first input of an operator at this place."""
        if self.events is not None:
            return self.of_inputs(node)[0]
        match node:
            case event.Detect():
                return self._replace(events=INFINITY)
            case shape.Extend(variable) | group.Annotate(variable):
                return self.below_names_of(variable)
            case group.Aggregation():
                return self.below_names_of(*(variable for variable, _ in node.aggregates))
            case shape.Projection(variables) if self.outer is not None:
                return self._replace(outer=self.outer.within(variables))
        return self


HERE = At()


def lower(
    plan: Plan, terms: TermDictionary, run: Run, catalog: Catalog, slab: TimeSlab | None = None
) -> Lowered:
    """Return the physical plan of a logical one, for all of time or for a slab of it.

    >>> from streamsparql.algebra.shape import UNIT
    >>> type(lower(UNIT, TermDictionary(), Run(), Catalog()).operator).__name__
    'Always'
    """
    with recursion_headroom():
        return Lowering(terms, run, catalog, slab, times_read(plan)).plan(plan, HERE)


PlanPlace = tuple[Plan, At, Operator | None]
"""A plan, its place without outer rows, and the queries that share the plan."""


def place_of(node: Plan, at: At) -> PlanPlace | None:
    """Return what determines the operators of a plan; None among the rows of an EXISTS."""
    if at.outer is None:
        return node, _without_bound(node, at), None
    if not at.outer.late:
        return None
    return node, _without_bound(node, at._replace(outer=None)), at.outer.rows


class Lowering:
    """The state of one lowering."""

    def __init__(
        self,
        terms: TermDictionary,
        run: Run,
        catalog: Catalog,
        slab: TimeSlab | None,
        times: Sequence[str],
    ) -> None:
        self.terms, self.run, self.catalog, self.slab = terms, run, catalog, slab
        self.times = times
        """The columns of the times of events that are read above a Detect."""
        self._lowered: MutableMapping[PlanPlace, Lowered] = {}
        self.derived: dict[Any, Operator] = {}
        """The triples of rules, by the rule and its place."""
        self._rule_scopes: dict[Closure, RuleScope] = {}
        self._outer_sets = 0
        self.row_numbers: Mapping[int, int] = {}
        """Other numbers of sets of outer rows: those of the plan of a checkpoint."""
        self.joins = JoinLowering(self)

    def plan(self, node: Plan, at: At) -> Lowered:
        """Return the operators of a plan; equal plans at equal places share them.

        First inputs are lowered in a loop: a chain of OPTIONALs is a left-deep tree, as deep as the
        chain is long.
        """
        above: list[tuple[Plan, At]] = []
        at = late(node, at)
        lowered = self._known(node, at)
        while lowered is None and type(node) in _above(at) and node not in self.catalog.results:
            together = None if at.events is not None else self.joins.together(node, at)
            if together is not None:
                lowered = self._store(node, at, self.made(together))
                break
            above.append((node, at))
            below = node.inputs[0]
            node, at = below, late(below, at.of_input(node))
            lowered = self._known(node, at)
        if lowered is None:
            lowered = self._store(node, at, self._lower_from_leaf(node, at))
        for node, at in reversed(above):
            lowered = self._store(node, at, _above(at)[type(node)](self, node, at, lowered))
        return lowered

    def rows(self, node: Plan, at: At) -> Operator:
        """Return the operators of a plan, without the columns that only order its rows."""
        return self.plan(node, at).plain

    def precomputed(self, node: Plan, at: At) -> Operator:
        """Return the rows of a static plan, which are computed now if the graphs are known."""
        if not self.catalog.known or at.outer is not None:
            return self.rows(node, at)
        shared, self._lowered = self._lowered, {}  # what runs now is not part of the pipeline
        try:
            lowered = self.rows(node, at)
        finally:
            self._lowered = shared
        if not isinstance(lowered, Always):
            lowered = Always(computed_rows(lowered).project(lowered.names), "precomputed")
        return self._store(node, at, Lowered(lowered)).operator

    def stream(self, name: str, stamp: str | None) -> Operator:
        """Return the items of a stream, with their stamps in a hidden column if it has a name."""
        return StreamAccess(name, stamp)

    def _known(self, node: Plan, at: At) -> Lowered | None:
        if at.rules is not None and at.stratum is not None:
            if not at.rules.depends(node, at.stratum):
                return Lowered(enter_stratum(at, self.rows(node, at._replace(stratum=None))))
        place = place_of(node, at)
        return None if place is None else self._lowered.get(place)

    def rule_scope(self, node: Closure) -> RuleScope:
        """Return the rules of a closure."""
        if node not in self._rule_scopes:
            self._rule_scopes[node] = RuleScope(node)
        return self._rule_scopes[node]

    def _store(self, node: Plan, at: At, lowered: Lowered) -> Lowered:
        """Record the node that an operator computes; memoise it, except for rows of an EXISTS."""
        if lowered.operator.node is None and isinstance(node, lowered.operator.implements):
            lowered.operator.node = node
        if reason := self.joins.reason(node):
            lowered.operator.reason = reason
        place = place_of(node, at)
        if place is not None:
            self._lowered[place] = lowered
        return lowered

    def _lower_from_leaf(self, node: Plan, at: At) -> Lowered:
        """Lower a plan that `LOWER_ABOVE` does not contain, or whose rows are precomputed."""
        if at.events is not None and not isinstance(node, _OVER_EVENTS):
            raise EngineError(f"{type(node).__name__} is not defined over events")
        match node:
            case _ if node in self.catalog.results:
                rows: Operator = Always(self.catalog.results[node], "precomputed")
            case p.Path():
                return Lowered(self._path(node, at))
            case match.TriplePatternMatching():
                rows = self._matching(node, at)
            case w.Window() | Align():
                rows = self._window(node, at)
            case shape.Table() if parameters_in(node):
                return Lowered(self.union(tables_of_outer_rows(self, node, at)))
            case shape.Table():
                rows = self.static(self._table(node), at)
            case _:
                return LOWER[type(node)](self, node, at)
        return Lowered(rows if at.outer is None else at_leaf(rows, at.outer, self.terms))

    # -- leaves, which bind variables

    def _matching(self, node: match.TriplePatternMatching, at: At) -> Operator:
        if parameters_in(node):
            return self.rows(without_parameters(node), At(graphs=at.graphs))
        sources = node.input.sources if isinstance(node.input, access.Merge) else (node.input,)
        matchings: list[Operator] = []
        for source in sources:
            alone = match.TriplePatternMatching(node.pattern, source, node.stamps)
            if alone in self.catalog.results:
                assert at.events is None
                matchings.append(Always(self.catalog.results[alone], "precomputed"))
                continue
            matchings.append(self._matching_of(alone, at))
        return self.union(
            matchings if at.rules is None else with_derived(self, node, matchings, at)
        )

    def _matching_of(self, node: match.TriplePatternMatching, at: At) -> Operator:
        """Return the matching of one source; a pattern is matched without other entailed triples.

        Static graphs are a set, and so are the matches in what they entail.
        """
        matching: Operator
        match node.input:
            case shape.Distinct(entailment.Entailed() as entailed) if is_static(entailed):
                of_graph = match.TriplePatternMatching(node.pattern, entailed, node.stamps)
                distinct = lower_distinct_rows(self, self._matching_of(of_graph, at))
                if isinstance(distinct, Always):
                    distinct.node = node
                return distinct
            case entailment.Entailed(data, schema):
                rows, known = self.data(data, at), self.schema(schema, at)
                matching = EntailedMatching(rows, node.pattern, known, node.stamps)
            case source:
                rows = self.data(source, at)
                matching = TriplePatternMatching(rows, node.pattern, self.terms, node.stamps)
        matching.node = node
        return self.fold(matching)

    def data(self, node: Plan, at: At) -> Operator:
        """Return the source of triple patterns, which does not depend on outer rows."""
        return self.rows(node, At(graphs=at.graphs, events=at.events))

    def schema(self, node: access.AccessGraph, at: At) -> Schema:
        """Return the schema in static graphs; all parts of a plan share it."""
        bound = dict(at.graphs)
        names = tuple(bound[x] if isinstance(x, Variable) else x for x in node.graphs)
        key = (names, node.background)
        if key not in self.catalog.schemas:
            graph = self.data(node, at._replace(events=None))
            assert isinstance(graph, Always)
            self.catalog.schemas[key] = Schema(graph.rows, self.terms)
        return self.catalog.schemas[key]

    def _window(self, node: w.Window | Align, at: At) -> Operator:
        data = self.data(node.input, at)
        if isinstance(node, Align):
            return AlignToReports(data, node)
        window = self._windowed(data, node)
        if self.slab is None:
            return window
        window.node = node
        if isinstance(window, ElementWindow):
            window.rank = self.slab.ranks.get(window.window, 0)
        return Clip(window, self.slab.begin, self.slab.end)

    def _windowed(self, data: Operator, node: w.Window) -> Operator:
        match node:
            case w.TimeWindow():
                return TimeWindow(data, node)
            case w.SlidingTupleWindow():
                return TupleWindow(data, node)
            case w.SteppedTupleWindow():
                return SteppedTupleWindow(data, node)
            case w.ElementWindow():
                return ElementWindow(data, node)
        raise EngineError(f"missing operator for {type(node).__name__}")

    def _table(self, node: shape.Table) -> Always:
        ids = [[self.id(term) for term in row] for row in node.rows]
        table = np.array(ids, np.int64).reshape(len(ids), len(node.variables))
        columns = {v.name: table[:, k].copy() for k, v in enumerate(node.variables)}
        return Always.of(columns, len(ids), "VALUES" if columns else "unit")

    def _path(self, node: p.Path, at: At) -> Operator:
        data = self.data(node.input, at)
        if data.names != TRIPLE:
            data = projected_to(data, TRIPLE)
        places = ((node.subject, FROM), (node.object, TO))
        fixed = [self._end(end, name, at) for end, name in places if not isinstance(end, Variable)]
        node = without_parameters(node)
        if at.outer is None:
            pairs = lower_path(node.path, data, _ends(fixed), self.terms)
            return self._connected(node, pairs)
        branches = []
        for known in _subsets(
            [n for n in ("subject", "object") if self._is_visible(node, n, at.outer)]
        ):
            outer, rows = self._with_bound_ends(node, known, at.outer)
            pairs = lower_path(node.path, data, _ends([*fixed, *rows]), self.terms)
            branches.append(at_leaf(self._connected(node, pairs), outer, self.terms))
        return self.union(branches)

    def _is_visible(self, node: p.Path, place: str, outer: Outer) -> bool:
        end = getattr(node, place)
        return isinstance(end, Variable) and bool(outer.seen([end.name]))

    def _with_bound_ends(
        self, node: p.Path, known: frozenset[str], outer: Outer
    ) -> tuple[Outer, list[Operator]]:
        """Return the outer rows that bind exactly these ends, and the ends as rows."""
        bound = {}
        for place in ("subject", "object"):
            if self._is_visible(node, place, outer):
                bound[outer.bindings[getattr(node, place).name]] = place in known
        rows = SelectBound(outer.rows, bound)
        names = {"subject": FROM, "object": TO}
        ends = {names[place]: outer.bindings[getattr(node, place).name] for place in sorted(known)}
        return outer._replace(rows=rows), [Rename(rows, {n: c}) for n, c in ends.items()]

    def _end(self, end: Term | Parameter, name: str, at: At) -> Operator:
        if isinstance(end, Parameter):
            assert at.outer is not None
            return Rename(at.outer.rows, {name: at.outer.parameters[end.name]})
        return Always.of({name: np.array([self.id(end)], np.int64)}, 1)

    def _connected(self, node: p.Path, pairs: Operator) -> Operator:
        """Return the pairs of a path as solutions: a column for each end that is a variable."""
        columns: dict[str, str] = {}
        equal: list[tuple[str, str | int]] = []
        for end, name in ((node.subject, FROM), (node.object, TO)):
            if not isinstance(end, Variable):
                equal.append((name, self.id(end)))
            elif end.name in columns:
                equal.append((columns[end.name], name))
            else:
                columns[end.name] = name
        return Rename(SelectEqual(pairs, equal) if equal else pairs, columns)

    # -- shared helpers

    def static(self, rows: Always, at: At) -> Always:
        """Return static rows, with their SINCE below a Detect."""
        if at.events is None:
            return rows
        return Always(with_since(rows.rows), rows.what)

    def made(self, operator: Operator, ranking: Ranking | None = None) -> Lowered:
        """Return a lowered operator, or its rows if they are known."""
        return Lowered(self.fold(operator), ranking)

    def over(self, rows: Lowered, operator: Operator) -> Lowered:
        """Return an operator that keeps the order of its input rows."""
        return rows._replace(operator=self.fold(operator))

    def fold(self, operator: Operator) -> Operator:
        """Return the operator, or its rows if they are known: static data is computed once."""
        static = isinstance(operator, Stateless) and isinstance(operator.inputs[0], Always)
        if static and self.catalog.known:
            assert isinstance(operator, Stateless)
            assert isinstance(operator.inputs[0], Always)
            rows = operator.inputs[0].rows
            output = operator.nothing()
            if len(rows):
                with naming(operator.label):
                    output = operator.apply(rows)
            known = Always(output.project(operator.names), operator.facts())
            known.node = operator.node
            return known
        return operator

    def union(self, branches: Sequence[Operator]) -> Operator:
        """Return the union of the branches that can have rows."""
        if len(branches) == 1:
            return branches[0]
        names = {name for each in branches for name in each.names}
        alive = [each for each in branches if not self._is_empty(each)]
        if len(alive) == 1 and set(alive[0].names) == names:
            return alive[0]
        return Union(*branches)

    def _is_empty(self, operator: Operator) -> bool:
        """Return whether an operator is known to have no rows."""
        return self.catalog.known and isinstance(operator, Always) and not len(operator.rows)

    def compiled(self, expression: Expression, at: At) -> BatchExpression:
        """Compile an expression, which also reads the outer row of its place."""
        reading = expression if at.outer is None else reading_columns(expression, at.outer)
        compiled = compile_expression(reading, self.terms, self.run)
        if at.outer is None:
            return compiled
        names = {v.name for v in expression.walk() if isinstance(v, Variable)}
        seen = at.outer.seen(sorted(names))
        return Sighted(compiled, seen) if seen else compiled

    def id(self, term: Term | Parameter | None) -> int:
        """Return the id of a term of the query, 0 for None."""
        assert not isinstance(term, Parameter), f"{term} has no value"
        return 0 if term is None else self.terms.id_of(term, keep=True)

    def new_row(self) -> int:
        """Return a number for a new set of outer rows; the names of their columns contain it."""
        self._outer_sets += 1
        return self.row_numbers.get(self._outer_sets, self._outer_sets)


def _above(at: At) -> dict[type[Plan], LowerAbove]:
    """Return the functions that lower nodes above their first input at a place."""
    return LOWER_ABOVE if at.events is None else LOWER_EVENTS


_OVER_EVENTS = (
    access.AccessStream,
    access.AccessGraph,
    entailment.Entailed,
    Closure,
    graph.Graph,
    match.TriplePatternMatching,
    shape.Table,
)
"""The nodes over events that `LOWER_EVENTS` does not contain; a bound does not affect them."""


def _without_bound(node: Plan, at: At) -> At:
    """Return the place of a plan, without a bound on events that does not affect its operators."""
    if at.events is None or not isinstance(node, _OVER_EVENTS):
        return at
    if at.rules is not None and isinstance(node, match.TriplePatternMatching):
        if at.rules.feeders(node):
            return at
    return at._replace(events=INFINITY, rules=None, stratum=None)


def _ends(rows: Sequence[Operator]) -> PathEnds:
    return PathEnds(
        tuple(each for each in rows if each.names == (FROM,)),
        tuple(each for each in rows if each.names == (TO,)),
    )


def _subsets(names: Sequence[str]) -> list[frozenset[str]]:
    subsets = [frozenset[str]()]
    for name in names:
        subsets += [each | {name} for each in subsets]
    return subsets
