"""The lowering of each logical operator: the entries of the tables `LOWER` and `LOWER_ABOVE`.

A function's arguments are the lowering, a node and its place; functions in `LOWER_ABOVE` also have
the lowered first input. Inside an EXISTS with outer rows (`At.outer`), all rows carry their
columns, and joins, groups and projections include them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from streamsparql.algebra import access, entailment, event, graph, group, join, match, shape
from streamsparql.algebra import filter as f
from streamsparql.algebra.align import Align
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.expressions import Aggregate
from streamsparql.algebra.group import aggregate_value
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.parameter import parameters_in
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, BlankNode, integer
from streamsparql.algebra.traversal import descend
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import BLANK_SORT
from streamsparql.physical.hidden import (
    ANSWER,
    NUMBER,
    SINCE,
    argument_column,
    in_solution,
    is_stamp,
    is_time,
    outer_column,
    stamp_column,
    variable_of,
)
from streamsparql.physical.lowering.lower_events import lower_detect
from streamsparql.physical.lowering.lower_exists import (
    Outer,
    OuterRows,
    agree,
    names_in,
    stands_alone,
)
from streamsparql.physical.lowering.lower_parameters import (
    all_carrying,
    carries,
    carrying,
    filtered_by_queries,
    parameter_columns,
)
from streamsparql.physical.lowering.lower_rules import lower_closure
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.access import Always
from streamsparql.physical.operators.columns import Constants, Rename, SelectBound, SelectEqual, Tag
from streamsparql.physical.operators.consolidate import Consolidate, consolidated
from streamsparql.physical.operators.entailment import Entailed, Entailing
from streamsparql.physical.operators.event_sets import PointEvents
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
    """Return the columns of the outer row that all rows have at a place."""
    return () if at.outer is None else at.outer.carried


# -- sources --------------------------------------------------------------------------------------


def lower_stream(low: Lowering, node: access.AccessStream, at: At) -> Lowered:
    """Lower a stream, whose items have their stamps if the query reads them."""
    stamp = stamp_column(node.stream.value) if node.stamped else None
    if at.events is not None:
        stamp = SINCE
    return low.made(low.stream(node.stream.value, stamp))


def lower_access_graph(low: Lowering, node: access.AccessGraph, at: At) -> Lowered:
    """Lower static graphs, merged into a set of triples."""
    bound = dict(at.graphs)
    names = [bound[name] if isinstance(name, Variable) else name for name in node.graphs]
    parts = [low.catalog.named[name] for name in names if name in low.catalog.named]
    parts += [low.catalog.default] * node.background
    merged = Batch.concat(parts, TRIPLE)
    columns = consolidated(merged).columns if len(parts) > 1 else merged.columns
    shown = [*map(str, names), *["default graph"] * node.background]
    rows = Always.of(columns, len(columns[TRIPLE[0]]), " and ".join(shown))
    return low.made(low.static(rows, at))


def lower_entailed(low: Lowering, node: entailment.Entailed, at: At) -> Lowered:
    """Lower what triples entail, for the readers that `Lowering` does not fuse with it."""
    return low.made(Entailed(low.data(node.input, at), low.schema(node.schema, at)))


def lower_entailing(low: Lowering, node: entailment.Entailing, at: At) -> Lowered:
    """Lower the selection of the triples that entail a match."""
    rows, schema = low.data(node.input, at), low.schema(node.schema, at)
    return low.made(Entailing(rows, node.pattern, schema))


def lower_union(low: Lowering, node: access.Merge | join.Union, at: At, first: Lowered) -> Lowered:
    """Lower the union of sources, or of branches."""
    others = [low.rows(part, at) for part in node.inputs[1:]]
    return low.made(low.union(all_carrying([first.plain, *others], at, low.terms)))


# -- joins ----------------------------------------------------------------------------------------


def lower_basic_graph_pattern(
    low: Lowering, node: match.BasicGraphPattern, at: At, first: Lowered
) -> Lowered:
    """Lower matchings, joined from left to right (ESWC 2008, Definition 11)."""
    rows = first.plain
    for matching in node.matchings[1:]:
        rows = Join(rows, low.rows(matching, at), low.terms)
    return low.made(rows)


def lower_join(low: Lowering, node: join.Join, at: At, left: Lowered) -> Lowered:
    """Lower a join."""
    return low.made(Join(left.plain, low.rows(node.right, at), low.terms))


def lower_left_join(low: Lowering, node: join.LeftJoin, at: At, left: Lowered) -> Lowered:
    """Lower an OPTIONAL. An EXISTS in its condition is evaluated on the joined pairs."""
    right = low.rows(node.right, at)
    # Each query has its own matches, and so its own unmatched rows.
    differs = any(map(parameters_in, node.parts()[1:]))
    rows = carrying(left.plain, at, low.terms) if differs else left.plain
    if not node.marks:
        condition = None if node.condition is None else low.compiled(node.condition, at)
        return low.made(LeftJoin(rows, right, condition, low.terms))
    row = outer_column(low.new_row())
    tagged = Tag(rows, row, low.terms)
    pairs: Operator = Join(tagged, right, low.terms)
    names = pairs.names
    for variable, pattern in node.marks:
        pairs = _marked(low, pairs, variable, pattern, at)
    assert node.condition is not None
    passing = Filter(pairs, node.condition, low.compiled(node.condition, at))
    return low.made(LeftJoinOn(tagged, projected_to(passing, names), row))


def lower_minus(low: Lowering, node: join.Minus, at: At, left: Lowered) -> Lowered:
    """Lower a MINUS, which keeps the order of the rows."""
    right, rows = low.rows(node.right, at), left.operator
    if parameters_in(node.right):
        rows = carrying(rows, at, low.terms)
    return left._replace(operator=Minus(rows, right))


# -- filters and EXISTS ---------------------------------------------------------------------------


def lower_filter(low: Lowering, node: f.Filter, at: At, rows: Lowered) -> Lowered:
    """Lower a filter."""
    condition = low.compiled(node.condition, at)
    if parameters_in(node.condition) and not carries(rows.operator, at):
        return rows._replace(
            operator=filtered_by_queries(low, rows.operator, node.condition, condition, at)
        )
    return low.over(rows, Filter(rows.operator, node.condition, condition))


def lower_mark(low: Lowering, node: f.Mark, at: At, rows: Lowered) -> Lowered:
    """Lower an EXISTS whose result is a column."""
    marked = _marked(low, rows.operator, node.variable, node.pattern, at)
    return rows._replace(operator=marked)


def _marked(low: Lowering, rows: Operator, variable: Variable, pattern: Plan, at: At) -> Operator:
    rows = _with_queries(low, rows, pattern, at)
    left, right, on = _exists_sides(low, rows, pattern, at)
    marked = Mark(left, right, on, variable.name, low.terms)
    return projected_to(marked, (*rows.names, variable.name))


def lower_semi_join(low: Lowering, node: f.SemiJoin | f.AntiJoin, at: At, rows: Lowered) -> Lowered:
    """Lower an EXISTS, or NOT EXISTS, that is a filter."""
    operator = _with_queries(low, rows.operator, node.pattern, at)
    left, right, on = _exists_sides(low, operator, node.pattern, at)
    kind = SemiJoin if isinstance(node, f.SemiJoin) else AntiJoin
    return rows._replace(operator=projected_to(kind(left, right, on), operator.names))


def _with_queries(low: Lowering, rows: Operator, pattern: Plan, at: At) -> Operator:
    """Return rows that carry the queries if the pattern differs between queries."""
    return carrying(rows, at, low.terms) if parameters_in(pattern) else rows


_Sides = tuple[Operator, Operator, list[tuple[str, str]] | None]


def _exists_sides(low: Lowering, rows: Operator, pattern: Plan, at: At) -> _Sides:
    """Return the outer rows, the rows of the pattern, and the pairs of columns to match.

    None instead of pairs means the columns that both have.
    """
    own = [name for name in rows.names if in_solution(name)]
    if (at.outer is None or at.outer.late) and stands_alone(pattern, frozenset(own)):
        answers = low.rows(pattern, at)
        matched = (*own, *(carried(at)[:1] if carries(rows, at) else ()))
        shared = [name for name in answers.names if name in matched]
        return rows, projected_to(answers, shared), None
    seen = frozenset(own) | (at.outer.visible if at.outer else frozenset())
    relevant = sorted(names_in(pattern) & seen)
    new_row = low.new_row()
    number = outer_column(new_row)
    tagged = Tag(rows, number, low.terms)
    bindings = {name: outer_column(new_row, name) for name in relevant}
    sources = {
        column: (
            name if name in own else None,
            at.outer.bindings[name] if at.outer and name in at.outer.visible else None,
        )
        for name, column in bindings.items()
    }
    parameters = {n: outer_column(new_row, f"${n}") for n in sorted(parameters_in(pattern))}
    sources |= {
        column: (None, at.outer.parameters[name] if at.outer else None)
        for name, column in parameters.items()
    }
    outer_rows = OuterRows(tagged, number, sources)
    outer = Outer(outer_rows, number, bindings, frozenset(relevant), outer_rows.names, parameters)
    answers = low.rows(pattern, at._replace(outer=outer))
    return tagged, Rename(agree(answers, outer), {number: number}), [(number, number)]


# -- shape ----------------------------------------------------------------------------------------


def lower_extend(low: Lowering, node: shape.Extend, at: At, rows: Lowered) -> Lowered:
    """Lower a BIND."""
    values = low.compiled(node.expression, at)
    operator = rows.operator
    if parameters_in(node.expression):
        operator = carrying(operator, at, low.terms)
    return low.over(rows, Extend(operator, node.variable, node.expression, values))


def lower_number(low: Lowering, node: shape.Number, at: At, rows: Lowered) -> Lowered:
    """Lower the numbering of equal rows."""
    return low.made(Number(rows.plain, node.variable.name, low.terms))


def lower_projection(low: Lowering, node: shape.Projection, at: At, rows: Lowered) -> Lowered:
    """Lower a projection, which keeps the columns that order its rows."""
    names = [variable.name for variable in node.variables]
    hidden = () if rows.ranking is None else rows.ranking.columns
    since = [name for name in rows.operator.names if name == SINCE]
    narrow = low.over(rows, projected_to(rows.operator, [*names, *carried(at), *hidden, *since]))
    return (
        low.over(narrow, Consolidate(narrow.operator)) if _makes_rows_equal(node.input) else narrow
    )


def _makes_rows_equal(plan: Plan) -> bool:
    """Return whether a projection of this plan makes many rows equal: see `Align`."""
    nodes = (node for node, _ in descend(plan, None, _below))
    return any(isinstance(node, Align) and node.consolidate for node in nodes)


def _below(node: Plan, _: None) -> list[tuple[Plan, None]]:
    kinds = (
        f.Filter,
        shape.Extend,
        match.TriplePatternMatching,
        entailment.Entailed,
        access.Merge,
        join.Union,
    )
    return [(child, None) for child in node.inputs] if isinstance(node, kinds) else []


def lower_distinct(low: Lowering, node: shape.Distinct, at: At, rows: Lowered) -> Lowered:
    """Lower a DISTINCT, which ignores stamps and keeps the first of equal ordered rows."""
    below = rows._replace(operator=_without_since(rows.operator))
    if rows.ranking is None:
        return low.made(_as_events(rows.operator, lower_distinct_rows(low, below.operator)))
    shown = rows.ranking.others(below.operator.names)
    distinct = Slice(below.operator, rows.ranking, low.terms, distinct=shown)
    return rows._replace(operator=_as_events(rows.operator, distinct))


def _without_since(rows: Operator) -> Operator:
    return projected_to(rows, [name for name in rows.names if name != SINCE])


def _as_events(rows: Operator, distinct: Operator) -> Operator:
    """Return distinct rows: of events, if the rows are events."""
    return PointEvents(distinct) if SINCE in rows.names else distinct


def lower_distinct_rows(low: Lowering, rows: Operator) -> Operator:
    """Return the distinct rows of an operator, which are computed now if they are known."""
    if isinstance(rows, Always) and low.catalog.known:
        known = consolidated(rows.rows)
        return Always(Batch(known.columns, known.start, known.end), rows.facts())
    stamps = [name for name in rows.names if is_stamp(name)]
    columns = [name for name in rows.names if not is_stamp(name)]
    if stamps:
        return LatestStamps(rows, columns, stamps, low.terms)
    return Distinct(rows, columns)


def lower_reduced(low: Lowering, node: shape.Reduced, at: At, rows: Lowered) -> Lowered:
    """Lower a REDUCED to its input, because it may keep all duplicates."""
    return rows


def lower_order_by(low: Lowering, node: shape.OrderBy, at: At, rows: Lowered) -> Lowered:
    """Lower an ORDER BY to the columns that order rows."""
    keys = [(low.compiled(expression, at), down) for expression, down in node.keys]
    plain = rows.plain
    if any(parameters_in(expression) for expression, _ in node.keys):
        plain = carrying(plain, at, low.terms)
    ordered = OrderBy(plain, keys, [variable.name for variable in node.columns])
    return low.made(ordered, ordered.ranking)


def lower_slice(low: Lowering, node: shape.Slice, at: At) -> Lowered:
    """Lower OFFSET and LIMIT over the order of the rows or, if they have none, of the columns."""
    below = node.input
    shown = None
    while isinstance(below, shape.Reduced):
        below = below.input
    rows = low.plan(below.input if isinstance(below, shape.Distinct) else below, at)
    if isinstance(below, shape.Distinct):
        if rows.ranking is None or any(map(is_time, rows.operator.names)):
            rows = low.plan(below, at)
        else:
            shown = rows.ranking.others(rows.operator.names)
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


def lower_aggregation(low: Lowering, node: group.Aggregation, at: At, below: Lowered) -> Lowered:
    """Lower a GROUP BY. Each outer row has its own groups, at least one if there are no keys."""
    rows, calls = _arguments(low, below.plain, node.aggregates, at)
    keys = [key.name for key in node.keys] + list(carried(at))
    groups: Operator = Aggregation(rows, keys, calls, low.terms)
    if at.outer is None or node.keys:
        return low.made(groups)
    number = at.outer.number
    every = projected_to(at.outer.rows, at.outer.carried)
    ungrouped = AntiJoin(every, Rename(groups, {number: number}), [(number, number)])
    values = ((v, aggregate_value(call, [], Inputs(run=low.run))) for v, call in node.aggregates)
    empty = Constants(ungrouped, {v.name: low.id(value) for v, value in values})
    return low.made(Union(groups, empty))


def _arguments(
    low: Lowering, rows: Operator, aggregates: Iterable[tuple[Variable, Aggregate]], at: At
) -> tuple[Operator, list[ColumnAggregate]]:
    """Return the rows with the aggregates' arguments in columns, and the calls that read these."""
    calls = []
    columns: dict[Any, str] = {}
    if any(parameters_in(call) for _, call in aggregates):
        rows = carrying(rows, at, low.terms)
    for variable, call in aggregates:
        argument = call.argument
        if argument is not None and argument not in columns:
            name = argument.name if isinstance(argument, Variable) else ""
            if name in rows.names and not (at.outer and at.outer.seen([name])):
                columns[argument] = name
            else:
                columns[argument] = argument_column(len(columns))
                computed = variable_of(columns[argument])
                rows = low.fold(Extend(rows, computed, argument, low.compiled(argument, at)))
        column = None if argument is None else columns[argument]
        calls.append(
            ColumnAggregate(variable.name, call.function, column, call.distinct, call.separator)
        )
    return rows, calls


def lower_annotate(low: Lowering, node: group.Annotate, at: At, below: Lowered) -> Lowered:
    """Lower an AGGREGATE, which adds the group's value to each row."""
    rows, (call,) = _arguments(low, below.operator, [(node.variable, node.aggregate)], at)
    keys = [key.name for key in node.keys] + list(carried(at))
    # A key that no row binds has no column yet.
    rows = projected_to(rows, tuple(dict.fromkeys((*rows.names, *keys))))
    annotated = Annotate(rows, keys, call, low.terms)
    names = dict.fromkeys((*below.operator.names, node.variable.name))
    return low.over(below, projected_to(annotated, tuple(names)))


# -- graphs and forms -----------------------------------------------------------------------------


def lower_graph(low: Lowering, node: graph.Graph, at: At) -> Lowered:
    """Lower a `GRAPH name`: a plan for each graph of the catalog."""
    if isinstance(node.name, IRI):
        if node.name in low.catalog.named or not low.catalog.known:
            return low.plan(node.input, at)
        return low.made(_no_rows(low, node, at))
    branches = []
    name = node.name.name
    for iri in low.catalog.named:
        there = at._replace(graphs=(*(g for g in at.graphs if g[0] != node.name), (node.name, iri)))
        rows = low.rows(node.input, there)
        if name in rows.names:
            rows = low.fold(SelectEqual(rows, [(name, low.id(iri))], or_unbound=True))
        branches.append(low.fold(Constants(rows, {name: low.id(iri)})))
    return low.made(low.union(branches) if branches else _no_rows(low, node, at))


def _no_rows(low: Lowering, node: Plan, at: At) -> Operator:
    names = [variable.name for variable in scope(node).possible]
    return low.static(Always(Batch.empty((*names, *carried(at)))), at)


def lower_construct(low: Lowering, node: graph.Construct, at: At, below: Lowered) -> Lowered:
    """Lower a CONSTRUCT to the set of the triples of all its patterns."""
    rows = below.plain
    label = None
    if any(isinstance(place, BlankNode) for pattern in node.template for place in pattern):
        label = NUMBER
        if _occur_once(node.input):
            rows = low.fold(Constants(rows, {label: low.id(integer(1))}))
        else:
            rows = Number(rows, label, low.terms)
    if any(map(parameters_in, node.parts()[:-1])):
        rows = carrying(rows, at, low.terms)
    query = carried(at)[:1] if carries(rows, at) else ()
    parts = [
        low.fold(Construct(rows, pattern, low.terms, label, query, parameter_columns(at)))
        for pattern in node.template
    ]
    names = (*TRIPLE, *query, *(name for name in rows.names if name == SINCE))
    triples = low.union(parts) if parts else Always(Batch.empty(names))
    return low.made(Distinct(triples, names))


def _occur_once(plan: Plan) -> bool:
    """Return whether no two rows are equal, because they are different events."""
    while isinstance(plan, f.Filter | shape.Extend | shape.OrderBy | shape.Slice):
        plan = plan.input
    return isinstance(plan, event.Detect)


def lower_describe(low: Lowering, node: graph.Describe, at: At, below: Lowered) -> Lowered:
    """Lower a DESCRIBE: the triples of the resources and of the blank nodes they lead to."""
    rows = below.plain
    data = projected_to(low.rows(node.data, at), TRIPLE)
    subject, _, value = TRIPLE
    described_by = []
    for resource in node.resources:
        if isinstance(resource, IRI):
            described_by.append(
                Rename(Constants(rows, {subject: low.id(resource)}), {subject: subject})
            )
        elif resource.name in rows.names:
            bound = low.fold(SelectBound(rows, {resource.name: True}))
            described_by.append(Rename(bound, {subject: resource.name}))
    if not described_by:
        return low.made(Always(Batch.empty(TRIPLE)))
    named = Distinct(low.union(described_by), [subject])
    edges = Rename(SelectSort(data, value, BLANK_SORT, low.terms), {subject: subject, value: value})
    reached = Join(named, TransitiveClosure(edges, subject, value), low.terms)
    described = Distinct(Union(named, Rename(reached, {subject: value})), [subject])
    return low.made(Distinct(Join(described, data, low.terms), TRIPLE))


def lower_ask(low: Lowering, node: graph.Ask, at: At, rows: Lowered) -> Lowered:
    """Lower an ASK: whether there is a row, at each instant."""
    query = carried(at)[:1] if carries(rows.operator, at) else ()
    always: Operator = Always.of({}, 1, "unit")
    if at.outer is not None and query:
        always = projected_to(at.outer.rows, query)
    nonempty = Distinct(Rename(rows.plain, dict(zip(query, query, strict=True))), query)
    return low.made(Mark(always, nonempty, None, ANSWER, low.terms))


Lower = Callable[["Lowering", Any, "At"], "Lowered"]
LOWER: dict[type[Plan], Lower] = {
    access.AccessStream: lower_stream,
    access.AccessGraph: lower_access_graph,
    entailment.Entailed: lower_entailed,
    entailment.Entailing: lower_entailing,
    shape.Slice: lower_slice,
    graph.Graph: lower_graph,
    Closure: lower_closure,
}
"""The functions that lower nodes with their inputs."""

LowerAbove = Callable[["Lowering", Any, "At", "Lowered"], "Lowered"]
LOWER_ABOVE: dict[type[Plan], LowerAbove] = {
    access.Merge: lower_union,
    join.Union: lower_union,
    match.BasicGraphPattern: lower_basic_graph_pattern,
    join.Join: lower_join,
    join.LeftJoin: lower_left_join,
    join.Minus: lower_minus,
    f.Filter: lower_filter,
    f.Mark: lower_mark,
    f.SemiJoin: lower_semi_join,
    f.AntiJoin: lower_semi_join,
    shape.Extend: lower_extend,
    shape.Number: lower_number,
    shape.Projection: lower_projection,
    shape.Distinct: lower_distinct,
    shape.Reduced: lower_reduced,
    shape.OrderBy: lower_order_by,
    group.Aggregation: lower_aggregation,
    group.Annotate: lower_annotate,
    graph.Construct: lower_construct,
    graph.Describe: lower_describe,
    graph.Ask: lower_ask,
    event.Detect: lower_detect,
}
"""The functions that lower nodes above their first input, which `Lowering.plan` has lowered."""
