"""From triples to solution mappings: triple patterns and basic graph patterns."""

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
    """A triple with variables. A blank node of a query's pattern is a hidden variable here."""

    subject: Term | Variable
    predicate: Term | Variable
    object: Term | Variable

    def variables(self) -> tuple[Variable, ...]:
        """The variables, in order, each once."""
        return tuple(dict.fromkeys(p for p in self if isinstance(p, Variable)))


class Stamp(NamedTuple):
    """A hidden column that `timestamp` asks for: when the triple came, on any stream or on one."""

    variable: Hidden
    stream: IRI | None = None


class TriplePatternMatching(Elementwise):
    """Turns the triples that match a pattern into solutions. Definition 7; section 4.

    One mu per matching triple; a variable that stands twice must match equal terms.
    """

    pattern: TriplePattern
    input: Plan
    stamps: tuple[Stamp, ...] = ()

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Hashable]) -> Snapshot[Solution]:
        """Definition 7, at one instant. What EXISTS knows of the outer row must agree."""
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
        return Solution({**mu, **{v: integer(max(found)) for v, found in times.items() if found}})


def match(pattern: TriplePattern, triple: Triple) -> Solution | None:
    """The mapping that makes the pattern the triple, or None.

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
    """The join of its triple pattern matchings. Definition 11; section 4.

    They share one instance mapping: a blank node is one variable throughout. The order of the
    joins is the optimiser's to choose.
    """

    matchings: tuple[Plan, ...]

    def __post_init__(self) -> None:
        assert len(self.matchings) > 1, "one matching stands for itself"

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        return reduce(join_snapshots, snapshots)

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        """Section 7: from the least start to the greatest end."""
        return reduce(join_events, events)
