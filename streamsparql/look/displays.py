"""Implementations of the displays that `streamsparql.display` declares.

Plans, operators, results and open queries do not import the code that draws them. This module is
imported when the first of them is shown. Each function imports its renderer when it is called, so
that printing a logical plan loads no engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamsparql import display
from streamsparql.display import Description, prefixes_of

if TYPE_CHECKING:
    from streamsparql.algebra.plan import Plan
    from streamsparql.compiled import CompiledQuery
    from streamsparql.display.picture import Picture
    from streamsparql.display.why_empty import WhyEmpty
    from streamsparql.look.equivalence import Equivalence
    from streamsparql.look.explain.boxes.box import Box
    from streamsparql.look.rewrites import Application, Rewrites
    from streamsparql.look.traces.definitions import LogicalMoment
    from streamsparql.look.traces.trace import Moment, Trace
    from streamsparql.physical.operator import Operator
    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.live import Live
    from streamsparql.run.registered import Registered
    from streamsparql.run.result import Result
    from streamsparql.run.session import Session
    from streamsparql.run.time_arguments import Duration

PLAN = "streamsparql.algebra.plan.Plan"
OPERATOR = "streamsparql.physical.operator.Operator"
RESULT = "streamsparql.run.result.Result"
WHY_EMPTY = "streamsparql.display.why_empty.WhyEmpty"
LIVE = "streamsparql.run.live.Live"
SESSION = "streamsparql.run.session.Session"
REGISTERED = "streamsparql.run.registered.Registered"
APPLICATION = "streamsparql.look.rewrites.Application"
REWRITES = "streamsparql.look.rewrites.Rewrites"
EQUIVALENCE = "streamsparql.look.equivalence.Equivalence"
TRACE = "streamsparql.look.traces.trace.Trace"
MOMENT = "streamsparql.look.traces.trace.Moment"
LOGICAL_MOMENT = "streamsparql.look.traces.definitions.LogicalMoment"


# -- plans -----------------------------------------------------------------------------------------


def _plan_box(plan: Plan) -> Box:
    from streamsparql.look.explain.boxes.logical import plan_box

    return plan_box(plan, prefixes_of(plan))


def _operator_box(operator: Operator) -> Box:
    from streamsparql.look.explain.boxes.physical import physical_box

    return physical_box(operator, prefixes_of(operator))


def _box_text(box: Box) -> str:
    from streamsparql.look.explain.formats.plain_text import tree_text

    return tree_text(box)


def _box_html(box: Box) -> str:
    from streamsparql.look.explain.formats.html import stage_html

    return stage_html(box)


@display.display_text.register(PLAN)
def _plan_text(plan: Plan) -> str:
    return _box_text(_plan_box(plan))


@display.display_html.register(PLAN)
def _plan_html(plan: Plan) -> str:
    return _box_html(_plan_box(plan))


@display.display_text.register(OPERATOR)
def _operator_text(operator: Operator) -> str:
    return _box_text(_operator_box(operator))


@display.display_html.register(OPERATOR)
def _operator_html(operator: Operator) -> str:
    return _box_html(_operator_box(operator))


@display.describe.register(OPERATOR)
def _operator_description(operator: Operator, prefixes: Mapping[str, str]) -> Description:
    from streamsparql.look.explain.boxes.phrases import plan_writer
    from streamsparql.look.explain.boxes.physical import description_of

    return description_of(operator, plan_writer(prefixes))


@display.compare.register(PLAN)
def _plan_comparison(plan: Plan, other: Plan, trials: int, seed: int) -> Equivalence:
    from streamsparql.look.equivalence import equivalent

    return equivalent(plan, other, trials, seed)


# -- runs ------------------------------------------------------------------------------------------


@display.display_text.register(RESULT)
def _result_text(result: Result) -> str:
    from streamsparql.look.jupyter.result_view import result_text

    return result_text(result)


@display.display_html.register(RESULT)
def _result_html(result: Result) -> str:
    from streamsparql.look.jupyter.result_view import result_or_error_html

    return result_or_error_html(result)


@display.explain_empty.register(RESULT)
def _why_result_empty(result: Result, report: Any, every: Any) -> WhyEmpty:
    from streamsparql.look.emptiness.results import why_result_empty

    return why_result_empty(result, report, every)


@display.display_text.register(WHY_EMPTY)
def _why_empty_text(why: WhyEmpty) -> str:
    return "\n".join(why.lines())


@display.display_html.register(WHY_EMPTY)
def _why_empty_html(why: WhyEmpty) -> str:
    from streamsparql.look.jupyter.why_view import why_html

    return why_html(why)


@display.draw_timeline.register(RESULT)
def _result_timeline(
    result: Result,
    limit: int,
    report: RelationToStream | None,
    every: Duration | None,
    timestamps: str | None,
) -> Picture:
    from streamsparql.look.jupyter.result_view import timeline_of

    return timeline_of(result, limit, report, every, timestamps)


@display.display_text.register(LIVE)
def _live_text(live: Live[Any]) -> str:
    from streamsparql.look.jupyter.live_view import live_text

    return live_text(live.stats(), live.closed)


@display.display_html.register(LIVE)
def _live_html(live: Live[Any]) -> str:
    from streamsparql.look.jupyter.live_view import live_html

    return live_html(live.stats(), live.closed)


@display.lint_query.register("streamsparql.compiled.CompiledQuery")
def _query_warnings(query: CompiledQuery) -> Sequence[Warning]:
    from streamsparql.look.lints import lint

    return lint(query.translation)


# -- sessions --------------------------------------------------------------------------------------


@display.draw_session.register(SESSION)
def _session_plans(
    session: Session,
    format: str,  # noqa: A002 -- the public name
    color: bool,
    width: int,
    counts: bool,
) -> str:
    from streamsparql.look.explain.session import ExplainedPlan, explain_session

    plans = [ExplainedPlan(*plan) for plan in session.plans()]
    queries = ((query.name, query.query.text) for query in session.queries.values())
    shown = session.operator_counts() if counts else None
    return explain_session(plans, queries, format, color, width, shown)


@display.display_text.register(SESSION)
def _session_text(session: Session) -> str:
    return session.explain()


@display.display_html.register(SESSION)
def _session_html(session: Session) -> str:
    from streamsparql.look.explain.session import ExplainedPlan, session_box

    return _box_html(session_box([ExplainedPlan(*plan) for plan in session.plans()]))


@display.display_text.register(REGISTERED)
def _registered_text(registered: Registered) -> str:
    from streamsparql.look.jupyter.live_view import live_text

    return live_text(registered.stats(), registered.closed, _heading_of(registered))


@display.display_html.register(REGISTERED)
def _registered_html(registered: Registered) -> str:
    from streamsparql.look.jupyter.live_view import live_html

    return live_html(registered.stats(), registered.closed, _heading_of(registered))


def _heading_of(registered: Registered) -> str:
    """Return the name of a query of a session, and the number of its instances."""
    if registered.instances is None:
        return registered.name
    instances = len(registered.instances)
    return f"{registered.name}, {instances:,} instance{'s' * (instances != 1)}"


# -- rewrites, comparisons, traces -----------------------------------------------------------------


@display.display_text.register(APPLICATION)
def _application_text(application: Application) -> str:
    from streamsparql.look.jupyter.rewriting_view import application_text

    return application_text(application)


@display.display_html.register(APPLICATION)
def _application_html(application: Application) -> str:
    from streamsparql.look.jupyter.rewriting_view import applications_html

    return applications_html((application,), "")


@display.display_text.register(REWRITES)
def _rewrites_text(rewrites: Rewrites) -> str:
    from streamsparql.look.jupyter.rewriting_view import applications_text, summary

    return applications_text(rewrites.applications, summary(rewrites))


@display.display_html.register(REWRITES)
def _rewrites_html(rewrites: Rewrites) -> str:
    from streamsparql.look.jupyter.rewriting_view import applications_html, summary

    return applications_html(rewrites.applications, summary(rewrites))


@display.display_html.register(EQUIVALENCE)
def _equivalence_html(equivalence: Equivalence) -> str:
    from streamsparql.look.jupyter.equivalence_view import equivalence_html

    return equivalence_html(equivalence)


@display.draw_trace.register(TRACE)
def _trace_picture(trace: Trace) -> Picture:
    from streamsparql.look.jupyter.trace_view import trace_picture

    return trace_picture(trace)


@display.display_html.register(MOMENT)
def _moment_html(moment: Moment) -> str:
    from streamsparql.look.jupyter.trace_tables import moment_html

    return moment_html(moment)


@display.display_html.register(LOGICAL_MOMENT)
def _logical_moment_html(moment: LogicalMoment) -> str:
    from streamsparql.look.jupyter.trace_tables import logical_html

    return logical_html(moment)
