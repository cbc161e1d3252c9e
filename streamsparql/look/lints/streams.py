"""Lints of queries over streams: rows that differ from those of a table with the same data.

A window holds several readings of one thing at the same time; LIMIT, and the empty aggregate, are
values of each instant; an element window counts triples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from streamsparql.algebra import filter, group, join, shape
from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.expressions import Aggregate, And
from streamsparql.algebra.match import BasicGraphPattern, TriplePatternMatching
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, RDF, Term
from streamsparql.algebra.traversal import descend
from streamsparql.algebra.window import ElementWindow, NowWindow, Window
from streamsparql.look.lints.visit import Visit
from streamsparql.look.lints.warning import LintWarning
from streamsparql.translator.sparql_text import Writer

_DUPLICATES_COUNT = ("SUM", "AVG", "COUNT", "GROUP_CONCAT")
_TYPE = IRI(RDF + "type")


def combined_readings(visit: Visit) -> Iterator[LintWarning]:
    """Warn of aggregates over pairs of readings: of two properties of a thing that is grouped by.

    A node per reading, which joins the values of one reading only, is not a key. A value that the
    query only compares with others may be a static attribute.
    """
    if not isinstance(visit.plan, group.Aggregation):
        return
    keys = visit.plan.keys
    patterns, measured = _matchings(visit.plan.input), set(_measured(visit.plan))
    uses = Counter(v for each in patterns for v in each.pattern.variables())
    for subject in keys:
        own = [each for each in patterns if each.pattern.subject == subject]
        readings = [
            each
            for each in own
            if each.pattern.object in measured and _is_reading(each, keys, uses)
        ]
        values = {each.pattern.object for each in readings}
        calls = [call for _, call in visit.plan.aggregates if _counts_pairs(call, values)]
        if calls and len({each.pattern.predicate for each in readings}) > 1:
            yield _combined(visit, subject, readings, calls[0])


def _measured(plan: group.Aggregation) -> Iterator[Variable]:
    """Yield the variables that are aggregated, or that a filter compares with constants only."""
    expressions: list[Expression] = [call for _, call in plan.aggregates]
    for node in _joined(plan.input):
        if isinstance(node, filter.Filter):
            condition = node.condition
            expressions += condition.args if isinstance(condition, And) else (condition,)
    for expression in expressions:
        variables = {node for node in expression.walk() if isinstance(node, Variable)}
        if isinstance(expression, Aggregate) or len(variables) == 1:
            yield from variables


def _counts_pairs(call: Aggregate, values: set[Term | Variable]) -> bool:
    """Return whether the value of an aggregate over these values depends on how often each is."""
    if call.function not in _DUPLICATES_COUNT or call.distinct:
        return False
    return call.argument is None or any(node in values for node in call.argument.walk())


def _joined(plan: Plan) -> list[Plan]:
    """Return the operators of a group: joins, filters, windows, and the patterns below them."""
    joined = BasicGraphPattern | join.Join | join.LeftJoin | filter.Filter | shape.Extend | Window

    def below(node: Plan, _: None) -> list[tuple[Plan, None]]:
        return [(part, None) for part in node.operands] if isinstance(node, joined) else []

    return [node for node, _ in descend(plan, None, below)]


def _matchings(plan: Plan) -> list[TriplePatternMatching]:
    """Return the triple patterns that are joined below an operator."""
    return [node for node in _joined(plan) if isinstance(node, TriplePatternMatching)]


def _windows(matching: TriplePatternMatching) -> list[Window]:
    """Return the windows over streams that a triple pattern reads."""
    return [each for each in matching.input.operators() if isinstance(each, Window)]


def _holds_several(matching: TriplePatternMatching) -> bool:
    return any(not isinstance(window, NowWindow) for window in _windows(matching))


def _is_reading(
    matching: TriplePatternMatching, keys: Sequence[Variable], uses: Counter[Variable]
) -> bool:
    """Return whether a pattern binds a value that nothing else in the join reads."""
    _, predicate, value = matching.pattern
    if not isinstance(predicate, IRI) or predicate == _TYPE or not isinstance(value, Variable):
        return False
    return uses[value] == 1 and value not in keys and _holds_several(matching)


def _combined(
    visit: Visit, subject: Variable, readings: list[TriplePatternMatching], call: Aggregate
) -> LintWarning:
    write = Writer(visit.translation.names.prefixes)
    values = [each.pattern.object for each in readings]
    listed = " ; ".join(
        f"{write.term(each.pattern.predicate)} {each.pattern.object}" for each in readings
    )
    return LintWarning(
        "combined-readings",
        f"each {values[0]} of one {subject} in the window joins each {values[1]}, also of another"
        f" time, so {call.function} counts pairs",
        visit.span_of(readings[1]) or visit.span,
        visit.translation.text,
        hint=f"relate the values by a node per reading: ?reading <of> {subject} ; {listed}",
    )


def counted_triples(visit: Visit) -> Iterator[LintWarning]:
    """Warn of element windows over a stream whose rows are several triples."""
    if not isinstance(visit.plan, BasicGraphPattern) or visit.inside_join:
        return
    stars = Counter[tuple[ElementWindow, Variable]]()
    for each in _matchings(visit.plan):
        subject = each.pattern.subject
        if isinstance(subject, Variable):
            stars.update((w, subject) for w in _windows(each) if isinstance(w, ElementWindow))
    for (window, subject), size in stars.items():
        if size > 1 and isinstance(window.input, AccessStream):
            yield visit.warn(
                "counted-triples",
                f"the window contains {window.count} triples, not rows: the patterns of {subject}"
                f" need {size} triples for a row",
                hint=f"use a window of time, or {size * window.count} elements for"
                f" {window.count} rows",
            )
