"""Databases and rotated files: each row once, whatever is written again."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from signal import SIGINT
from typing import Any

import pyarrow as pa
import pytest
from support.brokers import Postgres

from streamsparql.connectors.sinks import open_live_sink
from streamsparql.errors import ConnectionWarning, EngineError
from streamsparql.sinks import Layout

LAYOUT = Layout("select", ("v",), ("start", "end"))
REPORTS = Layout("select", ("v",), ("instant",))
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def rows(*numbers: int) -> pa.Table:
    texts = [f'"{n}"^^<{INTEGER}>' for n in numbers]
    return pa.table({"v": texts, "start": numbers, "end": [n + 1 for n in numbers]})


def test_a_row_of_postgresql_is_there_once_after_an_outage(postgres: Postgres) -> None:
    import psycopg

    with psycopg.connect(postgres.url) as connection:
        columns = 'row_key text PRIMARY KEY, v numeric, "start" bigint, "end" bigint'
        connection.execute(f"CREATE TABLE rows ({columns})")
    sink = open_live_sink(f"{postgres.url}?table=rows", LAYOUT)
    sink.write(rows(1, 2))
    sink.flush()
    postgres.stop(SIGINT)  # which does not wait for clients
    postgres.start()
    sink.write(rows(2, 3, 3))
    with pytest.warns(ConnectionWarning, match="connecting again"):
        sink.flush()
    sink.close()
    with psycopg.connect(postgres.url) as connection:
        stored = connection.execute('SELECT v, "start" FROM rows ORDER BY v').fetchall()
    assert stored == [(1, 1), (2, 2), (3, 3), (3, 3)]


def test_what_a_table_lacks_is_an_error(postgres: Postgres, tmp_path: Path) -> None:
    for url in (f"{postgres.url}?table=nowhere", f"sqlite:{tmp_path}/a.db?table=nowhere"):
        sink: Any = open_live_sink(url, LAYOUT)
        sink.write(rows(1))
        with pytest.raises(EngineError, match="expected a table with the columns row_key"):
            sink.flush()
        sink._uncommitted.clear()
        sink.close()


def test_reports_are_rows_of_sqlite(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE r (row_key TEXT PRIMARY KEY, v, instant)")
    connection.close()
    sink = open_live_sink(f"sqlite:{tmp_path}/a.db?table=r", REPORTS)
    sink.write(pa.table({"v": ['"a"', None], "instant": [5, 10]}))
    sink.close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        stored = connection.execute("SELECT v, instant FROM r").fetchall()
    connection.close()
    assert stored == [("a", 5), (None, 10)]


@pytest.mark.parametrize(("name", "size"), [("r.jsonl", 60), ("r.csv", 20)])
def test_a_rotated_file_returns_to_any_position(tmp_path: Path, name: str, size: int) -> None:
    url = f"rotate:{tmp_path}/{name}?size={size}"

    def content() -> list[bytes]:
        full = sorted(tmp_path.glob(f"{name}.*"))
        return [path.read_bytes() for path in (*full, tmp_path / name)]

    sink = open_live_sink(url, LAYOUT)
    positions, contents = [], []
    for number in range(8):
        sink.write(rows(number))
        sink.flush()
        positions.append(sink.position())
        contents.append(content())
    assert len(contents[-1]) > 2
    sink.close()
    for position, before in reversed([*zip(positions, contents, strict=True)]):
        sink = open_live_sink(url, LAYOUT)
        sink.truncate(json.loads(json.dumps(position)))
        assert content() == before
        sink.close()
    sink = open_live_sink(url, LAYOUT)
    with pytest.raises(EngineError, match="shorter than at the position"):
        sink.truncate(positions[-1])
    for number in range(1, 8):
        sink.write(rows(number))
    sink.close()
    assert content() == contents[-1]


def test_the_command_line_writes_to_a_live_sink(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"v": 1, "t": 1}\n{"v": 2, "t": 5}\n')
    query = "SELECT ?v FROM STREAM <s> WINDOW RANGE 1 MS FIXED { ?x <v> ?v }"
    (tmp_path / "m.rq").write_text("CONSTRUCT { <x> <v> ?v } {}")
    command = [sys.executable, "-m", "streamsparql", "run", "-q", query, "--map", "m.rq"]
    command += ["follow:a.jsonl?until=end", "--quiet", "-o"]
    subprocess.run([*command, "rotate:r.jsonl"], cwd=tmp_path, check=True)
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    assert [json.loads(line)["v"] for line in lines] == [1, 2]
    done = subprocess.run([*command, "mail://x/y"], cwd=tmp_path, capture_output=True, text=True)
    assert "unknown sink mail:; there are kafka:" in done.stderr
    command += ["rotate:r.jsonl", "--output", "csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "--output does not apply to the URL of -o" in done.stderr
