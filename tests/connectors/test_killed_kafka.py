"""Runs from Kafka to Kafka that are killed at any moment, and started again."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from support.brokers import Kafka
from support.kafka_topics import consumed, produce, topic

pytest.importorskip("confluent_kafka")

QUERY = "SELECT ?x ?v FROM STREAM <s> WINDOW RANGE 1 MS FIXED { ?x <v> ?v }"
MAPPING = "CONSTRUCT { ?x <v> ?v } { BIND(IRI(?name) AS ?x) }"
ITEMS = 4_000
PROGRAM = """
import sys
from streamsparql.cli import main
from streamsparql.connectors import kafka
kafka._MANY = 50
sys.exit(main(sys.argv[1:]))
"""


def command(broker: Kafka, source: str, target: str, folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "q.rq").write_text(QUERY)
    (folder / "m.rq").write_text(MAPPING)
    return [
        *(sys.executable, "-c", PROGRAM, "run", str(folder / "q.rq")),
        *("--stream", f"kafka://{broker.address}/{source}?until=end&map={folder}/m.rq"),
        *("-o", f"kafka://{broker.address}/{target}?transactional={target}"),
        *("--checkpoint", str(folder / "state"), "--checkpoint-every", "1ms", "--quiet"),
    ]


def killed_until_done(words: list[str], random: Random, longest: float, most: int) -> int:
    """Kill the run at random moments until it ends by itself; return the number of kills."""
    kills = 0
    while True:
        with subprocess.Popen(words) as process:
            try:
                status = process.wait(random.uniform(0.3, 1) * longest if kills < most else 120)
            except subprocess.TimeoutExpired:
                process.kill()
                kills += 1
            else:
                assert status == 0
                return kills


def check(broker: Kafka, folder: Path, kills: int) -> None:
    source, undisturbed, random = topic(broker), topic(broker), Random(5)
    records = ({"name": f"urn:{t % 7}", "v": t, "t": t // 2} for t in range(ITEMS))
    produce(broker, source, *((0, record) for record in records))
    began = time.monotonic()
    subprocess.run(command(broker, source, undisturbed, folder / "undisturbed"), check=True)
    longest = 0.8 * (time.monotonic() - began)
    expected = consumed(broker, undisturbed)
    assert len(expected) == ITEMS
    count = 0
    while count < kills:
        target = topic(broker)
        words = command(broker, source, target, folder / target)
        more = killed_until_done(words, random, longest, kills - count)
        assert consumed(broker, target) == expected, f"after {more} kills"
        count += more
        longest *= 1.0 if more else 0.8


def test_each_row_is_in_the_topic_once(kafka: Kafka, tmp_path: Path) -> None:
    check(kafka, tmp_path, 5)


@pytest.mark.long
def test_each_row_is_in_the_topic_once_after_a_hundred_kills(kafka: Kafka, tmp_path: Path) -> None:
    check(kafka, tmp_path, 100)
