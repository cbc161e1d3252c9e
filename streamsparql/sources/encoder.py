"""From texts and stamps to chunks: what all sources have in common.

A source brings columns of texts in N-Triples syntax. The predicates are encoded first: where no
pattern of the query can match one, the item is dropped before its subject and object are looked at,
which is most of the speed of a selective query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.term_dictionary import (
    IRI_SORT,
    LITERAL_SORT,
    UNBOUND_SORT,
    TermDictionary,
)
from streamsparql.sources.chunk import Chunk, Origin, Reject, Rejected, Wanted, told
from streamsparql.sources.stamps import Stamps
from streamsparql.sources.term_texts import texts_of


class Field:
    """One of the fields of many tuples: terms of any library, looked at when they are needed."""

    __slots__ = ("place", "tuples")

    def __init__(self, tuples: Sequence[Sequence[Any]], place: int) -> None:
        self.tuples = tuples
        self.place = place

    def __len__(self) -> int:
        return len(self.tuples)

    def __iter__(self) -> Iterator[Any]:
        return map(itemgetter(self.place), self.tuples)

    def __getitem__(self, some: slice) -> list[Any]:
        return list(map(itemgetter(self.place), self.tuples[some]))


Texts: TypeAlias = Sequence[str] | Field | pa.Array
"""A column of texts in N-Triples syntax, or a `Field` of terms of any library; in an Arrow array
null is no term. Columns of the same triples are of the same type."""

_NO_TERM = "the {} is no RDF term: write <iri>, _:label or a literal as in N-Triples"


class Encoder:
    """One source on its way into the engine: its name, where its terms go, what is wanted of it."""

    def __init__(
        self,
        name: str,
        terms: TermDictionary,
        scope: str = "",
        wanted: Wanted | None = None,
        strict: bool = False,
        unit: str = "item",
        first: int = 1,
    ) -> None:
        self.name = self.stream = name
        """What a message names; where it is a file, `stream` is what it is read for."""
        self.unit = unit
        """What positions count."""
        self.first = first
        """The position of the first item, where items come in several calls."""
        self.loose: list[Reject] = []
        """Rejects that came with no items: they go with the next chunk."""
        self.terms = terms
        self.scope = scope
        """What sets its blank nodes apart from those of other sources."""
        self.wanted = wanted
        self.strict = strict

    def of(self, unit: str, name: str | None = None, scope: str = "") -> Encoder:
        """The same for a file of this name, whose positions count other units."""
        made = copy(self)
        made.name, made.unit = name or self.name, unit
        made.scope, made.loose = self.scope + scope, []
        return made

    def chunk(
        self,
        triples: tuple[Texts, Texts, Texts],
        stamps: Stamps,
        positions: IntArray,
        original: Callable[[int], object],
        since: Stamps | None = None,
        rejects: Sequence[Reject] = (),
        known: Mapping[int, str] | None = None,
    ) -> Chunk:
        """The chunk of items given as columns; `rejects` came among them and are in no column.

        Where an item is rejected and a better reason is `known`, that is given.
        """
        when, untimed = stamps
        if since is not None:
            when, untimed = in_order(since, stamps)
        ids, kept, untrue = self._triples(triples, untimed)
        reasons = {**untrue, **untimed}
        if known:
            reasons = {k: known.get(k, why) for k, why in reasons.items()}
        found = [self.reject(int(positions[k]), reasons[k], original(k)) for k in reasons]
        rejects = [*rejects, *self.taken()]
        rejected = self.checked([*rejects, *found])
        begun = None if since is None else since[0] if kept is None else since[0][kept]
        items = len(when) + len(rejects)
        if untimed:
            timed = when >= 0
            kept = np.arange(len(when)) if kept is None else kept
            kept = (np.cumsum(timed) - 1)[kept]
            places = np.flatnonzero(timed)
            when, positions = when[places], positions[places]
            at = original
            original = lambda k: at(int(places[k]))  # noqa: E731 -- the same, of other places
        origins = (Origin(self.name, self.unit),)
        return Chunk(*ids, begun, when, kept, positions, items, rejected, original, origins)

    def _triples(
        self, triples: tuple[Texts, Texts, Texts], untimed: dict[int, str]
    ) -> tuple[tuple[IntArray, IntArray, IntArray], IntArray | None, dict[int, str]]:
        """The ids of the triples that are wanted and true, their places, and what is wrong else."""
        s, p, o = triples
        ids = self.encode(p)
        iris = self.terms.sorts(ids) == IRI_SORT
        why = {} if iris.all() else {int(k): _of_predicate(ids[k]) for k in np.flatnonzero(~iris)}
        take = iris if self.wanted is None else iris & self.wanted.mask(ids)
        if untimed:
            take[list(untimed)] = False
        kept = None if take.all() else np.flatnonzero(take)
        if kept is not None:
            (s, o), ids = _taken(s, o, kept), ids[kept]
        subjects, objects = self.encode(s), self.encode(o)
        sorts = self.terms.sorts(subjects)
        good = (sorts != UNBOUND_SORT) & (sorts != LITERAL_SORT) & (objects != UNBOUND_SORT)
        if not good.all():
            places = np.arange(len(good)) if kept is None else kept
            for k in np.flatnonzero(~good):
                why[int(places[k])] = _of_others(int(sorts[k]))
            kept = places[good]
            subjects, ids, objects = subjects[good], ids[good], objects[good]
        return (subjects, ids, objects), kept, why

    def uses(self, place: str) -> bool:
        """Whether the query has a use for a place of the triples: `s`, `p` or `o`."""
        return self.wanted is None or place in self.wanted.places

    def encode(self, texts: Texts) -> IntArray:
        """The ids of terms; 0 for what is none."""
        if isinstance(texts, pa.Array):
            if not isinstance(texts, pa.DictionaryArray):
                texts = texts.cast(pa.string())
            return self.terms.encode(texts, self.scope)
        try:
            return self.terms.encode(texts, self.scope, texts_of)
        except TypeError:  # some are not hashable, so no terms of anyone
            return self.terms.encode(texts_of(list(texts)), self.scope)

    def reject(self, position: int, reason: str, item: object) -> Reject:
        """What is said of an item that cannot be taken."""
        return Reject(self.name, position, reason, told(item), self.unit)

    def taken(self) -> list[Reject]:
        """The rejects that came with no items, which are handed out once."""
        loose, self.loose = self.loose, []
        return loose

    def empty(self, rejects: Sequence[Reject] = ()) -> Chunk:
        """A chunk without items."""
        none: IntArray = np.empty(0, np.int64)
        return self.chunk(([], [], []), (none, {}), none, lambda k: None, None, rejects)

    def last(self) -> Iterator[Chunk]:
        """The rejects with which the source ended."""
        if self.loose:
            yield self.empty()

    def checked(self, rejects: list[Reject]) -> list[Reject]:
        """The rejects in the order of the source. When reading strictly the first is an error."""
        rejects.sort(key=lambda reject: reject.position)
        if self.strict and rejects:
            raise Rejected(rejects[0])
        return rejects


def in_order(since: Stamps, stamps: Stamps) -> Stamps:
    """The stamps of events, which have a start, and end no sooner than they start."""
    begun, ended = since[0], stamps[0]
    why = {**stamps[1], **since[1]}
    for k in np.flatnonzero((begun > ended) & (ended >= 0)):
        why[int(k)] = "the event ends before it starts"
    if why:
        ended = ended.copy()
        ended[list(why)] = -1
    return ended, why


def _of_predicate(identifier: int) -> str:
    if identifier == UNBOUND_SORT:
        return _NO_TERM.format("predicate")
    return "the predicate is no IRI"


def _of_others(sort: int) -> str:
    if sort == LITERAL_SORT:
        return "the subject is a literal"
    return _NO_TERM.format("subject" if sort == UNBOUND_SORT else "object")


def _taken(one: Texts, other: Texts, places: IntArray) -> tuple[Texts, Texts]:
    """What is at these places of two columns."""
    if isinstance(one, pa.Array) and isinstance(other, pa.Array):
        array = pa.array(places)
        return one.take(array), other.take(array)
    at = places.tolist()
    if isinstance(one, Field) and isinstance(other, Field):
        tuples = list(map(one.tuples.__getitem__, at))
        return Field(tuples, one.place), Field(tuples, other.place)
    return list(map(one.__getitem__, at)), list(map(other.__getitem__, at))
