"""From a query's text to its logical plan: parse, detect the dialect, check, translate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from streamsparql.algebra.access import AccessGraph, AccessStream
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.event import Detect
from streamsparql.algebra.graph import Ask, Construct, Describe, Graph
from streamsparql.algebra.inputs import DEFAULT_STREAM
from streamsparql.algebra.partition import all_jumps
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import visible_variables
from streamsparql.algebra.shape import UNIT
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.traversal import recursion_headroom
from streamsparql.errors import QueryError, Span, StreamSparqlError, TextError, UnsupportedFeature
from streamsparql.translator import modifiers
from streamsparql.translator import syntax as s
from streamsparql.translator.checks import check
from streamsparql.translator.context import Context
from streamsparql.translator.create_plan import create_group_plan, exists_translator
from streamsparql.translator.dataset import (
    Dataset,
    ReadScope,
    create_dataset,
    merge_active_sources,
)
from streamsparql.translator.dialects import (
    Dialect,
    ForeignConstruct,
    detect,
    dialect_named,
    foreign_constructs,
)
from streamsparql.translator.names import Names
from streamsparql.translator.parse import parse
from streamsparql.translator.rules import (
    ConstructRule,
    check_modifiers,
    create_closure,
    split_rules,
)
from streamsparql.translator.timestamps import check_stamps, request_stamps

ReportKind = Literal["rstream", "istream", "dstream"]
_OPERATORS: dict[str, ReportKind] = {
    "RSTREAM": "rstream",
    "ISTREAM": "istream",
    "DSTREAM": "dstream",
}
FormName = Literal["select", "construct", "describe", "ask"]
ENTAILMENTS = ("rdfs",)
"""The kinds of entailment, besides none."""


@dataclass(frozen=True)
class ReportPolicy:
    """The report that a query declares: its kind and its instants (SEMANTICS.md section 6).

    `kind` is None for rows with their validity. `every` is the period in milliseconds; None means
    at every change. The instants are `origin`, `origin + every` and so on. `name` is the name under
    which the query is registered.
    """

    kind: ReportKind | None
    every: int | None
    name: str | None = None
    origin: int = 0


@dataclass(frozen=True)
class Translation:
    """The logical plan of a query, with the other information in its text."""

    text: str
    syntax: s.QueryUnit
    dialect: Dialect
    form: FormName
    plan: Plan
    dataset: Dataset
    report: ReportPolicy
    names: Names
    entailment: str | None
    rule: ConstructRule | None
    """The rule that a CONSTRUCT of EP-SPARQL is."""
    rules: tuple[Translation, ...]
    """The other rules."""
    foreign: tuple[ForeignConstruct, ...]
    unused_windows: tuple[s.WindowClause, ...]
    spans: dict[int, tuple[Plan, Span]]

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the columns of a SELECT, in order; empty for the other forms."""
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
    text: str,
    dialect: str = "auto",
    base: str = "",
    origin: int = 0,
    pedantic: bool = False,
    entailment: str | None = None,
    rules: Sequence[str] = (),
) -> Translation:
    """Translate a query. Errors show the place in its text, or in that of one of the `rules`.

    >>> translate("SELECT ?s { ?s ?p ?o }").variables
    ('s',)
    """
    try:
        with recursion_headroom():
            of_rules = _translate_rules(rules, base, pedantic, entailment)
            return _translate(text, dialect, base, origin, pedantic, entailment, of_rules)
    except (QueryError, UnsupportedFeature) as error:
        raise (error if error.text else error.about(text)) from None


def _translate_rules(
    texts: Sequence[str], base: str, pedantic: bool, entailment: str | None
) -> tuple[Translation, ...]:
    rules: list[Translation] = []
    for text in [rule for each in texts for rule in split_rules(each)]:
        name = f"rule {len(rules) + 1}"
        try:
            rule = _translate(text, "epsparql", base, 0, pedantic, entailment, name=name)
            if rule.rule is None:
                raise QueryError(
                    f"a rule is a CONSTRUCT, not a {rule.form.upper()}", rule.syntax.form.span
                )
            check_modifiers(rule.syntax)
        except TextError as error:
            error.message = f"{name}: {error.message}"
            raise error.about(text) from None
        rules.append(rule)
    return tuple(rules)


def _translate(
    text: str,
    dialect: str,
    base: str,
    origin: int,
    pedantic: bool,
    entailment: str | None,
    rules: tuple[Translation, ...] = (),
    name: str = "the query",
) -> Translation:
    if entailment not in (None, *ENTAILMENTS):
        raise StreamSparqlError(
            f"unknown entailment {entailment!r}; expected {' or '.join(ENTAILMENTS)}, or None"
        )
    query = parse(text)
    names = Names(query.declarations, base)
    auto = dialect.lower() == "auto"
    if rules and auto:
        chosen = dialect_named("epsparql")
    else:
        chosen = detect(query, names) if auto else dialect_named(dialect)
    foreign = tuple(foreign_constructs(query, names, chosen))
    if pedantic and foreign:
        raise _foreign_error(foreign[0], chosen)
    check(query)
    if rules and not chosen.has_events:
        raise QueryError(f"rules derive events, but {chosen.title} has none", query.form.span)
    context = Context(chosen, names, origin, entailment is not None)
    requested = request_stamps(query, context)
    dataset = create_dataset(query.sources, context)
    scope = ReadScope.of(dataset)
    where: Plan = UNIT
    if query.where is not None:
        where = create_group_plan(query.where, scope, context)
    rule = None
    if chosen.has_events:
        if isinstance(query.form, s.ConstructForm):
            construct = Construct(context.template(query.form.template), where)
            stream, spans = scope.streams[0].name, context.spans
            rule = ConstructRule(name, text, construct, stream, query.form.span, spans)
        all_rules = [*(other.rule for other in rules if other.rule), *([rule] if rule else [])]
        where = _create_events_plan(where, query, scope, context, all_rules)
    plan = _create_query_plan(where, query, scope, context)
    check_stamps(plan, query, requested, context)
    return Translation(
        text=text,
        syntax=query,
        dialect=chosen,
        form=_form_name(query.form),
        plan=plan,
        dataset=dataset,
        report=_report_policy(query, plan, context),
        names=names,
        entailment=entailment,
        rule=rule,
        rules=rules,
        foreign=foreign,
        unused_windows=tuple(context.unused_windows.values()),
        spans=context.spans,
    )


def _create_events_plan(
    where: Plan,
    query: s.QueryUnit,
    scope: ReadScope,
    context: Context,
    rules: Sequence[ConstructRule],
) -> Plan:
    """Return the events that WHERE detects, in the stream and in what rules derive from it."""
    plan = create_closure(where, scope.streams[0].name, rules)
    if isinstance(plan, Closure):
        if isinstance(query.form, s.ConstructForm):
            check_modifiers(query)
        if isinstance(query.form, s.DescribeForm):
            raise UnsupportedFeature(
                "DESCRIBE does not show the triples that rules derive",
                query.form.span,
                hint="write CONSTRUCT with a pattern of the triples to show",
            )
    plan = Detect(plan)
    if query.where is not None:
        context.locate(plan, query.where)
    return plan


def _create_query_plan(plan: Plan, query: s.QueryUnit, scope: ReadScope, context: Context) -> Plan:
    """Return the plan of a whole query: its modifiers and its form, above its WHERE."""
    translator = exists_translator(scope, context)
    after = query.modifiers
    if isinstance(query.form, s.SelectForm):
        select = query.form.select
        return modifiers.create_select_plan(plan, select, after, query.values, context, translator)
    plan = modifiers.create_rows_plan(plan, [], after, query.values, context, translator)
    plan = modifiers.apply_slice(plan, after)
    match query.form:
        case s.ConstructForm(template):
            return Construct(context.template(template), plan)
        case s.DescribeForm(targets):
            resources = tuple(
                Variable(x.name) if isinstance(x, s.Var) else context.names.iri(x) for x in targets
            )
            data = merge_active_sources(scope, None, context)
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


def _report_policy(query: s.QueryUnit, plan: Plan, context: Context) -> ReportPolicy:
    kind = _OPERATORS[query.operator] if query.operator else context.dialect.report
    register = query.register
    grid = None if context.dialect.reports_every_change else all_jumps(plan)
    every, origin = grid or (None, 0)
    if register is None:
        return ReportPolicy(kind, every, origin=origin)
    if register.every is not None:
        kind, every = kind or "rstream", register.every.milliseconds
        if every == 0:
            raise QueryError("COMPUTED EVERY must be longer than 0 ms", register.every.span)
        origin = context.origin % every
    name = register.name
    return ReportPolicy(
        kind, every, context.names.iri(name).value if isinstance(name, s.Iri) else name, origin
    )


def _foreign_error(foreign: ForeignConstruct, dialect: Dialect) -> QueryError:
    owners = " and ".join(owner.title for owner in foreign.dialects)
    return QueryError(
        f"{foreign.construct} belongs to {owners}, but this query is {dialect.title}",
        foreign.span,
        hint="compile it without pedantic",
    )
