"""The package is what setup.cfg says, in a checkout and in a wheel; and it is light to import."""

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
    found = configparser.ConfigParser()
    found.read(ROOT / "setup.cfg")
    return found


def python(code: str, *flags: str) -> str:
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    return done.stdout + done.stderr


def test_setup_cfg_lists_every_package(setup):
    listed = set(setup["options"]["packages"].split())
    folders = dict(
        line.split(" = ") for line in setup["options"]["package_dir"].strip().splitlines()
    )
    found = set()
    for package, folder in folders.items():
        for file in (ROOT / folder).rglob("__init__.py"):
            inside = file.parent.relative_to(ROOT / folder)
            if not any(part in LINKS for part in inside.parts):
                found.add(".".join([package, *inside.parts]))
    assert found == listed


def test_the_links_are_links():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    for name, target in LINKS.items():
        assert os.readlink(ROOT / "streamsparql" / name) == target


@pytest.mark.parametrize("name", LINKS)
def test_a_part_refuses_its_bare_name(name):
    assert f"import streamsparql.{name} instead" in python(f"import {name}")


def test_lark_is_needed_by_contributors_only(setup):
    assert "lark" not in setup["options"]["install_requires"]
    assert "lark" in setup["options.extras_require"]["test"]
    assert "streamsparql.translator" not in setup["options.package_data"]


HEAVY = (
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


def test_compiling_and_explaining_load_nothing_heavy():
    code = (
        "import sys, streamsparql; q = streamsparql.compile('SELECT * {}'); q.explain(); q.check();"
    )
    loaded = python(code + f"print([name for name in {HEAVY} if name in sys.modules])")
    assert loaded.strip() == "[]"


def test_importing_the_package_loads_next_to_nothing():
    code = (
        "import sys, streamsparql; print([m for m in sys.modules if m.startswith('streamsparql.')])"
    )
    assert python(code).strip() == "['streamsparql.errors']"


def test_public_names_are_there():
    import streamsparql

    for name in streamsparql.__all__:
        assert getattr(streamsparql, name).__doc__
        assert name in dir(streamsparql)
    with pytest.raises(AttributeError):
        streamsparql.nothing  # noqa: B018
