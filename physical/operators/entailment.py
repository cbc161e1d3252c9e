"""Entailment: what triples entail with a static schema (twins of algebra.entailment)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from streamsparql.algebra import entailment, match
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Variable
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.entailment.matchers import matcher_of
from streamsparql.physical.entailment.schema import Schema
from streamsparql.physical.hidden import is_triple_stamp
from streamsparql.physical.operator import Operator, Stateless
from streamsparql.physical.operators.match import latest_stamps, stamp_columns

_DERIVED = ("matcher", "schema")
"""What the operators have of the static graphs: they collect broader terms when these occur."""
_ANY = TriplePattern(Variable("s"), Variable("p"), Variable("o"))


class Entailed(Stateless):
    """The triples, and what each of them entails, each once per triple that entails it."""

    implements: ClassVar[tuple[type[Plan], ...]] = (entailment.Entailed,)
    derived = _DERIVED

    def __init__(self, input: Operator, schema: Schema) -> None:  # noqa: A002 -- the role
        super().__init__(input.names, input)
        self.schema = schema
        self.matcher = matcher_of(_ANY, schema)

    @override
    def apply(self, batch: Batch) -> Batch:
        rows, terms = self.matcher.matches(batch)
        return batch.take(rows).with_columns({TRIPLE[place]: x for place, x in terms.items()})

    @override
    def facts(self) -> str:
        return self.schema.describe()


class Entailing(Stateless):
    """The triples that match a pattern, or entail a match of it."""

    implements: ClassVar[tuple[type[Plan], ...]] = (entailment.Entailing,)
    derived = _DERIVED

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        pattern: TriplePattern,
        schema: Schema,
    ) -> None:
        super().__init__(input.names, input)
        self.pattern, self.schema = pattern, schema
        self.matcher = matcher_of(pattern, schema)

    @override
    def apply(self, batch: Batch) -> Batch:
        mask = np.zeros(len(batch), np.bool_)
        mask[self.matcher.matches(batch).rows] = True
        return batch.where(mask)

    @override
    def facts(self) -> str:
        return " ".join(map(str, self.pattern))


class EntailedMatching(Stateless):
    """The entailed triples that match a pattern, as solutions.

    It is the matching of a pattern over `Entailed`, without the entailed triples that do not match.
    """

    implements: ClassVar[tuple[type[Plan], ...]] = (match.TriplePatternMatching,)
    derived = _DERIVED

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        pattern: TriplePattern,
        schema: Schema,
        stamps: tuple[match.Stamp, ...] = (),
    ) -> None:
        self.pattern, self.schema = pattern, schema
        self.matcher = matcher_of(pattern, schema)
        self._places = {
            place.name: k for k, place in enumerate(pattern) if isinstance(place, Variable)
        }
        self._stamps = {s.variable.name: stamp_columns(s, input.names) for s in stamps}
        self._carried = [x for x in input.names if x not in TRIPLE and not is_triple_stamp(x)]
        super().__init__((*self._places, *self._stamps, *self._carried), input)

    @override
    def apply(self, batch: Batch) -> Batch:
        rows, matched = self.matcher.matches(batch)
        columns = {name: matched[place] for name, place in self._places.items()}
        for name, stamps in self._stamps.items():
            own = [batch.columns[column][rows] for column in stamps]
            columns[name] = latest_stamps(self.schema.terms, own, len(rows))
        for name in self._carried:
            columns[name] = batch.columns[name][rows]
        count = None if batch.count is None else batch.count[rows]
        return Batch(columns, batch.start[rows], batch.end[rows], count)

    @override
    def facts(self) -> str:
        return " ".join(map(str, self.pattern))
