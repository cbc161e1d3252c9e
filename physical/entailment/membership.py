"""Patterns whose variables are bound to ends of the triple itself, such as `?x a :Dog`.

A triple entails a match if its predicate is in a set of ids, and for some predicates its object in
another one: the class and its subclasses. So a match costs a lookup or two, and no triple is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from streamsparql.algebra.match import TriplePattern
from streamsparql.overriding import override
from streamsparql.physical.batch import BoolArray
from streamsparql.physical.entailment.hierarchy import Hierarchy, IdSet
from streamsparql.physical.entailment.matcher import (
    Matcher,
    Matches,
    PatternIds,
    TripleColumns,
    in_order,
    templates_for,
)
from streamsparql.physical.entailment.schema import End, Schema, Template


class _Condition(NamedTuple):
    """A condition on triples with certain predicates, besides that on the object."""

    as_object: bool
    """Whether the match binds the subject of the pattern to the object of the triple."""
    same_subject: bool
    """Whether the triple must have the subject of the pattern."""
    of_resource: bool
    """Whether the object must not be a literal."""


class _Test(NamedTuple):
    """A condition, with the predicates and the objects of triples; None for any object."""

    condition: _Condition
    predicates: IdSet
    objects: IdSet | None


class Membership(Matcher):
    """The matches of a pattern whose variables are ends of the triple itself.

    A triple has at most two: one in which `?x` is its subject, and one in which it is its object.
    """

    def __init__(self, pattern: TriplePattern, schema: Schema, bound: PatternIds) -> None:
        super().__init__(pattern, schema, bound)
        conditions = _Conditions(bound)
        predicate = bound[1]
        assert predicate is not None, "a membership needs a predicate"
        for one in {*schema.predicates, predicate}:
            for template in templates_for(bound, schema.templates(one)):
                conditions.add([one], template)
        for walk in schema.walks:
            for template in templates_for(bound, walk.templates):
                conditions.add(walk.predicates, template, walk.hierarchy)
        tests = conditions.tests()
        self._as_subject = [test for test in tests if not test.condition.as_object]
        self._as_object = [test for test in tests if test.condition.as_object]

    @override
    def predicates(self) -> frozenset[int] | None:
        tests = [*self._as_subject, *self._as_object]
        return frozenset[int]().union(*(test.predicates.ids for test in tests))

    @override
    def entailed(self, triples: TripleColumns) -> Matches:
        as_subject = self._passing(self._as_subject, triples)
        rows = np.flatnonzero(as_subject)
        matches = Matches(rows, {place: triples[place][rows] for place in self.free})
        if not self._as_object:
            return matches
        s, _, o = triples
        other = self._passing(self._as_object, triples) & ~(as_subject & (s == o))
        rows = np.flatnonzero(other)
        return in_order([matches, Matches(rows, {0: o[rows]})])

    def _passing(self, tests: Sequence[_Test], triples: TripleColumns) -> BoolArray:
        """Return which triples pass one of the tests."""
        s, p, o = triples
        passing: BoolArray | None = None
        for condition, predicates, objects in tests:
            mask = predicates.mask(p)
            if objects is not None:
                mask &= objects.mask(o)
            if condition.same_subject:
                mask &= s == self.bound[0]
            if condition.of_resource:
                mask[mask] = self.are_resources(o[mask])
            passing = mask if passing is None else passing | mask
        return np.zeros(len(s), np.bool_) if passing is None else passing


class _Conditions:
    """The conditions for the triples with each predicate, collected from templates."""

    def __init__(self, bound: PatternIds) -> None:
        self._subject, _, self._object = bound
        self._objects: dict[tuple[_Condition, int], set[frozenset[int]] | None] = {}
        """By condition and predicate: the sets of objects that pass; None if all objects do."""

    def add(
        self, predicates: Iterable[int], template: Template, hierarchy: Hierarchy | None = None
    ) -> None:
        """Add a form of what triples with these predicates entail."""
        condition = _Condition(
            self._subject is None and template.subject is End.OBJECT,
            self._subject is not None and template.subject is End.SUBJECT,
            template.of_resource,
        )
        objects = self._objects_for(template, hierarchy)
        for predicate in predicates:
            known = self._objects.setdefault((condition, predicate), set())
            if objects is None:
                self._objects[condition, predicate] = None
            elif known is not None:
                known.add(objects)

    def _objects_for(
        self, template: Template, hierarchy: Hierarchy | None
    ) -> frozenset[int] | None:
        """Return the objects for which a template has the constants of the pattern."""
        for place, id_ in ((template.subject, self._subject), (template.object, self._object)):
            if id_ is not None and place is End.OBJECT:
                return frozenset([id_])
            if id_ is not None and place is End.ABOVE:
                assert hierarchy is not None, "a walk has a hierarchy"
                return hierarchy.below(id_)
        return None

    def tests(self) -> list[_Test]:
        """Return the conditions, each with all predicates that have the same objects."""
        together: dict[tuple[_Condition, frozenset[frozenset[int]] | None], list[int]] = {}
        for (condition, predicate), objects in self._objects.items():
            sets = None if objects is None else frozenset(objects)
            together.setdefault((condition, sets), []).append(predicate)
        return [
            _Test(
                condition,
                IdSet(predicates),
                None if sets is None else IdSet(frozenset[int]().union(*sets)),
            )
            for (condition, sets), predicates in together.items()
        ]
