"""The rewrite rules, in phases, in the order in which they run.

The rules are in `rules`, one per file, which ends with the rule's declaration. The phases list them
by name, since some depend on others: first a plan is simplified and its filters are pushed down,
then aggregates are pushed down, then joins and sequences are ordered by cost, then filters are
placed between the joins and unused columns are removed. (A projection between two joins would
prevent their ordering.) `fixpoint` runs the phases.

Termination. First phase: each rule removes operators other than filters, moves a filter, a
condition, a slice or a matching down (none moves up), or removes parts of an expression; no rule
restores what a rule before it in this list removed. Second phase: an aggregation moves below a
union, or its input is grouped, and groups are not grouped again. Third and fourth phase: one round,
and the order of a chain is a function of its parts that leaves an ordered chain unchanged. Fifth
phase: filters move down; a basic graph pattern is split only to place a filter in it. Last phase: a
projection is added only where it removes a column that is bound below, so each step removes columns
and adds none.
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
    "absence_before",
    "absence_in_between",
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
    "match_below_distinct",
    "group_annotations",
    "drop_distinct",
    "drop_constant_conditions",
    "propagate_empty",
    "fold_tables",
    *_PUSHING,
    "push_left_join_conditions",
    "drop_units",
)
"""Removes operators and pushes filters down."""

PUSH_AGGREGATES = _phase("push_aggregates_into_unions", "push_aggregates_into_joins")
"""Computes aggregates near the streams; filters are there already."""

ORDER_JOINS = _phase("order_joins")
"""Orders chains of joins by cost."""

ORDER_SEQUENCES = _phase("order_sequences")
"""Orders chains of SEQ by cost."""

SETTLE = _phase(*_PUSHING, "push_filters_into_prefixes")
"""Places filters between joins, whose order is now fixed."""

PRUNE = _phase(
    "merge_projections",
    "drop_projections",
    "drop_unused_bindings",
    "prune_columns",
    "prune_events",
    "fold_tables",
    "drop_units",
)
"""Removes unused columns."""


_PHASES = (SIMPLIFY, PUSH_AGGREGATES, ORDER_JOINS, ORDER_SEQUENCES, SETTLE, PRUNE)


def phases(statistics: Statistics | None = None) -> tuple[Phase, ...]:
    """Return the phases, with estimates from these statistics for rules that choose by cost."""
    costs = Costs(statistics)
    return tuple(phase.with_costs(costs) for phase in _PHASES)


def rewrite(
    plan: Plan,
    rules: tuple[Phase, ...] | None = None,
    statistics: Statistics | None = None,
) -> Rewriting:
    """Rewrite a plan by the rules; the result has the same snapshot at every instant.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> plan = Filter(equals("?y", "1"), Join(triples("?x p ?y"), triples("?x q ?z")))
    >>> rewriting = rewrite(plan)
    >>> print(sketch(rewriting.plan))
    BasicGraphPattern(Filter(?y = 1, ?x p ?y), ?x q ?z)
    >>> rewriting.counts()
    {'push_filters_into_joins': 1, 'order_joins': 1}
    """
    trace: list[Replacement] = []
    for phase in phases(statistics) if rules is None else rules:
        plan = phase.run(plan, trace)
    return Rewriting(plan, tuple(trace))
