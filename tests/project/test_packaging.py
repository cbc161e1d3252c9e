"""The packages match setup.cfg, in a checkout and in a wheel; importing them is cheap."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINKS = {name: f"../{name}" for name in ("algebra", "physical", "translator")}


@pytest.fixture(scope="module")
def setup() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return config


def python(code: str, *flags: str) -> str:
    """Run code in a fresh process and return its output."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    return done.stdout + done.stderr


def test_setup_cfg_lists_every_package(setup):
    listed = set(setup["options"]["packages"].split())
    folders = dict(
        line.split(" = ") for line in setup["options"]["package_dir"].strip().splitlines()
    )
    packages = set()
    for package, folder in folders.items():
        for file in (ROOT / folder).rglob("__init__.py"):
            inside = file.parent.relative_to(ROOT / folder)
            if not any(part in LINKS for part in inside.parts):
                packages.add(".".join([package, *inside.parts]))
    assert packages == listed


def test_the_parts_are_symbolic_links():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    for name, target in LINKS.items():
        assert os.readlink(ROOT / "streamsparql" / name) == target


@pytest.mark.parametrize("name", LINKS)
def test_importing_a_part_by_its_bare_name_fails_with_a_hint(name):
    assert f"import streamsparql.{name} instead" in python(f"import {name}")


def test_only_contributors_need_lark(setup):
    assert "lark" not in setup["options"]["install_requires"]
    assert "lark" in setup["options.extras_require"]["test"]
    assert "streamsparql.translator" not in setup["options.package_data"]


SLOW_IMPORTS = (
    "lark",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
    "rdflib",
    "pyoxigraph",
    "asyncio",
    "typing_extensions",
)


def test_compiling_and_explaining_import_no_slow_module():
    code = (
        "import sys, streamsparql; q = streamsparql.compile('SELECT * {}'); q.explain(); q.check();"
    )
    loaded = python(code + f"print([name for name in {SLOW_IMPORTS} if name in sys.modules])")
    assert loaded.strip() == "[]"


def test_importing_the_package_imports_only_its_errors():
    code = (
        "import sys, streamsparql; print([m for m in sys.modules if m.startswith('streamsparql.')])"
    )
    assert python(code).strip() == "['streamsparql.errors']"


def test_public_names_are_importable_and_documented():
    import streamsparql

    for name in streamsparql.__all__:
        assert getattr(streamsparql, name).__doc__
        assert name in dir(streamsparql)
    with pytest.raises(AttributeError):
        streamsparql.nothing  # noqa: B018


def test_dir_lists_public_names_only():
    code = "import streamsparql; streamsparql.compile('ASK {}').check(); print(*dir(streamsparql))"
    names = python(code).split()
    assert [name for name in names if name.startswith("_")] == ["__version__"]
    modules = {path.stem for path in (ROOT / "streamsparql").iterdir()}
    assert not modules.intersection(names) - {"compile"}
