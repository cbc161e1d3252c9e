"""The Spark engine compared with hand-written Spark SQL and the embedded engine, over Parquet.

    python benchmarks/spark.py [--cases count,W5,W2,W3,W2-reports,W3-reports] [--sizes 10M,50M]
                               [--contenders files,frame,sql,sql-count,embedded] [--repeat 3]
                               [--data FOLDER] [--memory 4g] [--json FILE] [--no-check]

Each contender runs in a separate process, with two cores, and they take turns, so that other load
on the machine disturbs all of them alike. First, they must emit the same rows at a small size (see
README.md).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import pyarrow as pa  # noqa: E402
from histories import history_file  # noqa: E402
from turbines import EX, SLIDE, SLIDES_PER_WINDOW  # noqa: E402
from workloads import continuous  # noqa: E402

CORES = 2
CHECK_TRIPLES = 200_000
"""The number of triples at which the rows of contenders are compared."""
WARM_UP_TRIPLES = 1_000_000
"""The number of triples that a contender processes before the clock starts."""
LARGE_TRIPLES = 20_000_000
"""The number of triples from which on a contender takes one turn."""
SAMPLE_INTERVAL = 0.2
"""The seconds between two samples of the memory."""


# -- The cases ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A query, for this engine and in SQL."""

    workload: str
    report: str | None
    sql: str
    description: str
    small: bool = False
    """Whether the result is small and fetched; others are written to Spark's sink `noop`."""

    @property
    def query(self) -> str:
        """The query text for this engine."""
        text: str = continuous(self.workload)
        return text.replace("?t ?a ?b", "(COUNT(*) AS ?n)", 1) if self.small else text


def _items(predicate: str, value: str = "object AS v") -> str:
    """Return SQL for the items of a predicate: `s` is the timestamp, `k` the first window."""
    return (
        f"SELECT subject AS t, {value}, timestamp AS s, (timestamp + {SLIDE - 1}) DIV {SLIDE} AS k"
        f" FROM readings WHERE predicate = '<{EX}{predicate}>'"
    )


N = SLIDES_PER_WINDOW

# Two items overlap if their first windows are less than N apart. Buckets of time make that a hash
# join on turbine and bucket: the left item is in its bucket, the right one in all buckets (2.8 on
# average) with items that can overlap it.
PAIRS = f"""
WITH a AS (SELECT *, k DIV {N} AS bucket FROM ({_items("StrCnt")})),
b AS (
  SELECT *, explode(sequence((k - {N - 1}) DIV {N}, (k + {N - 1}) DIV {N})) AS bucket
  FROM ({_items("StopCnt")})
),
pairs AS (
  SELECT /*+ SHUFFLE_HASH(a) */ a.t, a.v AS a, b.v AS b,
         greatest(a.k, b.k) AS low, least(a.k, b.k) + {N} AS high,
         greatest(a.s, b.s) AS start, (least(a.k, b.k) + {N - 1}) * {SLIDE} AS end
  FROM a JOIN b ON a.t = b.t AND a.bucket = b.bucket
       AND b.k BETWEEN a.k - {N - 1} AND a.k + {N - 1}
)"""

# Pairs are counted by (low, high), of which there are few, before these are expanded to windows.
COUNT = f"""{PAIRS}
SELECT w * {SLIDE} AS instant, sum(n) AS n
FROM (SELECT low, high, count(*) AS n FROM pairs GROUP BY low, high)
LATERAL VIEW explode(sequence(low, high - 1)) AS w GROUP BY w"""

# Valid for COUNT(*) only: the pairs of a turbine in a window are a product of two counts. No join.
COUNT_WITHOUT_JOIN = f"""
SELECT w * {SLIDE} AS instant, sum(a * b) AS n FROM (
  SELECT t, w, count_if(x) AS a, count_if(NOT x) AS b FROM (
    SELECT t, x, explode(sequence(k, k + {N - 1})) AS w FROM (
      SELECT /*+ REPARTITION(8, t) */ subject AS t, predicate = '<{EX}StrCnt>' AS x,
             (timestamp + {SLIDE - 1}) DIV {SLIDE} AS k
      FROM readings WHERE predicate IN ('<{EX}StrCnt>', '<{EX}StopCnt>')
    )
  ) GROUP BY t, w
) GROUP BY w HAVING n > 0"""

JOINED = f"{PAIRS} SELECT t, a, b, start, end FROM pairs"
IN_WINDOWS = "LATERAL VIEW explode(if(low < high, sequence(low, high - 1), array())) AS w"
JOINED_REPORTS = f"{PAIRS} SELECT t, a, b, w * {SLIDE} AS instant FROM pairs {IN_WINDOWS}"

# The left join adds the times at which an item is unmatched. All windows have the same length, so
# that is one interval: from the end of the last b before the item to the start of the next b.
LEFT = f"""{PAIRS},
near AS (
  SELECT *,
    max(if(x, NULL, e)) OVER (PARTITION BY t ORDER BY s
      RANGE BETWEEN {N * SLIDE} PRECEDING AND CURRENT ROW) AS last,
    min(if(x, NULL, s)) OVER (PARTITION BY t ORDER BY s
      RANGE BETWEEN 1 FOLLOWING AND {N * SLIDE} FOLLOWING) AS next
  FROM (
    SELECT *, (k + {N - 1}) * {SLIDE} AS e FROM (
      SELECT *, true AS x FROM ({_items("StrCnt")})
      UNION ALL SELECT *, false AS x FROM ({_items("StopCnt", "'' AS v")})
    )
  )
),
alone AS (
  SELECT t, v AS a, CAST(NULL AS STRING) AS b,
         greatest(s, coalesce(last, s)) AS start, least(e, coalesce(next, e)) AS end
  FROM near WHERE x
),
rows AS (
  SELECT * FROM pairs UNION ALL
  SELECT t, a, b, start DIV {SLIDE} + 1 AS low, end DIV {SLIDE} + 1 AS high, start, end
  FROM alone WHERE start < end
)"""
OUTER = f"{LEFT} SELECT t, a, b, start, end FROM rows"
OUTER_REPORTS = f"{LEFT} SELECT t, a, b, w * {SLIDE} AS instant FROM rows {IN_WINDOWS}"

# A repartition by turbine before the items are expanded to windows makes the shuffle ten times
# smaller, and the aggregation needs no other one.
NUMBER = "CAST(substring_index(substring(object, 2), '\"', 1) AS DOUBLE) AS v"
GROUPED = f"""
SELECT t, count(v) AS c, avg(v) AS a, w * {SLIDE} AS instant FROM (
  SELECT t, v, explode(sequence(k, k + {N - 1})) AS w
  FROM (SELECT /*+ REPARTITION(8, t) */ * FROM ({_items("WindSpeed", NUMBER)}))
) GROUP BY t, w"""

CASES = {
    "count": Case("W2", "rstream", COUNT, "W2's join, then COUNT(*) in each window", small=True),
    "W5": Case("W5", "rstream", GROUPED, "count and average by turbine in each window"),
    "W2": Case("W2", None, JOINED, "join, rows with validity"),
    "W3": Case("W3", None, OUTER, "optional, rows with validity"),
    "W2-reports": Case("W2", "rstream", JOINED_REPORTS, "join, the rows of each window"),
    "W3-reports": Case("W3", "rstream", OUTER_REPORTS, "optional, the rows of each window"),
}
SETTINGS = {
    "spark.sql.shuffle.partitions": 4 * CORES,
    "spark.sql.requireAllClusterKeysForCoPartition": False,
}
"""The settings of an experienced user on two cores, for all contenders."""


# -- Contenders, each in a separate process -----------------------------------------------------


class Contender:
    """A way to run the query: `turn` computes all rows, `rows` returns them."""

    def __init__(self, name: str, memory: str) -> None:
        self.name, self.memory = name, memory

    @cached_property
    def spark(self) -> Any:
        """A Spark session on this machine."""
        from streamsparql.spark import session

        settings: dict[str, Any] = {**SETTINGS, "spark.driver.memory": self.memory}
        return session(f"local[{CORES},4]", **settings)

    def turn(self, case: Case, path: str) -> int:
        """Compute the result; return the number of rows if it is known, else 0."""
        if self.name == "embedded":
            return int(self._embedded(case, path).num_rows)
        frame = self._frame(case, path)
        if case.small:
            return len(frame.collect())
        frame.write.format("noop").mode("overwrite").save()
        return 0

    def rows(self, case: Case, path: str) -> pa.Table:
        """Return the result as an Arrow table."""
        if self.name == "embedded":
            return self._embedded(case, path)
        return self._frame(case, path).toArrow()

    def _embedded(self, case: Case, path: str) -> pa.Table:
        import streamsparql

        return streamsparql.compile(case.query).run(path).to_arrow(report=case.report)

    def _frame(self, case: Case, path: str) -> Any:
        import streamsparql

        if self.name in ("sql", "sql-count"):
            self.spark.read.parquet(path).createOrReplaceTempView("readings")
            return self.spark.sql(COUNT_WITHOUT_JOIN if self.name == "sql-count" else case.sql)
        source = path if self.name == "files" else self.spark.read.parquet(path)
        query = streamsparql.compile(case.query)
        return query.on_spark(self.spark, source, report=case.report)


CONTENDERS = ("files", "frame", "sql", "sql-count", "embedded")


def serve(name: str, memory: str, pipe: Connection) -> None:
    """Serve requests in the process of a contender, until one of them is None."""
    if name == "embedded":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    contender = Contender(name, memory)
    while (request := pipe.recv()) is not None:
        method, case, path = request
        if method == "rows":
            pipe.send(contender.rows(CASES[case], path))
            continue
        before = time.perf_counter()
        rows = contender.turn(CASES[case], path)
        pipe.send((time.perf_counter() - before, rows))


class Process:
    """The process of a contender, as a client of its `serve`."""

    def __init__(self, name: str, memory: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, server_end = context.Pipe()
        self._process = context.Process(target=serve, args=(name, memory, server_end), daemon=True)
        self._process.start()
        server_end.close()

    def call(self, method: str, case: str, path: str) -> Any:
        """Call a method of the contender; raise EOFError if the process has ended."""
        self._pipe.send((method, case, path))
        return self._pipe.recv()

    def take_turn(self, case: str, path: str) -> Turn:
        """Run a turn, and measure its time, its processor time and its peak memory."""
        root = self._process.pid or 0
        before = processor_seconds(root)
        with peak_memory(root) as peak:
            seconds, rows = self.call("turn", case, path)
        return Turn(seconds, processor_seconds(root) - before, rows, dict(peak))

    def end(self) -> None:
        """End the process."""
        with suppress(BrokenPipeError):
            self._pipe.send(None)
        self._process.join()


# -- Memory -------------------------------------------------------------------------------------


@dataclass
class Turn:
    """The time and memory of a turn."""

    seconds: float
    processor: float
    """Processor seconds of all processes on all cores."""
    rows: int
    peak: dict[str, int] = field(default_factory=dict)
    """The peak of the resident memory in MB: of Java, of Python, and of both together."""


def process_tree(root: int) -> dict[int, list[str]]:
    """Return the fields of `/proc/PID/stat`, from the name on, of a process and its descendants."""
    known = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            name, _, rest = text[text.index("(") + 1 :].rpartition(")")  # a name may have spaces
            known[int(entry.name)] = [name, *rest.split()]
    tree = {root: known[root]} if root in known else {}
    size = 0
    while size < len(tree):
        size = len(tree)
        tree.update({p: s for p, s in known.items() if int(s[2]) in tree})
    return tree


def processor_seconds(root: int) -> float:
    """Return the processor time of a process and its descendants, also of those that have ended."""
    ticks = sum(sum(map(int, stat[12:16])) for stat in process_tree(root).values())
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def peak_memory(root: int) -> Iterator[dict[str, int]]:
    """Sample the memory of a process and its descendants during a `with`; yield the peaks."""
    peak = {"java": 0, "python": 0, "all": 0}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(SAMPLE_INTERVAL):
            now = {"java": 0, "python": 0}
            for stat in process_tree(root).values():
                kind = "java" if stat[0] == "java" else "python"
                now[kind] += int(stat[22]) * os.sysconf("SC_PAGE_SIZE") >> 20
            now["all"] = sum(now.values())
            peak.update({kind: max(peak[kind], size) for kind, size in now.items()})

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


# -- Measuring ----------------------------------------------------------------------------------


def contenders_of(case: str, selected: Sequence[str]) -> list[str]:
    """Return the contenders of a case."""
    excluded = {"sql-count"} if case != "count" else set()
    return [name for name in selected if name not in excluded]


def is_too_large(case: str, name: str, triples: int) -> bool:
    """Return whether a result is too large for the memory of the embedded engine."""
    return name == "embedded" and triples >= LARGE_TRIPLES and case != "count"


def normalise(case: Case, table: pa.Table) -> Any:
    """Return a result in a form that can be compared: a sorted frame, literals as numbers."""
    columns = {n: table.column(n) for n in sorted(table.column_names)}
    coded = {n for n, c in columns.items() if pa.types.is_dictionary(c.type)}
    columns = {n: c.cast(pa.string()) if n in coded else c for n, c in columns.items()}
    frame = pa.table(columns).to_pandas()
    for name in ("n", "c", "a") if case.small or case.workload == "W5" else ():
        if name in frame and frame[name].dtype == object:
            frame[name] = frame[name].str.split('"').str[1]
        if name in frame:
            frame[name] = frame[name].astype(float)
    if case.small:  # for a window without pairs, SQL has no row
        frame = frame[frame["n"] != 0]
    keys = [n for n in ("t", "b", "a", "instant", "start", "end") if n in frame]
    return frame.sort_values(keys, ignore_index=True)


def check(case: str, processes: dict[str, Process], path: str) -> None:
    """Check that all contenders return the same rows; else end the run."""
    from pandas.testing import assert_frame_equal

    results = {n: normalise(CASES[case], p.call("rows", case, path)) for n, p in processes.items()}
    (first, expected), *rest = results.items()
    for name, result in rest:
        try:
            assert_frame_equal(result, expected, check_dtype=False, rtol=1e-9)
        except AssertionError as error:
            sys.exit(f"{case}: {name} and {first} differ: {error}")
    print(f"  {len(expected):,} equal rows of {CHECK_TRIPLES:,} triples: {', '.join(results)}")


def measure(case: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the record of a case at each size."""
    names = contenders_of(case, options.contenders)
    processes = {name: Process(name, options.memory) for name in names}
    try:
        if options.check:
            check(case, processes, history_file(options.data, CHECK_TRIPLES))
        for process in processes.values():
            process.call("turn", case, history_file(options.data, WARM_UP_TRIPLES))
        for triples in options.sizes:
            path = history_file(options.data, triples)
            turns: dict[str, list[Turn]] = {name: [] for name in names}
            for _ in range(1 if triples >= LARGE_TRIPLES else options.repeat):
                for name, process in processes.items():
                    if not is_too_large(case, name, triples):
                        turns[name].append(process.take_turn(case, path))
            yield record(case, triples, turns)
    finally:
        for process in processes.values():
            process.end()


def record(case: str, triples: int, turns: dict[str, list[Turn]]) -> dict[str, Any]:
    """Return a record with the median turn of each contender."""
    medians = {}
    for name, taken in turns.items():
        if taken:
            middle = sorted(taken, key=lambda turn: turn.seconds)[len(taken) // 2]
            peak = {kind: max(turn.peak[kind] for turn in taken) for kind in middle.peak}
            medians[name] = {**asdict(middle), "peak": peak}
            medians[name]["seconds"] = median(turn.seconds for turn in taken)
    return {"case": case, "triples": triples, "turns": medians}


# -- The report ---------------------------------------------------------------------------------

BARS = {
    ("count", "files", "sql"): 3.0,
    ("count", "frame", "sql"): 1.5,
    ("count", "files", "embedded"): 1.4,
    ("W5", "files", "sql"): 1.0,
}
"""The least ratio of a contender to another, by case."""
GROWTH_BAR = 1.1
"""The greatest ratio of the growth of time to the growth of the data."""


def show(record: dict[str, Any]) -> None:
    """Print the record of a case at a size."""
    turns = record["turns"]
    print(f"  {record['triples'] / 1e6:g}M triples")
    for name, turn in turns.items():
        peak, seconds = turn["peak"], turn["seconds"]
        print(
            f"    {name:10}{seconds:8.2f} s  {record['triples'] / seconds:12,.0f} triples/s"
            f"  processor {turn['processor']:7.2f} s"
            f"  Java {peak['java']:,} MB, Python {peak['python']:,} MB"
        )
    for mine in ("files", "frame"):
        for other in ("sql", "sql-count", "embedded"):
            if mine in turns and other in turns:
                ratio = turns[other]["seconds"] / turns[mine]["seconds"]
                bar = BARS.get((record["case"], mine, other))
                print(f"    {mine} {ratio:.2f}x {other}{_verdict(ratio, bar)}", flush=True)


def _verdict(ratio: float, bar: float | None) -> str:
    if bar is None:
        return ""
    return f" (bar {bar}: {'ok' if ratio >= bar else 'BELOW'})"


def show_growth(records: Sequence[dict[str, Any]]) -> None:
    """Print how time and memory grow from the smallest size to the largest."""
    for case in CASES:
        of_case = sorted((r for r in records if r["case"] == case), key=lambda r: r["triples"])
        if len(of_case) < 2:
            continue
        for name in ("files", "frame"):
            sizes = [(r["triples"], r["turns"][name]) for r in of_case if name in r["turns"]]
            if len(sizes) > 1:
                (few, first), (many, last) = sizes[0], sizes[-1]
                time_ratio, data = last["seconds"] / first["seconds"], many / few
                met = "ok" if time_ratio <= data * GROWTH_BAR else "ABOVE THE BAR"
                peaks = ", ".join(f"{n / 1e6:g}M {t['peak']['all']:,} MB" for n, t in sizes)
                print(f"{case} {name}: {data:g}x data in {time_ratio:.1f}x time ({met}); {peaks}")


def _parse_triples(text: str) -> int:
    """Parse a number of triples.

    >>> _parse_triples("5M"), _parse_triples("200k")
    (5000000, 200000)
    """
    unit = {"k": 1_000, "M": 1_000_000}.get(text[-1:], 1)
    return int(float(text if unit == 1 else text[:-1]) * unit)


def _list_of(kind: Callable[[str], Any] = str) -> Callable[[str], list[Any]]:
    return lambda text: [kind(part) for part in text.split(",") if part]


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", "--only", type=_list_of(), default=list(CASES))
    parser.add_argument("--sizes", type=_list_of(_parse_triples), default=[10_000_000, 50_000_000])
    parser.add_argument("--contenders", type=_list_of(), default=list(CONTENDERS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--data", type=Path, help="folder of the Parquet files")
    parser.add_argument("--memory", default="4g", help="Java heap of each contender")
    parser.add_argument("--json", type=Path, help="write the records to a file")
    parser.add_argument("--no-check", dest="check", action="store_false")
    options = parser.parse_args()
    for selected, known in ((options.cases, CASES), (options.contenders, CONTENDERS)):
        if unknown := set(selected) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    if options.data is None:
        options.data = Path(tempfile.gettempdir(), "streamsparql-benchmarks")
    return options


def main() -> None:
    """Measure the selected cases and print the records."""
    options = _parse_options()
    records = []
    for case in options.cases:
        print(f"\n{case}: {CASES[case].description}", flush=True)
        for case_record in measure(case, options):
            show(case_record)
            records.append(case_record)
    print()
    show_growth(records)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
