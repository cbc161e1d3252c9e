"""REDUCED permits, but does not require, the removal of duplicates; here it is an identity.

Law: `Reduced(P) = P`. Source: SPARQL 1.1, section 18.5, Reduced; SEMANTICS.md section 4.

Side condition: none. The rule is sound in the pattern of an EXISTS, and over events.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.shape import Reduced
    >>> print(sketch(drop_reduced(Reduced(triples("?x p ?y")))))
    ?x p ?y
"""

from __future__ import annotations

from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.shape import Reduced


def drop_reduced(plan: Plan) -> Plan | None:
    """Replace a Reduced by its input."""
    return plan.input if isinstance(plan, Reduced) else None


RULE = Rule(drop_reduced, at=(Reduced,), over_events=True)
