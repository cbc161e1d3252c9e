"""From messages to items: the formats, their stamps, blank nodes, and messages that are not valid."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsparql.connectors.alignment import PartitionClock
from streamsparql.connectors.decoder import MESSAGE_FORMATS, Block, Decoder
from streamsparql.connectors.message import Message
from streamsparql.connectors.message_source import MessageSource
from streamsparql.errors import SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources import read_stream
from streamsparql.sources.disorder import Sorter
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import StampReader

DAY = 86_400_000
TIME = "<http://www.w3.org/ns/sosa/resultTime>"
V = "CONSTRUCT { <x> <v> ?v } {}"


def messages(*payloads: str | bytes) -> list[Message]:
    return [
        Message(each.encode() if isinstance(each, str) else each, "p", k, k + 1, 1000 + k, "a/b")
        for k, each in enumerate(payloads, 1)
    ]


def decoded(block: Block) -> list[tuple[Any, ...]]:
    items = block.decoded.items
    return list(zip(*(column.to_pylist() for column in items.columns), strict=True))


def decode(decoder: Decoder, *payloads: str | bytes) -> tuple[list[Any], list[tuple[int, str]]]:
    """Return the items of messages, and the places and reasons of the rejects."""
    block = decoder.decode(messages(*payloads), "offset")
    return decoded(block), [(r.position, r.reason) for r in block.decoded.rejects]


@pytest.mark.parametrize(
    ("kind", "payload", "item"),
    [
        ("json", '{"s": "<a>", "p": "<v>", "o": "<b>", "t": 5}', ("<a>", "<v>", "<b>", 5)),
        ("nq", '<a> <v> <b> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .',
         ("<a>", "<v>", "<b>", 5)),
        ("nt", "<urn:a> <urn:v> <urn:b> .", ("<urn:a>", "<urn:v>", "<urn:b>", 1001)),
        ("ttl", "@prefix : <urn:> . :a :v :b .", ("<urn:a>", "<urn:v>", "<urn:b>", 1001)),
        ("jsonld", '{"@id": "urn:a", "urn:v": {"@id": "urn:b"}}',
         ("<urn:a>", "<urn:v>", "<urn:b>", 1001)),
        ("trig", "@prefix : <urn:> . @prefix prov: <http://www.w3.org/ns/prov#> . :g { :a :v :b }"
         " :g prov:generatedAtTime 5 .", ("<urn:a>", "<urn:v>", "<urn:b>", 5)),
    ],
)  # fmt: skip
def test_a_message_may_be_an_item_or_a_graph(kind: str, payload: str, item: Any) -> None:
    items, rejects = decode(Decoder("<s>", kind), payload, "<<<{no message", b"\xff", payload)
    assert [each[:3] for each in items] == [item[:3], item[:3]]
    assert items[0] == item
    assert [place for place, _ in rejects] == [2, 3]


def test_records_are_mapped_with_their_topics() -> None:
    mapping = "CONSTRUCT { ?s <v> ?v } { BIND(IRI(CONCAT('urn:', ?TOPIC)) AS ?s) }"
    items, _ = decode(Decoder("<s>", "json", mapping), '{"v": "x", "t": 7}')
    assert items == [("<urn:a/b>", "<v>", '"x"', 7)]
    text = Decoder("<s>", "text", "CONSTRUCT { <x> <v> ?value } {}", "broker")
    assert decode(text, "21.5")[0] == [("<x>", "<v>", '"21.5"', 1001)]
    csv = Decoder("<s>", "csv", V, columns=("t", "v"))
    assert decode(csv, '5,"a,b"', "6,", "7")[0] == [("<x>", "<v>", '"a,b"', 5)]


def test_a_predicate_has_the_stamp_of_a_graph() -> None:
    decoder = Decoder("<s>", "ttl", reading=Reading(StampReader(), TIME))
    date = "http://www.w3.org/2001/XMLSchema#dateTime"
    items, rejects = decode(
        decoder,
        f'<urn:a> <urn:v> 1 ; {TIME} "1970-01-01T00:00:05Z"^^<{date}> .',
        "<urn:a> <urn:v> 2 .",
        f"<urn:a> {TIME} 3, 4 .",
    )
    assert {item[3] for item in items} == {5000}
    assert [reason.partition(":")[0] for _, reason in rejects] == [
        "missing timestamp",
        "ambiguous timestamp",
    ]


@pytest.mark.parametrize("kind", ["nt", "ttl", "json"])
def test_blank_nodes_belong_to_their_message(kind: str) -> None:
    mapping = "CONSTRUCT { [] <v> ?v . [] <v> ?v } {}" if kind == "json" else None
    payload = "_:b <urn:v> _:c .\n_:b <urn:w> _:b ." if kind != "json" else '{"v": 1, "t": 1}'
    decoder = Decoder("<s>", kind, mapping)
    both, _ = decode(decoder, payload, payload)
    alone = [decoded(decoder.decode([m], "offset")) for m in messages(payload, payload)]
    assert [*alone[0], *alone[1]] == both, "the labels do not depend on what is decoded together"

    def nodes(items: Sequence[Any]) -> set[str]:
        return {term for item in items for term in item[:3] if term.startswith("_:")}

    assert nodes(alone[0]).isdisjoint(nodes(alone[1]))
    assert len(nodes(alone[0])) == 2


def test_one_bad_record_rejects_no_other() -> None:
    """The first record of a batch determines no more than itself."""
    payloads = ['{"x": 1}', '{"v": 1, "t": 1}', "[]", '{"v": 2, "t": "soon"}', '{"v": 3, "t": 9}']
    items, rejects = decode(Decoder("<s>", "json", V), *payloads)
    assert [item[2].split('"')[1] for item in items] == ["1", "3"]
    assert [place for place, _ in rejects] == [1, 3, 4]


@given(st.sampled_from(MESSAGE_FORMATS), st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_any_bytes_are_items_or_rejects(kind: str, payloads: list[bytes]) -> None:
    mapping = V if kind == "text" else None
    columns = ("s", "p", "o", "t") if kind == "csv" else ()
    block = Decoder("<s>", kind, mapping, columns=columns).decode(messages(*payloads), "offset")
    chunks = [*read_stream(block.decoded, "s", TermDictionary())]
    assert sum(len(chunk.rejects) for chunk in chunks) == len(block.decoded.rejects)
    assert len(block.ends) == len(block) == len(payloads)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "xml"}, "unknown format 'xml'"),
        ({"format": "nq", "mapping": V}, "a mapping applies to json, csv and text"),
        ({"format": "text"}, "need a mapping"),
        ({"format": "csv"}, "csv needs it"),
        ({"format": "ttl", "reading": Reading(stamp_from="t")}, "is that of a predicate"),
    ],
)
def test_options_that_contradict_the_format_are_errors(arguments: Any, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        Decoder("<s>", **arguments)


# -- alignment -------------------------------------------------------------------------------------


class Partitions:
    """A transport of given messages, which arrive in any portions."""

    unit, replayable, ended = "offset", True, False

    def __init__(self, partitions: dict[str, list[Message]], draw: random.Random) -> None:
        self.left = {name: list(reversed(each)) for name, each in partitions.items()}
        self._draw = draw

    def receive(self, timeout: float, paused: Any) -> list[Message]:
        taken = []
        for name, left in self.left.items():
            if name not in paused and self._draw.random() < 0.5:
                taken += [left.pop() for _ in range(min(len(left), self._draw.randrange(9)))]
        self.ended = not any(self.left.values())
        return taken

    def positions(self) -> dict[str, int]:
        return dict.fromkeys(self.left, 0)

    def at_end(self, partition: str) -> bool:
        return not self.left[partition]

    def seek(self, positions: Any) -> None: ...
    def commit(self, positions: Any) -> None: ...
    def close(self) -> None: ...


def test_no_item_is_late_that_is_not_late_in_its_partition() -> None:
    """Partitions that are read in any portions, with duplicates, disorder, and bogus stamps."""
    for seed in range(60):
        draw = random.Random(seed)
        delay = draw.choice([0, 5])
        partitions, alone = {}, 0
        for name in ("a", "b", "c")[: draw.randrange(1, 4)]:
            time, sent, sorter = draw.randrange(50), list[Message](), Sorter("s", delay, False, DAY)
            for _ in range(draw.randrange(60)):
                time += draw.randrange(3)
                stamp = max(0, time - draw.randrange(delay + 1))
                if draw.random() < 0.02:
                    stamp += 10 * DAY
                payload = b'{"v": 1, "t": %d}' % stamp if draw.random() < 0.95 else b"none"
                for _ in range(1 + (draw.random() < 0.1)):
                    sent.append(Message(payload, name, len(sent) + 1, len(sent) + 1))
            partitions[name] = sent
            terms = TermDictionary()
            if sent:
                block = Decoder("<s>", "json", V).decode(sent, "offset")
                for chunk in read_stream(block.decoded, "s", terms):
                    sorter.push(chunk)
            alone += sorter.late
        transport = Partitions(partitions, draw)
        source = MessageSource(transport, Decoder("<s>", "json", V), idle=0, most_held=20)
        merged, terms = Sorter("s", delay, False, DAY), TermDictionary()
        while not source.ended:
            for _, items in source.poll(0):
                for chunk in read_stream(items, "s", terms):
                    merged.push(chunk)
        merged.advance(1 << 50)
        counts = {name: len(each) for name, each in partitions.items()}
        assert source.position()["partitions"] == counts
        assert merged.accounting.read == sum(counts.values())
        assert merged.late <= alone, seed


@given(
    st.lists(st.sampled_from([-1, 0, 1, 2, DAY + 2, 2 * DAY + 5, 3 * DAY]), max_size=8), st.data()
)
def test_waits_do_not_depend_on_portions(stamps: list[int], data: Any) -> None:
    """A message waits as long as those before it in its partition, too."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stamps)), max_size=3)))
    whole, parts = PartitionClock(), PartitionClock()
    expected = np.maximum.accumulate(whole.waits(np.array(stamps, np.int64)))
    arrays = [
        parts.waits(np.array(stamps[first:after], np.int64))
        for first, after in zip([0, *cuts], [*cuts, len(stamps)], strict=True)
    ]
    assert np.maximum.accumulate(np.concatenate(arrays)).tolist() == expected.tolist()
    assert parts.time == whole.time
