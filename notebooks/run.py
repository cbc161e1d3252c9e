"""A program that runs the notebooks of this folder, and stores them without outputs.

    $ python notebooks/run.py                    # all of them, each in an empty folder
    $ python notebooks/run.py 05 07              # those whose names start with 05 or 07
    $ python notebooks/run.py --html pages       # also write them with their outputs as HTML

If a notebook fails, its name, the cell and the error are printed, and the exit status is 1. The
program needs the `notebook` extra; `--html` needs nbconvert, a part of JupyterLab.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
TIMEOUT = 300
"""The time limit of a cell in seconds, generous for a busy machine."""

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
"""The only metadata that a notebook is stored with."""


def notebooks() -> list[Path]:
    """Return the paths of the notebooks, ordered by number."""
    return sorted(HERE.glob("[0-9]*.ipynb"))


def without_outputs(book: dict[str, Any]) -> str:
    """Return the JSON in which a notebook is stored: no outputs, counts or machine's metadata.

    >>> cell = {"cell_type": "code", "id": "one", "source": ["1 + 1"], "metadata": {"x": 1}}
    >>> book = {"cells": [{**cell, "outputs": [{}], "execution_count": 7}]}
    >>> stored = json.loads(without_outputs(book))
    >>> stored["cells"][0]["outputs"], stored["cells"][0]["execution_count"]
    ([], None)
    >>> stored["nbformat_minor"]
    5
    """
    cells = []
    for cell in book["cells"]:
        stored = {"cell_type": cell["cell_type"], "id": cell["id"], "metadata": {}}
        if cell["cell_type"] == "code":
            stored = {**stored, "execution_count": None, "outputs": []}
        text = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        cells.append({**stored, "source": text.strip("\n").splitlines(keepends=True)})
    notebook = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def execute(path: Path, folder: str | Path) -> Any:
    """Run a notebook from top to bottom in a folder; return it with its outputs.

    The file is not changed. The kernel imports this checkout, whether or not it is installed, and
    writes nothing to the user's home.
    """
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    before = os.environ.get("PYTHONPATH")
    variables = {
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), *([before] if before else [])]),
        "IPYTHONDIR": str(Path(folder) / ".ipython"),
    }
    client = NotebookClient(
        book,
        timeout=TIMEOUT,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, **variables})
    return book


def write_html(book: Any, path: Path, target: Path) -> None:
    """Write an executed notebook as HTML into the folder `target`."""
    from nbconvert import HTMLExporter

    text, _ = HTMLExporter().from_notebook_node(book, {"metadata": {"name": path.stem}})
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{path.stem}.html").write_text(text, "utf-8")


def main(arguments: list[str]) -> int:
    """Run the requested notebooks; return the exit status, 1 if any of them fails."""
    parser = argparse.ArgumentParser(description="Run the notebooks, and remove their outputs.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="the start of a notebook's name")
    parser.add_argument("--html", metavar="DIR", type=Path, help="also write them there as HTML")
    options = parser.parse_args(arguments)
    prefixes = tuple(options.names) or ("",)
    failed = False
    for path in notebooks():
        if not path.name.startswith(prefixes):
            continue
        started = perf_counter()
        with TemporaryDirectory() as folder:
            try:
                book = execute(path, folder)
            except Exception as error:  # a cell can raise any error; the other notebooks still run
                print(f"{path.name}: {error}", file=sys.stderr)
                failed = True
                continue
        print(f"{path.name}  {perf_counter() - started:.0f} s")
        if options.html:
            write_html(book, path, options.html)
        text = without_outputs(json.loads(path.read_text("utf-8")))
        if text != path.read_text("utf-8"):
            path.write_text(text, "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
