"""How far back the events of a slab of time reach, which is what a task reads before its slab.

An event that is detected in a slab consists of items that ended earlier, and depends on the absence
of others. `event_reach` follows this dependence down a plan. A slab from `b` on *needs* of each
operator the rows that end at `b - ends` or later and start at `b - starts` or later:

    operator                    needs of its inputs
    SEQ, Join, ..               parts of an event start no earlier than the event
    Filter getDURATION() < X    events that end at `b - ends` or later start after `b - ends - X`
    optional sides              also the *evidence*: all rows that could be a partner of a row

Evidence with a bound X of its own reaches back by X. Other evidence is needed from the beginning of
time, but only which rows there were, and when first: `OptionalEvidence.rows` is the plan of these,
so that they can be computed beforehand. Which rows of an operator a slab has depends on the rows
that it needs of the inputs, and on no others. So a slab that has the items within the reach, and
the evidence, has exactly the events that are detected in it.

A rule derives the items of its triples: what is needed of a pattern is needed of the rules that
feed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from streamsparql.algebra import event, join, match
from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.bounds import bound_of, bounds_below, unbounded_operators
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.expressions import OCCURRENCE, Call, Constant
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rule_sets import derives, strata
from streamsparql.algebra.rules.conditions import Variables, variables_in
from streamsparql.algebra.rules.properties import is_static
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import Projection
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.traversal import descend
from streamsparql.algebra.xsd.values import duration_literal


class OptionalEvidence(NamedTuple):
    """The rows of an optional side that decide which rows of the other side have a partner."""

    operator: Plan
    """The operator with the optional side."""
    rows: Plan
    """The plan of the rows, as events; of rows with equal variables the first suffices."""
    variables: tuple[Variable, ...]
    timed: bool
    """Whether rows with different starts differ, too: the operator's condition reads times."""


_OCCURS = Call(">=", (OCCURRENCE["GETDURATION"], Constant(duration_literal(0))))
"""A condition that solutions of static triples alone do not satisfy: each slab has these."""


class EventReach(NamedTuple):
    """How far back a slab reaches: its look-back by stream, and evidence from before that."""

    streams: Mapping[str, int]
    """The reach of the items of each stream, as that of windows; INFINITY without a bound."""
    evidence: tuple[OptionalEvidence, ...]

    @property
    def longest(self) -> int:
        """The greatest reach of all streams."""
        return max(self.streams.values(), default=1)


def event_reach(plan: Plan) -> EventReach:
    """Return how far back the events of a plan reach.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> a, b = streamed("?x p ?y"), streamed("?x q ?z")
    >>> event_reach(event.Detect(event.SeqJoin(a, b))).longest == INFINITY
    True
    >>> reach = event_reach(event.Detect(event.NeverBefore(a, b)))
    >>> reach.longest, [evidence.variables for evidence in reach.evidence]
    (1, [(?x,)])
    """
    search = _Search()
    for node in plan.operators():
        if isinstance(node, event.Detect):
            search.explore(node.input, _DETECTED)
    return EventReach(search.streams, tuple(search.evidence.values()))


class _Needed(NamedTuple):
    """The rows that a slab needs, by their ends and starts before it, shorter than `bound`."""

    ends: int
    starts: int
    bound: int = INFINITY

    def tightened(self) -> _Needed:
        """Return the same rows, with what their ends say about their starts, and vice versa."""
        starts = min(self.starts, self.ends + self.bound - 1)
        return self._replace(ends=min(self.ends, starts), starts=starts)

    def joined(self, other: _Needed) -> _Needed:
        """Return the rows of both, at least."""
        return _Needed(*map(max, self, other))


_DETECTED = _Needed(0, INFINITY)
_ALL = _Needed(INFINITY, INFINITY)


class _Search:
    """A search of all patterns that a plan needs rows of."""

    def __init__(self) -> None:
        self.streams: dict[str, int] = {}
        self.evidence: dict[Plan, OptionalEvidence] = {}
        self._closure: Closure | None = None
        self._of_rules: dict[int, _Needed] = {}
        self._visits: dict[int, int] = {}
        self._recursive = frozenset[int]()
        self._changed: list[int] = []

    def explore(self, pattern: Plan, needed: _Needed) -> None:
        """Explore a pattern, and the rules that feed it."""
        self._explore(pattern, needed, False)
        while self._changed:
            assert self._closure is not None
            k = self._changed.pop(0)
            self._visits[k] = self._visits.get(k, 0) + 1
            if self._visits[k] > 2 * len(self._closure.rules) + 4:  # evidence that feeds itself
                self._of_rules[k] = _ALL
            rule = self._closure.rules[k]
            self._explore(rule.input, self._of_rules[k], k in self._recursive)

    def _explore(self, pattern: Plan, needed: _Needed, recursive: bool) -> None:
        def below(node: Plan, here: _Needed) -> list[tuple[Plan, _Needed]]:
            if isinstance(node, Closure):
                self._enter(node)
                return [(node.input, here)]
            if is_static(node) or isinstance(node, match.TriplePatternMatching):
                return []
            bounds = bounds_below(node, here.bound)
            needs = self._needs(node, here, recursive)
            pairs = zip(node.inputs, needs, bounds, strict=True)
            return [(part, each._replace(bound=b).tightened()) for part, each, b in pairs]

        for node, here in descend(pattern, needed, below):
            if isinstance(node, match.TriplePatternMatching):
                self._reach(node, here)

    def _enter(self, closure: Closure) -> None:
        self._closure = closure
        of_closure = strata(closure.stream, closure.rules)
        self._recursive = frozenset(k for x in of_closure if x.recursive for k in x.rules)

    def _needs(self, node: Plan, here: _Needed, recursive: bool) -> list[_Needed]:
        """Return the rows of each input that are needed for those of an operator."""
        parts = _Needed(here.starts, here.starts)
        match node:
            case match.BasicGraphPattern() | join.Join():
                return [parts] * len(node.inputs)
            case event.SeqJoin():
                return [parts, here]
            case event.SeqWithout():
                return [parts, here, parts]
            case join.LeftJoin(_, right, condition):
                return [here, self._partners(node, right, condition, here, recursive)]
            case event.SeqRightJoin(left, _, condition):
                return [self._partners(node, left, condition, here, recursive), here]
            case event.NeverBefore(left, _, condition):
                return [self._evidence(node, left, condition, here, recursive), here]
        return [here] * len(node.inputs)

    def _partners(
        self, node: Plan, side: Plan, condition: Expression | None, here: _Needed, recursive: bool
    ) -> _Needed:
        """Return the rows of an optional side that are needed in pairs, and as evidence."""
        evidence = self._evidence(node, side, condition, here, recursive)
        if bound_of(condition) < INFINITY:  # pairs satisfy it, too
            return evidence
        return evidence.joined(_Needed(here.starts, here.starts))

    def _evidence(
        self, node: Plan, side: Plan, condition: Expression | None, here: _Needed, recursive: bool
    ) -> _Needed:
        """Return the rows of an optional side that are needed as evidence."""
        own = bound_of(condition)
        if own < INFINITY:
            reach = min(here.ends + own - 1, INFINITY)
            return _Needed(reach, reach)
        if recursive:  # what rules derive from themselves cannot be computed beforehand
            return _ALL
        if not is_static(side) and node not in self.evidence:
            self.evidence[node] = self._described(node, side, condition)
        return _DETECTED

    def _described(self, node: Plan, side: Plan, condition: Expression | None) -> OptionalEvidence:
        read: Variables = frozenset() if condition is None else variables_in(condition)
        bound = Counter(v for part in node.inputs for v in scope(part).possible)
        variables = tuple(v for v in scope(side).possible if v in read or bound[v] > 1)
        rows: Plan = Filter(_OCCURS, Projection(variables, side))
        if self._closure is not None:
            rows = self._closure.with_inputs(*self._closure.rules, rows)
        timed = not read.isdisjoint(OCCURRENCE.values())
        return OptionalEvidence(node, event.Detect(rows), variables, timed)

    def _reach(self, node: match.TriplePatternMatching, here: _Needed) -> None:
        """Note what is needed of the items that a pattern matches, and of rules that feed it."""
        for access in node.input.operators():
            if isinstance(access, AccessStream):
                name = access.stream.value
                self.streams[name] = max(self.streams.get(name, 1), min(here.ends + 1, INFINITY))
        if self._closure is None:
            return
        for k, _ in derives(self._closure.stream, self._closure.rules, node):
            grown = here.joined(self._of_rules.get(k, here))
            if grown != self._of_rules.get(k):
                self._of_rules[k] = grown
                if k not in self._changed:
                    self._changed.append(k)


def how_to_bound(plan: Plan) -> str:
    """Return why events of a plan reach back for ever, and how to bound that; "" if they do not.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> a, b = streamed("?x p ?y"), streamed("?x q ?z")
    >>> print(how_to_bound(event.Detect(event.SeqJoin(a, b))))
    no filter bounds how long SEQ takes, so that its events reach back for ever: write \
FILTER(getDURATION() < "PT1H"^^xsd:duration), with your bound
    """
    if event_reach(plan).longest < INFINITY:
        return ""
    patterns = [node.input for node in plan.operators() if isinstance(node, event.Detect)]
    closures = [node for pattern in patterns for node in pattern.operators()]
    rules = [rule.input for node in closures if isinstance(node, Closure) for rule in node.rules]
    names = dict.fromkeys(
        (f"{_NAMES[type(node)]} in a rule" if k >= len(patterns) else _NAMES[type(node)])
        for k, pattern in enumerate([*patterns, *rules])
        for node in unbounded_operators(pattern)
    )
    if not names:
        return (
            "recursive rules look for what is absent, so that their events reach back for ever:"
            f" write {_FILTER} in their optional sides"
        )
    return (
        f"no filter bounds how long {' and '.join(names)} takes, so that its events reach back for"
        f" ever: write {_FILTER}, with your bound"
    )


_FILTER = 'FILTER(getDURATION() < "PT1H"^^xsd:duration)'
_NAMES: Mapping[type[Plan], str] = {
    match.BasicGraphPattern: "a join",
    join.Join: "a join",
    join.LeftJoin: "OPTIONAL",
    event.SeqJoin: "SEQ",
    event.SeqWithout: "SEQ",
    event.SeqRightJoin: "OPTIONALSEQ",
    event.NeverBefore: "OPTIONALSEQ",
}
