"""Brokers that the tests of connectors share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.brokers import Kafka, Mosquitto, Postgres


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """Yield a Kafka broker."""
    pytest.importorskip("confluent_kafka")
    with Kafka() as broker:
        yield broker


@pytest.fixture(scope="session")
def mosquitto() -> Iterator[Mosquitto]:
    """Yield a broker of MQTT."""
    pytest.importorskip("paho.mqtt")
    with Mosquitto() as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Yield a PostgreSQL server."""
    pytest.importorskip("psycopg")
    with Postgres() as server:
        yield server
