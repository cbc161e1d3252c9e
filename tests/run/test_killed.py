"""Runs that are killed at any moment, also while a checkpoint is written, and started again.

The output must be byte for byte that of a run that was not disturbed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

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
from streamsparql.run.checkpoint import files
files.BLOCK = 20_000
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


def forked(words: list[str]) -> int:
    """Run the command in a child, which shares the modules that are imported; return its id."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        from streamsparql.cli import main
        from streamsparql.run.checkpoint import files

        files.BLOCK = 20_000
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


def check(folder: Path, name: str, kills: int, items: int, seed: int) -> int:
    """Compare runs that are killed with an undisturbed one, until there were enough kills."""
    import streamsparql.cli
    import streamsparql.run.checkpoint.serving  # imported before the fork  # noqa: F401

    folder.mkdir()
    write_items(folder / "s.nq", items)
    words, random = arguments(folder, name), Random(seed)
    began = time.monotonic()
    assert killed_until_done(words, random, 0, 0) == (0, 0)
    longest = 0.7 * (time.monotonic() - began)
    output = folder / f"{name}.{KINDS[name]}"
    undisturbed = output.read_bytes()
    assert undisturbed.count(b"\n") > 100
    count = 0
    while count < kills:
        output.unlink()
        for file in (folder / "state").iterdir():
            file.unlink()
        more, status = killed_until_done(words, random, longest, kills - count)
        assert status == 0
        assert output.read_bytes() == undisturbed, f"after {more} kills, seed {seed}"
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
    check(tmp_path / "run", name, 334, 12_000, 11)


def test_another_process_continues(tmp_path: Path) -> None:
    write_items(tmp_path / "s.nq", 3_000)
    words = arguments(tmp_path, "groups")
    command = [sys.executable, "-c", PROGRAM, *words]
    subprocess.run(command, check=True)
    output = tmp_path / "groups.jsonl"
    undisturbed = output.read_bytes()
    output.unlink()
    (state,) = (tmp_path / "state").iterdir()
    state.unlink()
    with subprocess.Popen(command) as process:
        deadline = time.monotonic() + 60
        while not [*(tmp_path / "state").glob("checkpoint-*")] and time.monotonic() < deadline:
            time.sleep(0.001)
        process.kill()
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "5"})
    assert output.read_bytes() == undisturbed
