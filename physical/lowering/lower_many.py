"""The lowering of many plans into one pipeline: equal subplans are computed once.

Plans that are lowered before the first step share every equal subplan. Once a pipeline runs, an
operator with state has seen items that a new plan has not: sharing it would put parts of what was
before into the new plan. So a new plan shares with the plans that run only operators that handle
each item by itself: streams, time windows, patterns, filters. With those that are added in the same
pause it shares all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from streamsparql.algebra.functions import Run
from streamsparql.algebra.plan import Plan
from streamsparql.overriding import override
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.lowering.lower import At, Catalog, Lowered, Lowering, PlanPlace, place_of
from streamsparql.physical.operator import Operator, Stateless
from streamsparql.physical.operators.access import Stream
from streamsparql.physical.operators.window import AlignToReports, TimeWindow


class SharedLowering(Lowering):
    """A lowering of several plans, before and while a pipeline runs them.

    `stream` returns the operator of a stream.
    """

    def __init__(
        self,
        terms: TermDictionary,
        run: Run,
        catalog: Catalog,
        stream: Callable[[str, str | None], Operator],
    ) -> None:
        super().__init__(terms, run, catalog, None, ())
        self._stream = stream
        self._lasting: dict[Operator, PlanPlace] = {}
        """The operators that plans may share whenever they are lowered, with their places."""
        self._fresh: list[PlanPlace] = []
        """The places of the other operators, which have not been stepped yet."""

    @override
    def stream(self, name: str, stamp: str | None) -> Operator:
        return self._stream(name, stamp)

    @override
    def _store(self, node: Plan, at: At, lowered: Lowered) -> Lowered:
        super()._store(node, at, lowered)
        place = place_of(node, at)
        if place is None:
            return lowered
        if at.outer is None and self._is_lasting(lowered.operator):
            self._lasting[lowered.operator] = place
        else:
            self._fresh.append(place)
        return lowered

    def _is_lasting(self, operator: Operator) -> bool:
        if isinstance(operator, Stream):
            return True
        each = isinstance(operator, TimeWindow | AlignToReports | Stateless)
        return each and not operator.scalars and all(x in self._lasting for x in operator.inputs)

    def begin(self) -> None:
        """Forget the operators that a pipeline is about to step, if they have a state."""
        for place in self._fresh:
            self._lowered.pop(place, None)
        self._fresh.clear()

    def adopt(self, other: SharedLowering, shared: Mapping[Operator, Operator]) -> None:
        """Share the lasting operators of another lowering with the plans that follow.

        `shared` are those that take the places of others.
        """
        self._outer_sets = max(self._outer_sets, other._outer_sets, *other.row_numbers.values(), 0)
        for operator, place in other._lasting.items():
            lasting = shared.get(operator, operator)
            self._lasting[lasting] = place
            self._lowered[place] = other._lowered[place]._replace(operator=lasting)

    def forget(self, operators: Collection[Operator]) -> None:
        """Forget operators that left the pipeline."""
        for operator in operators:
            place = self._lasting.pop(operator, None)
            if place is not None:
                self._lowered.pop(place, None)
