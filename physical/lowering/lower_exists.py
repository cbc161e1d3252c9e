"""EXISTS as a join in time (SEMANTICS.md section 4, `Mark`; SPARQL 1.1 section 18.6).

EXISTS is defined row by row: the bindings of the outer row are put into the pattern, and the
pattern is evaluated. Two ways make a plan of that.

Where the outer row cannot matter inside (joins, unions, filters over what they bind themselves),
the pattern is evaluated as it stands, and the rows that are asked about are matched with it.

Where it can (an OPTIONAL, a LIMIT, a filter on an outer variable), the outer rows are brought to
the leaves of the pattern. Each outer row gets a number; the rows with their number and bindings, in
hidden *carried* columns, are joined to each leaf, on compatibility. Every operator above then works
within one outer row, as the number is among what it joins, groups or ranks by. What comes out says
by its number which outer rows have a solution.
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
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import BatchExpression
from streamsparql.physical.hidden import asked_column
from streamsparql.physical.operator import Operator, Stateless
from streamsparql.physical.operators.columns import Rename, SelectEqual
from streamsparql.physical.operators.join import Join


class Outer(NamedTuple):
    """The outer rows that a pattern is asked for, and what of them can be seen at a place in it."""

    rows: Operator
    """Their number and bindings: the carried columns."""
    number: str
    bindings: Mapping[str, str]
    """The carried column of each outer variable."""
    visible: frozenset[str]
    """The outer variables that are the same ones here; others are hidden by a subquery."""

    @property
    def carried(self) -> tuple[str, ...]:
        """All carried columns."""
        return self.rows.names

    def without(self, hidden: Iterable[Variable]) -> Outer:
        """The same rows, below an operator that has variables of these names of its own."""
        return self._replace(visible=self.visible - {v.name for v in hidden})

    def within(self, names: Iterable[Variable]) -> Outer:
        """The same rows, below a projection: other variables are the subquery's own."""
        return self._replace(visible=self.visible & {v.name for v in names})

    def seen(self, names: Iterable[str]) -> dict[str, str]:
        """Of these variables those that the outer row gives a value, with their columns."""
        return {name: self.bindings[name] for name in names if name in self.visible}


class OuterRows(Stateless):
    """The carried columns: a row's number, and the values in it or else in its outer row."""

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
            columns[column] = _first(batch, own, outer)
        return Batch(columns, batch.start, batch.end, batch.count)


def _first(batch: Batch, own: str | None, outer: str | None) -> IntArray:
    """A row's own value, or where it has none that of the outer row."""
    if own is None or own not in batch.columns:
        return batch.column(outer or "")
    mine = batch.columns[own]
    return mine if outer is None else np.where(mine == 0, batch.columns[outer], mine)


def at_leaf(leaf: Operator, outer: Outer, terms: TermDictionary) -> Operator:
    """The rows of a leaf beside each outer row that they are compatible with.

    They keep what they bind themselves: the outer row decides which of them are there, no more.
    """
    seen = outer.seen(leaf.names)
    asked = {asked_column(name): name for name in seen}
    left = Rename(leaf, {**{name: name for name in leaf.names}, **asked})
    theirs = {column: seen[name] for column, name in asked.items()}
    right = Rename(outer.rows, {**{name: name for name in outer.carried}, **theirs})
    kept = (*leaf.names, *outer.carried)
    return Rename(Join(left, right, terms), {name: name for name in kept})


def agree(rows: Operator, outer: Outer) -> Operator:
    """The rows that are compatible with the outer row that they carry."""
    pairs: list[tuple[str, str | int]] = list(outer.seen(rows.names).items())
    return SelectEqual(rows, pairs, or_unbound=True) if pairs else rows


class Sighted:
    """A compiled expression that also sees the outer row, where the own row binds nothing."""

    def __init__(self, compiled: BatchExpression, seen: Mapping[str, str]) -> None:
        self._compiled = compiled
        self._seen = dict(seen)

    def _with_outer(self, batch: Batch) -> Batch:
        return batch.with_columns({n: _first(batch, n, outer) for n, outer in self._seen.items()})

    def holds(self, batch: Batch) -> BoolArray:
        """Where the condition is true."""
        return self._compiled.holds(self._with_outer(batch))

    def values(self, batch: Batch) -> IntArray:
        """The expression's values."""
        return self._compiled.values(self._with_outer(batch))

    def forget(self) -> None:
        """Passed on."""
        self._compiled.forget()


def reads(node: Node) -> frozenset[str]:
    """The names of all variables in an expression or a plan.

    >>> sorted(reads(shape.Projection((Variable("x"), Variable("y")), shape.UNIT)))
    ['x', 'y']
    """
    names: frozenset[str] = node.fold(_reads, keep="_reads")
    return names


def _reads(node: Node, parts: list[frozenset[str]]) -> frozenset[str]:
    own = [node.name] if isinstance(node, Variable) else []
    if isinstance(node, Plan):
        own += [v.name for v in scope(node).possible]
        own += [member.name for member in node.members() if isinstance(member, Variable)]
    return frozenset(own).union(*parts)


def stands_alone(pattern: Plan, outer: frozenset[str]) -> bool:
    """Whether EXISTS over this pattern is a join of the outer rows with its rows.

    `outer` are the variables that outer rows may bind. True only where each solution of the pattern
    under an outer row is a solution without it that is compatible with the row, and the other way.

    >>> row = shape.Table((Variable("x"),), ((None,),))
    >>> stands_alone(row, frozenset("x")), stands_alone(join.LeftJoin(row, row), frozenset("x"))
    (True, False)
    """
    pending: list[tuple[Plan, frozenset[str]]] = [(pattern, outer)]
    while pending:
        node, seen = pending.pop()
        if isinstance(node, w.Window) or not (reads(node) & seen):
            continue  # outer rows stay above windows
        inside = _alone(node, seen)
        if inside is None:
            return False
        pending += [(child, inside) for child in node.inputs]
    return True


def _alone(node: Plan, outer: frozenset[str]) -> frozenset[str] | None:
    """The outer variables that matter below a node; None where they matter in the node itself."""
    match node:
        case match.TriplePatternMatching():
            return frozenset()  # what it binds is compared in the end
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
    """The variables whose values an expression depends on."""
    names = {v.name for v in expression.walk() if isinstance(v, Variable)}
    return frozenset(names)


def _may_be_empty(way: path.PathExpression) -> bool:
    """Whether a path has ways of length zero in it, which are at home at terms of the outer row."""
    return any(isinstance(part, path.ZeroOrMore | path.ZeroOrOne) for part in way.walk())
