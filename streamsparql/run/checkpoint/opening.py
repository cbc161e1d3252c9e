"""Opening a checkpoint: as the session, or the query, that was saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from streamsparql.compiled import CompiledQuery
from streamsparql.errors import EngineError, StreamSparqlError
from streamsparql.run.checkpoint.file import Checkpoint, read_checkpoint
from streamsparql.run.checkpoint.inputs import restored_limits
from streamsparql.run.checkpoint.queries import ONE_QUERY, restored_live
from streamsparql.run.checkpoint.sessions import WHOLE_SESSION, restore_session
from streamsparql.run.live import Live
from streamsparql.run.session import Session

Files = str | os.PathLike[str] | Callable[[str], Any] | None


def restore(
    path: str | os.PathLike[str],
    *,
    query: str | CompiledQuery | None = None,
    on_row: Any = None,
    files: Files = None,
) -> Any:
    """Return the open query, or the session, that was saved in a file, in the state of that time.

    With `query`, the text or the compiled query, a checkpoint of another one is refused. Functions
    are passed again: `on_row`, for a session a dict of them by the names of queries, and `files`.

    >>> import streamsparql, tempfile
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
    >>> live = streamsparql.compile(text).open()
    >>> live.push("s", ("<a>", "<p>", '"1"'), 3)
    >>> size = live.save(path := tempfile.mkdtemp() + "/state.ckpt")
    >>> streamsparql.restore(path, query=text)
    <Live: open, watermark 0>
    """
    checkpoint = read_checkpoint(path)
    if checkpoint.content.get("kind") == WHOLE_SESSION:
        if query is not None:
            raise EngineError(f"{os.fspath(path)} is a checkpoint of a session, not of one query")
        return session_of(checkpoint, path, on_row or {}, files)
    if query is not None:
        check_text_of(checkpoint, path, query)
    return live_of(checkpoint, path, on_row, files)


def check_text_of(checkpoint: Checkpoint, path: Any, query: str | CompiledQuery) -> None:
    """Raise an error if a checkpoint is that of another query."""
    text = query if isinstance(query, str) else query.text
    with naming_errors(path):
        saved = checkpoint.content["query"]["text"]
    if saved != text:
        raise EngineError(
            f"{os.fspath(path)} is a checkpoint of another query: {difference(saved, text)}"
        )


def difference(saved: str, text: str) -> str:
    """Return the first lines in which two texts differ.

    >>> difference("SELECT ?x\\n{ ?x ?y ?z }", "SELECT ?x\\n{ ?x ?y 5 }")
    'line 2 is { ?x ?y ?z } there, and { ?x ?y 5 } here'
    """
    ours, theirs = text.splitlines(), saved.splitlines()
    for k in range(max(len(ours), len(theirs))):
        there = theirs[k].strip() if k < len(theirs) else "missing"
        here = ours[k].strip() if k < len(ours) else "missing"
        if there != here:
            return f"line {k + 1} is {there:.60} there, and {here:.60} here"
    return "its white space differs"


def restored_session(
    path: str | os.PathLike[str], on_row: Mapping[str, Callable[[Any], object]], files: Files
) -> Session:
    """Return the session that was saved in a file."""
    checkpoint = read_checkpoint(path)
    if checkpoint.content.get("kind") != WHOLE_SESSION:
        raise EngineError(
            f"{os.fspath(path)} is a checkpoint of one query: use streamsparql.restore"
        )
    return session_of(checkpoint, path, on_row, files)


def session_of(
    checkpoint: Checkpoint,
    path: Any,
    on_row: Mapping[str, Callable[[Any], object]],
    files: Files = None,
) -> Session:
    """Return the session of a checkpoint."""
    with naming_errors(path):
        content = checkpoint.content
        limits = restored_limits(content["input"]["limits"])
        session = Session(history=content["history"], idle=content["idle"], limits=limits)
        restore_session(session, checkpoint, on_row, files)
        return session


def live_of(checkpoint: Checkpoint, path: Any, on_row: Any, files: Files) -> Live[Any]:
    """Return the open query of a checkpoint."""
    with naming_errors(path):
        if checkpoint.content.get("kind") != ONE_QUERY:
            raise EngineError(f"unknown kind {checkpoint.content.get('kind')!r}")
        return restored_live(checkpoint, on_row, files)


@contextmanager
def naming_errors(path: Any) -> Iterator[None]:
    """Let errors name the file; those of a content that cannot be true are named, too."""
    try:
        yield
    except StreamSparqlError as error:
        raise EngineError(f"{os.fspath(path)} cannot be restored: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise EngineError(
            f"{os.fspath(path)} cannot be restored: its content is invalid ({error})"
        ) from error
