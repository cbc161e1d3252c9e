"""The closure of a stream under CONSTRUCT rules (SEMANTICS.md section 7; WWW 2011 section 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from streamsparql.algebra.graph import Construct
from streamsparql.algebra.inputs import Inputs, StreamItem
from streamsparql.algebra.plan import Events, Plan
from streamsparql.algebra.rule_sets import strata
from streamsparql.algebra.shape import Extend
from streamsparql.algebra.terms import IRI, BlankNode
from streamsparql.errors import EngineError
from streamsparql.overriding import override

MAX_CLOSURE_ROUNDS = 1000
"""The number of rounds at one instant after which a closure counts as infinite."""
MAX_CLOSURE_TRIPLES = 250_000
"""The number of triples at one instant from which on it does, if the rules make new terms.

Without new terms a closure is finite. With new terms the triples can double in each round.
"""


class Closure(Plan):
    """The input, evaluated over the Q-closure of a stream. Section 7; WWW 2011 section 4.2.

    The closure is the least stream that contains the original one and each triple that a rule
    constructs over the closure, with the occurrence of the rule's solution. At each instant the
    strata of the rules are completed one by one (rule_sets.py).
    """

    family = "event"

    stream: IRI
    rules: tuple[Construct, ...]
    input: Plan

    @override
    def events(self, t: int, inputs: Inputs) -> Events:
        return self.input.events(t, self._closed(t, inputs))

    def _closed(self, t: int, inputs: Inputs) -> Inputs:
        """Return the inputs with the closure up to `t`, completed instant by instant."""
        items = inputs.stream(self.stream)
        ordered = [
            [self.rules[k] for k in stratum] for stratum, _ in strata(self.stream, self.rules)
        ]
        known: set[StreamItem] = set()
        instants = {item.end for stream in inputs.streams.values() for item in stream}
        for instant in sorted(x for x in instants if x <= t):
            known |= {item for item in items if item.end == instant}
            for rules in ordered:
                self._complete(rules, instant, inputs, known)
        return self._with(known, inputs)

    def _complete(
        self, rules: Sequence[Construct], instant: int, inputs: Inputs, known: set[StreamItem]
    ) -> None:
        """Add what rules derive at an instant, until there is nothing new."""
        most, before = most_triples(rules), len(known)
        for _ in range(MAX_CLOSURE_ROUNDS):
            new = set(_derived(rules, instant, self._with(known, inputs))) - known
            if not new:
                return
            known |= new
            if len(known) - before > most:
                raise too_many(rules, instant)
        raise endless(rules, instant)

    def _with(self, known: set[StreamItem], inputs: Inputs) -> Inputs:
        return replace(inputs, streams={**inputs.streams, self.stream: tuple(known)})


def _derived(rules: Sequence[Construct], instant: int, inputs: Inputs) -> Iterator[StreamItem]:
    for rule in rules:
        for triple, start, end in rule.events(instant, inputs):
            if start is not None and end == instant:
                yield StreamItem(triple, start, end)


def endless(rules: Sequence[Construct], instant: int) -> EngineError:
    """Return the error about rules that derive new triples without end at an instant."""
    return EngineError(
        f"the rules do not terminate at the instant {instant}: after {MAX_CLOSURE_ROUNDS} rounds"
        f" there are still new triples of {_named(rules)}"
    )


def too_many(rules: Sequence[Construct], instant: int) -> EngineError:
    """Return the error about rules that derive more and more new terms at an instant."""
    return EngineError(
        f"the rules do not terminate at the instant {instant}: more than {MAX_CLOSURE_TRIPLES:,}"
        f" triples of {_named(rules)}, which make new terms"
    )


def most_triples(rules: Sequence[Construct]) -> float:
    """Return how many triples rules may derive at one instant: any number without new terms.

    >>> from streamsparql.algebra.match import TriplePattern
    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> from streamsparql.algebra.solutions import Variable
    >>> x, y, p = Variable("x"), Variable("y"), IRI("p")
    >>> most_triples([Construct((TriplePattern(x, p, y),), streamed("?x q ?y"))])
    inf
    >>> most_triples([Construct((TriplePattern(x, p, BlankNode("n")),), streamed("?x q ?y"))])
    250000
    """
    make_terms = any(
        any(isinstance(place, BlankNode) for triple in rule.template for place in triple)
        or any(isinstance(node, Extend) for node in rule.input.walk())
        for rule in rules
    )
    return MAX_CLOSURE_TRIPLES if make_terms else inf


def _named(rules: Sequence[Construct]) -> str:
    templates = (" . ".join(" ".join(map(str, x)) for x in rule.template) for rule in rules)
    return ", ".join(f"CONSTRUCT {{ {template} }}" for template in templates)
