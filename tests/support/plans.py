"""Short names for building plans and inputs in tests."""

from __future__ import annotations

from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
from streamsparql.algebra.inputs import Inputs, StreamItem
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI, Term, Triple, integer
from streamsparql.translator.translate import translate

BACKGROUND = AccessGraph(background=True)
X, Y, Z, W = (Variable(name) for name in "xyzw")


def place(text: str) -> Term | Variable:
    """Parse `?x`, a number, or the name of the IRI <name>."""
    if text.startswith("?"):
        return Variable(text[1:])
    return integer(int(text)) if text.isdigit() else IRI(text)


def pattern(text: str) -> TriplePattern:
    """Parse a triple pattern of three words."""
    return TriplePattern(*map(place, text.split()))


def triple(text: str) -> Triple:
    """Parse a triple of three words."""
    return Triple(*pattern(text))


def matching(text: str, source: Plan = BACKGROUND) -> TriplePatternMatching:
    """Return the matching of a triple pattern against a source."""
    return TriplePatternMatching(pattern(text), source)


def stream(name: str = "s") -> AccessStream:
    """Return the access to a stream."""
    return AccessStream(IRI(name))


def with_background(plan: Plan) -> Merge:
    """Merge a default stream with the default graph of the caller."""
    return Merge((plan, BACKGROUND))


def graph(*triples: str) -> Inputs:
    """Return inputs of one static graph."""
    return Inputs(graph=frozenset(map(triple, triples)))


def events(*items: tuple[str, int] | tuple[str, int, int], name: str | None = None) -> Inputs:
    """Return inputs of one stream, of `("s p o", t)` or `("s p o", start, end)`."""
    from streamsparql.algebra.inputs import DEFAULT_STREAM

    stream_items = [StreamItem(triple(text), times[0], times[-1]) for text, *times in items]
    return Inputs({IRI(name) if name else DEFAULT_STREAM: stream_items})


def row(**terms: str) -> Solution:
    """Return a solution; a value that starts with `?` leaves its variable unbound."""
    bindings = ((Variable(name), place(text)) for name, text in terms.items())
    return Solution({v: term for v, term in bindings if not isinstance(term, Variable)})


def rows(*solutions: dict[str, str]) -> Snapshot[Solution]:
    """Return a snapshot of solutions."""
    return Snapshot.of(row(**terms) for terms in solutions)


def plan(text: str, dialect: str = "auto", entailment: str | None = None) -> Plan:
    """Return the logical plan of a query."""
    return translate(text, dialect, entailment=entailment).plan
