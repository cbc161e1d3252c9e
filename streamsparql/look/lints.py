"""Lints: warnings about queries that compile, and yet may not do what their writer intends.

Each lint is a function from a `Visit` (an operator of the plan, its scope, its place in the text)
to the warnings about it. `LINTS` lists them all; docs/lints.md explains each code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

from streamsparql.algebra import event, filter, graph, group, join, shape
from streamsparql.algebra import expressions as e
from streamsparql.algebra.access import AccessGraph, AccessStream
from streamsparql.algebra.bounds import bound_of, bounds_below
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.functions import Run
from streamsparql.algebra.grid import Grid
from streamsparql.algebra.match import BasicGraphPattern, TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import conjuncts, reads_occurrence
from streamsparql.algebra.rules.properties import is_static
from streamsparql.algebra.scope import (
    inputs_with_outer,
    readable_variables,
    scope,
    visible_variables,
)
from streamsparql.algebra.solutions import EMPTY, Expression, Solution, Variable
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import IRI, Literal
from streamsparql.algebra.traversal import descend
from streamsparql.algebra.window import ElementWindow, TimeWindow, Window
from streamsparql.algebra.xsd.durations import XsdDuration
from streamsparql.algebra.xsd.literal_operators import effective_boolean_value
from streamsparql.algebra.xsd.values import date_time_literal, duration_literal, value_of
from streamsparql.errors import Span, position, snippet
from streamsparql.translator import syntax as s
from streamsparql.translator.translate import Translation


@dataclass(frozen=True)
class LintWarning:
    """A warning about a query, with its place in the text."""

    code: str
    message: str
    span: Span | None
    text: str
    hint: str = ""

    def __str__(self) -> str:
        lines = [f"warning: {self.message} [{self.code}]"]
        if self.span is not None:
            line, column = position(self.text, self.span.start)
            lines[0] = f"line {line}, column {column}: {lines[0]}"
            lines.append(snippet(self.text, self.span))
        return "\n".join(lines + ([f"hint: {self.hint}"] if self.hint else []))


def lint(translation: Translation) -> tuple[LintWarning, ...]:
    """Return the warnings about a translated query, in the order of its text.

    >>> from streamsparql.translator.translate import translate
    >>> [warning.code for warning in lint(translate("SELECT ?x ?y { ?x <p> 1 . ?z <q> 2 }"))]
    ['never-bound', 'cartesian-product']
    """
    warnings = [*_lint_query(translation)]
    checks = LINTS
    if _is_mapping(translation):  # the columns of the table bind its variables
        checks = tuple(check for check in LINTS if check not in (never_bound, never_true))
    for visit in _visits(translation):
        for check in checks:
            warnings += check(visit)
    warnings += [warning for rule in translation.rules for warning in lint(rule)]
    distinct = dict.fromkeys(warnings)
    return tuple(sorted(distinct, key=lambda w: (w.span or Span(0, 0), w.code)))


def without_schema(translation: Translation) -> LintWarning:
    """Return the warning about a query with entailment over static graphs without a schema.

    Only a run reads the graphs: `lint` does not return it.
    """
    return LintWarning(
        "no-schema",
        "the static graphs have no schema, so nothing is entailed",
        None,
        translation.text,
        hint="pass the graph with rdfs:subClassOf and the like as default graph: --graph FILE",
    )


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


def _visits(translation: Translation) -> Iterator[Visit]:
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


# -- lints of one operator -------------------------------------------------------------------------


def cartesian_product(visit: Visit) -> Iterator[LintWarning]:
    """Warn of parts of a join that share no variable, in any order of the joins."""
    match visit.plan:
        case join.LeftJoin(left, right):
            parts = [left, right]
        case BasicGraphPattern() | join.Join() if not visit.inside_join:
            parts = _join_operands(visit.plan)
        case _:
            return
    unrelated = _first_unrelated([part for part in parts if _has_many_rows(part)])
    if unrelated is not None:
        yield LintWarning(
            "cartesian-product",
            "this shares no variable with the patterns before it, so each row joins each row",
            visit.span_of(unrelated) or visit.span,
            visit.translation.text,
            hint="if a FILTER compares IRIs of the two sides with =, use one variable instead",
        )


def _join_operands(plan: Plan) -> list[Plan]:
    """Return the parts of a tree of joins, from left to right."""
    joins = BasicGraphPattern | join.Join

    def below(node: Plan, _: None) -> list[tuple[Plan, None]]:
        return [(part, None) for part in node.inputs] if isinstance(node, joins) else []

    return [node for node, _ in descend(plan, None, below) if not isinstance(node, joins)]


def _has_many_rows(part: Plan) -> bool:
    """Return whether a part can have several rows, and variables to join on."""
    while isinstance(part, shape.Projection | shape.Extend | shape.OrderBy | filter.Filter):
        part = part.input
    match part:
        case shape.Table(_, rows):
            return len(rows) > 1
        case shape.Slice(limit=int() as limit):
            return limit > 1
        case group.Aggregation(()):
            return False
    return bool(scope(part).possible)


def _first_unrelated(parts: list[Plan]) -> Plan | None:
    """Return the first part that no chain of shared variables relates to the first part."""
    binding: dict[Variable, list[int]] = {}
    for index, part in enumerate(parts):
        for variable in scope(part).possible:
            binding.setdefault(variable, []).append(index)
    related, pending = set[int](), [0] if parts else []
    while pending:
        index = pending.pop()
        if index not in related:
            related.add(index)
            for variable in scope(parts[index]).possible:
                pending += binding.pop(variable, [])
    return next((part for index, part in enumerate(parts) if index not in related), None)


def never_bound(visit: Visit) -> Iterator[LintWarning]:
    """Warn of variables that are read and can never be bound."""
    read: Iterable[Variable] = ()
    match visit.plan:
        case shape.Projection(variables, _):
            read = variables
        case graph.Construct(template, _):
            read = (v for pattern in template for v in pattern.variables())
        case graph.Describe(resources, _, _):
            read = (x for x in resources if isinstance(x, Variable))
        case group.Aggregation(keys, aggregates, _):
            read = (*keys, *(v for _, call in aggregates for v in _free(call)))
        case filter.Filter(condition, _) | join.LeftJoin(_, _, Expression() as condition):
            read = _free(condition)
        case shape.Extend(_, expression, _):
            read = _free(expression)
        case shape.OrderBy(keys, _, _):
            read = (v for key, _ in keys for v in _free(key))
    for variable in dict.fromkeys(read):
        if variable not in visit.bound and not variable.hidden:
            yield LintWarning(
                "never-bound",
                f"nothing binds {variable} here",
                _first_span(variable, visit),
                visit.translation.text,
                _did_you_mean(variable, visit),
            )


def _is_mapping(translation: Translation) -> bool:
    """Return whether a CONSTRUCT reads no triples, and so maps the columns of a table."""
    reads = (isinstance(node, AccessStream | AccessGraph) for node in translation.plan.walk())
    return translation.form == "construct" and not any(reads)


def _free(expression: Expression) -> Iterator[Variable]:
    return (node for node in expression.walk() if isinstance(node, Variable))


def _first_span(variable: Variable, visit: Visit) -> Span | None:
    """Return the span of a variable's first occurrence, preferably in the operator's text."""
    nodes = visit.translation.syntax.walk()
    spans = [n.span for n in nodes if isinstance(n, s.Var) and n.name == variable.name]
    part = visit.span or Span(0, 0)
    inside = [span for span in spans if part.start <= span.start < part.end]
    return next(iter(inside or spans), visit.span)


def _did_you_mean(variable: Variable, visit: Visit) -> str:
    from difflib import get_close_matches

    visible = [v.name for child in visit.plan.inputs for v in visible_variables(child)]
    close = get_close_matches(variable.name, visible, 1, 0.6)
    return f"did you mean ?{close[0]}?" if close else ""


def never_true(visit: Visit) -> Iterator[LintWarning]:
    """Warn of filters that no row can pass, and patterns that no triple can match."""
    match visit.plan:
        case filter.Filter(condition, _) if _never_true(condition, visit.bound):
            yield visit.warn(
                "never-true", "this filter is false or an error for every row, so no row passes"
            )
        case join.LeftJoin(_, _, Expression() as condition) if _never_true(condition, visit.bound):
            yield visit.warn("never-true", "the filter of this OPTIONAL is never true")
        case TriplePatternMatching(pattern) if isinstance(pattern.subject, Literal):
            yield visit.warn("never-true", "no triple has a literal as its subject")


def _never_true(condition: Expression, bound: frozenset[Variable]) -> bool:
    match condition:
        case e.And(args):
            return any(_never_true(arg, bound) for arg in args)
        case e.Or(args):
            return all(_never_true(arg, bound) for arg in args)
        case e.In(_, ()):
            return True
        case e.Bound(variable):
            return variable not in bound
        case e.Not(arg):
            return _always_error(arg, bound) or (_is_constant(arg) and _is_true(arg))
    return _always_error(condition, bound) or (_is_constant(condition) and not _is_true(condition))


def _is_constant(expression: Expression) -> bool:
    """Return whether an expression has the same value for all rows and runs."""
    varying = Variable | e.Volatile | e.Bound
    return not any(isinstance(node, varying) or _is_now(node) for node in expression.walk())


def _is_now(node: Node) -> bool:
    return isinstance(node, e.Call) and node.function == "NOW"


def _is_true(expression: Expression) -> bool:
    value = e.value_or_none(expression, EMPTY, Run())
    try:
        return value is not None and effective_boolean_value(value)
    except ExpressionError:
        return False


_ARITHMETIC = frozenset("+ - * / u+ u-".split())
_ORDER = frozenset("< > <= >=".split())


def _always_error(expression: Expression, bound: frozenset[Variable]) -> bool:
    """Return whether an expression is certain to be an error for every row."""

    def is_error(node: Node, parts: list[bool]) -> bool:
        match node:
            case Variable():
                return node not in bound and not node.hidden
            case e.Call(function, args):
                return (
                    any(parts)
                    or any(_cannot_apply(function, arg) for arg in args)
                    or (all(isinstance(arg, _ATOMS) for arg in args) and _fails(node))
                )
            case e.In():
                return parts[0]
        return False

    return expression.fold(is_error)


def _cannot_apply(function: str | IRI, arg: Expression) -> bool:
    """Return whether an operator is an error for a constant, with any other operand."""
    if not isinstance(arg, e.Constant):
        return False
    if function in _ORDER:
        return isinstance(arg.term, IRI)
    if function in _ARITHMETIC:
        return not isinstance(arg.term, Literal) or arg.term.datatype.value.endswith("tring")
    return False


@cache
def _sample_occurrence() -> Solution:
    """Return an occurrence over which expressions are evaluated, to detect type errors."""
    return Solution(
        {
            e.OCCURRENCE["GETSTARTTIME"]: date_time_literal(0),
            e.OCCURRENCE["GETENDTIME"]: date_time_literal(1),
            e.OCCURRENCE["GETDURATION"]: duration_literal(1),
        }
    )


_ATOMS = e.Constant | Variable


def _fails(expression: Expression) -> bool:
    """Return whether an expression of constants and occurrences is an error."""
    free = set(_free(expression))
    return (
        free <= set(_sample_occurrence())
        and e.value_or_none(expression, _sample_occurrence(), Run()) is None
    )


def unbounded_state(visit: Visit) -> Iterator[LintWarning]:
    """Warn of windows and event patterns whose state grows without bound."""
    match visit.plan:
        case Window() as window if window.reach >= INFINITY:
            yield visit.warn(
                "unbounded-state",
                "this window never evicts an element, so its state grows without bound",
            )
        case event.Detect(pattern):
            for node in _unbounded_operators(pattern):
                yield LintWarning(
                    "unbounded-state",
                    "no filter bounds the time between these events, so all of them are retained"
                    " forever",
                    visit.span_of(node) or visit.span,
                    visit.translation.text,
                    'add FILTER(getDURATION() < "PT1H"^^xsd:duration)',
                )


class _EventPlace(NamedTuple):
    """A place below a Detect: the bound of its rows, and whether it is below a warning."""

    bound: int
    reported: bool


def _unbounded_operators(pattern: Plan) -> Iterator[Plan]:
    """Yield the topmost operators over events that retain rows for an unlimited time."""
    for node, (bound, reported) in descend(pattern, _EventPlace(INFINITY, False), _event_places):
        if not reported and _retains(node, bound):
            yield node


def _event_places(node: Plan, place: _EventPlace) -> list[tuple[Plan, _EventPlace]]:
    if isinstance(node, Closure):  # each rule has its own warnings
        return [(node.input, place)]
    reported = place.reported or _retains(node, place.bound)
    return [
        (part, _EventPlace(bound, reported and bound == INFINITY))
        for part, bound in zip(node.inputs, bounds_below(node, place.bound), strict=True)
    ]


def _retains(node: Plan, bound: int) -> bool:
    """Return whether an operator retains rows of events for an unlimited time.

    Of an optional side one row per key is retained in any case: what decides whether rows match.
    """
    if sum(not is_static(part) for part in node.inputs) < 2:
        return False
    match node:
        case join.LeftJoin(_, _, condition) | event.SeqRightJoin(_, _, condition):
            return min(bound, bound_of(condition)) == INFINITY
        case event.NeverBefore(_, _, condition):
            occurs = condition is not None and reads_occurrence(condition)
            return occurs and bound_of(condition) == INFINITY
        case join.Join() | BasicGraphPattern() | event.SeqJoin() | event.SeqWithout():
            return bound == INFINITY
    return False


def months_in_bound(visit: Visit) -> Iterator[LintWarning]:
    """Warn of a duration with months, which does not bound the state (R26)."""
    match visit.plan:
        case filter.Filter(condition, _) | join.LeftJoin(_, _, Expression() as condition):
            conditions = conjuncts(condition)
        case event.SeqRightJoin(_, _, Expression() as condition):
            conditions = conjuncts(condition)
        case event.EqLeftJoin(_, _, Expression() as condition):
            conditions = conjuncts(condition)
        case _:
            return
    if any(map(_compares_months, conditions)):
        yield visit.warn(
            "months-in-bound",
            "a duration with months does not bound the state: months differ in length, so that"
            " some comparisons with it are errors",
            "write days: P30D",
        )


def _compares_months(condition: Expression) -> bool:
    duration = e.OCCURRENCE["GETDURATION"]
    match condition:
        case e.Call("<" | "<=", (Variable() as variable, e.Constant(term))):
            pass
        case e.Call(">" | ">=", (e.Constant(term), Variable() as variable)):
            pass
        case _:
            return False
    value = value_of(term)
    return variable == duration and isinstance(value, XsdDuration) and value.months > 0


def missed_elements(visit: Visit) -> Iterator[LintWarning]:
    """Warn of windows that slide by more than their length."""
    match visit.plan:
        case TimeWindow(misses_elements=True, grid=Grid(step), length=length):
            yield visit.warn(
                "missed-elements",
                f"the window slides by {step} ms and is {length} ms long: elements are missed",
            )
        case ElementWindow(misses_elements=True, moves_by=step, count=count):
            yield visit.warn(
                "missed-elements",
                f"the window slides by {step} elements and contains {count}: elements are missed",
            )


LINTS: tuple[Callable[[Visit], Iterator[LintWarning]], ...] = (
    cartesian_product,
    never_bound,
    never_true,
    unbounded_state,
    months_in_bound,
    missed_elements,
)


# -- lints of the whole query ----------------------------------------------------------------------


def _lint_query(translation: Translation) -> Iterator[LintWarning]:
    text = translation.text
    for construct, owners, span in translation.foreign:
        titles = " and ".join(owner.title for owner in owners)
        title = translation.dialect.title
        yield LintWarning(
            "foreign", f"{construct} belongs to {titles}; this is {title}", span, text
        )
    for clause in translation.unused_windows:
        yield LintWarning(
            "unused-window",
            "no pattern reads a stream through this window",
            clause.span,
            text,
            hint="the window of a group replaces that of FROM; static graphs have no windows",
        )
    read = {node.stream for node in translation.plan.walk() if isinstance(node, AccessStream)}
    for stream in translation.dataset.streams.values():
        if stream.window is None and stream.clause is not None and stream.name not in read:
            message = f"no pattern reads the stream {stream.name}"
            yield LintWarning("unused-stream", message, stream.clause.span, text)
    query = translation.syntax
    if query.register is not None and query.register.kind == "STREAM":
        if translation.dialect.streams_carry_triples and translation.form in ("select", "ask"):
            yield LintWarning(
                "no-stream",
                "a stream consists of triples, which only CONSTRUCT and DESCRIBE return",
                query.register.span,
                text,
                hint="write REGISTER QUERY, or CONSTRUCT the triples of the stream",
            )
    if translation.streams:
        for node in query.walk():
            if isinstance(node, s.OperatorCall) and node.op == "NOW":
                yield LintWarning(
                    "now",
                    "NOW() is the start of the run, and the same in all results",
                    node.span,
                    text,
                )
