"""MQTT: a real broker, both versions, acknowledgements, duplicates, and a broker that stops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from support.brokers import Mosquitto, wait_for

from streamsparql.connectors.message_source import MessageSource
from streamsparql.connectors.sinks import open_live_sink
from streamsparql.connectors.sources import open_source
from streamsparql.errors import DataWarning, SourceError
from streamsparql.sinks import Layout

paho = pytest.importorskip("paho.mqtt.client")
MAPPING = 'CONSTRUCT { ?s <v> ?v } { BIND(IRI(CONCAT("urn:", ?TOPIC)) AS ?s) }'
LAYOUT = Layout("select", ("v",), ("start", "end"))


@pytest.fixture
def publisher(mosquitto: Mosquitto) -> Iterator[Any]:
    """Yield a client that is connected."""
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", mosquitto.port)
    client.loop_start()
    yield client
    client.disconnect()
    client.loop_stop()


def publish(publisher: Any, topic: str, *payloads: str) -> None:
    for payload in payloads:
        publisher.publish(topic, payload, qos=1).wait_for_publish(10)


def opened(broker: Mosquitto, topic: str, options: str = "") -> MessageSource:
    url = f"mqtt://127.0.0.1:{broker.port}/{topic}?{options}"
    return open_source(url, mapping=MAPPING)


def values(source: MessageSource, least: int) -> list[str]:
    """Return the values of the next items, at least some."""
    read: list[str] = []

    def enough() -> bool:
        for _, items in source.poll(0.1):
            read.extend(text.split('"')[1] for text in items.items["object"].to_pylist())
        return len(read) >= least

    wait_for(enough, f"{least} items")
    return read


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_messages_have_their_topics(mosquitto: Mosquitto, publisher: Any, version: str) -> None:
    source = opened(mosquitto, f"{version}/+/heat", f"stamp=arrival&version={version}")
    publish(publisher, f"{version}/a/heat", '{"v": 1}')
    publish(publisher, f"{version}/b/heat", '{"v": 2}', "no message")
    rejects, subjects = [], []
    while not rejects:
        for _, items in source.poll(1):
            subjects += items.items["subject"].to_pylist()
            rejects += items.rejects
    assert subjects == [f"<urn:{version}/a/heat>", f"<urn:{version}/b/heat>"]
    assert [reject.reason for reject in rejects] == ["not valid JSON"]
    source.close()


def test_what_was_not_committed_is_received_again(mosquitto: Mosquitto, publisher: Any) -> None:
    source = opened(mosquitto, "c", "client=c&stamp=arrival")
    publish(publisher, "c", '{"v": 1}', '{"v": 2}')
    assert values(source, 2) == ["1", "2"]
    source.commit({"partitions": {"c": 1}})
    source.close()
    publish(publisher, "c", '{"v": 3}')
    again = opened(mosquitto, "c", "client=c&stamp=arrival")
    assert values(again, 2) == ["2", "3"]
    again.commit(again.position())
    again.close()


def test_a_broker_that_stops_repeats_nothing_within_a_process(
    mosquitto: Mosquitto, publisher: Any
) -> None:
    source = opened(mosquitto, "d", "client=d&stamp=arrival")
    publish(publisher, "d", '{"v": 1}', '{"v": 2}')
    assert values(source, 2) == ["1", "2"]
    source.commit({"partitions": {"d": 1}})
    mosquitto.stop()
    with pytest.warns(DataWarning, match="connecting again"):
        assert source.poll(1) == []
    mosquitto.start()
    wait_for(publisher.is_connected, "the publisher is connected again")
    publish(publisher, "d", '{"v": 3}')
    assert values(source, 1) == ["3"]
    source.commit(source.position())
    source.close()


def test_rows_are_published_with_keys(mosquitto: Mosquitto) -> None:
    received: list[Any] = []
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    client.on_message = lambda client, data, message: received.append(message)
    client.connect("127.0.0.1", mosquitto.port)
    client.subscribe("rows", qos=1)
    client.loop_start()
    sink = open_live_sink(f"mqtt://127.0.0.1:{mosquitto.port}/rows", LAYOUT)
    wait_for(client.is_connected, "the subscriber is connected")
    for start in (3, 3, 5):
        sink.write(pa.table({"v": ['"a"'], "start": [start], "end": [9]}))
    sink.flush()
    wait_for(lambda: len(received) == 3, "three messages")
    assert [json.loads(m.payload)["start"] for m in received] == [3, 3, 5]
    one, same, other = (dict(m.properties.UserProperty)["key"] for m in received)
    assert one == same != other
    sink.close()
    client.disconnect()
    client.loop_stop()


def test_a_broker_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SourceError, match="refused"):
        open_source("mqtt://127.0.0.1:1/t", mapping=MAPPING)
