"""What a program pays that compiles one query and ends: what is imported before it can."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RARELY_NEEDED = {"calendar", "datetime", "lark", "uuid"}


def test_the_compiler_starts_without_the_libraries_that_few_queries_need() -> None:
    code = "import sys, streamsparql.query; print(*sys.modules)"
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert RARELY_NEEDED.isdisjoint(found.stdout.split())
