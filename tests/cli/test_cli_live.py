"""`streamsparql run` over endless streams: early output, interrupts, and the end of the horizon."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import chain, count
from typing import Any

import pyarrow
import pyarrow.csv
import pyarrow.parquet as parquet
import pytest
from support.command_line import (
    ENVIRONMENT,
    FROM,
    ITEMS,
    PREFIX,
    WIND,
    output_lines,
    quad,
    running,
)

import streamsparql
from streamsparql.cli import main
from streamsparql.cli.interrupts import Interrupts
from streamsparql.run.input import RunInput
from streamsparql.run.replay import Replay
from streamsparql.sources import read_stream

without_signals = pytest.mark.skipif(os.name == "nt", reason="Windows lacks these signals")


@pytest.mark.parametrize("emit", ["final", "eager"])
def test_rows_are_emitted_while_the_input_is_open(folder, emit):
    """Final rows are emitted once their end is known, eager rows at once, cut into pieces."""
    with running(folder, "--output", "csv", "--emit", emit) as process:
        process.stdin.write("".join(quad("a", 5, t) for t in range(1_000, 16_000, 1_000)))
        process.stdin.flush()
        assert process.stdout.readline() == "t,mean,start,end\n"
        rows = [process.stdout.readline()] if emit == "eager" else []
        process.stdin.write(quad("a", 6, 40_000))
        process.stdin.flush()
        rows += [process.stdout.readline()]  # while standard input is open
        process.stdin.close()
        rows += process.stdout.readlines()
        assert process.wait(30) == 0
    cells = [row.rstrip().split(",")[1:] for row in rows]
    assert (cells[0][:2], cells[-1]) == (["5", "1000"], ["6", "40000", "50000"])
    assert (len(cells) > 2) == (emit == "eager")


def test_rows_wait_for_no_item_after_the_one_that_makes_them_final(folder):
    with running(folder, "--output", "csv") as process:
        process.stdin.write("".join(quad("a", n, 1_000 * n) for n in (1, 3, 4)))
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(2)]  # while standard input is open
        assert lines[1] == "http://example.org/a,1,1000,3000\n"
        process.stdin.close()
        assert process.wait(30) == 0


def trig_graph(item: tuple[Any, ...]) -> str:
    """Return an item as a named graph with its time of generation, in TriG."""
    *triple, stamp, _ = quad(*item).rsplit(" ", 2)
    graph = f"<http://e/graph/{item[-1]}>"
    generated = "<http://www.w3.org/ns/prov#generatedAtTime>"
    return f"{graph} {generated} {stamp} .\n{graph} {{ {' '.join(triple)} }}\n"


FORMATS: dict[str, Callable[[], bytes]] = {
    "nq": lambda: "".join(quad(*item) for item in ITEMS).encode(),
    "nq.gz": lambda: gzip.compress("".join(quad(*item) for item in ITEMS).encode()),
    "trig": lambda: "".join(map(trig_graph, ITEMS)).encode(),
}


@pytest.mark.skipif(os.name == "nt", reason="Windows lacks named pipes in folders")
@pytest.mark.parametrize("kind", FORMATS)
def test_a_named_pipe_is_read_as_items_arrive(folder, kind):
    name = f"pipe.{kind}"
    os.mkfifo(folder / name)
    with (
        running(folder, "--output", "csv", stream=name) as process,
        (folder / name).open("wb") as pipe,
    ):
        pipe.write(FORMATS[kind]())
        pipe.flush()
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[2].endswith(",7,4000,10000\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_compressed_standard_input_is_detected_by_its_first_bytes(folder):
    done = subprocess.run(
        [sys.executable, "-m", "streamsparql", "run", "mean.rq", "--stream", "-"],
        input=gzip.compress((folder / "wind.nq").read_bytes()),
        capture_output=True,
        cwd=folder,
        env=ENVIRONMENT,
    )
    assert len(done.stdout.splitlines()) == 4


@without_signals
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_writes_the_rows_up_to_its_watermark(folder, number):
    """The rows are those of a run over a horizon that ends at the watermark."""
    items = "".join(quad("a", t * t, 100 * t) for t in range(1_000))  # each changes the mean
    with running(folder, "--output", "csv") as process:
        process.stdin.write(items)
        process.stdin.flush()
        lines = []
        while not lines or not lines[-1].endswith(",99700\n"):  # final after the last item
            lines.append(process.stdout.readline())
            assert lines[-1]
        process.send_signal(number)
        assert process.wait(30) == 128 + number
        summary = process.stderr.read()
        lines += process.stdout.readlines()
    watermark = re.match(r"interrupted, complete up to ([0-9,]+) ms: 1,000 items", summary)
    assert watermark, summary
    (folder / "all.nq").write_text(items)
    horizon = ("--until", watermark[1].replace(",", ""))
    complete = output_lines(folder, "mean.rq", "--stream", "all.nq", "--output", "csv", *horizon)
    assert sorted(map(str.rstrip, lines)) == sorted(complete)


@without_signals
def test_an_interrupt_before_the_first_item_ends_the_run(folder, monkeypatch, capsys):
    reader, writer = os.pipe()
    before = signal.getsignal(signal.SIGINT)

    def interrupt() -> None:
        deadline = time.monotonic() + 30
        while signal.getsignal(signal.SIGINT) is before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with os.fdopen(writer, "w"), os.fdopen(reader) as standard_input:
        monkeypatch.setattr(sys, "stdin", standard_input)
        thread = threading.Thread(target=interrupt, daemon=True)
        thread.start()
        assert main(["run", str(folder / "mean.rq"), "--stream", "-"]) == 130
        thread.join()
    assert capsys.readouterr().err.startswith("interrupted, no results: 0 items")
    assert signal.getsignal(signal.SIGINT) is before


@without_signals
def test_a_hangup_that_is_ignored_stays_ignored():
    """The command `nohup` sets it so."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts(lambda: pytest.fail("stopped"), []) as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
        assert interrupts.signal == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@without_signals
def test_killed_run_leaves_no_file_that_looks_whole(folder):
    """A run over an endless stream writes its file in place, so that others can follow it."""
    program = """if True:
        import os, signal
        from streamsparql.sinks import Layout, open_sink
        with open_sink("rows.csv", None, Layout("select", ("x",), ("start", "end"))) as sink:
            sink.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, env=ENVIRONMENT)
    assert done.returncode == -signal.SIGKILL
    assert [path.suffix for path in folder.glob("rows*")] == [".part"]


@without_signals
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_interrupted_run_over_files_leaves_the_rows_in_a_part(folder, kind, monkeypatch, capsys):
    (folder / f"rows.{kind}").write_text("older")
    (folder / "all.nq").write_text("".join(quad("a", t * t, 100 * t) for t in range(200)))
    read = Replay.tables

    def interrupted(replay: Replay) -> Any:
        for table in read(replay):
            os.kill(os.getpid(), signal.SIGTERM)
            yield table

    monkeypatch.setattr(Replay, "tables", interrupted)
    monkeypatch.setattr("streamsparql.run.engine.read_stream", partial(read_stream, chunk=100))
    monkeypatch.chdir(folder)
    assert main(["run", "mean.rq", "--stream", "all.nq", "-o", f"rows.{kind}"]) == 143
    (part,) = folder.glob("rows*.part")
    *_, message = capsys.readouterr().err.splitlines()
    assert message == f"rows.{kind} is not written: the rows so far are in {os.path.realpath(part)}"
    assert (folder / f"rows.{kind}").read_text() == "older"
    rows = pyarrow.csv.read_csv(part) if kind == "csv" else parquet.read_table(part)
    assert 50 < len(rows) < 100


@without_signals
def test_file_of_an_endless_run_can_be_read_while_it_grows(folder):
    rows, deadline = folder / "rows.csv", time.monotonic() + 30
    with running(folder, "-o", "rows.csv") as process:
        process.stdin.write("".join(quad("a", t, 1000 * t) for t in range(100)))
        process.stdin.flush()
        while not (rows.exists() and "a,2.5," in rows.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()


@without_signals
def test_a_signal_sent_twice_at_once_counts_once(monkeypatch):
    """`timeout` sends the signal twice. A second one that arrives later ends the process."""
    stops = []
    with Interrupts(lambda: stops.append(1), []) as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert (interrupts.signal, stops) == (signal.SIGINT, [1])
        monkeypatch.setattr("streamsparql.cli.interrupts._SAME_SIGNAL", -1.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


# -- the horizon -----------------------------------------------------------------------------------


def test_rows_that_a_join_retains_are_emitted_at_the_end_of_the_horizon():
    query = streamsparql.compile(
        f"{PREFIX}SELECT * {FROM} {{ ?t :speed ?v OPTIONAL {{ ?t :stop ?w }} }}"
    )
    speed, stop = (f"<http://example.org/{name}>" for name in ("speed", "stop"))
    items = [
        ("<a>", speed, "<x>", 1_000),
        ("<b>", speed, "<y>", 2_000),
        ("<b>", stop, "<z>", 3_000),
    ]
    endless = chain(items, (("<c>", speed, "<x>", t) for t in count(5_000, 5_000)))
    replay = Replay(query, RunInput({WIND: endless}, end=5_000), ordered=False, endless=True)
    rows = pyarrow.concat_tables(replay.tables()).to_pylist()
    expected = query.run(items, end=5_000).to_arrow().to_pylist()
    assert len(expected) == 3
    assert sorted(rows, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("report", [(), ("--every", "2s")])
def test_a_run_ends_with_its_horizon_while_the_input_is_open(folder, report):
    options = ("--output", "csv", "--until", "5000", *report)
    with running(folder, *options) as process:
        process.stdin.write("".join(quad(*item) for item in ITEMS))
        process.stdin.flush()
        assert process.wait(30) == 0  # standard input is still open
        lines = process.stdout.read().splitlines()
        assert re.match("3 items: 3 accepted", process.stderr.read())
    assert lines == output_lines(folder, "mean.rq", "--stream", "wind.nq", *options)
    assert len(lines) == 3


def test_analyze_ends_with_its_horizon_while_the_input_is_open(folder):
    with running(folder, "--analyze", "--until", "5000", command="explain") as process:
        process.stdin.write("".join(quad(*item) for item in ITEMS))
        process.stdin.flush()
        assert process.wait(30) == 0
        assert "3 read: 3 accepted" in process.stdout.read()
