"""Fragments of queries: patterns, conditions and windows as strings, translated to plans.

A fragment is embedded in a query and parsed with it; the spans of errors refer to the fragment.
Hidden variables (blank nodes, EXISTS, ..) are numbered after those of the plan that the fragment
extends, as they are within one query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from streamsparql.algebra.closure import Closure
from streamsparql.algebra.event import Detect, EventPair
from streamsparql.algebra.expressions import Volatile
from streamsparql.algebra.hidden_variables import Hidden, PlanKind
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import visible_variables
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.traversal import recursion_headroom
from streamsparql.errors import QueryError, Span, TextError, UnsupportedFeature
from streamsparql.translator import modifiers
from streamsparql.translator import syntax as s
from streamsparql.translator.checks import check
from streamsparql.translator.context import Context
from streamsparql.translator.create_plan import (
    Act,
    create_group_plan,
    create_plan,
    exists_translator,
)
from streamsparql.translator.dataset import Dataset, ReadScope, merge_active_sources
from streamsparql.translator.dialects import EPSPARQL, STREAMING, Dialect, dialect_named
from streamsparql.translator.dialects.base import Windowing, WindowSetting
from streamsparql.translator.names import Names
from streamsparql.translator.parse import parse
from streamsparql.translator.translate_expressions import PreparedExpression, prepare_expression

Prefixes = Mapping[str, str]


class Host(NamedTuple):
    """The plan that a fragment extends, the source of its patterns, and its prefixes."""

    plan: Plan
    source: Plan | None
    prefixes: Prefixes


# -- fragments -------------------------------------------------------------------------------------


def group_plan(text: str, host: Host) -> Plan:
    """Return the plan of a group's content, without its braces, over the host's source."""
    with _parsed(f"SELECT * {{\x00{text}\n}}", text, host) as (query, context):
        assert query.where is not None
        _check_only(text, query)
        plan = create_group_plan(query.where, _scope(query, host, context), context)
        _check_no_timestamps(context)
        return plan


def apply_clause(text: str, before: str, after: str, host: Host) -> Plan:
    """Apply a FILTER or a BIND, whose keywords are `before` and `after`, to the host's plan."""
    whole = f"SELECT * {{ {_binding_clause(host)} {before}\x00{text}\n{after} }}"
    with _parsed(whole, text, host) as (query, context):
        assert query.where is not None
        _check_only(text, query, elements=2)
        clause = query.where.elements[-1]
        act = create_plan(clause, _scope(query, host, context), context)
        assert isinstance(act, Act)
        plan = act.apply(host.plan)
        _check_no_timestamps(context)
        return plan


def left_join_conditions(text: str | None, host: Host) -> tuple[list[PreparedExpression], Context]:
    """Return the condition of an OPTIONAL, if there is one, and the context to translate it in."""
    if text is None:
        return [], _context_of(
            s.QueryUnit((), None, None, s.AskForm(), (), None, s.Modifiers(), None), host
        )
    with _parsed(f"SELECT * {{ FILTER(\x00{text}\n) }}", text, host) as (query, context):
        assert query.where is not None
        _check_only(text, query, elements=1)
        (clause,) = query.where.elements
        assert isinstance(clause, s.FilterClause)
        exists = exists_translator(_scope(query, host, context), context)
        condition = prepare_expression(clause.condition, context, exists)
        if context.stamps.any:
            raise _timestamp_error()
        return [condition], context


def apply_modifiers(
    text: str,
    before: str,
    after: str,
    host: Host,
    items: int = 0,
    **counts: int | None,
) -> Plan:
    """Apply the clauses after a WHERE to the host's plan: GROUP BY, ORDER BY, AGGREGATE.

    `before` and `after` complete the query, with `{}` for the WHERE. The query must have `items`
    items in its SELECT, and `counts` of each kind in `s.Modifiers` (None: any number).
    """
    before, after = (
        part.replace("{}", f"{{ {_binding_clause(host)} }}") for part in (before, after)
    )
    with _parsed(f"{before}\x00{text}\n{after}", text, host) as (query, context):
        exists = exists_translator(_scope(query, host, context), context)
        assert isinstance(query.form, s.SelectForm)
        selected = [x for x in query.form.select.items if isinstance(x, s.SelectItem)]
        _check_only(text, query, 1, items, counts)
        plan = modifiers.create_rows_plan(
            host.plan, selected, query.modifiers, query.values, context, exists
        )
        _check_no_timestamps(context)
        return plan


def parse_values(text: str, prefixes: Prefixes) -> Plan:
    """Return the table of a VALUES clause."""
    from streamsparql.algebra.shape import UNIT

    host = Host(UNIT, None, prefixes)
    with _parsed(f"SELECT * {{ VALUES\x00{text}\n}}", text, host) as (query, context):
        assert query.where is not None
        _check_only(text, query, elements=1)
        (clause,) = query.where.elements
        assert isinstance(clause, s.InlineData)
        return modifiers.create_table(clause, context)


def parse_template(text: str, host: Host) -> tuple[Any, ...]:
    """Return the triples of a CONSTRUCT template."""
    with _parsed(f"CONSTRUCT {{\x00{text}\n}} {{}}", text, host) as (query, context):
        assert isinstance(query.form, s.ConstructForm)
        _check_only(text, query, elements=0)
        return context.template(query.form.template)


def windowing(text: str, dialect: str | None, origin: int, name: str | None) -> Windowing:
    """Return the window of a clause: `RANGE 10 SLIDE 5`, or `[RANGE 10s STEP 5s]` of a dialect."""
    if text.lstrip().startswith("["):
        if dialect is None:
            raise QueryError(
                "ambiguous window: brackets differ in meaning between C-SPARQL, CQELS and RSP-QL",
                hint='name the dialect: .window("[RANGE 10s STEP 1s]", dialect="csparql")',
            )
        before = "SELECT * FROM STREAM <s>"
    else:
        before = "SELECT * FROM STREAM <s> WINDOW"
    chosen = dialect_named(dialect or "streaming")
    with _errors_in(text, len(before) + 1):
        query = parse(f"{before}\x00{text}\n{{}}".replace("\x00", "\n"))
        _check_only(text, query, elements=0, sources=1)
        clause = query.sources[0].window
        assert clause is not None
        return chosen.windowing(clause, WindowSetting(name, origin))


def parse_variables(text: str) -> tuple[Variable, ...]:
    """Parse a list of variables.

    >>> parse_variables("?x ?y")
    (?x, ?y)
    """
    words = _check_string(text).replace(",", " ").split()
    for word in words:
        if not re.fullmatch(r"[?$]\w+", word):
            raise QueryError(f"not a variable: {word!r}", hint="write variables as ?x ?y")
    return tuple(dict.fromkeys(Variable(word[1:]) for word in words))


def parse_variable(text: str) -> Variable:
    """Parse one variable."""
    variables = parse_variables(text)
    if len(variables) != 1:
        raise QueryError(f"expected one variable, not {len(variables)}: {text!r}")
    return variables[0]


def _check_string(value: str) -> str:
    if not isinstance(value, str):
        raise QueryError(
            f"expected a string, not {value!r}", hint="write it as in a query: '?x <p> ?y'"
        )
    return value


def parse_iri(name: str | IRI, prefixes: Prefixes) -> IRI:
    """Parse an IRI, `<http://..>` or `http://..`, or a prefixed name.

    >>> print(parse_iri("<urn:s>", {}), parse_iri("urn:s", {}), parse_iri(":s", {"": "http://e/"}))
    <urn:s> <urn:s> <http://e/s>
    """
    if isinstance(name, IRI):
        return name
    if _check_string(name).startswith("<") and name.endswith(">"):
        return IRI(name[1:-1])
    prefix, colon, local = name.partition(":")
    return IRI(prefixes[prefix] + local) if colon and prefix in prefixes else IRI(name)


def parse_graph_name(name: str | IRI, prefixes: Prefixes) -> IRI | Variable:
    """Parse the name after GRAPH: an IRI, or a variable."""
    if isinstance(name, str) and name.startswith("?"):
        return parse_variables(name)[0]
    return parse_iri(name, prefixes)


# -- parsing ---------------------------------------------------------------------------------------


@contextmanager
def _parsed(whole: str, text: str, host: Host) -> Iterator[tuple[s.QueryUnit, Context]]:
    """Parse the query around a fragment, which starts after its zero character.

    Yield the query, and the context to translate it in.
    """
    _check_string(text)
    declared = "".join(f"PREFIX {name}: <{value}> " for name, value in host.prefixes.items())
    whole = declared + whole
    with _errors_in(text, whole.index("\x00") + 1), recursion_headroom():
        query = parse(whole.replace("\x00", "\n"))
        check(query)
        yield query, _context_of(query, host)


def _check_only(
    text: str,
    query: s.QueryUnit,
    elements: int | None = None,
    items: int = 0,
    counts: Mapping[str, int | None] = MappingProxyType({}),
    sources: int = 0,
) -> None:
    """Raise if the query has more parts than expected, because the fragment has further clauses."""
    assert query.where is not None
    parts: list[tuple[int, int | None]] = [(len(query.sources), sources)]
    if elements is not None:
        parts.append((len(query.where.elements), elements))
    if isinstance(query.form, s.SelectForm):
        parts.append((len(query.form.select.items), items))
    for name in query.modifiers.field_names:
        value = getattr(query.modifiers, name)
        if name != "span":
            count = len(value) if isinstance(value, tuple) else value is not None
            parts.append((count, counts.get(name, 0)))
    if query.values is not None or any(n is not None and count != n for count, n in parts):
        raise QueryError(
            f"unexpected clauses in {text.strip()!r}",
            hint="add each further clause with its own method",
        )
    for node in query.where.walk():
        if isinstance(node, s.GroupPattern) and node.window is not None:
            raise QueryError(
                "unsupported window inside a group",
                node.window.span,
                hint="write access(..).window(..).match(..), or access(..).match(..).window(..)",
            )


def _context_of(query: s.QueryUnit, host: Host) -> Context:
    """Return a context in which hidden variables are numbered after those of the plan."""
    context = Context(_dialect(host.plan), Names(query.declarations, ""), 0)
    for kind, count in count_hidden(host.plan).items():
        for _ in range(count):
            context.site() if kind is PlanKind.ROW else context.fresh(kind)
    return context


def _binding_clause(host: Host) -> str:
    """Return a clause that binds the variables of the host's plan, for the checks of scope."""
    return f"VALUES ({' '.join(map(str, visible_variables(host.plan)))}) {{}}"


@contextmanager
def _errors_in(text: str, offset: int) -> Iterator[None]:
    """Make errors refer to the fragment, which starts at an offset of the query around it."""
    try:
        yield
    except TextError as error:
        if error.span is not None:
            start, end = (at - offset for at in error.span)
            inside = 0 <= start <= len(text) + 1
            error.span = Span(min(start, len(text)), min(end, len(text))) if inside else None
        if " at line " in error.hint:
            error.hint = ""
        if error.hint.startswith("put PREFIX"):
            error.hint = "pass the prefixes: prefixes={'ex': 'http://example.org/'}"
        if error.span is not None and error.span.start >= len(text.rstrip()):
            error.message = re.sub("^unexpected .*", "unexpected end", error.message)
        raise error.about(text) from None


def _scope(query: s.QueryUnit, host: Host, context: Context) -> ReadScope:
    """Return a scope whose only source is that of the host."""
    scope = ReadScope.of(Dataset())
    if host.source is not None:
        context.shared[scope.streams, scope.graphs, scope.background, None] = host.source
        assert merge_active_sources(scope, None, context) is host.source
        return scope
    for node in query.walk():
        if isinstance(node, s.TriplePath):
            raise QueryError(
                "missing source for this pattern",
                node.span,
                hint="build it as a plan: access(..).match(..) in a join or a semi_join",
            )
    return scope


def _dialect(plan: Plan) -> Dialect:
    events = any(isinstance(node, EventPair | Detect | Closure) for node in plan.walk())
    return EPSPARQL if events else STREAMING


def _check_no_timestamps(context: Context) -> None:
    if context.stamps.any:
        raise _timestamp_error()


def _timestamp_error() -> UnsupportedFeature:
    return UnsupportedFeature(
        "unsupported timestamp(): it needs a hidden column in the patterns of a whole query",
        hint="compile a query with it, and start from its logical plan",
    )


# -- hidden variables ------------------------------------------------------------------------------

_COUNTED = (PlanKind.BLANK, PlanKind.AGGREGATE, PlanKind.EXISTS, PlanKind.KEY)
_ROWS = (PlanKind.ROW, PlanKind.LEFT_ROW, PlanKind.RIGHT_ROW)
"""The kinds that are numbered by volatile calls, from 1."""


def count_hidden(plan: Plan) -> dict[PlanKind, int]:
    """Count the hidden variables of each kind in a plan, by the greatest number."""
    counts: dict[PlanKind, int] = {}
    for node in plan.walk():
        match node:
            case Hidden(PlanKind() as kind, number) if kind in _COUNTED:
                counts[kind] = max(counts.get(kind, 0), number + 1)
            case Volatile(site=site):
                counts[PlanKind.ROW] = max(counts.get(PlanKind.ROW, 0), site)
    return counts


def renumber_hidden(plan: Plan, others: Mapping[PlanKind, int]) -> Plan:
    """Renumber the hidden variables of a plan to follow those of other plans.

    >>> from streamsparql.algebra.shape import UNIT, Projection
    >>> plan = Projection((Hidden(PlanKind.BLANK, 0), Variable("x")), UNIT)
    >>> renumber_hidden(plan, {PlanKind.BLANK: 2}).variables
    (?.b2, ?x)
    """
    if not others or not count_hidden(plan).keys() & others.keys():
        return plan

    def renamed(node: Node, parts: list[Node]) -> Node:
        node = node.with_parts(tuple(parts)) if parts else node
        match node:
            case Hidden(PlanKind() as kind, number):
                counted = PlanKind.ROW if kind in _ROWS else kind
                return replace(node, number=number + others.get(counted, 0))
            case Volatile(site=site):
                return replace(node, site=site + others.get(PlanKind.ROW, 0))
        return node

    result = plan.fold(renamed)
    assert isinstance(result, Plan)
    return result
