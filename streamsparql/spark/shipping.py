"""This package as a zip, for workers on which it is not installed.

`spark-submit --py-files` and `SparkSession.addArtifacts(..., pyfile=True)` send a zip to each
worker, which imports from it. The dependencies of this package (pyarrow, numpy, ...) have compiled
parts, which Python cannot import from a zip: install them on the workers, or send an environment.
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
"""The packages that are top-level folders of a checkout, and symbolic links in this package."""

_SUFFIXES = (".py", ".typed")
_DATE = (1980, 1, 1, 0, 0, 0)  # of all members: equal content makes equal zips


def archive(path: str | os.PathLike[str]) -> Path:
    """Write a zip of this package to `path`, a name that ends in .zip, and return its path.

    In a folder, the zip is named after the package and its version.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = zipfile.ZipFile(archive(folder)).namelist()
    >>> "streamsparql/__init__.py" in names, "streamsparql/translator/parse_table.py" in names
    (True, True)
    """
    from streamsparql import __version__

    target = Path(path)
    if target.is_dir():
        target /= f"streamsparql-{__version__}.zip"
    if target.suffix != ".zip":
        raise EngineError(f"the name of a package for Spark must end in .zip, not {target.name}")
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, suffix=".zip")
        with (
            os.fdopen(descriptor, "wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package,
        ):
            for name, content in sorted(_members()):
                entry = zipfile.ZipInfo(name, _DATE)
                entry.external_attr = 0o644 << 16
                package.writestr(entry, content, zipfile.ZIP_DEFLATED)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except OSError as error:
        raise EngineError(f"cannot write {target}: {error.strerror}") from error
    return target


def ship(spark: SparkSession) -> None:
    """Send this package to the workers of a session, which import it in preference to any other.

    `session` ships the package to the clusters on which it creates a session.
    """
    package = str(archive(_served_folder()))
    if "connect" in type(spark).__module__:
        spark.addArtifacts(package, pyfile=True)
    else:
        spark.sparkContext.addPyFile(package)


@cache
def _served_folder() -> Path:
    """Return a folder that lasts as long as this process: workers that start later read from it."""
    folder = tempfile.mkdtemp(prefix="streamsparql-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _members() -> Iterator[tuple[str, bytes]]:
    """Yield the files of this package: names in the zip, and contents."""
    for entry in files("streamsparql").iterdir():
        if entry.name not in PARTS:
            yield from _files_below(entry, "streamsparql")
    for part in PARTS:
        for entry in files(f"streamsparql.{part}").iterdir():
            yield from _files_below(entry, f"streamsparql/{part}")


def _files_below(entry: Traversable, folder: str) -> Iterator[tuple[str, bytes]]:
    name = f"{folder}/{entry.name}"
    if entry.is_file():
        if name.endswith(_SUFFIXES):
            yield name, entry.read_bytes()
    elif entry.is_dir() and entry.joinpath("__init__.py").is_file():
        for inner in entry.iterdir():
            yield from _files_below(inner, name)
