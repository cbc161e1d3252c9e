"""Explaining a query: its stages, from the syntax tree to what is run, in six formats.

Each stage is one entry in `STAGES`, each format one in `FORMATS`. Between the two there is a single
kind of picture, the `Box` (box.py): a stage makes boxes, a format draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from streamsparql.algebra.fixpoint import Rewriting
from streamsparql.algebra.plan import Plan
from streamsparql.errors import StreamSparqlError
from streamsparql.look.explain.boxes.box import Box
from streamsparql.look.explain.boxes.logical import plan_box
from streamsparql.look.explain.boxes.physical import Operator, physical_box
from streamsparql.look.explain.boxes.spark_run import Described, spark_box
from streamsparql.look.explain.boxes.syntax_tree import syntax_box
from streamsparql.look.explain.explanation import Explanation
from streamsparql.look.explain.formats import dot, html, json, mermaid, plain_text, svg
from streamsparql.translator.translate import Translation


class Compiled(Protocol):
    """What of a query is explained; `streamsparql.Query` is one."""

    @property
    def translation(self) -> Translation:
        """All that the translator knows."""

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that it declares."""

    @property
    def rewriting(self) -> Rewriting:
        """What the rules made of its plan."""

    @property
    def physical(self) -> Operator:
        """What computes it."""


STAGES: dict[str, Callable[[Compiled], Box]] = {
    "syntax": lambda query: syntax_box(query.translation.syntax),
    "logical": lambda query: _plan(query, query.translation.plan),
    "optimized": lambda query: _plan(query, query.rewriting.plan),
    "physical": lambda query: physical_box(query.physical, query.prefixes),
    "spark": spark_box,
}
"""The stages, in the order in which they follow from each other."""

ALL: tuple[str, ...] = ("syntax", "logical", "optimized")
"""What "all" shows: the stages that need no engine, and so none of the libraries that it needs."""

FORMATS: dict[str, Callable[[Explanation], str]] = {
    "text": plain_text.render,
    "json": json.render,
    "dot": dot.render,
    "mermaid": mermaid.render,
    "svg": svg.render,
    "html": html.render,
}
"""What renders boxes."""


def _plan(query: Compiled, plan: Plan) -> Box:
    return plan_box(plan, query.prefixes)


def explain(
    query: Compiled,
    stage: str = "all",
    format: str = "text",  # noqa: A002 -- the public name
    color: bool = False,
    width: int = 100,
    run: Described | None = None,
) -> str:
    """A stage of a query, or all of them, in a format.

    The formats are text, json, dot (Graphviz), mermaid, svg and html. `color` and `width` are for
    text: whether to use a terminal's colours, and how wide the terminal is. Where all stages are
    shown, the optimized plan is only if it differs from the logical one. With a `run` over data the
    stage spark shows how that is cut.

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
    render = FORMATS[known(format, FORMATS, "format")]
    if run is not None and stage != "spark":
        raise StreamSparqlError(f"the stage {stage} looks at no data; spark does")
    stages = tuple(
        (name, STAGES[name](query) if run is None else spark_box(query, run)) for name in names
    )
    rules = query.rewriting.counts() if "optimized" in names else {}
    return render(Explanation(query.translation, stages, stage == "all", color, width, rules))


def shown_stages(query: Compiled, stage: str) -> tuple[str, ...]:
    """The stages that a name stands for; among all, the optimized plan only if it is another."""
    if stage != "all":
        return (known(stage, STAGES, "stage"),)
    same = query.rewriting.plan == query.translation.plan
    return tuple(name for name in ALL if not (same and name == "optimized"))


def known(name: str, table: Mapping[str, object], what: str) -> str:
    """A name that is in a table."""
    if name not in table:
        names = [*table, "all"] if what == "stage" else [*table]
        raise StreamSparqlError(f"there is no {what} {name!r}: there are {', '.join(names)}")
    return name
