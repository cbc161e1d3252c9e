"""Random data for plans: streams and graphs that match their patterns, near borders of windows.

Each variable has a small pool of terms, so that rows join. The generator creates *matches*: it
assigns a term to each variable, and instantiates some or all patterns under that assignment, each
in one of the sources that it reads. So joins have matches, even those of ten patterns. A few
triples are altered or repeated. The distances in time are the lengths of windows, one more, one
less, or zero; the triples of a match of many patterns are mostly close together.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random

from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.inputs import Inputs, StreamItem
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term, Triple
from streamsparql.look.equivalence.random_values import (
    PLAIN_VALUES,
    is_number_literal,
    value_pools,
    variants_of,
)
from streamsparql.look.equivalence.vocabulary import TripleSource, Vocabulary

NODES: tuple[Term, ...] = (IRI("urn:a"), IRI("urn:b"), IRI("urn:c"), BlankNode("n"))
_LINKED = tuple(IRI(f"urn:{name}") for name in "abcdef")
_ALTERED, _REPEATED, _CHAINED = 0.08, 0.15, 0.3  # probabilities
_MAX_ITEMS = 16  # definitions are slow, and larger joins rarely differ where small ones agree
_ITEMS_BEYOND_COUNT = 6
_MANY_PATTERNS = 4  # a match of more must be complete and close together to join in windows


class InputGenerator:
    """A generator of random data from a vocabulary; the same seed generates the same data.

    >>> import streamsparql
    >>> text = "ASK FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?x <p> ?y }"
    >>> generator = InputGenerator(Vocabulary.of(streamsparql.compile(text).logical), seed=1)
    >>> {item.triple.predicate for item in generator.inputs(5).streams[IRI("s")]}
    {IRI(value='p')}
    """

    def __init__(self, vocabulary: Vocabulary, seed: int = 0) -> None:
        self.vocabulary = vocabulary
        self.random = Random(seed)
        patterns = [pattern for pattern, _ in vocabulary.patterns]
        self.subjects = {p.subject for p in patterns if isinstance(p.subject, Variable)}
        self.predicates = {p.predicate for p in patterns if isinstance(p.predicate, Variable)}
        self._pools: dict[Variable, list[Term]] = {}
        self._value_pools = value_pools(vocabulary.functions, vocabulary.terms)
        self._values = PLAIN_VALUES

    # -- data

    def inputs(self, matches: int) -> Inputs:
        """Generate streams and graphs with about `matches` matches."""
        self._pools = {}
        if len(self._value_pools) > 1:
            self._values = self.random.choice(self._value_pools)
        most = max(_MAX_ITEMS, self.vocabulary.count + _ITEMS_BEYOND_COUNT)
        triples: list[tuple[TripleSource, Triple]] = []
        first_of_match: list[int] = []
        assignment: dict[Variable, Term] = {}
        for _ in range(matches):
            if len(triples) > most:
                break
            first_of_match.append(len(triples))
            if triples and self._chance(_REPEATED):
                triples.append(self.random.choice(triples))
                continue
            assignment = self._assignment(assignment)
            triples += self._match(assignment)
        if self.vocabulary.chains and self._chance(_CHAINED):
            first_of_match.append(len(triples))
            triples += self._chain()
        return self._placed(triples, first_of_match)

    def row(self) -> Solution:
        """Generate an outer row, under which the pattern of an EXISTS is evaluated."""
        variables = [v for pattern, _ in self.vocabulary.patterns for v in pattern.variables()]
        variables += self.vocabulary.compared_with
        variables = [v for v in dict.fromkeys(variables) if not v.hidden]
        bound = self.random.sample(variables, self.random.randint(0, min(3, len(variables))))
        return Solution({v: self._value(v) for v in bound})

    def _placed(
        self, triples: list[tuple[TripleSource, Triple]], first_of_match: list[int]
    ) -> Inputs:
        """Return the triples in their sources, those of streams with timestamps."""
        vocabulary = self.vocabulary
        stamps = iter(self._stamps(len(triples), first_of_match))
        streams: dict[IRI, list[StreamItem]] = {name: [] for name in vocabulary.streams}
        present = [name for name in vocabulary.graph_names if self._chance(0.9)]
        graphs: dict[IRI, set[Triple]] = {name: set() for name in present}
        background: set[Triple] = set()
        for source, triple in triples:
            if isinstance(source, AccessStream):
                streams[source.stream].append(self._item(triple, next(stamps)))
                continue
            named = [g for g in source.graphs if g in graphs]
            if any(isinstance(g, Variable) for g in source.graphs):
                named += present
            if source.background and (not named or self._chance(0.5)):
                background.add(triple)
            elif named:
                graphs[self.random.choice(named)].add(triple)  # type: ignore[index]
        frozen = {name: frozenset(graph) for name, graph in graphs.items()}
        return Inputs(streams, frozenset(background), frozen)

    def _item(self, triple: Triple, t: int) -> StreamItem:
        before = self.random.choice((0, 0, 1, 2, 3)) if self.vocabulary.events else 0
        return StreamItem(triple, max(t - before, 0), t)

    # -- triples

    def _match(self, assignment: dict[Variable, Term]) -> list[tuple[TripleSource, Triple]]:
        """Instantiate all patterns, or some, under one assignment."""
        patterns = list(self.vocabulary.patterns)
        self.random.shuffle(patterns)
        if patterns and self._chance(0.5):
            patterns = patterns[: self.random.randint(1, len(patterns))]
        triples = []
        for pattern, sources in patterns:
            triple = self._triple(pattern, assignment)
            if sources and triple is not None:
                triples.append((self._source(sources), triple))
        return triples

    def _chain(self) -> list[tuple[TripleSource, Triple]]:
        """Return a chain of triples that a path of arbitrary length matches."""
        predicate, sources = self.random.choice(self.vocabulary.chains)
        nodes = self.random.sample(_LINKED, self.random.randint(3, len(_LINKED)))
        source = self._source(sources)
        return [(source, Triple(one, predicate, other)) for one, other in pairwise(nodes)]

    def _source(self, sources: tuple[TripleSource, ...]) -> TripleSource:
        streams = [source for source in sources if isinstance(source, AccessStream)]
        return self.random.choice(streams if streams and self._chance(0.7) else sources)

    def _triple(self, pattern: TriplePattern, assignment: dict[Variable, Term]) -> Triple | None:
        terms = [assignment[x] if isinstance(x, Variable) else x for x in pattern]
        if self._chance(_ALTERED * min(1.0, _MANY_PATTERNS / len(self.vocabulary.patterns))):
            at = self.random.randrange(3)
            iris = [term for term in self.vocabulary.terms if isinstance(term, IRI)]
            terms[at] = self.random.choice([*iris, *NODES[: 3 if at == 1 else 4]])
        subject, predicate, value = terms
        if isinstance(subject, Literal) or not isinstance(predicate, IRI):
            return None
        return Triple(subject, predicate, value)

    # -- terms

    def _assignment(self, before: dict[Variable, Term]) -> dict[Variable, Term]:
        """Return a term for each variable, often the one that it had in the match before."""
        kept = 0.6 if before and self._chance(0.6) else 0.0
        variables = (v for pattern, _ in self.vocabulary.patterns for v in pattern.variables())
        return {
            v: before[v] if self._chance(kept) else self._value(v) for v in dict.fromkeys(variables)
        }

    def _value(self, variable: Variable) -> Term:
        if variable not in self._pools:
            self._pools[variable] = self._pool(variable)
        return self.random.choice(self._pools[variable])

    def _pool(self, variable: Variable) -> list[Term]:
        """Return the one to four terms that a variable has in one input."""
        near = [x for t in self.vocabulary.compared_with.get(variable, ()) for x in variants_of(t)]
        known = list(self.vocabulary.terms)
        nodes = [*(term for term in known if isinstance(term, IRI)), *NODES, *NODES]
        options: list[Term]
        if variable in self.predicates:
            predicates = [
                x for p, _ in self.vocabulary.patterns if isinstance(x := p.predicate, IRI)
            ]
            options = [*predicates, *(term for term in near if isinstance(term, IRI)), IRI("urn:p")]
        elif variable in self.subjects:
            options = [*(term for term in near if not isinstance(term, Literal)), *nodes]
        elif variable in self.vocabulary.numeric:
            numbers = [x for term in known if is_number_literal(term) for x in variants_of(term)]
            options = [*near, *near, *numbers, *self._values]
        else:
            options = [*near, *near, *known, *self._values, *NODES]
        return [self.random.choice(options) for _ in range(self.random.randint(1, 4))]

    # -- times

    def _stamps(self, count: int, first_of_match: list[int]) -> list[int]:
        """Return timestamps in order: distances near window lengths, grid points, and ties.

        `first_of_match` are the positions of the first triples of matches.
        """
        step, origin = self.random.choice(self.vocabulary.grids)
        t = origin % step + step * self.random.randint(0, 2)
        t = max(t + self.random.choice((-1, 0, 0, 1)), 0)
        scale = self.random.choice(self.vocabulary.lengths)
        stamps: list[int] = []
        many, close = len(self.vocabulary.patterns) > _MANY_PATTERNS, False
        for k in range(count):
            stamps.append(t)
            if many and k in first_of_match:
                close = self._chance(0.7)
            if close and k + 1 not in first_of_match:
                t += self.random.choice((0, 0, 0, 1))
                continue
            t += self._gap(scale)
            if self._chance(0.25):
                step, origin = self.random.choice(self.vocabulary.grids)
                t = -((origin - t) // step) * step + origin
                t += self.random.choice((0, 0, 1, step - 1))
        return stamps

    def _gap(self, scale: int) -> int:
        length = self.random.choice((scale, self.random.choice(self.vocabulary.lengths)))
        near_length = (length - 1, length, length + 1)
        ranges = ((0,), (0, 1), near_length, range(length + 1), range(scale // 4 + 2))
        return self.random.choice(self.random.choice(ranges))

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability
