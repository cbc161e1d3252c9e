"""Engines to be compared with, by hand for the same questions, as their users would write them.

A peer gets triples as tuples of strings, slide by slide, and gives for each slide the rows of the
window that ends with it, in the peer's own columnar form. What it keeps between slides is its
business. A peer that can answer for a whole history at once has `replay`.

Values of the stream are read from the literals' texts inside the measured time, by a Python
function as in the measurements that the bars come from. `PolarsTuned` has Polars read them.
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


def read_value(literal: str) -> tuple[float, str]:
    """A number and how it is written."""
    text = literal[1 : literal.index('"', 1)]
    return (float(text) if literal.endswith("double>") else int(text)), text


class Peer(ABC):
    """An engine that answers one question about one stream."""

    name: ClassVar[str]
    live_only: ClassVar[bool] = True

    def __init__(self, workload: str, history: History, queries: int = 0) -> None:
        self.workload = workload
        self.queries = queries
        self.static = history.static

    @abstractmethod
    def step(self, k: int, slide: Sequence[Triple]) -> Any:
        """Takes in the k-th slide and gives the rows of the window that it ends."""

    @abstractmethod
    def rows(self, answer: Any) -> list[Row]:
        """What a step gave, as plain values; not measured."""

    def count(self, answer: Any) -> int:
        """How many rows a step gave."""
        return len(answer)

    @property
    def constants(self) -> list[str]:
        """The turbines that the queries of W6 ask about."""
        return [f"{EX}T{k}" for k in range(self.queries)]

    def static_columns(self) -> dict[str, list[str]]:
        """The static graph with bare IRIs."""
        s, p, o = zip(*self.static, strict=True)
        return {
            "s": [x[1:-1] for x in s],
            "p": [x[1:-1] for x in p],
            "o": [x.strip("<>") for x in o],
        }


class Python(Peer):
    """Dicts and lists over the window; the ground truth of the rows."""

    name = "python"

    def __init__(self, workload: str, history: History, queries: int = 0) -> None:
        super().__init__(workload, history, queries)
        self._window: deque[dict[str, list[tuple[str, tuple[float, str]]]]] = deque(
            maxlen=SLIDES_PER_WINDOW
        )
        facts = [(s[1:-1], p[1:-1], o[1:-1]) for s, p, o in self.static]
        self._parks = {s: o for s, p, o in facts if p == PARK}
        self._wanted = {s for s, p, o in facts if p == MODEL and o == MODEL_7}
        self._asked = set(self.constants)

    def step(self, k: int, slide: Sequence[Triple]) -> list[Row]:
        """Sorts the slide by predicate, then goes over the window."""
        new: dict[str, list[tuple[str, tuple[float, str]]]] = defaultdict(list)
        for _, s, p, o in slide:
            new[p].append((s, read_value(o)))
        self._window.append(new)
        if self.workload in ("W2", "W3"):
            return self._joined(self.workload == "W3")
        if self.workload == "W5":
            return self._grouped()
        winds = ((s, v) for each in self._window for s, v in each[WIND_SPEED])
        if self.workload == "W1":
            return [(s, text) for s, (value, text) in winds if value > 22.5]
        if self.workload == "W4":
            parks, wanted = self._parks, self._wanted
            return [(s, text, parks[s]) for s, (_, text) in winds if s in wanted]
        return [(s, text) for s, (_, text) in winds if s in self._asked]

    def _joined(self, optional: bool) -> list[Row]:
        stops: dict[str, list[str]] = defaultdict(list)
        for each in self._window:
            for s, (_, text) in each[STOP_CNT]:
                stops[s].append(text)
        out: list[Row] = []
        for each in self._window:
            for s, (_, text) in each[STR_CNT]:
                found = stops.get(s)
                if found:
                    out.extend((s, text, other) for other in found)
                elif optional:
                    out.append((s, text, None))
        return out

    def _grouped(self) -> list[Row]:
        groups: dict[str, list[float]] = {}
        for each in self._window:
            for s, (value, _) in each[WIND_SPEED]:
                found = groups.get(s)
                if found is None:
                    groups[s] = [1, value]
                else:
                    found[0] += 1
                    found[1] += value
        return [(s, count, total / count) for s, (count, total) in groups.items()]

    def rows(self, answer: list[Row]) -> list[Row]:
        """Numbers read."""
        if self.workload == "W6":
            return [(float(text),) for _, text in answer]
        numbers = {"W1": (1,), "W4": (1,)}.get(self.workload, (1, 2))
        return [
            tuple(float(v) if i in numbers and v is not None else v for i, v in enumerate(row))
            for row in answer
        ]


class Polars(Peer):
    """The window is ten frames put together; one lazy query per slide."""

    name = "polars"

    def __init__(self, workload: str, history: History, queries: int = 0) -> None:
        import polars

        super().__init__(workload, history, queries)
        self.pl = polars
        self._window: deque[Any] = deque(maxlen=SLIDES_PER_WINDOW)
        self._static = polars.DataFrame(self.static_columns()) if self.static else None

    def frame(self, slide: Sequence[Triple]) -> Any:
        """A slide as a frame."""
        pl = self.pl
        columns = {
            "ts": [x[0] for x in slide],
            "s": [x[1] for x in slide],
            "p": [x[2] for x in slide],
            "v": [read_value(x[3])[0] + 0.0 for x in slide],
        }
        kinds = {"ts": pl.Int64, "s": pl.String, "p": pl.String, "v": pl.Float64}
        return pl.DataFrame(columns, schema=kinds)

    def step(self, k: int, slide: Sequence[Triple]) -> Any:
        """One frame more, and the query."""
        self._window.append(self.frame(slide))
        window = self.pl.concat(list(self._window)).lazy()
        return self._query(window) if self.workload != "W6" else self._each(window)

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

    def _each(self, window: Any) -> Any:
        col = self.pl.col
        winds = window.filter(col("p") == WIND_SPEED).select("s", "v").collect()
        return self.pl.concat([winds.filter(col("s") == s) for s in self.constants])

    def rows(self, answer: Any) -> list[Row]:
        """The frame's rows."""
        shown = answer.select("v") if self.workload == "W6" else answer
        return [tuple(float(v) if type(v) is int else v for v in row) for row in shown.rows()]


class PolarsTuned(Polars):
    """The same, with the literals read by Polars rather than by a Python function."""

    name = "polars-tuned"

    def frame(self, slide: Sequence[Triple]) -> Any:
        """A slide as a frame."""
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
    """A table of events: a slide is appended, what expired is deleted, one statement asks."""

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
        columns.append([read_value(x[3])[0] + 0.0 for x in slide])  # type: ignore[misc]
        self._connection.register("came", self._arrow.table(columns, names=["ts", "s", "p", "v"]))
        self._connection.execute("INSERT INTO ev SELECT * FROM came")

    def _ask(self, statement: str) -> Any:
        return self._connection.sql(statement).to_arrow_table()

    def step(self, k: int, slide: Sequence[Triple]) -> Any:
        """Insert, delete, select."""
        self._append(slide)
        self._connection.execute(f"DELETE FROM ev WHERE ts < {end_of(k) - WIDTH}")
        if self.workload == "W6":
            asked = f"SELECT v FROM ev WHERE p = '{WIND_SPEED}' AND s = '{{}}'"
            found = [self._ask(asked.format(s)) for s in self.constants]
            return self._arrow.concat_tables(found)
        return self._ask(_SQL[self.workload].format(ev="ev", k="", ka="", j=""))

    def replay(self, slides: Sequence[Sequence[Triple]]) -> Any:
        """All windows that hold something, in one statement; the first column is their end."""
        self._append([x for slide in slides for x in slide])
        last = START + (len(slides) + SLIDES_PER_WINDOW - 1) * SLIDE
        series = f"generate_series((e.ts // {SLIDE} + 1) * {SLIDE}, {{}}, {SLIDE})"
        ends = series.format(f"least((e.ts // {SLIDE} + {SLIDES_PER_WINDOW}) * {SLIDE}, {last})")
        self._connection.execute(
            f"CREATE OR REPLACE VIEW evw AS SELECT w.wend, e.* FROM ev e,"
            f" LATERAL (SELECT unnest({ends}) wend) w"
        )
        keys = {"k": "wend,", "ka": "a.wend,", "j": "AND a.wend = b.wend"}
        return self._ask(_SQL[self.workload].format(ev="evw", **keys))

    def rows(self, answer: Any) -> list[Row]:
        """The table's rows."""
        columns = [column.to_pylist() for column in answer.columns]
        return [
            tuple(float(v) if type(v) is int else v for v in row)
            for row in zip(*columns, strict=True)
        ]


class Pyoxigraph(Peer):
    """A store that is kept by deltas, and one query per slide."""

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
        asked = range(queries) if workload == "W6" else (0,)
        self._queries = [sparql(workload, k) for k in asked]

    def _node(self, iri: str) -> Any:
        found = self._nodes.get(iri)
        if found is None:
            found = self._nodes[iri] = self._ox.NamedNode(iri)
        return found

    def _literal(self, text: str) -> Any:
        end = text.index('"', 1)
        return self._ox.Literal(text[1:end], datatype=self._node(text[end + 4 : -1]))

    def step(self, k: int, slide: Sequence[Triple]) -> list[Row]:
        """Adds the slide, removes the one that expired, asks."""
        node, quad, literal = self._node, self._ox.Quad, self._literal
        new = [quad(node(s), node(p), literal(o)) for _, s, p, o in slide]
        self._store.extend(new)
        self._window.append(new)
        if len(self._window) > SLIDES_PER_WINDOW:
            for old in self._window.popleft():
                self._store.remove(old)
        out: list[Row] = []
        for query in self._queries:
            found = self._store.query(query)
            places = range(len(found.variables))
            out.extend(
                tuple(None if (v := each[i]) is None else v.value for i in places) for each in found
            )
        return out

    def rows(self, answer: list[Row]) -> list[Row]:
        """Numbers read: all but IRIs."""
        return [
            tuple(v if v is None or v.startswith("http") else float(v) for v in row)
            for row in answer
        ]


PEERS: dict[str, type[Peer]] = {
    peer.name: peer for peer in (Polars, PolarsTuned, DuckDB, Pyoxigraph, Python)
}


def available(name: str) -> str | None:
    """What keeps a peer from being measured; None if nothing does."""
    module = {"python": "sys"}.get(name, name.removesuffix("-tuned"))
    if module in sys.modules:
        return None
    try:
        __import__(module)
    except ImportError:
        return f"{module} is not installed: pip install '.[bench]'"
    return None
