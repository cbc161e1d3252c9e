"""From messages to items: a message has an item, a record of a mapping, or a small graph.

The stamp of a message is in it (`stamp` names a column, a path or a predicate), or it is the time
of the broker, or that of its arrival. Its blank nodes are its own: their labels have the place of
the message, so that a message that is read again has the same ones.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import time_ns
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.connectors.graph_messages import SYNTAXES, graph_chunks
from streamsparql.connectors.message import Message
from streamsparql.errors import SourceError
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.decoded import Decoded
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.json_lines import chunk_of_objects, json_object
from streamsparql.sources.lines import decoded
from streamsparql.sources.mapping import Mapped
from streamsparql.sources.mapping_rows import TripleMaker
from streamsparql.sources.messages import message_chunks
from streamsparql.sources.reading import Reading
from streamsparql.sources.tables import roles

BROKER, ARRIVAL = "broker", "arrival"
"""Stamps that are not in the message: the time of the broker, or that of its arrival."""
AUTO = "auto"
"""The mapping that is guessed from the first record."""

_RECORDS = ("json", "csv", "text")
FORMATS = (*_RECORDS, *SYNTAXES)
"""The formats of messages; `text` is a record with the key `value`."""
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Block:
    """Messages of one partition that were decoded."""

    decoded: Decoded
    """Their items and rejects."""
    messages: Sequence[Message]
    ends: IntArray
    """For each message the number of items of it and of those before it."""
    stamps: IntArray
    """For each message its greatest stamp; -1 without one."""

    def __len__(self) -> int:
        return len(self.messages)

    def item_times(self, times: IntArray) -> IntArray:
        """Return the times of messages for each of their items."""
        return np.repeat(times, np.diff(self.ends, prepend=0))

    def split(self, count: int) -> tuple[Block, Block]:
        """Return the first messages, at least one, and the others."""
        end, items = int(self.ends[count - 1]), self.decoded
        last = self.messages[count - 1].place
        before = [reject for reject in items.rejects if reject.position <= last]
        after = [reject for reject in items.rejects if reject.position > last]
        head = replace(items.part(0, end), rejects=before)
        tail = replace(items.part(end, len(items.places)), rejects=after)
        return (
            Block(head, self.messages[:count], self.ends[:count], self.stamps[:count]),
            Block(tail, self.messages[count:], self.ends[count:] - end, self.stamps[count:]),
        )


@dataclass(frozen=True)
class Decoder:
    """The decoder of the messages of one stream.

    >>> decoder = Decoder("<s>", "json", "CONSTRUCT { [] <v> ?v } {}")
    >>> block = decoder.decode([Message(b'{"v": 7, "t": 5}', "p", 0, 1)], "offset")
    >>> block.decoded.items["object"].to_pylist(), block.stamps.tolist()
    (['"7"^^<http://www.w3.org/2001/XMLSchema#integer>'], [5])
    """

    stream: str
    format: str
    mapping: str | None = None
    """The text of a CONSTRUCT over the keys of a record; `auto` for one that is guessed."""
    stamp: str | None = None
    """`broker` or `arrival`; None for a stamp in the message."""
    columns: Sequence[str] = ()
    """The columns of CSV."""
    delimiter: str = ","
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        """Check that the options fit the format."""
        if self.format not in FORMATS:
            known = ", ".join(FORMATS)
            raise SourceError(
                f"unknown format {self.format!r} of messages; the formats are {known}"
            )
        records = self.format in _RECORDS
        if self.mapping is not None and not records:
            raise SourceError(f"a mapping applies to json, csv and text, not to {self.format}")
        if self.mapping is None and self.format == "text":
            raise SourceError("messages in text need a mapping of ?value: map=FILE")
        if (self.format == "csv") is not bool(self.columns):
            raise SourceError("columns=A,B,.. applies to format=csv, and csv needs it")
        place = self.reading.stamp_from
        if not records and place is not None and self.reading.predicate is None:
            raise SourceError(
                f"the stamp of a graph is that of a predicate, {BROKER} or {ARRIVAL}, not {place}"
            )

    @property
    def outside(self) -> bool:
        """Whether stamps are not in the messages; graphs have them there only by a predicate."""
        if self.stamp is not None:
            return True
        return self.format in ("nt", "ttl", "jsonld") and self.reading.predicate is None

    def decode(self, messages: Sequence[Message], unit: str) -> Block:
        """Decode messages of one partition, whose places are of this unit."""
        name = messages[0].partition
        places = np.array([message.place for message in messages], np.int64)
        encoder = Encoder(name, TermDictionary(), unit=unit, reading=self.reading)
        encoder.stream = self.stream
        if self.format in _RECORDS:
            chunks = [*self._records(messages, places, encoder)]
        else:
            chunks = [*graph_chunks(messages, self.format, encoder, self.outside)]
        columns, of_item = _columns(chunks, encoder.terms, name)
        index = np.searchsorted(places, of_item)
        if self.outside:
            columns = {**columns, "timestamp": pa.array(self._outside_stamps(messages)[index])}
        items = pa.record_batch(columns)
        rejects = [reject for chunk in chunks for reject in chunk.rejects]
        rejects.sort(key=lambda reject: reject.position)
        stamps = np.full(len(messages), -1, np.int64)
        np.maximum.at(stamps, index, items.column(items.num_columns - 1).to_numpy())
        ends = np.searchsorted(index, np.arange(len(messages)), "right")
        block = Decoded((name,), unit, items, of_item, rejects)
        return Block(block, messages, ends, stamps)

    def _outside_stamps(self, messages: Sequence[Message]) -> IntArray:
        """Return the times of messages: those of the broker, else of their arrival."""
        now = time_ns() // 1_000_000
        if self.stamp == ARRIVAL:
            return np.full(len(messages), now, np.int64)
        return np.array([now if m.stamp is None else m.stamp for m in messages], np.int64)

    # -- records

    def _records(
        self, messages: Sequence[Message], places: IntArray, encoder: Encoder
    ) -> Iterator[Chunk]:
        """Yield the items of records: by the mapping, or those that have the columns of items."""
        records: list[dict[str, Any]] = []
        good: list[int] = []
        rejects: list[Reject] = []
        for k, message in enumerate(messages):
            record = self._record(message)
            if isinstance(record, str):
                rejects.append(encoder.reject(message.place, record, message.payload))
            else:
                records.append(record)
                good.append(k)
        yield encoder.empty(rejects)
        if records:
            yield from self._items_of(records, places[good], encoder)

    def _items_of(
        self, records: Sequence[dict[str, Any]], places: IntArray, encoder: Encoder
    ) -> Iterator[Chunk]:
        """Yield the items of records; those that raise errors are rejected, not the others."""
        read = self._plain_items if self.mapping is None else self._mapped_items
        try:
            chunks = list(read(records, places, encoder))
        except SourceError as error:
            if len(records) > 1:
                half = len(records) // 2
                yield from self._items_of(records[:half], places[:half], encoder)
                yield from self._items_of(records[half:], places[half:], encoder)
                return
            reason = str(error).removeprefix(f"{encoder.name}: ").removeprefix(f"{encoder.name} ")
            chunks = [encoder.empty([encoder.reject(int(places[0]), reason, records[0])])]
        yield from chunks

    def _record(self, message: Message) -> dict[str, Any] | str:
        """Return the record in a message, or why it is rejected."""
        text = decoded(message.payload)
        if text is None:
            return "the message is not UTF-8"
        record: dict[str, Any] | str
        if self.format == "text":
            record = {"value": text}
        elif self.format == "json":
            record = json_object(text)
        else:
            record = self._separated(text)
        if self._added and isinstance(record, dict):
            record |= {name: value(message) for name, value in self._added.items()}
        return record

    def _separated(self, text: str) -> dict[str, Any] | str:
        """Return the record on a line of CSV, or why it is rejected; an empty cell is unbound."""
        try:
            rows = list(csv.reader([text.rstrip("\r\n")], delimiter=self.delimiter, strict=True))
        except csv.Error as error:
            return f"not a line of CSV: {error}"
        cells = rows[0] if rows else []
        if len(cells) != len(self.columns):
            return f"expected {len(self.columns)} values, not {len(cells)}"
        return {name: cell or None for name, cell in zip(self.columns, cells, strict=True)}

    @cached_property
    def _added(self) -> dict[str, Callable[[Message], Any]]:
        """What a mapping reads of a message beside its record: ?TOPIC and ?KEY."""
        text = self.mapping or ""
        known: dict[str, Callable[[Message], Any]] = {
            "TOPIC": lambda message: message.topic,
            "KEY": lambda message: None if message.key is None else decoded(message.key),
        }
        return {n: value for n, value in known.items() if re.search(rf"[?$]{n}\b", text)}

    def _mapped_items(
        self, records: Sequence[dict[str, Any]], places: IntArray, encoder: Encoder
    ) -> Iterator[Chunk]:
        mapped = Mapped([], None if self.mapping == AUTO else self.mapping)
        timed = not self.outside and self.reading.predicate is None

        def chunks(encoder: Encoder) -> Iterator[Chunk]:
            maker = TripleMaker(mapped, encoder, timed, None)
            if maker.guesses:
                maker.guess(records[:1])
            yield from maker.records(records, places, _CHUNK, [])

        if self.outside or timed:
            return chunks(encoder)
        return message_chunks(chunks, encoder, _CHUNK, rows=True)

    def _plain_items(
        self, records: Sequence[dict[str, Any]], places: IntArray, encoder: Encoder
    ) -> Iterator[Chunk]:
        """Yield records that are items: those with the same keys together."""
        rows_of: dict[tuple[str, ...], list[int]] = {}
        for k, record in enumerate(records):
            rows_of.setdefault(tuple(record), []).append(k)
        for keys, rows in rows_of.items():
            columns = roles(keys, encoder, not self.outside)
            yield chunk_of_objects([records[k] for k in rows], places[rows], columns, encoder)


def _columns(
    chunks: Sequence[Chunk], terms: TermDictionary, partition: str
) -> tuple[dict[str, pa.Array], IntArray]:
    """Return the items of chunks as columns, ordered by place, and the place of each."""
    nothing: IntArray = np.empty(0, np.int64)

    def joined(part: Callable[[Chunk], IntArray]) -> IntArray:
        return np.concatenate([nothing, *map(part, chunks)])

    of_item = joined(lambda c: c.positions if c.kept is None else c.positions[c.kept])
    order = np.argsort(of_item, kind="stable")
    of_item = of_item[order]
    columns = {}
    for name in "spo":
        ids = joined(lambda chunk, name=name: getattr(chunk, name))[order]  # type: ignore[misc]
        texts = terms.dictionary(ids)
        columns[{"s": "subject", "p": "predicate", "o": "object"}[name]] = texts
    _name_blank_nodes(columns, of_item, partition)
    if any(chunk.since is not None for chunk in chunks):
        columns["start"] = pa.array(joined(lambda chunk: chunk.start)[order])
        columns["end"] = pa.array(joined(lambda chunk: chunk.end)[order])
    else:
        columns["timestamp"] = pa.array(joined(lambda chunk: chunk.end)[order])
    return columns, of_item


def _name_blank_nodes(columns: dict[str, pa.Array], places: IntArray, partition: str) -> None:
    """Replace the labels of blank nodes by ones with their message, in the order in it."""
    blank = {
        name: np.flatnonzero(pc.starts_with(texts.dictionary, "_:").to_numpy(False)[texts.indices])
        for name, texts in columns.items()
        if name != "predicate" and len(texts)
    }
    if not any(map(len, blank.values())):
        return
    scope = re.sub(r"[^A-Za-z0-9]", lambda match: f"_{ord(match[0]):x}_", partition)
    texts = {name: columns[name].to_pylist() for name in blank}
    labels: dict[tuple[int, str], str] = {}
    counts: dict[int, int] = {}
    for row in np.unique(np.concatenate([*blank.values()])).tolist():
        place = int(places[row])
        for column in texts.values():
            text = column[row]
            if text[:2] == "_:":
                label = labels.get((place, text))
                if label is None:
                    k = counts[place] = counts.get(place, -1) + 1
                    label = labels[place, text] = f"_:m{scope}.{place}.{k}"
                column[row] = label
    for name, values in texts.items():
        columns[name] = pa.array(values).dictionary_encode()
