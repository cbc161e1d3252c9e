"""A pattern is matched before duplicates among entailed triples are removed.

Law: `TriplePatternMatching(p, Distinct(T)) = Distinct(TriplePatternMatching(p, T))`.
Source: SEMANTICS.md sections 4 and 9: a solution of a pattern determines the triple.

Side condition: T has entailed triples. Then the engine computes only those that match, and retains
only these rows; other patterns share one Distinct, which is cheaper. Stamps are unaffected, since
the maximum of maxima is the maximum. The rule is sound in the pattern of an EXISTS.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.access import AccessGraph
    >>> from streamsparql.algebra.entailment import Entailed
    >>> from streamsparql.algebra.shape import Distinct
    >>> data = AccessGraph(background=True)
    >>> plan = triples("?x p ?y", Distinct(Entailed(data, data)))
    >>> print(sketch(match_below_distinct(plan)))
    Distinct(?x p ?y)
"""

from __future__ import annotations

from streamsparql.algebra.entailment import reads_entailed
from streamsparql.algebra.match import TriplePatternMatching
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.shape import Distinct


def match_below_distinct(plan: Plan) -> Plan | None:
    """Exchange a matching and the Distinct over entailed triples below it."""
    if not isinstance(plan, TriplePatternMatching) or not isinstance(plan.input, Distinct):
        return None
    triples = plan.input.input
    return Distinct(plan.with_inputs(triples)) if reads_entailed(triples) else None


RULE = Rule(match_below_distinct, at=(TriplePatternMatching,))
