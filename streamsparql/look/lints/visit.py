"""The operators of a plan, as lints see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from streamsparql.algebra import join
from streamsparql.algebra.match import BasicGraphPattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import inputs_with_outer, readable_variables
from streamsparql.algebra.solutions import Variable
from streamsparql.errors import Span
from streamsparql.look.lints.warning import LintWarning
from streamsparql.translator.translate import Translation


@dataclass(frozen=True)
class Visit:
    """An operator of a plan, as a lint sees it.

    `outer` are the variables of the outer row in a pattern of an EXISTS; `inside_join` is true for
    an input of a join.
    """

    plan: Plan
    outer: frozenset[Variable]
    span: Span | None
    inside_join: bool
    translation: Translation

    @cached_property
    def bound(self) -> frozenset[Variable]:
        """The variables that can be bound in expressions of this operator."""
        return readable_variables(self.plan, self.outer)

    def warn(self, code: str, message: str, hint: str = "") -> LintWarning:
        """Create a warning at this operator's place in the text."""
        return LintWarning(code, message, self.span, self.translation.text, hint)

    def span_of(self, plan: Plan) -> Span | None:
        """Return the span of a plan, or of the first node below it that has one."""
        spans = self.translation.spans
        return next((spans[id(node)][1] for node in plan.walk() if id(node) in spans), None)


def visits(translation: Translation) -> Iterator[Visit]:
    """Yield the operators of a plan, each object once."""
    top = Visit(translation.plan, frozenset(), None, False, translation)
    others = (rule.rule for rule in translation.rules if rule.rule)
    pending, seen = [top], {id(rule.construct) for rule in others}
    while pending:
        visit = pending.pop()
        if id(visit.plan) in seen:
            continue
        seen.add(id(visit.plan))
        located = translation.spans.get(id(visit.plan))
        span = located[1] if located else visit.span
        visit = replace(visit, span=span)
        yield visit
        joins = isinstance(visit.plan, BasicGraphPattern | join.Join)
        for child, outer in inputs_with_outer(visit.plan, visit.outer):
            pending.append(Visit(child, outer, span, joins, translation))
