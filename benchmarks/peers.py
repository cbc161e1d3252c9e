"""The peers: the same workloads on other engines, hand-written as their users would write them.

A peer consumes triples as tuples of strings, slide by slide, and returns for each slide the rows of
the window that ends with it, in its native columnar form. It is free in what it retains between
slides. A peer that can compute a whole history at once has `replay`.

The time to parse the literals of the stream is measured, too. A Python function parses them, as in
the measurements that set the bars; in `PolarsTuned`, Polars parses them.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any, ClassVar

from turbines import EX, SLIDE, SLIDES_PER_WINDOW, START, STATIC, WIDTH, History, Triple, end_of
from workloads import Row, sparql

STR_CNT, STOP_CNT, WIND_SPEED = EX + "StrCnt", EX + "StopCnt", EX + "WindSpeed"
PARK, MODEL, MODEL_7 = EX + "inPark", EX + "model", EX + "Model7"


def parse_number(literal: str) -> tuple[float, str]:
    """Return the number in a literal, and its lexical form."""
    text = literal[1 : literal.index('"', 1)]
    return (float(text) if literal.endswith("double>") else int(text)), text


class Peer(ABC):
    """An engine that runs one workload over one stream."""

    name: ClassVar[str]

    def __init__(self, workload: str, history: History, queries: int = 0) -> None:
        self.workload = workload
        self.queries = queries
        self.static = history.static

    @abstractmethod
    def step(self, k: int, slide: Sequence[Triple]) -> Any:
        """Consume the k-th slide, and return the rows of the window that ends with it."""

    @abstractmethod
    def rows(self, output: Any) -> list[Row]:
        """Return the output of a step as plain values; this is not measured."""

    def count(self, output: Any) -> int:
        """Return the number of rows in the output of a step."""
        return len(output)

    @property
    def constants(self) -> list[str]:
        """The turbines in the queries of W6, one each."""
        return [f"{EX}T{k}" for k in range(self.queries)]

    def static_columns(self) -> dict[str, list[str]]:
        """Return the static graph as columns of strings, IRIs without brackets."""
        s, p, o = zip(*self.static, strict=True)
        return {
            "s": [x[1:-1] for x in s],
            "p": [x[1:-1] for x in p],
            "o": [x.strip("<>") for x in o],
        }


class Python(Peer):
    """Dicts and lists over the window: the reference for the rows of all engines."""

    name = "python"

    def __init__(self, workload: str, history: History, queries: int = 0) -> None:
        super().__init__(workload, history, queries)
        self._window: deque[dict[str, list[tuple[str, tuple[float, str]]]]] = deque(
            maxlen=SLIDES_PER_WINDOW
        )
        facts = [(s[1:-1], p[1:-1], o[1:-1]) for s, p, o in self.static]
        self._parks = {s: o for s, p, o in facts if p == PARK}
        self._wanted = {s for s, p, o in facts if p == MODEL and o == MODEL_7}
        self._selected = set(self.constants)

    def step(self, k: int, slide: Sequence[Triple]) -> list[Row]:
        """Group the slide by predicate, then scan the window."""
        new: dict[str, list[tuple[str, tuple[float, str]]]] = defaultdict(list)
        for _, s, p, o in slide:
            new[p].append((s, parse_number(o)))
        self._window.append(new)
        if self.workload in ("W2", "W3"):
            return self._join(self.workload == "W3")
        if self.workload == "W5":
            return self._group()
        winds = ((s, v) for each in self._window for s, v in each[WIND_SPEED])
        if self.workload == "W1":
            return [(s, text) for s, (value, text) in winds if value > 22.5]
        if self.workload == "W4":
            parks, wanted = self._parks, self._wanted
            return [(s, text, parks[s]) for s, (_, text) in winds if s in wanted]
        return [(s, text) for s, (_, text) in winds if s in self._selected]

    def _join(self, optional: bool) -> list[Row]:
        stops: dict[str, list[str]] = defaultdict(list)
        for each in self._window:
            for s, (_, text) in each[STOP_CNT]:
                stops[s].append(text)
        out: list[Row] = []
        for each in self._window:
            for s, (_, text) in each[STR_CNT]:
                matches = stops.get(s)
                if matches:
                    out.extend((s, text, other) for other in matches)
                elif optional:
                    out.append((s, text, None))
        return out

    def _group(self) -> list[Row]:
        groups: dict[str, list[float]] = {}
        for each in self._window:
            for s, (value, _) in each[WIND_SPEED]:
                group = groups.get(s)
                if group is None:
                    groups[s] = [1, value]
                else:
                    group[0] += 1
                    group[1] += value
        return [(s, count, total / count) for s, (count, total) in groups.items()]

    def rows(self, output: list[Row]) -> list[Row]:
        """Parse the numbers."""
        if self.workload == "W6":
            return [(float(text),) for _, text in output]
        numbers = {"W1": (1,), "W4": (1,)}.get(self.workload, (1, 2))
        return [
            tuple(float(v) if i in numbers and v is not None else v for i, v in enumerate(row))
            for row in output
        ]


class Polars(Peer):
    """A window of ten concatenated frames, and a lazy query per slide."""

    name = "polars"

    def __init__(self, workload: str, history: History, queries: int = 0) -> None:
        import polars

        super().__init__(workload, history, queries)
        self.pl = polars
        self._window: deque[Any] = deque(maxlen=SLIDES_PER_WINDOW)
        self._static = polars.DataFrame(self.static_columns()) if self.static else None

    def frame(self, slide: Sequence[Triple]) -> Any:
        """Convert a slide to a frame."""
        pl = self.pl
        columns = {
            "ts": [x[0] for x in slide],
            "s": [x[1] for x in slide],
            "p": [x[2] for x in slide],
            "v": [parse_number(x[3])[0] + 0.0 for x in slide],
        }
        kinds = {"ts": pl.Int64, "s": pl.String, "p": pl.String, "v": pl.Float64}
        return pl.DataFrame(columns, schema=kinds)

    def step(self, k: int, slide: Sequence[Triple]) -> Any:
        """Append a frame, and run the query."""
        self._window.append(self.frame(slide))
        window = self.pl.concat(list(self._window)).lazy()
        return self._query(window) if self.workload != "W6" else self._select_each(window)

    def _query(self, window: Any) -> Any:
        col = self.pl.col

        def pick(predicate: str) -> Any:
            return window.filter(col("p") == predicate).select("s", "v")

        match self.workload:
            case "W1":
                plan = pick(WIND_SPEED).filter(col("v") > 22.5)
            case "W2" | "W3":
                how = "inner" if self.workload == "W2" else "left"
                joined = pick(STR_CNT).join(pick(STOP_CNT), on="s", how=how)
                plan = joined.select("s", "v", "v_right")
            case "W4":
                assert self._static is not None
                static = self._static.lazy()
                parks = static.filter(col("p") == PARK).select("s", park="o")
                of_model = (col("p") == MODEL) & (col("o") == MODEL_7)
                wanted = static.filter(of_model).select("s")
                plan = pick(WIND_SPEED).join(wanted, on="s").join(parks, on="s")
            case _:
                groups = pick(WIND_SPEED).group_by("s")
                plan = groups.agg(col("v").count().alias("c"), col("v").mean().alias("a"))
        return plan.collect()

    def _select_each(self, window: Any) -> Any:
        col = self.pl.col
        winds = window.filter(col("p") == WIND_SPEED).select("s", "v").collect()
        return self.pl.concat([winds.filter(col("s") == s) for s in self.constants])

    def rows(self, output: Any) -> list[Row]:
        """Return the rows of the frame."""
        frame = output.select("v") if self.workload == "W6" else output
        return [tuple(float(v) if type(v) is int else v for v in row) for row in frame.rows()]


class PolarsTuned(Polars):
    """Polars that parses the literals itself, rather than with a Python function."""

    name = "polars-tuned"

    def frame(self, slide: Sequence[Triple]) -> Any:
        """Convert a slide to a frame."""
        pl = self.pl
        stamps, s, p, o = zip(*slide, strict=True)
        text = pl.Series(o, dtype=pl.String).str.slice(1).str.split('"').list.get(0)
        return pl.DataFrame(
            {
                "ts": pl.Series(stamps, dtype=pl.Int64),
                "s": pl.Series(s, dtype=pl.String),
                "p": pl.Series(p, dtype=pl.String),
                "v": text.cast(pl.Float64),
            }
        )


_SQL = {
    "W1": f"SELECT {{k}} s, v FROM {{ev}} WHERE p = '{WIND_SPEED}' AND v > 22.5",
    "W2": (
        "SELECT {ka} a.s, a.v, b.v AS w FROM {ev} a JOIN {ev} b ON a.s = b.s {j}"
        f" WHERE a.p = '{STR_CNT}' AND b.p = '{STOP_CNT}'"
    ),
    "W3": (
        f"SELECT {{ka}} a.s, a.v, b.v AS w FROM (SELECT * FROM {{ev}} WHERE p = '{STR_CNT}') a"
        f" LEFT JOIN (SELECT * FROM {{ev}} WHERE p = '{STOP_CNT}') b ON a.s = b.s {{j}}"
    ),
    "W4": (
        "SELECT {ka} a.s, a.v, x.o FROM {ev} a JOIN st x ON a.s = x.s JOIN st y ON a.s = y.s"
        f" WHERE a.p = '{WIND_SPEED}' AND x.p = '{PARK}' AND y.p = '{MODEL}' AND y.o = '{MODEL_7}'"
    ),
    "W5": (
        f"SELECT {{k}} s, count(v), avg(v) FROM {{ev}} WHERE p = '{WIND_SPEED}' GROUP BY {{k}} s"
    ),
}


class DuckDB(Peer):
    """A table of events: a step inserts a slide, deletes what has expired, and runs a SELECT."""

    name = "duckdb"

    def __init__(self, workload: str, history: History, queries: int = 0) -> None:
        import duckdb
        import pyarrow

        super().__init__(workload, history, queries)
        self._arrow = pyarrow
        self._connection = duckdb.connect()
        self._connection.execute("CREATE TABLE ev(ts BIGINT, s VARCHAR, p VARCHAR, v DOUBLE)")
        if self.static:
            static = pyarrow.table(self.static_columns())
            self._connection.register("static_triples", static)
            self._connection.execute("CREATE TABLE st AS SELECT * FROM static_triples")

    def _append(self, slide: Sequence[Triple]) -> None:
        columns = [[x[i] for x in slide] for i in range(3)]
        columns.append([parse_number(x[3])[0] + 0.0 for x in slide])  # type: ignore[misc]
        self._connection.register("slide", self._arrow.table(columns, names=["ts", "s", "p", "v"]))
        self._connection.execute("INSERT INTO ev SELECT * FROM slide")

    def _select(self, statement: str) -> Any:
        return self._connection.sql(statement).to_arrow_table()

    def step(self, k: int, slide: Sequence[Triple]) -> Any:
        """Insert the slide, delete expired events, run the query."""
        self._append(slide)
        self._connection.execute(f"DELETE FROM ev WHERE ts < {end_of(k) - WIDTH}")
        if self.workload == "W6":
            statement = f"SELECT v FROM ev WHERE p = '{WIND_SPEED}' AND s = '{{}}'"
            tables = [self._select(statement.format(s)) for s in self.constants]
            return self._arrow.concat_tables(tables)
        return self._select(_SQL[self.workload].format(ev="ev", k="", ka="", j=""))

    def replay(self, slides: Sequence[Sequence[Triple]]) -> Any:
        """Compute all non-empty windows in one statement; the first column is their end."""
        self._append([x for slide in slides for x in slide])
        last = START + (len(slides) + SLIDES_PER_WINDOW - 1) * SLIDE
        series = f"generate_series((e.ts // {SLIDE} + 1) * {SLIDE}, {{}}, {SLIDE})"
        ends = series.format(f"least((e.ts // {SLIDE} + {SLIDES_PER_WINDOW}) * {SLIDE}, {last})")
        self._connection.execute(
            f"CREATE OR REPLACE VIEW evw AS SELECT w.wend, e.* FROM ev e,"
            f" LATERAL (SELECT unnest({ends}) wend) w"
        )
        keys = {"k": "wend,", "ka": "a.wend,", "j": "AND a.wend = b.wend"}
        return self._select(_SQL[self.workload].format(ev="evw", **keys))

    def rows(self, output: Any) -> list[Row]:
        """Return the rows of the table."""
        columns = [column.to_pylist() for column in output.columns]
        return [
            tuple(float(v) if type(v) is int else v for v in row)
            for row in zip(*columns, strict=True)
        ]


class Pyoxigraph(Peer):
    """A store that is updated by deltas, and a query per slide."""

    name = "pyoxigraph"

    def __init__(self, workload: str, history: History, queries: int = 0) -> None:
        import pyoxigraph

        super().__init__(workload, history, queries)
        self._ox = pyoxigraph
        self._store = pyoxigraph.Store()
        if self.static:
            text = "".join(f"{s} {p} {o} .\n" for s, p, o in self.static).encode()
            graph = pyoxigraph.NamedNode(STATIC)
            form = pyoxigraph.RdfFormat.N_TRIPLES
            self._store.bulk_load(text, format=form, to_graph=graph)
        self._window: deque[list[Any]] = deque()
        self._nodes: dict[str, Any] = {}
        constants = range(queries) if workload == "W6" else (0,)
        self._queries = [sparql(workload, k) for k in constants]

    def _node(self, iri: str) -> Any:
        node = self._nodes.get(iri)
        if node is None:
            node = self._nodes[iri] = self._ox.NamedNode(iri)
        return node

    def _literal(self, text: str) -> Any:
        end = text.index('"', 1)
        return self._ox.Literal(text[1:end], datatype=self._node(text[end + 4 : -1]))

    def step(self, k: int, slide: Sequence[Triple]) -> list[Row]:
        """Add the slide, remove the one that has expired, run the queries."""
        node, quad, literal = self._node, self._ox.Quad, self._literal
        new = [quad(node(s), node(p), literal(o)) for _, s, p, o in slide]
        self._store.extend(new)
        self._window.append(new)
        if len(self._window) > SLIDES_PER_WINDOW:
            for old in self._window.popleft():
                self._store.remove(old)
        out: list[Row] = []
        for query in self._queries:
            solutions = self._store.query(query)
            places = range(len(solutions.variables))
            out.extend(
                tuple(None if (v := row[i]) is None else v.value for i in places)
                for row in solutions
            )
        return out

    def rows(self, output: list[Row]) -> list[Row]:
        """Parse the numbers: all values but IRIs."""
        return [
            tuple(v if v is None or v.startswith("http") else float(v) for v in row)
            for row in output
        ]


PEERS: dict[str, type[Peer]] = {
    peer.name: peer for peer in (Polars, PolarsTuned, DuckDB, Pyoxigraph, Python)
}


def why_unavailable(name: str) -> str | None:
    """Return why a peer cannot run; None if it can."""
    module = {"python": "sys"}.get(name, name.removesuffix("-tuned"))
    if module in sys.modules:
        return None
    try:
        __import__(module)
    except ImportError:
        return f"{module} is not installed: pip install '.[bench]'"
    return None
