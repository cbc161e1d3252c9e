"""Mistakes and their messages, as tests/golden/mistakes has them (support/mistakes.py).

After an intended change, `python tests/project/test_golden.py` updates the files; read the diff.
"""

from __future__ import annotations

import pytest
from support.golden import Case
from support.mistakes import all_cases, cases, says


@pytest.mark.parametrize("case", list(cases()))
def test_a_mistake_has_its_message(case: Case) -> None:
    assert says(case.text) == case.shown


def test_each_message_says_what_is_wrong_and_most_say_what_to_do() -> None:
    every = all_cases()
    assert len(every) >= 60
    helpful = [case for case in every if "hint: " in case.shown or ";" in case.shown]
    assert len(helpful) > 0.9 * len(every)
    assert not any("Traceback" in case.shown for case in every)
