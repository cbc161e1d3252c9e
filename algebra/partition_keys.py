"""Partitioning of a plan by the value of a variable (partition.py: by time).

If a variable is bound in all rows that joins, groups and duplicate elimination combine, they never
combine rows with different values of it: it is one of `partition_keys`. The streams can then be
partitioned by that value. Each part is evaluated with all of the static data, and the union of the
results is the result. So it is for events: the rows of both sides of a SEQ, and those that decide
whether a row of an optional side exists, have the value.

A pattern over a stream with CONSTRUCT rules also matches what these derive. The value must then be
that of a key of the rule, at the same place of the template; `key_matchings` follows it through the
rules to the patterns that read items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from streamsparql.algebra import event, filter, group, join, match, shape
from streamsparql.algebra import window as w
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.entailment import reads_entailed
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rule_sets import derives
from streamsparql.algebra.rules.properties import is_static
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Variable

KeysOfMatching: TypeAlias = Callable[[match.TriplePatternMatching], frozenset[Variable]]
KeyMatching: TypeAlias = tuple[match.TriplePatternMatching, Variable]


def partition_keys(
    plan: Plan, entailed: KeysOfMatching = lambda _: frozenset()
) -> tuple[Variable, ...]:
    """Return the variables by whose values the streams can be partitioned.

    Each is bound in every row of the result. The rows with a certain value depend only on elements
    that a pattern matches with that value, and on the static data, which each part has. `entailed`
    returns the variables of a pattern over entailed triples that are bound to terms of the element.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> one, other = streamed("?x p ?y"), streamed("?x q ?z")
    >>> projected = shape.Projection((Variable("y"),), one)
    >>> partition_keys(join.Join(one, other)), partition_keys(projected)
    ((?x,), (?y,))
    """
    if is_static(plan):
        return ()
    keys: frozenset[Variable] = plan.fold(partial(_keys, entailed))
    return tuple(
        v
        for v in scope(plan).possible
        if v in keys and key_matchings(plan, v, entailed) is not None
    )


def key_matchings(
    plan: Plan, key: Variable, entailed: KeysOfMatching = lambda _: frozenset()
) -> tuple[KeyMatching, ...] | None:
    """Return the patterns over streams, each with the variable that has the value of a key there.

    None if a rule derives triples for one of them from items that may have another value.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> key_matchings(streamed("?x p ?y"), Variable("x"))[0][1]
    ?x
    """
    closure = next((node for node in plan.operators() if isinstance(node, Closure)), None)
    keys_of_rules = {}
    if closure is not None:
        keys_of_rules = {
            k: rule.input.fold(partial(_keys, entailed)) for k, rule in enumerate(closure.rules)
        }
    reached: dict[KeyMatching, None] = {}
    pending = [(matching, key) for matching in _matchings(plan)]
    while pending:
        here = pending.pop()
        if here in reached:
            continue
        reached[here] = None
        matching, variable = here
        if closure is None:
            continue
        for k, triple in derives(closure.stream, closure.rules, matching):
            rule = closure.rules[k]
            if is_static(rule.input):  # it derives nothing
                continue
            places = zip(triple, matching.pattern, strict=True)
            terms = {term for term, place in places if place == variable}
            keys = keys_of_rules[k].intersection(terms)
            if not terms or len(keys) < len(terms) or reads_entailed(matching.input):
                return None
            pending += [(each, term) for each in _matchings(rule.input) for term in keys]
    return tuple(reached)


def _matchings(plan: Plan) -> Iterator[match.TriplePatternMatching]:
    """Yield the patterns of a plan, without those of rules."""
    pending: list[Node] = [plan]
    while pending:
        node = pending.pop()
        if isinstance(node, match.TriplePatternMatching):
            yield node
        pending += [node.input] if isinstance(node, Closure) else node.parts()


_NONE: frozenset[Variable] = frozenset()
_KEEPS_KEYS = (
    filter.Filter,
    shape.Extend,
    shape.OrderBy,
    shape.Reduced,
    shape.Distinct,
    shape.Number,
    event.Detect,
)


def _keys(
    entailed: KeysOfMatching, node: Node, parts: list[frozenset[Variable]]
) -> frozenset[Variable]:
    if not isinstance(node, Plan):
        return _NONE
    if is_static(node):
        return frozenset(scope(node).certain)
    pairs = zip(node.parts(), parts, strict=True)
    inputs = [(part, keys) for part, keys in pairs if isinstance(part, Plan)]
    below = [keys for _, keys in inputs]
    match node:
        case match.TriplePatternMatching():
            if any(isinstance(x, w.ElementWindow) for x in node.walk()):
                return _NONE
            return entailed(node) if reads_entailed(node) else frozenset(scope(node).certain)
        case w.Window():
            return _NONE if isinstance(node, w.ElementWindow) else below[0]
        case (
            match.BasicGraphPattern()
            | join.Join()
            | event.SeqJoin()
            | event.EqJoin()
            | event.SeqWithout()
        ):
            moving = [keys for plan, keys in inputs if not is_static(plan)]
            return frozenset.intersection(*moving)
        case event.SeqRightJoin(left) | event.NeverBefore(left):
            return below[1] if is_static(left) else below[1] & below[0]
        case event.EqLeftJoin(_, right):
            return below[0] if is_static(right) else below[0] & below[1]
        case Closure():
            return below[-1]
        case join.LeftJoin() | join.Minus() | filter.SemiJoin() | filter.AntiJoin() | filter.Mark():
            moving = [keys for plan, keys in inputs[1:] if not is_static(plan)]
            return below[0].intersection(*moving)
        case join.Union():
            return frozenset.intersection(*below)
        case shape.Projection(variables) | group.Aggregation(variables):
            return below[0].intersection(variables)
        case group.Annotate(keys=variables):
            return below[0].intersection(variables)
    return below[0] if isinstance(node, _KEEPS_KEYS) else _NONE
