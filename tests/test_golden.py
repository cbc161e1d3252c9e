"""Golden plans: a query, and what becomes of it stage by stage, side by side in tests/golden.

A case that has a stream (a line per item: subject, predicate, object, timestamp) has its rows, too.
After a change that is meant, `python tests/test_golden.py` writes all of it anew; read the diff.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from _pytest.mark import ParameterSet

import streamsparql

GOLDEN = Path(__file__).parent / "golden"
QUERY = "\n=== "
SECTION = re.compile(r"^--- (\w+)\n", re.M)


class Case(NamedTuple):
    """A query with what it becomes, as a golden file has them."""

    title: str
    text: str
    stream: str
    shown: str


def read(path: Path) -> tuple[str, list[Case]]:
    """What a file says at its head, and its cases."""
    head, *blocks = path.read_text("utf-8").split(QUERY)
    cases = []
    for block in blocks:
        title, _, rest = block.partition("\n")
        text, *sections = SECTION.split(rest)
        found = dict(zip(sections[::2], sections[1::2], strict=True))
        stream = found.pop("stream", "").strip()
        shown = "".join(f"--- {name}\n{section.strip()}\n\n" for name, section in found.items())
        cases.append(Case(title, text.strip(), stream, shown))
    return head.strip(), cases


def write(path: Path) -> None:
    """Writes what becomes of the queries of a file anew."""
    head, cases = read(path)
    blocks = [f"{head}\n"]
    for title, text, stream, _ in cases:
        data = f"--- stream\n{stream}\n\n" if stream else ""
        blocks.append(f"{QUERY}{title}\n{text}\n\n{data}{shown(text, stream)}".rstrip() + "\n")
    path.write_text("".join(blocks), "utf-8")


def shown(text: str, stream: str) -> str:
    """The plans of a query, the optimized one where it differs, and its rows over a stream."""
    query = streamsparql.compile(text)
    sections = {"logical": query.explain("logical")}
    if query.optimized != query.logical:
        sections["optimized"] = query.explain("optimized")
    try:
        sections["physical"] = query.explain("physical")
    except streamsparql.UnsupportedFeature as refused:
        sections["physical"] = str(refused)
    if stream:
        sections["rows"] = rows(query, stream)
    return "".join(f"--- {name}\n{section}\n\n" for name, section in sections.items())


def rows(query: streamsparql.Query, stream: str) -> str:
    """The rows of a query over items, a line each; of those that start together the first to end."""
    words = (line.split() for line in stream.splitlines())
    items = [(*map(term, triple), int(t)) for *triple, t in words]
    cells = []
    for row in sorted(query.run(items), key=lambda row: (row.start, row.end, str(row))):
        values = " ".join("-" if x is None else x.rsplit("/", 1)[-1] for x in row.values())
        end = "…" if row.end > 1 << 62 else row.end
        cells.append(f"[{row.start}, {end})  {values}".rstrip())
    return "\n".join(cells)


def term(word: str) -> str:
    """A number, or a name that stands for an IRI."""
    if word.isdigit():
        return f'"{word}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<http://e/{word}>"


def _cases() -> Iterator[ParameterSet]:
    for path in sorted(GOLDEN.glob("*.txt")):
        for case in read(path)[1]:
            yield pytest.param(case, id=f"{path.stem}: {case.title}")


@pytest.mark.parametrize("case", list(_cases()))
def test_a_query_becomes_what_is_golden(case: Case) -> None:
    assert case.shown, "nothing there: run python tests/test_golden.py and read what it wrote"
    assert shown(case.text, case.stream) == case.shown


if __name__ == "__main__":
    for file in sorted(GOLDEN.glob("*.txt")):
        write(file)
