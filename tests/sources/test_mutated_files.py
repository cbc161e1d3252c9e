"""Damaged and hostile files of each format, read in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.mutated_files import FORMATS

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def read_mutations(kind: str, first: int, after: int) -> None:
    """Check that each mutation is read: rows, rejects, StreamSparqlError, and nothing else."""
    program = [sys.executable, "-m", "support.mutated_files", kind, str(first), str(after)]
    done = subprocess.run(
        program, cwd=ROOT / "tests", env=ENVIRONMENT, capture_output=True, text=True, timeout=580
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("kind", FORMATS)
def test_mutated_files_have_rows_or_rejects_or_an_error(kind):
    """The program prints the number of a file before it reads it; a signal is a negative status."""
    read_mutations(kind, 0, 12)


@pytest.mark.long
@pytest.mark.parametrize("kind", FORMATS)
def test_many_mutated_files_have_rows_or_rejects_or_an_error(kind):
    read_mutations(kind, 12, 3000)
