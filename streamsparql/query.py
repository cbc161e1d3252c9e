"""`compile`, and `Query`, the compiled query that users explain and run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from streamsparql.compiled import CompiledQuery, Recipe
from streamsparql.errors import EngineError, SourceError, TextError, escape_controls
from streamsparql.limits import Limits, check_text, checked_limits, metered
from streamsparql.look.lints import LintWarning, lint
from streamsparql.run.run_options import (
    InputOptions,
    LiveOptions,
    OutputOptions,
    PushOptions,
    ReportOptions,
    RowOptions,
    pop_options,
    with_options,
)
from streamsparql.text.files import read_utf8

if TYPE_CHECKING:
    from streamsparql.look.analysis import Analysis
    from streamsparql.look.rewrites import Rewrites
    from streamsparql.look.traces.trace import Trace
    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.live import Live
    from streamsparql.run.result import Result
    from streamsparql.run.rows import Report, Row
    from streamsparql.run.time_arguments import Duration, Instant
    from streamsparql.spark import DataFrame, SparkRun, SparkSession


class RunOptions(InputOptions, total=False):
    """The options of `run`: how the input is read, and the engine.

    The engine is embedded (this process) or spark: the Spark session `spark`, or a new one, with
    the time of the data cut into `slabs` (docs/spark.md).
    """

    engine: str
    spark: SparkSession | None
    slabs: int | None


class AnalyzeOptions(RunOptions, ReportOptions, total=False):
    """The options of `analyze`: those of `run`, and the reports that replace rows."""


class TraceOptions(InputOptions, total=False):
    """The options of `trace`: how the input is read, the period of steps, the number of items."""

    step: Duration | None
    limit: int


class SparkOptions(InputOptions, ReportOptions, total=False):
    """The options of `on_spark`: how the input is read, reports, the number of slabs."""

    slabs: int | None


def compile(  # noqa: A001 -- the public name, used as streamsparql.compile
    text: str | os.PathLike[str],
    dialect: str = "auto",
    base: str | None = None,
    origin: Instant = 0,
    optimize: bool = True,
    pedantic: bool = False,
    entailment: str | None = None,
    rules: Sequence[str] = (),
    limits: Limits | None = None,
) -> Query:
    """Compile a query in any of the five dialects: a text, or the `pathlib.Path` of a file.

    `dialect` is streaming, csparql, cqels, epsparql or rspql; auto detects it by constructs that
    only one dialect has. `base` resolves relative IRIs. `origin` is the instant at which the grids
    of windows start. With `pedantic`, a construct of another dialect is an error.
    Without `optimize`, the logical plan is run without rewriting. With the entailment `rdfs`,
    patterns also match what triples entail: static graphs have the schema of classes and
    properties (docs/language.md#background-knowledge). `rules` are texts with CONSTRUCT rules of
    EP-SPARQL, one or several in each, whose triples become part of the stream
    (docs/language.md#rules). `limits` bound the length of
    the text and the time to compile it, and are the limits of runs that set no others.

    Raise `QuerySyntaxError` if the text does not parse, `QueryError` if the query is invalid,
    `UnsupportedFeature` if it uses an unsupported feature, and `LimitExceeded` beyond the limits;
    the errors name the file.

    >>> compile("SELECT ?x FROM STREAM <s> WINDOW RANGE 10 S SLIDE 1 S { ?x ?p ?o }").variables
    ('x',)
    """
    _expect(str, dialect=dialect, base=base or "")
    _expect(bool, optimize=optimize, pedantic=pedantic)
    if entailment is not None:
        _expect(str, entailment=entailment)
    if isinstance(rules, str) or not all(isinstance(rule, str) for rule in rules):
        raise TypeError(f"rules must be a list of texts, not {rules!r:.40}")
    limits = checked_limits(limits)
    if type(origin) is not int:
        from streamsparql.run.time_arguments import instant_argument

        origin = instant_argument("origin", origin, least=None)
    if not isinstance(text, str | os.PathLike):
        raise TypeError(f"text must be of type str, or a path, not {text!r:.40}")
    file = None if isinstance(text, str) else os.fspath(text)
    try:
        whole = text if isinstance(text, str) else read_utf8(os.fspath(text))
        with metered(limits, "the compilation"):
            check_text(len(whole))
            shape = (optimize, pedantic, entailment, tuple(rules), limits)
            return Query(Recipe(whole, dialect, base, origin, *shape))
    except TextError as error:
        error.file = file
        if isinstance(text, str) and text.endswith((".rq", ".sparql")):
            error.hint = f"to read the query in a file, pass pathlib.Path({text!r})"
        raise
    except SourceError as error:
        raise SourceError(f"{file}: {error}") from None


def _expect(kind: type, **options: object) -> None:
    for name, value in options.items():
        if type(value) is not kind and (kind is not str or not isinstance(value, str)):
            raise TypeError(f"{name} must be of type {kind.__name__}, not {value!r:.40}")


def check_engine(engine: str, spark: object, slabs: int | None) -> None:
    """Raise an error for an unknown engine, and for options of Spark with the embedded engine."""
    if engine not in ("embedded", "spark"):
        raise EngineError(f"engine must be embedded or spark, not {engine!r}")
    if engine == "embedded" and (spark is not None or slabs is not None):
        raise EngineError("spark and slabs are options of engine='spark'")


def new_warnings(query: Query) -> tuple[LintWarning, ...]:
    """Return the warnings of `check` for a caller that shows them; no run shows them again."""
    shown, query.warned = query.warned, True
    return () if shown else query.check()


class Query(CompiledQuery):
    """A compiled query, which can be explained, checked and run. `compile` returns one.

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

    def check(self) -> tuple[LintWarning, ...]:
        """Return warnings on constructs that compile and yet may not do what the writer wants.

        The first run of a query issues them as Python warnings; docs/lints.md has how to ignore
        them.

        >>> [warning.code for warning in compile("SELECT ?y { ?x <p> 1 }").check()]
        ['never-bound']
        """
        return lint(self.translation)

    def _warn(self) -> None:
        """Issue the warnings of `check`, if they were not shown before."""
        if not self.warned:
            for warning in self.check():
                warnings.warn(warning, stacklevel=4)  # the caller of a method `with_options`
            self.warned = True

    def rewrites(self, check: bool = False, trials: int = 50, seed: int = 0) -> Rewrites:
        """Return the applications of rewriting rules, in order.

        Each has the law of its rule, and the subplan before and after. With `check`, the
        definitions of both subplans are compared on random data, in `trials` trials each.

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
        """Run the query over a whole history. Streams are read when rows are requested.

        `streams` maps the IRIs of streams to sources, or is the source of the only stream that the
        query reads; `graph` is the static default graph, `graphs` the named ones; docs/sources.md
        lists the kinds of sources. `start` and `end` are the horizon: the part of time that has
        results. Items may arrive out of order by up to `max_delay`; later ones are in
        `result.late`, malformed ones in `result.rejected`. Instants are milliseconds since 1970,
        ISO 8601 texts or datetimes, durations are milliseconds, texts such as "5s" or timedeltas.
        An item that jumps ahead of its stream by more than `max_jump` is quarantined until a second
        one confirms it. With `strict`, a late or rejected item is an error. `files` is a folder, or
        a function from an IRI to a source, for graphs that the query names and `graphs` lacks; None
        reads no file.

        The engine is embedded (this process) or spark: the Spark session `spark`, or a new one,
        with the time of the data cut into `slabs` (docs/spark.md).

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
        self._warn()
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
        """Run the query over data; return measurements instead of rows.

        The arguments are those of `run`; with `report` or `every`, reports are measured.

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
        self._warn()
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
        """Run the query over a small input, and record the input and output of every operator.

        The arguments are those of `run`. There is a step per instant that has items; with the
        duration `step`, also one in each such period. The first `limit` items from `start` on are
        traced; if there are more, the trace states where it ends.

        >>> query = compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }")
        >>> trace = query.trace([("<a>", "<p>", '"1"', 3), ("<a>", "<q>", '"2"', 5)])
        >>> print(trace[1])
        at 5
          1  StreamAccess
               emits <a> <q> "2"  [5, 6)
          2  TimeWindow
               emits <a> <q> "2"  [5, 10)
        """
        from streamsparql.look.traces.trace import Trace
        from streamsparql.run.input import input_of

        limit, step = options.pop("limit"), options.pop("step")
        run_input = input_of(self, streams, graph, graphs, **options)
        self._warn()
        return Trace(self, run_input, limit, step)

    @with_options(SparkOptions)
    def on_spark(
        self,
        spark: SparkSession,
        streams: Any = None,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        **options: Unpack[SparkOptions],
    ) -> DataFrame:
        """Return the query's result as a lazy Spark DataFrame: docs/spark.md.

        It has a string column per variable, with terms in N-Triples syntax, and the validity of the
        row, `start` and `end`, in milliseconds; with `report` (rstream, istream or dstream) or
        `every`, the `instant` of the report instead. CONSTRUCT and DESCRIBE have `subject`,
        `predicate` and `object`; ASK has `answer`, a boolean.

        Streams are files, folders, Spark DataFrames, or any source that `run` accepts. The time of
        the data is cut into `slabs`, by default a number that suits the data; the number does not
        change the result, which is that of `run`. The time ranges of the sources are read
        immediately; rows are computed by the actions of the DataFrame.
        """
        from streamsparql.run.input import input_of
        from streamsparql.run.reports import requested_reports
        from streamsparql.spark.engine import SparkRun
        from streamsparql.spark.failures import raising_task_errors

        wanted = requested_reports(self, options.pop("report"), options.pop("every"))
        slabs = options.pop("slabs")
        run_input = input_of(self, streams, graph, graphs, **options)
        self._warn()
        with raising_task_errors():
            return SparkRun(spark, self, run_input, report=wanted, slabs=slabs).frame()

    @overload
    def open(
        self,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        *,
        report: None = None,
        every: None = None,
        on_row: Callable[[Row], object] | None = None,
        **options: Unpack[RowOptions],
    ) -> Live[Row]: ...

    @overload
    def open(
        self,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        *,
        report: RelationToStream,
        every: Duration | None = None,
        on_row: Callable[[Report], object] | None = None,
        **options: Unpack[RowOptions],
    ) -> Live[Report]: ...

    @overload
    def open(
        self,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        *,
        report: RelationToStream | None = None,
        every: Duration,
        on_row: Callable[[Report], object] | None = None,
        **options: Unpack[RowOptions],
    ) -> Live[Report]: ...

    @with_options(LiveOptions)
    def open(
        self,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        **options: Unpack[LiveOptions],
    ) -> Live[Any]:
        """Open the query as a continuous one, to which items are pushed: see `Live`.

        `emit` is final (rows whose end is known) or eager (all rows, cut at each call of `rows`).
        With `report` (rstream, istream or dstream) or `every`, reports are emitted instead of rows.
        A stream that is silent for the duration `idle` of the other streams' time is left out of
        the watermark. `on_row` is called with each emitted row, or report; a coroutine function is
        awaited in the running event loop. `mapping` makes triples of the records of `push_record`.
        The other arguments are those of `run`.

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

        output = pop_options(options, OutputOptions) | pop_options(options, PushOptions)
        run_input = live_input_of(self, graph, graphs, **options)
        self._warn()
        return Live(self, run_input, **output)

    # -- explaining

    def explain(
        self,
        stage: str = "all",
        format: str = "text",  # noqa: A002 -- the public name
        *,
        run: SparkRun | None = None,
    ) -> str:
        """Return a stage of the query, or all that need no engine, as text or a picture.

        Stages are syntax, logical, optimized, physical and spark; formats are text, json, dot,
        mermaid, svg and html. With a `run` over data, the stage spark shows its cut into tasks.

        >>> print(compile("ASK { ?s a <T> }").explain("logical"))
        Ask
        TriplePatternMatching  ?s a <T>
        AccessGraph  default graph
        """
        from streamsparql.look.explain import explain

        return explain(self, stage, format, run=None if run is None else run.described())

    def __str__(self) -> str:
        return f"{escape_controls(self.text.strip())}\n\n{self.explain('logical')}"

    def __repr__(self) -> str:
        streams = "".join(f" <{name}>" for name in self.streams)
        streams = escape_controls(streams) or " no stream"
        return f"<Query: {self.form}, read as {self.dialect}, over{streams}>"

    def _repr_html_(self) -> str:
        """Return the display in a notebook: the text, and the logical plan."""
        from streamsparql.look.jupyter.query_view import query_html

        return query_html(self)
