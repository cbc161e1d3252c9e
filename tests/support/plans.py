"""Plans by hand, for tests: a few letters for the nodes that stand everywhere."""

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
    """`?x`, a number, or a name that stands for the IRI <name>."""
    if text.startswith("?"):
        return Variable(text[1:])
    return integer(int(text)) if text.isdigit() else IRI(text)


def pattern(text: str) -> TriplePattern:
    """A triple pattern in three words."""
    return TriplePattern(*map(place, text.split()))


def triple(text: str) -> Triple:
    """A triple in three words."""
    return Triple(*pattern(text))


def matching(text: str, source: Plan = BACKGROUND) -> TriplePatternMatching:
    """A triple pattern over a source."""
    return TriplePatternMatching(pattern(text), source)


def stream(name: str = "s") -> AccessStream:
    """A stream."""
    return AccessStream(IRI(name))


def beside(plan: Plan) -> Merge:
    """A default stream, merged with the default graph of the caller."""
    return Merge((plan, BACKGROUND))


def graph(*triples: str) -> Inputs:
    """Inputs that are one static graph."""
    return Inputs(graph=frozenset(map(triple, triples)))


def events(*items: tuple[str, int] | tuple[str, int, int], name: str | None = None) -> Inputs:
    """Inputs that are one stream, of `("s p o", t)` or `("s p o", start, end)`."""
    from streamsparql.algebra.inputs import DEFAULT_STREAM

    made = [StreamItem(triple(text), times[0], times[-1]) for text, *times in items]
    return Inputs({IRI(name) if name else DEFAULT_STREAM: made})


def row(**terms: str) -> Solution:
    """A solution."""
    found = ((Variable(name), place(text)) for name, text in terms.items())
    return Solution({v: term for v, term in found if not isinstance(term, Variable)})


def rows(*found: dict[str, str]) -> Snapshot[Solution]:
    """A snapshot of solutions."""
    return Snapshot.of(row(**terms) for terms in found)


def plan(text: str, dialect: str = "auto") -> Plan:
    """The logical plan of a query."""
    return translate(text, dialect).plan
