"""Reasons why no row passes a filter: which part is false or an error, and for which values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamsparql.algebra import expressions as e
from streamsparql.algebra import filter as algebra
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term
from streamsparql.display.why_empty import Reason
from streamsparql.errors import Span
from streamsparql.look.emptiness.evidence import Evidence, count_of, has_numeric_value
from streamsparql.look.emptiness.nearest import nearest
from streamsparql.look.emptiness.probe import FilterSample, Probe, Truths
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.filter import Filter
from streamsparql.physical.operators.group import Aggregation
from streamsparql.physical.operators.shape import Extend, Projection

_FEW = 5
_ORDERED = ("<", ">", "<=", ">=")


def filtered(evidence: Evidence, operator: Filter) -> Reason:
    """Return the reason why no row passes a filter."""
    same, probe = evidence.like(operator), evidence.probe
    sample = probe.samples.filters.get(same) if probe is not None and same is not None else None
    word = "HAVING" if _is_having(operator) else "FILTER"
    span = _span(evidence, operator.condition, word)
    if probe is None or sample is None:
        condition = evidence.write.condition(operator.condition)
        rows = count_of(sum(evidence.rows_in(operator)), "row")
        return Reason("filter", f"none of {rows} passes {word}{condition}", span=span)
    blamed = [part for part in sample.parts if not part.true]
    if not blamed:
        message = f"no row passes all conditions of {word}"
        message += evidence.write.condition(operator.condition)
        details = tuple(_values(evidence, probe, sample, operator.condition))
        return Reason("filter", message, details, span=span)
    worst = max(blamed, key=lambda part: part.error)
    message = f"{word}{evidence.write.condition(worst.condition)} is {_outcome(worst)}"
    details = tuple(_values(evidence, probe, sample, worst.condition))
    return Reason("filter", message, details, _hint(evidence, probe, sample, worst), span)


def _outcome(part: Truths) -> str:
    total = part.false + part.error
    rows = "the only row" if total == 1 else f"all {total:,} rows"
    if part.error == total:
        return f"an error for {rows}"
    return f"false for {rows}" + (f", or an error ({part.error:,})" if part.error else "")


def _is_having(operator: Operator) -> bool:
    (below,) = operator.inputs
    while isinstance(below, Filter | Extend | Projection):
        (below,) = below.inputs
    return isinstance(below, Aggregation)


def _span(evidence: Evidence, condition: Expression, word: str) -> Span | None:
    """Return the place of a filter, or of one of its parts, in the text."""
    if word == "HAVING":
        having = evidence.query.translation.syntax.modifiers.having
        return having[0].span if len(having) == 1 else None
    wanted = set(_parts(condition))

    def has_part(plan: Plan) -> bool:
        return isinstance(plan, algebra.Filter) and not wanted.isdisjoint(_parts(plan.condition))

    return evidence.span_of(filter(has_part, evidence.written()))


def _parts(condition: Expression) -> tuple[Expression, ...]:
    return condition.args if isinstance(condition, e.And) else (condition,)


# -- values ----------------------------------------------------------------------------------------


def _values(
    evidence: Evidence, probe: Probe, sample: FilterSample, condition: Expression
) -> Iterator[str]:
    """Yield the values of each variable of a condition: some, or the least and the greatest."""
    for variable in dict.fromkeys(n for n in condition.walk() if isinstance(n, Variable)):
        name = evidence.write.variable(variable)
        terms = _terms(probe, sample, variable)
        if not terms:
            yield f"{name} is unbound in all rows"
        elif len(terms) > _FEW and all(map(has_numeric_value, terms)):
            yield f"{name} is from {evidence.value(terms[0])} to {evidence.value(terms[-1])}"
        else:
            kind = _kind(terms)
            yield f"{name} is {evidence.values(terms)}{f' ({kind})' if kind else ''}"


def _terms(probe: Probe, sample: FilterSample, variable: Variable) -> list[Term]:
    """Return the distinct values of a variable in the sample, in SPARQL's order."""
    ids = np.unique(np.concatenate([np.empty(0, np.int64), *sample.values.get(variable.name, [])]))
    ids = ids[np.argsort(probe.terms.order_ranks(ids), kind="stable")]
    return [term for term in probe.terms.terms_of(ids) if term is not None]


def _kind(terms: list[Term]) -> str:
    """Return the kind of terms that a condition may not expect; empty for numbers and others."""
    if all(isinstance(term, BlankNode) for term in terms):
        return "blank nodes"
    strings = all(isinstance(t, Literal) and t.datatype.value.endswith("tring") for t in terms)
    return ("a string" if len(terms) == 1 else "strings") if strings else ""


def _hint(evidence: Evidence, probe: Probe, sample: FilterSample, part: Truths) -> str:
    """Return a hint for a comparison with a term of another kind, or with one that is similar."""
    match part.condition:
        case e.Call(function, (Variable() as variable, e.Constant(term))):
            pass
        case e.Call(function, (e.Constant(term), Variable() as variable)):
            pass
        case _:
            return ""
    values, name = _terms(probe, sample, variable), evidence.write.variable(variable)
    if not values:
        return "write the FILTER in the group that binds the variable, or test it with BOUND"
    if has_numeric_value(term) and "string" in _kind(values):
        return f"cast it: xsd:decimal({name})"
    if function in _ORDERED and all(isinstance(value, IRI) for value in values):
        return f"an IRI has no order; STR({name}) is its text"
    if function == "=" and (near := nearest(term, values)) is not None:
        return f"did you mean {evidence.term(near)}?"
    return ""
