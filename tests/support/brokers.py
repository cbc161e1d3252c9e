"""Real brokers and servers for tests, from package registries, without privileges.

They are downloaded once, with the package managers as these are configured, to the folder that
STREAMSPARQL_TEST_BROKERS names, else to one in the user's cache. A test that needs one that cannot
be had is skipped, with the reason.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import pytest

_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
BROKERS = Path(
    os.environ.get("STREAMSPARQL_TEST_BROKERS", _CACHE / "streamsparql" / "test-brokers")
)
_KAFKA = "4.3.1"
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>broker</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
    <version>{_KAFKA}</version>
  </dependency></dependencies>
</project>
"""


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 30) -> Any:
    """Return the first result of a condition that is true; fail after some seconds."""
    until = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < until, f"{what}: not within {seconds} s"
        time.sleep(0.02)
    return result


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time fill a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetched(folder: Path, command: Sequence[str], what: str, seconds: float) -> None:
    """Run a command that fetches files into a folder, once; skip the test if it fails."""
    if (folder / "done").exists():
        return
    if shutil.which(command[0]) is None:
        pytest.skip(f"{what} cannot be fetched: {command[0]} is not installed")
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what} cannot be fetched within {seconds:.0f} s")
    if done.returncode:
        pytest.skip(f"{what} cannot be fetched: {(done.stdout + done.stderr)[-300:]}")
    (folder / "done").touch()


class Server:
    """A process that listens on a port, which can be stopped and started again."""

    name = "server"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="streamsparql-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> tuple[Sequence[str], dict[str, str]]:
        """Return the command that starts it, and more of its environment."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command, environment = self.command()
        log = open(self.folder / "log.txt", "ab")  # noqa: SIM115 -- the process owns it
        with log:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )
        wait_for(self._listens, f"{self.name} listens")

    def _listens(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            pytest.fail(f"{self.name} ended: {(self.folder / 'log.txt').read_text()[-2000:]}")
        try:
            socket.create_connection(("127.0.0.1", self.port), 0.5).close()
        except OSError:
            return False
        return True

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop it, and wait until it has ended."""
        if self._process is not None:
            self._process.send_signal(number)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Kafka(Server):
    """Apache Kafka in KRaft mode: one process that is broker and controller."""

    name = "Kafka"

    def __init__(self) -> None:
        if shutil.which("java") is None:
            pytest.skip("Kafka needs Java 17")
        self._jars = BROKERS / f"kafka-{_KAFKA}"
        with _locked(self._jars):
            (self._jars / "pom.xml").write_text(_POM)
            fetch = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
            _fetched(self._jars, [*fetch, "-DincludeScope=runtime"], "Kafka", 300)
        super().__init__()
        self._control = free_port()
        self._prepare()

    @property
    def address(self) -> str:
        """The host and port."""
        return f"127.0.0.1:{self.port}"

    def _java(self, main: str, *arguments: str) -> list[str]:
        jars = ":".join(sorted(map(str, (self._jars / "jars").glob("*.jar"))))
        options = ["-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        return ["java", *options, "-cp", jars, main, *arguments]

    def _prepare(self) -> None:
        config = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self._control}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self._control}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.folder / "logs",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "share.coordinator.state.topic.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        file = self.folder / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
        cluster = urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
        tool = ["format", "-t", cluster, "-c", str(file)]
        subprocess.run(
            self._java("kafka.tools.StorageTool", *tool), check=True, capture_output=True
        )

    def command(self) -> tuple[Sequence[str], dict[str, str]]:
        """Return the command of the broker."""
        return self._java("kafka.Kafka", str(self.folder / "server.properties")), {}


class Mosquitto(Server):
    """Eclipse Mosquitto, a broker of MQTT, from Debian's packages."""

    name = "mosquitto"

    def __init__(self) -> None:
        root = BROKERS / "mosquitto"
        self._program = shutil.which("mosquitto") or str(root / "usr/sbin/mosquitto")
        if not shutil.which("mosquitto"):
            with _locked(root):
                packages = "mosquitto libwebsockets17 libev4 libcjson1 libdlt2 libwrap0"
                script = f"apt-get download {packages} && for f in *.deb; do dpkg -x $f .; done"
                _fetched(root, ["sh", "-c", f"command -v apt-get && {script}"], self.name, 120)
        self._libraries = ":".join(map(str, root.glob("usr/lib/*-linux-gnu")))
        super().__init__()
        self.configuration = ""

    def command(self) -> tuple[Sequence[str], dict[str, str]]:
        """Return the command of the broker, which remembers sessions while it is stopped."""
        folder = f"{self.folder}/"
        lines = [f"listener {self.port} 127.0.0.1", "allow_anonymous true", "persistence true"]
        lines += [f"persistence_location {folder}", "user root", "max_queued_messages 0"]
        (self.folder / "m.conf").write_text("\n".join([*lines, self.configuration, ""]))
        libraries = {"LD_LIBRARY_PATH": self._libraries} if self._libraries else {}
        return [self._program, "-c", str(self.folder / "m.conf")], libraries


class Postgres(Server):
    """PostgreSQL, as it is installed, with a new folder of data."""

    name = "PostgreSQL"

    def __init__(self) -> None:
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        if not programs:
            pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
        super().__init__()
        self._bin = programs[-1].parent
        self._user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if os.geteuid():
            self._user = []
        elif shutil.which("setpriv") is None:
            pytest.skip("PostgreSQL does not run as root, and setpriv is not installed")
        else:
            os.chown(self.folder, 65534, 65534)
        setup = [str(self._bin / "initdb"), "-D", "data", "-A", "trust", "-U", "test", "-N"]
        subprocess.run([*self._user, *setup], cwd=self.folder, check=True, capture_output=True)

    @property
    def url(self) -> str:
        """The URL of a database."""
        return f"postgresql://test@127.0.0.1:{self.port}/postgres"

    def command(self) -> tuple[Sequence[str], dict[str, str]]:
        """Return the command of the server."""
        options = ["-D", "data", "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.folder)]
        return [*self._user, str(self._bin / "postgres"), *options, "-F"], {}
