"""The rewriting rules in the order in which they run.

The rules are in `rules`, one per file, which ends with the rule's declaration. Here they stand in
phases, by name, since some only make sense after others: first a plan is simplified and its filters
go down, then joins are ordered by cost, then filters go between the joins and unused columns are
removed. (A projection between two joins would keep them from being ordered.) `fixpoint` runs them.

Why it ends. First phase: each rule removes operators other than filters, or operators from below a
filter, a condition or a slice (these only go down), or parts of an expression, and none brings back
what those before it in this list removed. Second phase: one round, and the order of a chain is a
function of its parts that returns an ordered chain as it is. Third phase: filters go down; a basic
graph pattern is split only to take one in. Last phase: a projection is put only where it removes a
column that is bound below, so each step leaves fewer columns somewhere and more nowhere.
"""

from __future__ import annotations

from importlib import import_module

from streamsparql.algebra import rules
from streamsparql.algebra.cost import Costs, Statistics
from streamsparql.algebra.fixpoint import Phase, Replacement, Rewriting
from streamsparql.algebra.plan import Plan


def _phase(*names: str) -> Phase:
    """Return the phase of the rules that are declared in these files of `rules`."""
    return Phase(*(import_module(f"{rules.__name__}.{name}").RULE for name in names))


_PUSHING = (
    "merge_filters",
    "push_filters_into_joins",
    "push_filters_left",
    "push_filters_into_unions",
    "push_filters_down",
    "push_filters_below_windows",
)

SIMPLIFY = _phase(
    "fold_constants",
    "drop_reduced",
    "simplify_existence_tests",
    "drop_order",
    "merge_projections",
    "drop_projections",
    "push_slices",
    "drop_distinct",
    "drop_constant_conditions",
    "propagate_empty",
    "fold_tables",
    *_PUSHING,
    "push_left_join_conditions",
    "drop_units",
)
"""Makes a plan smaller, and its filters early."""

ORDER_JOINS = _phase("order_joins")
"""Orders the joins of whole chains."""

SETTLE = _phase(*_PUSHING, "push_filters_into_prefixes")
"""Puts filters between joins, once their order is settled."""

PRUNE = _phase(
    "merge_projections",
    "drop_projections",
    "drop_unused_bindings",
    "prune_columns",
    "fold_tables",
)
"""Removes unused columns."""


def phases(statistics: Statistics | None = None) -> tuple[Phase, ...]:
    """Return the phases, in which rules that choose by cost know these statistics."""
    costs = Costs(statistics)
    return tuple(phase.with_costs(costs) for phase in (SIMPLIFY, ORDER_JOINS, SETTLE, PRUNE))


def rewrite(
    plan: Plan,
    rules: tuple[Phase, ...] | None = None,
    statistics: Statistics | None = None,
) -> Rewriting:
    """Run the rules on a plan; the result has the plan's snapshots, at every instant.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> plan = Filter(equals("?y", "1"), Join(triples("?x p ?y"), triples("?x q ?z")))
    >>> found = rewrite(plan)
    >>> print(sketch(found.plan))
    BasicGraphPattern(Filter(?y = 1, ?x p ?y), ?x q ?z)
    >>> found.counts()
    {'push_filters_into_joins': 1, 'order_joins': 1}
    """
    trace: list[Replacement] = []
    for phase in phases(statistics) if rules is None else rules:
        plan = phase.run(plan, trace)
    return Rewriting(plan, tuple(trace))
