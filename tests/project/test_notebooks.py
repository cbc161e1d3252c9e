"""The notebooks run from top to bottom, and are stored with the outputs that they then have.

nbclient executes each in an empty folder, as `make notebooks` does. These tests skip without the
`notebook` extra. They cannot judge pictures: inspect those with
`python notebooks/run.py --html DIR`.
"""

from __future__ import annotations

import ast
import json
import re
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
NEEDED = ("nbclient", "nbformat", "ipykernel", "matplotlib")
MISSING = [name for name in NEEDED if find_spec(name) is None]

needs_jupyter = pytest.mark.skipif(
    bool(MISSING),
    reason=f"notebooks need {', '.join(MISSING)}: pip install 'streamsparql[notebook,test]'",
)
UPDATE = "update it with: make notebooks"
# nbclient and its dependencies warn about event loops, which does not concern the notebooks
quiet = pytest.mark.filterwarnings("default")


def _load_runner() -> Any:
    spec = spec_from_file_location("run_notebooks", ROOT / "notebooks" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = _load_runner()


def _cases() -> list[Any]:
    """Return a case per notebook; the one with Spark is in the group of the other Spark tests."""
    return [
        pytest.param(
            path,
            id=path.stem,
            marks=[pytest.mark.xdist_group("spark")] if "spark" in path.stem else [],
        )
        for path in NOTEBOOKS
    ]


each = pytest.mark.parametrize("path", _cases())


def _source(cell: Any) -> str:
    return "".join(cell["source"])


def _shows(source: str) -> bool:
    """Return whether a cell must have an output, since it ends with an expression.

    A call may return None, but then it prints or draws, so it must have an output as well.
    """
    if source.startswith("%%"):
        return True
    lines = [line for line in source.splitlines() if not line.startswith("%")]
    body = ast.parse("\n".join(lines)).body
    return bool(body) and isinstance(body[-1], ast.Expr) and not source.rstrip().endswith(";")


@needs_jupyter
@quiet
@each
def test_it_runs_without_errors_and_has_outputs(path: Path, tmp_path: Path) -> None:
    book = run.execute(path, tmp_path)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    pictures = 0
    for cell in code:
        where = f"{path.name}, cell {cell.id}"
        for output in cell.outputs:
            assert output.output_type != "error", where
            assert output.get("name") != "stderr", f"{where}: {output.text[:400]}"
            data = output.get("data", {"text/plain": output.get("text", "")})
            assert any(str(shown).strip() for shown in data.values()), f"{where}: missing output"
            html = str(data.get("text/html", ""))
            assert "not computed yet" not in html
            pictures += "<svg" in html or "image/png" in data
        if _shows(_source(cell)):
            assert cell.outputs, f"{where}: missing output"
    assert pictures >= 3
    stored = {cell["id"]: cell for cell in json.loads(path.read_text("utf-8"))["cells"]}
    for cell in code:
        shown = run.comparable(stored[cell.id]["outputs"])
        assert shown == run.comparable(cell.outputs), f"cell {cell.id}: {UPDATE}"


@each
def test_it_is_stored_with_outputs_of_one_run(path: Path) -> None:
    text = path.read_text("utf-8")
    book = json.loads(text)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)], UPDATE
    assert text == run.stored(book, book), UPDATE
    assert len(text) < 500_000


@each
def test_its_cells_have_stable_ids(path: Path) -> None:
    ids = [cell["id"] for cell in json.loads(path.read_text("utf-8"))["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][a-z0-9-]{0,40}", name) for name in ids), ids


@each
def test_it_is_portable_and_has_a_title_and_exercises(path: Path) -> None:
    """A notebook has no absolute path and reads nothing from the network."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    text = "\n".join(map(_source, cells))
    assert not re.search(r"(?<![\w.:/<-])/(home|root|work|tmp|usr|Users)/|[A-Z]:\\\\", text)
    assert not re.search(r"\b(requests|urllib|wget|curl)\b|!pip|%pip", text)
    assert cells[0]["cell_type"] == "markdown"
    assert _source(cells[0]).startswith("# ")
    assert cells[-1]["cell_type"] == "markdown"
    assert "## Try this" in _source(cells[-1]).splitlines()
    lines = [line for cell in cells for line in _source(cell).splitlines()]
    assert max(len(line) for line in lines if not line.startswith("|")) <= 120


def test_the_readme_lists_all_notebooks() -> None:
    page = (ROOT / "notebooks" / "README.md").read_text("utf-8")
    assert [path.name for path in NOTEBOOKS if f"({path.name})" not in page] == []
