"""Growing files: lines as they are written, rotation, truncation, positions that survive both."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import streamsparql
from streamsparql.connectors.message_source import MessageSource
from streamsparql.connectors.sources import open_source
from streamsparql.errors import SourceError

QUERY = "SELECT ?v FROM STREAM <s> WINDOW RANGE 1 MS FIXED { ?x <v> ?v }"
MAPPING = "CONSTRUCT { <x> <v> ?v } {}"
Open: TypeAlias = Callable[[Path], MessageSource]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Yield a function that follows a file; it is closed after the test."""
    sources = []

    def open_path(path: Path) -> MessageSource:
        sources.append(open_source(f"follow:{path}", "s", mapping=MAPPING))
        return sources[-1]

    yield open_path
    for source in sources:
        source.close()


def values(source: MessageSource, timeout: float = 0) -> list[str]:
    """Return the values of the items that a poll delivers."""
    texts: list[str] = []
    for _, items in source.poll(timeout):
        texts += items.items["object"].to_pylist()
    return [text.split('"')[1] for text in texts]


def write(path: Path, *numbers: int) -> None:
    with path.open("a") as file:
        file.writelines(f'{{"v": {n}, "t": {n}}}\n' for n in numbers)


def test_a_line_counts_once_its_end_is_there(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "a.jsonl"
    write(path, 1)
    source = opened(path)
    with path.open("a") as file:
        file.write('{"v": 2,')
        file.flush()
        assert values(source) == ["1"]
        file.write(' "t": 2}\n')
    assert values(source) == ["2"]
    assert values(source) == []


def test_a_file_may_appear_later(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "a.jsonl"
    source = opened(path)
    assert values(source) == []
    write(path, 1)
    assert values(source) == ["1"]


def test_a_rotated_file_is_read_to_its_end(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "a.jsonl"
    write(path, 1)
    source = opened(path)
    assert values(source) == ["1"]
    write(path, 2)
    path.rename(tmp_path / "a.jsonl.1")
    write(path, 3)
    assert values(source) + values(source) == ["2", "3"]


def test_a_truncated_file_is_read_from_its_beginning(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "a.jsonl"
    write(path, 1, 2)
    source = opened(path)
    assert values(source) == ["1", "2"]
    path.write_text("")
    write(path, 3)
    assert values(source) == ["3"]


def test_a_file_that_was_rotated_while_it_was_not_read_is_found(
    tmp_path: Path, opened: Open
) -> None:
    path = tmp_path / "a.jsonl"
    write(path, 1)
    source = opened(path)
    assert values(source) == ["1"]
    position = source.position()
    source.close()
    write(path, 2)
    path.rename(tmp_path / "a.jsonl.1")
    write(path, 3)
    path.rename(tmp_path / "a.jsonl.0")
    os.utime(tmp_path / "a.jsonl.1", ns=(1, 1))
    write(path, 4)
    again = opened(path)
    again.seek(position)
    assert values(again) + values(again) + values(again) == ["2", "3", "4"]


def test_a_file_that_was_replaced_is_an_error(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "a.jsonl"
    write(path, 1)
    source = opened(path)
    values(source)
    position = source.position()
    path.unlink()
    write(path, 7, 8)
    with pytest.raises(SourceError, match="was replaced"):
        opened(path).seek(position)


def test_any_position_leads_to_the_items_after_it(tmp_path: Path, opened: Open) -> None:
    """Whatever is written, rotated and polled in between, nothing is lost and nothing repeated."""
    for seed in range(30):
        draw = random.Random(seed)
        path = tmp_path / f"{seed}.jsonl"
        write(path, 0)
        number, read, source = 1, list[str](), opened(path)
        for step in range(30):
            match draw.randrange(4):
                case 0:
                    write(path, *range(number, number + draw.randrange(4)))
                    number = _lines(tmp_path, seed)
                case 1 if path.exists():
                    path.rename(tmp_path / f"{seed}.jsonl.{step}")
                    os.utime(tmp_path / f"{seed}.jsonl.{step}", ns=(step, step))
                case 2:
                    read += values(source)
                case 3:
                    position = source.position()
                    source.close()
                    source = opened(path)
                    source.seek(position)
        write(path, number)
        for _ in range(10):
            read += values(source)
        assert read == [str(k) for k in range(number + 1)], seed
        source.close()


def _lines(folder: Path, seed: int) -> int:
    return sum(len(path.read_text().splitlines()) for path in folder.glob(f"{seed}.jsonl*"))


def test_files_of_a_folder_are_aligned_by_time(tmp_path: Path) -> None:
    """No item is late because its file is read after another one."""
    write(tmp_path / "a.jsonl", *range(0, 2000, 2))
    write(tmp_path / "b.jsonl", *range(1, 2000, 2))
    url = f"follow:{tmp_path}?until=end"
    result = streamsparql.compile(QUERY).run(streamsparql.mapped(url, MAPPING))
    assert len(list(result)) == 2000
    assert not result.late


def test_lines_of_csv_have_the_columns_of_the_header(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,v\n1,x\n2,\n3,a,b\n4,y\n")
    source = opened(path)
    ((_, items),) = source.poll(0)
    assert items.items["object"].to_pylist() == ['"x"', '"y"']
    assert [reject.reason for reject in items.rejects] == ["expected 2 values, not 3"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("folow:a.nq", "No such file"),
        ("mail://a/b", "unknown source mail:; there are follow:"),
        ("follow:a.nq?until=now", "until=now: expected end"),
        ("follow:a.nq?untl=end", "unknown option untl; did you mean until"),
        ("follow:a.nq.gz", "does not grow by lines"),
        ("follow:a.bin", "missing format"),
        ("follow:a.nq?format=xml", "unknown format 'xml'"),
        ("follow:a.nq?map=m.rq", "no such file"),
        ("follow:a.nq?idle=soon", "idle=soon: expected a duration"),
    ],
)
def test_what_a_url_lacks_is_an_error(url: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        list(streamsparql.compile(QUERY).run({"s": url}))


def test_a_session_reads_a_url(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", 1, 2)
    (tmp_path / "m.rq").write_text(MAPPING)
    session = streamsparql.Session()
    query: Any = session.register(QUERY)
    session.run({"s": f"follow:{tmp_path}/a.jsonl?until=end&map={tmp_path}/m.rq"})
    assert [row.value("v") for row in query.rows()] == [1, 2]
