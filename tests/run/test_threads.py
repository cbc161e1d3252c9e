"""Threads that push to one open query, or one session: each item counts once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from typing import Any

import pytest

import streamsparql
from streamsparql.errors import EngineError

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

TEXT = "SELECT ?s ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }"
MAPPINGS = ["CONSTRUCT { <a> <p> ?v } {}", "CONSTRUCT { <b> <p> ?v } {}"]
COUNT, THREADS = 300, 4


@pytest.fixture(autouse=True)
def many_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], None]) -> None:
    """Call a function in threads that begin together, with their numbers; raise their errors."""
    barrier, errors = Barrier(THREADS), list[BaseException]()

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for error in errors:
        raise error


@pytest.mark.parametrize("kind", ["query", "session"])
def test_items_of_all_threads_count_once(kind: str) -> None:
    rows: list[Any] = []
    if kind == "query":
        opened: Any = streamsparql.compile(TEXT).open(max_delay=10_000)
        read = opened.rows
    else:
        opened = streamsparql.Session(max_delay=10_000)
        read = opened.register(TEXT).rows

    def work(number: int) -> None:
        for k in range(COUNT):
            value = number * COUNT + k
            if k % 3 == 0:
                opened.push("s", ("<t>", "<p>", value), value)
            elif k % 3 == 1:
                opened.push_many("s", [("<t>", "<p>", value, value)])
            else:
                opened.push_record("s", {"v": value, "t": value}, MAPPINGS[number % 2])
            if k % 50 == 7:
                rows.extend(read())

    in_threads(work)
    opened.close()
    rows.extend(read())
    shown = sorted((row.value("o"), str(row["s"])) for row in rows)
    assert [value for value, _ in shown] == list(range(THREADS * COUNT))
    assert opened.stats().items.accepted == THREADS * COUNT
    for value, subject in shown:
        if value % COUNT % 3 == 2:
            assert subject.endswith("ab"[value // COUNT % 2])


def test_queries_are_registered_while_items_are_pushed() -> None:
    session = streamsparql.Session(max_delay=10_000)
    first = session.register(TEXT)

    def work(number: int) -> None:
        for k in range(60):
            if number:
                session.push("s", ("<t>", "<p>", k), number * 60 + k)
            elif not k % 10:
                session.register(TEXT.replace("?s ?o", "?o"), f"q{k}")
                session.stats()

    in_threads(work)
    session.close()
    assert len(first.rows()) == 60 * (THREADS - 1)


def test_a_source_that_pushes_to_its_own_query_is_refused() -> None:
    live = streamsparql.compile(TEXT).open()

    def source() -> Iterator[Any]:
        yield "<a>", "<p>", 1, 1
        live.push("s", ("<a>", "<p>", 2), 2)

    with pytest.raises(EngineError, match="its source calls again"):
        live.push_many("s", source())
