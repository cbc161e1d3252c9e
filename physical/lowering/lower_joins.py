"""Chains of joins: computed in pairs, by a tree of binary joins, or together, by one operator.

A *chain* is a tree of joins, and of projections that remove columns between them. Its inputs are
the plans below. A static part is one input; its rows are computed before the choice (DERI TR 2010,
section 4.2), so their number is exact if the graphs are known. All else is estimated
(algebra/join_cost.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from streamsparql.algebra import shape
from streamsparql.algebra.cost import Costs, Statistics
from streamsparql.algebra.join_cost import JoinChoice, JoinCosts, JoinSide, JoinTree
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import JOINS, is_static
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.physical.batch import Batch
from streamsparql.physical.hidden import variable_of
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.access import Always
from streamsparql.physical.operators.multi_join import MultiJoin

if TYPE_CHECKING:
    from streamsparql.physical.lowering.lower import At, Catalog, Lowering

MODE: Literal["by cost", "together", "in pairs"] = "by cost"
"""How chains are computed; tests and benchmarks set it, to compare the ways."""
MOST_INPUTS = 8
"""The number of inputs up to which a chain can be computed together."""


class PlacedPlan(NamedTuple):
    """A plan and its place in the query."""

    plan: Plan
    at: At

    @property
    def joins(self) -> PlacedPlan | None:
        """The join at its root, or below a projection that only removes columns."""
        plan, at = self
        if isinstance(plan, JOINS):
            return self
        if isinstance(plan, shape.Projection) and isinstance(plan.input, JOINS):
            if set(plan.variables) <= set(scope(plan.input).possible):
                return PlacedPlan(plan.input, at.of_input(plan))
        return None


class Chain(NamedTuple):
    """A chain of joins: its inputs, the tree of its joins, and its variables."""

    inputs: list[PlacedPlan]
    tree: JoinTree
    joins: list[Plan]
    removed: frozenset[Variable]
    """The variables that projections between the joins remove."""


class JoinLowering:
    """The lowering of chains of joins, and the reasons for each way."""

    def __init__(self, low: Lowering) -> None:
        self._low = low
        self._costs = Costs(_statistics_of(low.catalog))
        self._reasons: dict[Plan, str] = {}
        self._in_pairs: set[Plan] = set()
        """The joins of chains that are computed in pairs, which are no chains themselves."""

    def reason(self, node: Plan) -> str:
        """Return why the chain at the root of a plan is computed in its way, if it had a choice."""
        return self._reasons.get(node, "")

    def together(self, node: Plan, at: At) -> MultiJoin | None:
        """Return the operator that joins all inputs of a chain, unless it is computed in pairs."""
        if not isinstance(node, JOINS) or node in self._in_pairs:
            return None
        chain = self._chain(PlacedPlan(node, at))
        if chain is None:
            return None
        choice = self._choice(chain)
        self._reasons[node] = choice.reason
        if choice.together:
            return self._operator(chain)
        self._in_pairs.update(chain.joins)
        return None

    def _choice(self, chain: Chain) -> JoinChoice:
        if MODE != "by cost":
            return JoinChoice(MODE == "together", f"{MODE}, whatever it costs")
        if chain.inputs[0].at.outer is not None:
            return JoinChoice(False, "in pairs, as the rows are those of an EXISTS")
        return JoinCosts([self._side(each) for each in chain.inputs]).choice(chain.tree)

    def _operator(self, chain: Chain) -> MultiJoin:
        inputs = [self._input(each) for each in chain.inputs]
        names = dict.fromkeys(name for each in inputs for name in each.names)
        kept = [name for name in names if variable_of(name) not in chain.removed]
        return MultiJoin(inputs, kept, self._low.terms)

    # -- chains

    def _chain(self, root: PlacedPlan) -> Chain | None:
        """Return the chain of three or more inputs at a root, if it reads a stream.

        None also if there are too many inputs, or if a variable that a projection removes has the
        name of another one.
        """
        if is_static(root.plan) or not 3 <= self._number_of_inputs(root) <= MOST_INPUTS:
            return None
        inputs: list[PlacedPlan] = []
        joins: list[Plan] = []
        removed: list[tuple[Variable, range]] = []

        def tree_of(placed: PlacedPlan) -> JoinTree:
            joined, first = self._joined_in_chain(placed), len(inputs)
            if joined is None:
                inputs.append(placed)
                return first
            joins.append(joined.plan)
            tree: JoinTree = tree_of(PlacedPlan(joined.plan.inputs[0], joined.at))
            for below in joined.plan.inputs[1:]:
                tree = tree, tree_of(PlacedPlan(below, joined.at))
            kept = scope(placed.plan).possible
            dropped = (v for v in scope(joined.plan).possible if v not in kept)
            removed.extend((variable, range(first, len(inputs))) for variable in dropped)
            return tree

        tree = tree_of(root)
        names = [{*scope(each.plan).possible} for each in inputs]
        for variable, own in removed:
            if any(variable in names[k] for k in range(len(names)) if k not in own):
                return None
        return Chain(inputs, tree, joins, frozenset(variable for variable, _ in removed))

    def _number_of_inputs(self, root: PlacedPlan) -> int:
        """Return the number of inputs of a chain, or a number that is too large."""
        number, pending = 0, [root]
        while pending and number + len(pending) <= MOST_INPUTS:
            placed = pending.pop()
            if (joins := self._joined_in_chain(placed)) is None:
                number += 1
            else:
                pending += [PlacedPlan(below, joins.at) for below in joins.plan.inputs]
        return number + len(pending)

    def _joined_in_chain(self, placed: PlacedPlan) -> PlacedPlan | None:
        """Return the join whose inputs are those of the chain; None if the plan is an input."""
        precomputed = is_static(placed.plan) or placed.plan in self._low.catalog.results
        return None if precomputed else placed.joins

    # -- estimates

    def _side(self, placed: PlacedPlan) -> JoinSide:
        """Return the estimates of an input; those of static ones are exact."""
        operator = self._input(placed) if is_static(placed.plan) else None
        if isinstance(operator, Always) and self._low.catalog.known:
            return _exact_side(operator.rows)
        return self._costs.side(placed.plan)

    def _input(self, placed: PlacedPlan) -> Operator:
        """Return the operator of an input; that of a static one has its rows."""
        lower = self._low.precomputed if is_static(placed.plan) else self._low.rows
        return lower(*placed)


def _exact_side(rows: Batch) -> JoinSide:
    """Return the number of static rows, and of the distinct values in their columns."""
    values = {variable_of(name): len(np.unique(ids)) for name, ids in rows.columns.items()}
    return JoinSide(len(rows), 0.0, {variable: max(n, 1) for variable, n in values.items()})


def _statistics_of(catalog: Catalog) -> Statistics:
    """Return the sizes of the static graphs; defaults if they are not known."""
    if not catalog.known:
        return Statistics()
    sizes: dict[IRI | None, int] = {None: len(catalog.default)}
    sizes.update((name, len(graph)) for name, graph in catalog.named.items())
    return Statistics(sizes=sizes)
