"""The imports of a program that only compiles a query."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RARELY_NEEDED = {"calendar", "datetime", "lark", "uuid"}


def test_the_compiler_does_not_import_modules_that_few_queries_need() -> None:
    code = "import sys, streamsparql.query; print(*sys.modules)"
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert RARELY_NEEDED.isdisjoint(done.stdout.split())
