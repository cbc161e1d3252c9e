"""Random data for plans: streams and graphs that their patterns match, at times that matter.

A draw starts from a few small pools of terms, so that rows meet rows. It then makes *matches*: each
variable gets a term, and some or all patterns become triples under that one assignment, in one of
the sources that they read; joins have partners that way, also where a pattern has ten of them. A
part of the triples is spoilt or repeated. Distances in time are those of the windows, just below,
just above, or nothing; the triples of a match that has many mostly come close to each other.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random

from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.inputs import Inputs, StreamItem
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term, Triple
from streamsparql.look.equivalence.random_values import PLAIN, about, is_number, kinds
from streamsparql.look.equivalence.vocabulary import Source, Vocabulary

NODES: tuple[Term, ...] = (IRI("urn:a"), IRI("urn:b"), IRI("urn:c"), BlankNode("n"))
_LINKED = tuple(IRI(f"urn:{name}") for name in "abcdef")
_SPOILT, _REPEATED, _CHAINED = 0.08, 0.15, 0.3
_MOST_ITEMS = 16  # definitions are slow: joins of more say little that is new
_MORE_THAN_COUNTED = 6
_MANY = 4  # a match of more patterns has to be close together, and whole, to be one


class Draws:
    """Random data that a vocabulary speaks of; the same seed gives the same data.

    >>> import streamsparql
    >>> text = "ASK FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?x <p> ?y }"
    >>> draws = Draws(Vocabulary.of(streamsparql.compile(text).logical), seed=1)
    >>> {item.triple.predicate for item in draws.inputs(5).streams[IRI("s")]}
    {IRI(value='p')}
    """

    def __init__(self, vocabulary: Vocabulary, seed: int = 0) -> None:
        self.vocabulary = vocabulary
        self.random = Random(seed)
        known = vocabulary.patterns
        self.subjects = {p.subject for p, _ in known if isinstance(p.subject, Variable)}
        self.predicates = {p.predicate for p, _ in known if isinstance(p.predicate, Variable)}
        self._pools: dict[Variable, list[Term]] = {}
        self._kinds = kinds(vocabulary.functions, vocabulary.terms)
        self._values = PLAIN

    # -- data

    def inputs(self, matches: int) -> Inputs:
        """Streams and graphs with about so many matches."""
        self._pools = {}
        if len(self._kinds) > 1:
            self._values = self.random.choice(self._kinds)
        most = max(_MOST_ITEMS, self.vocabulary.count + _MORE_THAN_COUNTED)
        made: list[tuple[Source, Triple]] = []
        begun: list[int] = []
        assignment: dict[Variable, Term] = {}
        for _ in range(matches):
            if len(made) > most:
                break
            begun.append(len(made))
            if made and self._chance(_REPEATED):
                made.append(self.random.choice(made))
                continue
            assignment = self._assignment(assignment)
            made += self._match(assignment)
        if self.vocabulary.chains and self._chance(_CHAINED):
            begun.append(len(made))
            made += self._chain()
        return self._placed(made, begun)

    def row(self) -> Solution:
        """A row that an EXISTS could be asked for."""
        known = [v for pattern, _ in self.vocabulary.patterns for v in pattern.variables()]
        known += self.vocabulary.near
        known = [v for v in dict.fromkeys(known) if not v.hidden]
        some = self.random.sample(known, self.random.randint(0, min(3, len(known))))
        return Solution({v: self._value(v) for v in some})

    def _placed(self, made: list[tuple[Source, Triple]], begun: list[int]) -> Inputs:
        vocabulary = self.vocabulary
        stamps = iter(self._stamps(len(made), begun))
        streams: dict[IRI, list[StreamItem]] = {name: [] for name in vocabulary.streams}
        present = [name for name in vocabulary.names if self._chance(0.9)]
        graphs: dict[IRI, set[Triple]] = {name: set() for name in present}
        background: set[Triple] = set()
        for source, triple in made:
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
        frozen = {name: frozenset(triples) for name, triples in graphs.items()}
        return Inputs(streams, frozenset(background), frozen)

    def _item(self, triple: Triple, t: int) -> StreamItem:
        before = self.random.choice((0, 0, 1, 2, 3)) if self.vocabulary.events else 0
        return StreamItem(triple, max(t - before, 0), t)

    # -- triples

    def _match(self, assignment: dict[Variable, Term]) -> list[tuple[Source, Triple]]:
        """The triples of all patterns, or of some, under one assignment."""
        patterns = list(self.vocabulary.patterns)
        self.random.shuffle(patterns)
        if patterns and self._chance(0.5):
            patterns = patterns[: self.random.randint(1, len(patterns))]
        made = []
        for pattern, sources in patterns:
            triple = self._triple(pattern, assignment)
            if sources and triple is not None:
                made.append((self._source(sources), triple))
        return made

    def _chain(self) -> list[tuple[Source, Triple]]:
        """Triples that a path of any length goes along, one after the other."""
        predicate, sources = self.random.choice(self.vocabulary.chains)
        nodes = self.random.sample(_LINKED, self.random.randint(3, len(_LINKED)))
        source = self._source(sources)
        return [(source, Triple(one, predicate, other)) for one, other in pairwise(nodes)]

    def _source(self, sources: tuple[Source, ...]) -> Source:
        streams = [source for source in sources if isinstance(source, AccessStream)]
        return self.random.choice(streams if streams and self._chance(0.7) else sources)

    def _triple(self, pattern: TriplePattern, assignment: dict[Variable, Term]) -> Triple | None:
        terms = [assignment[x] if isinstance(x, Variable) else x for x in pattern]
        if self._chance(_SPOILT * min(1.0, _MANY / len(self.vocabulary.patterns))):
            at = self.random.randrange(3)
            known = [term for term in self.vocabulary.terms if isinstance(term, IRI)]
            terms[at] = self.random.choice([*known, *NODES[: 3 if at == 1 else 4]])
        subject, predicate, value = terms
        if isinstance(subject, Literal) or not isinstance(predicate, IRI):
            return None
        return Triple(subject, predicate, value)

    # -- terms

    def _assignment(self, before: dict[Variable, Term]) -> dict[Variable, Term]:
        """A term for each variable; often those of the match before, but for some."""
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
        """The few terms that a variable has in one draw."""
        near = [x for term in self.vocabulary.near.get(variable, ()) for x in about(term)]
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
            numbers = [x for term in known if is_number(term) for x in about(term)]
            options = [*near, *near, *numbers, *self._values]
        else:
            options = [*near, *near, *known, *self._values, *NODES]
        return [self.random.choice(options) for _ in range(self.random.randint(1, 4))]

    # -- times

    def _stamps(self, count: int, begun: list[int]) -> list[int]:
        """Times of so many items, in order: distances that matter, grid points, and ties.

        `begun` are the first items of matches.
        """
        step, origin = self.random.choice(self.vocabulary.grids)
        t = origin % step + step * self.random.randint(0, 2)
        t = max(t + self.random.choice((-1, 0, 0, 1)), 0)
        scale = self.random.choice(self.vocabulary.lengths)
        found: list[int] = []
        many, close = len(self.vocabulary.patterns) > _MANY, False
        for k in range(count):
            found.append(t)
            if many and k in begun:
                close = self._chance(0.7)
            if close and k + 1 not in begun:
                t += self.random.choice((0, 0, 0, 1))
                continue
            t += self._gap(scale)
            if self._chance(0.25):
                step, origin = self.random.choice(self.vocabulary.grids)
                t = -((origin - t) // step) * step + origin
                t += self.random.choice((0, 0, 1, step - 1))
        return found

    def _gap(self, scale: int) -> int:
        length = self.random.choice((scale, self.random.choice(self.vocabulary.lengths)))
        exact = (length - 1, length, length + 1)
        kinds = ((0,), (0, 1), exact, range(length + 1), range(scale // 4 + 2))
        return self.random.choice(self.random.choice(kinds))

    def _chance(self, share: float) -> bool:
        return self.random.random() < share
