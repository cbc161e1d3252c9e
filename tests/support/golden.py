"""Golden files: queries with their plans, stage by stage, and their rows over a stream.

Cases with a stream (a line per item: subject, predicate, object, timestamp, or start and end of an
event) have rows, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from _pytest.mark import ParameterSet

import streamsparql
from streamsparql.run.decoder import Detection

GOLDEN = Path(__file__).parents[1] / "golden"
QUERY = "\n=== "
SECTION = re.compile(r"^--- (\w+)\n", re.M)


class Case(NamedTuple):
    """A query, its stream, and the plans and rows that a golden file has for it."""

    title: str
    text: str
    stream: str
    shown: str


def read(path: Path) -> tuple[str, list[Case]]:
    """Return the head of a golden file, and its cases."""
    head, *blocks = path.read_text("utf-8").split(QUERY)
    cases_of_file = []
    for block in blocks:
        title, _, rest = block.partition("\n")
        text, *sections = SECTION.split(rest)
        parts = dict(zip(sections[::2], sections[1::2], strict=True))
        stream = parts.pop("stream", "").strip()
        shown = "".join(f"--- {name}\n{section.strip()}\n\n" for name, section in parts.items())
        cases_of_file.append(Case(title, text.strip(), stream, shown))
    return head.strip(), cases_of_file


def write(path: Path) -> None:
    """Rewrite the plans and rows of all queries of a golden file."""
    head, cases_of_file = read(path)
    blocks = [f"{head}\n"]
    for title, text, stream, _ in cases_of_file:
        data = f"--- stream\n{stream}\n\n" if stream else ""
        blocks.append(f"{QUERY}{title}\n{text}\n\n{data}{shown(text, stream)}".rstrip() + "\n")
    path.write_text("".join(blocks), "utf-8")


def shown(text: str, stream: str) -> str:
    """Return the plans of a query, the optimized one if it differs, and its rows over a stream."""
    query = streamsparql.compile(text)
    sections = {"logical": query.explain("logical")}
    if query.optimized != query.logical:
        sections["optimized"] = query.explain("optimized")
    try:
        sections["physical"] = query.explain("physical")
    except streamsparql.UnsupportedFeature as error:
        sections["physical"] = str(error)
    if stream:
        sections["rows"] = rows(query, stream)
    return "".join(f"--- {name}\n{section}\n\n" for name, section in sections.items())


def rows(query: streamsparql.Query, stream: str) -> str:
    """Return the rows of a query over items, a line each, ordered by start and end."""
    words = (line.split() for line in stream.splitlines())
    items = [(tuple(map(term, each[:3])), *map(int, each[3:])) for each in words]
    cells = []
    for row in sorted(query.run(items), key=lambda row: (row.start, row.end, str(row))):
        values = " ".join("-" if x is None else x.rsplit("/", 1)[-1] for x in row.values())
        end = "…" if row.end > 1 << 62 else row.end
        closed = "]" if isinstance(row, Detection) else ")"
        cells.append(f"[{row.start}, {end}{closed}  {values}".rstrip())
    return "\n".join(cells)


def term(word: str) -> str:
    """Expand a number or a short name of an IRI to N-Triples."""
    if word.isdigit():
        return f'"{word}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<http://e/{word}>"


def cases() -> Iterator[ParameterSet]:
    """Yield the cases of all golden files as parameters of a test."""
    for path in sorted(GOLDEN.glob("*.txt")):
        for case in read(path)[1]:
            yield pytest.param(case, id=f"{path.stem}: {case.title}")
