"""The import contract of setup.cfg holds in an installed wheel, and violations are detected."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="import-linter is in the dev extra")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel and return the folder with its content, outside the checkout."""
    folder, copy = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("copy") / "tree"
    ignored = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__")
    shutil.copytree(
        ROOT, copy, symlinks=True, ignore=ignored
    )  # parallel builds in one tree collide
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, copy]
    subprocess.run(command, check=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    config = ["--config", str(ROOT / "setup.cfg"), "--no-cache"]
    command = [sys.executable, "-c", code, *config]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_the_wheel_contains_all_parts_but_the_grammar(installed: Path) -> None:
    package = installed / "streamsparql"
    assert (package / "py.typed").exists()
    assert (package / "translator" / "parse_table.py").exists()
    assert not (package / "translator" / "grammar").exists()
    assert (package / "algebra" / "window.py").exists()
    assert (package / "translator" / "dialects" / "__init__.py").exists()


def test_the_contract_holds(installed: Path) -> None:
    done = lint_imports(installed)
    assert done.returncode == 0, done.stdout


def test_the_contract_names_every_room() -> None:
    """Import-linter checks that the layers are exhaustive; this checks the pyspark contract."""
    config = ConfigParser(interpolation=None)
    config.read(ROOT / "setup.cfg")
    listed = config["importlinter:contract:spark"]["source_modules"].split()
    rooms = {path.stem for path in (ROOT / "streamsparql").iterdir() if path.suffix in ("", ".py")}
    known = {name.removeprefix("streamsparql.") for name in listed} | {"spark"}
    assert {room for room in rooms if not room.startswith("_")} == known


TYPED = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import {}"


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("algebra/terms.py", "import streamsparql.translator.parse"),
        ("translator/parse.py", "import streamsparql.query"),
        ("algebra/window.py", "import numpy"),
        ("physical/__init__.py", "import streamsparql.translator.parse"),
        ("translator/parse.py", "import streamsparql.physical"),
        ("physical/kernels/intervals.py", "import streamsparql.physical.state.heap"),
        ("physical/state/heap.py", "import streamsparql.physical.operator"),
        ("physical/expressions/rows.py", "import streamsparql.physical.operators.join"),
        ("translator/sparql_text.py", "import rdflib"),
        ("sinks/__init__.py", "import pyspark"),
        ("look/equivalence/random_inputs.py", "import streamsparql.physical.batch"),
        ("sources/__init__.py", "import streamsparql.cli.common_options"),
        ("run/live.py", "import streamsparql.look.jupyter.live_view"),
        ("spark/slab.py", "import streamsparql.look.explain"),
        ("text/widths.py", "import streamsparql.sources"),
        ("run/result.py", TYPED.format("streamsparql.query")),
        ("algebra/plan.py", TYPED.format("streamsparql.look.displays")),
    ],
)
def test_a_violation_is_detected(installed: Path, file: str, line: str) -> None:
    path = installed / "streamsparql" / file
    before = path.read_text("utf-8")
    path.write_text(f"{before}\n{line}\n", "utf-8")
    try:
        assert lint_imports(installed).returncode == 1
    finally:
        path.write_text(before, "utf-8")
