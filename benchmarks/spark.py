"""The Spark engine beside hand-written Spark SQL and the embedded engine, over Parquet.

    python benchmarks/spark.py [--cases count,W5,W2,W3,W2-reports,W3-reports] [--sizes 10M,50M]
                               [--contenders files,frame,sql,sql-count,embedded] [--repeat 3]
                               [--data FOLDER] [--memory 4g] [--json FILE] [--no-check]

Each contender runs in a process of its own, with two cores, and they take turns: what else runs on
the machine disturbs all alike. At a small size all must give the same rows first (see README.md).
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
from histories import made  # noqa: E402
from turbines import EX, SLIDE, SLIDES_PER_WINDOW  # noqa: E402
from workloads import continuous  # noqa: E402

CORES = 2
CHECKED = 200_000
"""At so many triples, rows are compared."""
WARM = 1_000_000
"""So many triples are computed once, before the clock starts."""
LARGE = 20_000_000
"""From so many triples on, a contender has one turn."""
EVERY = 0.2
"""Memory is looked at so often, in seconds."""


# -- The questions ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A question, for this engine and in SQL."""

    workload: str
    report: str | None
    sql: str
    what: str
    small: bool = False
    """Whether the answer is small: it is fetched. Others are written to Spark's sink `noop`."""

    @property
    def query(self) -> str:
        """The text for this engine."""
        text: str = continuous(self.workload)
        return text.replace("?t ?a ?b", "(COUNT(*) AS ?n)", 1) if self.small else text


def _items(predicate: str, value: str = "object AS v") -> str:
    """The items of a predicate; `s` is when each comes, `k` numbers its first window."""
    return (
        f"SELECT subject AS t, {value}, timestamp AS s, (timestamp + {SLIDE - 1}) DIV {SLIDE} AS k"
        f" FROM readings WHERE predicate = '<{EX}{predicate}>'"
    )


N = SLIDES_PER_WINDOW

# Items meet if their first windows are less than N apart. Time in buckets makes that a hash join on
# turbine and bucket: one side is in its bucket, the other in all (2.8 on average) that it may meet.
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

# Pairs are counted by their few (low, high) before these are spread over windows.
COUNT = f"""{PAIRS}
SELECT w * {SLIDE} AS instant, sum(n) AS n
FROM (SELECT low, high, count(*) AS n FROM pairs GROUP BY low, high)
LATERAL VIEW explode(sequence(low, high - 1)) AS w GROUP BY w"""

# What holds of COUNT(*) alone: a window has, per turbine, the product of two counts. No join.
COUNT_ALONE = f"""
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

# The left join adds the times at which an item meets nothing. All windows are equally long, so that
# is one interval: from when the last b that came before ends, to when the next one comes.
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

# Turbines are brought together before their items are spread over windows: the shuffle is ten times
# smaller, and the aggregation needs no other.
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
"""What a user of Spark SQL would set on so few cores; all contenders have it."""


# -- Contenders, each in a process of its own ---------------------------------------------------


class Contender:
    """One way to answer; `turn` computes all rows, `rows` gives them."""

    def __init__(self, name: str, memory: str) -> None:
        self.name, self.memory = name, memory

    @cached_property
    def spark(self) -> Any:
        """A session on this machine."""
        from streamsparql.spark import session

        settings: dict[str, Any] = {**SETTINGS, "spark.driver.memory": self.memory}
        return session(f"local[{CORES},4]", **settings)

    def turn(self, case: Case, path: str) -> int:
        """Computes the answer; how many rows, where they are counted anyhow."""
        if self.name == "embedded":
            return int(self._embedded(case, path).num_rows)
        frame = self._frame(case, path)
        if case.small:
            return len(frame.collect())
        frame.write.format("noop").mode("overwrite").save()
        return 0

    def rows(self, case: Case, path: str) -> pa.Table:
        """The answer."""
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
            return self.spark.sql(COUNT_ALONE if self.name == "sql-count" else case.sql)
        source = path if self.name == "files" else self.spark.read.parquet(path)
        query = streamsparql.compile(case.query)
        return query.on_spark(self.spark, source, report=case.report)


CONTENDERS = ("files", "frame", "sql", "sql-count", "embedded")


def contend(name: str, memory: str, pipe: Connection) -> None:
    """What a contender's process does: answers what it is asked until it is told to end."""
    if name == "embedded":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    contender = Contender(name, memory)
    while (asked := pipe.recv()) is not None:
        what, case, path = asked
        if what == "rows":
            pipe.send(contender.rows(CASES[case], path))
            continue
        before = time.perf_counter()
        rows = contender.turn(CASES[case], path)
        pipe.send((time.perf_counter() - before, rows))


class Process:
    """A contender's process, as the one that measures sees it."""

    def __init__(self, name: str, memory: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=contend, args=(name, memory, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, what: str, case: str, path: str) -> Any:
        """Its answer; EOFError where the process ended."""
        self._pipe.send((what, case, path))
        return self._pipe.recv()

    def watched(self, case: str, path: str) -> Turn:
        """A turn: its seconds, what the processor did, and the most memory that it held."""
        root = self._process.pid or 0
        before = consumed(root)
        with peak_of(root) as peak:
            seconds, rows = self.ask("turn", case, path)
        return Turn(seconds, consumed(root) - before, rows, dict(peak))

    def end(self) -> None:
        """Ends it."""
        with suppress(BrokenPipeError):
            self._pipe.send(None)
        self._process.join()


# -- Memory -------------------------------------------------------------------------------------


@dataclass
class Turn:
    """What one turn took."""

    seconds: float
    processor: float
    """Seconds of all its processes on all cores."""
    rows: int
    peak: dict[str, int] = field(default_factory=dict)
    """The most resident memory in MB: of Java, of Python, and of both at a time."""


def family(root: int) -> dict[int, list[str]]:
    """A process and all below it: what `/proc` says of each from its name on."""
    known = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            known[int(entry.name)] = text[text.index("(") + 1 :].replace(")", "").split()
    found = {root: known[root]} if root in known else {}
    size = 0
    while size < len(found):
        size = len(found)
        found.update({p: s for p, s in known.items() if int(s[2]) in found})
    return found


def consumed(root: int) -> float:
    """Seconds of processor time of a process, those below it, and those that ended there."""
    ticks = sum(sum(map(int, stat[12:16])) for stat in family(root).values())
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def peak_of(root: int) -> Iterator[dict[str, int]]:
    """The most memory of a process and those below it, while something goes on."""
    peak = {"java": 0, "python": 0, "all": 0}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(EVERY):
            now = {"java": 0, "python": 0}
            for stat in family(root).values():
                kind = "java" if stat[0] == "java" else "python"
                now[kind] += int(stat[22]) * os.sysconf("SC_PAGE_SIZE") >> 20
            now["all"] = sum(now.values())
            peak.update({kind: max(peak[kind], size) for kind, size in now.items()})

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


# -- Measuring ----------------------------------------------------------------------------------


def taking_part(case: str, wanted: Sequence[str]) -> list[str]:
    """Who answers a question."""
    out = {"sql-count"} if case != "count" else set()
    return [name for name in wanted if name not in out]


def too_much(case: str, name: str, triples: int) -> bool:
    """What is left out: embedded, a result is held in memory."""
    return name == "embedded" and triples >= LARGE and case != "count"


def normal(case: Case, table: pa.Table) -> Any:
    """An answer in a form that can be compared: sorted, numbers as such."""
    plain = {n: table.column(n) for n in sorted(table.column_names)}
    coded = {n for n, c in plain.items() if pa.types.is_dictionary(c.type)}
    plain = {n: c.cast(pa.string()) if n in coded else c for n, c in plain.items()}
    frame = pa.table(plain).to_pandas()
    for name in ("n", "c", "a") if case.small or case.workload == "W5" else ():
        if name in frame and frame[name].dtype == object:
            frame[name] = frame[name].str.split('"').str[1]
        if name in frame:
            frame[name] = frame[name].astype(float)
    if case.small:  # where nothing meets in a window, SQL gives no row
        frame = frame[frame["n"] != 0]
    keys = [n for n in ("t", "b", "a", "instant", "start", "end") if n in frame]
    return frame.sort_values(keys, ignore_index=True)


def check(case: str, processes: dict[str, Process], path: str) -> None:
    """All give the same rows, or the run ends."""
    from pandas.testing import assert_frame_equal

    answers = {n: normal(CASES[case], p.ask("rows", case, path)) for n, p in processes.items()}
    (first, expected), *rest = answers.items()
    for name, answer in rest:
        try:
            assert_frame_equal(answer, expected, check_dtype=False, rtol=1e-9)
        except AssertionError as error:
            sys.exit(f"{case}: {name} and {first} differ: {error}")
    print(f"  {len(expected):,} equal rows of {CHECKED:,} triples: {', '.join(answers)}")


def measured(case: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The record of a question at each size."""
    names = taking_part(case, options.contenders)
    processes = {name: Process(name, options.memory) for name in names}
    try:
        if options.check:
            check(case, processes, made(options.data, CHECKED))
        for process in processes.values():
            process.ask("turn", case, made(options.data, WARM))
        for triples in options.sizes:
            path = made(options.data, triples)
            turns: dict[str, list[Turn]] = {name: [] for name in names}
            for _ in range(1 if triples >= LARGE else options.repeat):
                for name, process in processes.items():
                    if not too_much(case, name, triples):
                        turns[name].append(process.watched(case, path))
            yield record(case, triples, turns)
    finally:
        for process in processes.values():
            process.end()


def record(case: str, triples: int, turns: dict[str, list[Turn]]) -> dict[str, Any]:
    """The median of the turns of each."""
    found = {}
    for name, its in turns.items():
        if its:
            middle = sorted(its, key=lambda turn: turn.seconds)[len(its) // 2]
            peak = {kind: max(turn.peak[kind] for turn in its) for kind in middle.peak}
            found[name] = {**asdict(middle), "peak": peak}
            found[name]["seconds"] = median(turn.seconds for turn in its)
    return {"case": case, "triples": triples, "turns": found}


# -- In print -----------------------------------------------------------------------------------

BARS = {
    ("count", "files", "sql"): 3.0,
    ("count", "frame", "sql"): 1.5,
    ("count", "files", "embedded"): 1.4,
    ("W5", "files", "sql"): 1.0,
}
"""The least ratio of a contender to another."""
GROWTH_BAR = 1.1
"""Time grows by at most so much more than the data."""


def show(found: dict[str, Any]) -> None:
    """A question at one size."""
    turns = found["turns"]
    print(f"  {found['triples'] / 1e6:g}M triples")
    for name, turn in turns.items():
        peak, seconds = turn["peak"], turn["seconds"]
        print(
            f"    {name:10}{seconds:8.2f} s  {found['triples'] / seconds:12,.0f} triples/s"
            f"  processor {turn['processor']:7.2f} s"
            f"  Java {peak['java']:,} MB, Python {peak['python']:,} MB"
        )
    for mine in ("files", "frame"):
        for other in ("sql", "sql-count", "embedded"):
            if mine in turns and other in turns:
                ratio = turns[other]["seconds"] / turns[mine]["seconds"]
                bar = BARS.get((found["case"], mine, other))
                print(f"    {mine} {ratio:.2f}x {other}{_verdict(ratio, bar)}", flush=True)


def _verdict(ratio: float, bar: float | None) -> str:
    if bar is None:
        return ""
    return f" (bar {bar}: {'ok' if ratio >= bar else 'BELOW'})"


def show_growth(records: Sequence[dict[str, Any]]) -> None:
    """How time and memory grow from the least size to the greatest."""
    for case in CASES:
        its = sorted((r for r in records if r["case"] == case), key=lambda r: r["triples"])
        if len(its) < 2:
            continue
        for name in ("files", "frame"):
            some = [(r["triples"], r["turns"][name]) for r in its if name in r["turns"]]
            if len(some) > 1:
                (few, first), (many, last) = some[0], some[-1]
                time_ratio, data = last["seconds"] / first["seconds"], many / few
                met = "ok" if time_ratio <= data * GROWTH_BAR else "ABOVE THE BAR"
                peaks = ", ".join(f"{n / 1e6:g}M {t['peak']['all']:,} MB" for n, t in some)
                print(f"{case} {name}: {data:g}x data in {time_ratio:.1f}x time ({met}); {peaks}")


def _triples(text: str) -> int:
    """A number of triples.

    >>> _triples("5M"), _triples("200k")
    (5000000, 200000)
    """
    unit = {"k": 1_000, "M": 1_000_000}.get(text[-1:], 1)
    return int(float(text if unit == 1 else text[:-1]) * unit)


def _list(kind: Callable[[str], Any] = str) -> Callable[[str], list[Any]]:
    return lambda text: [kind(part) for part in text.split(",") if part]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", "--only", type=_list(), default=list(CASES))
    parser.add_argument("--sizes", type=_list(_triples), default=[10_000_000, 50_000_000])
    parser.add_argument("--contenders", type=_list(), default=list(CONTENDERS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--data", type=Path, help="where the Parquet files are kept")
    parser.add_argument("--memory", default="4g", help="the Java heap of each contender")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--no-check", dest="check", action="store_false")
    options = parser.parse_args()
    for given, known in ((options.cases, CASES), (options.contenders, CONTENDERS)):
        if unknown := set(given) - set(known):
            parser.error(f"{', '.join(sorted(unknown))}: there are {', '.join(known)}")
    if options.data is None:
        options.data = Path(tempfile.gettempdir(), "streamsparql-benchmarks")
    return options


def main() -> None:
    """Measures what the command line asks for."""
    options = _options()
    records = []
    for case in options.cases:
        print(f"\n{case}: {CASES[case].what}", flush=True)
        for found in measured(case, options):
            show(found)
            records.append(found)
    print()
    show_growth(records)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
