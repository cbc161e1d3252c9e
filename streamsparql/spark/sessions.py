"""The Spark session: the active one, or a new one with suitable settings.

On a laptop, `session()` creates a local session: all cores, a quarter of the memory, a quiet log,
workers that import this package from the same folder as the driver. Settings of the user (in an
argument, in spark-defaults.conf, in the environment) take precedence over the defaults chosen here.
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
from streamsparql.spark.launch import changed_environment, launch_jvm, logging_file
from streamsparql.text.extras import install

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*,4]"
"""All cores, and four attempts for each task: with local[*] the first failure ends the job."""

WORKER_TIMEOUT = 600
"""The seconds without output after which a Python worker is killed and its task retried."""

_UDF = "spark.sql.execution.pyspark.udf"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_GIGABYTE = 1 << 30


def session(
    master: str | None = None, name: str = "streamsparql", quiet: bool = True, **settings: object
) -> SparkSession:
    """Return the active session, or a new one: local unless a `master` is set or configured.

    `master` is Spark's: `local[2]`, `spark://host:7077`, `yarn`; or `sc://host` for Spark Connect.
    `name` is the application's name in Spark's web interface. With `quiet`, Spark logs errors only.
    `settings` are Spark's, `**{"spark.driver.memory": "4g"}`, and take precedence over the defaults
    chosen here. On a cluster that is not Spark Connect, the workers get this package, too (`ship`).

    Raise an EngineError if a session runs with another master, if Spark or Java is missing, or if
    the session does not start.
    """
    _check_installed()
    values = {key: _text(value) for key, value in settings.items()}
    if wrong := [key for key in values if not key.startswith("spark.")]:
        raise EngineError(
            f"unknown Spark setting {wrong[0]!r}; settings begin with spark.,"
            " as in spark.driver.memory"
        )
    active = _active_session(master)
    if active is not None:
        return _configure(active, values)
    if "PYSPARK_GATEWAY_PORT" in os.environ and master is None:  # started by spark-submit
        return _build({"spark.app.name": name, **values})
    remote = master or values.get("spark.remote") or os.environ.get("SPARK_REMOTE") or ""
    if remote.startswith("sc://"):
        return _build({"spark.remote": remote, "spark.app.name": name, **values})
    return _start(master, name, quiet, values)


# -- the active session ----------------------------------------------------------------------------


def _check_installed() -> None:
    for package in ("pyspark", "pandas"):
        if find_spec(package) is None:
            raise EngineError(f"the Spark engine needs {package}: {install('spark')}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _active_session(master: str | None) -> SparkSession | None:
    """Return the session that runs in this process, whichever thread created it."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None and _context() is not None:
        active = SparkSession.builder.getOrCreate()
    if active is None or master is None:
        return active
    where = active.sparkContext.master if _is_classic(active) else "sc://"
    if where == master or (where == "sc://" and master.startswith(where)):
        return active
    raise EngineError(
        f"a Spark session is running on {where}: end it with spark.stop() before starting one on"
        f" {master}, or omit the master"
    )


def _context() -> Any:
    """Return the SparkContext of this process, if one runs."""
    if find_spec("pyspark.core") is None:  # the package pyspark-client: Spark Connect alone
        return None
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def _is_classic(spark: SparkSession) -> bool:
    return "connect" not in type(spark).__module__


def _configure(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Apply settings to a running session; raise an EngineError for one that is fixed."""
    from pyspark.errors import PySparkException

    for key, value in settings.items():
        try:
            spark.conf.set(key, value)
        except PySparkException as error:
            raise EngineError(
                f"{key} cannot be set in a running session: end it with spark.stop() first"
            ) from error
    return spark


def _build(options: Mapping[str, str]) -> SparkSession:
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
        raise EngineError(f"the Spark session did not start: {error}") from error


# -- a new session ---------------------------------------------------------------------------------


def _start(master: str | None, name: str, quiet: bool, values: Mapping[str, str]) -> SparkSession:
    """Start a JVM with the user's settings and the defaults, and return its session."""
    from pyspark import SparkConf, SparkContext
    from pyspark.find_spark_home import _find_spark_home

    home = Path(_find_spark_home())
    settings = {**configuration(home), **values}
    settings.update(default_settings(master, name, settings))
    options = settings.get(_JAVA_OPTIONS, "")
    if quiet and not _configures_logging(home, options):
        settings[_JAVA_OPTIONS] = f"{options} {_quiet_option()}".strip()
    where = settings["spark.master"]
    local = is_local(where)
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    with changed_environment(_process_environment(home, settings, local)):
        try:
            gateway = None if SparkContext._gateway is not None else launch_jvm(conf, quiet)
            SparkContext(gateway=gateway, conf=conf)
        except EngineError:
            raise
        except Exception as error:  # an error of py4j, which quotes the JVM's
            raise EngineError(f"Spark did not start on {where}: {_reason(error)}") from error
        spark = _build({})
    if not local:
        from streamsparql.spark.shipping import ship

        ship(spark)
    return spark


def default_settings(master: str | None, name: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return the default settings of a new session, without those that are `known`.

    >>> settings = default_settings("local[2]", "wind", {"spark.driver.memory": "7g"})
    >>> settings["spark.master"], settings["spark.ui.enabled"], "spark.driver.memory" in settings
    ('local[2]', 'false', False)
    >>> sorted(set(settings) - set(default_settings("yarn", "wind", {})))
    ['spark.driver.bindAddress', 'spark.driver.host', 'spark.ui.enabled']
    """
    where = master or known.get("spark.master") or LOCAL
    settings = {
        "spark.master": where,
        "spark.app.name": name,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": _text(sys.stderr is not None and sys.stderr.isatty()),
        f"{_UDF}.idleTimeoutSeconds": str(WORKER_TIMEOUT),
        f"{_UDF}.killOnIdleTimeout": "true",
    }
    if is_local(where):
        settings["spark.ui.enabled"] = "false"
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        if (memory := machine_memory()) is not None:
            settings["spark.driver.memory"] = java_memory(memory)
    defaults = {key: value for key, value in settings.items() if key not in known}
    return defaults if master is None else {**defaults, "spark.master": where}


def is_local(master: str) -> bool:
    """Return whether a master runs everything in one Java process on this machine.

    >>> is_local("local[*,4]"), is_local("local-cluster[2,1,1024]"), is_local("yarn")
    (True, False, False)
    """
    return master == "local" or master.startswith("local[")


def java_memory(memory: int) -> str:
    """Return Java's part of a machine's memory: a quarter, as Python workers do most of the work.

    >>> java_memory(16 << 30), java_memory(1 << 30), java_memory(1 << 40)
    ('4096m', '1024m', '16384m')
    """
    return f"{min(max(memory // 4, _GIGABYTE), 16 * _GIGABYTE) >> 20}m"


def machine_memory() -> int | None:
    """Return the memory of this machine or container, in bytes; None if it is unknown."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):  # of control groups 2 and 1
        with suppress(OSError, ValueError):
            memory = min(memory, int(Path("/sys/fs/cgroup", limit).read_text()))
    return memory


def configuration(home: Path, variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the user's settings outside of this process: in a file, or in the environment.

    >>> arguments = {"PYSPARK_SUBMIT_ARGS": "--master yarn x.py"}
    >>> configuration(Path("/nowhere"), arguments)
    {'spark.master': 'yarn'}
    >>> configuration(Path("/nowhere"), {"SPARK_DRIVER_MEMORY": "3g"})
    {'spark.driver.memory': '3g'}
    """
    settings = {}
    for variable, key in _VARIABLES.items():
        if variables.get(variable):
            settings[key] = variables[variable]
    if "spark.driver.bindAddress" in settings:
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"]
    file = Path(variables.get("SPARK_CONF_DIR") or home / "conf", "spark-defaults.conf")
    if file.is_file():
        settings.update(_properties(file.read_text("utf-8")))
    arguments = shlex.split(variables.get("PYSPARK_SUBMIT_ARGS", ""))
    for option, value in pairwise(arguments):
        if option in ("--conf", "-c"):
            key, _, value = value.partition("=")
            settings[key] = value
        elif option in _OPTIONS:
            settings[_OPTIONS[option]] = value
    return settings


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
    r"""Return the settings in a Java properties file.

    >>> _properties("# mine\nspark.master  yarn\nspark.ui.enabled=true\n")
    {'spark.master': 'yarn', 'spark.ui.enabled': 'true'}
    """
    settings = {}
    for line in map(str.strip, text.splitlines()):
        if line and line[0] not in "#!":
            key = line.replace("=", " ").replace(":", " ").split(maxsplit=1)[0]
            settings[key] = line[len(key) :].strip().removeprefix("=").removeprefix(":").strip()
    return settings


def _configures_logging(home: Path, options: str) -> bool:
    """Return whether the user has configured Spark's log."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf")
    return "log4j" in options or any(folder.glob("log4j2.*"))


def _quiet_option() -> str:
    try:
        file = logging_file(cache_folder() or Path(tempfile.mkdtemp(prefix="streamsparql-")))
    except OSError:
        file = logging_file(Path(tempfile.mkdtemp(prefix="streamsparql-")))
    return f"-Dlog4j2.configurationFile={file.as_uri()}"


def _process_environment(
    home: Path, settings: Mapping[str, str], local: bool
) -> dict[str, str | None]:
    """Return the environment variables of the Java process and of its Python workers."""
    java = find_java()
    variables: dict[str, str | None] = {
        "SPARK_HOME": str(home),
        "JAVA_HOME": None if java.home is None else str(java.home),
    }
    python = settings.get("spark.pyspark.python", sys.executable)
    variables["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON") or python
    variables["PYSPARK_DRIVER_PYTHON"] = os.environ.get("PYSPARK_DRIVER_PYTHON") or sys.executable
    folder = _package_folder()
    if local and folder is not None:
        path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        variables["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, path)])
    return variables


def _package_folder() -> str | None:
    """Return the folder from which workers import this package; None if it is installed."""
    import streamsparql

    folder = str(Path(streamsparql.__file__).parents[1])
    installed = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    return None if folder in installed else folder


def _reason(error: Exception) -> str:
    """Return the message of an error, without the JVM's stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if not line.startswith("at ")]
    return " ".join(causes[:2]) or type(error).__name__
