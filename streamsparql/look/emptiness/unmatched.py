"""Reasons why a triple pattern matches nothing: its terms, its sources, their items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, RDF, Term
from streamsparql.display.why_empty import Reason
from streamsparql.errors import Span
from streamsparql.look.emptiness.evidence import Evidence, Source, count_of, is_query_pattern
from streamsparql.look.emptiness.nearest import nearest
from streamsparql.look.emptiness.others import GRAPH_HINT
from streamsparql.physical.batch import TRIPLE
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.sources import Accounting

_TYPE = IRI(RDF + "type")
_PLACES = dict(zip(TRIPLE, ("subject", "predicate", "object"), strict=True))


def unmatched(evidence: Evidence, matchings: Sequence[TriplePatternMatching]) -> Reason:
    """Return the reason why the operators of one pattern, one per source, match nothing."""
    pattern = matchings[0].pattern
    sources = evidence.sources(pattern)
    read = [source for source in sources if source.read]
    span = evidence.span_of_pattern(pattern)
    without_items = _without_items(evidence, read, span)
    if without_items is not None:
        return without_items
    written = evidence.pattern(pattern)
    if not is_query_pattern(pattern):
        written = f"the step {evidence.write.term(pattern.predicate)} of a property path"
    message = f"nothing matches {written}"
    predicate = pattern.predicate
    known = any(source.predicates for source in sources)
    if isinstance(predicate, IRI) and known and not any(predicate in s.predicates for s in read):
        hint = _predicate_hint(evidence, predicate, sources)
        return Reason("no-match", message, tuple(_contents(evidence, read)), hint, span)
    details, hint = _other_places(evidence, matchings)
    if not details:
        details = tuple(_contents(evidence, read))
    return Reason("no-match", message, details, hint, span)


def _without_items(evidence: Evidence, read: Sequence[Source], span: Span | None) -> Reason | None:
    """Return a reason if the streams that a pattern reads have no accepted items."""
    streams = [source for source in read if source.stream]
    static = any(source not in streams and source.predicates for source in read)
    if not streams or static:
        return None
    counts = [evidence.execution.sorters[str(s.iri.value)].accounting for s in streams if s.iri]
    total = sum(counts, Accounting())
    names = " and ".join(source.name for source in streams)
    if not total.read:
        verb = "has" if len(streams) == 1 else "have"
        return Reason("no-items", f"the stream {names} {verb} no items", span=span)
    if not total.accepted:
        what = "rejected" if not total.late else "late or rejected"
        all_items = "the only item" if total.read == 1 else f"all {count_of(total.read, 'item')}"
        verb = "was" if total.read == 1 else "were"
        details = tuple(map(str, evidence.rejects[:1]))
        return Reason("no-items", f"{all_items} of {names} {verb} {what}", details)
    return None


# -- predicates ------------------------------------------------------------------------------------


def _predicate_hint(evidence: Evidence, predicate: IRI, sources: Sequence[Source]) -> str:
    elsewhere = [s for s in sources if not s.read and predicate in s.predicates]
    if elsewhere:
        return _elsewhere(evidence, elsewhere[0])
    for some in ([s for s in sources if s.read], sources):
        seen = [term for source in some for term, _ in source.predicates.most_common()]
        near = nearest(predicate, seen)
        if near is not None:
            return f"did you mean {evidence.term(near)}?"
    streams = [source for source in sources if source.read and source.stream]
    if streams and all(_is_unmatched(evidence, source) for source in streams):
        return f"are these the data of {' and '.join(source.name for source in streams)}?"
    default = next(source for source in sources if source.iri is None)
    if default.read and not default.predicates:
        return GRAPH_HINT
    return ""


def _is_unmatched(evidence: Evidence, source: Source) -> bool:
    """Return whether no pattern of the query can match any item of a stream."""
    assert source.iri is not None
    accounting = evidence.execution.sorters[source.iri.value].accounting
    return 0 < accounting.accepted == accounting.unmatched


def _elsewhere(evidence: Evidence, source: Source) -> str:
    """Return how to read a source that has the predicate, and that the pattern does not read."""
    if source.iri is None:
        return "the default graph has it; write the pattern outside of GRAPH"
    name, block = evidence.write.iri(source.iri), "GRAPH"
    if source.stream:
        blocks = {"rspql": "WINDOW", "cqels": "STREAM"}
        block = blocks.get(evidence.query.dialect, block)
    return f"{source.name} has it, which only {block} {name} {{ .. }} reads"


def _contents(evidence: Evidence, sources: Sequence[Source]) -> Iterator[str]:
    """Yield what each source has: its items, and its predicates, the most frequent ones first."""
    for source in sources:
        most = source.predicates.most_common(5)
        if not most and source.iri is None:
            continue
        text = f"{source.name} has {source.items}"
        if most:
            listed = ", ".join(f"{evidence.term(term)} ({n:,})" for term, n in most)
            more = len(source.predicates) - len(most)
            text += f": {listed}"
            text += f" and {count_of(more, 'other predicate')}" if more > 0 else ""
        yield text


# -- subjects and objects --------------------------------------------------------------------------


def _other_places(
    evidence: Evidence, matchings: Sequence[TriplePatternMatching]
) -> tuple[tuple[str, ...], str]:
    """Return what the data have at the places of constants, and the term that is meant."""
    pattern = matchings[0].pattern
    if len(pattern.variables()) + len(matchings[0].constants()) < 3:
        return (f"no triple has equal terms at the places of {_repeated(pattern)}",), ""
    details = []
    hint = ""
    for place, constant in zip(TRIPLE, pattern, strict=True):
        if isinstance(constant, Variable):
            continue
        seen = _candidates(evidence, matchings, place)
        if not seen or constant in seen:
            continue
        near = nearest(constant, seen)
        if near is not None and not hint:
            hint = f"did you mean {evidence.term(near)}?"
        details.append(f"the {_described(evidence, pattern, place)}: {evidence.values(seen)}")
    return tuple(details), hint


def _repeated(pattern: TriplePattern) -> str:
    places = [place for place in pattern if isinstance(place, Variable)]
    return str(next(place for place in places if places.count(place) > 1))


def _described(evidence: Evidence, pattern: TriplePattern, place: str) -> str:
    """Return what the terms at a place of triples are, as text."""
    if place == TRIPLE[2] and pattern.predicate == _TYPE:
        return "classes"
    of = "" if place == TRIPLE[1] else f" of {evidence.write.term(pattern.predicate)}"
    return f"{_PLACES[place]}s{of}"


def _candidates(
    evidence: Evidence, matchings: Sequence[TriplePatternMatching], place: str
) -> list[Term]:
    """Return the terms that the data have at a place, where all other constants match."""
    probe = evidence.probe
    if probe is None:
        return []
    terms: list[Term] = []
    for matching in matchings:
        same = evidence.like(matching)
        ids = probe.samples.candidates.get((same, place), ()) if same else ()
        terms += [term for each in sorted(ids) if (term := probe.terms.term_of(each)) is not None]
    return list(dict.fromkeys(terms))
