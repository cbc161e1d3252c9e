"""AGGREGATE below DISTINCT or CONSTRUCT is GROUP BY, if only keys and aggregates are left.

Law: `Distinct(op(Annotate(v, f, K, P))) = Distinct(op(Aggregation(K, (v, f), P)))` where `op` are
projections, filters and bindings, and `Annotate` may be several with the same keys; and the same
with `Construct`, whose triples are a set.
Source: EDBT 2010, section 5.2, on DISTINCT; sections 3.1 and 2.2 define AGGREGATE. The rows of a
group differ in no variable that is left, so all but one are duplicates.

Side condition: there are keys, as without them a group of no rows is a row. `op` projects to keys
and aggregates, and reads nothing else; so does a template, which has no blank nodes. No aggregate
reads another one. The rule is sound in the pattern of an EXISTS.

    >>> from streamsparql.algebra.expressions import Aggregate
    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.shape import Distinct, Projection
    >>> x, n = expression("?x"), expression("?n")
    >>> counted = Annotate(n, Aggregate("COUNT", None), (x,), triples("?x p ?y"))
    >>> print(sketch(group_annotations(Distinct(Projection((x, n), counted)))))
    Distinct(Projection(?x ?n, Aggregation(?x, ?n, Aggregate(COUNT), ?x p ?y)))
"""

from __future__ import annotations

from streamsparql.algebra.expressions import Aggregate
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.graph import Construct
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import variables_in
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.shape import Distinct, Extend, Projection
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import BlankNode


def group_annotations(plan: Plan) -> Plan | None:
    """Replace the annotations below a Distinct or a Construct by groups."""
    if not isinstance(plan, Distinct | Construct):
        return None
    above: list[Plan] = [plan]
    below = plan.input
    while isinstance(below, Projection | Filter | Extend):
        above.append(below)
        below = below.input
    groups = _groups(below)
    if groups is None or not _reads_groups_only(above, groups):
        return None
    grouped: Plan = groups
    for operator in reversed(above):
        grouped = operator.with_inputs(grouped)
    return grouped


def _groups(plan: Plan) -> Aggregation | None:
    """Return the groups of annotations with the same keys at the root of a plan."""
    aggregates: dict[Variable, Aggregate] = {}
    keys: tuple[Variable, ...] = ()
    while isinstance(plan, Annotate) and plan.keys and set(plan.keys) == set(keys or plan.keys):
        keys = keys or tuple(dict.fromkeys(plan.keys))
        aggregates = {plan.variable: plan.aggregate, **aggregates}
        plan = plan.input
    read = {*keys}.union(*map(variables_in, aggregates.values()))
    if not aggregates or read & aggregates.keys():
        return None
    return Aggregation(keys, tuple(aggregates.items()), plan)


def _reads_groups_only(above: list[Plan], groups: Aggregation) -> bool:
    """Return whether operators project rows to what their group determines, and read no more."""
    known = {*groups.keys, *(variable for variable, _ in groups.aggregates)}
    projected = False
    for operator in reversed(above):
        match operator:
            case Projection(variables):
                if not known.issuperset(variables):
                    return False
                known, projected = {*variables}, True
            case Construct(template):
                places = [place for pattern in template for place in pattern]
                if any(isinstance(place, BlankNode) for place in places):
                    return False
                projected = known.issuperset(p for p in places if isinstance(p, Variable))
            case Filter(condition):
                if not variables_in(condition) <= known:
                    return False
            case Extend(variable, expression):
                if not variables_in(expression) <= known:
                    return False
                known.add(variable)
    return projected


RULE = Rule(group_annotations, at=(Distinct, Construct))
