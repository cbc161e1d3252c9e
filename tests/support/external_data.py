"""Test data that is not ours: where it is, and the cases found in it.

The data is read from the folder that STREAMSPARQL_TEST_DATA names, else from `../shared/data`
beside the repository, and never copied into it. Tests that need it skip, with a reason, where it
is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
DATA = Path(os.environ.get("STREAMSPARQL_TEST_DATA", _BESIDE))
NO_DATA = f"there is no test data at {DATA}: set STREAMSPARQL_TEST_DATA to where it is"


def over_data(cases: Callable[[Path], Iterable[ParameterSet]]) -> list[ParameterSet]:
    """Return the cases that a function finds in the data; without data, one case that skips."""
    if not DATA.is_dir():
        return [pytest.param(None, id="no-data", marks=pytest.mark.skip(reason=NO_DATA))]
    return list(cases(DATA))
