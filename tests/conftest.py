"""What all tests share: hypothesis' profiles, and test data that is not ours.

Random tests draw the same examples each time. `pytest --hypothesis-profile=find` draws new ones, and
does not shrink what fails, which for whole queries can take minutes.

The data is read from the folder that STREAMSPARQL_TEST_DATA names, else from `../shared/data`
beside the repository, and never copied into it. Without it the tests that need it skip, and say so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.mark import ParameterSet
from hypothesis import Phase, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("find", deadline=None, phases=(Phase.explicit, Phase.generate))
settings.load_profile("default")

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("STREAMSPARQL_TEST_DATA", _BESIDE))
NO_DATA = f"there is no test data at {DATA}: set STREAMSPARQL_TEST_DATA to where it is"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the test data."""
    if not DATA.is_dir():
        pytest.skip(NO_DATA)
    return DATA


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The Spark session of all tests: two cores, four tries for each task."""
    from spark_support import started

    made = started()
    yield made
    made.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that share a Spark session run in one process, where there are several."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


def over_data(cases: Callable[[Path], Iterable[ParameterSet]]) -> list[ParameterSet]:
    """The cases that a function finds in the data; where there is no data, one that skips."""
    if not DATA.is_dir():
        return [pytest.param(None, id="no-data", marks=pytest.mark.skip(reason=NO_DATA))]
    return list(cases(DATA))
