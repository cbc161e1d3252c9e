"""Compile a query: `compile`, and `Query`, the object that users hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from streamsparql.compiled import CompiledQuery, Recipe
from streamsparql.errors import EngineError
from streamsparql.look.lints import Warning, lint
from streamsparql.run.options import (
    InputOptions,
    LiveOptions,
    OutputOptions,
    ReportOptions,
    pop_options,
    with_options,
)

if TYPE_CHECKING:
    from streamsparql.look.analysis import Analysis
    from streamsparql.look.rewrites import Rewrites
    from streamsparql.look.traces.trace import Trace
    from streamsparql.run.live import Live
    from streamsparql.run.result import Result
    from streamsparql.spark import DataFrame, SparkRun, SparkSession


class RunOptions(InputOptions, total=False):
    """The options of `run`: how the input is read, and the engine.

    The engine is embedded, in this process, or spark: in the Spark session `spark`, or a new one,
    with the time of the data cut into `slabs` (docs/spark.md).
    """

    engine: str
    spark: SparkSession | None
    slabs: int | None


class AnalyzeOptions(RunOptions, ReportOptions, total=False):
    """The options of `analyze`: those of `run`, and reports in place of rows."""


class TraceOptions(InputOptions, total=False):
    """The options of `trace`: how the input is read, the length of a step, the limit of items."""

    step: int | None
    limit: int


class SparkOptions(InputOptions, ReportOptions, total=False):
    """The options of `on_spark`: how the input is read, reports, the number of slabs."""

    slabs: int | None


def compile(  # noqa: A001 -- the public name, used as streamsparql.compile
    text: str,
    dialect: str = "auto",
    base: str | None = None,
    origin: int = 0,
    optimize: bool = True,
    pedantic: bool = False,
) -> Query:
    """Compile a query in any of the five dialects.

    `dialect` is streaming, csparql, cqels, epsparql or rspql; auto detects it by constructs that
    only one of them has. `base` resolves relative IRIs. `origin` is where the grids of windows
    start, in milliseconds. With `pedantic`, a construct of another dialect is an error. Without
    `optimize`, the logical plan is run as it is.

    Raises `QuerySyntaxError` where the text is not a query, `QueryError` where it has no meaning,
    and `UnsupportedFeature` where it uses a feature that is not supported.

    >>> compile("SELECT ?x FROM STREAM <s> WINDOW RANGE 10 S SLIDE 1 S { ?x ?p ?o }").variables
    ('x',)
    """
    _expect(str, text=text, dialect=dialect, base=base or "")
    _expect(int, origin=origin)
    _expect(bool, optimize=optimize, pedantic=pedantic)
    return Query(Recipe(text, dialect, base, origin, optimize, pedantic))


def _expect(kind: type, **options: object) -> None:
    for name, value in options.items():
        if type(value) is not kind and (kind is not str or not isinstance(value, str)):
            raise TypeError(f"{name} must be of type {kind.__name__}, not {value!r:.40}")


def check_engine(engine: str, spark: object, slabs: int | None) -> None:
    """Check that the engine is known, and that the options are its own."""
    if engine not in ("embedded", "spark"):
        raise EngineError(f"engine must be embedded or spark, not {engine!r}")
    if engine == "embedded" and (spark is not None or slabs is not None):
        raise EngineError("spark and slabs are options of engine='spark'")


class Query(CompiledQuery):
    """A compiled query: read it, explain it, run it. `compile` makes one.

    >>> query = compile("SELECT ?x FROM STREAM <s> WINDOW RANGE 10 S SLIDE 1 S { ?x ?p ?o }")
    >>> query
    <Query: select, read as streaming, over <s>>
    >>> print(query.explain("logical"))
    Projection  ?x
    TriplePatternMatching  ?x ?p ?o
    Merge
    ├─ SlidingDeltaWindow  range 10 s, slide 1 s
    │  AccessStream  <s>
    └─ AccessGraph  default graph
    """

    def check(self) -> tuple[Warning, ...]:
        """Return warnings on constructs that compile and yet may not do what the writer wants.

        >>> [warning.code for warning in compile("SELECT ?y { ?x <p> 1 }").check()]
        ['never-bound']
        """
        return lint(self.translation)

    def rewrites(self, check: bool = False, trials: int = 50, seed: int = 0) -> Rewrites:
        """Return what the rewriting rules did: a sequence of applications of rules.

        Each has its rule's law, and the subplan before and after. With `check` each is tried on
        random data, in `trials` trials, through the definitions of both subplans.

        >>> applied = compile("SELECT ?x { ?x <p> ?y FILTER(1 + 1 = 2) }").rewrites(check=True)
        >>> [application.name for application in applied], bool(applied.checked)
        (['fold constants', 'drop constant conditions'], True)
        """
        from streamsparql.look.rewrites import rewrites

        return rewrites(
            self.logical,
            self.prefixes,
            rewriting=self.rewriting,
            check=check,
            trials=trials,
            seed=seed,
        )

    # -- running

    @with_options(RunOptions)
    def run(
        self,
        streams: Any = None,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> Result:
        """Run the query over a whole history. No stream is read before the result is used.

        `streams` are sources by the streams' IRIs, or one source where the query reads one stream;
        `graph` is the static default graph, `graphs` the named ones; docs/sources.md lists the
        kinds of sources. `start` and `end` are the horizon, in milliseconds: the part of time that
        has results. Items may arrive out of order by up to `max_delay` milliseconds; later ones are
        in `result.late`, malformed ones in `result.rejected`. An item that jumps ahead of its
        stream by more than `max_jump` is quarantined until a second one confirms it. With `strict`
        a late or rejected item is an error.

        The engine is embedded, in this process, or spark: in the Spark session `spark`, or a new
        one, with the time of the data cut into `slabs` (docs/spark.md).

        >>> query = compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }")
        >>> for row in query.run([("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 12)]):
        ...     print(row["o"], row.start, row.end)
        1 3 10
        2 12 20
        """
        from streamsparql.run.input import input_of
        from streamsparql.run.result import EmbeddedComputation, Result

        engine, spark, slabs = options.pop("engine"), options.pop("spark"), options.pop("slabs")
        check_engine(engine, spark, slabs)
        run_input = input_of(self, streams, graph, graphs, **options)
        if engine == "spark":
            from streamsparql.spark.spark_result import SparkComputation, SparkResult

            return SparkResult(SparkComputation(self, run_input, spark, slabs))
        return Result(EmbeddedComputation(self, run_input))

    @with_options(AnalyzeOptions)
    def analyze(
        self,
        streams: Any = None,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        **options: Unpack[AnalyzeOptions],
    ) -> Analysis:
        """Run the query over data, and return what was measured in place of the rows.

        The arguments are those of `run`; with `report` or `every`, reports are computed.

        >>> query = compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }")
        >>> items = [("<a>", "<p>", '"1"', 3), ("<a>", "<q>", '"2"', 12)]
        >>> analysis = query.analyze(items)
        >>> analysis.items.read, analysis.items.unmatched, analysis.rows
        (2, 1, 1)
        """
        from streamsparql.look.analysis import Analysis
        from streamsparql.run.input import input_of
        from streamsparql.run.measured import MeasuredRun
        from streamsparql.run.reports import requested_reports

        engine, spark, slabs = options.pop("engine"), options.pop("spark"), options.pop("slabs")
        check_engine(engine, spark, slabs)
        wanted = requested_reports(self, options.pop("report"), options.pop("every"))
        run_input = input_of(self, streams, graph, graphs, **options)
        if engine == "spark":
            from streamsparql.spark.analyze import measure_on_spark

            return Analysis.of(measure_on_spark(self, run_input, spark, slabs, wanted))
        return Analysis.of(MeasuredRun(self, run_input, wanted).run())

    @with_options(TraceOptions)
    def trace(
        self,
        streams: Any = None,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        **options: Unpack[TraceOptions],
    ) -> Trace:
        """Run the query over a little data, instant by instant, and record all that happens.

        The arguments are those of `run`. Items are processed instant by instant; with a `step` time
        also moves on in between, by that many milliseconds. The first `limit` items from `start` on
        are traced; if there are more, the trace says where it ends.

        >>> query = compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }")
        >>> trace = query.trace([("<a>", "<p>", '"1"', 3), ("<a>", "<q>", '"2"', 5)])
        >>> print(trace[1])
        at 5
          1  StreamAccess
               gives <a> <q> "2"  [5, 6)
          2  TimeWindow
               gives <a> <q> "2"  [5, 10)
        """
        from streamsparql.look.traces.trace import Trace
        from streamsparql.run.input import input_of

        limit, step = options.pop("limit"), options.pop("step")
        return Trace(self, input_of(self, streams, graph, graphs, **options), limit, step)

    @with_options(SparkOptions)
    def on_spark(
        self,
        spark: SparkSession,
        streams: Any = None,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        **options: Unpack[SparkOptions],
    ) -> DataFrame:
        """Return the query as a Spark DataFrame: docs/spark.md.

        It has a string column per variable, with terms in N-Triples syntax, and `start` and `end`,
        in milliseconds, the validity of the row; with `report` (rstream, istream or dstream) or
        `every`, `instant` instead, that of the report. CONSTRUCT and DESCRIBE have `subject`,
        `predicate` and `object`; ASK `answer`, a boolean.

        Streams are files, folders, DataFrames of Spark, or any source that `run` accepts. The time
        of the data is cut into `slabs`, by default as many as suit it; the answer is that of `run`,
        whatever their number. The sources' time ranges are looked up at once; rows are computed
        when the DataFrame is asked for them.
        """
        from streamsparql.run.input import input_of
        from streamsparql.run.reports import requested_reports
        from streamsparql.spark.engine import SparkRun
        from streamsparql.spark.failures import told

        wanted = requested_reports(self, options.pop("report"), options.pop("every"))
        slabs = options.pop("slabs")
        run_input = input_of(self, streams, graph, graphs, **options)
        with told():
            return SparkRun(spark, self, run_input, report=wanted, slabs=slabs).frame()

    @with_options(LiveOptions)
    def open(
        self,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        **options: Unpack[LiveOptions],
    ) -> Live:
        """Open the query for pushing: see `Live`.

        `emit` is final, for rows that have ended, or eager, for all rows, cut at each call of
        `rows`. With `report` (rstream, istream or dstream) or `every` there are reports instead of
        rows. A stream that is silent for `idle` milliseconds of the others' time no longer holds
        them back. `on_row` is called with each row, or report, once it is final. The other
        arguments are those of `run`.

        >>> query = compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }")
        >>> live = query.open(report="rstream")
        >>> live.push("s", ("<a>", "<p>", '"1"'), 3)
        >>> live.push("s", ("<a>", "<p>", '"2"'), 12)
        >>> [(instant, len(rows)) for instant, rows in live.rows()]
        [(10, 1)]
        >>> live.close()
        """
        from streamsparql.run.input import live_input_of
        from streamsparql.run.live import Live

        output = pop_options(options, OutputOptions)
        return Live(self, live_input_of(self, graph, graphs, **options), **output)

    # -- looking

    def explain(
        self,
        stage: str = "all",
        format: str = "text",  # noqa: A002 -- the public name
        *,
        run: SparkRun | None = None,
    ) -> str:
        """Return a stage of the query, or all of them, as text or a picture.

        Stages are syntax, logical, optimized, physical and spark; formats are text, json, dot,
        mermaid, svg and html. With a `run` over data, `spark` shows how that is cut into tasks.

        >>> print(compile("ASK { ?s a <T> }").explain("logical"))
        Ask
        TriplePatternMatching  ?s a <T>
        AccessGraph  default graph
        """
        from streamsparql.look.explain import explain

        return explain(self, stage, format, run=None if run is None else run.described())

    def __str__(self) -> str:
        return f"{self.text.strip()}\n\n{self.explain('logical')}"

    def __repr__(self) -> str:
        streams = "".join(f" <{name}>" for name in self.streams)
        return f"<Query: {self.form}, read as {self.dialect}, over{streams or ' no stream'}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the text, and the logical plan."""
        from streamsparql.look.jupyter.query_view import shown

        return shown(self)
