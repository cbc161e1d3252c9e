"""What of a plan Spark works out beforehand over large static graphs, and how.

A part of a plan that reads static graphs alone gives the same rows at every instant. Where such a
graph is large, tasks are not given the graph, but the rows of those parts: `chosen` picks them, and
`Joins` makes a DataFrame of each. A term has one text in normal form, so that equal texts are equal
terms, and Spark's own joins are those of SPARQL wherever the variables that are shared are bound.

A pattern that is joined with streams gives only the rows that can find a partner in the static
parts beside it. What reads the graph in the tasks (a pattern by itself, a path, DESCRIBE, `GRAPH
?g`) gets just the triples of it that it can look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

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

Name = str | None
"""A static graph: an IRI, or None, the default graph."""
Patterns = tuple[TriplePattern, ...] | None
"""The patterns that a triple has to match one of to be of use; None where all are."""

PLACES = ("s", "p", "o")
HIGHEST = 50
"""Plans and conditions of at most this height are sent to Spark."""


# -- What Spark works out -----------------------------------------------------------------------


@dataclass
class Choice:
    """What is worked out beforehand, and what tasks read of the graphs beside it."""

    plans: dict[Plan, int] = field(default_factory=dict)
    """The plans, with how often each is looked up."""
    partners: dict[Plan, list[Plan]] = field(default_factory=dict)
    """The static plans that all rows of a plan have to find a partner in."""
    needs: dict[Name, Patterns] = field(default_factory=dict)
    """What is read of a graph by what is none of the plans."""
    reasons: dict[Name, dict[str, None]] = field(default_factory=dict)
    """Who reads it."""

    def patterns(self, name: Name) -> Patterns:
        """What is read of a graph at all."""
        found = self.needs.get(name, ())
        every = (*self.plans, *(x for partners in self.partners.values() for x in partners))
        return None if found is None else _united(found, *(_patterns(x, name) for x in every))


def chosen(plan: Plan, large: Iterable[Name], named: Iterable[str] = ()) -> Choice:
    """What Spark works out of a plan where these graphs are large, of those that are `named`.

    >>> from streamsparql.algebra.rules.sketch import sketch, streamed, triples
    >>> both = join.Join(streamed("?x p ?y"), join.Join(triples("?y q ?z"), triples("?z r ?v")))
    >>> [sketch(part) for part in chosen(both, [None]).plans]
    ['Join(?y q ?z, ?z r ?v)']
    """
    return _Choosing(frozenset(large), tuple(named)).choose(plan)


class _Choosing:
    def __init__(self, large: frozenset[Name], named: Sequence[str]) -> None:
        self._large = large
        self._named = named
        self._found = Choice()
        self._groups: list[list[tuple[Plan, bool]]] = []

    def choose(self, plan: Plan) -> Choice:
        pending: list[Plan] = [plan]
        while pending:
            node = pending.pop()
            if self._is_chosen(node):
                self._look_up(node)
                continue
            match node:
                case TriplePatternMatching():
                    for source in _sources(node.input):
                        self._pattern(node, source)
                    continue
                case path.Path():
                    for name in self._large_in(node.input):
                        self._need(name, _links(node.path), "a property path")
                    continue
                case graph.Describe():
                    for name in self._large_in(node.data):
                        self._need(name, None, "DESCRIBE")
                    pending.append(node.input)
                    continue
                case match.BasicGraphPattern() | join.Join():
                    self._groups.append(self._joined(node))
            pending.extend(reversed(node.inputs))
        self._reduce()
        self._keep_joins()
        return self._found

    def _is_chosen(self, node: Plan) -> bool:
        return works(node) and bool(self._large_in(node))

    def _look_up(self, node: Plan) -> None:
        self._found.plans[node] = self._found.plans.get(node, 0) + 1

    def _pattern(self, node: TriplePatternMatching, source: Plan) -> None:
        """A pattern, where its source is one of several, or the graph of `GRAPH ?g`."""
        alone = _over(node, source)
        if self._is_chosen(alone):
            self._look_up(alone)
        else:
            reason = _AT_ANY if any(map(_of_variable, source.walk())) else _MERGED
            for name in self._large_in(source):
                self._need(name, (node.pattern,), reason)

    def _need(self, name: Name, patterns: Patterns, reason: str) -> None:
        known = self._found.needs.get(name, ())
        both = None if known is None or patterns is None else _united(known, patterns)
        self._found.needs[name] = both
        self._found.reasons.setdefault(name, {})[reason] = None

    def _large_in(self, plan: Plan) -> list[Name]:
        found: dict[Name, None] = {}
        for node in plan.walk():
            if isinstance(node, access.AccessGraph):
                found.update(dict.fromkeys(_names(node, self._named)))
        return [name for name in found if name in self._large]

    # -- partners

    def _joined(self, node: Plan) -> list[tuple[Plan, bool]]:
        """What is joined, through nested joins too; whether each is static for itself."""
        found: list[tuple[Plan, bool]] = []
        pending: list[Plan] = [node]
        while pending:
            part = pending.pop()
            if works(part):
                found.append((part, True))
            elif isinstance(part, match.BasicGraphPattern | join.Join):
                pending.extend(part.inputs)
            elif isinstance(part, TriplePatternMatching):
                alone = (_over(part, source) for source in _sources(part.input))
                found += [(one, False) for one in alone if self._is_chosen(one)]
        return found

    def _reduce(self) -> None:
        """Finds the partners of plans that are looked up once: in one place, in one join."""
        for group in self._groups:
            for one, _ in group:
                if self._found.plans.get(one) == 1 and one not in self._found.partners:
                    others = [x for x, static in group if static and x is not one]
                    partners = [x for x in others if _shared(one, x)]
                    if partners:
                        self._found.partners[one] = partners

    def _keep_joins(self) -> None:
        """What is one pattern and no join is left to the tasks, with the triples that match."""
        for plan in list(self._found.plans):
            if isinstance(plan, TriplePatternMatching) and plan not in self._found.partners:
                del self._found.plans[plan]
                for name in self._large_in(plan):
                    self._need(name, (plan.pattern,), _ALONE)


_ALONE = "single patterns"
_AT_ANY = "GRAPH with a variable"
_MERGED = "patterns over the set of what streams and graphs hold"


def _of_variable(node: Node) -> bool:
    """Whether a variable says which graph is read."""
    if not isinstance(node, access.AccessGraph):
        return False
    return any(isinstance(name, Variable) for name in node.graphs)


def _sources(plan: Plan) -> tuple[Plan, ...]:
    return plan.sources if isinstance(plan, access.Merge) else (plan,)


def _over(node: TriplePatternMatching, source: Plan) -> TriplePatternMatching:
    """The pattern over one of its sources, as the lowering asks for it."""
    return TriplePatternMatching(node.pattern, source, node.stamps)


def _names(node: access.AccessGraph, named: Iterable[str]) -> Iterator[Name]:
    """The graphs that are read; any of the named ones where a variable says which."""
    for name in node.graphs:
        if isinstance(name, IRI):
            yield name.value
        else:
            yield from named
    if node.background:
        yield None


def _patterns(plan: Plan, name: Name) -> Patterns:
    """The patterns of a plan that read a graph."""
    found = [
        node.pattern
        for node in plan.walk()
        if isinstance(node, TriplePatternMatching)
        and any(
            name in _names(source, ())
            for source in _sources(node.input)
            if isinstance(source, access.AccessGraph)
        )
    ]
    return _united(found)


def _united(*patterns: Iterable[TriplePattern] | None) -> Patterns:
    found: dict[TriplePattern, None] = {}
    for some in patterns:
        if some is None:
            return None
        found.update(dict.fromkeys(some))
    return tuple(found)


def _links(way: path.PathExpression) -> Patterns:
    """The patterns of the triples that a path goes along; None where it looks at all of them.

    >>> p, q = path.Link(IRI("p")), path.Link(IRI("q"))
    >>> [str(x.predicate) for x in _links(path.OneOrMore(path.Sequence(p, path.Inverse(q))))]
    ['<p>', '<q>']
    >>> _links(path.ZeroOrMore(p))
    """
    found = []
    for part in way.walk():
        if isinstance(part, path.ZeroOrMore | path.ZeroOrOne | path.NegatedSet):
            return None
        if isinstance(part, path.Link):
            found.append(TriplePattern(Variable("s"), part.predicate, Variable("o")))
    return _united(found)


# -- Which plans Spark can work out -------------------------------------------------------------


def works(plan: Plan) -> bool:
    """Whether Spark can work out a plan: patterns over static graphs, and joins of such on keys.

    What is joined has variables in common, which both sides always bind. Filters read nothing but
    what is always bound below them, so that the outer row of an EXISTS adds nothing to it.

    >>> from streamsparql.algebra.rules.sketch import streamed, triples
    >>> one, other = triples("?x p ?y"), triples("?y q ?z")
    >>> works(join.Join(one, other)), works(join.Join(one, triples("?a q ?b")))
    (True, False)
    >>> works(join.LeftJoin(one, other)), works(streamed("?x p ?y"))
    (False, False)
    """
    return plan.fold(_height, keep="_on_spark") > 0


def _height(node: Node, parts: list[int]) -> int:
    """How high the tree of a plan that works is; 0 where it does not, or is too high to be sent."""
    height = 1 + max(parts, default=0)
    if height > HIGHEST or not all(parts):
        return 0
    return height if not isinstance(node, Plan) or _works(node) else 0


def _works(node: Plan) -> bool:
    match node:
        case access.AccessGraph():
            return not _of_variable(node)
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
    """The plans, each after one that it shares variables with; None where that cannot be.

    >>> from streamsparql.algebra.rules.sketch import sketch, triples
    >>> order = joining_order([triples("?x p ?y"), triples("?z q ?v"), triples("?y r ?z")])
    >>> [sketch(plan) for plan in order]
    ['?x p ?y', '?y r ?z', '?z q ?v']
    """
    found, left = [plans[0]], list(plans[1:])
    while left:
        following = next((x for x in left if any(_shared(x, y) for y in found)), None)
        if following is None:
            return None
        left.remove(following)
        found.append(following)
    fine = all(
        set(_shown(one)) & set(_shown(other)) == set(_shared(one, other))
        for k, one in enumerate(plans)
        for other in plans[:k]
    )
    return tuple(found) if fine else None


def _shown(plan: Plan) -> tuple[Variable, ...]:
    """The variables that rows may bind, without stamps: what is static has none."""
    return tuple(v for v in scope(plan).possible if not v.stamp)


def _shared(one: Plan, other: Plan) -> tuple[Variable, ...]:
    """The variables that all rows of both bind."""
    theirs = set(scope(other).certain)
    return tuple(v for v in scope(one).certain if v in theirs)


# -- Working it out -----------------------------------------------------------------------------


class Rows(NamedTuple):
    """A DataFrame of solutions, with the column of each variable."""

    frame: DataFrame
    columns: Mapping[Variable, str]


class Joins:
    """DataFrames of plans, over DataFrames of the static graphs' triples."""

    def __init__(
        self, spark: SparkSession, graphs: Mapping[Name, DataFrame], started: int = 0
    ) -> None:
        self._spark = spark
        self._graphs = graphs
        self._started = started
        """What NOW() is."""
        numbers = count()
        self._names: Callable[[Variable], str] = _once(lambda _: f"v{next(numbers)}")

    def solutions(self, plan: Plan, partners: Sequence[Plan] = ()) -> Rows:
        """The rows of a plan that find a partner in each of some others."""
        found = self.rows(plan)
        for partner in partners:
            shared = [found.columns[v] for v in _shared(plan, partner)]
            there = self.rows(partner).frame.select(*shared).distinct()
            found = found._replace(frame=found.frame.join(there, on=shared, how="left_semi"))
        return found

    def rows(self, plan: Plan) -> Rows:
        """The rows of a plan that `works`."""
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
                return self._shown(self.rows(plan.input), plan.variables)
            case shape.Distinct():
                found = self.rows(plan.input)
                return found._replace(frame=found.frame.distinct())
            case shape.Reduced():
                return self.rows(plan.input)
            case shape.Table():
                return self._table(plan)
        raise AssertionError(plan)

    def _matching(self, plan: TriplePatternMatching) -> Rows:
        """A pattern. A graph is a set, and so are the matches of a pattern in it."""
        assert isinstance(plan.input, access.AccessGraph)
        names = dict.fromkeys(_names(plan.input, ()))
        frames = [self._graphs[name] for name in names if name in self._graphs]
        frames = frames or [self._spark.createDataFrame([], "s string, p string, o string")]
        found = reduce(lambda one, other: one.unionAll(other), frames)
        found = found.where(matching(plan.pattern))
        places: dict[Variable, str] = {}
        for column, place in zip(PLACES, plan.pattern, strict=True):
            if isinstance(place, Variable):
                places.setdefault(place, column)
        columns = {variable: self._names(variable) for variable in places}
        renamed = [found[place].alias(columns[v]) for v, place in places.items()]
        return Rows(_selected(found, renamed).distinct(), columns)

    def _join(self, left: Rows, right: Rows) -> Rows:
        shared = [column for v, column in left.columns.items() if v in right.columns]
        return Rows(
            left.frame.join(right.frame, on=shared, how="inner"), {**left.columns, **right.columns}
        )

    def _union(self, plan: join.Union) -> Rows:
        shown = _shown(plan)
        frames = [self._shown(self.rows(branch), shown) for branch in plan.branches]
        frame = reduce(lambda one, other: one.unionAll(other), (rows.frame for rows in frames))
        return frames[0]._replace(frame=frame)

    def _shown(self, rows: Rows, variables: Iterable[Variable]) -> Rows:
        """Rows with just these columns; what is not bound is null."""
        from pyspark.sql import functions

        columns = {v: self._names(v) for v in variables if not v.stamp}
        picked = [
            rows.frame[column]
            if v in rows.columns
            else functions.lit(None).cast("string").alias(column)
            for v, column in columns.items()
        ]
        return Rows(_selected(rows.frame, picked), columns)

    def _filter(self, plan: filter.Filter) -> Rows:
        found = self.rows(plan.input)
        seen = {v.name: column for v, column in found.columns.items()}
        passing = partial(rows_passing, plan.condition, seen, self._started)
        return found._replace(frame=found.frame.mapInArrow(passing, found.frame.schema))

    def _table(self, plan: shape.Table) -> Rows:
        columns = {v: self._names(v) for v in plan.variables}
        schema = ", ".join(f"{column} string" for column in columns.values())
        made = [[text_of(term) for term in row] for row in plan.rows]
        if not columns:
            made, schema = [["unit"] for _ in made], "unit string"
        return Rows(self._spark.createDataFrame(made, schema), columns)


def _once(made: Callable[[Variable], str]) -> Callable[[Variable], str]:
    known: dict[str, str] = {}

    def name(variable: Variable) -> str:
        if variable.name not in known:
            known[variable.name] = made(variable)
        return known[variable.name]

    return name


def _selected(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """The columns, or one that says nothing: rows with no variable are rows all the same."""
    from pyspark.sql import functions

    return frame.select(*columns) if columns else frame.select(functions.lit("unit").alias("unit"))


def matching(pattern: TriplePattern) -> Column:
    """Whether a triple matches a pattern."""
    from pyspark.sql import functions

    found: Column = functions.lit(True)
    first: dict[Variable, str] = {}
    for column, place in zip(PLACES, pattern, strict=True):
        if not isinstance(place, Variable):
            found = found & (functions.col(column) == functions.lit(text_of(place)))
        elif first.setdefault(place, column) != column:
            found = found & (functions.col(first[place]) == functions.col(column))
    return found


def text_of(term: Term | None) -> str | None:
    """A term in normal form, as the dictionary writes it.

    >>> text_of(IRI("p"))
    '<p>'
    """
    terms = TermDictionary()
    text: str | None = terms.texts(terms.ids_of([term]))[0].as_py()
    return text


# -- In tasks -----------------------------------------------------------------------------------


def rows_passing(
    condition: Expression,
    columns: Mapping[str, str],
    started: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows for which a condition is true; `columns` are those of its variables, by name.

    >>> from streamsparql.algebra.rules.sketch import equals
    >>> rows = pa.RecordBatch.from_pydict({"v0": ["<a>", "<b>"]})
    >>> [batch.num_rows for batch in rows_passing(equals("?x", "a"), {"x": "v0"}, 0, [rows])]
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


def uses(plans: Iterable[Plan]) -> Counter[Name]:
    """How often each graph is read by the plans."""
    found: Counter[Name] = Counter()
    for plan in plans:
        for node in plan.walk():
            if isinstance(node, access.AccessGraph):
                found.update(_names(node, ()))
    return found
