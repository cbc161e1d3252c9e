"""Golden plans: a query, and the logical plan that it becomes, side by side in tests/golden.

After a change that is meant, `python tests/test_golden.py` writes the plans anew; read the diff.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from _pytest.mark import ParameterSet

import streamsparql

GOLDEN = Path(__file__).parent / "golden"
QUERY, PLAN = "\n=== ", "\n--- logical\n"


class Case(NamedTuple):
    """A query with its plan, as a golden file has them."""

    title: str
    text: str
    plan: str


def read(path: Path) -> tuple[str, list[Case]]:
    """What a file says at its head, and its cases."""
    head, *blocks = path.read_text("utf-8").split(QUERY)
    cases = []
    for block in blocks:
        title, _, rest = block.partition("\n")
        text, _, plan = rest.partition(PLAN)
        cases.append(Case(title, text.strip(), plan.strip("\n")))
    return head.strip(), cases


def write(path: Path) -> None:
    """Writes the plans of a file anew."""
    head, cases = read(path)
    blocks = [f"{head}\n"]
    for title, text, _ in cases:
        blocks.append(f"{QUERY}{title}\n{text}\n{PLAN}{explained(text)}\n")
    path.write_text("".join(blocks), "utf-8")


def explained(text: str) -> str:
    """The logical plan of a query as text."""
    return streamsparql.compile(text).explain("logical")


def _cases() -> Iterator[ParameterSet]:
    for path in sorted(GOLDEN.glob("*.txt")):
        for case in read(path)[1]:
            yield pytest.param(case, id=f"{path.stem}: {case.title}")


@pytest.mark.parametrize("case", list(_cases()))
def test_a_query_becomes_its_golden_plan(case: Case) -> None:
    assert case.plan, "no plan yet: run python tests/test_golden.py and read what it wrote"
    assert explained(case.text) == case.plan


if __name__ == "__main__":
    for file in sorted(GOLDEN.glob("*.txt")):
        write(file)
