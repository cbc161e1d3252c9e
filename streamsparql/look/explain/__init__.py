"""`explain`: the stages of a query, from the syntax tree to the Spark run, in six formats.

Each stage is an entry in `STAGE_BOXES`, each format one in `RENDERERS`. The `Box` (boxes/box.py)
connects them: a stage builds boxes, a format renders them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from streamsparql.algebra.fixpoint import Rewriting
from streamsparql.algebra.plan import Plan
from streamsparql.errors import StreamSparqlError
from streamsparql.look.explain.boxes.box import Box
from streamsparql.look.explain.boxes.logical import plan_box
from streamsparql.look.explain.boxes.physical import ExplainedOperator, physical_box
from streamsparql.look.explain.boxes.spark_run import CutDescription, spark_box
from streamsparql.look.explain.boxes.syntax_tree import syntax_box
from streamsparql.look.explain.explanation import Explanation
from streamsparql.look.explain.formats import dot, html, json, mermaid, plain_text, svg
from streamsparql.translator.translate import Translation


class ExplainedQuery(Protocol):
    """The parts of a query that are explained; `streamsparql.Query` has them."""

    @property
    def translation(self) -> Translation:
        """The result of the translator: the syntax tree, the plan and facts about the query."""

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that the query declares."""

    @property
    def rewriting(self) -> Rewriting:
        """The optimized plan, with the rules that were applied."""

    @property
    def physical(self) -> ExplainedOperator:
        """The root of the operators that compute it."""


STAGE_BOXES: dict[str, Callable[[ExplainedQuery], Box]] = {
    "syntax": lambda query: syntax_box(query.translation.syntax),
    "logical": lambda query: _plan(query, query.translation.plan),
    "optimized": lambda query: _plan(query, query.rewriting.plan),
    "physical": lambda query: physical_box(query.physical, query.prefixes),
    "spark": spark_box,
}
"""The stages, in the order of compilation, each with the function that builds its boxes."""

ALL_STAGES: tuple[str, ...] = ("syntax", "logical", "optimized")
"""The stages of "all": those that load neither the engine nor the libraries that it needs."""

RENDERERS: dict[str, Callable[[Explanation], str]] = {
    "text": plain_text.render_text,
    "json": json.render_json,
    "dot": dot.render_dot,
    "mermaid": mermaid.render_mermaid,
    "svg": svg.render_svg,
    "html": html.render_html,
}
"""The formats, each with its renderer."""


def _plan(query: ExplainedQuery, plan: Plan) -> Box:
    return plan_box(plan, query.prefixes)


def explain(
    query: ExplainedQuery,
    stage: str = "all",
    format: str = "text",  # noqa: A002 -- the public name
    color: bool = False,
    width: int = 100,
    run: CutDescription | None = None,
) -> str:
    """Return a stage of a query, or all that need no engine, in a format.

    The formats are text, json, dot (Graphviz), mermaid, svg and html. `color` and `width` apply to
    text: whether to write ANSI colours, and the width of the terminal. Among all stages, the
    optimized plan is included only if it differs from the logical one. With a `run` over data, the
    stage spark shows its cut into slabs.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?s { ?s a <T> OPTIONAL { ?s <p> ?o } }")
    >>> print(explain(query, "logical"))
    Projection  ?s
    LeftJoin
    ├─ TriplePatternMatching  ?s a <T>
    │  AccessGraph  default graph
    └─ TriplePatternMatching  ?s <p> ?o
       AccessGraph  default graph
    """
    names = shown_stages(query, stage)
    render = RENDERERS[known_name(format, RENDERERS, "format")]
    if run is not None and stage != "spark":
        raise StreamSparqlError(
            f"stage {stage!r} does not depend on a run; with a run, stage must be 'spark'"
        )
    stages = tuple(
        (name, STAGE_BOXES[name](query) if run is None else spark_box(query, run)) for name in names
    )
    rules = query.rewriting.counts() if "optimized" in names else {}
    whole = stage == "all"
    scope = _scope(names) if whole else ""
    return render(Explanation(query.translation, stages, whole, color, width, rules, scope=scope))


def _scope(names: tuple[str, ...]) -> str:
    """Return what "all" shows, and what else can be shown.

    >>> _scope(("syntax", "logical"))
    'syntax, logical (optimized is the same); on request: physical, spark'
    """
    same = "" if "optimized" in names else " (optimized is the same)"
    others = ", ".join(name for name in STAGE_BOXES if name not in ALL_STAGES)
    return f"{', '.join(names)}{same}; on request: {others}"


def shown_stages(query: ExplainedQuery, stage: str) -> tuple[str, ...]:
    """Return the stages that a name selects; "all" omits an optimized plan without changes."""
    if stage != "all":
        return (known_name(stage, STAGE_BOXES, "stage"),)
    unchanged = query.rewriting.plan == query.translation.plan
    return tuple(name for name in ALL_STAGES if not (unchanged and name == "optimized"))


def known_name(name: str, table: Mapping[str, object], kind: str) -> str:
    """Return the name of a stage or a format; raise an error if the table does not have it."""
    if name not in table:
        if kind == "format" and (advice := conversion(name)):
            raise StreamSparqlError(advice)
        names = [*table, "all"] if kind == "stage" else [*table]
        raise StreamSparqlError(f"unknown {kind} {name!r}; expected one of {', '.join(names)}")
    return name


def conversion(kind: str) -> str:
    """Return how to convert an SVG to another format of pictures; empty for any other format.

    >>> conversion("png")
    'no format png; write plan.svg, and convert it: rsvg-convert -f png -o plan.png plan.svg'
    >>> conversion("csv")
    ''
    """
    if kind not in ("png", "pdf", "ps", "eps"):
        return ""
    return (
        f"no format {kind}; write plan.svg, and convert it:"
        f" rsvg-convert -f {kind} -o plan.{kind} plan.svg"
    )
