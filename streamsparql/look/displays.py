"""The looks of plans, operators, results and open queries, which know nothing of pictures.

This module implements what `streamsparql.display` declares. It is imported when the first object is
shown, and loads what draws it only then, so that printing a logical plan needs no engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamsparql import display
from streamsparql.display import Description, prefixes_of

if TYPE_CHECKING:
    from streamsparql.algebra.plan import Plan
    from streamsparql.display.picture import Picture
    from streamsparql.look.equivalence import Equivalence
    from streamsparql.look.explain.boxes.box import Box
    from streamsparql.physical.operator import Operator
    from streamsparql.run.live import Live
    from streamsparql.run.result import Result

PLAN = "streamsparql.algebra.plan.Plan"
OPERATOR = "streamsparql.physical.operator.Operator"
RESULT = "streamsparql.run.result.Result"
LIVE = "streamsparql.run.live.Live"


# -- plans -----------------------------------------------------------------------------------------


def _plan_box(plan: Plan) -> Box:
    from streamsparql.look.explain.boxes.logical import plan_box

    return plan_box(plan, prefixes_of(plan))


def _operator_box(operator: Operator) -> Box:
    from streamsparql.look.explain.boxes.physical import physical_box

    return physical_box(operator, prefixes_of(operator))


def _text(box: Box) -> str:
    from streamsparql.look.explain.formats.plain_text import tree_text

    return tree_text(box)


def _html(box: Box) -> str:
    from streamsparql.look.explain.formats.html import stage_html

    return stage_html(box)


@display.display_text.register(PLAN)
def _plan_text(plan: Plan) -> str:
    return _text(_plan_box(plan))


@display.display_html.register(PLAN)
def _plan_html(plan: Plan) -> str:
    return _html(_plan_box(plan))


@display.display_text.register(OPERATOR)
def _operator_text(operator: Operator) -> str:
    return _text(_operator_box(operator))


@display.display_html.register(OPERATOR)
def _operator_html(operator: Operator) -> str:
    return _html(_operator_box(operator))


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
    from streamsparql.look.jupyter.result_view import as_text

    return as_text(result)


@display.display_html.register(RESULT)
def _result_html(result: Result) -> str:
    from streamsparql.look.jupyter.result_view import shown

    return shown(result)


@display.draw_timeline.register(RESULT)
def _result_timeline(
    result: Result, limit: int, report: str | None, every: int | None, timestamps: str | None
) -> Picture:
    from streamsparql.look.jupyter.result_view import timeline_of

    return timeline_of(result, limit, report, every, timestamps)


@display.display_text.register(LIVE)
def _live_text(live: Live) -> str:
    from streamsparql.look.jupyter.live_view import as_text

    return as_text(live.stats(), live.closed)


@display.display_html.register(LIVE)
def _live_html(live: Live) -> str:
    from streamsparql.look.jupyter.live_view import shown

    return shown(live.stats(), live.closed)
