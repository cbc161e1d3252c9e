"""Why a result of either engine, or its reports, have no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsparql.display.why_empty import WhyEmpty
from streamsparql.look.emptiness import has_rows, why_empty
from streamsparql.look.emptiness.probe import ITEMS
from streamsparql.run.reports import requested_reports
from streamsparql.run.result import Result

if TYPE_CHECKING:
    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.time_arguments import Duration


def why_result_empty(
    result: Result, report: RelationToStream | None = None, every: Duration | None = None
) -> WhyEmpty:
    """Return the reasons why a result has no rows, or why its requested reports have none."""
    computation = result.computation
    query = computation.query
    wanted = requested_reports(query, report, every)
    if not computation.is_empty():
        if wanted is None or any(map(len, computation.reported(wanted).batches)):
            return has_rows(query)
        return why_empty(query, computation.sample(ITEMS), None, wanted)
    return why_empty(query, computation.sample(ITEMS), computation.finished())
