"""Golden plans: a query, and what becomes of it stage by stage, side by side in tests/golden.

A case that has a stream (a line per item: subject, predicate, object, timestamp) has its rows, too.
After a change that is meant, `python tests/project/test_golden.py` writes all of it anew; read the diff.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # pytest does this by `pythonpath`

from support.golden import GOLDEN, Case, cases, shown, write


@pytest.mark.parametrize("case", list(cases()))
def test_a_query_becomes_what_is_golden(case: Case) -> None:
    assert case.shown, (
        "nothing there: run python tests/project/test_golden.py and read what it wrote"
    )
    assert shown(case.text, case.stream) == case.shown


if __name__ == "__main__":
    for file in sorted(GOLDEN.glob("*.txt")):
        write(file)
