"""Pieces of queries as text: patterns, conditions, windows, read by the translator.

A piece is put into a query around it, and parsed as that; an error points into the piece, as its
writer knows it. Hidden variables (SPARQL's blank nodes, EXISTS ..) count on from those of the plan
that a piece is for, as they do in a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from streamsparql.algebra.event import Closure, Detect, EventPair
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


class Place(NamedTuple):
    """Where a piece stands: the plan that it is for, and the source that patterns in it read."""

    plan: Plan
    source: Plan | None
    prefixes: Prefixes


# -- pieces of queries -----------------------------------------------------------------------------


def pattern(text: str, place: Place) -> Plan:
    """The plan of a group's content, as between the braces of WHERE, over the place's source."""
    with _read(f"SELECT * {{\x00{text}\n}}", text, place) as (query, context):
        assert query.where is not None
        _alone(text, query)
        plan = create_group_plan(query.where, _scope(query, place, context), context)
        _no_stamps(plan, context)
        return plan


def act(text: str, before: str, after: str, place: Place) -> Plan:
    """The place's plan after a clause that acts on it: a FILTER or a BIND."""
    whole = f"SELECT * {{ {_known(place)} {before}\x00{text}\n{after} }}"
    with _read(whole, text, place) as (query, context):
        assert query.where is not None
        _alone(text, query, elements=2)
        clause = query.where.elements[-1]
        made = create_plan(clause, _scope(query, place, context), context)
        assert isinstance(made, Act)
        plan = made.apply(place.plan)
        _no_stamps(plan, context)
        return plan


def conditions(text: str | None, place: Place) -> tuple[list[PreparedExpression], Context]:
    """The condition of an OPTIONAL, if there is one."""
    if text is None:
        return [], _context(
            s.QueryUnit((), None, None, s.AskForm(), (), None, s.Modifiers(), None), place
        )
    with _read(f"SELECT * {{ FILTER(\x00{text}\n) }}", text, place) as (query, context):
        assert query.where is not None
        _alone(text, query, elements=1)
        (clause,) = query.where.elements
        assert isinstance(clause, s.FilterClause)
        asked = exists_translator(_scope(query, place, context), context)
        found = prepare_expression(clause.condition, context, asked)
        if context.stamps.any:
            raise _stamped()
        return [found], context


def rows(
    text: str,
    before: str,
    after: str,
    place: Place,
    items: int = 0,
    **counts: int | None,
) -> Plan:
    """The place's plan with what a query has behind its WHERE: GROUP BY, ORDER BY, AGGREGATE.

    `{}` stands for the WHERE. The query has so many `items` in its SELECT, and so many of each
    kind of `s.Modifiers` (None: as many as there are).
    """

    before, after = (part.replace("{}", f"{{ {_known(place)} }}") for part in (before, after))
    with _read(f"{before}\x00{text}\n{after}", text, place) as (query, context):
        asked = exists_translator(_scope(query, place, context), context)
        assert isinstance(query.form, s.SelectForm)
        shown = [x for x in query.form.select.items if isinstance(x, s.SelectItem)]
        _alone(text, query, 1, items, counts)
        plan = modifiers.create_rows_plan(
            place.plan, shown, query.modifiers, query.values, context, asked
        )
        _no_stamps(plan, context)
        return plan


def table(text: str, prefixes: Prefixes) -> Plan:
    """The table of a VALUES."""
    from streamsparql.algebra.shape import UNIT

    with _read(f"SELECT * {{ VALUES\x00{text}\n}}", text, Place(UNIT, None, prefixes)) as read:
        query, context = read
        assert query.where is not None
        _alone(text, query, elements=1)
        (clause,) = query.where.elements
        assert isinstance(clause, s.InlineData)
        return modifiers.create_table(clause, context)


def template(text: str, place: Place) -> tuple[Any, ...]:
    """The triples of a CONSTRUCT."""
    with _read(f"CONSTRUCT {{\x00{text}\n}} {{}}", text, place) as (query, context):
        assert isinstance(query.form, s.ConstructForm)
        _alone(text, query, elements=0)
        return context.template(query.form.template)


def windowing(text: str, dialect: str | None, origin: int, name: str | None) -> Windowing:
    """What a window clause means: `RANGE 10 SLIDE 5`, or `[RANGE 10ms STEP 5ms]` in a dialect."""
    if text.lstrip().startswith("["):
        if dialect is None:
            raise QueryError(
                "a window in brackets means one thing in C-SPARQL, another in CQELS and RSP-QL",
                hint='say which: .window("[RANGE 10s STEP 1s]", dialect="csparql")',
            )
        before = "SELECT * FROM STREAM <s>"
    else:
        before = "SELECT * FROM STREAM <s> WINDOW"
    chosen = dialect_named(dialect or "streaming")
    with _about(text, len(before) + 1):
        query = parse(f"{before}\x00{text}\n{{}}".replace("\x00", "\n"))
        _alone(text, query, elements=0, sources=1)
        clause = query.sources[0].window
        assert clause is not None
        return chosen.windowing(clause, WindowSetting(name, origin))


def variables(text: str) -> tuple[Variable, ...]:
    """Variables in a row: `?x ?y`.

    >>> variables("?x ?y")
    (?x, ?y)
    """
    words = _text(text).replace(",", " ").split()
    for word in words:
        if not re.fullmatch(r"[?$]\w+", word):
            raise QueryError(f"{word!r} is no variable", hint="write variables as ?x ?y")
    return tuple(dict.fromkeys(Variable(word[1:]) for word in words))


def variable(text: str) -> Variable:
    """One variable."""
    found = variables(text)
    if len(found) != 1:
        raise QueryError(f"one variable is needed here, and {text!r} has {len(found)}")
    return found[0]


def _text(value: str) -> str:
    if not isinstance(value, str):
        raise QueryError(f"a text is needed here, not {value!r}", hint="such as '?x <p> ?y'")
    return value


def iri(name: str | IRI, prefixes: Prefixes) -> IRI:
    """An IRI that is written `<http://..>`, `http://..` or with a prefix that is known.

    >>> print(iri("<urn:s>", {}), iri("urn:s", {}), iri(":s", {"": "http://e/"}))
    <urn:s> <urn:s> <http://e/s>
    """
    if isinstance(name, IRI):
        return name
    if _text(name).startswith("<") and name.endswith(">"):
        return IRI(name[1:-1])
    prefix, colon, local = name.partition(":")
    return IRI(prefixes[prefix] + local) if colon and prefix in prefixes else IRI(name)


def name_of(name: str | IRI, prefixes: Prefixes) -> IRI | Variable:
    """What GRAPH is followed by: an IRI, or a variable."""
    if isinstance(name, str) and name.startswith("?"):
        return variables(name)[0]
    return iri(name, prefixes)


# -- reading ---------------------------------------------------------------------------------------


@contextmanager
def _read(whole: str, text: str, place: Place) -> Iterator[tuple[s.QueryUnit, Context]]:
    """The query around a piece, which stands behind its zero character, and a context for it."""
    _text(text)
    declared = "".join(f"PREFIX {name}: <{value}> " for name, value in place.prefixes.items())
    whole = declared + whole
    with _about(text, whole.index("\x00") + 1), recursion_headroom():
        query = parse(whole.replace("\x00", "\n"))
        check(query)
        yield query, _context(query, place)


def _alone(
    text: str,
    query: s.QueryUnit,
    elements: int | None = None,
    items: int = 0,
    counts: Mapping[str, int | None] = MappingProxyType({}),
    sources: int = 0,
) -> None:
    """Refuses a piece that is more than it should be: the query has more parts than expected."""
    assert query.where is not None
    parts: list[tuple[int, int | None]] = [(len(query.sources), sources)]
    if elements is not None:
        parts.append((len(query.where.elements), elements))
    if isinstance(query.form, s.SelectForm):
        parts.append((len(query.form.select.items), items))
    for name in query.modifiers.field_names:
        found = getattr(query.modifiers, name)
        if name != "span":
            parts.append(
                (len(found) if isinstance(found, tuple) else found is not None, counts.get(name, 0))
            )
    if query.values is not None or any(n is not None and found != n for found, n in parts):
        raise QueryError(
            f"there is more in {text.strip()!r} than belongs there",
            hint="what comes after it is a method of its own",
        )
    for node in query.where.walk():
        if isinstance(node, s.GroupPattern) and node.window is not None:
            raise QueryError(
                "a plan by hand has its windows where they stand",
                node.window.span,
                hint="access(..).window(..).match(..), or access(..).match(..).window(..)",
            )


def _context(query: s.QueryUnit, place: Place) -> Context:
    context = Context(_dialect(place.plan), Names(query.declarations, ""), 0)
    for kind, count in used(place.plan).items():
        for _ in range(count):
            context.site() if kind is PlanKind.ROW else context.fresh(kind)
    return context


def _known(place: Place) -> str:
    """A clause that binds what the place's plan binds, so that checks know it."""
    return f"VALUES ({' '.join(map(str, visible_variables(place.plan)))}) {{}}"


@contextmanager
def _about(text: str, offset: int) -> Iterator[None]:
    """Errors are about the piece, which starts at an offset of the query around it."""
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
            error.hint = (
                "prefixes are given beside the text: prefixes={'ex': 'http://example.org/'}"
            )
        if error.span is not None and error.span.start >= len(text.rstrip()):
            error.message = re.sub("^unexpected .*", "this ends too soon", error.message)
        raise error.about(text) from None


def _scope(query: s.QueryUnit, place: Place, context: Context) -> ReadScope:
    """A scope whose one source is that of the place."""
    scope = ReadScope.of(Dataset())
    if place.source is not None:
        context.shared[scope.streams, scope.graphs, scope.background, None] = place.source
        assert merge_active_sources(scope, None, context) is place.source
        return scope
    for node in query.walk():
        if isinstance(node, s.TriplePath):
            raise QueryError(
                "there is no source that this pattern could read",
                node.span,
                hint="give it as a plan of its own: access(..).match(..) in a join or a semi_join",
            )
    return scope


def _dialect(plan: Plan) -> Dialect:
    events = any(isinstance(node, EventPair | Detect | Closure) for node in plan.walk())
    return EPSPARQL if events else STREAMING


def _no_stamps(plan: Plan, context: Context) -> None:
    if context.stamps.any:
        raise _stamped()


def _stamped() -> UnsupportedFeature:
    return UnsupportedFeature(
        "timestamp() asks the patterns of a whole query for a hidden column",
        hint="compile a query with it, and look at its logical plan",
    )


# -- hidden variables ------------------------------------------------------------------------------

_COUNTED = (PlanKind.BLANK, PlanKind.AGGREGATE, PlanKind.EXISTS, PlanKind.KEY)
_ROWS = (PlanKind.ROW, PlanKind.LEFT_ROW, PlanKind.RIGHT_ROW)
"""These have the numbers of volatile calls, which count from 1."""


def used(plan: Plan) -> dict[PlanKind, int]:
    """Count the hidden variables of each kind in a plan, by the greatest number."""
    found: dict[PlanKind, int] = {}
    for node in plan.walk():
        match node:
            case Hidden(PlanKind() as kind, number) if kind in _COUNTED:
                found[kind] = max(found.get(kind, 0), number + 1)
            case Volatile(site=site):
                found[PlanKind.ROW] = max(found.get(PlanKind.ROW, 0), site)
    return found


def apart(plan: Plan, others: Mapping[PlanKind, int]) -> Plan:
    """Return the plan with other hidden variables than those of plans on its left.

    >>> from streamsparql.algebra.shape import UNIT, Projection
    >>> plan = Projection((Hidden(PlanKind.BLANK, 0), Variable("x")), UNIT)
    >>> apart(plan, {PlanKind.BLANK: 2}).variables
    (?.b2, ?x)
    """
    if not others or not used(plan).keys() & others.keys():
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

    made = plan.fold(renamed)
    assert isinstance(made, Plan)
    return made
