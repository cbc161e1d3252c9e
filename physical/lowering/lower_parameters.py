"""The lowering of plans with parameters: many queries by one plan, each with its own values.

The queries are the rows of a table (operators/queries.py). The rows of a plan *carry* the number of
the query that they belong to, like those inside an EXISTS carry the number of their outer row
(lower_exists.py). Joins agree on it, groups and ranks are per number, the COUNT of nothing is that
of each query.

A plan that mentions no parameter is the same for all queries: it is computed once, and carries
nothing. So rows carry as *late* as the meaning allows:

    a pattern with a parameter     is joined with the table where its rows are matched
    Join, basic graph pattern      a side that carries nothing meets the other on its variables
    LeftJoin, Minus, EXISTS        the left side must carry if the right side or the condition does,
                                   since each query keeps other left rows
    Union                          all branches must carry if one does
    Filter                         is a join of the rows with the queries that they pass for
    Extend, ORDER BY, aggregates   the rows must carry if an expression reads a parameter

A row begins to carry by a join with the table: on the places of parameters in a pattern, or by a
product. Rows carry the number of their query and those parameters that expressions read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from streamsparql.algebra import filter as f
from streamsparql.algebra import join, match, path, shape
from streamsparql.algebra.expressions import Call
from streamsparql.algebra.graph import Construct
from streamsparql.algebra.node import Node
from streamsparql.algebra.parameter import Parameter, as_parameter, parameters_in
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import conjuncts
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import BatchExpression
from streamsparql.physical.expressions.id_comparison import MIRRORED
from streamsparql.physical.hidden import QUERY, parameter_column, place_variable, variable_of
from streamsparql.physical.lowering.lower_exists import Outer, agree
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.band_join import BandCondition, BandJoin
from streamsparql.physical.operators.columns import Constants, Rename
from streamsparql.physical.operators.join import Join
from streamsparql.physical.operators.queries import QueryTable
from streamsparql.physical.operators.shape import projected_to
from streamsparql.physical.state.band_area import Border, Borders

if TYPE_CHECKING:
    from streamsparql.physical.lowering.lower import At, Lowering

Matching = TypeVar("Matching", match.TriplePatternMatching, path.Path)


def queries_as_outer_rows(table: QueryTable, plan: Plan) -> Outer:
    """Return the queries of a table as outer rows of their plan."""
    parameters = {name: parameter_column(name) for name in sorted(parameters_in(plan))}
    read = _read_by_expressions(plan)
    carried = (QUERY, *(column for name, column in parameters.items() if name in read))
    return Outer(table, QUERY, {}, frozenset(), carried, parameters, late=True)


def _read_by_expressions(plan: Plan) -> frozenset[str]:
    """Return the parameters that operators read from rows, rather than match."""
    read: frozenset[str] = frozenset()
    for node in plan.operators():
        if isinstance(node, match.TriplePatternMatching | path.Path | shape.Table):
            continue
        inside = node.parts() if isinstance(node, Construct) else node.expressions
        read = read.union(*(parameters_in(x) for x in inside if not isinstance(x, Plan)))
        if isinstance(node, f.Mark | f.SemiJoin | f.AntiJoin):
            read |= parameters_in(node.pattern)
        if isinstance(node, join.LeftJoin):
            read = read.union(*(parameters_in(pattern) for _, pattern in node.marks))
    return read


def late(node: Plan, at: At) -> At:
    """Return the place of a plan, without the queries if it mentions no parameter."""
    if at.outer is None or not at.outer.late or parameters_in(node):
        return at
    return at._replace(outer=None)


def carries(rows: Operator, at: At) -> bool:
    """Return whether rows carry the numbers of their outer rows."""
    return at.outer is not None and at.outer.number in rows.names


def carrying(rows: Operator, at: At, terms: TermDictionary) -> Operator:
    """Return rows that carry outer rows: if they do not yet, each row for each query."""
    if at.outer is None or carries(rows, at):
        return rows
    return Join(rows, projected_to(at.outer.rows, at.outer.carried), terms)


def all_carrying(parts: Sequence[Operator], at: At, terms: TermDictionary) -> list[Operator]:
    """Return the branches of a union: if one carries outer rows, all do."""
    if not any(carries(part, at) for part in parts):
        return list(parts)
    return [carrying(part, at, terms) for part in parts]


# -- leaves ----------------------------------------------------------------------------------------


def without_parameters(node: Matching) -> Matching:
    """Return a matching or a path with hidden variables at the places of parameters."""

    def of(part: Node, parts: list[Node]) -> Node:
        if isinstance(part, Parameter):
            return place_variable(part.name)
        same = all(one is other for one, other in zip(part.parts(), parts, strict=True))
        return part if same else part.with_parts(tuple(parts))

    return node.fold(of) if parameters_in(node) else node  # type: ignore[return-value]


def tables_of_outer_rows(low: Lowering, node: shape.Table, at: At) -> list[Operator]:
    """Lower each row of VALUES with parameters: its terms, for each outer row."""
    assert at.outer is not None
    outer, tables = at.outer, list[Operator]()
    for row in node.rows:
        values, constants = dict[str, str](), dict[str, int]()
        for variable, cell in zip(node.variables, row, strict=True):
            parameter = as_parameter(cell)
            if parameter is None:
                constants[variable.name] = low.id(cell)
            else:
                values[variable.name] = outer.parameters[parameter.name]
        rows: Operator = Rename(outer.rows, {**{n: n for n in outer.carried}, **values})
        tables.append(agree(Constants(rows, constants) if constants else rows, outer))
    return tables


# -- expressions -----------------------------------------------------------------------------------


def reading_columns(expression: Expression, outer: Outer) -> Expression:
    """Return an expression that reads the values of parameters from their columns."""

    def of(node: Node, parts: list[Node]) -> Node:
        if isinstance(node, Parameter):
            return variable_of(outer.parameters[node.name])
        same = all(one is other for one, other in zip(node.parts(), parts, strict=True))
        return node if same else node.with_parts(tuple(parts))

    if not parameters_in(expression):
        return expression
    read: Node = expression.fold(of)
    assert isinstance(read, Expression)
    return read


def parameter_columns(at: At) -> dict[str, str]:
    """Return the columns of the parameters at a place."""
    return {} if at.outer is None else dict(at.outer.parameters)


def filtered_by_queries(
    low: Lowering, rows: Operator, condition: Expression, compiled: BatchExpression, at: At
) -> Operator:
    """Lower a filter on a parameter: the rows, each for the queries for which it passes."""
    assert at.outer is not None
    outer = at.outer
    read = (outer.parameters[name] for name in sorted(parameters_in(condition)))
    queries = projected_to(outer.rows, tuple(dict.fromkeys((*outer.carried, *read))))
    borders, complete = _borders(condition, rows.names, outer, low.terms)
    return BandJoin(
        rows,
        queries,
        outer.carried,
        BandCondition(condition, compiled, borders, complete),
        low.terms,
    )


_LOWER = {">": True, ">=": False, "=": False}
_UPPER = {"<": True, "<=": False, "=": False}
"""The comparisons that set a border, and whether values at the border are outside."""
_BORDERS = {*_LOWER, *_UPPER}


def _borders(
    condition: Expression, names: Sequence[str], outer: Outer, terms: TermDictionary
) -> tuple[Borders | None, bool]:
    """Return the borders that a condition sets, and whether it consists of these only.

    The borders are those of the variable that is compared most often.
    """
    compared: dict[str, list[tuple[str, str]]] = {}
    parts = list(conjuncts(condition))
    for part in parts:
        match part:
            case Call(str() as symbol, (Variable(name), Parameter(value))) if symbol in _BORDERS:
                compared.setdefault(name, []).append((symbol, value))
            case Call(str() as symbol, (Parameter(value), Variable(name))) if symbol in _BORDERS:
                compared.setdefault(name, []).append((MIRRORED[symbol], value))
    chosen = max(compared, key=lambda name: len(compared[name]), default="")
    if chosen not in names:
        return None, False
    pairs = compared[chosen]
    lower, upper = (
        [Border(outer.parameters[v], strict[symbol]) for symbol, v in pairs if symbol in strict]
        for strict in (_LOWER, _UPPER)
    )
    return Borders(chosen, lower, upper, terms), len(pairs) == len(parts)
