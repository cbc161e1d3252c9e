"""`--version`: what of all that matters is here, and what to do about what is not."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from streamsparql import __version__
from streamsparql.errors import EngineError


class Version(argparse.Action):
    """Prints the versions, and ends."""

    def __init__(self, option_strings: list[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Called by the parser."""
        print("\n".join(lines()))
        parser.exit()


def lines() -> Iterator[str]:
    """A line for each: this package, Python, and what the Spark engine needs."""
    yield f"streamsparql {__version__}"
    yield f"Python {platform.python_version()}"
    for package in ("pyarrow", "pyoxigraph"):
        yield f"{package} {version(package)}"
    try:
        yield f"PySpark {version('pyspark')}"
    except PackageNotFoundError:
        yield "PySpark: none (pip install 'streamsparql[spark]')"
    yield _java()


def _java() -> str:
    from streamsparql.spark.java import find_java

    try:
        found = find_java()
    except EngineError as error:
        return f"Java: none for Spark ({error})"
    return f"Java {found.version}" + (f" ({found.home})" if found.home else "")
