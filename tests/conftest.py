"""Fixtures and hypothesis profiles of all tests.

Random tests draw the same examples each time. `pytest --hypothesis-profile=find` draws new
examples, and does not shrink failures, which can take minutes for whole queries.

The location of the external data, without which some tests are skipped, is in
support/external_data.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings
from support.external_data import DATA, NO_DATA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("find", deadline=None, phases=(Phase.explicit, Phase.generate))
settings.load_profile("default")


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of the external test data."""
    if not DATA.is_dir():
        pytest.skip(NO_DATA)
    return DATA


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Yield the Spark session of all tests: two cores, four attempts per task."""
    from support.spark_session import started

    session = started()
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that share a Spark session, or a broker, in one process."""
    for item in items:
        for shared in ("spark", "kafka", "mosquitto", "postgres"):
            if shared in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(shared))
