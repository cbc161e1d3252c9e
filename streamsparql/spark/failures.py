"""Failures on Spark as errors of this package, with readable messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import dropwhile

from streamsparql import errors
from streamsparql.errors import EngineError, LimitExceeded, StreamSparqlError

_HINT = re.compile(r"; raise the limit with Limits\((\w+)=.*")
_OURS = re.compile(r"^streamsparql\.(?:errors|sources\.chunk)\.(\w+): (.*)$", re.M)


@contextmanager
def raising_task_errors() -> Iterator[None]:
    """Re-raise the error that this package raised in a task, in place of Spark's."""
    try:
        yield
    except StreamSparqlError:
        raise
    except Exception as error:
        ours = error_in(str(error))
        if ours is None:
            raise
        raise ours from error


def error_in(text: str) -> StreamSparqlError | None:
    """Return the last of our errors in Spark's message, which is the one that ended the task.

    >>> error_in("Traceback ..\\nstreamsparql.errors.SourceError: <s>, 3: no term\\n\\n\\tat org")
    SourceError('<s>, 3: no term')
    >>> error_in(f"x\\n{errors.__name__}.LimitExceeded: {LimitExceeded('part 1', 'rows')}").limit
    'rows'
    >>> error_in("java.lang.OutOfMemoryError")
    """
    matches = _OURS.findall(text)
    if not matches:
        return None
    name, message = matches[-1]
    kind = errors.SourceError if name == "Rejected" else getattr(errors, name, EngineError)
    error: StreamSparqlError = kind(message)
    if isinstance(error, LimitExceeded) and (hint := _HINT.search(message)):
        return LimitExceeded(message[: hint.start()], hint[1])
    return error


@contextmanager
def raising_spark_errors() -> Iterator[None]:
    """Re-raise errors of Spark, or of its Java process, as an `EngineError` of a line or two."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise EngineError(f"Spark: {shortened(str(error))}") from error
    except Py4JError as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        reason = shortened(str(error))
        raise EngineError(f"Spark's Java process does not respond: {reason}") from error


def _interrupted(error: BaseException) -> bool:
    """Return whether an interrupt caused an error, perhaps by way of a failing clean-up."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause is not None


def shortened(message: str) -> str:
    """Return the message of Spark's error without the stack of the worker that raised it.

    >>> shortened('It failed.\\nTraceback (most recent):\\n  File "a", line 1\\nKeyError: 1')
    'KeyError: 1'
    >>> shortened("[PATH_NOT_FOUND] no such path. SQLSTATE: 42K03")
    '[PATH_NOT_FOUND] no such path. SQLSTATE: 42K03'
    """
    lines = [line for line in message.splitlines() if line.strip()]
    frames = [n for n, line in enumerate(lines) if line.startswith("  File ")]
    if frames:
        below = dropwhile(lambda line: line.startswith("  "), lines[frames[-1] :])
        return "\n".join(below).removeprefix("streamsparql.errors.")
    return lines[0] if lines else "an error without a message"
