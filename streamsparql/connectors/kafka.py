"""Kafka: topics as sources, whose offsets are kept by the checkpoint, and as transactional sinks.

    kafka://host:9092,host2/topic?format=json&map=m.rq&group=g&start=latest
    kafka://host/results?format=json&transactional=my-query

Options with a dot, such as `security.protocol=SASL_SSL`, are those of librdkafka; `config=FILE` has
such options, one per line, so that a password need not be part of the command.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from streamsparql.connectors.interface import Position
from streamsparql.connectors.message import Message
from streamsparql.connectors.outage import Outage
from streamsparql.connectors.row_messages import RowMessages
from streamsparql.connectors.urls import ConnectorUrl, client
from streamsparql.errors import EngineError, SourceError
from streamsparql.sinks.layout import Layout
from streamsparql.sources.stamps import IN_MILLISECONDS

_WAIT = 15.0
"""The seconds that a broker has to answer."""
_MANY = 10_000
_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())  # the client would print to standard error


def _configuration(url: ConnectorUrl) -> dict[str, Any]:
    """Return the options of librdkafka in a URL, and in its file."""
    config: dict[str, Any] = {"bootstrap.servers": url.hosts, "client.id": "streamsparql"}
    if (file := url.text("config")) is not None:
        try:
            with open(file, encoding="utf-8") as lines:
                pairs = [line.strip().partition("=") for line in lines]
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"{url.shown}: config={file}: {error}") from None
        config |= {k.strip(): v.strip() for k, _, v in pairs if k and not k.startswith("#")}
    if url.user is not None:
        config |= {"sasl.username": url.user, "sasl.password": url.password or ""}
    config |= {name: url.text(name) for name in url.options if "." in name}
    return config


def _topic(url: ConnectorUrl) -> str:
    if not url.hosts or not url.path or "/" in url.path:
        raise SourceError(f"{url.shown}: write kafka://HOST:PORT/TOPIC")
    return url.path


def transport(url: ConnectorUrl, decoder: Any) -> KafkaTopic:
    """Return the topic of a URL as a source."""
    kafka = client("confluent_kafka", "kafka")
    topic, config = _topic(url), _configuration(url)
    start, group = url.text("start"), url.text("group")
    until_end = url.text("until", among=("end",)) == "end"
    return KafkaTopic(kafka, url.shown, topic, config, group, start, until_end)


class KafkaTopic:
    """A transport of the messages of a topic. It assigns all partitions to itself."""

    unit = "offset"
    replayable = True

    def __init__(
        self,
        kafka: Any,
        shown: str,
        topic: str,
        config: Mapping[str, Any],
        group: str | None,
        start: str | None,
        until_end: bool,
    ) -> None:
        self._kafka, self._shown, self._topic = kafka, shown, topic
        self._group, self._until_end = group, until_end
        self._outage = Outage(shown)
        own = {
            "group.id": group or "streamsparql",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "error_cb": self._note,
        }
        try:
            self._consumer = kafka.Consumer({**config, **own}, logger=_LOG)
            numbers = self._partitions()
            self._start = self._first(numbers, start)
        except kafka.KafkaException as error:
            raise SourceError(f"{shown}: {error.args[0].str()}") from None
        self._numbers = {self._name(number): number for number in numbers}
        self._at_end: set[str] = set()
        self._ended: set[str] = set()
        self._paused: set[str] = set()
        self._assigned = False

    def _name(self, number: int) -> str:
        return f"{self._topic}[{number}]"

    def _note(self, error: Any) -> None:
        """Note what the client reports while it connects again by itself."""
        self._outage.report(error.str())

    def _partitions(self) -> list[int]:
        described = self._consumer.list_topics(self._topic, timeout=_WAIT).topics[self._topic]
        if described.error is not None:
            raise SourceError(f"{self._shown}: {described.error.str()}")
        return sorted(described.partitions)

    def _first(self, numbers: list[int], start: str | None) -> dict[int, int]:
        """Return the offsets at which new readers start."""
        partition = self._kafka.TopicPartition
        bounds = {
            n: self._consumer.get_watermark_offsets(partition(self._topic, n), timeout=_WAIT)
            for n in numbers
        }
        offsets = {n: low for n, (low, _) in bounds.items()}
        if start is None and self._group is not None:
            places = [partition(self._topic, n) for n in numbers]
            for place in self._consumer.committed(places, timeout=_WAIT):
                if place.offset >= 0:
                    offsets[place.partition] = place.offset
        elif start == "latest":
            offsets = {n: high for n, (_, high) in bounds.items()}
        elif start not in (None, "earliest"):
            try:
                instant = IN_MILLISECONDS.stamp_of(start)
            except ValueError as error:
                raise SourceError(
                    f"{self._shown}: start={start}: expected earliest, latest or a time: {error}"
                ) from None
            places = [partition(self._topic, n, instant) for n in numbers]
            for place in self._consumer.offsets_for_times(places, timeout=_WAIT):
                found = place.offset if place.offset >= 0 else bounds[place.partition][1]
                offsets[place.partition] = found
        return offsets

    @property
    def ended(self) -> bool:
        """Whether the end was reached, if nothing is to be read after it."""
        return self._until_end and len(self._ended) == len(self._numbers)

    def receive(self, timeout: float, paused: Collection[str]) -> list[Message]:
        """Return the messages that the client has, after at most `timeout` seconds."""
        self._assign()
        self._pause(set(paused))
        first = self._consumer.poll(timeout)
        if first is None:
            return []
        messages = []
        for received in (first, *self._consumer.consume(_MANY, 0)):
            name, error = self._name(received.partition()), received.error()
            if error is not None:
                self._handle(name, error)
                continue
            self._at_end.discard(name)
            offset, (kind, stamp) = received.offset(), received.timestamp()
            message = Message(
                *(received.value() or b"", name, offset, offset + 1),
                stamp if kind else None,
                self._topic,
                received.key(),
            )
            messages.append(message)
        if messages:
            self._outage.repaired()
        return messages

    def _handle(self, name: str, error: Any) -> None:
        codes = self._kafka.KafkaError
        if error.code() == codes._PARTITION_EOF:
            self._outage.repaired()
            self._at_end.add(name)
            self._ended.add(name)
        elif error.code() == codes._AUTO_OFFSET_RESET:
            raise SourceError(
                f"{self._shown}: the offset of the position is not in {name} any more, so that"
                " items were lost; start without the position to read what there is"
            )
        elif error.retriable() or error.code() in (codes._TRANSPORT, codes._ALL_BROKERS_DOWN):
            self._outage.report(error.str())
        else:
            raise SourceError(f"{self._shown}: {error.str()}")

    def _assign(self) -> None:
        if not self._assigned:
            partition = self._kafka.TopicPartition
            places = [partition(self._topic, n, self._start[n]) for n in self._numbers.values()]
            self._consumer.assign(places)
            self._assigned = True

    def _pause(self, paused: set[str]) -> None:
        partition = self._kafka.TopicPartition
        for call, names in (
            (self._consumer.pause, paused - self._paused),
            (self._consumer.resume, self._paused - paused),
        ):
            if names:
                call([partition(self._topic, self._numbers[name]) for name in names])
        self._paused = paused

    def positions(self) -> Mapping[str, Position]:
        """Return the offsets at which the partitions start."""
        return {name: self._start[number] for name, number in self._numbers.items()}

    def at_end(self, partition: str) -> bool:
        """Return whether the end of a partition was reached."""
        return partition in self._at_end

    def seek(self, positions: Mapping[str, Position]) -> None:
        """Start at these offsets."""
        for name, offset in positions.items():
            if name not in self._numbers:
                raise SourceError(f"{self._shown}: the position is that of another topic: {name}")
            self._start[self._numbers[name]] = offset

    def commit(self, positions: Mapping[str, Position]) -> None:
        """Commit the offsets to the group, which shows how far it is behind."""
        if self._group is None:
            return
        partition = self._kafka.TopicPartition
        offsets = [partition(self._topic, self._numbers[n], at) for n, at in positions.items()]
        self._consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        """Leave the brokers."""
        self._consumer.close()


# -- sinks -----------------------------------------------------------------------------------------


def sink(url: ConnectorUrl, layout: Layout) -> KafkaSink:
    """Return the topic of a URL as a sink; transactional if the URL names its transactions."""
    kafka = client("confluent_kafka", "kafka")
    topic, config = _topic(url), _configuration(url)
    messages = RowMessages(layout, url.text("format", "json"))
    name = url.text("transactional")
    if name is None:
        return KafkaSink(kafka, url.shown, topic, config, messages)
    return TransactionalKafkaSink(kafka, url.shown, topic, config, messages, name)


class KafkaSink:
    """A sink of messages to a topic; their keys are those of the rows."""

    def __init__(
        self,
        kafka: Any,
        shown: str,
        topic: str,
        config: Mapping[str, Any],
        messages: RowMessages,
        transactional: str | None = None,
    ) -> None:
        self._kafka, self._shown, self._topic = kafka, shown, topic
        self._messages = messages
        self._outage = Outage(shown)
        self._failed: str | None = None
        own: dict[str, Any] = {"enable.idempotence": True, "error_cb": self._note}
        if transactional is not None:
            own["transactional.id"] = transactional
        self._producer = self._checked(
            lambda: kafka.Producer({"linger.ms": 5, **config, **own}, logger=_LOG)
        )

    def _note(self, error: Any) -> None:
        self._outage.report(error.str())

    def _checked(self, call: Any, *arguments: Any) -> Any:
        """Call a function of the client; raise its error as one of this package."""
        try:
            return call(*arguments)
        except self._kafka.KafkaException as error:
            raise EngineError(f"{self._shown}: {error.args[0].str()}") from None

    def write(self, rows: pa.Table) -> None:
        """Produce a message for each row; wait while the queue of the client is full."""
        for key, payload in self._messages.of(rows):
            while True:
                try:
                    self._producer.produce(
                        self._topic, payload, key, on_delivery=self._note_delivery
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)

    def _note_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed = error.str()
        else:
            self._outage.repaired()

    def flush(self) -> None:
        """Wait until the brokers have all messages."""
        while self._producer.flush(1.0):
            pass
        if self._failed is not None:
            raise EngineError(f"{self._shown}: a message was not delivered: {self._failed}")

    def position(self) -> Position:
        """Return None: messages cannot be removed."""
        return None

    def truncate(self, position: Position) -> None:
        """Remove nothing."""

    def close(self) -> None:
        """Wait until the brokers have all messages."""
        self.flush()


class TransactionalKafkaSink(KafkaSink):
    """A sink whose messages become visible with the checkpoint that they belong to.

    The checkpoint's name is the metadata of an offset of the topic, which is committed in the same
    transaction for a group with the name of the transactions.
    """

    def __init__(
        self,
        kafka: Any,
        shown: str,
        topic: str,
        config: Mapping[str, Any],
        messages: RowMessages,
        transactional: str,
    ) -> None:
        super().__init__(kafka, shown, topic, config, messages, transactional)
        group = {"group.id": transactional, "enable.auto.commit": False}
        self._consumer = self._checked(lambda: kafka.Consumer({**config, **group}, logger=_LOG))
        self._place = kafka.TopicPartition(topic, 0)
        self._number = 0
        self._open = False
        self._checked(self._producer.init_transactions, _WAIT)  # ends those of earlier processes

    def write(self, rows: pa.Table) -> None:
        """Produce messages in the transaction."""
        self._begin()
        super().write(rows)

    def _begin(self) -> None:
        if not self._open:
            self._checked(self._producer.begin_transaction)
            self._open = True

    def prepare(self, checkpoint: str) -> None:
        """Wait until the brokers have all messages of the transaction."""
        self._begin()
        self.flush()

    def commit(self, checkpoint: str) -> None:
        """Commit the transaction with the name of the checkpoint."""
        self._begin()
        self._number += 1
        place = self._kafka.TopicPartition(self._topic, 0, self._number, checkpoint)
        group = self._consumer.consumer_group_metadata()
        self._checked(self._producer.send_offsets_to_transaction, [place], group, _WAIT)
        self._checked(self._producer.commit_transaction, _WAIT)
        self._open = False

    def committed(self) -> str | None:
        """Return the name of the checkpoint that was committed last."""
        (place,) = self._checked(self._consumer.committed, [self._place], _WAIT)
        self._number = max(place.offset, 0)
        return place.metadata or None

    def close(self) -> None:
        """Abort what was not committed."""
        if self._open:
            self._checked(self._producer.abort_transaction, _WAIT)
        self._consumer.close()
