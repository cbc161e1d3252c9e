"""Patterns of all other kinds, such as `?x a ?class`: the entailed triples that can match are made.

Templates have few forms: a place is an end of the triple, or a term of the schema. All triples of
one form are made together, as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamsparql.algebra.match import TriplePattern
from streamsparql.overriding import override
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.entailment.hierarchy import Hierarchy, IdSet, look_up, places_in_runs
from streamsparql.physical.entailment.matcher import (
    Matcher,
    Matches,
    PatternIds,
    TripleColumns,
    in_order,
    symbol_of,
    templates_for,
)
from streamsparql.physical.entailment.schema import (
    End,
    Schema,
    Template,
    TemplatePart,
    with_broader,
)


class _Kind(NamedTuple):
    """The form of a template: its symbols, None for a term, and whether it is of a resource."""

    subject: End | None
    object: End | None
    of_resource: bool

    @classmethod
    def of(cls, template: Template) -> _Kind:
        return cls(symbol_of(template.subject), symbol_of(template.object), template.of_resource)


class _Forms(NamedTuple):
    """The templates of a kind, by the slot of a predicate: `size` of them from place `first` on."""

    kind: _Kind
    first: IntArray
    size: IntArray
    terms: TripleColumns
    """The terms of templates, 0 at symbols; a predicate of 0 is that of the triple."""


class _Walk(NamedTuple):
    """A walk up a hierarchy, from the objects of triples with certain predicates."""

    predicates: IdSet
    hierarchy: Hierarchy
    templates: list[Template]


class Expansion(Matcher):
    """The matches of any pattern.

    Each predicate of the schema has a slot; slot 0 is for all others.
    """

    def __init__(self, pattern: TriplePattern, schema: Schema, bound: PatternIds) -> None:
        super().__init__(pattern, schema, bound)
        walks = (
            _Walk(IdSet(walk.predicates), walk.hierarchy, [*templates_for(bound, walk.templates)])
            for walk in schema.walks
        )
        self._walks = [walk for walk in walks if walk.templates]
        own = () if bound[1] is None else (bound[1],)
        listed = list(dict.fromkeys((*schema.predicates, *own)))
        self._slots = np.zeros(max(listed, default=0) + 2, np.int64)
        self._slots[listed] = np.arange(1, len(listed) + 1)
        unknown = Template(End.SUBJECT, 0, End.OBJECT)
        by_slot = [[] if own else [unknown], *map(self._without_walks, listed)]
        self._forms = [*_forms(by_slot)]
        kinds = [{_Kind.of(template) for template in templates} for templates in by_slot]
        for slot, predicate in enumerate(listed, 1):
            kinds[slot] |= {_Kind.of(walked) for walked in self._walked(predicate)}
        walked = [sum(one in walk.predicates.ids for walk in self._walks) for one in listed]
        several = zip(kinds, [0, *walked], strict=True)
        self._ambiguous = np.array([len(kind) > 1 or walks > 1 for kind, walks in several])
        """By slot, whether one triple can be entailed in several forms."""

    def _walked(self, predicate: int) -> set[Template]:
        """Return the forms that walks from the triples with a predicate make."""
        walks = (walk for walk in self._walks if predicate in walk.predicates.ids)
        return {template for walk in walks for template in walk.templates}

    def _without_walks(self, predicate: int) -> list[Template]:
        """Return the forms of what triples entail, without those that a walk starts with."""
        walked = self._walked(predicate)
        templates = templates_for(self.bound, self.schema.templates(predicate))
        return [template for template in templates if with_broader(template) not in walked]

    @override
    def predicates(self) -> frozenset[int] | None:
        if self.bound[1] is None:
            return None
        entailing = np.zeros(len(self._ambiguous), np.bool_)
        for forms in self._forms:
            entailing |= forms.size > 0
        listed = np.flatnonzero(entailing[self._slots] & (self._slots > 0)).tolist()
        return frozenset(listed).union(*(walk.predicates.ids for walk in self._walks))

    @override
    def entailed(self, triples: TripleColumns) -> Matches:
        slots = look_up(self._slots, triples[1])
        parts = [self._of_forms(forms, slots, triples) for forms in self._forms]
        for walk in self._walks:
            rows = np.flatnonzero(walk.predicates.mask(triples[1]))
            places, broader = walk.hierarchy.expand(triples[2][rows])
            rows = rows[places]
            parts += (self._of_walk(one, rows, broader, triples) for one in walk.templates)
        parts = [part for part in parts if len(part.rows)]
        if not parts:
            none = np.empty(0, np.int64)
            return Matches(none, dict.fromkeys(self.free, none))
        return _distinct(in_order(parts), self._ambiguous[slots])

    def _of_forms(self, forms: _Forms, slots: IntArray, triples: TripleColumns) -> Matches:
        """Return the triples that templates of one kind make."""
        s, p, o = triples
        sizes = forms.size[slots]
        if forms.kind.of_resource:
            entailing = sizes > 0
            sizes[entailing] *= self.are_resources(o[entailing])
        rows, at = places_in_runs(forms.first[slots], sizes)
        subject, predicate, value = (terms[at] for terms in forms.terms)
        if forms.kind.subject is not None:
            subject = s[rows] if forms.kind.subject is End.SUBJECT else o[rows]
        if forms.kind.object is not None:
            value = o[rows]
        if self.bound[1] is None:
            predicate = np.where(predicate == 0, p[rows], predicate)
        return self._with_constants(rows, (subject, predicate, value))

    def _of_walk(
        self, template: Template, rows: IntArray, broader: IntArray, triples: TripleColumns
    ) -> Matches:
        """Return the triples that a template makes with the broader terms of rows."""
        if template.subject is End.ABOVE:
            resources = self.are_resources(broader)
            rows, broader = rows[resources], broader[resources]

        def terms(place: TemplatePart) -> IntArray:
            if isinstance(place, End):
                return broader if place is End.ABOVE else triples[0][rows]
            return np.full(len(rows), place)

        s, p, o = map(terms, template[:3])
        return self._with_constants(rows, (s, p, o))

    def _with_constants(self, rows: IntArray, triples: TripleColumns) -> Matches:
        """Return the triples that have the subject and the object of the pattern."""
        matches = Matches(rows, {place: triples[place] for place in self.free})
        same = [triples[k] == self.bound[k] for k in (0, 2) if self.bound[k] is not None]
        return matches.where(np.logical_and.reduce(same)) if same else matches


def _forms(by_slot: Sequence[Sequence[Template]]) -> Iterator[_Forms]:
    """Group templates by kind."""
    for kind in dict.fromkeys(_Kind.of(one) for templates in by_slot for one in templates):
        own = [[one for one in templates if _Kind.of(one) == kind] for templates in by_slot]
        size = np.array([len(templates) for templates in own], np.int64)
        listed = [one for templates in own for one in templates]
        terms = [[0 if isinstance(place, End) else place for place in one[:3]] for one in listed]
        s, p, o = np.array(terms, np.int64).T
        yield _Forms(kind, np.cumsum(size) - size, size, (s, p, o))


def _distinct(matches: Matches, ambiguous: BoolArray) -> Matches:
    """Return the matches without duplicates of a row, which only `ambiguous` rows can have."""
    at = np.flatnonzero(ambiguous[matches.rows])
    if not len(at):
        return matches
    keys = [ids[at] for ids in (*matches.terms.values(), matches.rows)]
    order = np.lexsort(keys)
    same = np.ones(len(order) - 1, np.bool_)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    kept = np.ones(len(matches.rows), np.bool_)
    kept[at[order[1:][same]]] = False
    return matches.where(kept)
