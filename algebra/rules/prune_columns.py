"""Unused columns are removed as far down as possible.

Law: `Projection(V, op(P)) = Projection(V, op(Projection(V + R, P)))` where R are the variables that
`op` itself reads: those that two sides of a join share, those of its expressions, the columns that
break ties. The rule starts at operators that read some columns only: an Aggregation reads its keys
and arguments, a CONSTRUCT its template, a MINUS only the columns of its right side that the left
side may share.
Source: relational projection push-down, over bags; SPARQL 1.1, section 18.5.

Side condition: a projection preserves multiplicities, so only operators that read whole rows stop
it: `Distinct`, `Number`, COUNT(DISTINCT *), which reads all named variables, a template with blank
nodes, a `Slice` that ranks by fewer columns than are kept. The pattern of an EXISTS reads the outer
row by name: all variables that it mentions are kept. Nothing is pruned inside such a pattern, where
a projection would hide the outer row.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.shape import Projection
    >>> plan = Projection((expression("?y"),), Join(triples("?x p ?y"), triples("?x q ?z")))
    >>> print(sketch(prune_columns(plan)))
    Projection(?y, Join(?x p ?y, Projection(?x, ?x q ?z)))
"""

from __future__ import annotations

from streamsparql.algebra.expressions import Aggregate
from streamsparql.algebra.filter import AntiJoin, Filter, Mark, SemiJoin
from streamsparql.algebra.graph import Ask, Construct, Describe, Graph
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.join import Join, LeftJoin, Minus, Union
from streamsparql.algebra.match import BasicGraphPattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import Variables, variables_in
from streamsparql.algebra.rules.properties import is_ordered, mentioned_variables
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope, visible_variables
from streamsparql.algebra.shape import Extend, OrderBy, Projection, Slice
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import BlankNode

_NONE: Variables = frozenset()


def prune_columns(plan: Plan) -> Plan | None:
    """Remove the unused columns of an operator's inputs."""
    if isinstance(plan, Projection):
        below = _narrow(plan.input, frozenset(plan.variables))
        same = all(x is y for x, y in zip(below.inputs, plan.input.inputs, strict=False))
        return None if same else Projection(plan.variables, below)
    if isinstance(plan, Minus):
        right = keep_columns(plan.right, frozenset(scope(plan.left).possible))
        return None if right is plan.right else Minus(plan.left, right)
    wanted = _required(plan)
    if wanted is None:
        return None
    rows, *others = plan.inputs
    fewer = keep_columns(rows, wanted)
    return None if fewer is rows else plan.with_inputs(fewer, *others)


def keep_columns(plan: Plan, wanted: Variables) -> Plan:
    """Project a plan to the wanted columns; return the plan itself if it has no others."""
    possible = scope(plan).possible
    kept = tuple(variable for variable in possible if variable in wanted)
    if len(kept) == len(possible):
        return plan
    return Projection(kept, plan.input if isinstance(plan, Projection) else plan)


def _required(plan: Plan) -> Variables | None:
    """Return the columns that an operator reads, if independent of those above; None otherwise."""
    match plan:
        case Aggregation(keys, aggregates, rows):
            calls = (_read_by(call, rows) for _, call in aggregates)
            return frozenset(keys).union(*calls)
        case Construct(template):
            places = [place for pattern in template for place in pattern]
            if any(isinstance(place, BlankNode) for place in places):
                return None
            return frozenset(place for place in places if isinstance(place, Variable))
        case Describe(resources):
            return frozenset(place for place in resources if isinstance(place, Variable))
        case Ask():
            return _NONE
    return None


def _read_by(call: Aggregate, rows: Plan) -> Variables:
    if call.argument is None and call.distinct:
        return frozenset(visible_variables(rows))
    return variables_in(call)


def _narrow(plan: Plan, kept: Variables) -> Plan:
    """Return an operator over narrower inputs, of which only the columns `kept` are used."""
    match plan:
        case Join(left, right):
            sides = _narrow_sides((left, right), kept)
            return plan if sides == [left, right] else Join(*sides)
        case BasicGraphPattern(matchings):
            return _narrow_pattern(matchings, kept, plan)
        case LeftJoin(left, right, condition, marks):
            read = _NONE if condition is None else variables_in(condition)
            wanted = kept.union(read, *(mentioned_variables(pattern) for _, pattern in marks))
            sides = _narrow_sides((left, right), wanted)
            return plan.with_inputs(*sides, *(pattern for _, pattern in marks))
        case Union(branches):
            return Union(tuple(keep_columns(branch, kept) for branch in branches))
        case Minus(left, right):
            wanted = kept.union(scope(right).possible)
            return Minus(keep_columns(left, wanted), right)
        case Slice(offset, limit, columns, rows):
            if not kept <= frozenset(columns):
                return plan
            if isinstance(rows, OrderBy):
                rows = _narrow(rows, frozenset(columns))
            elif not is_ordered(rows):
                rows = keep_columns(rows, frozenset(columns))
            return plan if rows is plan.input else Slice(offset, limit, columns, rows)
    also = _reads(plan)
    if also is None:
        return plan
    rows, *others = plan.inputs
    fewer = keep_columns(rows, kept | also)
    return plan if fewer is rows else plan.with_inputs(fewer, *others)


def _reads(plan: Plan) -> Variables | None:
    """Return the columns that a unary operator itself reads; None if it reads whole rows."""
    match plan:
        case Filter(condition):
            return variables_in(condition)
        case Extend(_, expression):
            return variables_in(expression)
        case Mark(_, _, pattern) | SemiJoin(_, pattern) | AntiJoin(_, pattern):
            return mentioned_variables(pattern)
        case OrderBy(keys, columns):
            return frozenset(columns).union(*(variables_in(key) for key, _ in keys))
        case Annotate(_, call, keys, rows):
            return frozenset(keys) | _read_by(call, rows)
        case Graph(name):
            return frozenset((name,)) if isinstance(name, Variable) else _NONE
    return None


def _narrow_sides(sides: tuple[Plan, ...], kept: Variables) -> list[Plan]:
    """Return the sides of a join with the columns kept above and those that they share."""
    seen: set[Variable] = set()
    shared: set[Variable] = set()
    for side in sides:
        possible = scope(side).possible
        shared.update(variable for variable in possible if variable in seen)
        seen.update(possible)
    wanted = kept | shared
    return [keep_columns(side, wanted) for side in sides]


def _narrow_pattern(matchings: tuple[Plan, ...], kept: Variables, plan: Plan) -> Plan:
    """Return a basic graph pattern whose joins emit only columns that are used later."""
    sides = _narrow_sides(matchings, kept)
    last: dict[Variable, int] = {}
    for k, side in enumerate(sides):
        for variable in scope(side).possible:
            last[variable] = k
    ends: dict[int, set[Variable]] = {}
    for variable, k in last.items():
        if variable not in kept:
            ends.setdefault(max(k, 1), set()).add(variable)
    joined: list[Plan] = []
    for k, side in enumerate(sides):
        joined.append(side)
        if k in ends and 0 < k < len(sides) - 1:
            whole = BasicGraphPattern(tuple(joined))
            rest = tuple(v for v in scope(whole).possible if v not in ends[k])
            joined = [Projection(rest, whole)]
    if len(joined) == len(sides) and all(x is y for x, y in zip(joined, matchings, strict=True)):
        return plan
    return BasicGraphPattern(tuple(joined))


RULE = Rule(
    prune_columns, at=(Projection, Minus, Aggregation, Construct, Describe, Ask), below_exists=False
)
