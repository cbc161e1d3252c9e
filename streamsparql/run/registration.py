"""What a query asks of a session: its skeleton, its parameters and its reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from streamsparql import display
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.event import Detect
from streamsparql.algebra.graph import Construct
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.sharing import Skeleton, skeleton, with_parameters
from streamsparql.algebra.terms import BlankNode, Term
from streamsparql.compiled import CompiledQuery
from streamsparql.errors import UnsupportedFeature
from streamsparql.physical.batch import TRIPLE
from streamsparql.physical.hidden import ANSWER
from streamsparql.run.instances import subjects_of
from streamsparql.run.reports import Reporting, fed_reports, requested_reports
from streamsparql.run.shared_plan import Shape
from streamsparql.translator.parameters import parameters_of

if TYPE_CHECKING:
    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.time_arguments import Duration


_BINDING = ("never-bound", "never-true", "cartesian-product")
"""The warnings about variables without a value, which parameters have."""


class Registration(NamedTuple):
    """A query as it is registered."""

    query: CompiledQuery
    skeleton: Skeleton
    parameters: tuple[str, ...]
    """The parameters that its instances have values of, in the order of the text."""
    subjects: frozenset[str]
    """Those that stand where no literal may stand."""
    variables: tuple[str, ...]
    """The columns of a SELECT."""
    report: Reporting | None
    output: str | None
    """The stream that it feeds."""

    @classmethod
    def of(
        cls,
        query: CompiledQuery,
        name: str | None,
        report: RelationToStream | None,
        every: Duration | None,
        parameters: Collection[str] | None,
    ) -> Registration:
        """Return the registration of a query with these reports; see `Session.register`."""
        refuse_events_in_sessions(query.logical)
        names = parameters_of(query.translation.syntax, query.text, parameters)
        plan = with_parameters(query.logical, names) if names else query.logical
        output = output_of(query, name)
        if output is not None:
            plan = scoped(plan, output)
        wanted = requested_reports(query, report, every)
        variables = tuple(name for name in query.variables if name not in names)
        return cls(query, skeleton(plan), names, subjects_of(plan), variables, wanted, output)

    def warnings(self) -> list[Warning]:
        """Return the warnings about the query; its instances bind its parameters."""
        warnings = display.lint_query(self.query)
        ignored = _BINDING if self.parameters else ()
        return [warning for warning in warnings if getattr(warning, "code", None) not in ignored]

    def shape(self, graphs: tuple[str, ...]) -> Shape:
        """Return what its plan has in common with those of other queries.

        `graphs` are the static graphs that the query names and the session does not have.
        """
        columns = {
            "select": tuple(self.skeleton.variables[name] for name in self.variables),
            "ask": (ANSWER,),
        }.get(self.query.form, TRIPLE)
        return Shape(
            self.skeleton.plan,
            self.query.form,
            columns,
            self.query.streams,
            graphs,
            self.report,
            self.output,
            None if self.output is None else self.report or fed_reports(self.query),
            self.query.recipe.optimize,
        )

    @property
    def named(self) -> Mapping[str, str]:
        """The canonical names of its parameters."""
        return self.skeleton.named

    @property
    def constants(self) -> Mapping[str, Term]:
        """Its constants, by their canonical names."""
        return self.skeleton.constants


def refuse_events_in_sessions(plan: Plan) -> None:
    """Raise `UnsupportedFeature` for a plan about events, which a session does not run.

    >>> from streamsparql.algebra.shape import UNIT
    >>> refuse_events_in_sessions(Detect(UNIT))
    Traceback (most recent call last):
    streamsparql.errors.UnsupportedFeature: a session does not run the events of EP-SPARQL
    hint: run the query alone: streamsparql.compile(text).open(), or run(..)
    """
    if any(isinstance(node, Detect | Closure) for node in plan.walk()):
        raise UnsupportedFeature(
            "a session does not run the events of EP-SPARQL",
            hint="run the query alone: streamsparql.compile(text).open(), or run(..)",
        )


def output_of(query: CompiledQuery, name: str | None) -> str | None:
    """Return the stream that a query feeds when it is registered under a name.

    That is the stream that its text names (`REGISTER STREAM`, `REGISTER RSTREAM` and so on); else,
    unless it is a `REGISTER QUERY`, its own name. Only triples can be fed to a stream.
    """
    if query.form not in ("construct", "describe"):
        return None
    clause = query.translation.syntax.register
    if clause is None:
        return name
    return None if clause.kind == "QUERY" else query.report.name


def scoped(plan: Plan, output: str) -> Plan:
    """Let the blank nodes of a template be those of one query, whose output has a name.

    >>> from streamsparql.algebra.shape import UNIT
    >>> pattern = TriplePattern(BlankNode("b"), BlankNode("c"), BlankNode("b"))
    >>> str(scoped(Construct((pattern,), UNIT), "out").template[0].subject)
    '_:b out'
    """
    if not isinstance(plan, Construct):
        return plan
    places = {
        place: BlankNode(f"{place.label} {output}")
        for pattern in plan.template
        for place in pattern
        if isinstance(place, BlankNode)
    }
    if not places:
        return plan
    patterns = (TriplePattern(*(places.get(p, p) for p in each)) for each in plan.template)  # type: ignore[arg-type]
    return replace(plan, template=tuple(patterns))
