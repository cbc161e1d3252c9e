"""Chains of joins: computed in pairs, by a tree of binary joins, or together, by one operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from streamsparql.algebra import join, match, shape
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import JOINS, is_static
from streamsparql.algebra.scope import scope
from streamsparql.physical.operators.multi_join import MultiJoin
from streamsparql.physical.operators.shape import projected_to

if TYPE_CHECKING:
    from streamsparql.physical.lowering.lower import At, Lowered, Lowering

MODE = "by cost"
MOST = 8


class ChainInput(NamedTuple):
    plan: Plan
    at: At


def chain_inputs(node: Plan, at: At, most: int) -> list[ChainInput] | None:
    """Return the inputs"""
    inputs: list[ChainInput] = []
    pending = [ChainInput(node, at)]
    while pending:
        one = pending.pop()
        below = _joined(one, node)
        if below is None:
            inputs.append(one)
        else:
            pending.extend(reversed(below))
        if len(inputs) + len(pending) > most:
            return None
    return inputs


def _joined(one: ChainInput, root: Plan):
    plan, at = one
    if isinstance(plan, JOINS):
        if plan is not root and is_static(plan):
            return None
        return [ChainInput(each, at) for each in plan.inputs]
    if isinstance(plan, shape.Projection) and isinstance(plan.input, JOINS) and not is_static(plan):
        return [ChainInput(plan.input, at.of_input(plan))]
    return None


def lower_together(low: Lowering, node: Plan, at: At):
    if MODE == "in pairs" or not isinstance(node, JOINS) or is_static(node):
        return None
    inputs = chain_inputs(node, at, MOST)
    if inputs is None or len(inputs) < 3:
        return None
    operators = [low.rows(*each) for each in inputs]
    names = [v.name for v in scope(node).possible]
    if at.outer is not None:
        names = [*names, *(n for n in at.outer.carried if n not in names)]
    return low.made(MultiJoin(operators, names, low.terms))
