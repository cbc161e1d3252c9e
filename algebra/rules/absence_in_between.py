"""A sequence without an event in between is one operator.

SPARQL has no such pattern. It is written as a sequence, optionally simultaneous with the same
sequence that has the event, which must be unbound:

    { A SEQ C } EQUALSOPTIONAL { A SEQ B SEQ C } FILTER(!BOUND(?b))

As written, it pairs all A with all C, and with all B between them. The operator probes each C once.

Law: `Filter(!BOUND(?b), EqLeftJoin(A seq C, A seq B seq C)) = SeqWithout(A, C, B)`, which is its
definition. Sequences are associative, so A, B and C are any parts of longer ones.
Source: SEMANTICS.md section 7; WWW 2011, queries (5) and (6).

Side condition: the optional side has no filter. A and C bind the same variables in all their rows,
so that a row of one is compatible with few of the other. `?b` is certainly bound by B, and not
possibly by A or C; the variables that B shares with them are certain in B. The rule is sound over
events, where these operators are.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.expressions import Bound, Not
    >>> a, b, c = streamed("?x p ?y"), streamed("?x q ?b"), streamed("?x r ?z")
    >>> pairs = EqLeftJoin(SeqJoin(a, c), SeqJoin(SeqJoin(a, b), c))
    >>> print(sketch(absence_in_between(Filter(Not(Bound(expression("?b"))), pairs))))
    SeqWithout(?x p ?y, ?x r ?z, ?x q ?b)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from streamsparql.algebra.event import EqLeftJoin, SeqJoin, SeqWithout
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.node import flatten
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import filter_by, split_absent
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope


def absence_in_between(plan: Plan) -> Plan | None:
    """Replace a sequence that is optionally interrupted by one that is not."""
    match plan:
        case Filter(condition, EqLeftJoin(SeqJoin() as whole, SeqJoin() as interrupted, None)):
            pass
        case _:
            return None
    parts, with_absent = sequence(whole), sequence(interrupted)
    between = len(with_absent) - len(parts)
    for k in range(1, len(parts)):
        if between < 1 or with_absent[:k] != parts[:k] or with_absent[k + between :] != parts[k:]:
            continue
        left, absent, right = map(
            _in_sequence, (parts[:k], with_absent[k : k + between], parts[k:])
        )
        sides, own = scope(SeqJoin(left, right)), scope(absent)
        if not (scope(left).is_fixed and scope(right).is_fixed):
            continue
        shared = frozenset(own.possible) & frozenset(sides.possible)
        tested, others = split_absent(condition, frozenset(own.certain) - shared)
        if tested and shared <= frozenset(own.certain):
            return filter_by(others, SeqWithout(left, right, absent))
    return None


def sequence(plan: Plan) -> list[Plan]:
    """Return the parts of nested sequences, in order."""
    return list(flatten(plan, lambda one: one.inputs if isinstance(one, SeqJoin) else None))


def _in_sequence(parts: Sequence[Plan]) -> Plan:
    return reduce(SeqJoin, parts)


RULE = Rule(absence_in_between, at=(Filter,), below_exists=False, over_events=True)
