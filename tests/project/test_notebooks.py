"""The notebooks run from top to bottom, show something where they should, and are kept clean.

Each is executed by nbclient in an empty folder, as `make notebooks` does it. Without the `notebook`
extra these tests skip, and say so. What they cannot see is whether a picture is a good one; that is
looked at (`python notebooks/run.py --html DIR`).
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
# nbclient and its parts warn of their own ways with event loops, which is not about the notebooks
quiet = pytest.mark.filterwarnings("default")


def _runner() -> Any:
    spec = spec_from_file_location("run_notebooks", ROOT / "notebooks" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = _runner()


def _cases() -> list[Any]:
    """A case per notebook; the one that starts Spark goes where the other tests of Spark are."""
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
    """Whether a cell ends with a value, which a notebook shows.

    A call of a method or function may give None; what draws or prints shows something as well, so
    a cell that ends in a call has to have an output either way.
    """
    if source.startswith("%%"):
        return True
    lines = [line for line in source.splitlines() if not line.startswith("%")]
    body = ast.parse("\n".join(lines)).body
    return bool(body) and isinstance(body[-1], ast.Expr) and not source.rstrip().endswith(";")


@needs_jupyter
@quiet
@each
def test_it_runs_and_shows_what_it_should(path: Path, tmp_path: Path) -> None:
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
            assert any(str(shown).strip() for shown in data.values()), f"{where}: shows nothing"
            html = str(data.get("text/html", ""))
            assert "not computed yet" not in html
            pictures += "<svg" in html or "image/png" in data
        if _shows(_source(cell)):
            assert cell.outputs, f"{where}: shows nothing"
    assert pictures >= 3


@each
def test_it_is_kept_without_outputs(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text == run.without_outputs(json.loads(text)), "make notebooks writes it as it should be"


@each
def test_its_cells_have_names_that_stay(path: Path) -> None:
    ids = [cell["id"] for cell in json.loads(path.read_text("utf-8"))["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][a-z0-9-]{0,40}", name) for name in ids), ids


@each
def test_it_can_be_read_anywhere(path: Path) -> None:
    """No path of a machine, nothing from the network, a title, and something to try at the end."""
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


def test_the_table_of_contents_names_them_all() -> None:
    page = (ROOT / "notebooks" / "README.md").read_text("utf-8")
    assert [path.name for path in NOTEBOOKS if f"({path.name})" not in page] == []
