"""What a failure on Spark means to a user: our own words out of Spark's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import dropwhile

from streamsparql import errors
from streamsparql.errors import EngineError, StreamSparqlError

_OURS = re.compile(r"^streamsparql\.(?:errors|sources\.chunk)\.(\w+): (.*)$", re.M)


@contextmanager
def told() -> Iterator[None]:
    """Raises what went wrong in a task as the error that it was there."""
    try:
        yield
    except StreamSparqlError:
        raise
    except Exception as error:
        found = of_text(str(error))
        if found is None:
            raise
        raise found from error


def of_text(text: str) -> StreamSparqlError | None:
    """The last of our errors in what Spark says, which is the one that ended the task.

    >>> of_text("Traceback ..\\nstreamsparql.errors.SourceError: <s>, 3: no term\\n\\n\\tat org")
    SourceError('<s>, 3: no term')
    >>> of_text("java.lang.OutOfMemoryError")
    """
    found = _OURS.findall(text)
    if not found:
        return None
    name, message = found[-1]
    kind = errors.SourceError if name == "Rejected" else getattr(errors, name, EngineError)
    made: StreamSparqlError = kind(message)
    return made


@contextmanager
def in_a_line() -> Iterator[None]:
    """Raises what Spark or its Java process says of itself as an error that one can read."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise EngineError(f"Spark: {shortened(str(error))}") from error
    except Py4JError as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        what = shortened(str(error))
        raise EngineError(f"Spark's Java process does not answer: {what}") from error


def _interrupted(error: BaseException) -> bool:
    """Whether an error came of an interrupt: what cleans up after it may fail, too."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, KeyboardInterrupt):
        found = found.__context__
    return found is not None


def shortened(message: str) -> str:
    """What an error of Spark says, without the stack of the worker that raised it.

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
    return lines[0] if lines else "an error that says nothing"
