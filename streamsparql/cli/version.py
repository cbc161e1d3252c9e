"""`--version`: the versions of this package and its dependencies, and how to install them."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from streamsparql import __version__
from streamsparql.errors import EngineError
from streamsparql.text.extras import install


class VersionAction(argparse.Action):
    """An option that prints the versions and exits."""

    def __init__(self, option_strings: list[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the versions and exit."""
        print("\n".join(_version_lines()))
        parser.exit()


def _version_lines() -> Iterator[str]:
    """Yield a line each for this package, Python, its libraries, Spark and Java."""
    yield f"streamsparql {__version__}"
    yield f"Python {platform.python_version()}"
    for package in ("pyarrow", "pyoxigraph"):
        yield f"{package} {version(package)}"
    try:
        yield f"PySpark {version('pyspark')}"
    except PackageNotFoundError:
        yield f"PySpark: not installed ({install('spark')})"
    yield _java_line()


def _java_line() -> str:
    from streamsparql.spark.java import find_java

    try:
        java = find_java()
    except EngineError as error:
        return f"Java: no suitable version ({error})"
    return f"Java {java.version}" + (f" ({java.home})" if java.home else "")
