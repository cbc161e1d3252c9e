"""Sets of CONSTRUCT rules: which rule derives triples for which, and in which order they apply.

A rule *feeds* another if some triple of its template may match a pattern of the other. Rules that
feed each other, directly or through others, form a *stratum*; a stratum is complete, at an instant,
before the rules that it feeds are applied. So whatever a rule requires to be absent is known to be
absent when the rule is applied, unless its absence depends on the rule itself: such a set of rules
contradicts itself, as `contradiction` shows.

What has ended earlier is complete whatever the strata are. So the left side of a SEQ, which ends
before its right side, may lack triples of its own stratum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.entailment import reads_entailed
from streamsparql.algebra.event import (
    EqLeftJoin,
    NeverBefore,
    SeqJoin,
    SeqRightJoin,
    SeqWithout,
)
from streamsparql.algebra.graph import Construct
from streamsparql.algebra.join import LeftJoin
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, BlankNode, Term
from streamsparql.algebra.traversal import descend

Rules = Sequence[Construct]


class Stratum(NamedTuple):
    """Rules that feed each other, as places in a set; or one rule, which may feed itself."""

    rules: tuple[int, ...]
    recursive: bool


class Contradiction(NamedTuple):
    """A pattern that is optional when a rule is applied, although that rule feeds it.

    `cycle` are the places of the rules: each feeds the next, and the last one feeds the first,
    whose pattern it is.
    """

    pattern: TriplePatternMatching
    cycle: tuple[int, ...]


def strata(stream: IRI, rules: Rules) -> tuple[Stratum, ...]:
    """Return the strata of rules, each after those that feed it.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> x, y, s = Variable("x"), Variable("y"), IRI("s")
    >>> links = [("q", "r"), ("p", "q"), ("r", "r")]
    >>> rule = lambda p, q: Construct((TriplePattern(x, IRI(q), y),), streamed(f"?x {p} ?y"))
    >>> stream = next(n.stream for n in streamed("?x p ?y").walk() if isinstance(n, AccessStream))
    >>> for stratum in strata(stream, [rule(p, q) for p, q in links]):
    ...     print(*stratum)
    (1,) False
    (0,) False
    (2,) True
    """
    feeds = _feeds(stream, rules)
    reached = [_reached(feeds, k) for k in range(len(rules))]
    ordered: list[Stratum] = []
    placed = set[int]()
    while len(placed) < len(rules):
        for k in range(len(rules)):
            together = {k} | {j for j in reached[k] if k in reached[j]}
            before = {j for j in range(len(rules)) if k in reached[j]} - together
            if k not in placed and before <= placed:
                ordered.append(Stratum(tuple(sorted(together)), k in reached[k]))
                placed |= together
    return tuple(ordered)


def contradiction(stream: IRI, rules: Rules) -> Contradiction | None:
    """Return why a set of rules contradicts itself; None if it does not."""
    feeds = _feeds(stream, rules)
    for k, rule in enumerate(rules):
        for matching in optional_now(rule.input):
            for feeder in _feeders(stream, rules, matching):
                path = _path(feeds, k, feeder)
                if path is not None:
                    return Contradiction(matching, path)
    return None


def derives(
    stream: IRI, rules: Rules, matching: TriplePatternMatching
) -> Iterator[tuple[int, TriplePattern]]:
    """Yield the triples of templates that may match a pattern, with the places of their rules.

    The schema of an entailment, which is not known yet, may relate any two triples.
    """
    sources = (node for node in matching.input.walk() if isinstance(node, AccessStream))
    if all(source.stream != stream for source in sources):
        return
    entailed = reads_entailed(matching.input)
    for k, rule in enumerate(rules):
        for triple in dict.fromkeys(rule.template):
            if entailed or may_match(triple, matching.pattern):
                yield k, triple


def may_match(derived: TriplePattern, pattern: TriplePattern) -> bool:
    """Return whether a template's triple can match a pattern, for some values of its variables.

    >>> x, p, q = Variable("x"), IRI("p"), IRI("q")
    >>> may_match(TriplePattern(x, p, x), TriplePattern(q, x, x))
    True
    >>> may_match(TriplePattern(p, p, q), TriplePattern(x, p, x))
    False
    """
    bound: dict[Variable, Term] = {}
    for term, place in zip(derived, pattern, strict=True):
        if isinstance(term, Variable | BlankNode):
            continue
        required = bound.setdefault(place, term) if isinstance(place, Variable) else place
        if required != term:
            return False
    return True


def optional_now(rule: Plan) -> Iterator[TriplePatternMatching]:
    """Yield the patterns that may lack a match at the instant at which a rule is applied."""
    for node, optional in descend(rule, False, _below):
        if optional and isinstance(node, TriplePatternMatching):
            yield node


def _below(node: Plan, optional: bool) -> list[tuple[Plan, bool]]:
    match node:
        case SeqJoin(_, right) | SeqRightJoin(_, right) | NeverBefore(_, right):
            return [(right, optional)]
        case SeqWithout(_, right):
            return [(right, True)]
        case LeftJoin(left, right) | EqLeftJoin(left, right):
            return [(left, optional), (right, True)]
    return [(below, optional) for below in node.inputs]


def _feeders(stream: IRI, rules: Rules, matching: TriplePatternMatching) -> set[int]:
    """Return the places of the rules that feed a pattern."""
    return {k for k, _ in derives(stream, rules, matching)}


def _feeds(stream: IRI, rules: Rules) -> list[set[int]]:
    """Return the places of the rules that each rule feeds."""
    feeds: list[set[int]] = [set() for _ in rules]
    for k, rule in enumerate(rules):
        for node in rule.input.walk():
            if isinstance(node, TriplePatternMatching):
                for feeder in _feeders(stream, rules, node):
                    feeds[feeder].add(k)
    return feeds


def _reached(feeds: list[set[int]], k: int) -> set[int]:
    """Return the rules that a rule feeds, directly or through others."""
    reached = set[int]()
    pending = [*feeds[k]]
    while pending:
        rule = pending.pop()
        if rule not in reached:
            reached.add(rule)
            pending.extend(feeds[rule])
    return reached


def _path(feeds: list[set[int]], k: int, last: int) -> tuple[int, ...] | None:
    """Return the shortest path of rules from `k` to `last`, each feeding the next, if any."""
    paths: list[tuple[int, ...]] = [(k,)]
    seen = {k}
    for path in paths:
        if path[-1] == last:
            return path
        for rule in sorted(feeds[path[-1]] - seen):
            seen.add(rule)
            paths.append((*path, rule))
    return None
