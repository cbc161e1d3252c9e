"""A Spark session: the one that runs, or a new one with settings that suit.

`session()` on a laptop makes a local session: all cores, a share of the memory, a log that is
quiet, workers that find this package as the driver does. What the user has set (in an argument, in
spark-defaults.conf, in the environment) always counts more than what is chosen here.
"""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsparql.errors import EngineError
from streamsparql.spark.java import cache_folder, find_java
from streamsparql.spark.launch import environment, launch, logging_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*,4]"
"""All cores, and four tries for each task: local[*] would give up at the first."""

PATIENCE = 600
"""After so many seconds in which a Python worker says nothing, it is ended and the task retried."""

_UDF = "spark.sql.execution.pyspark.udf"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_GIGABYTE = 1 << 30


def session(
    master: str | None = None, name: str = "streamsparql", quiet: bool = True, **settings: object
) -> SparkSession:
    """The active session, or a new one: local where no `master` is given or configured.

    `master` is what Spark calls so: `local[2]`, `spark://host:7077`, `yarn`; or `sc://host` for
    Spark Connect. `name` is how Spark's pages call the application. With `quiet`, Spark logs errors
    only. `settings` are Spark's, `**{"spark.driver.memory": "4g"}`, and win over the choices made
    here. On a cluster that is not Spark Connect, the workers get this package too (see `ship`).

    EngineError where a session runs with another master, where Spark or Java is missing, or where
    the session does not come up.
    """
    _check_installed()
    given = {key: _text(value) for key, value in settings.items()}
    if wrong := [key for key in given if not key.startswith("spark.")]:
        raise EngineError(
            f"Spark's settings are named spark.…, as in spark.driver.memory: {wrong[0]!r} is not"
        )
    found = _running(master)
    if found is not None:
        return _changed(found, given)
    if "PYSPARK_GATEWAY_PORT" in os.environ and master is None:  # started by spark-submit
        return _built({"spark.app.name": name, **given})
    remote = master or given.get("spark.remote") or os.environ.get("SPARK_REMOTE") or ""
    if remote.startswith("sc://"):
        return _built({"spark.remote": remote, "spark.app.name": name, **given})
    return _started(master, name, quiet, given)


# -- what is there ---------------------------------------------------------------------------------


def _check_installed() -> None:
    for package in ("pyspark", "pandas"):
        if find_spec(package) is None:
            raise EngineError(
                f"the Spark engine needs {package}: pip install 'streamsparql[spark]'"
            )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _running(master: str | None) -> SparkSession | None:
    """The session that runs in this process, in whatever thread it was made."""
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None and (context := _context()) is not None:
        found = SparkSession.builder.getOrCreate()
        assert context is not None
    if found is None or master is None:
        return found
    where = found.sparkContext.master if _is_classic(found) else "sc://"
    if where == master or (where == "sc://" and master.startswith(where)):
        return found
    raise EngineError(
        f"a Spark session is running on {where}: end it with spark.stop() before one on {master}"
        " starts, or ask for no master"
    )


def _context() -> Any:
    """The SparkContext of this process, if one runs."""
    if find_spec("pyspark.core") is None:  # the package pyspark-client: Spark Connect alone
        return None
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def _is_classic(spark: SparkSession) -> bool:
    return "connect" not in type(spark).__module__


def _changed(spark: SparkSession, given: Mapping[str, str]) -> SparkSession:
    """The session with these settings, as far as they can be changed while it runs."""
    from pyspark.errors import PySparkException

    for key, value in given.items():
        try:
            spark.conf.set(key, value)
        except PySparkException as error:
            raise EngineError(
                f"{key} cannot be set in a session that runs: end it with spark.stop() first"
            ) from error
    return spark


def _built(options: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except ImportError as error:
        reason = str(error).splitlines()[0]
        raise EngineError(f"{reason} (pip install 'pyspark[connect]')") from error
    except (PySparkException, OSError) as error:
        raise EngineError(f"the Spark session does not start: {error}") from error


# -- a new one -------------------------------------------------------------------------------------


def _started(master: str | None, name: str, quiet: bool, given: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.find_spark_home import _find_spark_home

    home = Path(_find_spark_home())
    configured = configuration(home)
    known = {**configured, **given}
    known.update(choices(master, name, known))
    options = known.get(_JAVA_OPTIONS, "")
    if quiet and not _logs(home, options):
        known[_JAVA_OPTIONS] = f"{options} {_quiet_option()}".strip()
    where = known["spark.master"]
    local = is_local(where)
    conf = SparkConf(loadDefaults=False)
    for key, value in known.items():
        conf.set(key, value)
    with environment(_environment(home, known, local)):
        try:
            gateway = None if SparkContext._gateway is not None else launch(conf, quiet)
            SparkContext(gateway=gateway, conf=conf)
        except EngineError:
            raise
        except Exception as error:  # py4j's, which tell what the JVM raised
            raise EngineError(f"Spark does not start on {where}: {_reason(error)}") from error
        spark = _built({})
    if not local:
        from streamsparql.spark.shipping import ship

        ship(spark)
    return spark


def choices(master: str | None, name: str, known: Mapping[str, str]) -> dict[str, str]:
    """The settings of a new session, without those that are `known`.

    >>> chosen = choices("local[2]", "wind", {"spark.driver.memory": "7g"})
    >>> chosen["spark.master"], chosen["spark.ui.enabled"], "spark.driver.memory" in chosen
    ('local[2]', 'false', False)
    >>> sorted(set(chosen) - set(choices("yarn", "wind", {})))
    ['spark.driver.bindAddress', 'spark.driver.host', 'spark.ui.enabled']
    """
    where = master or known.get("spark.master") or LOCAL
    made = {
        "spark.master": where,
        "spark.app.name": name,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": _text(sys.stderr is not None and sys.stderr.isatty()),
        f"{_UDF}.idleTimeoutSeconds": str(PATIENCE),
        f"{_UDF}.killOnIdleTimeout": "true",
    }
    if is_local(where):
        made["spark.ui.enabled"] = "false"
        made["spark.driver.host"] = made["spark.driver.bindAddress"] = "127.0.0.1"
        if (memory := machine_memory()) is not None:
            made["spark.driver.memory"] = share(memory)
    kept = {key: value for key, value in made.items() if key not in known}
    return kept if master is None else {**kept, "spark.master": where}


def is_local(master: str) -> bool:
    """Whether this master runs everything in one Java process, on this machine.

    >>> is_local("local[*,4]"), is_local("local-cluster[2,1,1024]"), is_local("yarn")
    (True, False, False)
    """
    return master == "local" or master.startswith("local[")


def share(memory: int) -> str:
    """What Java gets of a machine's memory: a quarter, as Python's workers do most of the work.

    >>> share(16 << 30), share(1 << 30), share(1 << 40)
    ('4096m', '1024m', '16384m')
    """
    return f"{min(max(memory // 4, _GIGABYTE), 16 * _GIGABYTE) >> 20}m"


def machine_memory() -> int | None:
    """The bytes of memory of this machine, or of this container; None where nobody knows."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):  # of control groups 2 and 1
        with suppress(OSError, ValueError):
            memory = min(memory, int(Path("/sys/fs/cgroup", limit).read_text()))
    return memory


def configuration(home: Path, variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What the user has set outside of this process: in a file, or in the environment.

    >>> found = configuration(Path("/nowhere"), {"PYSPARK_SUBMIT_ARGS": "--master yarn x.py"})
    >>> found, configuration(Path("/nowhere"), {"SPARK_DRIVER_MEMORY": "3g"})
    ({'spark.master': 'yarn'}, {'spark.driver.memory': '3g'})
    """
    found = {}
    for variable, key in _VARIABLES.items():
        if variables.get(variable):
            found[key] = variables[variable]
    if "spark.driver.bindAddress" in found:
        found["spark.driver.host"] = found["spark.driver.bindAddress"]
    file = Path(variables.get("SPARK_CONF_DIR") or home / "conf", "spark-defaults.conf")
    if file.is_file():
        found.update(_properties(file.read_text("utf-8")))
    arguments = shlex.split(variables.get("PYSPARK_SUBMIT_ARGS", ""))
    for option, value in pairwise(arguments):
        if option in ("--conf", "-c"):
            key, _, value = value.partition("=")
            found[key] = value
        elif option in _OPTIONS:
            found[_OPTIONS[option]] = value
    return found


_VARIABLES = {
    "MASTER": "spark.master",
    "SPARK_DRIVER_MEMORY": "spark.driver.memory",
    "SPARK_LOCAL_IP": "spark.driver.bindAddress",
}
_OPTIONS = {
    "--master": "spark.master",
    "--name": "spark.app.name",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": _JAVA_OPTIONS,
}


def _properties(text: str) -> dict[str, str]:
    r"""The settings in a file of Java's properties.

    >>> _properties("# mine\nspark.master  yarn\nspark.ui.enabled=true\n")
    {'spark.master': 'yarn', 'spark.ui.enabled': 'true'}
    """
    found = {}
    for line in map(str.strip, text.splitlines()):
        if line and line[0] not in "#!":
            key = line.replace("=", " ").replace(":", " ").split(maxsplit=1)[0]
            found[key] = line[len(key) :].strip().removeprefix("=").removeprefix(":").strip()
    return found


def _logs(home: Path, options: str) -> bool:
    """Whether the user has said how Spark logs."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf")
    return "log4j" in options or any(folder.glob("log4j2.*"))


def _quiet_option() -> str:
    try:
        file = logging_file(cache_folder() or Path(tempfile.mkdtemp(prefix="streamsparql-")))
    except OSError:
        file = logging_file(Path(tempfile.mkdtemp(prefix="streamsparql-")))
    return f"-Dlog4j2.configurationFile={file.as_uri()}"


def _environment(home: Path, known: Mapping[str, str], local: bool) -> dict[str, str | None]:
    """The variables that the Java process, and Python workers below it, are to see."""
    java = find_java()
    made: dict[str, str | None] = {
        "SPARK_HOME": str(home),
        "JAVA_HOME": None if java.home is None else str(java.home),
    }
    python = known.get("spark.pyspark.python", sys.executable)
    made["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON") or python
    made["PYSPARK_DRIVER_PYTHON"] = os.environ.get("PYSPARK_DRIVER_PYTHON") or sys.executable
    here = _where_this_package_is()
    if local and here is not None:
        path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        made["PYTHONPATH"] = os.pathsep.join([here, *filter(None, path)])
    return made


def _where_this_package_is() -> str | None:
    """The folder that a worker must look in to find this package; None where every Python does."""
    import streamsparql

    folder = str(Path(streamsparql.__file__).parents[1])
    installed = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    return None if folder in installed else folder


def _reason(error: Exception) -> str:
    """What went wrong, of an error that may carry the JVM's stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if not line.startswith("at ")]
    return " ".join(causes[:2]) or type(error).__name__
