"""A compiled query: the object that users hold."""

from __future__ import annotations

from functools import cached_property

from streamsparql.algebra.plan import Plan
from streamsparql.lints import Warning, lint
from streamsparql.translator.translate import Report, Translation, translate


def compile(  # noqa: A001 -- the public name, used as streamsparql.compile
    text: str,
    dialect: str = "auto",
    base: str | None = None,
    origin: int = 0,
    pedantic: bool = False,
) -> Query:
    """Compiles a query in any of the five dialects.

    `dialect` is streaming, csparql, cqels, epsparql or rspql; auto tells it by what only one of
    them writes. `base` resolves relative IRIs. `origin` is where the grids of windows start, in
    milliseconds. With `pedantic`, a construct of another dialect is an error.

    Raises `QuerySyntaxError` where the text is no query, `QueryError` where it means nothing, and
    `UnsupportedFeature` where it is about something that is not done here.

    >>> compile("SELECT ?x FROM STREAM <s> WINDOW RANGE 10 S SLIDE 1 S { ?x ?p ?o }").variables
    ('x',)
    """
    _expect(str, text=text, dialect=dialect, base=base or "")
    _expect(int, origin=origin)
    _expect(bool, pedantic=pedantic)
    return Query(translate(text, dialect, base or "", origin, pedantic))


def _expect(kind: type, **options: object) -> None:
    for name, value in options.items():
        if type(value) is not kind and (kind is not str or not isinstance(value, str)):
            raise TypeError(f"{name} is a {kind.__name__}, not {value!r:.40}")


class Query:
    """What a query's text means, to be read and explained."""

    def __init__(self, translation: Translation) -> None:
        self.translation = translation

    @property
    def text(self) -> str:
        """The text that was compiled."""
        return self.translation.text

    @property
    def dialect(self) -> str:
        """The dialect that the text was read in."""
        return self.translation.dialect.name

    @property
    def form(self) -> str:
        """select, construct, describe or ask."""
        return self.translation.form

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The columns of a SELECT, in order."""
        return self.translation.variables

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The IRIs of the streams that the query reads."""
        return tuple(iri.value for iri in self.translation.streams)

    @cached_property
    def graphs(self) -> tuple[str, ...]:
        """The IRIs of the static graphs that the query names."""
        return tuple(iri.value for iri in self.translation.graphs)

    @property
    def report(self) -> Report:
        """How the query says that its results are reported."""
        return self.translation.report

    def check(self) -> tuple[Warning, ...]:
        """What may not be as the writer wants it, though it compiles.

        >>> [warning.code for warning in compile("SELECT ?y { ?x <p> 1 }").check()]
        ['never-bound']
        """
        return lint(self.translation)

    @property
    def logical(self) -> Plan:
        """The logical plan, whose `at(t, inputs)` is the query's definition."""
        return self.translation.plan

    def explain(
        self,
        stage: str = "all",
        format: str = "text",  # noqa: A002 -- the public name
    ) -> str:
        """A stage of the query, or all of them, to read: how it was understood and what it means.

        Stages are syntax and logical; formats are text, json, dot, mermaid, svg and html.

        >>> print(compile("ASK { ?s a <T> }").explain("logical"))
        Ask
        TriplePatternMatching  ?s a <T>
        AccessGraph  default graph
        """
        from streamsparql.explain import explain

        return explain(self, stage, format)

    def _repr_html_(self) -> str:
        """How a notebook shows the query: as a picture of its logical plan, with the prefixes."""
        from streamsparql.explain import STAGES
        from streamsparql.explain.html import fragment

        return fragment(STAGES["logical"](self))


def _plan_as_html(plan: Plan) -> str:
    """How a notebook shows a plan."""
    from streamsparql.explain.html import fragment
    from streamsparql.explain.plans import plan_box

    return fragment(plan_box(plan))


# The algebra knows nothing of pictures, so a plan learns here how a notebook shows it.
Plan._repr_html_ = _plan_as_html  # type: ignore[attr-defined]
