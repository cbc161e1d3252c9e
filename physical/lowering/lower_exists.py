"""The lowering of EXISTS to a join in time (SEMANTICS.md section 4, `Mark`; SPARQL 1.1, 18.6).

EXISTS is defined row by row: the bindings of the outer row are substituted into the pattern, and
the pattern is evaluated. There are two plans for that.

If the outer row cannot affect the pattern (joins, unions, filters on variables that they bind
themselves), the pattern is evaluated once, and its rows are matched with the outer rows.

If it can (an OPTIONAL, a LIMIT, a filter on an outer variable), the outer rows are joined to the
leaves of the pattern. Each outer row has a number; the rows with their number and bindings, in
hidden *carried* columns, are joined to each leaf, on compatibility. Every operator above then works
within one outer row, as the number is among the columns that it joins, groups or ranks by. The
numbers of the output rows are those of the outer rows that have a solution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from streamsparql.algebra import filter as f
from streamsparql.algebra import graph, join, match, path, shape
from streamsparql.algebra import window as w
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.traversal import descend
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import BatchExpression
from streamsparql.physical.hidden import asked_column, place_variable
from streamsparql.physical.operator import Operator, Stateless
from streamsparql.physical.operators.columns import Rename, SelectEqual
from streamsparql.physical.operators.join import Join


class Outer(NamedTuple):
    """The outer rows of an EXISTS, and their variables that are visible at a place inside it.

    The queries that share a plan are outer rows, too: each has a number and its values of the
    plan's parameters (lower_parameters.py). Plans that mention no parameter do not carry them.
    """

    rows: Operator
    """The numbers and the bindings of the outer rows."""
    number: str
    """The carried column with the number of the outer row."""
    bindings: Mapping[str, str]
    """The column of each outer variable."""
    visible: frozenset[str]
    """The outer variables that are visible at this place; a subquery hides others."""
    carried: tuple[str, ...]
    """The columns of the outer rows that the rows of a plan inside carry."""
    parameters: Mapping[str, str] = {}
    """The column of each parameter."""
    late: bool = False
    """Whether the outer rows are queries, which only plans that mention a parameter carry."""

    def without(self, hidden: Iterable[Variable]) -> Outer:
        """Return the same rows below an operator that binds these variables itself."""
        return self._replace(visible=self.visible - {v.name for v in hidden})

    def within(self, names: Iterable[Variable]) -> Outer:
        """Return the same rows below a projection to these variables: it hides all others."""
        return self._replace(visible=self.visible & {v.name for v in names})

    def seen(self, names: Iterable[str]) -> dict[str, str]:
        """Return the variables among these that the outer row can bind, with their columns."""
        return {name: self.bindings[name] for name in names if name in self.visible}


class OuterRows(Stateless):
    """The carried columns: a row's number and values, or its outer row's values if unbound."""

    family = "filter"

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        number: str,
        sources: Mapping[str, tuple[str | None, str | None]],
    ) -> None:
        super().__init__((number, *sources), input)
        self._number = number
        self._sources = dict(sources)

    @override
    def apply(self, batch: Batch) -> Batch:
        columns = {self._number: batch.columns[self._number]}
        for column, (own, outer) in self._sources.items():
            columns[column] = _own_or_outer(batch, own, outer)
        return Batch(columns, batch.start, batch.end, batch.count)


def _own_or_outer(batch: Batch, own: str | None, outer: str | None) -> IntArray:
    """Return the values of rows; where a row is unbound, the value of its outer row."""
    if own is None or own not in batch.columns:
        return batch.column(outer or "")
    mine = batch.columns[own]
    return mine if outer is None else np.where(mine == 0, batch.columns[outer], mine)


def at_leaf(leaf: Operator, outer: Outer, terms: TermDictionary) -> Operator:
    """Join the rows of a leaf to each outer row that they are compatible with.

    The rows keep their own bindings: the outer row only selects them. At the places of parameters
    they have the terms of the outer row.
    """
    seen = outer.seen(leaf.names)
    places = {place_variable(name).name: column for name, column in outer.parameters.items()}
    compared = {asked_column(name): name for name in seen}
    left = Rename(leaf, {**{name: name for name in leaf.names}, **compared}) if compared else leaf
    carried = {column: seen[name] for column, name in compared.items()}
    carried |= {place: column for place, column in places.items() if place in leaf.names}
    right = Rename(outer.rows, {**{name: name for name in outer.carried}, **carried})
    kept = (*(name for name in leaf.names if name not in places), *outer.carried)
    return Rename(Join(left, right, terms), {name: name for name in kept})


def agree(rows: Operator, outer: Outer) -> Operator:
    """Return the rows that are compatible with the outer row that they carry."""
    pairs: list[tuple[str, str | int]] = list(outer.seen(rows.names).items())
    return SelectEqual(rows, pairs, or_unbound=True) if pairs else rows


class Sighted:
    """A compiled expression that reads the outer row where the row itself is unbound."""

    def __init__(self, compiled: BatchExpression, seen: Mapping[str, str]) -> None:
        self._compiled = compiled
        self._seen = dict(seen)

    def _with_outer(self, batch: Batch) -> Batch:
        return batch.with_columns(
            {n: _own_or_outer(batch, n, outer) for n, outer in self._seen.items()}
        )

    def holds(self, batch: Batch) -> BoolArray:
        """Return a mask of the rows for which the condition is true."""
        return self._compiled.holds(self._with_outer(batch))

    def values(self, batch: Batch) -> IntArray:
        """Return the expression's values."""
        return self._compiled.values(self._with_outer(batch))

    def forget(self) -> None:
        """Drop the results that the expression memoises by id."""
        self._compiled.forget()


def names_in(node: Node) -> frozenset[str]:
    """Return the names of all variables in an expression or a plan.

    >>> sorted(names_in(shape.Projection((Variable("x"), Variable("y")), shape.UNIT)))
    ['x', 'y']
    """
    names: frozenset[str] = node.fold(_names_in, keep="_names_in")
    return names


def _names_in(node: Node, parts: list[frozenset[str]]) -> frozenset[str]:
    own = [node.name] if isinstance(node, Variable) else []
    if isinstance(node, Plan):
        own += [v.name for v in scope(node).possible]
        own += [member.name for member in node.members() if isinstance(member, Variable)]
    return frozenset(own).union(*parts)


def stands_alone(pattern: Plan, outer: frozenset[str]) -> bool:
    """Return whether EXISTS over this pattern is a join of the outer rows with its rows.

    `outer` are the variables that outer rows may bind. True only if the solutions of the pattern
    for an outer row are exactly the pattern's own solutions that are compatible with the row.

    >>> row = shape.Table((Variable("x"),), ((None,),))
    >>> stands_alone(row, frozenset("x")), stands_alone(join.LeftJoin(row, row), frozenset("x"))
    (True, False)
    """
    places = descend(pattern, outer, _below)
    return all(_outer_below(node, visible) is not None for node, visible in places)


def _below(node: Plan, outer: frozenset[str]) -> list[tuple[Plan, frozenset[str]]]:
    visible = _outer_below(node, outer)
    return [(child, visible) for child in node.inputs] if visible else []


def _outer_below(node: Plan, outer: frozenset[str]) -> frozenset[str] | None:
    """Return the outer variables that matter below a node; None if they matter in the node."""
    if isinstance(node, w.Window) or not (names_in(node) & outer):
        return frozenset()  # outer rows do not affect the input of a window
    match node:
        case match.TriplePatternMatching():
            return frozenset()  # its variables are compared when its rows are matched
        case match.BasicGraphPattern() | join.Join() | join.Union() | shape.Table():
            return outer
        case shape.Distinct() | shape.Reduced() | shape.OrderBy() | shape.Number():
            return outer
        case f.Filter(condition) | shape.Extend(expression=condition):
            bound = {v.name for v in scope(node.inputs[0]).certain}
            own = {node.variable.name} if isinstance(node, shape.Extend) else set()
            return outer - own if _read_by(condition) & outer <= bound else None
        case shape.Projection(variables):
            return outer & {v.name for v in variables}
        case path.Path():
            ends = {end.name for end in (node.subject, node.object) if isinstance(end, Variable)}
            return frozenset() if not (ends & outer and _may_be_empty(node.path)) else None
        case graph.Graph():
            return outer
    return None


def _read_by(expression: Expression) -> frozenset[str]:
    """Return the variables that an expression reads."""
    names = {v.name for v in expression.walk() if isinstance(v, Variable)}
    return frozenset(names)


def _may_be_empty(way: path.PathExpression) -> bool:
    """Return whether a path can have length zero, which also connects terms of the outer row."""
    return any(isinstance(part, path.ZeroOrMore | path.ZeroOrOne) for part in way.walk())
