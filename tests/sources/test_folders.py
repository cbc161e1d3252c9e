"""Several files are one stream: merged by time, each in its own order, opened when their time comes.

The law: an item is late in the merged stream exactly if it is late in its own file; the released
items are those of all files, by timestamp.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sources import ITEMS

import streamsparql
from streamsparql.algebra.terms import IRI
from streamsparql.errors import SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import read_once
from streamsparql.sources import Accounting, Wanted, mapped, read_graph, read_stream
from streamsparql.sources.chunk import Chunk
from streamsparql.sources.disorder import MAX_JUMP, Sorter
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.folders import files_in, files_of, merge_files
from streamsparql.sources.items import chunks_of_items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = "SELECT ?o FROM STREAM <s> WINDOW RANGE 5 MS SLIDE { ?s ?p ?o }"


def nquads(stamps: list[int], file: int) -> str:
    return "".join(f'<f{file}> <p> "{k}" <t/{t}> .\n' for k, t in enumerate(stamps))


def write(folder: Path, files: list[list[int]]) -> list[Path]:
    paths = [folder / f"{k}.nq" for k in range(len(files))]
    for k, (path, stamps) in enumerate(zip(paths, files, strict=True)):
        path.write_text(nquads(stamps, k))
    return paths


Rows = list[tuple[int, str, str]]


def sort_chunks(chunks: Iterator[Chunk], terms: TermDictionary, delay: int) -> tuple[Rows, Sorter]:
    sorter = Sorter("s", delay)
    for chunk in chunks:
        sorter.push(chunk)
    sorter.advance(INFINITY)
    batch = sorter.release(INFINITY)
    texts = (terms.texts(batch.columns[name]).to_pylist() for name in (".s", ".o"))
    return list(zip(batch.start.tolist(), *texts, strict=True)), sorter


def in_memory(files: list[list[int]], terms: TermDictionary, size: int) -> Iterator[Chunk]:
    """Merge files that are lists, which are fast enough for many random tests."""

    def chunks(number: int, path: str, most: int) -> Iterator[Chunk]:
        items = [(f"<f{number}>", "<p>", f'"{k}"', t) for k, t in enumerate(files[number])]
        yield from chunks_of_items(items, Encoder(path, terms, unit="line"), min(size, most))

    return merge_files([f"{k}.nq" for k in range(len(files))], chunks, chunks, size)


NEARLY_ORDERED = st.tuples(st.integers(0, 60), st.lists(st.integers(-4, 9), max_size=20)).map(
    lambda drawn: [max(0, drawn[0] + sum(drawn[1][: k + 1])) for k in range(len(drawn[1]))]
)
FILES = st.lists(NEARLY_ORDERED, min_size=1, max_size=4)


@given(FILES, st.integers(1, 25), st.integers(0, 6))
def test_item_is_late_exactly_if_it_is_late_in_its_own_file(files, size, delay):
    terms = TermDictionary()
    rows, sorter = sort_chunks(in_memory(files, terms, size), terms, delay)
    in_time, late = [], set()
    for number, stamps in enumerate(files):
        time = -1
        for k, t in enumerate(stamps):
            if t >= time - delay:
                in_time.append((t, f"<f{number}>", f'"{k}"'))
            else:
                late.add((f"{number}.nq", k + 1))
            time = max(time, t)
    assert sorted(rows) == sorted(in_time)
    assert [t for t, *_ in rows] == sorted(t for t, *_ in rows)
    assert {(r.source, r.position) for r in sorter.rejects} == late
    assert all(r.unit == "line" for r in sorter.rejects)
    assert sorter.accounting.read == sum(map(len, files))


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=8).map(sorted), min_size=1, max_size=4),
    st.integers(1, 9),
)
def test_items_of_one_instant_are_in_the_order_of_their_files(files, size):
    terms = TermDictionary()
    rows, _ = sort_chunks(in_memory(files, terms, size), terms, 0)
    assert rows == sorted(rows, key=lambda item: (item[0], item[1], int(item[2].strip('"'))))


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_bogus_stamp_in_one_file_delays_no_other_item(size):
    bogus = 400 * MAX_JUMP
    files = [[10, 20, bogus, 30, 40], [bogus, 5, 15, 25, 35, 45]]
    terms = TermDictionary()
    rows, sorter = sort_chunks(in_memory(files, terms, size), terms, 0)
    assert [t for t, *_ in rows] == [5, 10, 15, 20, 25, 30, 35, 40, 45]
    assert {(r.source, r.position) for r in sorter.rejects} == {("0.nq", 3), ("1.nq", 1)}


def test_gap_in_one_file_is_accepted(tmp_path):
    night = 3 * MAX_JUMP
    write(tmp_path, [[10, night, night + 5], [MAX_JUMP // 2, MAX_JUMP, 2 * MAX_JUMP, night + 1]])
    terms = TermDictionary()
    rows, sorter = sort_chunks(read_stream(tmp_path, "s", terms), terms, 0)
    assert len(rows) == 7
    assert sorter.rejects == []


# -- which files -------------------------------------------------------------------------------------


def test_folder_is_listed_by_name_without_hidden_files(tmp_path):
    for name in ("b.nq", "a.csv.gz", "_SUCCESS", ".hidden.nq", "README", "in/c.jsonl", "_tmp/d.nq"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    names = [Path(path).relative_to(tmp_path).as_posix() for path in files_in(str(tmp_path))]
    assert names == ["a.csv.gz", "b.nq", "in/c.jsonl"]
    assert files_of(str(tmp_path / "*.nq")) == [str(tmp_path / "b.nq")]
    assert files_of([tmp_path / "x.nq", str(tmp_path)]) == [
        str(tmp_path / "x.nq"),
        *files_in(str(tmp_path)),
    ]


def test_duplicate_files_are_an_error_in_a_list_and_read_once_in_a_folder(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a.nq", "in/b.nq"):
        (tmp_path / name).touch()
    files = files_of(str(tmp_path / "**"))
    assert files == [str(tmp_path / "a.nq"), str(tmp_path / "in/b.nq")]
    (tmp_path / "in" / "latest.nq").symlink_to(tmp_path / "in" / "b.nq")
    assert files_of(str(tmp_path)) == files
    (tmp_path / "a.nq").write_text("<a> <p> <b> .\n")
    for duplicate in ("a.nq", "in/../a.nq", "."):
        paths = [tmp_path / "a.nq", tmp_path / duplicate]
        with pytest.raises(SourceError, match="duplicate file"):
            list(read_stream(paths, "s", TermDictionary()))
        batch, rejects = read_graph(paths, "g", TermDictionary())  # a graph is a set
        assert (len(batch), rejects) == (1, [])


def test_without_known_extensions_all_files_of_a_folder_are_read(tmp_path):
    for k in range(2):
        (tmp_path / f"sensor{k}.stream").write_text(f"v,t\n{k},{k + 5}\n")
    mapping = "CONSTRUCT { <x> <y> ?v ; <z> ?FILE } {}"
    terms = TermDictionary()
    chunks = list(read_stream(mapped(tmp_path, mapping), "s", terms))
    objects = [text for chunk in chunks for text in terms.texts(chunk.o).to_pylist()]
    assert objects == ['"0"', '"sensor0.stream"', '"1"', '"sensor1.stream"']
    assert [t for chunk in chunks for t in chunk.stamps.tolist()] == [5, 5, 6, 6]


def test_files_of_several_formats_are_one_stream(tmp_path):
    (tmp_path / "1.nq").write_text('<a> <p> "1" <t/1> .\nrubbish\n<a> <p> "3" <t/3> .\n')
    (tmp_path / "2.csv").write_text('s,p,o,t\n<a>,<p>,"""2""",2\n<a>,<p>,b,2\n')
    result = streamsparql.compile(STREAM).run(str(tmp_path))
    assert [(str(row["o"]), row.start) for row in result] == [("1", 1), ("2", 2), ("3", 3)]
    assert [(Path(r.source).name, r.unit, r.position) for r in result.rejected] == [
        ("1.nq", "line", 2),
        ("2.csv", "row", 3),
    ]
    listed = streamsparql.compile(STREAM).run([tmp_path / "2.csv", tmp_path / "1.nq"])
    assert [row.start for row in listed] == [1, 2, 3]


def test_live_query_reads_several_files(tmp_path):
    paths = write(tmp_path, [[1, 4, 9], [2, 3]])
    for source in (tmp_path, paths, [str(path) for path in paths]):
        with streamsparql.compile(STREAM).open() as live:
            live.push_many("s", source)
        assert [row.start for row in live.rows()] == [1, 2, 3, 4, 9]


def test_empty_folder_and_missing_file_are_errors(tmp_path):
    with pytest.raises(SourceError, match="the folder contains no files"):
        list(read_stream(tmp_path, "s", TermDictionary()))
    with pytest.raises(SourceError, match=r"none\.nq: No such file"):
        list(read_stream([tmp_path / "none.nq", tmp_path / "other.nq"], "s", TermDictionary()))


def test_graph_may_be_in_several_files(tmp_path):
    (tmp_path / "a.ttl").write_text("<http://a> <http://p> 1 .")
    (tmp_path / "b.nt").write_text("<http://a> <http://p> <http://b> .\nrubbish\n")
    for source in (tmp_path, [tmp_path / "a.ttl", tmp_path / "b.nt"]):
        batch, (reject,) = read_graph(source, "g", TermDictionary())
        assert (len(batch), reject.source) == (2, str(tmp_path / "b.nt"))


# -- how much is read at a time ----------------------------------------------------------------------


def test_files_are_opened_when_their_time_comes(tmp_path):
    """Of a thousand successive files, one or two are open at a time."""
    open_now: set[int] = set()
    most = 0

    def chunks(number: int, path: str, size: int) -> Iterator[Chunk]:
        nonlocal most
        open_now.add(number)
        most = max(most, len(open_now))
        items = [("<a>", "<p>", "<b>", number * 100 + k) for k in range(50)]
        yield from chunks_of_items(items, Encoder("s", TermDictionary()), 10)
        open_now.discard(number)

    def probe(number: int, path: str, size: int) -> Iterator[Chunk]:
        items = [("<a>", "<p>", "<b>", number * 100)]
        yield from chunks_of_items(items, Encoder("s", TermDictionary()), 1)

    order = [(k * 7) % 1000 for k in range(1000)]
    names = [str(k) for k in order]
    stamps = [
        t
        for chunk in merge_files(
            names,
            lambda n, p, s: chunks(order[n], p, s),
            lambda n, p, s: probe(order[n], p, s),
            100,
        )
        for t in chunk.stamps.tolist()
    ]
    assert stamps == sorted(stamps)
    assert len(stamps) == 50_000
    assert most <= 2


def test_terms_of_items_read_ahead_keep_their_ids(tmp_path):
    """The dictionary is recycled meanwhile; ids of items that files have read ahead stay in use."""
    write(tmp_path, [list(range(k, 3000, 3)) for k in range(3)])
    terms, sorter = TermDictionary(), Sorter("s")
    rows: Rows = []
    for chunk in read_stream(tmp_path, "s", terms, chunk=100):
        sorter.push(chunk)
        batch = sorter.release(sorter.watermark)
        texts = (terms.texts(batch.columns[name]).to_pylist() for name in (".s", ".o"))
        rows += zip(batch.start.tolist(), *texts, strict=True)
        del chunk, batch
        terms.recycle(sorter.retained_ids())
    sorter.advance(INFINITY)
    assert len(rows) + len(sorter) == 3000
    assert all((s, o) == (f"<f{t % 3}>", f'"{t // 3}"') for t, s, o in rows)


# -- Spark --------------------------------------------------------------------------------------------


def test_spark_reads_overlapping_and_mapped_files_like_the_embedded_engine(
    spark: SparkSession, tmp_path: Path
) -> None:
    from streamsparql.spark import prepare

    query = streamsparql.compile(STREAM)
    (tmp_path / "quads").mkdir()
    write(tmp_path / "quads", [[1, 4, 9, 7, 12], [2, 3, 8, 11, 10], [30, 31]])
    (tmp_path / "tables").mkdir()
    for k in range(2):
        rows = [f"{k}-{t},{t}" for t in (5 + k, 9, 3, 20)] + ["x,soon"]
        (tmp_path / "tables" / f"{k}.stream").write_text("v,t\n" + "\n".join(rows))
    tables = mapped(tmp_path / "tables", "CONSTRUCT { <x> <y> ?v ; <row> ?ROWNUM ; <f> ?FILE } {}")
    sources: list[Any] = [tmp_path / "quads", tables]
    for source in sources:
        ours = query.run(source, engine="spark", spark=spark, slabs=2)
        theirs = query.run(source)
        assert sorted(map(repr, ours)) == sorted(map(repr, theirs))
        assert [*ours.late, *ours.rejected]
        for mine, other in ((ours.late, theirs.late), (ours.rejected, theirs.rejected)):
            assert sorted(map(fields, mine)) == sorted(map(fields, other))
    prepared = prepare(spark, tables, tmp_path / "prepared")
    theirs = query.run(tables, max_delay=100)
    assert sorted(map(repr, query.run(prepared.path))) == sorted(map(repr, theirs))
    rejects = [*theirs.late, *theirs.rejected]
    assert sorted(map(fields, prepared.rejects)) == sorted(map(fields, rejects))


def fields(reject: Any) -> tuple[Any, ...]:
    return reject.source, reject.unit, reject.position, reject.reason


def test_list_of_items_is_not_a_list_of_files(tmp_path):
    """Tuples of strings are not paths."""
    assert files_of(ITEMS) is None
    assert files_of([]) is None


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
def test_pipe_cannot_be_merged_with_other_files(tmp_path: Path) -> None:
    """Merging reads ahead, which would consume items of the pipe."""
    os.mkfifo(tmp_path / "a.nq")
    (tmp_path / "b.nq").write_text("<a> <p> <b> <t/1> .\n")
    for source in (tmp_path, [tmp_path / "b.nq", tmp_path / "a.nq"]):
        with pytest.raises(SourceError, match=r"a\.nq can be read only once.*; pass it alone"):
            list(read_stream(source, "<s>", TermDictionary()))
    pipes = [tmp_path / "a.nq", [str(tmp_path / "a.nq")], ["-"]]
    assert all(map(read_once, pipes))
    assert not read_once(tmp_path / "b.nq")


KINDS = st.sampled_from(["<a> <p> <b>", "<a> <q> <b>", '"a" <p> <b>', "rubbish"])
LINES = st.lists(st.tuples(KINDS, st.integers(0, 30)), max_size=12)


@given(st.lists(LINES, min_size=2, max_size=3), st.integers(1, 9))
def test_rejects_are_reported_where_they_were_read(files: list[Any], size: int) -> None:
    """The accounting is right at any time, not only at the end."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for k, lines in enumerate(files):
            stamped = (kind if kind == "rubbish" else f"{kind} <t/{t}>" for kind, t in lines)
            text = "".join(f"{line} .\n" for line in stamped)
            (folder / f"{k}.nq").write_text(text)
        terms = TermDictionary()
        wanted = Wanted(frozenset([terms.id_of(IRI("p"))]))
        sorter = Sorter("s", max_delay=INFINITY // 4)
        for chunk in read_stream(folder, "<s>", terms, wanted=wanted, chunk=size):
            sorter.push(chunk)
            assert 0 <= sorter.accounting.unmatched <= sorter.accounting.accepted
        sorter.advance(INFINITY)
        kinds = [kind for lines in files for kind, _ in lines]
        accepted = sum(kind.startswith("<") for kind in kinds)
        unmatched = sum("<q>" in kind for kind in kinds)
        rejected = len(kinds) - accepted
        assert sorter.accounting == Accounting(len(kinds), accepted, 0, rejected, unmatched)
        assert len({(r.source, r.position) for r in sorter.rejects}) == rejected
