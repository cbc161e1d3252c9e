"""Messages that are small graphs: N-Triples, Turtle, TriG, JSON-LD; and N-Quads with stamps.

All triples of a message have one stamp: that which a predicate has in it, or one from outside. In
TriG and N-Quads they can be timestamped as in files (docs/sources.md). A message that is not valid
is rejected as a whole.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyoxigraph

from streamsparql.connectors.message import Message
from streamsparql.errors import SourceError
from streamsparql.physical.batch import IntArray
from streamsparql.sources.chunk import Chunk, Origin
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.nesting import CheckedJson, CheckedTripleTerms
from streamsparql.sources.quads import line_chunks
from streamsparql.sources.rdf import PendingItems, plain_stamp, trig_chunks

SYNTAXES = {
    "nt": pyoxigraph.RdfFormat.N_TRIPLES,
    "nq": pyoxigraph.RdfFormat.N_QUADS,
    "ttl": pyoxigraph.RdfFormat.TURTLE,
    "trig": pyoxigraph.RdfFormat.TRIG,
    "jsonld": pyoxigraph.RdfFormat.JSON_LD,
}
"""The formats of graphs."""
_ALL = 1 << 30


def graph_chunks(
    messages: Sequence[Message], syntax: str, encoder: Encoder, outside: bool
) -> Iterator[Chunk]:
    """Yield the triples of messages; with the stamp 0 if their stamps are `outside`."""
    if syntax == "nq" and not outside:
        yield from _line_chunks(messages, encoder)
        return
    pending = PendingItems(encoder)
    timed_graphs = syntax == "trig" and not outside
    for message in messages:
        try:
            quads = _parsed(message.payload, syntax, encoder.name)
            stamp = 0 if outside or timed_graphs else _stamp_of(quads, encoder)
        except (SyntaxError, ValueError, SourceError) as error:
            reason = str(error).removeprefix(f"{encoder.name}: ")
            pending.rejects.append(encoder.reject(message.place, reason, message.payload))
            continue
        if timed_graphs:
            yield from _timed_graphs(message, encoder)
        else:
            for quad in quads:
                pending.add(message.place, quad, stamp)
    yield pending.chunk()


def _parsed(payload: bytes, syntax: str, name: str) -> list[Any]:
    """Return the statements of a message; raise an error if it is not valid."""
    content: Any = io.BytesIO(payload)
    if syntax == "jsonld":
        content = CheckedJson(content, name)
    elif syntax in ("ttl", "trig"):
        content = CheckedTripleTerms(content, name)
    base = "file:///" if syntax == "jsonld" else None
    try:
        return list(pyoxigraph.parse(content, format=SYNTAXES[syntax], base_iri=base))
    except SyntaxError as error:
        raise ValueError(f"not a message in {syntax}: {error}") from None


def _stamp_of(quads: Sequence[Any], encoder: Encoder) -> int:
    """Return the stamp of a message; raise ValueError with the reason if it has none, or two."""
    predicate = encoder.reading.predicate
    assert predicate is not None
    about = [quad.object for quad in quads if quad.predicate.value == predicate[1:-1]]
    stamps = {encoder.stamps.stamp_of(plain_stamp(value, True)) for value in about}
    if not stamps:
        raise ValueError(f"missing timestamp: the message has no {predicate}")
    if len(stamps) > 1:
        raise ValueError(f"ambiguous timestamp: the message has two {predicate}")
    return stamps.pop()


def _timed_graphs(message: Message, encoder: Encoder) -> Iterator[Chunk]:
    """Yield the triples of the graphs of a message, each with the timestamp of its graph."""
    for chunk in trig_chunks(io.BytesIO(message.payload), encoder, _ALL):
        yield _placed(chunk, encoder, np.array([message.place], np.int64), 0 * chunk.positions)


def _line_chunks(messages: Sequence[Message], encoder: Encoder) -> Iterator[Chunk]:
    """Yield the items on the lines of messages, which have one each, or several."""
    places = np.array([message.place for message in messages], np.int64)
    payloads = [message.payload.rstrip(b"\r\n").replace(b"\r", b"\n") for message in messages]
    lines = np.array([payload.count(b"\n") + 1 for payload in payloads], np.int64)
    of_line = np.repeat(np.arange(len(messages)), lines)
    for chunk in line_chunks(io.BytesIO(b"\n".join(payloads)), encoder, _ALL, timed=True):
        yield _placed(chunk, encoder, places[of_line], chunk.positions - 1)


def _placed(chunk: Chunk, encoder: Encoder, places: IntArray, at: IntArray) -> Chunk:
    """Return a chunk whose positions are those of messages: `places`, one by place in the chunk."""
    last = len(places) - 1
    chunk.rejects = [
        reject._replace(
            source=encoder.name,
            unit=encoder.unit,
            position=int(places[min(reject.position - 1, last)]),
        )
        for reject in chunk.rejects
    ]
    chunk.positions = places[np.minimum(at, last)]
    chunk.origins = (Origin(encoder.name, encoder.unit),)
    return chunk
