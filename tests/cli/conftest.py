"""Fixtures of the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import write_wind


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a stream and queries over it."""
    write_wind(tmp_path)
    return tmp_path
