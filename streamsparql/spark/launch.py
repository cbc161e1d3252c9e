"""The quiet start of the Java process in which Spark runs.

A starting JVM prints messages on standard error that no user can act upon: the logging profile,
incubating modules, the name of the host. For a quiet start its standard error is a pipe. Output
before the JVM is up is buffered, and becomes part of the error if it does not start; output
afterwards, such as errors and the progress bar, is forwarded to standard error.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsparql.errors import EngineError

if TYPE_CHECKING:
    from pyspark import SparkConf

LOGGING = """\
# Spark's log in a quiet session: errors only. An error that fails a task is raised where the result
# is evaluated, so it is not logged as well.
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} Spark %p %c{1}: %m%n%ex
logger.task.name = org.apache.spark.executor.Executor
logger.task.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.write.name = org.apache.spark.sql.execution.datasources
logger.write.level = off
logger.python.name = org.apache.spark.api.python
logger.python.level = off
"""
"""The configuration of log4j in a quiet session."""

_STDERR = 2


@contextmanager
def changed_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Change environment variables, or remove them (None), for the length of a `with` block.

    >>> with changed_environment({"STREAMSPARQL_EXAMPLE": "1"}):
    ...     os.environ["STREAMSPARQL_EXAMPLE"]
    '1'
    >>> "STREAMSPARQL_EXAMPLE" in os.environ
    False
    """
    before = {name: os.environ.get(name) for name in changes}
    _change(changes)
    try:
        yield
    finally:
        _change(before)


def _change(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def logging_file(folder: Path) -> Path:
    """Write the quiet configuration of log4j into a folder, if it is missing; return the file."""
    file = folder / "quiet-log4j2.properties"
    if not file.is_file() or file.read_text("utf-8") != LOGGING:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_text(LOGGING, "utf-8")
        os.replace(temporary, file)
    return file


_THROWN = re.compile(r'^Exception in thread "[^"]*" (?:[\w.$]+: )?(.+)$', re.M)


def _reason(output: str) -> str:
    """Return the reason why a Java process ended, from its output.

    >>> _reason('WARNING: x\\nException in thread "main" o.a.SparkException: No.\\n\\tat a.B\\n')
    'No.'
    """
    thrown = _THROWN.search(output)
    return output.strip() if thrown is None else thrown[1]


def launch_jvm(conf: SparkConf, quiet: bool) -> Any:
    """Start a JVM and return the gateway to it; raise an EngineError if it does not start.

    The environment of this process, in particular JAVA_HOME, selects the Java.
    """
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    relay = _Relay() if quiet else None
    try:
        with _ended_if_interrupted():
            gateway = launch_gateway(conf, relay and {"stderr": relay.end})  # type: ignore[no-untyped-call]
    except (PySparkException, OSError) as error:
        output = "" if relay is None else relay.buffered()
        raise EngineError(
            f"Spark's Java process did not start: {_reason(output) or error}"
        ) from error
    if relay is not None:
        relay.open()
    return gateway


@contextmanager
def _ended_if_interrupted() -> Iterator[None]:
    """Kill the process that `launch_gateway` starts, if an interrupt arrives before it returns.

    The process would run forever: no other code has a reference to it.
    """
    from pyspark import java_gateway

    started: list[subprocess.Popen[bytes]] = []

    def popen(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = subprocess.Popen(*arguments, **options)
        started.append(process)
        return process

    before, java_gateway.Popen = java_gateway.Popen, popen  # type: ignore[attr-defined, assignment]
    try:
        yield
    except KeyboardInterrupt:
        for process in started:
            process.kill()
        raise
    finally:
        java_gateway.Popen = before  # type: ignore[attr-defined]


class _Relay:
    """A pipe to standard error that buffers everything until it is opened."""

    def __init__(self) -> None:
        self._from, self.end = os.pipe()
        self._lock = threading.Lock()
        self._kept: list[bytes] | None = []
        self._thread = threading.Thread(target=self._run, name="spark-stderr", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while data := os.read(self._from, 1 << 16):
            with self._lock:
                if self._kept is not None:
                    self._kept.append(data)
                    continue
            _write_stderr(data)
        os.close(self._from)

    def buffered(self) -> str:
        """Return the buffered output, once the process at the other end has ended."""
        self._close()
        self._thread.join(timeout=5)
        return b"".join(self._kept or ()).decode("utf-8", "replace").strip()

    def open(self) -> None:
        """Discard the buffered output, and forward what follows."""
        self._close()
        with self._lock:
            self._kept = None

    def _close(self) -> None:
        """Close this process's copy of the end that the other process writes to."""
        if self.end >= 0:
            os.close(self.end)
            self.end = -1


def _write_stderr(data: bytes) -> None:
    with suppress(OSError):  # standard error may be closed
        os.write(_STDERR, data)
