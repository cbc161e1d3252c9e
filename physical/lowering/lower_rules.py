"""The lowering of CONSTRUCT rules: the triples that rules derive, as rows below patterns.

A pattern over a stream with rules is a union: the matches in the stream itself, and the matches in
what each rule derives that may match it. So a rule without recursion is a subplan like any other,
and all rules together are one DAG. Each pattern reads only the rules that feed it, and knows what
is absent as soon as these have passed.

The rules of a recursive stratum are a pipeline of their own, in one operator (`RuleClosure`), which
feeds their triples back. Subplans that do not depend on these triples remain outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamsparql.algebra import match
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.entailment import Entailed
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rule_sets import derives, strata
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import BlankNode, integer
from streamsparql.physical.expressions.occurrence import END, START
from streamsparql.physical.hidden import NUMBER
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.columns import Constants
from streamsparql.physical.operators.entailment import EntailedMatching
from streamsparql.physical.operators.event_sets import DistinctEvents, Occurring
from streamsparql.physical.operators.graph import Construct
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.rule_closure import Feed, RuleClosure

if TYPE_CHECKING:
    from streamsparql.physical.lowering.lower import At, Lowered, Lowering


class RuleScope:
    """The rules whose triples are part of a stream, for the patterns of one closure."""

    def __init__(self, node: Closure) -> None:
        self.stream, self.rules = node.stream, node.rules
        self.strata = strata(node.stream, node.rules)
        self._stratum_of = {k: n for n, stratum in enumerate(self.strata) for k in stratum.rules}
        self._feeders: dict[match.TriplePatternMatching, tuple[tuple[int, TriplePattern], ...]] = {}
        self._depends: dict[tuple[Plan, int], bool] = {}
        self.feeds: dict[int, Feed] = {}
        """The triples of each recursive stratum, within that stratum."""
        self.closures: dict[int, RuleClosure] = {}
        """The operators of recursive strata."""
        self.outside: dict[int, list[tuple[Feed, Operator]]] = {}
        """The rows that enter each recursive stratum."""

    def feeders(
        self, matching: match.TriplePatternMatching
    ) -> tuple[tuple[int, TriplePattern], ...]:
        """Return the triples of templates that may match a pattern, with their rules."""
        if matching not in self._feeders:
            feeders = tuple(derives(self.stream, self.rules, matching))
            self._feeders[matching] = feeders
        return self._feeders[matching]

    def recursive(self, rule: int) -> int | None:
        """Return the stratum of a recursive rule; None for any other."""
        stratum = self._stratum_of[rule]
        return stratum if self.strata[stratum].recursive else None

    def depends(self, node: Plan, stratum: int) -> bool:
        """Return whether a plan depends on the triples of a recursive stratum."""
        key = node, stratum
        if key not in self._depends:
            matchings = (x for x in node.walk() if isinstance(x, match.TriplePatternMatching))
            self._depends[key] = any(
                self._stratum_of[k] == stratum for x in matchings for k, _ in self.feeders(x)
            )
        return self._depends[key]


def lower_closure(low: Lowering, node: Closure, at: At) -> Lowered:
    """Lower a pattern over a stream and what rules derive from it."""
    return low.plan(node.input, at._replace(rules=low.rule_scope(node)))


def with_derived(
    low: Lowering, node: match.TriplePatternMatching, matches: Sequence[Operator], at: At
) -> Sequence[Operator]:
    """Return the matches of a pattern in a stream, and in the triples of the rules that feed it."""
    assert at.rules is not None
    outside = at._replace(graphs=(), stratum=None)
    sources: dict[object, Operator] = {}
    fed_back = False
    for k, triple in at.rules.feeders(node):
        stratum = at.rules.recursive(k)
        if stratum is None:
            sources[k, triple] = lower_triples(low, k, triple, outside)
        elif stratum == at.stratum:
            fed_back = True
        else:
            sources[stratum] = lower_stratum(low, stratum, outside)
    rows = [*matches, *(_matching(low, node, x, at) for x in sources.values())]
    if not fed_back:
        return rows
    assert at.stratum is not None
    own = _matching(low, node, at.rules.feeds[at.stratum], at)
    return [enter_stratum(at, low.union(rows)), own]


def _matching(
    low: Lowering, node: match.TriplePatternMatching, triples: Operator, at: At
) -> Operator:
    entailed = next((x for x in node.input.walk() if isinstance(x, Entailed)), None)
    if entailed is None:
        return TriplePatternMatching(triples, node.pattern, low.terms, node.stamps)
    schema = low.schema(entailed.schema, at)
    return EntailedMatching(triples, node.pattern, schema, node.stamps)


def lower_triples(low: Lowering, k: int, triple: TriplePattern, at: At) -> Operator:
    """Lower the triples of one pattern of a rule's template."""
    assert at.rules is not None
    key = k, triple, at
    if key not in low.derived:
        rule = at.rules.rules[k]
        rows = low.rows(rule.input, at)
        nodes = any(isinstance(place, BlankNode) for each in rule.template for place in each)
        rows = Occurring(rows, (START, END) if nodes else (), low.terms)
        if nodes:
            rows = Constants(rows, {NUMBER: low.id(integer(1))})
        triples = Construct(rows, triple, low.terms, NUMBER if nodes else None)
        low.derived[key] = DistinctEvents(triples)
    return low.derived[key]


def lower_stratum(low: Lowering, stratum: int, at: At) -> RuleClosure:
    """Lower the rules of a recursive stratum; all patterns that they feed share the operator."""
    scope = at.rules
    assert scope is not None
    if stratum not in scope.closures:
        scope.feeds[stratum] = Feed.of_triples("derived")
        scope.outside[stratum] = []
        inside = at._replace(graphs=(), events=INFINITY, stratum=stratum)
        rules = scope.strata[stratum].rules
        triples = [
            lower_triples(low, k, triple, inside)
            for k in rules
            for triple in dict.fromkeys(scope.rules[k].template)
        ]
        scope.closures[stratum] = RuleClosure(
            low.union(triples),
            scope.feeds[stratum],
            scope.outside[stratum],
            [scope.rules[k] for k in rules],
            low.terms,
        )
    return scope.closures[stratum]


def enter_stratum(at: At, rows: Operator) -> Feed:
    """Return the leaf of rows from outside in the pipeline of a stratum."""
    assert at.rules is not None
    assert at.stratum is not None
    entered = at.rules.outside[at.stratum]
    for feed, outside in entered:
        if outside is rows:
            return feed
    entered.append((Feed(f"{len(entered) + 1}", rows.names), rows))
    return entered[-1][0]
