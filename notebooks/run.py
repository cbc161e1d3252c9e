"""Runs the notebooks of this folder, and writes them back as they are kept: without outputs.

    $ python notebooks/run.py                    # all of them, each in an empty folder of its own
    $ python notebooks/run.py 05 07              # those whose names begin so
    $ python notebooks/run.py --html pages       # and writes what a reader sees as HTML

A notebook that fails is named with its cell and the error, and the exit status is 1. It needs the
`notebook` extra; `--html` needs nbconvert, which comes with JupyterLab.
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
"""So many seconds a cell may take, on a machine that is busy."""

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
"""All that a notebook says of where it runs."""


def notebooks() -> list[Path]:
    """The notebooks, by their numbers."""
    return sorted(HERE.glob("[0-9]*.ipynb"))


def stripped(book: dict[str, Any]) -> str:
    """The file of a notebook as it is kept: no outputs, no counts, nothing of a machine.

    >>> cell = {"cell_type": "code", "id": "one", "source": ["1 + 1"], "metadata": {"x": 1}}
    >>> made = json.loads(stripped({"cells": [{**cell, "outputs": [{}], "execution_count": 7}]}))
    >>> made["cells"][0]["outputs"], made["cells"][0]["execution_count"], made["nbformat_minor"]
    ([], None, 5)
    """
    cells = []
    for cell in book["cells"]:
        made = {"cell_type": cell["cell_type"], "id": cell["id"], "metadata": {}}
        if cell["cell_type"] == "code":
            made = {**made, "execution_count": None, "outputs": []}
        text = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        cells.append({**made, "source": text.strip("\n").splitlines(keepends=True)})
    kept = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(kept, indent=1, ensure_ascii=False) + "\n"


def executed(path: Path, folder: str | Path) -> Any:
    """The notebook with its outputs, run from top to bottom in a folder; no output is kept in it.

    The kernel finds this checkout, whether it is installed or not, and writes nothing into the
    user's home.
    """
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    before = os.environ.get("PYTHONPATH")
    beside = {
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
    client.execute(env={**os.environ, **beside})
    return book


def write_html(book: Any, path: Path, target: Path) -> None:
    """Writes what a reader of an executed notebook sees."""
    from nbconvert import HTMLExporter

    text, _ = HTMLExporter().from_notebook_node(book, {"metadata": {"name": path.stem}})
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{path.stem}.html").write_text(text, "utf-8")


def main(arguments: list[str]) -> int:
    """Runs notebooks; the number of those that fail is more than nothing where it gives 1."""
    parser = argparse.ArgumentParser(description="Runs the notebooks, and strips them again.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="how their names begin")
    parser.add_argument("--html", metavar="DIR", type=Path, help="writes them there as HTML")
    options = parser.parse_args(arguments)
    wanted = tuple(options.names) or ("",)
    failed = False
    for path in notebooks():
        if not path.name.startswith(wanted):
            continue
        began = perf_counter()
        with TemporaryDirectory() as folder:
            try:
                book = executed(path, folder)
            except Exception as error:  # whatever a cell may raise: the others are run all the same
                print(f"{path.name}: {error}", file=sys.stderr)
                failed = True
                continue
        print(f"{path.name}  {perf_counter() - began:.0f} s")
        if options.html:
            write_html(book, path, options.html)
        text = stripped(json.loads(path.read_text("utf-8")))
        if text != path.read_text("utf-8"):
            path.write_text(text, "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
