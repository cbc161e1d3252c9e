"""What a failure on Spark means to a user: our own words out of Spark's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

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
