"""Messages: triples whose timestamp is one of them, such as that with `sosa:resultTime`.

A source without timestamps is read as a graph is, and divided into messages: successive triples
about one node, and about the nodes that they refer to. All triples of a message get the time that
the object of its time predicate denotes. In TriG and N-Quads a message is a graph (rdf.py), in a
mapped table a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsparql.algebra.ntriples import unescape_ntriples
from streamsparql.algebra.terms import IRI
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import BLANK_SORT
from streamsparql.sources.chunk import Chunk, Origin, Reject
from streamsparql.sources.encoder import Encoder

_NOTHING: IntArray = np.empty(0, np.int64)


def message_chunks(
    read: Callable[[Encoder], Iterable[Chunk]],
    encoder: Encoder,
    size: int,
    *,
    rows: bool = False,
) -> Iterator[Chunk]:
    """Yield the triples of messages with their timestamps; `read` reads triples without time.

    With `rows`, the triples of each position are a message.
    """
    messages = _Messages(encoder, rows)
    for chunk in read(encoder.of_all()):
        yield from messages.consume(chunk).parts(size)
    yield from messages.end().parts(size)


@dataclass(frozen=True)
class _Triples:
    """Triples in the order of the source."""

    s: IntArray
    p: IntArray
    o: IntArray
    positions: IntArray
    original: Callable[[int], object]

    def __len__(self) -> int:
        return len(self.s)

    def part(self, first: int, after: int) -> _Triples:
        """Return the triples from `first` to `after - 1`."""
        cut = slice(first, after)
        original = self.original
        s, p, o, positions = self.s[cut], self.p[cut], self.o[cut], self.positions[cut]
        return _Triples(s, p, o, positions, lambda k: original(first + k))

    def followed_by(self, other: _Triples) -> _Triples:
        """Return the triples of both."""
        if not len(self):
            return other
        count, before, after = len(self), self.original, other.original
        return _Triples(
            np.concatenate([self.s, other.s]),
            np.concatenate([self.p, other.p]),
            np.concatenate([self.o, other.o]),
            np.concatenate([self.positions, other.positions]),
            lambda k: before(k) if k < count else after(k - count),
        )


class _Messages:
    """The triples of a message that may continue in the next chunk."""

    def __init__(self, encoder: Encoder, rows: bool) -> None:
        predicate = encoder.reading.predicate
        assert predicate is not None
        self._encoder, self._rows = encoder, rows
        self._name = predicate
        self._time = encoder.terms.id_of(IRI(predicate[1:-1]), keep=True)
        self._pending = _Triples(_NOTHING, _NOTHING, _NOTHING, _NOTHING, lambda k: None)
        self._origin = Origin(encoder.name, encoder.unit)

    def consume(self, chunk: Chunk) -> Chunk:
        """Return the messages that are complete once a chunk has been read."""
        self._origin = next(iter(chunk.origins), self._origin)
        places = np.arange(len(chunk)) if chunk.kept is None else chunk.kept
        original = chunk.original
        read = _Triples(
            *(chunk.s, chunk.p, chunk.o, chunk.positions[places]),
            lambda k: original(int(places[k])),
        )
        triples = self._pending.followed_by(read)
        starts = self._starts(triples)
        if len(starts) > 1 and self._is_blank(triples.s[starts[-1] :]).all():
            starts = starts[:-1]  # the node may belong to the message before it
        after = int(starts[-1]) if len(starts) else 0
        self._pending = triples.part(after, len(triples))
        whole = self._stamped(triples.part(0, after), starts[:-1], chunk.rejects)
        whole.rows_without_triples = chunk.rows_without_triples
        return whole

    def end(self) -> Chunk:
        """Return the last messages."""
        triples, self._pending = self._pending, self._pending.part(0, 0)
        return self._stamped(triples, self._starts(triples), [])

    def _is_blank(self, ids: IntArray) -> BoolArray:
        blank: BoolArray = self._encoder.terms.sorts(ids) == BLANK_SORT
        return blank

    def _starts(self, triples: _Triples) -> IntArray:
        """Return the places at which messages begin."""
        key = triples.positions if self._rows else triples.s
        runs = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(triples)])
        if self._rows:
            return runs
        starts: list[int] = []
        nodes: set[int] = set()
        has_time = False
        for begin, about, mentioned, times in self._runs(triples, runs.tolist()):
            if nodes.isdisjoint(about) or (times and has_time):
                starts.append(begin)
                nodes, has_time = set(), False
            nodes |= mentioned
            has_time = has_time or times
        return np.array(starts, np.int64)

    def _runs(
        self, triples: _Triples, begins: list[int]
    ) -> Iterator[tuple[int, set[int], set[int], bool]]:
        """Yield runs of triples about a node: the first place, the node, all nodes, any time.

        Triples about blank nodes to which the next triples refer are part of that run: writers of
        RDF may put a nested node before the triple that refers to it.
        """
        timed = triples.p == self._time
        blank = self._is_blank(triples.s[begins]).tolist()
        subjects, objects = triples.s.tolist(), triples.o.tolist()
        ends = [*begins[1:], len(triples)][: len(begins)]
        first, about, nodes = 0, set[int](), set[int]()
        for k, (begin, after) in enumerate(zip(begins, ends, strict=True)):
            first = begin if not about else first
            about.add(subjects[begin])
            nodes |= {subjects[begin], *objects[begin:after]}
            if blank[k] and k + 1 < len(begins):
                following = objects[after : ends[k + 1]]
                nested = blank[k + 1] and subjects[after] in nodes
                if nested or not about.isdisjoint(following):
                    continue
            yield first, about, nodes, bool(timed[first:after].any())
            about, nodes = set(), set()

    def _stamped(self, triples: _Triples, starts: IntArray, rejects: list[Reject]) -> Chunk:
        """Return messages, which begin at these places, as a chunk."""
        message = np.searchsorted(starts, np.arange(len(triples)), "right") - 1
        stamps, why = self._times(triples, message, len(starts))
        encoder = self._encoder
        bad = [k for k in range(len(triples)) if int(message[k]) in why] if why else []
        rejected = [
            Reject(
                self._origin.source,
                int(triples.positions[k]),
                why[int(message[k])],
                triples.original(k),
                self._origin.unit,
            )
            for k in bad
        ]
        good = np.delete(np.arange(len(triples)), bad)
        p = triples.p[good]
        kept = None if encoder.wanted is None else np.flatnonzero(encoder.wanted.mask(p))
        rows = good if kept is None else good[kept]
        rejected = encoder.sort_rejects([*rejects, *rejected])
        chunk = Chunk(
            *(triples.s[rows], triples.p[rows], triples.o[rows], None, stamps[message[good]], kept),
            *(triples.positions[good], len(good) + len(rejected), rejected),
            lambda k: triples.original(int(good[k])),
            (self._origin,),
        )
        pending = self._pending
        chunk.retained_ids = lambda: (pending.s, pending.p, pending.o)
        return chunk

    def _times(
        self, triples: _Triples, message: IntArray, count: int
    ) -> tuple[IntArray, dict[int, str]]:
        """Return the stamp of each message, and reasons for those without one."""
        places = np.flatnonzero(triples.p == self._time)
        texts = self._encoder.terms.texts(triples.o[places]).to_pylist()
        values = pa.array([_time_text(text) for text in texts], pa.string())
        times, wrong = self._encoder.stamps.of_column(values)
        stamps = np.full(count, -1, np.int64)
        why: dict[int, str] = {}
        for k, (place, stamp) in enumerate(zip(places.tolist(), times.tolist(), strict=True)):
            number = int(message[place])
            if k in wrong:
                why[number] = wrong[k]
            elif stamps[number] not in (-1, stamp):
                why[number] = f"ambiguous timestamp: its message has two {self._name}"
            else:
                stamps[number] = stamp
        for number in np.flatnonzero(stamps < 0).tolist():
            why.setdefault(number, f"missing timestamp: its message has no {self._name}")
        return stamps, why


def _time_text(text: str) -> str:
    """Return the time that a literal denotes, as a text: that of a plain string, or the literal."""
    if text[:1] == '"' and text[-1:] == '"':
        return unescape_ntriples(text[1:-1])
    return text
