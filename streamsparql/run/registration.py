"""What a query asks of a session: its skeleton, its parameters and its reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from streamsparql.algebra.sharing import Skeleton, skeleton, with_parameters
from streamsparql.algebra.terms import Term
from streamsparql.compiled import CompiledQuery
from streamsparql.physical.batch import TRIPLE
from streamsparql.physical.hidden import ANSWER
from streamsparql.run.instances import subjects_of
from streamsparql.run.reports import Reporting, requested_reports
from streamsparql.run.shared_plan import Shape
from streamsparql.translator.parameters import parameters_of


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

    @classmethod
    def of(
        cls,
        query: CompiledQuery,
        report: str | None,
        every: int | None,
        parameters: Collection[str] | None,
    ) -> Registration:
        """Return the registration of a query with these reports; see `Session.register`."""
        names = parameters_of(query.translation.syntax, query.text, parameters)
        plan = with_parameters(query.logical, names) if names else query.logical
        wanted = requested_reports(query, report, every)
        variables = tuple(name for name in query.variables if name not in names)
        return cls(query, skeleton(plan), names, subjects_of(plan), variables, wanted)

    def shape(self, graphs: tuple[str, ...], output: str | None = None) -> Shape:
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
            output,
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
