"""This package as a zip, for workers on which it is not installed.

`spark-submit --py-files` and `SparkSession.addArtifacts(..., pyfile=True)` send a zip to each
worker, which imports from it. What this package imports (pyarrow, numpy, ...) has compiled
parts that no zip can hold: it is to be installed on the workers, or sent as an environment.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from streamsparql.errors import EngineError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pyspark.sql import SparkSession

PARTS = ("algebra", "physical", "translator")
"""The packages that stand beside this one in a checkout, and are links in it."""

_SUFFIXES = (".py", ".typed")
_DATE = (1980, 1, 1, 0, 0, 0)  # of all members, so that the same content is the same zip


def archive(path: str | os.PathLike[str]) -> Path:
    """Writes a zip of this package to `path`, whose name ends in .zip, and gives its path.

    A folder gets a zip that is named like the package and its version.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = archive(folder)
    ...     names = zipfile.ZipFile(made).namelist()
    >>> "streamsparql/__init__.py" in names, "streamsparql/translator/parse_table.py" in names
    (True, True)
    """
    from streamsparql import __version__

    target = Path(path)
    if target.is_dir():
        target /= f"streamsparql-{__version__}.zip"
    if target.suffix != ".zip":
        raise EngineError(f"Spark takes a package as a .zip, and {target.name} has another name")
    try:
        descriptor, made = tempfile.mkstemp(dir=target.parent, suffix=".zip")
        with (
            os.fdopen(descriptor, "wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as to,
        ):
            for name, content in sorted(_members()):
                entry = zipfile.ZipInfo(name, _DATE)
                entry.external_attr = 0o644 << 16
                to.writestr(entry, content, zipfile.ZIP_DEFLATED)
        os.chmod(made, 0o644)
        os.replace(made, target)
    except OSError as error:
        raise EngineError(f"cannot write {target}: {error.strerror}") from error
    return target


def ship(spark: SparkSession) -> None:
    """Sends this package to the workers of a session, in which they find it before any other.

    `session` does it for the sessions that it makes on a cluster.
    """
    made = str(archive(_served_folder()))
    if "connect" in type(spark).__module__:
        spark.addArtifacts(made, pyfile=True)
    else:
        spark.sparkContext.addPyFile(made)


@cache
def _served_folder() -> Path:
    """A folder that lasts as long as this process: workers fetch files from it when they come."""
    folder = tempfile.mkdtemp(prefix="streamsparql-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _members() -> Iterator[tuple[str, bytes]]:
    """The files of this package: names in the zip, and contents."""
    for entry in files("streamsparql").iterdir():
        if entry.name not in PARTS:
            yield from _below(entry, "streamsparql")
    for part in PARTS:
        for entry in files(f"streamsparql.{part}").iterdir():
            yield from _below(entry, f"streamsparql/{part}")


def _below(entry: Traversable, folder: str) -> Iterator[tuple[str, bytes]]:
    name = f"{folder}/{entry.name}"
    if entry.is_file():
        if name.endswith(_SUFFIXES):
            yield name, entry.read_bytes()
    elif entry.is_dir() and entry.joinpath("__init__.py").is_file():
        for inner in entry.iterdir():
            yield from _below(inner, name)
