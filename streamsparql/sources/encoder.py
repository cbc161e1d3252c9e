"""The encoder that all sources share: from texts and stamps to chunks.

A source reads columns of texts in N-Triples syntax. The predicates are encoded first: if no pattern
of the query can match one, the subject and object of the item are not read, which makes selective
queries fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.term_dictionary import (
    IRI_SORT,
    LITERAL_SORT,
    UNBOUND_SORT,
    TermDictionary,
)
from streamsparql.sources.chunk import Chunk, Origin, Reject, Rejected, Wanted, printable
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import ParsedStamps, StampReader
from streamsparql.sources.term_texts import (
    ntriples_texts,
    object_text,
    resource_text,
    value_texts,
)


class Field:
    """One field of many tuples: terms of any library, converted when they are needed."""

    __slots__ = ("place", "tuples")

    def __init__(self, tuples: Sequence[Sequence[Any]], place: int) -> None:
        self.tuples = tuples
        self.place = place

    def __len__(self) -> int:
        return len(self.tuples)

    def __iter__(self) -> Iterator[Any]:
        return map(itemgetter(self.place), self.tuples)

    def at(self, k: int) -> Any:
        """Return the value of one tuple."""
        return self.tuples[k][self.place]

    def __getitem__(self, rows: slice) -> list[Any]:
        return list(map(itemgetter(self.place), self.tuples[rows]))


Item = TypeVar("Item")
"""An item of any source, or a batch of a table."""

TextColumn: TypeAlias = Sequence[str] | Field | pa.Array
"""A column of texts in N-Triples syntax, or a `Field` of terms of any library. In an Arrow array
null is a missing term. Columns of the same triples have the same type."""

_NOT_A_TERM = "the {} is not an RDF term; write <iri>, _:label or a literal as in N-Triples"


class Encoder:
    """The encoder of one source: its name, the term dictionary, and what the query reads of it."""

    def __init__(
        self,
        name: str,
        terms: TermDictionary,
        scope: str = "",
        wanted: Wanted | None = None,
        strict: bool = False,
        unit: str = "item",
        first: int = 1,
        failures: list[BaseException] | None = None,
        reading: Reading | None = None,
    ) -> None:
        self.name = self.stream = name
        """The name in messages: the path of a file, while `stream` names the stream or graph."""
        self.unit = unit
        """The unit of positions."""
        self.first = first
        """The position of the first item, if items arrive in several calls."""
        self.pending: list[Reject] = []
        """Rejects without items: they are added to the next chunk."""
        self.terms = terms
        self.scope = scope
        """A prefix that keeps its blank nodes apart from those of other sources."""
        self.wanted = wanted
        self.strict = strict
        self._failures = failures
        self.reading = reading or Reading()
        """How the timestamps are read, and a log of the cells that have no value."""

    @property
    def stamps(self) -> StampReader:
        """The reader of timestamps."""
        return self.reading.stamps

    def until_failure(self, items: Iterable[Item]) -> Iterable[Item]:
        """Return items that end where their source raises, if its exceptions are collected."""
        if self._failures is None or isinstance(items, list | tuple):
            return items
        return _until_failure(items, self._failures)

    def of_all(self) -> Encoder:
        """Return an encoder that encodes all triples, whatever the query reads."""
        encoder = copy(self)
        encoder.wanted = None
        return encoder

    def with_unit(self, unit: str, name: str | None = None, scope: str = "") -> Encoder:
        """Return an encoder of a file of this name, whose positions count this unit."""
        encoder = copy(self)
        encoder.name, encoder.unit = name or self.name, unit
        encoder.scope, encoder.pending = self.scope + scope, []
        return encoder

    def chunk(
        self,
        triples: tuple[TextColumn, TextColumn, TextColumn],
        stamps: ParsedStamps,
        positions: IntArray,
        original: Callable[[int], object],
        since: ParsedStamps | None = None,
        rejects: Sequence[Reject] = (),
        known: Mapping[int, str] | None = None,
    ) -> Chunk:
        """Encode items that are passed as columns; `rejects` are among them, but in no column.

        `known` has more specific reasons for items that are rejected, by place.
        """
        when, untimed = stamps
        if since is not None:
            when, untimed = event_stamps(since, stamps)
        ids, kept, untrue = self._triples(triples, untimed)
        reasons = {**untrue, **untimed}
        if known:
            reasons = {k: known.get(k, why) for k, why in reasons.items()}
        unusable = [self.reject(int(positions[k]), reasons[k], original(k)) for k in reasons]
        rejects = [*rejects, *self.take_pending()]
        rejected = self.sort_rejects([*rejects, *unusable])
        starts = None if since is None else since[0] if kept is None else since[0][kept]
        items = len(when) + len(rejects)
        if untimed:
            timed = when >= 0
            kept = np.arange(len(when)) if kept is None else kept
            kept = (np.cumsum(timed) - 1)[kept]
            places = np.flatnonzero(timed)
            when, positions = when[places], positions[places]
            by_row = original
            original = lambda k: by_row(int(places[k]))  # noqa: E731 -- by the remaining places
        origins = (Origin(self.name, self.unit),)
        return Chunk(*ids, starts, when, kept, positions, items, rejected, original, origins)

    def _triples(
        self, triples: tuple[TextColumn, TextColumn, TextColumn], untimed: dict[int, str]
    ) -> tuple[tuple[IntArray, IntArray, IntArray], IntArray | None, dict[int, str]]:
        """Encode the wanted, valid triples; return also their places, and reasons for the rest."""
        s, p, o = triples
        ids = self.encode(p, "predicate")
        iris = self.terms.sorts(ids) == IRI_SORT
        why: dict[int, str] = {}
        if not iris.all():
            why = {int(k): _predicate_reason(ids[k], p, k) for k in np.flatnonzero(~iris)}
        take = iris if self.wanted is None else iris & self.wanted.mask(ids)
        if untimed:
            take[list(untimed)] = False
        kept = None if take.all() else np.flatnonzero(take)
        if kept is not None:
            (s, o), ids = _at_places(s, o, kept), ids[kept]
        subjects, objects = self.encode(s, "subject"), self.encode(o, "object")
        sorts = self.terms.sorts(subjects)
        good = (sorts != UNBOUND_SORT) & (sorts != LITERAL_SORT) & (objects != UNBOUND_SORT)
        if not good.all():
            places = np.arange(len(good)) if kept is None else kept
            for k in np.flatnonzero(~good):
                why[int(places[k])] = _term_reason(int(sorts[k]), s, o, k)
            kept = places[good]
            subjects, ids, objects = subjects[good], ids[good], objects[good]
        return (subjects, ids, objects), kept, why

    def uses(self, place: str) -> bool:
        """Return whether the query reads a place of the triples: `s`, `p` or `o`."""
        return self.wanted is None or place in self.wanted.places

    def encode(self, texts: TextColumn, place: str) -> IntArray:
        """Return the ids of terms in a place of triples; 0 for a text that is not a term."""
        if isinstance(texts, pa.Array):
            if not isinstance(texts, pa.DictionaryArray):
                texts = texts.cast(pa.string())
            return self.terms.encode(texts, self.scope)
        if isinstance(texts, Field):
            return self._encode_values(texts, place)
        return self.terms.encode(texts, self.scope)

    def _encode_values(self, values: Field, place: str) -> IntArray:
        """Return the ids of terms and of plain values (term_texts.py); 0 for any other value."""
        known = _number_ids(values, self.terms) if place == "object" else None
        if known is not None:
            return known
        write = value_texts if place == "object" else ntriples_texts
        try:
            ids = self.terms.encode(values, self.scope, write)
        except TypeError:  # some values are not hashable, so they are not terms
            ids = self.terms.encode(write(list(values)), self.scope)
        wrong = (ids == 0).nonzero()[0].tolist()
        plain = {k: text for k in wrong if (text := _plain_text(values.at(k), place))}
        if plain:
            ids[list(plain)] = self.terms.encode([*plain.values()], self.scope)
        return ids

    def reject(self, position: int, reason: str, item: object) -> Reject:
        """Return a reject for an item of this source."""
        return Reject(self.name, position, reason, printable(item), self.unit)

    def take_pending(self) -> list[Reject]:
        """Return the pending rejects, and clear them."""
        pending, self.pending = self.pending, []
        return pending

    def empty(self, rejects: Sequence[Reject] = ()) -> Chunk:
        """Return a chunk without items."""
        none: IntArray = np.empty(0, np.int64)
        return self.chunk(([], [], []), (none, {}), none, lambda k: None, None, rejects)

    def remaining(self) -> Iterator[Chunk]:
        """Yield the rejects that are pending when the source ends."""
        if self.pending:
            yield self.empty()

    def sort_rejects(self, rejects: list[Reject]) -> list[Reject]:
        """Sort rejects by position; in a strict run, raise the first."""
        rejects.sort(key=lambda reject: reject.position)
        if self.strict and rejects:
            raise Rejected(rejects[0])
        return rejects


def _until_failure(items: Iterable[Item], failures: list[BaseException]) -> Iterator[Item]:
    try:
        yield from items
    except GeneratorExit:
        raise
    except BaseException as error:
        failures.append(error)


def event_stamps(since: ParsedStamps, stamps: ParsedStamps) -> ParsedStamps:
    """Return the stamps of events: -1, with a reason, if the start is missing or after the end."""
    starts, ends = since[0], stamps[0]
    why = {**stamps[1], **since[1]}
    for k in np.flatnonzero((starts > ends) & (ends >= 0)):
        why[int(k)] = "the event ends before it starts"
    if why:
        ends = ends.copy()
        ends[list(why)] = -1
    return ends, why


def _number_ids(values: Field, terms: TermDictionary) -> IntArray | None:
    """Return the ids of objects that are all Python integers, or all floats; None for others."""
    kind = type(values.at(0)) if len(values) else None
    if kind not in (int, float) or set(map(type, values)) != {kind}:
        return None
    try:
        if kind is int:
            return terms.of_integers(np.fromiter(values, np.int64, len(values)))
        return terms.of_doubles(np.fromiter(values, np.float64, len(values)))
    except OverflowError:  # beyond 64 bits
        return None


def _plain_text(value: Any, place: str) -> str:
    """Return a value as a term by the rules for plain values; "" for other values."""
    try:
        return _text_of(value, place)
    except ValueError:
        return ""


def _predicate_reason(identifier: int, column: TextColumn, k: Any) -> str:
    if identifier == UNBOUND_SORT:
        return _reason("predicate", column, k)
    return "the predicate is not an IRI"


def _term_reason(sort: int, subjects: TextColumn, objects: TextColumn, k: Any) -> str:
    if sort == LITERAL_SORT:
        return "the subject is a literal"
    if sort == UNBOUND_SORT:
        return _reason("subject", subjects, k)
    return _reason("object", objects, k)


def _reason(place: str, column: TextColumn, k: Any) -> str:
    """Return the reason why an entry of a column is not a term."""
    if isinstance(column, Field):
        try:
            _text_of(column.at(k), place)
        except ValueError as error:
            return str(error)
    return _NOT_A_TERM.format(place)


def _text_of(value: Any, place: str) -> str:
    """Return a value as a term by the rules for plain values; raise ValueError otherwise."""
    return object_text(value) if place == "object" else resource_text(value, place)


def _at_places(
    one: TextColumn, other: TextColumn, places: IntArray
) -> tuple[TextColumn, TextColumn]:
    """Return the entries of two columns at these places."""
    if isinstance(one, pa.Array) and isinstance(other, pa.Array):
        array = pa.array(places)
        return one.take(array), other.take(array)
    at = places.tolist()
    if isinstance(one, Field) and isinstance(other, Field):
        tuples = list(map(one.tuples.__getitem__, at))
        return Field(tuples, one.place), Field(tuples, other.place)
    return list(map(one.__getitem__, at)), list(map(other.__getitem__, at))
