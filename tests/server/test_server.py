"""The HTTP interface, over real connections."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

pytest.importorskip("starlette", reason="the server is an extra")
pytest.importorskip("uvicorn", reason="the server is an extra")

from streamsparql.errors import EngineError
from streamsparql.server.security import Security
from tests.support.brokers import wait_for
from tests.support.served import Server, serving

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
VALUES = "PREFIX : <http://e/> SELECT ?s ?v FROM STREAM :s WINDOW RANGE 10 MS FIXED { ?s :v ?v }"


def quads(*times: int) -> str:
    return "".join(
        f'<http://e/a> <http://e/v> "{t}"^^<{INTEGER}> "{t}"^^<{INTEGER}> .\n' for t in times
    )


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def rows(server: Server, name: str, after: int = 0, wait: int = 5) -> list[Any]:
    answer = server.ask("GET", f"/queries/{name}/results?after={after}&wait={wait}")
    assert answer.status == 200, answer
    return [(each["id"], each["row"]) for each in answer.json["results"]]


# -- queries ---------------------------------------------------------------------------------------


def test_a_query_is_registered_read_and_removed(server: Server) -> None:
    created = server.put("values", VALUES)
    assert (created.status, created.json["variables"]) == (201, ["s", "v"])
    assert server.put("values", VALUES).status == 200
    assert [each["name"] for each in server.ask("GET", "/queries").json] == ["values"]
    assert server.push("s", quads(1003, 1025)).json == {"items": 2, "rejected": 0, "reasons": []}
    row = {"s": "http://e/a", "v": 1003, "start": 1003, "end": 1010}
    assert rows(server, "values") == [(1, row)]
    assert server.ask("GET", "/queries/values").json["rows"] == 1
    assert server.ask("DELETE", "/queries/values").status == 204
    assert server.ask("GET", "/queries/values").status == 404


def test_a_query_is_replaced_by_another_text(server: Server) -> None:
    server.put("q", VALUES)
    other = server.put("q", VALUES.replace("?s ?v", "?v"))
    assert (other.status, other.json["variables"]) == (200, ["v"])


@pytest.mark.parametrize(
    ("text", "status", "part"),
    [
        ("SELEC", 400, "did you mean SELECT?"),
        ("SELECT ?x { ?x ?p ?o SERVICE <s> { } }", 422, "SERVICE"),
        ("\udcff", 400, "not UTF-8"),
    ],
)
def test_a_wrong_text_changes_nothing(server: Server, text: str, status: int, part: str) -> None:
    server.put("q", VALUES)
    answer = server.ask("PUT", "/queries/q", text.encode(errors="surrogateescape"))
    assert (answer.status, part in answer.json["error"]) == (status, True), answer
    assert server.ask("GET", "/queries/q").json["text"] == VALUES


def test_a_wrong_option_leaves_the_query_that_it_would_replace(server: Server) -> None:
    server.put("q", VALUES)
    answer = server.ask("PUT", "/queries/q?report=table", VALUES)
    assert answer.status == 400
    assert "rstream" in answer.json["error"]
    assert server.ask("PUT", "/queries/q?reprt=rstream", VALUES).status == 400
    assert server.ask("GET", "/queries/q").json["options"] == {}
    server.push("s", quads(2003, 2025))
    assert len(rows(server, "q")) == 1


def test_a_query_whose_output_is_read_stays(server: Server) -> None:
    window = "FROM STREAM <http://e/s> [RANGE 10ms STEP 10ms]"
    feed = f"REGISTER STREAM <http://e/t> AS CONSTRUCT {{ ?s <p> ?v }} {window} {{ ?s ?p ?v }}"
    server.put("feed", feed)
    reader = "SELECT ?s FROM STREAM <http://e/t> [RANGE 10ms STEP 10ms] { ?s ?p ?o }"
    assert server.put("reader", reader).status == 201
    refused = server.ask("DELETE", "/queries/feed")
    assert refused.status == 409
    assert "unregister" in refused.json["error"]
    assert server.ask("DELETE", "/queries/reader").status == 204


def test_instances_of_parameters(server: Server) -> None:
    server.put("q", VALUES.replace("?s :v", "$who :v").replace("?s ?v", "?v"))
    keys = server.ask("POST", "/queries/q/instances", json.dumps([{"who": "<http://e/a>"}])).json
    server.push("s", quads(3003, 3025))
    ((_, row),) = rows(server, "q")
    assert (row["key"], row["who"], row["v"]) == (keys["keys"][0], "http://e/a", 3003)
    assert server.ask("DELETE", f"/queries/q/instances/{keys['keys'][0]}").status == 204
    assert server.ask("POST", "/queries/q/instances", "[1]").status == 400


def test_plans_are_shown(server: Server) -> None:
    server.put("q", VALUES)
    server.push("s", quads(4003, 4025))
    assert "TriplePatternMatching" in server.ask("GET", "/explain").body.decode()
    picture = server.ask("GET", "/queries/q/explain?format=svg")
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert picture.body.startswith(b"<svg")
    assert server.ask("GET", "/queries/q/explain?format=x").status == 400


def test_a_text_is_checked(server: Server) -> None:
    (error,) = server.ask("POST", "/check", "SELECT ?x WHER {}").json
    assert (error["severity"], error["line"], error["column"]) == ("error", 1, 11)
    assert server.ask("POST", "/check", VALUES).json == []


# -- items -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "path", "body"),
    [
        ("application/n-quads", "", quads(5003)),
        (
            "application/jsonl",
            "",
            '{"s": "<http://e/a>", "p": "<http://e/v>", "o": "\\"5\\"", "t": 5003}',
        ),
        (
            "application/json",
            "",
            '[{"s": "<http://e/a>", "p": "<http://e/v>", "o": "\\"5\\"", "t": 5003}]',
        ),
        (
            "application/json; charset=utf-8",
            "?map=" + quote("CONSTRUCT { <http://e/a> <http://e/v> ?v } {}"),
            '{"v": 5, "t": 5003}',
        ),
        (
            "text/csv",
            "?map=" + quote("CONSTRUCT { <http://e/a> <http://e/v> ?v } {}"),
            "v,t\n5,5003\n",
        ),
    ],
)
def test_items_in_many_formats(kind: str, path: str, body: str) -> None:
    with serving() as server:
        server.put("q", VALUES)
        answer = server.ask("POST", f"/streams/s{path}", body, content_type=kind)
        assert answer.json == {"items": 1, "rejected": 0, "reasons": []}
        answer = server.ask("POST", f"/streams/{quote('http://e/s', '')}?advance=5025")
        assert answer.status == 200, answer
        ((_, row),) = rows(server, "q")
        assert (row["start"], row["end"]) == (5003, 5010)


def test_graphs_are_stamped_by_their_arrival(server: Server) -> None:
    server.put("q", VALUES)
    answer = server.ask(
        "POST", "/streams/s", "<http://e/a> <http://e/v> 1, 2 .", content_type="text/turtle"
    )
    assert answer.json["items"] == 2


@pytest.mark.parametrize(
    ("path", "kind", "body", "status", "part"),
    [
        ("s", "application/n-quads", "no quad", 400, "not a line of N-Quads"),
        ("s", "application/zip", "x", 400, "unknown Content-Type 'application/zip'"),
        ("t", "application/n-quads", "", 404, "unknown stream 't'"),
        ("s?mp=auto", "application/json", "{}", 400, "unknown option mp"),
        ("s?map=x.rq", "application/json", "{}", 400, "map must be auto"),
        ("s?stamp=x", "application/json", "{}", 400, "stamp must be arrival"),
        ("s?advance=soon", "application/json", "", 400, "soon"),
        ("s", "application/json", "[1", 400, "not JSON"),
        ("s", "application/json", "[" * 100_000, 400, "not JSON"),
        ("s?map=auto", "text/csv", b"\xff,b\n1,2\n", 400, "not a header of CSV"),
    ],
)
def test_items_that_are_none(
    server: Server, path: str, kind: str, body: str, status: int, part: str
) -> None:
    server.put("q", VALUES)
    answer = server.ask("POST", f"/streams/{path}", body, content_type=kind)
    assert answer.status == status, answer
    assert part in answer.body.decode()
    assert server.ask("GET", "/healthz").status == 200


def test_streams_and_metrics_count_what_became_of_items() -> None:
    with serving() as server:
        server.put("q", VALUES)
        server.push("s", quads(6003, 6025, 6001) + "no quad\n")
        known = server.ask("GET", "/streams").json
        assert known["streams"][0] == {
            "stream": "http://e/s",
            "watermark": 6025,
            "time": "1970-01-01T00:00:06.025000Z",
        }
        assert [known["items"][name] for name in ("accepted", "late", "rejected")] == [2, 1, 1]
        rows(server, "q")
        text = server.ask("GET", "/metrics").body.decode()
        assert 'streamsparql_items_total{fate="late"} 1\n' in text
        assert 'streamsparql_rows_total{query="q"} 1\n' in text
        assert all(re.fullmatch(r"#.*|[a-z_]+(\{.*\})? \S+", line) for line in text.splitlines())


# -- results ---------------------------------------------------------------------------------------


def test_a_long_poll_waits_for_rows(server: Server) -> None:
    server.put("q", VALUES)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(rows, server, "q", 0, 20)
        time.sleep(0.2)
        assert not waiting.done()
        server.push("s", quads(7003, 7025))
        assert [number for number, _ in waiting.result()] == [1]
    assert rows(server, "q", 1, 0) == []
    assert server.ask("GET", "/queries/q/results?after=x").status == 400


def events(server: Server, path: str, **headers: str) -> Iterator[tuple[str, str]]:
    """Yield the events of a response, with their ids or kinds."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    connection.request("GET", path, headers={"accept": "text/event-stream", **headers})
    response = connection.getresponse()
    assert response.getheader("content-type", "").startswith("text/event-stream")
    known = ""
    try:
        while line := response.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name in ("id", "event"):
                known = value
            elif name == "data":
                yield known, value
    finally:
        connection.close()


def test_events_continue_after_the_last_one(server: Server) -> None:
    server.put("q", VALUES)
    server.push("s", quads(*range(8003, 8103, 10)))
    assert len(rows(server, "q")) == 9
    all_events = events(server, "/queries/q/results?after=0")
    first = [next(all_events) for _ in range(9)]
    assert [number for number, _ in first] == [str(k) for k in range(1, 10)]
    headers = {"last-event-id": "7"}
    again = events(server, "/queries/q/results", **headers)
    assert [next(again), next(again)] == first[7:]
    server.ask("DELETE", "/queries/q")
    assert [number for number, _ in all_events][-1] == "end"


def test_missing_events_are_told() -> None:
    with serving(retained=3) as server:
        server.put("q", VALUES)
        server.push("s", quads(*range(8003, 8103, 10)))
        while server.ask("GET", "/queries/q").json["rows"] < 9:
            time.sleep(0.01)
        missing, first, *_ = islice(events(server, "/queries/q/results?after=2"), 4)
        assert missing == ("missing", "4")
        assert first[0] == "7"
        assert server.ask("GET", "/queries/q/results?after=2").json["missing"] == 4


def test_websockets_send_rows_as_they_come(server: Server) -> None:
    client = pytest.importorskip("websockets.sync.client")
    server.put("q", VALUES)
    url = server.url.replace("http", "ws") + "/queries/q/results"
    with client.connect(url) as socket:
        server.push("s", quads(9003, 9025))
        message = json.loads(socket.recv(timeout=20))
        assert (message["id"], message["row"]["v"]) == (1, 9003)
    with client.connect(f"{url}?after=0") as socket:
        assert json.loads(socket.recv(timeout=20)) == message
        server.ask("DELETE", "/queries/q")
    refused = pytest.importorskip("websockets.exceptions").InvalidStatus
    with pytest.raises(refused):
        client.connect(url, origin="http://evil.example")


# -- security --------------------------------------------------------------------------------------


def test_changes_need_the_token() -> None:
    with serving(Security("127.0.0.1", token="secret")) as server:
        assert server.put("q", VALUES).status == 401
        wrong = server.ask("PUT", "/queries/q", VALUES, authorization="Bearer secre")
        assert wrong.status == 401
        right = server.ask("PUT", "/queries/q", VALUES, authorization="Bearer secret")
        assert right.status == 201
        assert server.push("s", quads(1)).status == 401
        assert server.ask("GET", "/queries/q").status == 200


def test_pages_of_other_origins_change_nothing(server: Server) -> None:
    other = {"origin": "http://evil.example"}
    assert server.ask("PUT", "/queries/q", VALUES, **other).status == 403
    read = server.ask("GET", "/queries", **other)
    assert "access-control-allow-origin" not in read.headers
    assert server.ask("PUT", "/queries/q", VALUES, origin=server.url).status == 201
    assert server.ask("GET", "/queries", host="evil.example").status == 421


def test_origins_that_are_allowed() -> None:
    with serving(Security("127.0.0.1", origins=["http://page.example"])) as server:
        asked = server.ask("OPTIONS", "/queries/q", origin="http://page.example")
        assert asked.status == 204
        assert asked.headers["access-control-allow-origin"] == "http://page.example"
        changed = server.ask("PUT", "/queries/q", VALUES, origin="http://page.example")
        assert changed.status == 201
        assert changed.headers["access-control-allow-origin"] == "http://page.example"


def test_other_machines_need_a_token() -> None:
    with pytest.raises(EngineError, match="set a token"):
        Security("0.0.0.0").check()
    Security("0.0.0.0", token="secret").check()


# -- the command -----------------------------------------------------------------------------------


def start(folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start the command; return its process and its first line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "streamsparql", "serve", "--port", "0", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "STREAMSPARQL_TOKEN": ""},
    )
    assert process.stderr is not None
    return process, process.stderr.readline()


def test_the_command_serves_files_with_queries_and_live_sources(tmp_path: Path) -> None:
    (tmp_path / "values.rq").write_text(VALUES)
    (tmp_path / "s.nq").write_text(quads(1003, 1025))
    process, line = start(tmp_path, "values.rq", "--stream", "follow:s.nq")
    try:
        (url,) = re.findall(r"http://\S+(?=;)", line)
        server = Server(url, None, None)  # type: ignore[arg-type]
        assert [row["v"] for _, row in rows(server, "values", 0, 20)] == [1003]
        with open(tmp_path / "s.nq", "a") as file:
            file.write(quads(1043))
        assert [row["v"] for _, row in rows(server, "values", 1, 20)] == [1025]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        process.stderr.close()  # type: ignore[union-attr]


def test_a_server_that_is_killed_continues_from_its_last_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "values.rq").write_text(VALUES)
    (tmp_path / "s.nq").write_text(quads(1003, 1025))
    words = ("values.rq", "--stream", "follow:s.nq", "--checkpoint", "state")
    stamps = [1003, 1025, 1043, 1061, 1083]
    for k, stamp in enumerate(stamps[2:]):
        process, line = start(tmp_path, *words, "--checkpoint-every", "50ms")
        try:
            (url,) = re.findall(r"http://\S+(?=;)", line)
            server = Server(url, None, None)  # type: ignore[arg-type]
            assert rows(server, "values", 0, 20)[0][1]["v"] == 1003
            if k == 0:
                server.put("late", VALUES)
                first = saved(tmp_path)
                wait_for(lambda: saved(tmp_path) > first + 1, "a checkpoint")  # noqa: B023
            with open(tmp_path / "s.nq", "a") as file:
                file.write(quads(stamp))
            assert [number for number, _ in rows(server, "values", k + 1, 20)] == [k + 2]
            known = [(number, row["v"]) for number, row in rows(server, "values")]
            assert known == [*enumerate(stamps[: k + 2], 1)]
            if k:
                assert [number for number, _ in rows(server, "late", k, 20)] == [k + 1]
                assert [row["v"] for _, row in rows(server, "late")] == stamps[1 : k + 2]
            text = server.ask("GET", "/metrics").body.decode()
            (age,) = re.findall(r"\nstreamsparql_checkpoint_age_seconds (\S+)", text)
            assert 0 <= float(age) < 20
            assert server.ask("GET", "/streams").json["items"]["accepted"] == 3 + k
            time.sleep(0.05 * k)
        finally:
            process.kill()
            process.wait(30)
            process.stderr.close()  # type: ignore[union-attr]
    for words, part in (
        (("--max-delay", "5"), "max_delay has changed"),
        (("--checkpoint-every", "5s"), "--checkpoint-every requires"),
    ):
        state = ("--checkpoint", "state") if "--max-delay" in words else ()
        process, line = start(tmp_path, *state, *words)
        assert process.wait(30)
        process.stderr.close()  # type: ignore[union-attr]
        assert part in line


def saved(folder: Path) -> int:
    """Return the number of the last checkpoint."""
    return max((int(file.name[-8:]) for file in (folder / "state").glob("checkpoint-*")), default=0)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--host", "0.0.0.0"), "set a token"),
        (("none.rq",), "none.rq: "),
        (("wrong.rq",), "wrong.rq: line 1"),
        (("--port", "99999"), "cannot listen on"),
        (("--max-delay", "auto"), "a stream has no end"),
        (("--stream", "mail://host"), "--stream"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, arguments: tuple[str, ...], part: str) -> None:
    (tmp_path / "wrong.rq").write_text("SELEC")
    process, line = start(tmp_path, *arguments)
    with process:
        assert process.stderr is not None
        assert part in line + process.stderr.read()
        assert process.wait(30) != 0
