"""Joins over large static graphs: the parts of a plan that Spark computes beforehand.

A part of a plan that reads static graphs alone has the same rows at every instant. Where such a
graph is large, the rows of those parts are sent to the tasks instead of the graph:
`choose_static_plans` selects them, and `StaticJoins` creates a DataFrame for each. Terms are in
normal form, so that equal strings are equal terms, and Spark's own joins are those of SPARQL
wherever the shared variables are bound.

A pattern that is joined with streams is reduced to the rows with a match in the static parts of the
same join (a semi-join). Readers of the graph in the tasks (a single pattern, a path, DESCRIBE,
`GRAPH ?g`) receive only the triples that they can use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from streamsparql.algebra import access, filter, graph, join, match, path, shape
from streamsparql.algebra.functions import Run
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import variables_in
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, Term
from streamsparql.algebra.xsd.values import date_time_literal
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import compile_expression
from streamsparql.physical.operator import INFINITY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

GraphName = str | None
"""A static graph: an IRI, or None for the default graph."""
Patterns = tuple[TriplePattern, ...] | None
"""Patterns, of which a useful triple matches at least one; None if all triples are useful."""

PLACES = ("s", "p", "o")
MAX_HEIGHT = 50
"""The greatest height of plans and conditions that are sent to Spark."""


# -- The choice of plans ------------------------------------------------------------------------


@dataclass
class StaticChoice:
    """The plans that Spark computes, and the patterns that tasks still read of large graphs."""

    plans: dict[Plan, int] = field(default_factory=dict)
    """The plans, each with the number of its uses."""
    partners: dict[Plan, list[Plan]] = field(default_factory=dict)
    """The static plans in which all rows of a plan must have a match."""
    needs: dict[GraphName, Patterns] = field(default_factory=dict)
    """The patterns that tasks read of each graph."""
    reasons: dict[GraphName, dict[str, None]] = field(default_factory=dict)
    """The readers of each graph in the tasks, as text."""

    def patterns(self, name: GraphName) -> Patterns:
        """Return the patterns that Spark and the tasks read of a graph."""
        needed = self.needs.get(name, ())
        every = (*self.plans, *(x for partners in self.partners.values() for x in partners))
        return None if needed is None else _union(needed, *(_patterns(x, name) for x in every))


class EntailingPatterns(Protocol):
    """The schema for entailment: what else a reader of a pattern needs."""

    @property
    def statements(self) -> tuple[TriplePattern, ...]:
        """The patterns of the statements of the schema."""

    def entailing(self, patterns: Patterns) -> Patterns:
        """Return patterns of all triples that entail a match of one of some patterns."""


def choose_static_plans(
    plan: Plan,
    large: Iterable[GraphName],
    named: Iterable[str] = (),
    schema: EntailingPatterns | None = None,
) -> StaticChoice:
    """Choose the parts of a plan that Spark computes, where these graphs are large.

    `named` are all graphs that GRAPH with a variable reads; `schema` is that for entailment.

    >>> from streamsparql.algebra.rules.sketch import sketch, streamed, triples
    >>> both = join.Join(streamed("?x p ?y"), join.Join(triples("?y q ?z"), triples("?z r ?v")))
    >>> [sketch(part) for part in choose_static_plans(both, [None]).plans]
    ['Join(?y q ?z, ?z r ?v)']
    """
    return _Chooser(frozenset(large), tuple(named), schema).choose(plan)


class _Chooser:
    """A walk over a plan that collects the choice."""

    def __init__(
        self,
        large: frozenset[GraphName],
        named: Sequence[str],
        schema: EntailingPatterns | None,
    ) -> None:
        self._large = large
        self._schema = schema
        self._named = named
        self._choice = StaticChoice()
        self._groups: list[list[tuple[Plan, bool]]] = []
        """The inputs of each join, with whether each is static."""

    def choose(self, plan: Plan) -> StaticChoice:
        pending: list[Plan] = [plan]
        while pending:
            node = pending.pop()
            if self._is_chosen(node):
                self._use(node)
                continue
            match node:
                case TriplePatternMatching():
                    for source in _sources(node.input):
                        self._add_pattern(node, source)
                    continue
                case path.Path():
                    patterns = self._entailing(_link_patterns(node.path))
                    for name in self._large_in(node.input):
                        self._need(name, patterns, "a property path")
                    continue
                case graph.Describe():
                    for name in self._large_in(node.data):
                        self._need(name, None, "DESCRIBE")
                    pending.append(node.input)
                    continue
                case match.BasicGraphPattern() | join.Join():
                    self._groups.append(self._join_inputs(node))
            pending.extend(reversed(node.inputs))
        self._find_partners()
        self._keep_joins()
        return self._choice

    def _is_chosen(self, node: Plan) -> bool:
        return is_supported(node) and bool(self._large_in(node))

    def _use(self, node: Plan) -> None:
        self._choice.plans[node] = self._choice.plans.get(node, 0) + 1

    def _add_pattern(self, node: TriplePatternMatching, source: Plan) -> None:
        """Add a pattern over one of several sources, or over the graph of `GRAPH ?g`."""
        alone = _over(node, source)
        if self._is_chosen(alone):
            self._use(alone)
        else:
            reason = _VARIABLE if any(map(_reads_variable, source.walk())) else _MERGED
            reason = reason if self._schema is None else _ENTAILED
            for name in self._large_in(source):
                self._need(name, self._entailing((node.pattern,)), reason)

    def _entailing(self, patterns: Patterns) -> Patterns:
        """Return the patterns of triples that entail a match, statements of the schema included."""
        if self._schema is None:
            return patterns
        entailing = self._schema.entailing(patterns)
        return None if entailing is None else _union(entailing, self._schema.statements)

    def _need(self, name: GraphName, patterns: Patterns, reason: str) -> None:
        known = self._choice.needs.get(name, ())
        both = None if known is None or patterns is None else _union(known, patterns)
        self._choice.needs[name] = both
        self._choice.reasons.setdefault(name, {})[reason] = None

    def _large_in(self, plan: Plan) -> list[GraphName]:
        names: dict[GraphName, None] = {}
        for node in plan.walk():
            if isinstance(node, access.AccessGraph):
                names.update(dict.fromkeys(graph_names(node, self._named)))
        return [name for name in names if name in self._large]

    # -- partners

    def _join_inputs(self, node: Plan) -> list[tuple[Plan, bool]]:
        """Return the inputs of nested joins, with whether each is static by itself."""
        inputs: list[tuple[Plan, bool]] = []
        pending: list[Plan] = [node]
        while pending:
            part = pending.pop()
            if is_supported(part):
                inputs.append((part, True))
            elif isinstance(part, match.BasicGraphPattern | join.Join):
                pending.extend(part.inputs)
            elif isinstance(part, TriplePatternMatching):
                alone = (_over(part, source) for source in _sources(part.input))
                inputs += [(each, False) for each in alone if self._is_chosen(each)]
        return inputs

    def _find_partners(self) -> None:
        """Record the partners of plans with one use: these are in one place of one join."""
        for group in self._groups:
            for plan, _ in group:
                if self._choice.plans.get(plan) == 1 and plan not in self._choice.partners:
                    others = [x for x, static in group if static and x is not plan]
                    partners = [x for x in others if _shared(plan, x)]
                    if partners:
                        self._choice.partners[plan] = partners

    def _keep_joins(self) -> None:
        """Leave single patterns without partners to the tasks, with the triples that match."""
        for plan in list(self._choice.plans):
            if isinstance(plan, TriplePatternMatching) and plan not in self._choice.partners:
                del self._choice.plans[plan]
                for name in self._large_in(plan):
                    self._need(name, (plan.pattern,), _SINGLE)


_SINGLE = "single patterns"
_VARIABLE = "GRAPH with a variable"
_ENTAILED = "patterns over entailed triples"
_MERGED = "patterns over the merged set of streams and graphs"


def _reads_variable(node: Node) -> bool:
    """Return whether a node reads the graph that a variable names."""
    if not isinstance(node, access.AccessGraph):
        return False
    return any(isinstance(name, Variable) for name in node.graphs)


def _sources(plan: Plan) -> tuple[Plan, ...]:
    return plan.sources if isinstance(plan, access.Merge) else (plan,)


def _over(node: TriplePatternMatching, source: Plan) -> TriplePatternMatching:
    """Return the pattern over one of its sources, equal to the plan that the lowering looks up."""
    return TriplePatternMatching(node.pattern, source, node.stamps)


def graph_names(node: access.AccessGraph, named: Iterable[str]) -> Iterator[GraphName]:
    """Yield the graphs that a node reads; for a variable, all of `named`."""
    for name in node.graphs:
        if isinstance(name, IRI):
            yield name.value
        else:
            yield from named
    if node.background:
        yield None


def _patterns(plan: Plan, name: GraphName) -> Patterns:
    """Return the patterns of a plan that read a graph."""
    patterns = [
        node.pattern
        for node in plan.walk()
        if isinstance(node, TriplePatternMatching)
        and any(
            name in graph_names(source, ())
            for source in _sources(node.input)
            if isinstance(source, access.AccessGraph)
        )
    ]
    return _union(patterns)


def _union(*patterns: Iterable[TriplePattern] | None) -> Patterns:
    union: dict[TriplePattern, None] = {}
    for each in patterns:
        if each is None:
            return None
        union.update(dict.fromkeys(each))
    return tuple(union)


def _link_patterns(expression: path.PathExpression) -> Patterns:
    """Return the patterns of the triples that a path can follow; None if it needs all triples.

    >>> p, q = path.Link(IRI("p")), path.Link(IRI("q"))
    >>> sequence = path.OneOrMore(path.Sequence(p, path.Inverse(q)))
    >>> [str(pattern.predicate) for pattern in _link_patterns(sequence)]
    ['<p>', '<q>']
    >>> _link_patterns(path.ZeroOrMore(p))
    """
    patterns = []
    for part in expression.walk():
        if isinstance(part, path.ZeroOrMore | path.ZeroOrOne | path.NegatedSet):
            return None
        if isinstance(part, path.Link):
            patterns.append(TriplePattern(Variable("s"), part.predicate, Variable("o")))
    return _union(patterns)


# -- The plans that Spark can compute -----------------------------------------------------------


def is_supported(plan: Plan) -> bool:
    """Return whether Spark can compute a plan: patterns over static graphs, and their equi-joins.

    The inputs of a join share variables, which both always bind. Filters read only variables that
    are always bound below them, so that the outer row of an EXISTS adds nothing to them.

    >>> from streamsparql.algebra.rules.sketch import streamed, triples
    >>> one, other = triples("?x p ?y"), triples("?y q ?z")
    >>> is_supported(join.Join(one, other)), is_supported(join.Join(one, triples("?a q ?b")))
    (True, False)
    >>> is_supported(join.LeftJoin(one, other)), is_supported(streamed("?x p ?y"))
    (False, False)
    """
    return plan.fold(_height, keep="_on_spark") > 0


def _height(node: Node, parts: list[int]) -> int:
    """Return the height of a supported plan; 0 if it is unsupported, or too high to be sent."""
    height = 1 + max(parts, default=0)
    if height > MAX_HEIGHT or not all(parts):
        return 0
    return height if not isinstance(node, Plan) or _is_supported_node(node) else 0


def _is_supported_node(node: Plan) -> bool:
    match node:
        case access.AccessGraph():
            return not _reads_variable(node)
        case TriplePatternMatching():
            return isinstance(node.input, access.AccessGraph)
        case match.BasicGraphPattern() | join.Join():
            return joining_order(node.inputs) is not None
        case filter.Filter():
            return variables_in(node.condition) <= set(scope(node.input).certain)
    return isinstance(
        node, join.Union | shape.Projection | shape.Distinct | shape.Reduced | shape.Table
    )


def joining_order(plans: Sequence[Plan]) -> tuple[Plan, ...] | None:
    """Order plans so that each shares variables with one before it; None if impossible.

    >>> from streamsparql.algebra.rules.sketch import sketch, triples
    >>> order = joining_order([triples("?x p ?y"), triples("?z q ?v"), triples("?y r ?z")])
    >>> [sketch(plan) for plan in order]
    ['?x p ?y', '?y r ?z', '?z q ?v']
    """
    order, left = [plans[0]], list(plans[1:])
    while left:
        following = next((x for x in left if any(_shared(x, y) for y in order)), None)
        if following is None:
            return None
        left.remove(following)
        order.append(following)
    all_bound = all(
        set(_possible(plan)) & set(_possible(other)) == set(_shared(plan, other))
        for k, plan in enumerate(plans)
        for other in plans[:k]
    )
    return tuple(order) if all_bound else None


def _possible(plan: Plan) -> tuple[Variable, ...]:
    """Return the variables that rows may bind; static rows have no variables for timestamps."""
    return tuple(v for v in scope(plan).possible if not v.stamp)


def _shared(plan: Plan, other: Plan) -> tuple[Variable, ...]:
    """Return the variables that all rows of both plans bind."""
    others = set(scope(other).certain)
    return tuple(v for v in scope(plan).certain if v in others)


# -- Computation --------------------------------------------------------------------------------


class SolutionFrame(NamedTuple):
    """A DataFrame of solutions, and the column of each variable."""

    frame: DataFrame
    columns: Mapping[Variable, str]


class StaticJoins:
    """The DataFrames of static plans, over DataFrames of the static graphs' triples."""

    def __init__(
        self, spark: SparkSession, graphs: Mapping[GraphName, DataFrame], started: int = 0
    ) -> None:
        self._spark = spark
        self._graphs = graphs
        self._started = started
        """The time of NOW(), in milliseconds."""
        numbers = count()
        self._names: Callable[[Variable], str] = _memoised(lambda _: f"v{next(numbers)}")

    def solutions(self, plan: Plan, partners: Sequence[Plan] = ()) -> SolutionFrame:
        """Return the rows of a plan that have a match in each of its partners."""
        solutions = self.rows(plan)
        for partner in partners:
            shared = [solutions.columns[v] for v in _shared(plan, partner)]
            keys = self.rows(partner).frame.select(*shared).distinct()
            matched = solutions.frame.join(keys, on=shared, how="left_semi")
            solutions = solutions._replace(frame=matched)
        return solutions

    def rows(self, plan: Plan) -> SolutionFrame:
        """Return the rows of a plan that Spark supports (`is_supported`)."""
        match plan:
            case TriplePatternMatching():
                return self._matching(plan)
            case match.BasicGraphPattern() | join.Join():
                order = joining_order(plan.inputs)
                assert order is not None
                return reduce(self._join, map(self.rows, order))
            case join.Union():
                return self._union(plan)
            case filter.Filter():
                return self._filter(plan)
            case shape.Projection():
                return self._project(self.rows(plan.input), plan.variables)
            case shape.Distinct():
                rows = self.rows(plan.input)
                return rows._replace(frame=rows.frame.distinct())
            case shape.Reduced():
                return self.rows(plan.input)
            case shape.Table():
                return self._table(plan)
        raise AssertionError(plan)

    def _matching(self, plan: TriplePatternMatching) -> SolutionFrame:
        """Return the matches of a pattern: a graph is a set, and so are its matches."""
        assert isinstance(plan.input, access.AccessGraph)
        names = dict.fromkeys(graph_names(plan.input, ()))
        frames = [self._graphs[name] for name in names if name in self._graphs]
        frames = frames or [self._spark.createDataFrame([], "s string, p string, o string")]
        triples = reduce(lambda frame, other: frame.unionAll(other), frames)
        triples = triples.where(match_condition(plan.pattern))
        places: dict[Variable, str] = {}
        for column, place in zip(PLACES, plan.pattern, strict=True):
            if isinstance(place, Variable):
                places.setdefault(place, column)
        columns = {variable: self._names(variable) for variable in places}
        renamed = [triples[place].alias(columns[v]) for v, place in places.items()]
        return SolutionFrame(_select(triples, renamed).distinct(), columns)

    def _join(self, left: SolutionFrame, right: SolutionFrame) -> SolutionFrame:
        shared = [column for v, column in left.columns.items() if v in right.columns]
        return SolutionFrame(
            left.frame.join(right.frame, on=shared, how="inner"), {**left.columns, **right.columns}
        )

    def _union(self, plan: join.Union) -> SolutionFrame:
        variables = _possible(plan)
        branches = [self._project(self.rows(branch), variables) for branch in plan.branches]
        frames = (rows.frame for rows in branches)
        union = reduce(lambda frame, other: frame.unionAll(other), frames)
        return branches[0]._replace(frame=union)

    def _project(self, rows: SolutionFrame, variables: Iterable[Variable]) -> SolutionFrame:
        """Return rows with exactly these variables; unbound ones are null."""
        from pyspark.sql import functions

        columns = {v: self._names(v) for v in variables if not v.stamp}
        selected = [
            rows.frame[column]
            if v in rows.columns
            else functions.lit(None).cast("string").alias(column)
            for v, column in columns.items()
        ]
        return SolutionFrame(_select(rows.frame, selected), columns)

    def _filter(self, plan: filter.Filter) -> SolutionFrame:
        rows = self.rows(plan.input)
        columns = {v.name: column for v, column in rows.columns.items()}
        passing = partial(filter_rows, plan.condition, columns, self._started)
        return rows._replace(frame=rows.frame.mapInArrow(passing, rows.frame.schema))

    def _table(self, plan: shape.Table) -> SolutionFrame:
        columns = {v: self._names(v) for v in plan.variables}
        schema = ", ".join(f"{column} string" for column in columns.values())
        rows = [[normal_text(term) for term in row] for row in plan.rows]
        if not columns:
            rows, schema = [["unit"] for _ in rows], "unit string"
        return SolutionFrame(self._spark.createDataFrame(rows, schema), columns)


def _memoised(new_name: Callable[[Variable], str]) -> Callable[[Variable], str]:
    names: dict[str, str] = {}

    def name_of(variable: Variable) -> str:
        if variable.name not in names:
            names[variable.name] = new_name(variable)
        return names[variable.name]

    return name_of


def _select(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Select columns; without any, a constant one, so that rows without variables are counted."""
    from pyspark.sql import functions

    return frame.select(*columns) if columns else frame.select(functions.lit("unit").alias("unit"))


def match_condition(pattern: TriplePattern) -> Column:
    """Return the condition that a triple matches a pattern."""
    from pyspark.sql import functions

    condition: Column = functions.lit(True)
    first: dict[Variable, str] = {}
    for column, place in zip(PLACES, pattern, strict=True):
        if not isinstance(place, Variable):
            condition = condition & (functions.col(column) == functions.lit(normal_text(place)))
        elif first.setdefault(place, column) != column:
            condition = condition & (functions.col(first[place]) == functions.col(column))
    return condition


def normal_text(term: Term | None) -> str | None:
    """Return a term in normal form, as a dictionary of terms writes it; None for None.

    >>> normal_text(IRI("p"))
    '<p>'
    """
    terms = TermDictionary()
    text: str | None = terms.texts(terms.ids_of([term]))[0].as_py()
    return text


# -- In tasks -----------------------------------------------------------------------------------


def filter_rows(
    condition: Expression,
    columns: Mapping[str, str],
    started: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows for which a condition is true; `columns` maps its variables to columns.

    `started` is the time of NOW(), in milliseconds.

    >>> from streamsparql.algebra.rules.sketch import equals
    >>> rows = pa.RecordBatch.from_pydict({"v0": ["<a>", "<b>"]})
    >>> [batch.num_rows for batch in filter_rows(equals("?x", "a"), {"x": "v0"}, 0, [rows])]
    [1]
    """
    terms = TermDictionary()
    passing = compile_expression(condition, terms, Run(date_time_literal(started)))
    names = [v.name for v in variables_in(condition)]
    for batch in batches:
        ids = {name: terms.encode(batch.column(columns[name])) for name in names}
        always = np.zeros(batch.num_rows, np.int64), np.full(batch.num_rows, INFINITY)
        yield batch.filter(pa.array(passing.holds(Batch(ids, *always))))
        if terms.due():
            passing.forget()
            terms.recycle([])


def count_reads(plans: Iterable[Plan]) -> Counter[GraphName]:
    """Count how often the plans read each graph."""
    reads: Counter[GraphName] = Counter()
    for plan in plans:
        for node in plan.walk():
            if isinstance(node, access.AccessGraph):
                reads.update(graph_names(node, ()))
    return reads
