"""From a query's text to its logical plan: parse, tell the dialect, check, translate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from streamsparql.algebra.access import AccessGraph, AccessStream
from streamsparql.algebra.event import Detect
from streamsparql.algebra.graph import Ask, Construct, Describe, Graph
from streamsparql.algebra.inputs import DEFAULT_STREAM
from streamsparql.algebra.partition import all_jumps
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import visible_variables
from streamsparql.algebra.shape import UNIT
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.trampoline import Steps, run
from streamsparql.errors import QueryError, Span, UnsupportedFeature
from streamsparql.translator import modifiers
from streamsparql.translator import syntax as s
from streamsparql.translator.checks import check
from streamsparql.translator.context import Context
from streamsparql.translator.create_plan import create_plan, exists
from streamsparql.translator.dataset import Dataset, ReadScope, access, dataset
from streamsparql.translator.dialects import (
    DIALECTS,
    Dialect,
    Foreign,
    detect,
    dialect_named,
    foreign,
)
from streamsparql.translator.events import closed_under_rule
from streamsparql.translator.names import Names
from streamsparql.translator.parse import parse
from streamsparql.translator.timestamps import check_stamps, find_stamps

ReportKind = Literal["rstream", "istream", "dstream"]
_OPERATORS: dict[str, ReportKind] = {
    "RSTREAM": "rstream",
    "ISTREAM": "istream",
    "DSTREAM": "dstream",
}
FormName = Literal["select", "construct", "describe", "ask"]


@dataclass(frozen=True)
class Report:
    """How a query says that its results are reported (SEMANTICS.md section 6).

    `kind` is None for rows with their validity. `every` is the period in milliseconds; None means
    at every change. The instants are `origin`, `origin + every` and so on. `name` is what the query
    is registered as.
    """

    kind: ReportKind | None
    every: int | None
    name: str | None = None
    origin: int = 0


@dataclass(frozen=True)
class Translation:
    """All that the translator knows about a query."""

    text: str
    syntax: s.Query
    dialect: Dialect
    form: FormName
    plan: Plan
    dataset: Dataset
    report: Report
    names: Names
    foreign: tuple[Foreign, ...]
    idle: tuple[s.WindowClause, ...]
    spans: dict[int, tuple[Plan, Span]]

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the columns of a SELECT, in order; none for the other forms."""
        if self.form != "select":
            return ()
        return tuple(variable.name for variable in visible_variables(self.plan))

    @property
    def streams(self) -> tuple[IRI, ...]:
        """The streams that the plan reads or the query names, in the order of the text."""
        named = [name for name in self.dataset.streams if name != DEFAULT_STREAM]
        read = [node.stream for node in self.plan.walk() if isinstance(node, AccessStream)]
        return tuple(dict.fromkeys([*named, *read]))

    @property
    def graphs(self) -> tuple[IRI, ...]:
        """The static graphs that the query names."""
        return tuple(dict.fromkeys(_graphs(self)))


def _graphs(translation: Translation) -> Iterator[IRI]:
    yield from translation.dataset.static
    yield from translation.dataset.graphs or ()
    for node in translation.plan.walk():
        if isinstance(node, AccessGraph):
            yield from (name for name in node.graphs if isinstance(name, IRI))
        if isinstance(node, Graph) and isinstance(node.name, IRI):
            yield node.name


def translate(
    text: str, dialect: str = "auto", base: str = "", origin: int = 0, pedantic: bool = False
) -> Translation:
    """Translates a query. Errors know the text that they are about.

    >>> translate("SELECT ?s { ?s ?p ?o }").variables
    ('s',)
    """
    try:
        return _translate(text, dialect, base, origin, pedantic)
    except (QueryError, UnsupportedFeature) as error:
        raise error.about(text) from None


def _translate(text: str, dialect: str, base: str, origin: int, pedantic: bool) -> Translation:
    query = parse(text)
    names = Names(query.declarations, base)
    auto = dialect.lower() == "auto"
    chosen = DIALECTS[detect(query, names)] if auto else dialect_named(dialect)
    strangers = tuple(foreign(query, names, chosen))
    if pedantic and strangers:
        raise _stranger(strangers[0], chosen)
    check(query)
    context = Context(chosen, names, origin)
    asked = find_stamps(query, context)
    offered = dataset(query.sources, context)
    plan = run(_create_query_plan(query, ReadScope.of(offered), context))
    check_stamps(plan, query, asked, context)
    return Translation(
        text=text,
        syntax=query,
        dialect=chosen,
        form=_form_name(query.form),
        plan=plan,
        dataset=offered,
        report=_report(query, plan, context),
        names=names,
        foreign=strangers,
        idle=tuple(context.idle.values()),
        spans=context.spans,
    )


def _create_query_plan(query: s.Query, scope: ReadScope, context: Context) -> Steps[Plan]:
    """The plan of a whole query: its WHERE, its modifiers, its form."""
    where: Plan = UNIT
    if query.where is not None:
        where = yield create_plan(query.where, scope, context)
    plan = where
    if context.dialect.content == "events":
        if isinstance(query.form, s.ConstructForm):
            made = context.template(query.form.template)
            plan = closed_under_rule(where, made, scope.streams[0].name, query, context)
        plan = Detect(plan)
        if query.where is not None:
            context.came_from(plan, query.where)
    asked = exists(scope, context)
    if isinstance(query.form, s.SelectForm):
        select = query.form.select
        return (yield modifiers.select(plan, select, query.modifiers, query.values, context, asked))
    plan = yield modifiers.rows(plan, [], query.modifiers, query.values, context, asked)
    plan = modifiers.sliced(plan, query.modifiers)
    match query.form:
        case s.ConstructForm(template):
            return Construct(context.template(template), plan)
        case s.DescribeForm(targets):
            resources = tuple(
                Variable(x.name) if isinstance(x, s.Var) else context.names.iri(x) for x in targets
            )
            data = access(scope, None, context)
            return Describe(resources or visible_variables(plan), plan, data)
    return Ask(plan)


def _form_name(form: s.Form) -> FormName:
    match form:
        case s.SelectForm():
            return "select"
        case s.ConstructForm():
            return "construct"
        case s.DescribeForm():
            return "describe"
    return "ask"


def _report(query: s.Query, plan: Plan, context: Context) -> Report:
    kind = _OPERATORS[query.operator] if query.operator else context.dialect.report
    register = query.register
    grid = None if context.dialect.name == "cqels" else all_jumps(plan)
    every, origin = grid or (None, 0)
    if register is None:
        return Report(kind, every, origin=origin)
    if register.every is not None:
        kind, every = kind or "rstream", register.every.milliseconds
        if every == 0:
            raise QueryError("a query cannot be computed every 0 ms", register.every.span)
        origin = context.origin % every
    name = register.name
    return Report(
        kind, every, context.names.iri(name).value if isinstance(name, s.Iri) else name, origin
    )


def _stranger(stranger: Foreign, dialect: Dialect) -> QueryError:
    owners = " and ".join(DIALECTS[name].title for name in stranger.dialects)
    return QueryError(
        f"{stranger.construct} belongs to {owners}, and this query is {dialect.title}",
        stranger.span,
        hint="without pedantic it is accepted",
    )
