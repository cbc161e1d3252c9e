"""All items are accounted for: items read = accepted + late + rejected, whatever the input is.

Random mixtures of good, late, malformed and unmatched items are written in every format, read in
chunks of any size and sorted. A reference without formats and chunks computes the fate of each
item. Not tested here: bogus stamps in the future, which tests/sources/test_disorder.py covers.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamsparql
from streamsparql.algebra.terms import IRI
from streamsparql.errors import SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.sources import Accounting, Wanted, mapped, read_graph, read_stream
from streamsparql.sources.disorder import Sorter

FIELDS = ("subject", "predicate", "object", "timestamp")


class Entry(NamedTuple):
    """A line, row or item of a file."""

    kind: str
    t: int


ENTRIES = st.lists(
    st.builds(
        Entry,
        st.sampled_from(["good"] * 4 + ["unmatched", "unmatched", "literal", "untimed", "rubbish"]),
        st.integers(0, 40),
    ),
    max_size=25,
)


def cells(k: int, entry: Entry) -> tuple[str, str, str, str]:
    """Return the fields of an entry; its object is its number."""
    subject = '"a"' if entry.kind == "literal" else "<a>"
    predicate = "<q>" if entry.kind == "unmatched" else "<p>"
    return subject, predicate, f'"{k}"', "soon" if entry.kind == "untimed" else str(entry.t)


def nquads(entries: list[Entry]) -> bytes:
    lines = []
    for k, entry in enumerate(entries):
        s, p, o, t = cells(k, entry)
        lines.append("rubbish" if entry.kind == "rubbish" else f"{s} {p} {o} <t/{t}> .")
    return "\n".join(lines).encode()


def separated(entries: list[Entry], delimiter: str) -> bytes:
    out = io.StringIO()
    plain = delimiter == "\t"
    write = csv.writer(out, delimiter=delimiter, lineterminator="\n").writerow
    for row in [FIELDS, *(cells(k, entry) for k, entry in enumerate(entries))]:
        if plain:
            out.write("\t".join(row) + "\n")
        else:
            write(row)
    lines = out.getvalue().split("\n")
    for k, entry in enumerate(entries, 1):
        lines[k] = "rubbish" if entry.kind == "rubbish" else lines[k]
    return "\n".join(lines).encode()


def json_lines(entries: list[Entry]) -> bytes:
    rows = (
        json.dumps(dict(zip(FIELDS, cells(k, entry), strict=True)))
        for k, entry in enumerate(entries)
    )
    lines = [
        "rubbish" if e.kind == "rubbish" else row for e, row in zip(entries, rows, strict=True)
    ]
    return "\n".join(lines).encode()


def table(entries: list[Entry]) -> pa.Table:
    rows = [cells(k, entry) for k, entry in enumerate(entries)]
    rows = [
        ("", "", "", "") if e.kind == "rubbish" else r for e, r in zip(entries, rows, strict=True)
    ]
    columns = zip(*rows, strict=True) if rows else [[]] * 4
    return pa.table([pa.array(list(column), pa.string()) for column in columns], FIELDS)


def named(data: bytes, name: str) -> io.BytesIO:
    file = io.BytesIO(data)
    file.name = name
    return file


def in_memory(entries: list[Entry]) -> list[Any]:
    items = [cells(k, entry) for k, entry in enumerate(entries)]
    return [7 if e.kind == "rubbish" else item for e, item in zip(entries, items, strict=True)]


def as_parquet(entries: list[Entry]) -> io.BytesIO:
    out = io.BytesIO()
    parquet.write_table(table(entries), out)
    return named(out.getvalue(), "x.parquet")


def as_mapped(entries: list[Entry]) -> Any:
    """Return a mapped table with other column names, whose template omits literal subjects."""
    text = separated(entries, ",").replace(b"subject,predicate,object,timestamp", b"s,p,o,t", 1)
    mapping = """CONSTRUCT { ?a <p> ?pv . ?a <q> ?qv } WHERE {
        BIND(IF(?s = "<a>", <a>, 1 + "") AS ?a) BIND(IF(?p = "<p>", ?o, 1 + "") AS ?pv)
        BIND(IF(?p = "<q>", ?o, 1 + "") AS ?qv) }"""
    return mapped(named(text, "x.csv"), mapping)


FORMATS: dict[str, Callable[[list[Entry]], Any]] = {
    "nq": lambda entries: named(nquads(entries), "x.nq"),
    "csv": lambda entries: named(separated(entries, ","), "x.csv"),
    "tsv": lambda entries: named(separated(entries, "\t"), "x.tsv"),
    "jsonl": lambda entries: named(json_lines(entries), "x.jsonl"),
    "parquet": as_parquet,
    "table": table,
    "items": in_memory,
    "mapped": as_mapped,
}


class Reference(NamedTuple):
    """The expected fate of the entries."""

    matched: set[int]
    unmatched: int
    late: set[int]
    rejected: set[int]


def reference(entries: list[Entry], delay: int, kind: str) -> Reference:
    """Decide on the entries one by one."""
    fates = Reference(set(), 0, set(), set())
    time, unmatched = -1, 0
    for k, entry in enumerate(entries):
        timed = entry.kind not in ("untimed", "rubbish")
        in_time = entry.t >= time - delay
        if entry.kind == "unmatched":
            unmatched += 1
        elif entry.kind != "good":
            if not (kind == "mapped" and entry.kind == "literal"):  # its triple is omitted
                fates.rejected.add(k)
        elif in_time:
            fates.matched.add(k)
        else:
            fates.late.add(k)
        if timed and in_time and not (kind == "mapped" and entry.kind == "literal"):
            time = max(time, entry.t)
    return fates._replace(unmatched=unmatched)


@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=40)
@given(ENTRIES, st.integers(1, 30), st.integers(0, 20), st.booleans())
def test_items_read_are_accepted_or_late_or_rejected(kind, entries, size, delay, drained):
    terms = TermDictionary()
    wanted = Wanted(frozenset([terms.id_of(IRI("p"))]))
    sorter = Sorter("s", delay)
    expected = reference(entries, delay, kind)
    rejects = []
    read = 0
    for chunk in read_stream(FORMATS[kind](entries), "in", terms, wanted=wanted, chunk=size):
        sorter.push(chunk)
        read += chunk.items
        accounting = sorter.accounting
        assert accounting.read == accounting.accepted + accounting.late + accounting.rejected
        assert 0 <= accounting.unmatched <= accounting.accepted
        assert read - accounting.read in range(2)  # one may be quarantined until the next decides
        rejects += sorter.drain() if drained else []
    sorter.advance(INFINITY)
    rejects += sorter.drain()
    released = sorter.release(INFINITY)
    matched = [
        int(re.sub(r"\D", "", text)) for text in terms.texts(released.columns[".o"]).to_pylist()
    ]
    assert sorted(matched) == sorted(expected.matched)
    omitted = sum(e.kind == "literal" for e in entries) if kind == "mapped" else 0
    assert sorter.accounting == Accounting(
        read,
        len(expected.matched) + expected.unmatched,
        len(expected.late),
        len(expected.rejected),
        expected.unmatched,
        omitted,
    )
    assert read == len(entries) - omitted
    first = 2 if kind in ("csv", "tsv", "mapped") else 1
    assert sorted(r.position - first for r in rejects) == sorted(expected.late | expected.rejected)
    assert {r.position - first for r in rejects if "late" in r.reason} == expected.late


@given(ENTRIES, st.integers(1, 30))
def test_first_late_or_rejected_item_ends_a_strict_run(entries, size):
    expected = reference(entries, 0, "nq")
    wrong = expected.late | expected.rejected
    sorter = Sorter("s", strict=True)
    terms = TermDictionary()
    wanted = Wanted(frozenset([terms.id_of(IRI("p"))]))

    def run() -> None:
        source = named(nquads(entries), "x.nq")
        for chunk in read_stream(source, "in", terms, wanted=wanted, strict=True, chunk=size):
            sorter.push(chunk)
        sorter.advance(INFINITY)

    if wrong:
        with pytest.raises(SourceError, match=r"^x\.nq, line \d+: "):
            run()
    else:
        run()


def test_drained_rejects_are_returned_once_and_stay_counted():
    sorter = Sorter("s")
    for chunk in read_stream([("<a>", "<p>", "<b>", t) for t in (9, 1, 2)], "s", TermDictionary()):
        sorter.push(chunk)
    assert [reject.reason for reject in sorter.drain()] == ["late by 8 ms", "late by 7 ms"]
    assert sorter.drain() == sorter.rejects == []
    assert sorter.accounting == Accounting(3, 1, 2, 0, 0)


def test_quarantined_item_is_not_counted_yet():
    sorter = Sorter("s")
    for chunk in read_stream([("<a>", "<p>", "<b>", 9)], "s", TermDictionary()):
        sorter.push(chunk)
    assert sorter.accounting == Accounting()
    sorter.advance(INFINITY)
    assert sorter.accounting == Accounting(1, 1, 0, 0, 0)


def test_unmatched_item_is_never_late(tmp_path: Path):
    query = streamsparql.compile("SELECT * FROM STREAM <s> WINDOW RANGE 5 MS SLIDE { ?s <p> ?o }")
    result = query.run(
        [("<a>", "<q>", "<b>", 9), ("<a>", "<q>", "<b>", 1), ("<a>", "<p>", "<b>", 2)]
    )
    assert list(result) == []
    assert [reject.position for reject in result.late] == [3]


def test_triples_of_graphs_are_accounted_for():
    text = b'<http://a> <http://p> "x" .\nrubbish .\n<http://a> <http://p> "y" .\n'
    for name in ("x.ttl", "x.nt"):
        batch, rejects = read_graph(named(text, name), "g", TermDictionary())
        assert (len(batch), len({r.position for r in rejects})) == (2, len(rejects))
        assert len(rejects) >= 1
