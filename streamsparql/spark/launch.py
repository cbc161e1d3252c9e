"""Starting the Java process that Spark runs in, quietly.

A JVM that starts says much on standard error that no user can act upon: which logging profile is
used, which modules are incubating, what the host is called. When it is to be quiet, its standard
error is a pipe: what comes before it is up is held back (and is part of the error if it does not
come up), what comes afterwards, errors and the progress bar, goes to standard error as it is.
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
# Spark's log, for a session that is to be quiet: errors only. What fails a task is raised as an
# error where the result is asked for, so it is not logged as well.
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
"""A configuration of log4j."""

_STDERR = 2


@contextmanager
def environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """The environment with some variables changed, or taken away (None), for a while.

    >>> with environment({"STREAMSPARQL_EXAMPLE": "1"}):
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
    """The file that tells log4j to be quiet, in this folder."""
    file = folder / "quiet-log4j2.properties"
    if not file.is_file() or file.read_text("utf-8") != LOGGING:
        folder.mkdir(parents=True, exist_ok=True)
        made = file.with_suffix(f".{os.getpid()}")
        made.write_text(LOGGING, "utf-8")
        os.replace(made, file)
    return file


_THROWN = re.compile(r'^Exception in thread "[^"]*" (?:[\w.$]+: )?(.+)$', re.M)


def _reason(said: str) -> str:
    """What of all that a Java process said before it ended is the reason.

    >>> _reason('WARNING: x\\nException in thread "main" o.a.SparkException: No.\\n\\tat a.B\\n')
    'No.'
    """
    thrown = _THROWN.search(said)
    return said.strip() if thrown is None else thrown[1]


def launch(conf: SparkConf, quiet: bool) -> Any:
    """Starts a JVM and gives the gateway to it; EngineError with what it said if it does not come.

    The environment is that of this process: JAVA_HOME says which Java.
    """
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    relay = _Relay() if quiet else None
    try:
        with _ended_if_interrupted():
            gateway = launch_gateway(conf, relay and {"stderr": relay.end})  # type: ignore[no-untyped-call]
    except (PySparkException, OSError) as error:
        said = "" if relay is None else relay.held()
        raise EngineError(
            f"Spark's Java process did not start: {_reason(said) or error}"
        ) from error
    if relay is not None:
        relay.open()
    return gateway


@contextmanager
def _ended_if_interrupted() -> Iterator[None]:
    """Ends the process that is about to start where an interrupt comes between.

    It would go on for ever: nobody but `launch_gateway` knows it, which has gone by then.
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
    """A pipe to standard error that holds everything back until it is opened."""

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
            _say(data)
        os.close(self._from)

    def held(self) -> str:
        """What was held back so far, once the process at the other end has ended."""
        self._close()
        self._thread.join(timeout=5)
        return b"".join(self._kept or ()).decode("utf-8", "replace").strip()

    def open(self) -> None:
        """Forgets what was held back, and lets through what comes."""
        self._close()
        with self._lock:
            self._kept = None

    def _close(self) -> None:
        """Closes the end that the other process has, too."""
        if self.end >= 0:
            os.close(self.end)
            self.end = -1


def _say(data: bytes) -> None:
    with suppress(OSError):  # standard error may be closed
        os.write(_STDERR, data)
