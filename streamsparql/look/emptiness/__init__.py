"""Why a result has no rows: from the operators that emptied it to what the data have instead.

`run.causes` finds the operators by the counts of a run. If the sources can be read again, a `Probe`
reads their first items and samples what these operators did not match. `unmatched`, `filtered`,
`joined` and `others` turn each of them into a `Reason`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsparql.algebra.match import TriplePattern
from streamsparql.compiled import CompiledQuery
from streamsparql.display.why_empty import Reason, WhyEmpty
from streamsparql.look.emptiness.evidence import Evidence, count_of, operators_below
from streamsparql.look.emptiness.filtered import filtered
from streamsparql.look.emptiness.joined import joined
from streamsparql.look.emptiness.others import other_reason
from streamsparql.look.emptiness.probe import ITEMS, Probe
from streamsparql.look.emptiness.unmatched import unmatched
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.physical.operators.filter import Filter
from streamsparql.physical.operators.join import Join
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.run.causes import causes, has_no_answer
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput
from streamsparql.run.reports import Reporting
from streamsparql.sources import Accounting

_REASONS = 5
"""The number of reasons that are listed."""


def why_empty(
    query: CompiledQuery,
    run_input: RunInput | None,
    execution: Execution | None,
    report: Reporting | None = None,
    items: int = ITEMS,
) -> WhyEmpty:
    """Return the reasons why a run has no rows.

    `execution` has ended; None if it is elsewhere. `run_input` is the input for another run, over
    about the first `items`; None if its sources cannot be read again.
    """
    if execution is not None and not has_no_answer(execution.pipeline):
        return has_rows(query)
    probe = None
    if run_input is not None:
        probe = Probe(query, run_input, report)
        probe.run(items)
    run = execution or probe
    counted = probe if probe is not None and (probe.whole or execution is None) else execution
    outcome = _outcome(query, report, counted)
    if counted is None:
        return WhyEmpty(query.text, True, (_UNKNOWN,), outcome=outcome)
    evidence = Evidence(query, counted, probe, () if run is None else run.rejects())
    reasons = tuple(_reasons(evidence))[:_REASONS]
    return WhyEmpty(query.text, True, reasons, tuple(_notes(evidence, reasons)), outcome)


def has_rows(query: CompiledQuery) -> WhyEmpty:
    """Return the object for a result that has rows."""
    outcome = (
        "the answer is true at some instants" if query.form == "ask" else "the result has rows"
    )
    return WhyEmpty(query.text, empty=False, outcome=outcome)


_UNKNOWN = Reason("unknown", "a source can be read only once, and Spark has read it")


def _outcome(query: CompiledQuery, report: Reporting | None, counted: Execution | None) -> str:
    """Return what a result without rows is."""
    if query.form == "ask":
        return "false at every instant"
    if counted is not None and counted.pipeline.counts[counted.sink].rows_out:
        return "rows of empty groups only"
    return "no rows" if report is None else "no rows in any report"


def _reasons(evidence: Evidence) -> Iterator[Reason]:
    """Yield the reasons of all causes; the operators of one pattern are one cause."""
    emptied = causes(evidence.execution.pipeline)
    by_pattern = matchings_without_rows(evidence, emptied)
    for operator in emptied:
        if not isinstance(operator, TriplePatternMatching):
            yield _reason(evidence, operator)
        elif operator.pattern in by_pattern:
            yield unmatched(evidence, by_pattern.pop(operator.pattern))


def matchings_without_rows(
    evidence: Evidence, emptied: Sequence[Operator]
) -> dict[TriplePattern, list[TriplePatternMatching]]:
    """Return the operators of each pattern that matches nothing, one per source.

    A pattern whose stream was emptied by a window, or by the horizon, is not among them.
    """
    by_pattern: dict[TriplePattern, list[TriplePatternMatching]] = {}
    for operator in evidence.execution.pipeline.operators:
        if isinstance(operator, TriplePatternMatching):
            by_pattern.setdefault(operator.pattern, []).append(operator)
    return {
        pattern: matchings
        for pattern, matchings in by_pattern.items()
        if (here := [each for each in matchings if each in emptied])
        and (len(here) == len(matchings) or any(map(_reads_stream, here)))
    }


def _reads_stream(operator: Operator) -> bool:
    return any(isinstance(each, StreamAccess) for each in operators_below(operator))


def _reason(evidence: Evidence, operator: Operator) -> Reason:
    match operator:
        case Filter():
            return filtered(evidence, operator)
        case Join():
            return joined(evidence, operator)
    return other_reason(evidence, operator)


def _notes(evidence: Evidence, reasons: Sequence[Reason]) -> Sequence[str]:
    """Return what is not part of the result, unless a reason says so, and what is not known."""
    notes = []
    stated = any(reason.code == "no-items" for reason in reasons)
    counts = Accounting() if stated else evidence.execution.accounting
    for number, name in ((counts.late, "late"), (counts.rejected, "rejected")):
        if number:
            verb = "was" if number == 1 else "were"
            notes.append(f"{number:,} of {count_of(counts.read, 'item')} {verb} {name}")
    probe = evidence.probe
    if probe is None:
        notes.append("a source can be read only once: the reasons are from the counts of the run")
    elif not probe.whole:
        notes.append(f"of the data, the first {probe.accounting.read:,} items were read again")
    return notes
