"""The table of one empty row is the identity of the join.

Law: `{()} join P = P`. Source: SPARQL 1.1, section 18.5 (the empty mapping is compatible with all).

Side condition: none. The rule is sound over events, where the empty row never occurs, and in the
pattern of an EXISTS: the empty row is compatible with any outer row.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.shape import UNIT
    >>> plan = Join(UNIT, triples("?x p ?y"))
    >>> print(sketch(plan), "->", sketch(drop_units(plan)))
    Join(Table(: ()), ?x p ?y) -> ?x p ?y
"""

from __future__ import annotations

from streamsparql.algebra.join import Join
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import is_unit
from streamsparql.algebra.rules.rule import Rule


def drop_units(plan: Plan) -> Plan | None:
    """Replace a join with the unit by its other side."""
    if not isinstance(plan, Join):
        return None
    if is_unit(plan.left):
        return plan.right
    return plan.left if is_unit(plan.right) else None


RULE = Rule(drop_units, at=(Join,), bottom_up=True, over_events=True)
