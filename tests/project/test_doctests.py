"""The examples in docstrings run, with modules imported by their public names."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import streamsparql

NAMES = ["streamsparql"] + [
    module.name
    for module in pkgutil.walk_packages(streamsparql.__path__, "streamsparql.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_public_functions_have_examples() -> None:
    for name in ("compile", "inputs"):
        assert ">>>" in (inspect.getdoc(getattr(streamsparql, name)) or "")


def test_every_module_has_a_docstring() -> None:
    for name in NAMES:
        module: ModuleType = importlib.import_module(name)
        assert module.__doc__
        assert len(module.__doc__.splitlines()[0]) > 20
