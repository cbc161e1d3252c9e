"""The words of the project: no banned phrasing, and one module for each public name."""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.vocabulary import ROOMS, ROOT, Finding, files, findings

SOURCES = ("algebra", "translator", "physical", "streamsparql")


@pytest.mark.parametrize("room", ROOMS)
def test_prose_has_no_banned_phrasing(room: str) -> None:
    assert [str(each) for file in files(room) for each in findings(file)] == []


def test_banned_phrasings_are_found_in_prose_and_not_in_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("It is told.\n\n```\nis told\n```\n\nThe `told` rows are no rows.\n")
    module = tmp_path / "module.py"
    module.write_text(
        'def f():\n    """The rows."""\n    found = 1  # worked out\n    return found\n'
    )
    assert list(map(_place, [*findings(page), *findings(module)])) == [
        (1, "told"),
        (7, "are no"),
        (3, "worked out"),
        (1, "The rows."),
        (3, "found"),
    ]


def _place(finding: Finding) -> tuple[int, str]:
    return finding.line, finding.text


def test_a_public_name_is_defined_in_one_module() -> None:
    """Exceptions are twins: operators named as the node that they compute, and the rules' RULE."""
    modules = defaultdict(set)
    for file in files(*SOURCES):
        if file.suffix == ".py":
            module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            for name in _defined(ast.parse(file.read_text("utf-8"))):
                modules[name].add(module)
    shared = {name: sorted(found) for name, found in modules.items() if len(found) > 1}
    assert {name: where for name, where in shared.items() if not _are_twins(name, where)} == {}


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=str(name)) | ast.AsyncFunctionDef(name=str(name)):
                yield name
            case ast.ClassDef(name=str(name)) | ast.AnnAssign(target=ast.Name(id=str(name))):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def _are_twins(name: str, modules: list[str]) -> bool:
    if name.startswith("_"):
        return True
    if name == "RULE":
        return all(module.startswith("algebra.rules.") for module in modules)
    if [module.partition(".")[0] for module in modules] != ["algebra", "physical"]:
        return False
    node, operator = (
        getattr(importlib.import_module(f"streamsparql.{module}"), name) for module in modules
    )
    operators = (operator, *getattr(operator, "__subclasses__", list)())
    computed = [each for one in operators for each in getattr(one, "implements", ())]
    return any(issubclass(each, node) for each in computed)
