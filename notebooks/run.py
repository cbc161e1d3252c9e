"""A program that runs the notebooks of this folder, and stores them with their outputs.

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
import re
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

MEASURED = re.compile(
    r"[<>]?\b\d[\d.,]* ?(m|µ|n|)s\b|\b\d[\d.,]* (minutes?|seconds?)\b|\b\d[\d.]* ?%|\b\d[\d.,]*x\b"
)
"""Figures that differ between executions: times, shares and ratios of times."""

DETAILS = re.compile("<details>.*?</details>", re.S)
"""The text of a plan, which the output has as text/plain, too."""


def notebooks() -> list[Path]:
    """Return the paths of the notebooks, ordered by number."""
    return sorted(HERE.glob("[0-9]*.ipynb"))


def stored(book: dict[str, Any], before: dict[str, Any] | None = None) -> str:
    """Return the JSON in which a notebook is stored: with outputs, without a machine's metadata.

    An output that differs from the one of the notebook `before` in measured figures only is stored
    as it was.

    >>> cell = {"cell_type": "code", "id": "one", "source": ["1 + 1"], "metadata": {"x": 1}}
    >>> output = {"output_type": "stream", "name": "stdout", "text": "in 5 ms"}
    >>> book = {"cells": [{**cell, "outputs": [output], "execution_count": 7}]}
    >>> text = stored(book)
    >>> json.loads(text)["cells"][0]["outputs"]
    [{'name': 'stdout', 'output_type': 'stream', 'text': ['in 5 ms']}]
    >>> output["text"] = "in 7 ms"
    >>> stored(book, json.loads(text)) == text
    True
    """
    known = {} if before is None else {cell["id"]: cell for cell in before["cells"]}
    cells = []
    for cell in book["cells"]:
        kept = {"cell_type": cell["cell_type"], "id": cell["id"], "metadata": {}}
        if cell["cell_type"] == "code":
            outputs = _stored_outputs(cell["outputs"])
            old = known.get(cell["id"], {}).get("outputs", [])
            if comparable(old) == comparable(outputs):
                outputs = old
            kept = {**kept, "execution_count": cell["execution_count"], "outputs": outputs}
        cells.append({**kept, "source": _lines(_text(cell["source"]).strip("\n"))})
    notebook = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=False) + "\n"


def comparable(outputs: list[dict[str, Any]]) -> list[Any]:
    """Return what must be equal in two executions: all but measured figures and drawn pixels.

    Of a picture of Matplotlib only the presence counts, since its pixels depend on the versions of
    Matplotlib and its fonts; pictures of this package are SVG, and compared in full.

    >>> shown = {"output_type": "stream", "name": "stdout", "text": ["3 rows in 12 ms"]}
    >>> comparable([shown]) == comparable([{**shown, "text": "3 rows in 8.5 ms"}])
    True
    >>> comparable([shown]) == comparable([{**shown, "text": "4 rows in 12 ms"}])
    False
    """
    compared = []
    for output in _stored_outputs(outputs):
        data = output.get("data", {"text": output.get("text", "")})
        texts = {
            kind: "a picture" if kind == "image/png" else MEASURED.sub("#", _text(value))
            for kind, value in data.items()
        }
        compared.append((output["output_type"], texts))
    return compared


def _stored_outputs(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the outputs of a cell; printed text that arrived in parts is one output.

    >>> part = {"output_type": "stream", "name": "stdout"}
    >>> _stored_outputs([{**part, "text": "a"}, {**part, "text": "b\\n"}])
    [{'name': 'stdout', 'output_type': 'stream', 'text': ['ab\\n']}]
    """
    merged: list[dict[str, Any]] = []
    for output in map(_stored_output, outputs):
        if merged and "name" in output and merged[-1].get("name") == output["name"]:
            merged[-1]["text"] = _lines(_text(merged[-1]["text"]) + _text(output["text"]))
        else:
            merged.append(output)
    return merged


def _stored_output(output: dict[str, Any]) -> dict[str, Any]:
    """Return an output without metadata; pictures only as SVG, which repository pages show.

    HTML with a picture is for notebooks that run; repository pages remove pictures from HTML.
    """
    kept = {name: output[name] for name in ("name", "output_type") if name in output}
    if output["output_type"] == "execute_result":
        kept["execution_count"] = output["execution_count"]
    if "text" in output:
        return {**kept, "text": _lines(_text(output["text"]))}
    data = {kind: _text(value) for kind, value in output["data"].items()}
    html = data.get("text/html", "")
    only_picture = html.count("<svg") == 1 and not re.search(
        r"<(table|pre)\b", DETAILS.sub("", html)
    )
    if "image/svg+xml" not in data and only_picture:
        data["image/svg+xml"] = html[html.index("<svg") : html.index("</svg>") + len("</svg>\n")]
    if "image/svg+xml" in data:
        data.pop("text/html", None)
    shown = {kind: _lines(text) for kind, text in sorted(data.items())}
    return {**kept, "data": shown, "metadata": {}}


def _text(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


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
    parser = argparse.ArgumentParser(description="Run the notebooks, and store their outputs.")
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
        before = path.read_text("utf-8")
        text = stored(book, json.loads(before))
        if text != before:
            path.write_text(text, "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
