"""The matching of a pattern with what triples entail: what its two kinds have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.solutions import Variable
from streamsparql.physical.batch import TRIPLE, Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import LITERAL_SORT
from streamsparql.physical.entailment.schema import End, Schema, Template, TemplatePart

TripleColumns: TypeAlias = tuple[IntArray, IntArray, IntArray]
"""The subjects, predicates and objects of triples."""
PatternIds: TypeAlias = tuple[int | None, int | None, int | None]
"""The ids of the constants of a pattern; None at the places of variables."""


class Matches(NamedTuple):
    """Entailed triples that match: the rows whose triples entail them, in order, and their terms.

    `terms` are by place: 0, 1 and 2 are subject, predicate and object. The places of the pattern's
    constants are left out.
    """

    rows: IntArray
    terms: dict[int, IntArray]

    def where(self, mask: BoolArray) -> Matches:
        """Return the matches where a mask is true."""
        if mask.all():
            return self
        return Matches(self.rows[mask], {place: ids[mask] for place, ids in self.terms.items()})


class Matcher(ABC):
    """The matching of one pattern with one schema."""

    def __init__(self, pattern: TriplePattern, schema: Schema, bound: PatternIds) -> None:
        self.schema, self.bound = schema, bound
        self.free = [place for place, id_ in enumerate(bound) if id_ is None]
        """The places of variables."""
        first = [pattern.index(term) for term in pattern]
        self._repeated = [(first[place], place) for place in self.free if first[place] < place]

    def matches(self, batch: Batch) -> Matches:
        """Return the entailed triples that match, each once per row that entails it."""
        s, p, o = (batch.columns[name] for name in TRIPLE)
        matches = self.entailed((s, p, o))
        for one, other in self._repeated:
            matches = matches.where(matches.terms[one] == matches.terms[other])
        return matches

    @abstractmethod
    def entailed(self, triples: TripleColumns) -> Matches:
        """Return the entailed triples with the pattern's constants."""

    @abstractmethod
    def predicates(self) -> frozenset[int] | None:
        """Return the predicates of all triples that may entail a match; None for any."""

    def ends(self, place: int) -> frozenset[End | None]:
        """Return what the terms at a place of a match can be; None is a term of the schema."""
        return frozenset(symbol_of(form[place]) for form in all_forms(self.schema, self.bound))

    def are_resources(self, ids: IntArray) -> BoolArray:
        """Return which terms are not literals."""
        resources: BoolArray = self.schema.terms.sorts(ids) != LITERAL_SORT
        return resources


def bound_places(pattern: TriplePattern, schema: Schema) -> PatternIds:
    """Return the ids of the constants of a pattern."""
    s, p, o = (
        None if isinstance(place, Variable) else schema.terms.id_of(place, keep=True)
        for place in pattern
    )
    return s, p, o


def all_forms(schema: Schema, bound: PatternIds) -> Iterator[Template]:
    """Yield the forms of all matches, that of the triple itself first."""
    yield Template(End.SUBJECT, bound[1] or 0, End.OBJECT)
    for predicate in schema.predicates:
        yield from templates_for(bound, schema.templates(predicate))
    for walk in schema.walks:
        yield from templates_for(bound, walk.templates)


def templates_for(bound: PatternIds, templates: Iterable[Template]) -> Iterator[Template]:
    """Yield the templates that have a pattern's constants, or symbols in their places."""
    for template in templates:
        pairs = zip(template[:3], bound, strict=True)
        if all(id_ is None or isinstance(place, End) or place == id_ for place, id_ in pairs):
            yield template


def symbol_of(place: TemplatePart) -> End | None:
    """Return the symbol at a place of a template; None for a term."""
    return place if isinstance(place, End) else None


def in_order(parts: Sequence[Matches]) -> Matches:
    """Return the matches of all parts, ordered by row."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    places = parts[0].terms
    terms = {k: np.concatenate([part.terms[k] for part in parts])[order] for k in places}
    return Matches(rows[order], terms)
