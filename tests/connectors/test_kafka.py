"""Kafka: a real broker, its partitions, positions, transactions, and what happens when it stops."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from support.brokers import Kafka, wait_for
from support.kafka_topics import consumed, produce, topic

import streamsparql
from streamsparql.connectors.message_source import MessageSource
from streamsparql.connectors.sinks import open_live_sink
from streamsparql.connectors.sources import open_live_source
from streamsparql.errors import ConnectionWarning, SourceError
from streamsparql.sinks import Layout

kafka_client = pytest.importorskip("confluent_kafka")
QUERY = "SELECT ?v FROM STREAM <s> WINDOW RANGE 1 MS FIXED { ?x <v> ?v }"
MAPPING = "CONSTRUCT { <x> <v> ?v } {}"
LAYOUT = Layout("select", ("v",), ("start", "end"))


def opened(broker: Kafka, name: str, options: str = "") -> MessageSource:
    return open_live_source(f"kafka://{broker.address}/{name}?{options}", mapping=MAPPING)


def values(source: MessageSource, least: int) -> list[str]:
    """Return the values of the next items, at least some."""
    read: list[str] = []

    def enough() -> bool:
        for _, items in source.poll(0.1):
            read.extend(text.split('"')[1] for text in items.items["object"].to_pylist())
        return len(read) >= least

    wait_for(enough, f"{least} items")
    return read


def test_partitions_that_are_read_unevenly_make_no_item_late(kafka: Kafka) -> None:
    name = topic(kafka, 3)
    for partition in range(3):
        stamps = range(partition, 6000, 3)
        produce(kafka, name, *((partition, {"v": t, "t": t}) for t in stamps))
    url = f"kafka://{kafka.address}/{name}?until=end"
    result = streamsparql.compile(QUERY).run(streamsparql.mapped(url, MAPPING))
    assert len(list(result)) == 6000
    assert not result.late


def test_an_empty_partition_holds_the_others_back_only_until_it_is_idle(kafka: Kafka) -> None:
    name = topic(kafka, 2)
    produce(kafka, name, (0, {"v": 1, "t": 1}))
    source = opened(kafka, name, "idle=300ms")
    assert values(source, 1) == ["1"]
    source.close()


def test_positions_are_offsets_of_what_was_delivered(kafka: Kafka) -> None:
    name = topic(kafka, 2)
    produce(kafka, name, *((0, {"v": t, "t": t}) for t in range(10)), (1, {"v": 5, "t": 5}))
    source = opened(kafka, name, "idle=1h")
    assert sorted(values(source, 7)) == sorted(["0", "1", "2", "3", "4", "5", "5"])
    position = source.position()
    assert position == {"partitions": {f"{name}[0]": 6, f"{name}[1]": 1}}
    source.close()
    again = opened(kafka, name, "idle=1h")
    again.seek(json.loads(json.dumps(position)))
    produce(kafka, name, (1, {"v": 8, "t": 8}))
    assert sorted(values(again, 4)) == ["6", "7", "8", "8"]
    again.close()


def test_a_group_starts_where_it_committed(kafka: Kafka) -> None:
    name = topic(kafka)
    produce(kafka, name, *((0, {"v": t, "t": t}) for t in range(3)))
    source = opened(kafka, name, "group=g1")
    values(source, 3)
    source.commit(source.position())
    source.close()
    produce(kafka, name, (0, {"v": 9, "t": 9}))
    again = opened(kafka, name, "group=g1")
    assert values(again, 1) == ["9"]
    again.close()
    latest = opened(kafka, name, "start=latest")
    latest.poll(0.1)
    produce(kafka, name, (0, {"v": 10, "t": 10}))
    assert values(latest, 1) == ["10"]
    latest.close()


def test_messages_that_are_none_are_rejected_with_their_offsets(kafka: Kafka) -> None:
    name = topic(kafka)
    produce(kafka, name, (0, {"v": 1, "t": 1}), (0, b"\xff"), (0, b"{"), (0, {"v": 2, "t": 2}))
    url = f"kafka://{kafka.address}/{name}?until=end"
    result = streamsparql.compile(QUERY).run(streamsparql.mapped(url, MAPPING))
    assert [row.value("v") for row in result] == [1, 2]
    assert [str(reject).partition(": ")[0] for reject in result.rejected] == [
        f"{name}[0], offset 1",
        f"{name}[0], offset 2",
    ]


def test_the_time_of_the_broker_is_a_stamp(kafka: Kafka) -> None:
    name = topic(kafka)
    producer = kafka_client.Producer({"bootstrap.servers": kafka.address})
    producer.produce(name, b'<x> <v> "a" .'.replace(b"<", b"<urn:"), timestamp=1234, key=b"k")
    producer.flush()
    url = f"kafka://{kafka.address}/{name}?until=end&format=nt&stamp=broker"
    query = streamsparql.compile(QUERY.replace("<v>", "<urn:v>"))
    assert [(row.value("v"), row.start) for row in query.run({"s": url})] == [("a", 1234)]


def test_a_broker_that_stops_and_starts_loses_nothing(kafka: Kafka) -> None:
    name = topic(kafka)
    produce(kafka, name, (0, {"v": 1, "t": 1}))
    source = opened(kafka, name)
    assert values(source, 1) == ["1"]
    kafka.stop()
    with pytest.warns(ConnectionWarning, match="connecting again") as said:
        assert source.poll(1) == []
    assert len(said) == 1
    kafka.start()
    produce(kafka, name, (0, {"v": 2, "t": 2}))
    assert values(source, 1) == ["2"]
    source.close()


def test_unreachable_brokers_and_unknown_topics_are_errors(kafka: Kafka) -> None:
    with pytest.raises(SourceError, match="nknown topic"):
        opened(kafka, "nowhere", "allow.auto.create.topics=false")
    with pytest.raises(SourceError, match="write kafka://HOST:PORT/TOPIC"):
        open_live_source("kafka:topic", mapping=MAPPING)


def rows(*numbers: int) -> pa.Table:
    texts = [f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in numbers]
    return pa.table({"v": texts, "start": numbers, "end": [n + 1 for n in numbers]})


def test_rows_of_a_transaction_are_visible_once_it_is_committed(kafka: Kafka) -> None:
    name = topic(kafka)
    url = f"kafka://{kafka.address}/{name}?transactional=tx1"
    sink: Any = open_live_sink(url, LAYOUT)
    assert sink.committed() is None
    sink.write(rows(1))
    sink.prepare("checkpoint-1")
    sink.commit("checkpoint-1")
    sink.write(rows(2))
    sink.prepare("checkpoint-2")
    again: Any = open_live_sink(url, LAYOUT)  # as after a kill: the first sink is fenced
    assert again.committed() == "checkpoint-1"
    again.write(rows(3))
    again.prepare("checkpoint-3")
    again.commit("checkpoint-3")
    assert again.committed() == "checkpoint-3"
    payloads = [json.loads(payload) for _, payload in consumed(kafka, name)]
    assert payloads == [{"v": 1, "start": 1, "end": 2}, {"v": 3, "start": 3, "end": 4}]
    again.close()


def test_the_command_line_reads_and_writes_topics(kafka: Kafka, tmp_path: Any) -> None:
    """Rows are written during the run; an interrupt ends it."""
    here, there = topic(kafka), topic(kafka)
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "m.rq").write_text(MAPPING)
    produce(kafka, here, (0, {"v": 1, "t": 1}), (0, {"v": 2, "t": 9}))
    command = [sys.executable, "-m", "streamsparql", "run", str(tmp_path / "q.rq"), "--stream"]
    command += [f"s=kafka://{kafka.address}/{here}?map={tmp_path}/m.rq", "--quiet"]
    run = subprocess.Popen([*command, "-o", f"kafka://{kafka.address}/{there}"])
    try:
        wait_for(lambda: consumed(kafka, there), "a row")
        produce(kafka, here, (0, {"v": 3, "t": 20}))
        wait_for(lambda: len(consumed(kafka, there)) == 2, "another row")
    finally:
        run.terminate()
        run.wait(20)
    payloads = [json.loads(payload) for _, payload in consumed(kafka, there)]
    assert payloads == [{"v": 1, "start": 1, "end": 2}, {"v": 2, "start": 9, "end": 10}]
