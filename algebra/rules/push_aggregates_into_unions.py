"""Aggregates are computed in the branches of a union.

Law: `Aggregation(K, F, P union Q) = Aggregation(K, F, P) union Aggregation(K, F, Q)` where a key
has one value in P and another one in Q, for instance the name of the stream that `GRAPH ?market`
reads; the same with `Annotate`: such aggregates are totally distributable. Others are partially
distributable: `Aggregation(K, F, P union Q) = Aggregation(K, F2, Aggregation(K, F1, P) union
Aggregation(K, F1, Q))` where F1 are the aggregates of parts of a group, and F2 combine them.
Source: EDBT 2010, section 5.2.

Side condition, for the first: each branch certainly binds that key to one term. Branches with the
same term stay together. For the second: each aggregate can be divided into those of parts
(`partial_aggregates.divide`): COUNT, MIN, MAX, SAMPLE, sums and averages of exact numbers, none of
them DISTINCT except MIN, MAX and SAMPLE. There are keys, as without keys the groups of an empty
branch have a row without a least value. By itself that is no gain, so it is done where it pays to
push the aggregates further, into a join in a branch.

    >>> from streamsparql.algebra.expressions import Aggregate
    >>> from streamsparql.algebra.rules.sketch import *
    >>> m, n = expression("?m"), expression("?n")
    >>> branches = (Join(inline_data("?m", k), streamed("?x p ?y")) for k in (1, 2))
    >>> plan = Aggregation((m,), ((n, Aggregate("COUNT", None)),), Union(tuple(branches)))
    >>> type(push_aggregates_into_unions(plan)).__name__
    'Union'
"""

from __future__ import annotations

from streamsparql.algebra.cost import Costs
from streamsparql.algebra.expressions import Constant
from streamsparql.algebra.filter import AntiJoin, Filter, Mark, SemiJoin
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.join import Join, LeftJoin, Minus, Union
from streamsparql.algebra.match import BasicGraphPattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.partial_aggregates import divide
from streamsparql.algebra.rules.push_aggregates_into_joins import push_aggregates_into_joins
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.shape import Distinct, Extend, Projection, Table
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import Term


def push_aggregates_into_unions(plan: Plan, costs: Costs | None = None) -> Plan | None:
    """Compute the groups of a union in its branches, wholly or in part."""
    if not isinstance(plan, Aggregation | Annotate) or not isinstance(plan.input, Union):
        return None
    apart = _branches_apart(plan.keys, plan.input)
    if apart:
        return Union(tuple(plan.with_inputs(branch) for branch in apart))
    if isinstance(plan, Annotate) or not plan.keys:
        return None
    division = divide(plan.aggregates)
    if division is None:
        return None
    parts = [division.parts(plan.keys, branch) for branch in plan.input.branches]
    if not any(push_aggregates_into_joins(part, costs) for part in parts):
        return None
    return division.combined(plan.keys, plan.aggregates, Union(tuple(parts)))


def _branches_apart(keys: tuple[Variable, ...], union: Union) -> list[Plan]:
    """Return the branches, those with the same value of a key as one; none if all are one."""
    for key in keys:
        branches: dict[Term | None, list[Plan]] = {}
        for branch in union.branches:
            branches.setdefault(constant_value(branch, key), []).append(branch)
        if len(branches) > 1 and None not in branches:
            return [each[0] if len(each) == 1 else Union(tuple(each)) for each in branches.values()]
    return []


def constant_value(plan: Plan, variable: Variable) -> Term | None:
    """Return the term to which all rows of a plan bind a variable; None if it is not known.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> str(constant_value(Join(triples("?x p ?y"), inline_data("?x", 5)), expression("?x")))[:3]
    '"5"'
    """
    match plan:
        case Table(variables, rows) if variable in variables:
            terms = {row[variables.index(variable)] for row in rows}
            return terms.pop() if len(terms) == 1 else None
        case Extend(bound, expression) if bound == variable:
            return expression.term if isinstance(expression, Constant) else None
        case Projection(variables) if variable not in variables:
            return None
        case Join() | BasicGraphPattern():
            terms = {constant_value(side, variable) for side in plan.inputs} - {None}
            return terms.pop() if len(terms) == 1 else None
        case Extend() | Projection() | Distinct() | Filter() | Mark() | SemiJoin() | AntiJoin():
            return constant_value(plan.inputs[0], variable)
        case LeftJoin(left) | Minus(left):
            return constant_value(left, variable)
        case Union(branches):
            terms = {constant_value(branch, variable) for branch in branches}
            return terms.pop() if len(terms) == 1 else None
    return None


RULE = Rule(
    push_aggregates_into_unions, at=(Aggregation, Annotate), below_exists=False, by_cost=True
)
