"""A running session: from sources to sinks, with checkpoints of the state and all positions.

A checkpoint is one unit: the state of the session after the items that were read, where the sources
were, and where the sinks were. So after a restart each item counts once, and each row is in a file
once; a transactional sink commits its rows together with the name of the checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from streamsparql.connectors.interface import is_transactional
from streamsparql.connectors.live_stream import LiveStream
from streamsparql.connectors.sinks import is_live_sink, open_live_sink
from streamsparql.errors import EngineError, SourceError
from streamsparql.physical.operator import INFINITY
from streamsparql.run.checkpoint.file import Checkpoint
from streamsparql.run.checkpoint.files import FileInput, FileOutput, in_defined_order
from streamsparql.run.checkpoint.folder import FIRST, CheckpointFolder
from streamsparql.run.checkpoint.inputs import save_input, save_query
from streamsparql.run.checkpoint.opening import difference, naming_errors
from streamsparql.run.checkpoint.sessions import WHOLE_SESSION, restore_session
from streamsparql.run.input import RunInput
from streamsparql.run.replay import layout_of

if TYPE_CHECKING:
    from streamsparql.run.registered import Registered
    from streamsparql.run.session import Session
    from streamsparql.sinks import Layout

_WAIT = 0.2
"""The seconds for which sources without items are waited for."""


class Serving:
    """A session, its sources and sinks, and the folder of its checkpoints.

    `layouts` are the layouts of the rows of queries, `kind` is the format of files; by default that
    of their extensions. The URLs of live sources and sinks are opened when they are needed.
    """

    def __init__(
        self,
        session: Session,
        sources: Mapping[str, Any],
        sinks: Mapping[str, Any],
        folder: str | os.PathLike[str] | None,
        every: float,
        *,
        layouts: Mapping[str, Layout] | None = None,
        kind: str | None = None,
    ) -> None:
        self.session = session
        self._every = every
        self._folder = None if folder is None else CheckpointFolder(folder)
        self._queries = {name: session._known(name) for name in sinks}
        self._layouts = layouts or {n: default_layout(q) for n, q in self._queries.items()}
        self._sinks: dict[str, Any] = {
            name: FileOutput(sink, self._layouts[name], kind)
            if isinstance(sink, str | os.PathLike) and not is_live_sink(sink)
            else sink
            for name, sink in sinks.items()
        }
        """The sinks by query; a URL until it is opened."""
        self._sources = {str(name): source for name, source in sources.items()}
        for name in session._streams:
            if name not in self._sources:
                raise SourceError(f"missing stream <{name}>: a query reads it")
        self._inputs: dict[str, Any] = {}
        self._stopping = False
        self._unsaved = True
        """Whether something was read since the last checkpoint, or the last commit."""
        self.rows = 0
        """The number of rows that were written by this process."""
        self.resumed: str | None = None
        """The checkpoint from which the session continues."""

    def __enter__(self) -> Self:
        if self._folder is not None:
            self._folder.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in (*self._sinks.values(), *self._inputs.values(), self._folder):
            close = getattr(each, "close", None)
            if close is not None:
                close()

    def stop(self) -> None:
        """End after the current step, with a checkpoint, so that the next process continues."""
        self._stopping = True

    def run(self) -> None:
        """Continue from the last checkpoint, if there is one, until the sources end."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[int]:
        """Do the same step by step; yield the least watermark after each step."""
        self._open_sinks()
        positions = self._resume()
        if self.session.closed:  # the sources had ended
            return
        self._open(positions)
        saved = monotonic()
        if self.resumed is None:  # the places from which the sinks are written
            self._save()
        for watermark in self._read_all():
            self._write()
            yield watermark
            if self._stopping:
                break
            if self._folder is None or monotonic() - saved >= self._every:
                if self._unsaved:
                    self._save()
                saved = monotonic()
        if not self._stopping:
            self.session.close()
            self._write()
            yield INFINITY
        self._save()

    # -- reading and writing

    def _open_sinks(self) -> None:
        """Open the sinks that are URLs."""
        for name, sink in self._sinks.items():
            if is_live_sink(sink):
                self._sinks[name] = open_live_sink(sink, self._layouts[name])
        transactional = [name for name, s in self._sinks.items() if is_transactional(s)]
        if len(transactional) > 1:
            raise EngineError(
                f"the sinks of {' and '.join(map(repr, transactional))} are transactional, but two"
                " transactions cannot be committed together; serve each query by its own process"
            )

    def _open(self, positions: Mapping[str, Any]) -> None:
        """Open the sources, and let the sinks continue at their positions."""
        session = self.session
        for name, described in self._sources.items():
            source = LiveStream.of(described)
            if isinstance(source, LiveStream):
                source = source.open(name, session._stream(name).reading)
            if hasattr(source, "poll"):
                self._inputs[name] = source
                if (position := positions.get("sources", {}).get(name)) is not None:
                    source.seek(position)
                continue
            file = FileInput(source, session._stream(name), session._engine)
            self._inputs[name] = file
            if (position := positions.get("sources", {}).get(name)) is not None:
                file.seek(position)
        for name, sink in self._sinks.items():
            sink.truncate(positions.get("sinks", {}).get(name))

    def _read_all(self) -> Iterator[int]:
        """Read the sources, that of the least watermark first; yield after each step."""
        session = self.session
        open_inputs = dict(self._inputs)
        for name in session._engine.clock.ended:  # before the checkpoint
            open_inputs.pop(name, None)
        while open_inputs:
            live = {name: each for name, each in open_inputs.items() if hasattr(each, "poll")}
            if live:
                self._poll(live, open_inputs)
            else:
                name = min(open_inputs, key=lambda each: session._streams[each].sorter.watermark)
                self._read_file(name, open_inputs)
            yield min(session._engine.watermarks.values(), default=INFINITY)

    def _poll(self, live: Mapping[str, Any], open_inputs: dict[str, Any]) -> None:
        """Read what has arrived from all live sources, and the next part of each file."""
        wait = _WAIT / len(live)
        for name, source in live.items():
            for delivery in source.poll(wait):
                self.session.push_many(name, delivery.items)
                self._unsaved = True
            if source.ended:
                self._end(name, open_inputs)
        for name in open_inputs.keys() - live.keys():
            self._read_file(name, open_inputs)

    def _read_file(self, name: str, open_inputs: dict[str, Any]) -> None:
        """Read the next part of a file."""
        self._unsaved = True
        if not self.session.read_chunks(name, open_inputs[name].chunks()):
            self._end(name, open_inputs)

    def _end(self, name: str, open_inputs: dict[str, Any]) -> None:
        self._unsaved = True
        del open_inputs[name]
        self.session.advance(INFINITY, name)

    def _write(self) -> None:
        """Write the rows of queries; of those without a sink they are dropped."""
        for name, query in self.session.queries.items():
            rows = query.to_arrow()
            if name in self._sinks and len(rows):
                self._sinks[name].write(in_defined_order(rows, self._layouts[name]))
                self.rows += len(rows)
        for sink in self._sinks.values():
            sink.flush()

    # -- checkpoints

    def _save(self) -> None:
        """Save the state and the positions as one unit, and let transactions follow.

        Without a folder commit what was read and written.
        """
        self._unsaved = False
        sources = {name: each.position() for name, each in self._inputs.items()}
        if self._folder is None:
            self._commit("", sources)
            return
        checkpoint = self.session.checkpoint()
        sinks = {name: sink.position() for name, sink in self._sinks.items()}
        content = {**checkpoint.content, "positions": {"sources": sources, "sinks": sinks}}
        name = self._folder.next_name()
        for sink in self._transactional():
            sink.prepare(name)
        self._folder.write(checkpoint._replace(content=content), name)
        self._commit(name, sources)
        self._folder.remove_before(name)

    def _transactional(self) -> list[Any]:
        return [sink for sink in self._sinks.values() if is_transactional(sink)]

    def _commit(self, name: str, positions: Mapping[str, Any]) -> None:
        """Commit the transactions of sinks, then what was read before the positions of sources."""
        for sink in self._transactional():
            sink.commit(name)
        for stream, source in self._inputs.items():
            if hasattr(source, "commit"):
                source.commit(positions[stream])

    def _resume(self) -> Mapping[str, Any]:
        """Restore the session from the checkpoint that counts; return the positions."""
        committed = [sink.committed() for sink in self._transactional()]
        if self._folder is None:
            return {}
        names = self._folder.names()
        if committed == [None]:
            if len(names) > 0 and names[-1] > FIRST:
                raise EngineError(
                    f"the sink has committed none of the checkpoints in {self._folder.path}; use"
                    " the sink and the transactions of that folder, or another folder"
                )
            self._folder.remove_after("")
            names = []
        elif committed:
            if committed[0] not in names:
                raise EngineError(
                    f"the sink has committed {committed[0]}, which is not in {self._folder.path};"
                    " use the folder of that checkpoint, or another name of the transactions"
                )
            names = committed
        if not names:
            return {}
        self._folder.remove_after(names[-1])
        checkpoint = self._folder.read(names[-1])
        with naming_errors(self._folder.file(names[-1])):
            self._check(checkpoint)
            restore_in_place(self.session, checkpoint)
            positions: Mapping[str, Any] = checkpoint.content["positions"]
        self.resumed = names[-1]
        return positions

    def _check(self, checkpoint: Checkpoint) -> None:
        """Raise an error if a checkpoint is that of other queries, or of other options."""
        content = checkpoint.content
        if content["kind"] != WHOLE_SESSION:
            raise EngineError("not a checkpoint of a session")
        hint = "use another folder, or remove this one to start again"
        saved = {each["name"]: each for each in content["queries"]}
        queries = self.session.queries
        for name in [*queries.keys() - saved.keys(), *saved.keys() - queries.keys()]:
            where = "the session has" if name in queries else "the checkpoint has"
            raise EngineError(f"{where} a query {name!r}, the other has not; {hint}")
        for name, query in queries.items():
            ours, theirs = save_query(query.registration.query), saved[name]["query"]
            if ours["text"] != theirs["text"]:
                differs = difference(theirs["text"], ours["text"])
                raise EngineError(f"the text of the query {name!r} has changed: {differs}; {hint}")
            report = query.registration.report
            same = [*(report or ())] == [*(saved[name]["report"] or ())]
            if {**ours, "rules": [*ours["rules"]]} != theirs or not same:
                raise EngineError(f"the options of the query {name!r} have changed; {hint}")
        ours = save_input(self.session._engine.input)
        for option, value in ours.items():
            if option not in ("started", "files", "limits") and value != content["input"][option]:
                raise EngineError(f"the option {option} has changed; {hint}")
        positions = content["positions"]
        for kind, own in (("source", self._sources), ("sink", self._sinks)):
            if set(positions[f"{kind}s"]) != set(own):
                raise EngineError(f"the {kind}s have changed; {hint}")


def restore_in_place(session: Session, checkpoint: Checkpoint) -> None:
    """Let a session, and the queries that it has, continue from a checkpoint."""
    content, engine = checkpoint.content, session._engine
    known = dict(session.queries)
    on_row = {name: q.on_row for name, q in known.items() if q.on_row is not None}
    files = engine.input.files
    session._start(RunInput(limits=engine.input.limits), content["history"], content["idle"])
    restore_session(session, checkpoint, on_row, files, known)


def default_layout(query: Registered, timestamps: str | None = None, **options: Any) -> Layout:
    """Return the layout of the rows of a query in a file."""
    layout = layout_of(query.query, query.decoder, query.reports, timestamps)
    return replace(layout, **options)
