"""The matches of a triple pattern among what triples entail.

`Membership` is for patterns whose variables are ends of the triple itself, such as `?x a :Dog`: a
triple matches if its predicate, and maybe its object, is in a set of ids. `Expansion` is for all
others, such as `?x a ?class`: the entailed triples that can match are made. `matcher_of` chooses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.solutions import Variable
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import LITERAL_SORT
from streamsparql.physical.entailment.hierarchy import Hierarchy, IdSet, look_up
from streamsparql.physical.entailment.schema import End, Place, Schema, Template

Columns: TypeAlias = tuple[IntArray, IntArray, IntArray]
"""The subjects, predicates and objects of triples."""
Bound: TypeAlias = tuple[int | None, int | None, int | None]
"""The ids of the constants of a pattern; None at the places of variables."""


class Matches(NamedTuple):
    """Entailed triples that match: the rows whose triples entail them, in order, and their terms.

    `terms` are by place: 0, 1 and 2 are subject, predicate and object. Places of constants are left
    out.
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

    def __init__(self, pattern: TriplePattern, schema: Schema, bound: Bound) -> None:
        self._schema, self._bound = schema, bound
        self._free = [place for place, id_ in enumerate(bound) if id_ is None]
        """The places of variables."""
        places = list(pattern)
        self._repeated = [
            (places.index(place), k)
            for k, place in enumerate(places)
            if isinstance(place, Variable) and places.index(place) < k
        ]

    def matches(self, batch: Batch) -> Matches:
        """Return the entailed triples that match, each once per row that entails it."""
        matches = self._matches(tuple(batch.columns[name] for name in TRIPLE))  # type: ignore[arg-type]
        for one, other in self._repeated:
            matches = matches.where(matches.terms[one] == matches.terms[other])
        return matches

    @abstractmethod
    def _matches(self, triples: Columns) -> Matches:
        """Return the matches, before repeated variables are compared."""

    @abstractmethod
    def predicates(self) -> frozenset[int] | None:
        """Return the predicates of all triples that may entail a match; None for any."""

    def ends(self, place: int) -> frozenset[End | None]:
        """Return what the terms at a place of a match can be, None for a term of the schema."""
        forms = _all_forms(self._schema, self._bound)
        return frozenset(_symbol(form[place]) for form in forms)

    def _is_resource(self, ids: IntArray) -> BoolArray:
        resource: BoolArray = self._schema.terms.sorts(ids) != LITERAL_SORT
        return resource


def matcher_of(pattern: TriplePattern, schema: Schema) -> Matcher:
    """Return the matcher of a pattern."""
    terms = schema.terms
    s, p, o = (
        None if isinstance(place, Variable) else terms.id_of(place, keep=True) for place in pattern
    )
    bound = (s, p, o)
    if p is not None and all(_is_simple(x, bound) for x in _all_forms(schema, bound)):
        return Membership(pattern, schema, bound)
    return Expansion(pattern, schema, bound)


def _all_forms(schema: Schema, bound: Bound) -> Iterator[Template]:
    """Yield all forms of entailed triples that can match, those of the triple itself first."""
    yield Template(End.SUBJECT, bound[1] or 0, End.OBJECT)
    for predicate in schema.predicates:
        yield from _matching(schema.templates(predicate), bound)
    for walk in schema.walks:
        yield from _matching(walk.templates, bound)


def _matching(templates: Sequence[Template], bound: Bound) -> Iterator[Template]:
    """Yield the templates that can match constants; symbols are compared with them later."""
    for template in templates:
        pairs = zip(template[:3], bound, strict=True)
        if all(id_ is None or isinstance(place, End) or place == id_ for place, id_ in pairs):
            yield template


def _is_simple(template: Template, bound: Bound) -> bool:
    """Return whether the variables of the pattern are bound to ends of the triple itself."""
    pairs = zip(template[:3], bound, strict=True)
    return all(id_ is not None or place in (End.SUBJECT, End.OBJECT) for place, id_ in pairs)


# -- membership ------------------------------------------------------------------------------------


class _Test(NamedTuple):
    """A condition on triples: their predicate and, unless None, their object is in a set.

    `subject` is whether the subject is that of the pattern, `resource` whether the object is not a
    literal.
    """

    predicates: IdSet
    objects: IdSet | None
    subject: bool
    resource: bool


class Membership(Matcher):
    """The matches of a pattern whose variables are ends of the triple itself.

    A triple has at most two: one in which `?x` is its subject, and one in which it is its object.
    """

    def __init__(self, pattern: TriplePattern, schema: Schema, bound: Bound) -> None:
        super().__init__(pattern, schema, bound)
        tests = _MembershipTests(bound)
        predicate = bound[1]
        assert predicate is not None
        for one in {*schema.predicates, predicate}:
            for template in _matching(schema.templates(one), bound):
                tests.add([one], template)
        for walk in schema.walks:
            for template in _matching(walk.templates, bound):
                tests.add(walk.predicates, template, walk.hierarchy)
        self._as_subject, self._as_object = tests.of(False), tests.of(True)

    @override
    def predicates(self) -> frozenset[int] | None:
        tests = [*self._as_subject, *self._as_object]
        return frozenset[int]().union(*(test.predicates.ids for test in tests))

    @override
    def _matches(self, triples: Columns) -> Matches:
        as_subject = self._mask(self._as_subject, triples)
        rows = np.flatnonzero(as_subject)
        matches = Matches(rows, {k: triples[k][rows] for k in self._free})
        if not self._as_object:
            return matches
        s, _, o = triples
        also = np.flatnonzero(self._mask(self._as_object, triples) & ~(as_subject & (s == o)))
        return _in_order([matches, Matches(also, {0: o[also]})])

    def _mask(self, tests: Sequence[_Test], triples: Columns) -> BoolArray:
        s, p, o = triples
        found: BoolArray | None = None
        for test in tests:
            mask = test.predicates.mask(p)
            if test.objects is not None:
                mask &= test.objects.mask(o)
            if test.subject:
                mask &= s == self._bound[0]
            if test.resource:
                mask[mask] = self._is_resource(o[mask])
            found = mask if found is None else found | mask
        return np.zeros(len(s), np.bool_) if found is None else found


class _MembershipTests:
    """The tests of a membership, with equal conditions on the object for many predicates."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._objects: dict[tuple[bool, bool, bool, int], set[frozenset[int]] | None] = {}
        """By role of the object, test of the subject, of a resource, and predicate: the sets that
        contain the object, or None if any object passes."""

    def add(
        self, predicates: Sequence[int] | frozenset[int], template: Template,
        hierarchy: Hierarchy | None = None,
    ) -> None:  # fmt: skip
        """Add a form of entailed triples, for the triples with certain predicates."""
        s, _, o = self._bound
        objects: frozenset[int] | None = None
        for place, id_ in ((template.subject, s), (template.object, o)):
            if id_ is not None and place is End.OBJECT:
                objects = frozenset([id_])
            elif id_ is not None and place is End.ABOVE:
                assert hierarchy is not None
                objects = hierarchy.below(id_)
        as_object = s is None and template.subject is End.OBJECT
        same_subject = s is not None and template.subject is End.SUBJECT
        for one in predicates:
            key = (as_object, same_subject, template.of_resource, one)
            known = self._objects.setdefault(key, set())
            if objects is None:
                self._objects[key] = None
            elif known is not None:
                known.add(objects)

    def of(self, as_object: bool) -> list[_Test]:
        """Return the tests for matches whose variable is the object, or else the subject."""
        together: dict[tuple[frozenset[frozenset[int]] | None, bool, bool], list[int]] = {}
        for (role, subject, resource, predicate), objects in self._objects.items():
            if role == as_object:
                sets = None if objects is None else frozenset(objects)
                together.setdefault((sets, subject, resource), []).append(predicate)
        return [
            _Test(
                IdSet(predicates),
                None if sets is None else IdSet(frozenset[int]().union(*sets)),
                subject,
                resource,
            )
            for (sets, subject, resource), predicates in together.items()
        ]


# -- expansion -------------------------------------------------------------------------------------


class _Forms(NamedTuple):
    """Templates that differ in terms of the schema only, by predicate of the triple.

    A predicate has a slot, a place in `first` and `size`, which delimit its templates.
    """

    subject: End | None
    object: End | None
    resource: bool
    first: IntArray
    size: IntArray
    terms: Columns
    """The terms at the places that are not symbols; predicate 0 is that of the triple."""


class Expansion(Matcher):
    """The matches of any pattern: the entailed triples that can match are made."""

    def __init__(self, pattern: TriplePattern, schema: Schema, bound: Bound) -> None:
        super().__init__(pattern, schema, bound)
        listed = {one: [*_matching(schema.templates(one), bound)] for one in schema.predicates}
        predicate = bound[1]
        if predicate is not None and predicate not in listed:
            listed[predicate] = [*_matching(schema.templates(predicate), bound)]
        self._slots = np.zeros(max(listed, default=0) + 2, np.int64)
        self._slots[[*listed]] = np.arange(1, len(listed) + 1)
        other = [Template(End.SUBJECT, 0, End.OBJECT)] if predicate is None else []
        by_slot = [other, *listed.values()]
        self._forms = [*_forms(by_slot)]
        self._walks = [
            (IdSet(walk.predicates), walk, [*_matching(walk.templates, bound)])
            for walk in schema.walks
        ]
        self._walks = [entry for entry in self._walks if entry[2]]
        self._ambiguous = self._ambiguous_slots(by_slot, [*listed])
        """By slot, whether a triple may entail one triple in several forms."""

    def _ambiguous_slots(
        self, by_slot: Sequence[Sequence[Template]], predicates: Sequence[int]
    ) -> BoolArray:
        """Return for which predicates entailed triples of different forms can be equal.

        Those with a broader term in place of the object differ from those with the object.
        """
        ambiguous = np.zeros(len(by_slot), np.bool_)
        for slot, templates in enumerate(by_slot):
            forms = {(_symbol(x.subject), _symbol(x.object)) for x in templates}
            walks = sum(slot > 0 and predicates[slot - 1] in x.ids for x, _, _ in self._walks)
            if walks:
                forms.discard((End.SUBJECT, End.OBJECT))
            ambiguous[slot] = len(forms) + walks > 1
        return ambiguous

    @override
    def predicates(self) -> frozenset[int] | None:
        if self._bound[1] is None:
            return None
        found = {one for walk, _, _ in self._walks for one in walk.ids}
        entailing = np.zeros(len(self._ambiguous), np.bool_)
        for forms in self._forms:
            entailing |= forms.size > 0
        found.update(np.flatnonzero((self._slots > 0) & entailing[self._slots]).tolist())
        return frozenset(found)

    @override
    def _matches(self, triples: Columns) -> Matches:
        slots = look_up(self._slots, triples[1])
        parts = [self._of_forms(forms, slots, triples) for forms in self._forms]
        for predicates, walk, templates in self._walks:
            rows = np.flatnonzero(predicates.mask(triples[1]))
            places, above = walk.hierarchy.expand(triples[2][rows])
            rows = rows[places]
            parts += (self._of_walk(one, rows, above, triples) for one in templates)
        parts = [part for part in parts if len(part.rows)]
        if not parts:
            none = np.empty(0, np.int64)
            return Matches(none, dict.fromkeys(self._free, none))
        return _distinct(_in_order(parts), self._ambiguous[slots])

    def _of_forms(self, forms: _Forms, slots: IntArray, triples: Columns) -> Matches:
        s, p, o = triples
        counts = forms.size[slots]
        if forms.resource:
            entailing = counts > 0
            counts[entailing] *= self._is_resource(o[entailing])
        rows = np.repeat(np.arange(len(s)), counts)
        before = np.cumsum(counts) - counts
        at = forms.first[slots[rows]] + np.arange(len(rows)) - before[rows]
        subject, predicate, value = (terms[at] for terms in forms.terms)
        if forms.subject is not None:
            subject = s[rows] if forms.subject is End.SUBJECT else o[rows]
        if forms.object is not None:
            value = o[rows]
        if self._bound[1] is None:
            predicate = np.where(predicate == 0, p[rows], predicate)
        return self._with_constants(rows, (subject, predicate, value))

    def _of_walk(
        self, template: Template, rows: IntArray, above: IntArray, triples: Columns
    ) -> Matches:
        if template.subject is End.ABOVE:
            resource = self._is_resource(above)
            rows, above = rows[resource], above[resource]

        def terms(place: Place) -> IntArray:
            if isinstance(place, End):
                return above if place is End.ABOVE else triples[0][rows]
            return np.full(len(rows), place)

        s, p, o = map(terms, template[:3])
        return self._with_constants(rows, (s, p, o))

    def _with_constants(self, rows: IntArray, triples: Columns) -> Matches:
        """Return the triples that have the subject and the object of the pattern."""
        kept = np.ones(len(rows), np.bool_)
        for place in (0, 2):  # the templates have the predicate
            if self._bound[place] is not None:
                kept &= triples[place] == self._bound[place]
        return Matches(rows, {place: triples[place] for place in self._free}).where(kept)


def _symbol(place: Place) -> End | None:
    return place if isinstance(place, End) else None


def _forms(by_slot: Sequence[Sequence[Template]]) -> Iterator[_Forms]:
    """Group templates by their symbols."""
    kinds = dict.fromkeys(
        (_symbol(x.subject), _symbol(x.object), x.of_resource) for each in by_slot for x in each
    )
    for kind in kinds:
        own = [
            [x for x in each if (_symbol(x.subject), _symbol(x.object), x.of_resource) == kind]
            for each in by_slot
        ]
        size = np.array([len(each) for each in own], np.int64)
        flat = [x for each in own for x in each]
        rows = [[0 if isinstance(place, End) else place for place in x[:3]] for x in flat]
        s, p, o = np.array(rows, np.int64).T
        yield _Forms(*kind, np.cumsum(size) - size, size, (s, p, o))


def _in_order(parts: Sequence[Matches]) -> Matches:
    """Return the matches of all parts, ordered by row."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    places = parts[0].terms
    terms = {k: np.concatenate([part.terms[k] for part in parts])[order] for k in places}
    return Matches(rows[order], terms)


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
