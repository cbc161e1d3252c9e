"""The schema of static graphs as term ids, and what it entails from a triple with each predicate.

What a triple `s p o` entails has few forms: each place is `s`, `o`, a broader term of `o`, or a
term of the schema. So the rules of RDFS are applied once per predicate of the schema, to a triple
with symbols for `s` and `o`; the results are `Template`s. Broader terms of `o` are in a `Walk`:

    ?x :hasPart ?y      entails   s rdf:type :Whole         for a domain
    ?x rdf:type ?c      entails   s rdf:type (above o)      for subclasses, walked up from o
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from streamsparql.algebra.entailment import (
    DOMAIN,
    RANGE,
    SCHEMA_PREDICATES,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
)
from streamsparql.algebra.match import TriplePattern
from streamsparql.errors import SourceError
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import IRI_SORT, LITERAL_SORT, TermDictionary
from streamsparql.physical.entailment.hierarchy import Hierarchy

NO_SCHEMA = "no schema"
"""The description of a schema without statements."""


class End(Enum):
    """A symbol of a template for a term that depends on the triple."""

    SUBJECT = "s"
    OBJECT = "o"
    ABOVE = "above o"
    """Each broader term of the object."""


TemplatePart: TypeAlias = int | End


class Template(NamedTuple):
    """A form of triples that a triple entails."""

    subject: TemplatePart
    predicate: int
    object: TemplatePart
    of_resource: bool = False
    """Whether it is entailed only if the object of the triple is not a literal."""


class Walk(NamedTuple):
    """The triples with broader terms of the object, for the triples with certain predicates."""

    predicates: frozenset[int]
    hierarchy: Hierarchy
    templates: tuple[Template, ...]
    """The forms of what is entailed, with `End.ABOVE` in some place; with the object itself there,
    they are among the templates of each of the predicates."""


class Schema:
    """The schema in the triples of static graphs, whose ids are never recycled.

    >>> from streamsparql.algebra.terms import IRI
    >>> terms = TermDictionary()
    >>> c, d, e = (terms.id_of(IRI(name), keep=True) for name in "cde")
    >>> sub = terms.id_of(SUBCLASS)
    >>> columns = dict(zip(TRIPLE, map(np.array, ([c, d], [sub, sub], [d, e]))))
    >>> schema = Schema(Batch(columns, np.zeros(2, np.int64), np.ones(2, np.int64)), terms)
    >>> sorted(schema.classes.above(c)) == sorted([d, e]), schema.describe()
    (True, '2 subclasses')
    """

    def __init__(self, triples: Batch, terms: TermDictionary) -> None:
        self.terms = terms
        self.type, self.subclass, self.subproperty, domain, range_ = (
            terms.id_of(iri, keep=True) for iri in (TYPE, SUBCLASS, SUBPROPERTY, DOMAIN, RANGE)
        )
        self.properties = _properties(triples, self.subproperty)
        if any(self.type in self.properties.below(terms.id_of(x)) for x in SCHEMA_PREDICATES):
            raise SourceError(
                "the static graphs declare rdf:type a subproperty of a property of the schema, such"
                " as rdfs:subClassOf, which would make each typed resource part of the schema;"
                " remove that statement"
            )
        classes, domains, ranges = (
            _pairs(triples, self.properties.below(predicate) | {predicate})
            for predicate in (self.subclass, domain, range_)
        )
        self.classes = Hierarchy(*classes)
        self.domains, self.ranges = _by_subject(*domains), _by_subject(*ranges)
        self._templates: dict[int, tuple[Template, ...]] = {}
        self._of_types: dict[Template, dict[Template, None]] = {}
        self.matchers: dict[TriplePattern, Any] = {}
        """The matchers of patterns, which matchers.py makes."""

    def describe(self) -> str:
        """Return the number of terms that statements of each kind are about, as text."""
        numbers = [
            (len(self.classes), "subclass", "subclasses"),
            (len(self.properties), "subproperty", "subproperties"),
            (len(self.domains), "domain", "domains"),
            (len(self.ranges), "range", "ranges"),
        ]
        named = [f"{n:,} {one if n == 1 else more}" for n, one, more in numbers if n]
        return ", ".join(named) or NO_SCHEMA

    # -- what triples entail

    @cached_property
    def statement_predicates(self) -> frozenset[int]:
        """The predicates of the statements of the schema, whose subproperties are among them."""
        own = [self.terms.id_of(iri, keep=True) for iri in SCHEMA_PREDICATES]
        return frozenset(own).union(*map(self.properties.below, own))

    @cached_property
    def predicates(self) -> tuple[int, ...]:
        """The predicates whose triples may entail others."""
        related = {*self.domains, *self.ranges, *self.properties.narrower}
        related |= {self.type, self.subclass} if len(self.classes) else set()
        related |= {self.subproperty} if len(self.properties) else set()
        return tuple(sorted(related))

    def templates(self, predicate: int) -> tuple[Template, ...]:
        """Return the forms of what a triple with a predicate entails, itself included."""
        if predicate not in self._templates:
            base = Template(End.SUBJECT, predicate, End.OBJECT)
            of_literal = self._closure(base, literal=True)
            self._templates[predicate] = tuple(
                one if one in of_literal else one._replace(of_resource=True)
                for one in self._closure(base, literal=False)
            )
        return self._templates[predicate]

    def entailing(self, predicates: frozenset[int]) -> frozenset[int]:
        """Return the predicates of all triples that entail triples with one of some predicates."""
        return predicates.union(
            one
            for one in self.predicates
            if any(template.predicate in predicates for template in self.templates(one))
        )

    @cached_property
    def walks(self) -> tuple[Walk, ...]:
        """The walks up the hierarchies of classes and of properties."""
        walks = []
        for predicate, hierarchy in (
            (self.type, self.classes),
            (self.subclass, self.classes),
            (self.subproperty, self.properties),
        ):
            if len(hierarchy):
                step = Template(End.SUBJECT, predicate, End.OBJECT)
                readers = frozenset(p for p in self.predicates if step in self.templates(p))
                templates = (with_broader(template) for template in self.templates(predicate))
                kept = tuple(one for one in templates if End.ABOVE in one)
                walks.append(Walk(readers, hierarchy, kept))
        return tuple(walks)

    def _closure(
        self, base: Template, literal: bool, by_types: bool = True
    ) -> dict[Template, None]:
        """Apply the rules to a template until there is nothing new; its object is a `literal`.

        Each rule has one premise besides the schema. So what a type entails is computed once for
        all properties that entail it, unless `by_types` is false.
        """
        known, pending = {base: None}, [base]
        while pending:
            for new in self._consequences(pending.pop(), literal):
                if new in known:
                    continue
                if by_types and new.predicate == self.type and isinstance(new.object, int):
                    known.update(self._closure_of_type(new))
                else:
                    known[new] = None
                    pending.append(new)
        return known

    def _closure_of_type(self, base: Template) -> dict[Template, None]:
        if base not in self._of_types:
            self._of_types[base] = self._closure(base, literal=False, by_types=False)
        return self._of_types[base]

    def _consequences(self, triple: Template, literal: bool) -> list[Template]:
        x, p, y, _ = triple
        new = [Template(x, q, y) for q in self.properties.above(p) if self.is_iri(q)]  # rdfs7
        new += [Template(x, self.type, c) for c in self.domains.get(p, ())]  # rdfs2
        if not (literal if isinstance(y, End) else self.is_literal(y)):  # rdfs3
            new += [Template(y, self.type, c) for c in self.ranges.get(p, ())]
        if isinstance(y, int) and p in (self.type, self.subclass):  # rdfs9, rdfs11
            new += [Template(x, p, c) for c in self.classes.above(y)]
        if isinstance(y, int) and p == self.subproperty:  # rdfs5
            new += [Template(x, p, q) for q in self.properties.above(y)]
        return new

    def is_iri(self, term: int) -> bool:
        """Return whether a term is an IRI."""
        return bool(self.terms.sorts(np.array([term]))[0] == IRI_SORT)

    def is_literal(self, term: int) -> bool:
        """Return whether a term is a literal."""
        return bool(self.terms.sorts(np.array([term]))[0] == LITERAL_SORT)


def with_broader(template: Template) -> Template:
    """Return the form with broader terms of the object in its place."""
    places = (End.ABOVE if place is End.OBJECT else place for place in template[:3])
    return Template(*places)  # type: ignore[arg-type]


def _pairs(triples: Batch, predicates: Iterable[int]) -> tuple[IntArray, IntArray]:
    """Return the subjects and the objects of the triples with certain predicates."""
    s, p, o = (triples.columns[name] for name in TRIPLE)
    selected = np.isin(p, list(predicates))
    return s[selected], o[selected]


def _properties(triples: Batch, subproperty: int) -> Hierarchy:
    """Return the hierarchy of properties, to which subproperties of subPropertyOf contribute."""
    predicates = frozenset([subproperty])
    while True:
        properties = Hierarchy(*_pairs(triples, predicates))
        closed = properties.below(subproperty) | {subproperty}
        if closed == predicates:
            return properties
        predicates = closed


def _by_subject(subjects: IntArray, objects: IntArray) -> dict[int, list[int]]:
    grouped: dict[int, list[int]] = {}
    for one, other in zip(subjects.tolist(), objects.tolist(), strict=True):
        grouped.setdefault(one, []).append(other)
    return grouped
