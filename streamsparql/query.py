"""A compiled query: the object that users hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.algebra.inputs import MAX_JUMP
from streamsparql.algebra.plan import Plan
from streamsparql.errors import EngineError
from streamsparql.look import plan_displays
from streamsparql.look.lints import Warning, lint
from streamsparql.translator.translate import Report, Translation, translate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamsparql.algebra.fixpoint import Rewriting
    from streamsparql.look.analysis import Analysis
    from streamsparql.look.rewrites import Rewrites
    from streamsparql.look.traces.trace import Trace
    from streamsparql.physical.operator import Operator
    from streamsparql.run.execution import RunInput
    from streamsparql.run.live import Live
    from streamsparql.run.result import Result
    from streamsparql.spark import SparkRun


def compile(  # noqa: A001 -- the public name, used as streamsparql.compile
    text: str,
    dialect: str = "auto",
    base: str | None = None,
    origin: int = 0,
    optimize: bool = True,
    pedantic: bool = False,
) -> Query:
    """Compiles a query in any of the five dialects.

    `dialect` is streaming, csparql, cqels, epsparql or rspql; auto tells it by what only one of
    them writes. `base` resolves relative IRIs. `origin` is where the grids of windows start, in
    milliseconds. With `pedantic`, a construct of another dialect is an error. Without `optimize`,
    the plan that runs is the logical plan, as it is.

    Raises `QuerySyntaxError` where the text is no query, `QueryError` where it means nothing, and
    `UnsupportedFeature` where it is about something that is not done here.

    >>> compile("SELECT ?x FROM STREAM <s> WINDOW RANGE 10 S SLIDE 1 S { ?x ?p ?o }").variables
    ('x',)
    """
    _expect(str, text=text, dialect=dialect, base=base or "")
    _expect(int, origin=origin)
    _expect(bool, optimize=optimize, pedantic=pedantic)
    recipe = Recipe(text, dialect, base, origin, optimize, pedantic)
    return Query(translate(text, dialect, base or "", origin, pedantic), recipe)


@lru_cache(maxsize=16)
def _recompiled(*recipe: Any) -> Query:
    """The query of a recipe; a worker gets the same one with each task."""
    return compile(*recipe)


def _expect(kind: type, **options: object) -> None:
    for name, value in options.items():
        if type(value) is not kind and (kind is not str or not isinstance(value, str)):
            raise TypeError(f"{name} is a {kind.__name__}, not {value!r:.40}")


def check_engine(engine: str, spark: object, slabs: int | None) -> None:
    """An engine that there is, with nothing that is another's."""
    if engine not in ("embedded", "spark"):
        raise EngineError(f"the engine is embedded or spark, not {engine!r}")
    if engine == "embedded" and (spark is not None or slabs is not None):
        raise EngineError("spark and slabs are for engine='spark'")


class Recipe(NamedTuple):
    """What a query was compiled of, which is how it goes to other processes."""

    text: str
    dialect: str = "auto"
    base: str | None = None
    origin: int = 0
    optimize: bool = True
    pedantic: bool = False


class Query:
    """What a query's text means, to be read and explained, and run. `compile` makes one.

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

    def __init__(self, translation: Translation, recipe: Recipe) -> None:
        self.translation = translation
        self.recipe = recipe

    def __reduce__(self) -> tuple[Callable[..., Query], Recipe]:
        """Plans may be deep, so a query is pickled as its text, and compiled again."""
        return _recompiled, self.recipe

    @property
    def text(self) -> str:
        """The text that was compiled."""
        return self.translation.text

    @property
    def dialect(self) -> str:
        """The dialect that the text was read in."""
        return self.translation.dialect.name

    @property
    def form(self) -> str:
        """select, construct, describe or ask."""
        return self.translation.form

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The columns of a SELECT, in order."""
        return self.translation.variables

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The IRIs of the streams that the query reads."""
        return tuple(iri.value for iri in self.translation.streams)

    @cached_property
    def graphs(self) -> tuple[str, ...]:
        """The IRIs of the static graphs that the query names."""
        return tuple(iri.value for iri in self.translation.graphs)

    @property
    def report(self) -> Report:
        """How the query says that its results are reported."""
        return self.translation.report

    def check(self) -> tuple[Warning, ...]:
        """What may not be as the writer wants it, though it compiles.

        >>> [warning.code for warning in compile("SELECT ?y { ?x <p> 1 }").check()]
        ['never-bound']
        """
        return lint(self.translation)

    @property
    def logical(self) -> Plan:
        """The logical plan, whose `at(t, inputs)` is the query's definition."""
        plan: Plan = plan_displays.with_prefixes(self.translation.plan, self.prefixes)
        return plan

    @property
    def optimized(self) -> Plan:
        """The plan that the rewriting rules lead to, with the same snapshots as the logical plan.

        >>> query = compile("SELECT ?x { ?x <p> ?y FILTER(1 + 1 = 2) }")
        >>> query.optimized == compile("SELECT ?x { ?x <p> ?y }").logical
        True
        """
        plan: Plan = plan_displays.with_prefixes(self.rewriting.plan, self.prefixes)
        return plan

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that the query declares.

        >>> dict(compile("PREFIX : <http://example.org/> ASK { :a :b :c }").prefixes)
        {'': 'http://example.org/'}
        """
        return self.translation.names.prefixes

    @cached_property
    def rewriting(self) -> Rewriting:
        """The optimized plan, and how the rules came to it; worked out when it is first asked."""
        from streamsparql.algebra.fixpoint import Rewriting
        from streamsparql.algebra.rewrite import rewrite

        return rewrite(self.logical) if self.recipe.optimize else Rewriting(self.logical)

    @cached_property
    def physical(self) -> Operator:
        """The operators that compute the optimized plan, from the one that gives the rows down.

        It is a plan to look at: over data, what is static is worked out beforehand and folded away.
        """
        from streamsparql.algebra.functions import Run
        from streamsparql.look.operator_displays import learned
        from streamsparql.physical.dictionary.term_dictionary import TermDictionary
        from streamsparql.physical.lowering.lower import Catalog, lower

        lowered = lower(self.optimized, TermDictionary(), Run(), Catalog(known=False))
        return learned(lowered.plain, self.prefixes)

    def rewrites(self, check: bool = False, trials: int = 50, seed: int = 0) -> Rewrites:
        """What the rewriting rules did to the logical plan: a sequence of applications of rules.

        Each has its rule's law, and the subplan before and after. With `check` each is tried on
        random data, in so many trials, through the definitions of both subplans.

        >>> found = compile("SELECT ?x { ?x <p> ?y FILTER(1 + 1 = 2) }").rewrites(check=True)
        >>> [application.name for application in found], bool(found.checked)
        (['fold constants', 'decide filters'], True)
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

    def run(
        self,
        streams: Any = None,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        *,
        engine: str = "embedded",
        spark: SparkSession | None = None,
        slabs: int | None = None,
        start: int | None = None,
        end: int | None = None,
        strict: bool = False,
        max_delay: int = 0,
        max_jump: int | None = MAX_JUMP,
    ) -> Result:
        """Runs the query over a whole history. No stream is read before the result is used.

        `streams` are sources by the streams' IRIs, or one source where the query reads one stream;
        `graph` is the static default graph, `graphs` the named ones; docs/sources.md says what a
        source is. `start` and `end` are the horizon, in milliseconds: the part of time that results
        are given for. Items may be out of order by up to `max_delay` milliseconds; later ones are
        in `result.late`, as is what cannot be read. An item that is ahead of its stream by more
        than `max_jump` is believed when another one is. With `strict` either is an error.

        The engine is embedded, in this process, or spark: in the Spark session `spark`, or one that
        is made, with the time of the data cut into `slabs` (docs/spark.md).

        >>> query = compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }")
        >>> for row in query.run([("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 12)]):
        ...     print(row["o"], row.start, row.end)
        1 3 10
        2 12 20
        """
        from streamsparql.run.result import Result, replayable

        check_engine(engine, spark, slabs)
        given = self._given(streams, graph, graphs, start, end, strict, max_delay, max_jump)
        if engine == "spark":
            from streamsparql.spark.spark_result import SparkResult

            return SparkResult(self, given, spark, slabs)
        return Result(self, given, replayable(given))

    def analyze(
        self,
        streams: Any = None,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        *,
        engine: str = "embedded",
        spark: SparkSession | None = None,
        slabs: int | None = None,
        start: int | None = None,
        end: int | None = None,
        strict: bool = False,
        max_delay: int = 0,
        max_jump: int | None = MAX_JUMP,
        report: str | None = None,
        every: int | None = None,
    ) -> Analysis:
        """Runs the query over data, and gives what was measured in place of the rows.

        The arguments are those of `run`; with `report` or `every` it is reports that are made.

        >>> query = compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }")
        >>> items = [("<a>", "<p>", '"1"', 3), ("<a>", "<q>", '"2"', 12)]
        >>> analysis = query.analyze(items)
        >>> analysis.items.read, analysis.items.unmatched, analysis.rows
        (2, 1, 1)
        """
        from streamsparql.look.analysis import analyzed

        check_engine(engine, spark, slabs)
        given = self._given(streams, graph, graphs, start, end, strict, max_delay, max_jump)
        return analyzed(
            self, given, engine=engine, spark=spark, slabs=slabs, report=report, every=every
        )

    def trace(
        self,
        streams: Any = None,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        *,
        start: int | None = None,
        end: int | None = None,
        strict: bool = False,
        max_delay: int = 0,
        max_jump: int | None = MAX_JUMP,
        step: int | None = None,
        limit: int = 1_000,
    ) -> Trace:
        """Runs the query over a little data, instant by instant, and keeps all that happens.

        The arguments are those of `run`. Items come instant by instant; with a `step` time goes on
        in between, too, by so many milliseconds. The first `limit` items from `start` on are
        traced, and it is said where the trace ends if there are more.

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

        given = self._given(streams, graph, graphs, start, end, strict, max_delay, max_jump)
        return Trace(self, given, limit, step)

    def on_spark(
        self,
        spark: SparkSession,
        streams: Any = None,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        *,
        start: int | None = None,
        end: int | None = None,
        strict: bool = False,
        max_delay: int = 0,
        max_jump: int | None = MAX_JUMP,
        report: str | None = None,
        every: int | None = None,
        slabs: int | None = None,
    ) -> DataFrame:
        """The query as a Spark DataFrame: docs/spark.md.

        It has a string column per variable, with terms in N-Triples syntax, and `start` and `end`,
        in milliseconds, for when a row holds; with `report` (rstream, istream or dstream) or
        `every`, `instant` instead, for the report that a row is in. CONSTRUCT and DESCRIBE give
        `subject`, `predicate` and `object`; ASK `answer`, a boolean.

        Streams are files, folders, DataFrames of Spark, or any source that `run` takes. The time of
        the data is cut into `slabs`, by default as many as are good for it; the answer is that of
        `run`, however many there are. Rows are computed when the DataFrame is asked for them; when
        their sources' items come is looked up at once.
        """
        from streamsparql.run.execution import reports_asked
        from streamsparql.spark.engine import SparkRun
        from streamsparql.spark.failures import told

        given = self._given(streams, graph, graphs, start, end, strict, max_delay, max_jump)
        wanted = reports_asked(self, report, every)
        with told():
            return SparkRun(spark, self, given, report=wanted, slabs=slabs).frame()

    def _given(
        self,
        streams: Any,
        graph: Any,
        graphs: Mapping[str, Any] | None,
        start: int | None,
        end: int | None,
        strict: bool,
        max_delay: int,
        max_jump: int | None,
    ) -> RunInput:
        """What a caller of `run` gives, checked."""
        from streamsparql.run.execution import RunInput, check_given

        named = check_given(self, streams, graphs)
        known = {str(name): source for name, source in (graphs or {}).items()}
        return RunInput(named, graph, known, start, end, strict, max_delay, max_jump)

    def open(
        self,
        graph: Any = None,
        graphs: Mapping[str, Any] | None = None,
        *,
        start: int | None = None,
        end: int | None = None,
        strict: bool = False,
        max_delay: int = 0,
        max_jump: int | None = MAX_JUMP,
        idle: int | None = None,
        emit: str = "final",
        report: str | None = None,
        every: int | None = None,
        on_row: Callable[[Any], object] | None = None,
    ) -> Live:
        """Opens the query for pushing: see `Live`.

        `emit` is final, for rows that have ended, or eager, for all that holds, cut at each call of
        `rows`. With `report` (rstream, istream or dstream) or `every` there are reports instead of
        rows. A stream that is silent for `idle` milliseconds of the others' time holds them back no
        longer. `on_row` is called with each row, or report, as soon as it is known. The other
        arguments are those of `run`.

        >>> query = compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }")
        >>> live = query.open(report="rstream")
        >>> live.push("s", ("<a>", "<p>", '"1"'), 3)
        >>> live.push("s", ("<a>", "<p>", '"2"'), 12)
        >>> [(instant, len(rows)) for instant, rows in live.rows()]
        [(10, 1)]
        >>> live.close()
        """
        from streamsparql.run.execution import RunInput, check_graphs, check_runs
        from streamsparql.run.live import Live

        check_runs(self)
        check_graphs(self, graphs)
        known = {str(name): source for name, source in (graphs or {}).items()}
        given = RunInput({}, graph, known, start, end, strict, max_delay, max_jump)
        return Live(self, given, idle=idle, emit=emit, report=report, every=every, on_row=on_row)

    def explain(
        self,
        stage: str = "all",
        format: str = "text",  # noqa: A002 -- the public name
        *,
        run: SparkRun | None = None,
    ) -> str:
        """A stage of the query, or all of them, to read: how it was understood and what it means.

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
        """How a notebook shows the query: its text, and beside it its logical plan."""
        from streamsparql.look.jupyter.query_view import shown

        return shown(self)
