"""`streamsparql demo`, run in its own process."""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import streamsparql
from streamsparql import wind_park
from streamsparql.cli.screen import Screen
from streamsparql.cli.tour import NEXT_COMMANDS, Tour
from streamsparql.windpark.folder import example_commands

ROOT = Path(__file__).parents[2]
PARTS = (
    "1  A wind park",
    "2  A query, its plan, its results",
    "3  OPTIONAL with its own window",
    "4  An aggregate, reported every 10 minutes",
    "5  OPTIONAL over time",
    "What to try next",
)


def environment(**more: str) -> dict[str, str]:
    """Return an environment in which a shell runs this `streamsparql`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **more}


def demo(cwd: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `streamsparql demo`."""
    return subprocess.run(
        [sys.executable, "-m", "streamsparql", "demo", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env=environment(**more),
        timeout=120,
    )


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the output of the demonstration in a pipe."""
    done = demo(tmp_path_factory.mktemp("demo"))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def parts(text: str) -> list[str]:
    """Split the output into parts, each with its heading."""
    return re.split(r"^── ", text, flags=re.M)[1:]


# -- the tour --------------------------------------------------------------------------------------


def test_the_tour_has_all_parts_in_80_columns(shown):
    assert tuple(part.partition(" ─")[0] for part in parts(shown)) == PARTS
    assert max(map(len, shown.splitlines())) == 80
    assert "\x1b" not in shown
    assert len(shown.splitlines()) < 175


def test_the_first_part_shows_items_and_power(shown):
    first = parts(shown)[0]
    park = wind_park()
    assert f"{len(park.items):,} RDF triples" in first
    assert re.search(r"^  \d\d:\d\d:\d\d  :T\d  :stopReason   :\w+$", first, re.M)
    lines = re.findall(r"^  :T\d  (?:north|south)  ([ ▁-█]+)$", first, re.M)
    assert len(lines) == 8
    assert any(" " in line.strip() for line in lines)


@pytest.mark.parametrize(("part", "name"), [(1, "listing-1.1"), (2, "stops"), (3, "power")])
def test_queries_are_shown_with_their_first_rows(shown, part, name):
    park, text = wind_park(), parts(shown)[part]
    query = park.queries[name]
    assert "\n".join(line for line in query.splitlines() if line[0] != "#") in text
    head, *rows = re.split(r"^  (?:start|instant) \(UTC\) ", text, flags=re.M)[1].splitlines()
    *rows, more = [row for row in rows if row]
    assert head.split()[-1] in {"?z", "?reason", "?percent"}
    assert 8 <= len(rows) <= 10
    assert re.fullmatch(r"  … and \d+ more", more)


def test_the_logical_plan_of_the_listing_is_shown(shown):
    query = streamsparql.compile(wind_park().queries["listing-1.1"])
    assert query.explain("logical") in parts(shown)[1]


def test_bars_show_the_gap_of_a_left_join(shown):
    """The pieces of a row are adjacent, and together they cover the bar of its start."""
    bars = [
        (label.strip(), blocks.index(blocks.strip()[0]), blocks.strip())
        for label, blocks in re.findall(r"^(  :T\d.{14})( *[█░]+)$", parts(shown)[4], re.M)
    ]
    (start, low, start_bar), *others = bars
    rows = [bar for bar in others if bar[0].startswith(start)]
    stops = [bar for bar in others if bar not in rows]
    assert [bool(set(bar) & set("█")) for _, _, bar in rows] == [False, True, False, True, False]
    column = low
    for _, begin, bar in rows:
        assert begin == column
        column += len(bar)
    assert column == low + len(start_bar)
    assert [bar[1:] for bar in stops] == [bar[1:] for bar in rows[1::2]]


def test_a_park_without_gaps_suggests_another_seed(tmp_path):
    done = demo(tmp_path, "--turbines", "1", "--minutes", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "try another --seed" in done.stdout
    assert "1 turbine reported" in done.stdout


def test_the_tour_on_spark_prints_the_same(spark, shown, tmp_path, capsys):
    """The demo runs in this process, to use the session of the tests; Spark reads the park from files."""
    park = wind_park()
    park.write(tmp_path)
    data = {"streams": str(tmp_path / "wind.nq"), "graph": str(tmp_path / "turbines.ttl")}
    Tour(park, {**data, "engine": "spark", "spark": spark}).show()
    assert capsys.readouterr().out == shown


# -- terminals -------------------------------------------------------------------------------------


def on_terminal(**more: str) -> str:
    """Run the demonstration on a pseudo terminal of 80 columns and return its output."""
    import fcntl
    import pty
    import struct
    import termios

    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
    env = {name: v for name, v in environment().items() if not name.startswith(("LC_", "LANG"))}
    env = {**env, "TERM": "xterm-256color", **more}
    env.pop("NO_COLOR", None) if "NO_COLOR" not in more else None
    command = [sys.executable, "-m", "streamsparql", "demo"]
    process = subprocess.Popen(command, stdout=other, stderr=other, stdin=other, env=env)
    os.close(other)
    output = b""
    while select.select([main], [], [], 60)[0]:
        try:
            part = os.read(main, 1 << 16)
        except OSError:  # on Linux, the other side is closed
            break
        if not part:
            break
        output += part
    os.close(main)
    assert process.wait(10) == 0
    return output.decode().replace("\r\n", "\n")


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo terminals")
def test_terminals_get_colour_and_dumb_ones_ascii(shown):
    coloured = on_terminal()
    assert "\x1b[" in coloured
    assert without_colour(coloured) == shown
    assert on_terminal(NO_COLOR="1") == shown
    dumb = on_terminal(TERM="dumb")
    assert dumb.isascii()
    assert "\x1b" not in dumb
    assert len(dumb.splitlines()) == len(shown.splitlines())


def test_the_tour_uses_up_to_100_columns(capsys):
    park = wind_park()
    Tour(park, {"streams": park.to_arrow(), "graph": park.graph}, Screen(100)).show()
    assert max(map(len, capsys.readouterr().out.splitlines())) == 100


# -- files and example commands --------------------------------------------------------------------


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(),
        timeout=120,
    )


def run_example(command: str, cwd: Path) -> list[str]:
    """Run a command and return its lines of output; the reader ends an endless one."""
    if "--pour" in command:
        command = command.replace("--pour", "--pour --speed 5000") + " | head -4"
        done = shell(command.replace("-o pipefail", ""), cwd)
        assert done.returncode in (0, 141), done.stderr
    else:
        done = shell(command, cwd)
        assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_commands_at_the_end_of_the_tour_run_as_printed(shown, tmp_path):
    last = parts(shown)[-1]
    for command in NEXT_COMMANDS.values():
        assert f"\n{command}\n" in last
        assert len(run_example(command, tmp_path)) > 3


def test_commands_of_write_and_of_the_readme_run_as_printed(tmp_path):
    folder = tmp_path / "my parks" / "one"
    done = demo(tmp_path, "--write", "my parks/one")
    assert (done.returncode, done.stderr) == (0, "")
    printed = [line for line in done.stdout.splitlines() if line.startswith("streamsparql")]
    assert printed == list(example_commands("my parks/one").values())
    for command in printed:
        assert len(run_example(command, tmp_path)) > 3
    readme = (folder / "README.txt").read_text("utf-8").replace("\\\n", "")
    *others, ice = (line for line in readme.splitlines() if line.startswith("streamsparql"))
    assert others == list(example_commands().values())  # as above, without the folder
    assert len(run_example(ice, folder)) > 3


def test_write_refuses_to_replace_an_edited_file(tmp_path):
    assert demo(tmp_path, "--write", ".").returncode == 0
    assert demo(tmp_path, "--write", ".").returncode == 0
    (tmp_path / "power.rq").write_text("ASK {}")
    done = demo(tmp_path, "--write", ".")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "streamsparql: power.rq exists with other content;"
        " name another folder, or remove the file\n"
    )
    assert (tmp_path / "power.rq").read_text() == "ASK {}"


# -- pour ------------------------------------------------------------------------------------------


def test_pour_prints_the_items_of_the_park(tmp_path):
    done = demo(tmp_path, "--pour", "--minutes", "3", "--speed", "1e6")
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "wind.nq").write_text(done.stdout)
    query = streamsparql.compile(wind_park().queries["now"])
    expected = list(query.run(wind_park(minutes=3).items))
    assert list(query.run(tmp_path / "wind.nq")) == expected


def test_pour_is_paced_and_an_interrupt_ends_it_quietly(tmp_path):
    command = [sys.executable, "-m", "streamsparql", "demo", "--pour", "--speed", "5"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        began = time.monotonic()
        assert all(process.stdout.readline() for _ in range(5))
        assert time.monotonic() - began > 0.5  # the third turbine reports 18 s after the first: 3.6
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == ""


def test_a_closed_pipe_ends_it_quietly(tmp_path):
    for command in (
        "streamsparql demo | head -3",
        "streamsparql demo --pour --speed 1e5 | head -3",
    ):
        done = shell(f"set +o pipefail; {command}", tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) == 3


# -- the command line ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--write x --pour", "exclude each other"),
        ("--speed 3", "--speed requires --pour"),
        ("--pour --speed 0", "not a valid speed: '0'"),
        ("--pour --speed nan", "not a valid speed: 'nan'"),
        ("--pour --engine spark", "--engine spark cannot be combined"),
        ("--master local", "--master requires --engine spark"),
        ("--turbines 0", "must be at least 1"),
        ("--minutes -3", "not a whole number: '-3'"),
    ],
)
def test_usage_errors_exit_with_status_2_and_write_nothing(tmp_path, arguments, reason):
    done = demo(tmp_path, *shlex.split(arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_has_examples_and_imports_nothing_heavy(tmp_path):
    done = demo(tmp_path, "--help")
    assert done.returncode == 0
    assert "streamsparql demo --write park" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    code = (
        "import sys, streamsparql.cli as c\n"
        "try: c.main(['--help'])\n"
        "except SystemExit: print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True
    )
    assert {"numpy", "pyarrow", "streamsparql.windpark"}.isdisjoint(done.stdout.split())
