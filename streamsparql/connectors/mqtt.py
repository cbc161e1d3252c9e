"""MQTT 5 and 3.1.1: a topic filter as a source, and a topic as a sink.

    mqtt://broker/sensors/+/temperature?format=text&map=m.rq&client=my-query

Messages of QoS 1 and 2 are acknowledged when they are committed. With `client=` the broker keeps
those that it has not acknowledged while the connection is down, and the process: each is received
at least once. A mapping reads the topic as ?TOPIC.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from threading import Event, Lock
from typing import Any

import pyarrow as pa

from streamsparql.connectors.inbox import InboxTransport
from streamsparql.connectors.interface import Position
from streamsparql.connectors.outage import Outage
from streamsparql.connectors.row_messages import RowMessages
from streamsparql.connectors.urls import ConnectorUrl, client
from streamsparql.errors import EngineError, SourceError
from streamsparql.overriding import override
from streamsparql.sinks.layout import Layout

_WAIT = 15.0
_MOST_UNACKNOWLEDGED = 10_000
_A_WEEK = 7 * 86_400
_VERSIONS = {"5": 5, "3.1.1": 4}


class _Connection:
    """A client of a broker, which connects again by itself."""

    def __init__(self, url: ConnectorUrl, manual_ack: bool) -> None:
        paho = client("paho.mqtt.client", "mqtt")
        if not url.hosts or not url.path:
            raise SourceError(f"{url.shown}: write mqtt://HOST:PORT/TOPIC")
        self.name = url.shown
        version = _VERSIONS[url.text("version", "5", among=_VERSIONS)]
        name = url.text("client")
        api = paho.CallbackAPIVersion.VERSION2
        clean = {} if version == 5 else {"clean_session": name is None}
        self.client = paho.Client(
            api, client_id=name or "", protocol=version, manual_ack=manual_ack, **clean
        )
        self.outage = Outage(url.shown)
        self.said: deque[object] = deque(maxlen=1)
        """Why the connection broke, if that is still to be reported."""
        self._ready = Event()
        self._refused: str | None = None
        if url.user is not None:
            self.client.username_pw_set(url.user, url.password)
        if url.scheme == "mqtts":
            self.client.tls_set(ca_certs=url.text("ca"))
        self.client.reconnect_delay_set(1, 30)
        self.client.on_connect = self._note_connect
        self.client.on_subscribe = self._note_subscribe
        self.client.on_disconnect = self._note_disconnect
        self.version = version
        self._keep = name is not None
        default = 8883 if url.scheme == "mqtts" else 1883
        self._address = url.host, url.port or default

    def start(self, subscribe: tuple[str, int] | None = None) -> None:
        """Connect, and subscribe; raise an error if that fails the first time."""
        self._subscription = subscribe
        options: dict[str, Any] = {}
        if self.version == 5:
            expiry = {"SessionExpiryInterval": _A_WEEK} if self._keep else {}
            properties = _properties("CONNECT", ReceiveMaximum=_MOST_UNACKNOWLEDGED, **expiry)
            options = {"clean_start": not self._keep, "properties": properties}
        try:
            self.client.connect(*self._address, **options)
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.name}: {error}") from None
        self.client.loop_start()
        if not self._ready.wait(_WAIT) or self._refused is not None:
            self.close()
            raise SourceError(f"{self.name}: {self._refused or 'the broker does not answer'}")

    def _note_connect(self, client: Any, data: Any, flags: Any, reason: Any, more: Any) -> None:
        if reason.is_failure:
            self._refused = str(reason)
        elif self._subscription is not None:
            client.subscribe(*self._subscription)
            return
        self._ready.set()

    def _note_subscribe(self, client: Any, data: Any, mid: int, reasons: Any, more: Any) -> None:
        if reasons[0].is_failure:
            self._refused = str(reasons[0])
        self._ready.set()

    def _note_disconnect(self, client: Any, data: Any, flags: Any, reason: Any, more: Any) -> None:
        if reason.is_failure:
            self.said.append(reason)

    def report(self) -> None:
        """Report an outage, in the thread of the caller."""
        if self.said:
            self.outage.report(self.said.pop())
        elif self.client.is_connected():
            self.outage.repaired()

    def close(self) -> None:
        """Disconnect."""
        self.client.disconnect()
        self.client.loop_stop()


def _properties(packet: str, **values: Any) -> Any:
    """Return properties of a packet of MQTT 5."""
    number = getattr(client("paho.mqtt.packettypes", "mqtt").PacketTypes, packet)
    properties = client("paho.mqtt.properties", "mqtt").Properties(number)
    for name, value in values.items():
        setattr(properties, name, value)
    return properties


def transport(url: ConnectorUrl, decoder: Any) -> MqttTopics:
    """Return the topics of a URL as a source."""
    return MqttTopics(url)


class MqttTopics(InboxTransport):
    """A transport of the messages that a subscription receives."""

    def __init__(self, url: ConnectorUrl) -> None:
        super().__init__(url.path)
        self._connection = _Connection(url, manual_ack=True)
        self._quality = url.number("qos", 1)
        if self._quality > 2:
            raise SourceError(f"{url.shown}: qos={self._quality}: expected 0, 1 or 2")
        self._lock = Lock()
        self._open: dict[int, tuple[int, int]] = {}
        """The number and the quality of the messages that are not acknowledged, by their ids."""
        self._done: set[int] = set()
        """The ids of the messages that were acknowledged, until they are used again."""
        self._connection.client.on_message = self._take
        self._connection.start((url.path, self._quality))

    def _take(self, client: Any, data: Any, message: Any) -> None:
        """Receive a message, unless it is one that the broker repeats after an outage."""
        identifier = message.mid
        if message.qos and message.dup:
            with self._lock:
                if identifier in self._open:
                    return
                if identifier in self._done:
                    client.ack(identifier, message.qos)
                    return
        number = self.inbox.put(message.payload, topic=message.topic)
        if message.qos:
            with self._lock:
                self._done.discard(identifier)
                self._open[identifier] = number, message.qos

    @override
    def receive(self, timeout: float, paused: Any) -> list[Any]:
        self._connection.report()
        return super().receive(timeout, paused)

    @override
    def commit(self, positions: Mapping[str, Position]) -> None:
        until = positions[self.inbox.partition]
        with self._lock:
            done = [(n, i, quality) for i, (n, quality) in self._open.items() if n <= until]
            for _, identifier, _ in done:
                del self._open[identifier]
                self._done.add(identifier)
        for _, identifier, quality in sorted(done):
            self._connection.client.ack(identifier, quality)

    @override
    def close(self) -> None:
        super().close()
        self._connection.close()


def sink(url: ConnectorUrl, layout: Layout) -> MqttSink:
    """Return the topic of a URL as a sink."""
    return MqttSink(url, RowMessages(layout, url.text("format", "json")))


class MqttSink:
    """A sink of messages to a topic, of QoS 1; in MQTT 5 they have the property `key`."""

    def __init__(self, url: ConnectorUrl, messages: RowMessages) -> None:
        if "#" in url.path or "+" in url.path:
            raise EngineError(f"{url.shown}: rows are written to one topic, without + and #")
        self._connection = _Connection(url, manual_ack=False)
        self._topic, self._messages = url.path, messages
        self._retain, self._quality = url.flag("retain"), url.number("qos", 1)
        self._waiting: deque[Any] = deque()
        self._connection.start()

    def write(self, rows: pa.Table) -> None:
        """Publish a message for each row; wait if too many are not acknowledged."""
        for key, payload in self._messages.of(rows):
            more = {}
            if self._connection.version == 5:
                more = {"properties": _properties("PUBLISH", UserProperty=("key", key))}
            publish = self._connection.client.publish
            self._waiting.append(publish(self._topic, payload, self._quality, self._retain, **more))
            if len(self._waiting) > _MOST_UNACKNOWLEDGED:
                self._wait_for(self._waiting.popleft())

    def _wait_for(self, published: Any) -> None:
        while not published.is_published():
            self._connection.report()
            published.wait_for_publish(0.5)

    def flush(self) -> None:
        """Wait until the broker has all messages."""
        while self._waiting:
            self._wait_for(self._waiting.popleft())

    def position(self) -> Position:
        """Return None: messages cannot be removed."""
        return None

    def truncate(self, position: Position) -> None:
        """Remove nothing."""

    def close(self) -> None:
        """Publish what is left, and disconnect."""
        self.flush()
        self._connection.close()
