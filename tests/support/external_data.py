"""Test data of third parties: its location, and the cases in it.

The data is read from the folder that STREAMSPARQL_TEST_DATA names, else from `../shared/data` next
to the repository, and is never copied into it. Tests that need it are skipped, with a reason, where
it is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

_DEFAULT_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
DATA = Path(os.environ.get("STREAMSPARQL_TEST_DATA", _DEFAULT_DATA))
NO_DATA = f"missing test data at {DATA}; set STREAMSPARQL_TEST_DATA to its folder"


def over_data(cases: Callable[[Path], Iterable[ParameterSet]]) -> list[ParameterSet]:
    """Return the cases that a function reads from the data; without data, one that is skipped."""
    if not DATA.is_dir():
        return [pytest.param(None, id="no-data", marks=pytest.mark.skip(reason=NO_DATA))]
    return list(cases(DATA))
