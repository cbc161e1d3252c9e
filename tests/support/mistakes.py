"""Mistakes with the messages that they must have: golden files in tests/golden/mistakes.

A case is the text of a query (query.rq), then command lines that start with `$`; without one, the
query is checked. Its message is what the commands print, and their exit status unless it is 0. The
commands run in a folder with the files of `FILES`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from _pytest.mark import ParameterSet
from support.golden import GOLDEN, QUERY, Case, read

from streamsparql.cli import main

MISTAKES = GOLDEN / "mistakes"
_NAME = "<http://example.org/{}>"
_INTEGER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
_STAMP = '"2026-01-01T08:00:{:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
_HEAT = (("a", 20, 5), ("b", 25, 12), ("a", 24, 21), ("b", 30, 40))
_DOORS = (("a", "open", 10), ("a", "shut", 30))
_MEASURES = re.compile(r"in \d+\.\d s|0x[0-9a-f]+")


def _lines(
    predicate: str, rows: tuple[tuple[str, object, int], ...], value: str, stamp: str
) -> str:
    return "".join(
        f"{_NAME.format(s)} {_NAME.format(predicate)} {value.format(o)} {stamp.format(t)} .\n"
        for s, o, t in rows
    )


FILES = {
    "heat.nq": _lines("value", _HEAT, _INTEGER, _STAMP),
    "texts.nq": _lines("value", _HEAT, '"{}"', _STAMP),
    "seconds.nq": _lines("value", _HEAT, _INTEGER, _INTEGER.format("17672544{:02}")),
    "noon.nq": _lines("value", _HEAT, _INTEGER, '"noon"'),
    "triples.nt": _lines("value", _HEAT, _INTEGER, ""),
    "disorder.nq": _lines("value", (_HEAT[1], _HEAT[0], _HEAT[3], _HEAT[2]), _INTEGER, _STAMP),
    "doors.nq": _lines("door", _DOORS, _NAME, _STAMP),
    "rooms.nt": _lines("in", (("a", "hall", 0), ("b", "attic", 0)), _NAME, ""),
    "empty.nq": "",
    "heat.csv": "time,sensor,value\n2026-01-01T08:00:05Z,a,20\n2026-01-01T08:00:12Z,b,25\n",
    "ok.rq": "SELECT ?x ?v\nFROM STREAM <http://example.org/heat> WINDOW RANGE 1 MINUTE\n"
    "WHERE { ?x <http://example.org/value> ?v }\n",
}
"""The files that commands read."""


def says(text: str) -> str:
    """Return what the commands of a case print, as the golden file has it."""
    lines = text.splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    query = "\n".join(line for line in lines if not line.startswith("$ ")).strip("\n")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in {**FILES, "query.rq": f"{query}\n"}.items():
            Path(name).write_text(content, "utf-8")
        printed = [_printed(command) for command in commands or ["streamsparql check query.rq"]]
    return "--- says\n" + "\n".join(printed) + "\n\n"


def _printed(command: str) -> str:
    program, *arguments = shlex.split(command)
    assert program == "streamsparql", command
    out, err, status = io.StringIO(), io.StringIO(), 0
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TZ": "UTC"}
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.dict(os.environ, environment),
    ):
        try:
            status = main(arguments)
        except SystemExit as ending:  # argparse ends the process
            status = ending.code if isinstance(ending.code, int) else 1
    text = _MEASURES.sub("in … s", out.getvalue() + err.getvalue()).strip("\n")
    return f"{text}\nexit status {status}" if status else text


def write(path: Path) -> None:
    """Rewrite the messages of all cases of a golden file."""
    head, cases_of_file = read(path)
    blocks = [f"{head}\n"]
    for case in cases_of_file:
        blocks.append(f"{QUERY}{case.title}\n{case.text}\n\n{says(case.text)}".rstrip() + "\n")
    path.write_text("".join(blocks), "utf-8")


def cases() -> Iterator[ParameterSet]:
    """Yield the cases of all files as parameters of a test."""
    for path in sorted(MISTAKES.glob("*.txt")):
        for case in read(path)[1]:
            yield pytest.param(case, id=f"{path.stem}: {case.title}")


def all_cases() -> list[Case]:
    """Return the cases of all files."""
    return [case for path in sorted(MISTAKES.glob("*.txt")) for case in read(path)[1]]
