"""Triple patterns and basic graph patterns: from triples to solution mappings."""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce
from typing import Any, NamedTuple

from streamsparql.algebra.access import Stamped
from streamsparql.algebra.hidden_variables import Hidden
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.join import join_events, join_snapshots
from streamsparql.algebra.plan import Elementwise, Events, Plan, SnapshotOperator
from streamsparql.algebra.solutions import Solution, Variable, compatible
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI, Term, Triple, integer
from streamsparql.overriding import override


class TriplePattern(NamedTuple):
    """A triple with variables; a blank node of a query's pattern is a hidden variable here."""

    subject: Term | Variable
    predicate: Term | Variable
    object: Term | Variable

    def variables(self) -> tuple[Variable, ...]:
        """Return the distinct variables, in order."""
        return tuple(dict.fromkeys(p for p in self if isinstance(p, Variable)))


class Stamp(NamedTuple):
    """A hidden column for `timestamp`: the matched triple's time on a stream; None for any."""

    variable: Hidden
    stream: IRI | None = None


class TriplePatternMatching(Elementwise):
    """The solutions of a triple pattern, one per matching triple. Section 4.

    ESWC 2008, Definition 7. A variable that occurs twice must match equal terms.
    """

    family = "match"

    pattern: TriplePattern
    input: Plan
    stamps: tuple[Stamp, ...] = ()

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Hashable]) -> Snapshot[Solution]:
        """Match the triples (ESWC 2008, Definition 7); solutions must agree with the outer row."""
        (triples,) = snapshots
        return Snapshot(
            (mu, n)
            for item, n in triples.entries
            if (mu := self._match(item)) is not None and compatible(mu, inputs.outer)
        )

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        return frozenset(
            event._replace(item=mu)
            for event in events[0]
            if (mu := self._match(event.item)) is not None and compatible(mu, inputs.outer)
        )

    def _match(self, item: Any) -> Solution | None:
        triple, stamps = item if isinstance(item, Stamped) else (item, ())
        mu = match(self.pattern, triple)
        if mu is None or not self.stamps:
            return mu
        times: dict[Variable, list[int]] = {
            s.variable: [at for name, at in stamps if s.stream in (None, name)] for s in self.stamps
        }
        return Solution({**mu, **{v: integer(max(at)) for v, at in times.items() if at}})


def match(pattern: TriplePattern, triple: Triple) -> Solution | None:
    """Return the mapping from the pattern to the triple, or None (ESWC 2008, Algorithm 3).

    >>> p = TriplePattern(Variable("x"), IRI("knows"), Variable("x"))
    >>> match(p, Triple(IRI("a"), IRI("knows"), IRI("a")))
    {?x: <a>}
    >>> match(p, Triple(IRI("a"), IRI("knows"), IRI("b"))) is None
    True
    """
    mu: dict[Variable, Term] = {}
    for place, term in zip(pattern, triple, strict=True):
        expected = mu.setdefault(place, term) if isinstance(place, Variable) else place
        if expected != term:
            return None
    return Solution(mu)


class BasicGraphPattern(SnapshotOperator):
    """The join of triple pattern matchings. ESWC 2008, Definition 11; section 4.

    They share one instance mapping: a blank node is one variable throughout. The optimiser chooses
    the join order.
    """

    family = "match"

    matchings: tuple[Plan, ...]

    def __post_init__(self) -> None:
        assert len(self.matchings) > 1, "a basic graph pattern needs at least two matchings"

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        return reduce(join_snapshots, snapshots)

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        """Join event solutions, from the least start to the greatest end. Section 7."""
        return reduce(join_events, events)
