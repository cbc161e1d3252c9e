"""The Dockerfile, checked without a Docker engine."""

from __future__ import annotations

import configparser
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT

LINES = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", "").splitlines()


def instructions(name: str) -> list[str]:
    return [line.removeprefix(name).strip() for line in LINES if line.startswith(f"{name} ")]


def test_entry_point_is_the_command_of_the_package() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    command = config["options.entry_points"]["console_scripts"].split("=")[0].strip()
    assert [json.loads(entry) for entry in instructions("ENTRYPOINT")] == [[command]]
    assert [json.loads(default) for default in instructions("CMD")] == [["demo"]]


def test_base_image_has_a_supported_python() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    versions = {
        image.split()[0].removeprefix("python:").removesuffix("-slim")
        for image in instructions("FROM")
    }
    (version,) = versions
    assert f"Programming Language :: Python :: {version}" in config["metadata"]["classifiers"]


def test_the_sources_that_are_copied_make_a_wheel(tmp_path: Path) -> None:
    """Build the wheel, as the first stage does, from what .dockerignore leaves."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    source = tmp_path / "source"
    for name in tracked:
        top = name.split("/")[0]
        if top in ignored or top.startswith("."):
            continue
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            target.symlink_to(os.readlink(ROOT / name))
        else:
            target.write_bytes((ROOT / name).read_bytes())
    (line,) = [run for run in instructions("RUN") if run.startswith("pip wheel")]
    line = line.replace("/wheels", str(tmp_path / "wheels")).replace("/source", str(source))
    subprocess.run([sys.executable, "-m", *shlex.split(line)], check=True, capture_output=True)
    assert [wheel.suffix for wheel in (tmp_path / "wheels").iterdir()] == [".whl"]
