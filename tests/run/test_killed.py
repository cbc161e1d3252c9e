"""Runs that are killed at any moment, also while a checkpoint is written, and started again.

The output must be byte for byte that of a run that was not disturbed.
"""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from streamsparql import EngineError, Session, StreamSparqlError
from streamsparql.cli import main
from streamsparql.connectors import follow
from streamsparql.connectors.interface import Delivery
from streamsparql.run.checkpoint import files, shared_parts
from streamsparql.run.checkpoint.folder import CheckpointFolder
from streamsparql.run.checkpoint.opening import session_of
from streamsparql.run.checkpoint.serving import Serving
from streamsparql.run.checkpoint.sessions import save_session

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
PREFIX = "PREFIX : <http://e/> "
QUERIES = {
    "optional": PREFIX
    + "SELECT ?x ?v ?w FROM STREAM :s WINDOW RANGE 6 S SLIDE { ?x :p ?v OPTIONAL { ?x :q ?w } }",
    "groups": PREFIX
    + "SELECT ?x (COUNT(*) AS ?n) (AVG(?v) AS ?m) FROM STREAM :s WINDOW RANGE 5 S SLIDE 1 S"
    " { ?x :p ?v } GROUP BY ?x",
    "triples": PREFIX + "CONSTRUCT { ?x :pair [ :of ?v ] } FROM STREAM :s WINDOW RANGE 2 S SLIDE"
    " { ?x :p ?v . ?x :q ?v }",
}
KINDS = {"optional": "csv", "groups": "jsonl", "triples": "nq"}

PROGRAM = """
import sys
from streamsparql.cli import main
from streamsparql.run.checkpoint import files, shared_parts
files.READ_SIZE = 20_000
sys.exit(main(sys.argv[1:]))
"""


def write_items(file: Path, count: int, seed: int = 1) -> None:
    random = Random(seed)
    with file.open("w") as out:
        for k in range(count):
            t = max(10 * k - random.choice([0, 0, 0, 30, 400]), 0)
            subject = "_:n" if random.random() < 0.02 else f"<http://e/{random.randrange(60)}>"
            value = f'"{random.randrange(9)}"^^<{INTEGER}>'
            out.write(f'{subject} <http://e/{random.choice("pq")}> {value} "{t}"^^<{INTEGER}> .\n')


def arguments(folder: Path, name: str) -> list[str]:
    (folder / f"{name}.rq").write_text(QUERIES[name])
    return [
        *("run", str(folder / f"{name}.rq"), str(folder / "s.nq"), "--max-delay", "300"),
        *("-o", str(folder / f"{name}.{KINDS[name]}"), "--checkpoint", str(folder / "state")),
        *("--checkpoint-every", "1ms", "--quiet"),
    ]


def live_arguments(folder: Path, name: str) -> list[str]:
    """Return the words of a run from a growing file to files that are rotated."""
    (folder / f"{name}.rq").write_text(QUERIES[name])
    return [
        *("run", str(folder / f"{name}.rq"), "--max-delay", "300"),
        *("--stream", f"follow:{folder}/s.nq?until=end"),
        *("-o", f"rotate:{folder}/{name}.jsonl?size=20KB", "--checkpoint", str(folder / "state")),
        *("--checkpoint-every", "1ms", "--quiet"),
    ]


def outputs(folder: Path, name: str) -> list[Path]:
    """Return the files with the rows of a query, those that are full first."""
    return sorted(
        (file for file in folder.glob(f"{name}.*") if file.suffix != ".rq"),
        key=lambda file: int(file.suffix[1:]) if file.suffix[1:].isdigit() else 1_000,
    )


def written(folder: Path, name: str) -> bytes:
    """Return the rows of a query."""
    return b"".join(file.read_bytes() for file in outputs(folder, name))


def forked(words: list[str]) -> int:
    """Run the command in a child, which shares the modules that are imported; return its id."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        files.READ_SIZE = follow._BLOCK = 20_000
        shared_parts.LEAST_BYTES = 300
        status = main(words)
    finally:
        os._exit(status)


def killed_until_done(
    words: list[str], random: Random, longest: float, most: int
) -> tuple[int, int]:
    """Kill the run at random moments until it ends by itself; return the kills, and its status."""
    kills = 0
    while True:
        child = forked(words)
        until = time.monotonic() + (random.random() * longest if kills < most else 1e9)
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < until:
            time.sleep(0.0005)
        if ended[0]:
            return kills, os.waitstatus_to_exitcode(ended[1])
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1


def check(
    folder: Path,
    name: str,
    kills: int,
    items: int,
    seed: int,
    run: Callable[[Path, str], list[str]] = arguments,
) -> int:
    """Compare runs that are killed with an undisturbed one, until there were enough kills.

    The steps of a live source depend on when it is read, and so does the order of rows.
    """
    in_order = list if run is arguments else sorted
    folder.mkdir()
    write_items(folder / "s.nq", items)
    words, random = run(folder, name), Random(seed)
    began = time.monotonic()
    assert killed_until_done(words, random, 0, 0) == (0, 0)
    longest = 0.7 * (time.monotonic() - began)
    undisturbed = written(folder, name)
    assert undisturbed.count(b"\n") > 100
    count = 0
    while count < kills:
        for file in (*outputs(folder, name), *(folder / "state").glob("checkpoint-*")):
            file.unlink()
        more, status = killed_until_done(words, random, longest, kills - count)
        assert status == 0
        rows, expected = written(folder, name).splitlines(), undisturbed.splitlines()
        assert in_order(rows) == in_order(expected), f"after {more} kills, seed {seed}"
        count += more
        longest *= 0.8 if not more else 1.0
        assert longest > 1e-3, "the run ends before it can be killed"
    return count


@pytest.mark.parametrize("name", QUERIES)
def test_a_killed_run_continues_to_the_same_output(name: str, tmp_path: Path) -> None:
    check(tmp_path / "run", name, 4, 4_000, 7)


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_a_run_that_is_killed_hundreds_of_times_has_the_same_output(
    name: str, tmp_path: Path
) -> None:
    check(tmp_path / "run", name, 334, 5_000, 11)


def test_a_killed_run_continues_from_a_live_source_to_a_live_sink(tmp_path: Path) -> None:
    check(tmp_path / "run", "groups", 4, 4_000, 7, live_arguments)


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_a_live_run_that_is_killed_a_hundred_times_has_the_same_output(
    name: str, tmp_path: Path
) -> None:
    check(tmp_path / "run", name, 100, 5_000, 13, live_arguments)


def test_another_process_continues(tmp_path: Path) -> None:
    write_items(tmp_path / "s.nq", 3_000)
    words = arguments(tmp_path, "groups")
    command = [sys.executable, "-c", PROGRAM, *words]
    subprocess.run(command, check=True)
    output = tmp_path / "groups.jsonl"
    undisturbed = output.read_bytes()
    output.unlink()
    (state,) = (tmp_path / "state").glob("checkpoint-*")
    state.unlink()
    with subprocess.Popen(command) as process:
        deadline = time.monotonic() + 60
        while not [*(tmp_path / "state").glob("checkpoint-*")] and time.monotonic() < deadline:
            time.sleep(0.001)
        process.kill()
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "5"})
    assert output.read_bytes() == undisturbed


# -- Resuming -------------------------------------------------------------------------------------

TEXT = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }"


def serve(folder: Path, text: str = TEXT, stop: bool = False, **options: Any) -> Session:
    """Serve one query over a file of items; with `stop` end after the first step."""
    session = Session(**options)
    session.register(text, "q")
    source, target = {"s": str(folder / "s.nq")}, {"q": folder / "rows.csv"}
    with Serving(session, source, target, folder / "state", 1e9) as serving:
        for _ in serving.steps():
            if stop:
                serving.stop()
    return session


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = (f'<a> <p> "{t}" "{t}"^^<{INTEGER}> .\n' for t in range(5, 100, 5))
    (tmp_path / "s.nq").write_text("".join(lines))
    return tmp_path


@pytest.mark.parametrize("extension", ["nq", "csv", "nq.gz"])
def test_each_source_continues_at_its_position(folder: Path, extension: str) -> None:
    source = folder / f"items.{extension}"
    if extension == "csv":
        rows = "".join(f'<a>,<p>,"""{t}""",{t}\n' for t in range(5, 100, 5))
        source.write_text("subject,predicate,object,timestamp\n" + rows)
    else:
        data = (folder / "s.nq").read_bytes()
        source.write_bytes(gzip.compress(data) if extension == "nq.gz" else data)
    with patch.object(files, "READ_SIZE", 200):
        outputs = []
        for stops in ([], [1], [0, 0, 2]):
            for stop in (*stops, None):
                session = Session()
                session.register(TEXT, "q")
                target = {"q": folder / "rows.csv"}
                with Serving(session, {"s": str(source)}, target, folder / "state", 1e9) as serving:
                    for k, _ in enumerate(serving.steps()):
                        if k == stop:
                            serving.stop()
            outputs.append((folder / "rows.csv").read_bytes())
            assert session.stats().items.read == 19
            for file in (folder / "state").glob("checkpoint-*"):
                file.unlink()
    assert outputs[0].count(b"\n") == 20
    assert outputs[0] == outputs[1] == outputs[2]


def test_a_run_that_has_ended_does_nothing(folder: Path) -> None:
    serve(folder)
    before = (folder / "rows.csv").read_bytes()
    session = serve(folder)
    assert session.closed
    assert (folder / "rows.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": TEXT.replace("10", "20")}, r"the text of the query 'q' has changed: line 1 is"),
        ({"max_delay": 5}, "the option max_delay has changed; use another folder"),
    ],
)
def test_a_change_is_told_apart_from_a_restart(
    folder: Path, change: dict[str, Any], message: str
) -> None:
    serve(folder, stop=True)
    with pytest.raises(EngineError, match=message):
        serve(folder, **change)
    serve(folder)


def test_files_that_have_become_shorter_are_errors(folder: Path) -> None:
    serve(folder, stop=True)
    for name, message in (("rows.csv", "was changed"), ("s.nq", "another file")):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(before[:-30])
        with pytest.raises(StreamSparqlError, match=message):
            serve(folder)
        (folder / name).write_bytes(before)


def test_two_processes_cannot_use_one_folder(folder: Path) -> None:
    used = CheckpointFolder(folder / "state")
    used.open()
    with pytest.raises(EngineError, match="another process uses the checkpoints in"):
        serve(folder)
    used.close()
    serve(folder)


class Broker:
    """A source and a transactional sink, which survive the processes that use them."""

    replayable = True

    def __init__(self, items: list[Any]) -> None:
        self.items, self.at = items, 0
        self.visible: list[Any] = []
        self.open: list[Any] = []
        self.last: str | None = None
        self.prepared: tuple[str, list[Any]] | None = None

    def poll(self, timeout: float) -> list[Delivery]:
        items, self.at = self.items[self.at : self.at + 2], min(self.at + 2, len(self.items))
        return [Delivery("0", items)]

    @property
    def ended(self) -> bool:
        return self.at == len(self.items)

    def position(self) -> Any:
        return {"at": self.at}

    def seek(self, position: Any) -> None:
        self.at = position["at"]

    def close(self) -> None:
        pass


class BrokerSink:
    """The sink of a broker, which fails at some calls."""

    def __init__(self, broker: Broker, fail: str, calls: int) -> None:
        self.broker, self._fail, self._calls = broker, fail, calls

    def _count(self, name: str) -> None:
        if name == self._fail:
            self._calls -= 1
            if not self._calls:
                raise KeyboardInterrupt

    def write(self, rows: Any) -> None:
        self._count("write")
        self.broker.open += rows.to_pylist()

    def flush(self) -> None:
        pass

    def position(self) -> Any:
        return None

    def truncate(self, position: Any) -> None:
        pass

    def prepare(self, checkpoint: str) -> None:
        self._count("prepare")

    def commit(self, checkpoint: str) -> None:
        self._count("commit")
        self.broker.visible += self.broker.open
        self.broker.open, self.broker.last = [], checkpoint
        self._count("committed")

    def committed(self) -> str | None:
        self.broker.open = []
        return self.broker.last

    def close(self) -> None:
        pass


@pytest.mark.parametrize("fail", ["write", "prepare", "commit", "committed"])
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_rows_are_committed_once_together_with_the_checkpoint(
    tmp_path: Path, fail: str, calls: int
) -> None:
    items = [("<a>", "<p>", f'"{t}"', t) for t in range(5, 100, 5)]
    broker = Broker(items)
    for call in (calls, calls, 0):
        session = Session(max_jump=None)
        session.register(TEXT, "q")
        sinks = {"q": BrokerSink(broker, fail, call)}
        broker.at = 0
        with (
            suppress(KeyboardInterrupt),
            Serving(session, {"s": broker}, sinks, tmp_path, 0) as serving,
        ):
            serving.run()
    assert [row["o"] for row in broker.visible] == [f'"{t}"' for t in range(5, 100, 5)]


# -- Parts that checkpoints share ------------------------------------------------------------------


def test_what_is_unchanged_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Static graphs are a file that later checkpoints name; one that is lost is a named error."""
    monkeypatch.setattr(shared_parts, "LEAST_BYTES", 2_000)
    graph = "".join(f"<http://e/{k}> <http://e/name> 'name {k}' .\n" for k in range(300))
    (tmp_path / "g.ttl").write_text(graph)
    text = (
        "SELECT ?n FROM STREAM <s> WINDOW RANGE 10 MS FIXED FROM <g>"
        " { ?s <http://e/p> ?o . ?s <http://e/name> ?n }"
    )
    folder = CheckpointFolder(tmp_path / "state")
    folder.open()
    session = Session(graph=str(tmp_path / "g.ttl"))
    session.register(text.replace(" FROM <g>", ""), "q")
    inodes = []
    for t in range(10, 60, 10):
        session.push("s", (f"<http://e/{t}>", "<http://e/p>", 1), t)
        assert session.watermarks
        folder.write(save_session(session))
        parts = [*(tmp_path / "state").glob("part-*")]
        inodes.append({part.stat().st_ino for part in parts})
        folder.remove_before(folder.names()[-1])
    assert all(len(inodes[0] & later) >= 2 for later in inodes)
    expected = session.rows()
    name = folder.names()[-1]
    assert session_of(folder.read(name), "state", {}).rows() == expected
    for part in (tmp_path / "state").glob("part-*"):
        part.unlink()
    with pytest.raises(EngineError, match="lacks its part"):
        folder.read(name)
    folder.close()


def test_two_transactional_sinks_are_refused(tmp_path: Path) -> None:
    session = Session()
    broker = Broker([])
    for name in "ab":
        session.register(TEXT, name)
    sinks = {name: BrokerSink(broker, "", 0) for name in "ab"}
    with (
        Serving(session, {"s": broker}, sinks, tmp_path, 0) as serving,
        pytest.raises(EngineError, match="the sinks of 'a' and 'b' are transactional, but two"),
    ):
        serving.run()


def broker_serving(broker: Broker, folder: Path | None) -> Serving:
    broker.at = 0
    session = Session(max_jump=None)
    session.register(TEXT, "q")
    return Serving(session, {"s": broker}, {"q": BrokerSink(broker, "", 0)}, folder, 0)


def test_without_checkpoints_rows_are_committed_after_each_step() -> None:
    broker = Broker([("<a>", "<p>", f'"{t}"', t) for t in range(5, 100, 5)])
    with broker_serving(broker, None) as serving:
        seen = [len(broker.visible) for _ in serving.steps()]
    assert seen == sorted(seen)
    assert 0 < seen[len(seen) // 2] < len(broker.visible) == 19


def test_checkpoints_that_the_sink_has_not_committed_are_refused(tmp_path: Path) -> None:
    broker = Broker([("<a>", "<p>", f'"{t}"', t) for t in range(5, 100, 5)])
    with broker_serving(broker, tmp_path) as serving:
        serving.run()
    last, broker.last = broker.last, None
    for committed, message in ((None, "none of the checkpoints in"), ("checkpoint-1", "is not in")):
        broker.last = committed
        with (
            broker_serving(broker, tmp_path) as serving,
            pytest.raises(EngineError, match=message),
        ):
            serving.run()
    broker.last = last
    with broker_serving(broker, tmp_path) as serving:
        serving.run()
    assert len(broker.visible) == 19


def test_serve_takes_urls_and_repeats_no_row_of_a_rotated_file(folder: Path) -> None:
    source, target = f"follow:{folder}/s.nq?until=end", f"rotate:{folder}/rows.jsonl?size=200"
    for stop in (True, True, False, False):
        session = Session()
        session.register(TEXT, "q")
        with (
            patch.object(follow, "_BLOCK", 200),
            Serving(session, {"s": source}, {"q": target}, folder / "state", 1e9) as serving,
        ):
            for _ in serving.steps():
                if stop:
                    serving.stop()
    assert written(folder, "rows").count(b"\n") == 19
    assert len(outputs(folder, "rows")) > 2
