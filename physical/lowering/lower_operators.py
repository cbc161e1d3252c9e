"""How each logical operator is computed: the rows of the table that `lower` goes by.

Each function gets the lowering, a node and where it stands, and returns operators. Under an outer
row (`At.outer`) all rows carry its columns: they are joined on, grouped by, projected along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any

from streamsparql.algebra import access, graph, group, join, match, shape
from streamsparql.algebra import filter as f
from streamsparql.algebra.align import Align
from streamsparql.algebra.expressions import Aggregate
from streamsparql.algebra.group import aggregate_value
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, BlankNode
from streamsparql.algebra.trampoline import Steps
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import BLANK_SORT
from streamsparql.physical.hidden import (
    ANSWER,
    NUMBER,
    argument_column,
    in_solution,
    is_stamp,
    outer_column,
    stamp_column,
    variable_of,
)
from streamsparql.physical.lowering.lower_exists import Outer, OuterRows, agree, reads, stands_alone
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.access import Always, StreamAccess
from streamsparql.physical.operators.columns import Constants, Rename, SelectBound, SelectEqual, Tag
from streamsparql.physical.operators.consolidate import Consolidate, consolidated
from streamsparql.physical.operators.filter import AntiJoin, Filter, Mark, SemiJoin
from streamsparql.physical.operators.graph import Construct, SelectSort
from streamsparql.physical.operators.group import Aggregation, Annotate, ColumnAggregate
from streamsparql.physical.operators.join import Join, Minus, Union
from streamsparql.physical.operators.left_join import LeftJoin, LeftJoinOn
from streamsparql.physical.operators.path import TransitiveClosure
from streamsparql.physical.operators.shape import (
    Distinct,
    Extend,
    LatestStamps,
    Number,
    OrderBy,
    projected_to,
)
from streamsparql.physical.operators.slice import Slice

if TYPE_CHECKING:
    from streamsparql.physical.lowering.lower import At, Lowered, Lowering


def carried(at: At) -> tuple[str, ...]:
    """The columns of the outer row that all rows have at a place."""
    return () if at.outer is None else at.outer.carried


# -- sources --------------------------------------------------------------------------------------


def access_stream(low: Lowering, node: access.AccessStream, at: At) -> Steps[Lowered]:
    """A stream, its items with their stamps where they are asked for."""
    yield from ()
    stamp = stamp_column(node.stream.value) if node.stamped else None
    return low.made(StreamAccess(node.stream.value, stamp))


def access_graph(low: Lowering, node: access.AccessGraph, at: At) -> Steps[Lowered]:
    """Static graphs, merged: a set of triples."""
    yield from ()
    bound = dict(at.graphs)
    names = [bound[name] if isinstance(name, Variable) else name for name in node.graphs]
    parts = [low.catalog.named[name] for name in names if name in low.catalog.named]
    parts += [low.catalog.default] * node.background
    merged = Batch.concat(parts, TRIPLE)
    columns = consolidated(merged).columns if len(parts) > 1 else merged.columns
    shown = [*map(str, names), *["default graph"] * node.background]
    return low.made(Always.of(columns, len(columns[TRIPLE[0]]), " and ".join(shown)))


def merge(low: Lowering, node: access.Merge | join.Union, at: At) -> Steps[Lowered]:
    """The union of sources, or of branches."""
    found = []
    for part in node.inputs:
        found.append((yield low.rows(part, at)))
    return low.made(low.union(found))


# -- joins ----------------------------------------------------------------------------------------


def basic_graph_pattern(low: Lowering, node: match.BasicGraphPattern, at: At) -> Steps[Lowered]:
    """Its matchings, joined from left to right."""
    found = []
    for matching in node.matchings:
        found.append((yield low.rows(matching, at)))
    return low.made(reduce(lambda left, right: Join(left, right, low.terms), found))


def join_(low: Lowering, node: join.Join, at: At) -> Steps[Lowered]:
    """A join."""
    left = yield low.rows(node.left, at)
    right = yield low.rows(node.right, at)
    return low.made(Join(left, right, low.terms))


def left_join(low: Lowering, node: join.LeftJoin, at: At) -> Steps[Lowered]:
    """OPTIONAL. Where its condition asks EXISTS, pairs are made and asked beside the left rows."""
    left = yield low.rows(node.left, at)
    right = yield low.rows(node.right, at)
    if not node.marks:
        condition = None if node.condition is None else low.compiled(node.condition, at)
        return low.made(LeftJoin(left, right, condition, low.terms))
    row = outer_column(low.new_row())
    tagged = Tag(left, row, low.terms)
    pairs: Operator = Join(tagged, right, low.terms)
    names = pairs.names
    for variable, pattern in node.marks:
        pairs = yield _marked(low, pairs, variable, pattern, at)
    assert node.condition is not None
    passing = Filter(pairs, node.condition, low.compiled(node.condition, at))
    return low.made(LeftJoinOn(tagged, projected_to(passing, names), row))


def minus(low: Lowering, node: join.Minus, at: At) -> Steps[Lowered]:
    """MINUS; the order of the rows stays."""
    left = yield low.plan(node.left, at)
    right = yield low.rows(node.right, at)
    return left._replace(operator=Minus(left.operator, right))


# -- filters and EXISTS ---------------------------------------------------------------------------


def filter_(low: Lowering, node: f.Filter, at: At) -> Steps[Lowered]:
    """A filter."""
    rows = yield low.plan(node.input, at)
    condition = low.compiled(node.condition, at)
    return low.over(rows, Filter(rows.operator, node.condition, condition))


def mark(low: Lowering, node: f.Mark, at: At) -> Steps[Lowered]:
    """EXISTS as a column."""
    rows = yield low.plan(node.input, at)
    marked = yield _marked(low, rows.operator, node.variable, node.pattern, at)
    return rows._replace(operator=marked)


def _marked(
    low: Lowering, rows: Operator, variable: Variable, pattern: Plan, at: At
) -> Steps[Operator]:
    left, right, on = yield _asked(low, rows, pattern, at)
    marked = Mark(left, right, on, variable.name, low.terms)
    return _untagged(marked, (*rows.names, variable.name))


def semi_join(low: Lowering, node: f.SemiJoin | f.AntiJoin, at: At) -> Steps[Lowered]:
    """EXISTS, or NOT EXISTS, as a filter."""
    rows = yield low.plan(node.input, at)
    left, right, on = yield _asked(low, rows.operator, node.pattern, at)
    kind = SemiJoin if isinstance(node, f.SemiJoin) else AntiJoin
    return rows._replace(operator=_untagged(kind(left, right, on), rows.operator.names))


def _untagged(rows: Operator, names: tuple[str, ...]) -> Operator:
    return projected_to(rows, names)


Asked = tuple[Operator, Operator, list[tuple[str, str]] | None]


def _asked(low: Lowering, rows: Operator, pattern: Plan, at: At) -> Steps[Asked]:
    """The rows that ask, the rows that answer, and the columns on which they are the same."""
    own = [name for name in rows.names if in_solution(name)]
    if at.outer is None and stands_alone(pattern, frozenset(own)):
        answers = yield low.rows(pattern, at)
        shared = [name for name in answers.names if name in own]
        return rows, projected_to(answers, shared), None
    seen = frozenset(own) | (at.outer.visible if at.outer else frozenset())
    relevant = sorted(reads(pattern) & seen)
    made = low.new_row()
    number = outer_column(made)
    tagged = Tag(rows, number, low.terms)
    bindings = {name: outer_column(made, name) for name in relevant}
    sources = {
        column: (
            name if name in own else None,
            at.outer.bindings[name] if at.outer and name in at.outer.visible else None,
        )
        for name, column in bindings.items()
    }
    outer = Outer(OuterRows(tagged, number, sources), number, bindings, frozenset(relevant))
    answers = yield low.rows(pattern, at._replace(outer=outer))
    return tagged, Rename(agree(answers, outer), {number: number}), [(number, number)]


# -- shape ----------------------------------------------------------------------------------------


def extend(low: Lowering, node: shape.Extend, at: At) -> Steps[Lowered]:
    """BIND."""
    rows = yield low.plan(node.input, at.below_names_of(node.variable))
    values = low.compiled(node.expression, at)
    return low.over(rows, Extend(rows.operator, node.variable, node.expression, values))


def number(low: Lowering, node: shape.Number, at: At) -> Steps[Lowered]:
    """Numbers for equal rows."""
    rows = yield low.rows(node.input, at)
    return low.made(Number(rows, node.variable.name, low.terms))


def projection(low: Lowering, node: shape.Projection, at: At) -> Steps[Lowered]:
    """A projection, which keeps what its rows are ordered by."""
    inside = at if at.outer is None else at._replace(outer=at.outer.within(node.variables))
    rows = yield low.plan(node.input, inside)
    names = [variable.name for variable in node.variables]
    hidden = () if rows.ranking is None else rows.ranking.columns
    narrow = low.over(rows, projected_to(rows.operator, [*names, *carried(at), *hidden]))
    return low.over(narrow, Consolidate(narrow.operator)) if _worth_counting(node.input) else narrow


def _worth_counting(plan: Plan) -> bool:
    """Whether many rows of a projection of this plan will be equal: see `Align`."""
    pending = [plan]
    while pending:
        match pending.pop():
            case Align(collapse=True):
                return True
            case f.Filter() | shape.Extend() | match.TriplePatternMatching() as node:
                pending.append(node.input)
            case access.Merge() | join.Union() as node:
                pending += node.inputs
    return False


def distinct(low: Lowering, node: shape.Distinct, at: At) -> Steps[Lowered]:
    """DISTINCT. Always that differ in stamps only are one; of ordered rows the first stays."""
    rows = yield low.plan(node.input, at)
    if rows.ranking is None:
        return low.made(_distinct(low, rows.operator))
    shown = [n for n in rows.operator.names if n not in rows.ranking.columns]
    made = Slice(rows.operator, rows.ranking, low.terms, distinct=shown)
    return rows._replace(operator=made)


def _distinct(low: Lowering, rows: Operator) -> Operator:
    stamps = [name for name in rows.names if is_stamp(name)]
    columns = [name for name in rows.names if not is_stamp(name)]
    if stamps:
        return LatestStamps(rows, columns, stamps, low.terms)
    return Distinct(rows, columns)


def reduced(low: Lowering, node: shape.Reduced, at: At) -> Steps[Lowered]:
    """All rows."""
    return (yield low.plan(node.input, at))


def order_by(low: Lowering, node: shape.OrderBy, at: At) -> Steps[Lowered]:
    """The columns that order rows."""
    rows = yield low.rows(node.input, at)
    keys = [(low.compiled(expression, at), down) for expression, down in node.keys]
    made = OrderBy(rows, keys, [variable.name for variable in node.columns])
    return low.made(made, made.ranking)


def slice_(low: Lowering, node: shape.Slice, at: At) -> Steps[Lowered]:
    """OFFSET and LIMIT, on rows in their order or by the node's columns."""
    below = node.input
    shown = None
    while isinstance(below, shape.Reduced):
        below = below.input
    rows = yield low.plan(below.input if isinstance(below, shape.Distinct) else below, at)
    if isinstance(below, shape.Distinct):
        if rows.ranking is None or any(map(is_stamp, rows.operator.names)):
            rows = yield low.plan(below, at)
        else:
            shown = [n for n in rows.operator.names if n not in rows.ranking.columns]
    operator, ranking = rows
    if ranking is None:
        ordered = OrderBy(operator, [], [variable.name for variable in node.columns])
        operator, ranking = ordered, ordered.ranking
    cut = Slice(
        operator,
        ranking,
        low.terms,
        node.offset,
        node.limit,
        distinct=shown,
        partition=carried(at),
    )
    return low.made(cut, ranking)


# -- groups ---------------------------------------------------------------------------------------


def aggregation(low: Lowering, node: group.Aggregation, at: At) -> Steps[Lowered]:
    """GROUP BY. Each outer row has groups of its own, one at least where there are no keys."""
    made = [variable for variable, _ in node.aggregates]
    rows = yield low.rows(node.input, at.below_names_of(*made))
    rows, calls = _arguments(low, rows, node.aggregates, at)
    keys = [key.name for key in node.keys] + list(carried(at))
    groups: Operator = Aggregation(rows, keys, calls, low.terms)
    if at.outer is None or node.keys:
        return low.made(groups)
    number = at.outer.number
    none = AntiJoin(at.outer.rows, Rename(groups, {number: number}), [(number, number)])
    values = ((v, aggregate_value(call, [], Inputs(run=low.run))) for v, call in node.aggregates)
    empty = Constants(none, {v.name: low.id(value) for v, value in values})
    return low.made(Union(groups, empty))


def _arguments(
    low: Lowering, rows: Operator, aggregates: Iterable[tuple[Variable, Aggregate]], at: At
) -> tuple[Operator, list[ColumnAggregate]]:
    """The rows with the aggregates' arguments in columns, and the calls that read these."""
    calls = []
    columns: dict[Any, str] = {}
    for variable, call in aggregates:
        argument = call.argument
        if argument is not None and argument not in columns:
            name = argument.name if isinstance(argument, Variable) else ""
            if name in rows.names and not (at.outer and at.outer.seen([name])):
                columns[argument] = name
            else:
                columns[argument] = argument_column(len(columns))
                made = variable_of(columns[argument])
                rows = low.fold(Extend(rows, made, argument, low.compiled(argument, at)))
        column = None if argument is None else columns[argument]
        calls.append(
            ColumnAggregate(variable.name, call.function, column, call.distinct, call.separator)
        )
    return rows, calls


def annotate(low: Lowering, node: group.Annotate, at: At) -> Steps[Lowered]:
    """AGGREGATE: the group's value beside each row."""
    below = yield low.plan(node.input, at.below_names_of(node.variable))
    rows, (call,) = _arguments(low, below.operator, [(node.variable, node.aggregate)], at)
    keys = [key.name for key in node.keys] + list(carried(at))
    rows = projected_to(rows, tuple(dict.fromkeys((*rows.names, *keys))))  # some may never be bound
    made = Annotate(rows, keys, call, low.terms)
    names = dict.fromkeys((*below.operator.names, node.variable.name))
    return low.over(below, projected_to(made, tuple(names)))


# -- graphs and forms -----------------------------------------------------------------------------


def graph_(low: Lowering, node: graph.Graph, at: At) -> Steps[Lowered]:
    """`GRAPH name`: one plan per graph that there is."""
    if isinstance(node.name, IRI):
        if node.name in low.catalog.named or not low.catalog.known:
            return (yield low.plan(node.input, at))
        return low.made(_no_rows(node, at))
    found = []
    name = node.name.name
    for iri in low.catalog.named:
        there = at._replace(graphs=(*(g for g in at.graphs if g[0] != node.name), (node.name, iri)))
        rows = yield low.rows(node.input, there)
        if name in rows.names:
            rows = low.fold(SelectEqual(rows, [(name, low.id(iri))], or_unbound=True))
        found.append(low.fold(Constants(rows, {name: low.id(iri)})))
    return low.made(low.union(found) if found else _no_rows(node, at))


def _no_rows(node: Plan, at: At) -> Operator:
    names = [variable.name for variable in scope(node).possible]
    return Always(Batch.empty((*names, *carried(at))))


def construct(low: Lowering, node: graph.Construct, at: At) -> Steps[Lowered]:
    """CONSTRUCT: each pattern's triples, together a set."""
    rows = yield low.rows(node.input, at)
    label = None
    if any(isinstance(place, BlankNode) for pattern in node.template for place in pattern):
        label = NUMBER
        rows = Number(rows, label, low.terms)
    made = [low.fold(Construct(rows, pattern, low.terms, label)) for pattern in node.template]
    triples = low.union(made) if made else Always(Batch.empty(TRIPLE))
    return low.made(Distinct(triples, TRIPLE))


def describe(low: Lowering, node: graph.Describe, at: At) -> Steps[Lowered]:
    """DESCRIBE: the triples of the resources and of the blank nodes that these lead to."""
    rows = yield low.rows(node.input, at)
    data = projected_to((yield low.rows(node.data, at)), TRIPLE)
    subject, _, value = TRIPLE
    asked = []
    for resource in node.resources:
        if isinstance(resource, IRI):
            asked.append(Rename(Constants(rows, {subject: low.id(resource)}), {subject: subject}))
        elif resource.name in rows.names:
            bound = low.fold(SelectBound(rows, {resource.name: True}))
            asked.append(Rename(bound, {subject: resource.name}))
    if not asked:
        return low.made(Always(Batch.empty(TRIPLE)))
    named = Distinct(low.union(asked), [subject])
    edges = Rename(SelectSort(data, value, BLANK_SORT, low.terms), {subject: subject, value: value})
    reached = Join(named, TransitiveClosure(edges, subject, value), low.terms)
    described = Distinct(Union(named, Rename(reached, {subject: value})), [subject])
    return low.made(Distinct(Join(described, data, low.terms), TRIPLE))


def ask(low: Lowering, node: graph.Ask, at: At) -> Steps[Lowered]:
    """ASK: whether there is a row, at each instant."""
    rows = yield low.rows(node.input, at)
    always = Always.of({}, 1, "unit")
    some = Distinct(Rename(rows, {}), [])
    return low.made(Mark(always, some, None, ANSWER, low.terms))


Lower = Callable[["Lowering", Any, "At"], Steps["Lowered"]]
OPERATORS: dict[type[Plan], Lower] = {
    access.AccessStream: access_stream,
    access.AccessGraph: access_graph,
    access.Merge: merge,
    join.Union: merge,
    match.BasicGraphPattern: basic_graph_pattern,
    join.Join: join_,
    join.LeftJoin: left_join,
    join.Minus: minus,
    f.Filter: filter_,
    f.Mark: mark,
    f.SemiJoin: semi_join,
    f.AntiJoin: semi_join,
    shape.Extend: extend,
    shape.Number: number,
    shape.Projection: projection,
    shape.Distinct: distinct,
    shape.Reduced: reduced,
    shape.OrderBy: order_by,
    shape.Slice: slice_,
    group.Aggregation: aggregation,
    group.Annotate: annotate,
    graph.Graph: graph_,
    graph.Construct: construct,
    graph.Describe: describe,
    graph.Ask: ask,
}
"""The function that lowers each kind of node that is no leaf."""
