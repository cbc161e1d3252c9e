"""Variables that only distinguish events are removed, where it does not matter how many there are.

Without them fewer events are different. In `SELECT DISTINCT ?x { A SEQ B SEQ C }` it matters for a
C only whether it follows a B, not which one: of the pairs of A and B one per ?x and start remains.

Law: `Distinct(Projection(V, Detect(P))) = Distinct(Projection(V, Detect(Projection(V, P))))`, so
for ASK. Below, `Projection(V, op(P, Q)) = Projection(V, op(Projection(V + R, P), ..))`, where R are
the variables that both sides bind, and those of the condition.
Source: relational projection push-down, over sets; SEMANTICS.md section 7, "the set of event
solutions".

Side condition: between `Distinct` and `Detect` there are only projections, filters and BIND, which
read the remaining variables; events without DISTINCT are counted. The sides of a `SeqWithout` keep
their variables, by which it compares events.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.event import Detect, SeqJoin
    >>> from streamsparql.algebra.graph import Ask
    >>> plan = Ask(Detect(SeqJoin(streamed("?x p ?y"), streamed("?x q ?z"))))
    >>> print(sketch(prune_events(plan).input))
    Detect(Projection(SeqJoin(Projection(?x, ?x p ?y), Projection(?x, ?x q ?z))))
"""

from __future__ import annotations

from collections import Counter

from streamsparql.algebra.event import (
    Detect,
    EqJoin,
    EqLeftJoin,
    NeverBefore,
    SeqJoin,
    SeqRightJoin,
)
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.graph import Ask
from streamsparql.algebra.join import Join, LeftJoin, Union
from streamsparql.algebra.match import BasicGraphPattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import Variables, variables_in
from streamsparql.algebra.rules.prune_columns import keep_columns
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import Distinct, Extend, Projection


def prune_events(plan: Plan) -> Plan | None:
    """Remove the variables of events that nothing reads, below DISTINCT and ASK."""
    if isinstance(plan, Ask):
        wanted: Variables = frozenset()
    elif isinstance(plan, Distinct):
        wanted = frozenset(scope(plan).possible)
    else:
        return None
    (rows,) = plan.inputs
    fewer = _of_snapshots(rows, wanted)
    return None if fewer is rows else plan.with_inputs(fewer)


def _of_snapshots(plan: Plan, wanted: Variables) -> Plan:
    """Return a plan whose events have only the variables that are wanted, and those it reads."""
    match plan:
        case Projection(variables, rows):
            fewer = _of_snapshots(rows, wanted.intersection(variables))
        case Filter(condition, rows):
            fewer = _of_snapshots(rows, wanted | variables_in(condition))
        case Extend(_, expression, rows):
            fewer = _of_snapshots(rows, wanted | variables_in(expression))
        case Detect(rows):
            fewer = _of_events(rows, wanted)
        case _:
            return plan
    return plan if fewer is rows else plan.with_inputs(fewer)


def _of_events(plan: Plan, wanted: Variables) -> Plan:
    """Return a plan of events with only the variables that are wanted."""
    if frozenset(scope(plan).possible) <= wanted:
        return plan
    return keep_columns(_narrowed(plan, wanted), wanted)


def _narrowed(plan: Plan, wanted: Variables) -> Plan:
    """Return an operator over inputs without the variables that are not wanted or read by it."""
    match plan:
        case Projection(_, rows):
            inputs: tuple[Plan, ...] = (_of_events(rows, wanted),)
        case Filter(condition, rows):
            inputs = (_of_events(rows, wanted | variables_in(condition)),)
        case Extend(variable, expression, rows):
            if variable not in wanted:
                return _of_events(rows, wanted)
            inputs = (_of_events(rows, wanted | variables_in(expression)),)
        case Union():
            inputs = tuple(_of_events(branch, wanted) for branch in plan.inputs)
        case BasicGraphPattern() | Join() | SeqJoin() | EqJoin():
            inputs = tuple(_of_events(part, wanted | _shared(plan)) for part in plan.inputs)
        case (
            LeftJoin(_, _, condition)
            | EqLeftJoin(_, _, condition)
            | SeqRightJoin(_, _, condition)
            | NeverBefore(_, _, condition)
        ):
            read = wanted | _shared(plan)
            if condition is not None:
                read |= variables_in(condition)
            inputs = tuple(_of_events(part, read) for part in plan.inputs)
        case _:
            return plan
    same = all(one is other for one, other in zip(inputs, plan.inputs, strict=True))
    return plan if same else plan.with_inputs(*inputs)


def _shared(plan: Plan) -> Variables:
    """Return the variables that several inputs bind, by which rows are compatible."""
    bound = Counter(variable for part in plan.inputs for variable in scope(part).possible)
    return frozenset(variable for variable, times in bound.items() if times > 1)


RULE = Rule(prune_events, at=(Distinct, Ask), below_exists=False)
