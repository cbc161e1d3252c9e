"""Triple patterns: from triples to solutions (twins of algebra.match)."""

from __future__ import annotations

import numpy as np

from streamsparql.algebra import match
from streamsparql.algebra.solutions import Variable
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import SINCE, is_triple_stamp, stamp_column
from streamsparql.physical.operator import Operator, Stateless


class TriplePatternMatching(Stateless):
    """The triples that match a pattern, as solutions (ESWC 2008, Definition 7).

    This is ESWC 2008, Algorithm 3, on columns. A blank node of the pattern is a variable here, as
    in ESWC 2008, Definition 6.

    >>> from streamsparql.physical.operators.access import Always
    >>> ids = (np.array([7, 7]), np.array([1, 2]), np.array([7, 8]))
    >>> triples = Always.of(dict(zip(TRIPLE, ids, strict=True)), 2)
    >>> x, p = Variable("x"), Variable("p")
    >>> same = TriplePatternMatching(triples, match.TriplePattern(x, p, x), TermDictionary())
    >>> same.apply(triples.rows)
    Batch(1 rows of x, p)
    """

    implements = (match.TriplePatternMatching,)

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        pattern: match.TriplePattern,
        terms: TermDictionary,
        stamps: tuple[match.Stamp, ...] = (),
    ) -> None:
        self.pattern = pattern
        self._constants: list[tuple[str, int]] = []
        self._repeated: list[tuple[str, str]] = []
        self._places: dict[str, str] = {}
        for column, place in zip(TRIPLE, pattern, strict=True):
            if not isinstance(place, Variable):
                self._constants.append((column, terms.id_of(place, keep=True)))
            elif place.name in self._places:
                self._repeated.append((self._places[place.name], column))
            else:
                self._places[place.name] = column
        self._constants.sort(key=lambda constant: constant[0] != ".p")
        self._stamps = {s.variable.name: stamp_columns(s, input.names) for s in stamps}
        self._terms = terms
        self._since = [name for name in input.names if name == SINCE]
        super().__init__((*self._places, *self._stamps, *self._since), input)

    @override
    def apply(self, batch: Batch) -> Batch:
        mask = self._matches(batch)
        if mask is not None:
            batch = batch.where(mask)
        columns = {name: batch.columns[column] for name, column in self._places.items()}
        for name, stamps in self._stamps.items():
            columns[name] = latest_stamps(
                self._terms, [batch.columns[c] for c in stamps], len(batch)
            )
        for name in self._since:
            columns[name] = batch.columns[name]
        return Batch(columns, batch.start, batch.end, batch.count)

    def _matches(self, batch: Batch) -> BoolArray | None:
        mask: BoolArray | None = None
        for column, constant in self._constants:
            equal = batch.columns[column] == constant
            mask = equal if mask is None else mask & equal
        for one, other in self._repeated:
            equal = batch.columns[one] == batch.columns[other]
            mask = equal if mask is None else mask & equal
        return mask

    def constants(self) -> list[tuple[str, int]]:
        """Return the columns that the pattern compares with a constant, each with its term id."""
        return self._constants

    @override
    def facts(self) -> str:
        return " ".join(map(str, self.pattern))


def stamp_columns(stamp: match.Stamp, names: tuple[str, ...]) -> list[str]:
    """Return the columns of the stamps that count: those of all streams, or of one."""
    if stamp.stream is not None:
        own = stamp_column(stamp.stream.value)
        return [own] if own in names else []
    return [name for name in names if is_triple_stamp(name)]


def latest_stamps(terms: TermDictionary, stamps: list[IntArray], rows: int) -> IntArray:
    """Return the greatest stamp of each row, ignoring unbound ones.

    >>> terms = TermDictionary()
    >>> one, two = terms.of_integers(np.array([10, 20])), terms.of_integers(np.array([30, 5]))
    >>> terms.integers_of(latest_stamps(terms, [one, two, np.zeros(2, np.int64)], 2)).tolist()
    [30, 20]
    """
    if not stamps:
        return np.zeros(rows, np.int64)
    latest = stamps[0]
    for stamp in stamps[1:]:
        later = terms.integers_of(stamp) > terms.integers_of(latest)
        take = (latest == 0) | (later & (stamp != 0))
        latest = np.where(take, stamp, latest)
    return latest
