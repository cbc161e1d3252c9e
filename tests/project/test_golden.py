"""Golden plans: the plans of a query by stage, next to its text in tests/golden.

A case with a stream (a line per item: subject, predicate, object, timestamp) has its rows, too.
After an intended change, `python tests/project/test_golden.py` updates all files; read the diff.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # pytest does this by `pythonpath`

from support import mistakes
from support.golden import GOLDEN, Case, cases, shown, write


@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
@pytest.mark.parametrize("case", list(cases()))
def test_plans_and_rows_match_the_golden_file(case: Case) -> None:
    assert case.shown, "empty case: run python tests/project/test_golden.py and read the diff"
    assert shown(case.text, case.stream) == case.shown


if __name__ == "__main__":
    for file in sorted(GOLDEN.glob("*.txt")):
        write(file)
    for file in sorted(mistakes.MISTAKES.glob("*.txt")):
        mistakes.write(file)
