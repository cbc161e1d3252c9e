"""What `check` says about a query that compiles, and yet may not do what its writer wants.

Each lint is a function from a `Visit` (an operator of the plan, what is below it, what its rows can
bind) to the warnings about it. The table `LINTS` has them all; docs/lints.md explains each code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

from streamsparql.algebra import event, filter, graph, group, join, shape
from streamsparql.algebra import expressions as e
from streamsparql.algebra.access import AccessGraph, AccessStream
from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.functions import Run
from streamsparql.algebra.grid import Grid
from streamsparql.algebra.match import BasicGraphPattern, TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
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
from streamsparql.algebra.xsd.literal_operators import effective_boolean_value
from streamsparql.algebra.xsd.values import date_time_literal, duration_literal
from streamsparql.errors import Span, position, snippet
from streamsparql.translator import syntax as s
from streamsparql.translator.translate import Translation


@dataclass(frozen=True)
class Warning:  # noqa: A001 -- it is one, and lives in this module
    """A remark about a query, and where in its text it belongs."""

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


def lint(translation: Translation) -> tuple[Warning, ...]:
    """The warnings about a translated query, in the order of its text.

    >>> from streamsparql.translator.translate import translate
    >>> [warning.code for warning in lint(translate("SELECT ?x ?y { ?x <p> 1 . ?z <q> 2 }"))]
    ['never-bound', 'cartesian-product']
    """
    found = [*_of_query(translation)]
    checks = LINTS
    if _is_mapping(translation):  # the columns of its table bind what nothing else does
        checks = tuple(check for check in LINTS if check not in (never_bound, never_true))
    for visit in _visits(translation):
        for check in checks:
            found += check(visit)
    distinct = dict.fromkeys(found)
    return tuple(sorted(distinct, key=lambda w: (w.span or Span(0, 0), w.code)))


@dataclass(frozen=True)
class Visit:
    """An operator of a plan, seen from a lint."""

    plan: Plan
    outer: frozenset[Variable]
    span: Span | None
    inside_join: bool
    translation: Translation

    @cached_property
    def bound(self) -> frozenset[Variable]:
        """What expressions of this operator can find bound."""
        return readable_variables(self.plan, self.outer)

    def warn(self, code: str, message: str, hint: str = "") -> Warning:
        """A warning at this operator's place in the text."""
        return Warning(code, message, self.span, self.translation.text, hint)

    def span_of(self, plan: Plan) -> Span | None:
        """Where a plan came from: it, or the first below it that the text says."""
        spans = self.translation.spans
        return next((spans[id(node)][1] for node in plan.walk() if id(node) in spans), None)


def _visits(translation: Translation) -> Iterator[Visit]:
    top = Visit(translation.plan, frozenset(), None, False, translation)
    pending, seen = [top], set[int]()
    while pending:
        visit = pending.pop()
        if id(visit.plan) in seen:
            continue
        seen.add(id(visit.plan))
        known = translation.spans.get(id(visit.plan))
        span = known[1] if known else visit.span
        visit = replace(visit, span=span)
        yield visit
        joins = isinstance(visit.plan, BasicGraphPattern | join.Join)
        for child, outer in inputs_with_outer(visit.plan, visit.outer):
            pending.append(Visit(child, outer, span, joins, translation))


# -- lints of one operator -------------------------------------------------------------------------


def cartesian_product(visit: Visit) -> Iterator[Warning]:
    """Parts of a join that share no variable, whatever order they are joined in."""
    match visit.plan:
        case join.LeftJoin(left, right):
            parts = [left, right]
        case BasicGraphPattern() | join.Join() if not visit.inside_join:
            parts = _joined(visit.plan)
        case _:
            return
    apart = _unrelated([part for part in parts if _many(part)])
    if apart is not None:
        yield Warning(
            "cartesian-product",
            "this shares no variable with what stands before it, so each row meets each row",
            visit.span_of(apart) or visit.span,
            visit.translation.text,
            hint="if a FILTER compares IRIs of the two sides with =, use one variable instead",
        )


def _joined(plan: Plan) -> list[Plan]:
    """Return the parts of a tree of joins, from left to right."""
    joins = BasicGraphPattern | join.Join

    def below(node: Plan, _: None) -> list[tuple[Plan, None]]:
        return [(part, None) for part in node.inputs] if isinstance(node, joins) else []

    return [node for node, _ in descend(plan, None, below) if not isinstance(node, joins)]


def _many(part: Plan) -> bool:
    """Whether a part can have more than one row, and columns to be related by."""
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


def _unrelated(parts: list[Plan]) -> Plan | None:
    """The first part that no chain of shared variables relates to the first."""
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


def never_bound(visit: Visit) -> Iterator[Warning]:
    """Variables that are read where nothing can have bound them."""
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
            yield Warning(
                "never-bound",
                f"nothing binds {variable} here",
                _first_place(variable, visit),
                visit.translation.text,
                _did_you_mean(variable, visit),
            )


def _is_mapping(translation: Translation) -> bool:
    """Whether a CONSTRUCT reads nothing, so that it is a mapping of some table's columns."""
    reads = (isinstance(node, AccessStream | AccessGraph) for node in translation.plan.walk())
    return translation.form == "construct" and not any(reads)


def _free(expression: Expression) -> Iterator[Variable]:
    return (node for node in expression.walk() if isinstance(node, Variable))


def _first_place(variable: Variable, visit: Visit) -> Span | None:
    """Where a variable stands first, in the operator's part of the text if it does."""
    nodes = visit.translation.syntax.walk()
    places = [n.span for n in nodes if isinstance(n, s.Var) and n.name == variable.name]
    part = visit.span or Span(0, 0)
    inside = [place for place in places if part.start <= place.start < part.end]
    return next(iter(inside or places), visit.span)


def _did_you_mean(variable: Variable, visit: Visit) -> str:
    from difflib import get_close_matches

    known = [v.name for child in visit.plan.inputs for v in visible_variables(child)]
    close = get_close_matches(variable.name, known, 1, 0.6)
    return f"did you mean ?{close[0]}?" if close else ""


def never_true(visit: Visit) -> Iterator[Warning]:
    """Filters that no row can pass."""
    match visit.plan:
        case filter.Filter(condition, _) if _never_true(condition, visit.bound):
            yield visit.warn(
                "never-true", "this filter is an error or false for every row, so none passes"
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
    """Whether it has one value, whatever the row and the run."""
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
    """Whether an expression is an error on every row; True only where that is certain."""

    def judge(node: Node, parts: list[bool]) -> bool:
        match node:
            case Variable():
                return node not in bound and not node.hidden
            case e.Call(function, args):
                return (
                    any(parts)
                    or any(_misfits(function, arg) for arg in args)
                    or (all(isinstance(arg, _KNOWN) for arg in args) and _fails(node))
                )
            case e.In():
                return parts[0]
        return False

    return expression.fold(judge)


def _misfits(function: str | IRI, arg: Expression) -> bool:
    """Whether an operator can do nothing with this constant, whatever the other side is."""
    if not isinstance(arg, e.Constant):
        return False
    if function in _ORDER:
        return isinstance(arg.term, IRI)
    if function in _ARITHMETIC:
        return not isinstance(arg.term, Literal) or arg.term.datatype.value.endswith("tring")
    return False


@cache
def _samples() -> Solution:
    """An occurrence, to see what expressions make of any."""
    return Solution(
        {
            e.OCCURRENCE["GETSTARTTIME"]: date_time_literal(0),
            e.OCCURRENCE["GETENDTIME"]: date_time_literal(1),
            e.OCCURRENCE["GETDURATION"]: duration_literal(1),
        }
    )


_KNOWN = e.Constant | Variable


def _fails(expression: Expression) -> bool:
    """Whether it is an error over constants, and occurrences of whatever length."""
    free = set(_free(expression))
    return free <= set(_samples()) and e.value_or_none(expression, _samples(), Run()) is None


def unbounded_state(visit: Visit) -> Iterator[Warning]:
    """What has to be kept for ever."""
    match visit.plan:
        case Window() as window if window.reach >= INFINITY:
            yield visit.warn(
                "unbounded-state", "this window never lets an element go, so its state only grows"
            )
        case event.Detect(pattern) if _relates(pattern) and not _bounded(pattern):
            yield visit.warn(
                "unbounded-state",
                "nothing bounds how far apart the events may lie, so all of them are kept for ever",
                'add FILTER(getDURATION() < "PT1H"^^xsd:duration)',
            )


def _relates(pattern: Plan) -> bool:
    """Whether events of different instants meet; EQUALS relates those of one."""
    apart = join.Join | join.LeftJoin | BasicGraphPattern | event.SeqJoin | event.SeqRightJoin
    return any(isinstance(node, apart) for node in pattern.walk())


def _bounded(pattern: Plan) -> bool:
    """Whether a conjunct of the filters on top is `getDURATION() < X`."""
    while isinstance(pattern, event.Closure):
        pattern = pattern.input
    while isinstance(pattern, filter.Filter):
        parts = (
            pattern.condition.args if isinstance(pattern.condition, e.And) else [pattern.condition]
        )
        if any(_is_duration_bound(part) for part in parts):
            return True
        pattern = pattern.input
    return False


def _is_duration_bound(condition: Expression) -> bool:
    duration = e.OCCURRENCE["GETDURATION"]
    match condition:
        case e.Call("<" | "<=", (Variable() as variable, e.Constant())):
            return variable == duration and not _fails(condition)
        case e.Call(">" | ">=", (e.Constant(), Variable() as variable)):
            return variable == duration and not _fails(condition)
    return False


def missed_elements(visit: Visit) -> Iterator[Warning]:
    """Warn of windows that move by more than they hold."""
    match visit.plan:
        case TimeWindow(misses_elements=True, grid=Grid(step), length=length):
            yield visit.warn(
                "missed-elements",
                f"the window moves by {step} ms and holds {length} ms: elements between are missed",
            )
        case ElementWindow(misses_elements=True, moves_by=step, count=count):
            yield visit.warn(
                "missed-elements",
                f"the window moves by {step} elements and holds {count}: those between are missed",
            )


LINTS: tuple[Callable[[Visit], Iterator[Warning]], ...] = (
    cartesian_product,
    never_bound,
    never_true,
    unbounded_state,
    missed_elements,
)


# -- lints of the whole query ----------------------------------------------------------------------


def _of_query(translation: Translation) -> Iterator[Warning]:
    text = translation.text
    for construct, owners, span in translation.foreign:
        titles = " and ".join(owner.title for owner in owners)
        title = translation.dialect.title
        yield Warning("foreign", f"{construct} belongs to {titles}; this is {title}", span, text)
    for clause in translation.unused_windows:
        yield Warning(
            "unused-window",
            "no pattern reads a stream through this window",
            clause.span,
            text,
            hint="a group's window wins over that of FROM; static graphs have none",
        )
    read = {node.stream for node in translation.plan.walk() if isinstance(node, AccessStream)}
    for stream in translation.dataset.streams.values():
        if stream.window is None and stream.clause is not None and stream.name not in read:
            message = f"no pattern reads the stream {stream.name}"
            yield Warning("unused-stream", message, stream.clause.span, text)
    query = translation.syntax
    if query.register is not None and query.register.kind == "STREAM":
        if translation.dialect.streams_carry_triples and translation.form in ("select", "ask"):
            yield Warning(
                "no-stream",
                "a stream is made of triples, which only CONSTRUCT and DESCRIBE give",
                query.register.span,
                text,
                hint="write REGISTER QUERY, or CONSTRUCT the triples of the stream",
            )
    if translation.streams:
        for node in query.walk():
            if isinstance(node, s.OperatorCall) and node.op == "NOW":
                yield Warning(
                    "now", "NOW() is the start of the run, the same in all results", node.span, text
                )
