"""Topics of a Kafka broker: what tests produce to them, and consume."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from support.brokers import Kafka

kafka_client: Any = pytest.importorskip("confluent_kafka")
kafka_admin: Any = pytest.importorskip("confluent_kafka.admin")
_numbers = count()


def topic(broker: Kafka, partitions: int = 1) -> str:
    """Create a topic; return its name."""
    name = f"t{next(_numbers)}"
    admin = kafka_admin.AdminClient({"bootstrap.servers": broker.address})
    for created in admin.create_topics([kafka_admin.NewTopic(name, partitions, 1)]).values():
        created.result(20)
    return name


def produce(broker: Kafka, name: str, *messages: tuple[int, bytes | dict[str, Any]]) -> None:
    """Produce messages to partitions."""
    producer = kafka_client.Producer({"bootstrap.servers": broker.address})
    for partition, message in messages:
        payload = message if isinstance(message, bytes) else json.dumps(message).encode()
        producer.produce(name, payload, partition=partition)
    assert producer.flush(20) == 0


def consumed(broker: Kafka, name: str) -> list[tuple[bytes, bytes]]:
    """Return the keys and values of the messages that were committed to a topic."""
    config = {"bootstrap.servers": broker.address, "group.id": "check"}
    config |= {"isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = kafka_client.Consumer(config)
    consumer.assign([kafka_client.TopicPartition(name, 0, 0)])
    messages = []
    while (message := consumer.poll(10)) is not None and message.error() is None:
        messages.append((message.key(), message.value()))
    consumer.close()
    return messages
