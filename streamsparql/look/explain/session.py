"""The explanation of a session: its plans as one picture, each with the queries that read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamsparql.look.explain import RENDERERS, known_name
from streamsparql.look.explain.boxes.box import Box, Measures, build_tree
from streamsparql.look.explain.boxes.phrases import plan_writer
from streamsparql.look.explain.boxes.physical import ExplainedOperator, operator_box
from streamsparql.look.explain.explanation import Explanation

_NAMES = 3
"""The number of queries that a plan names; it counts the others."""


@dataclass(frozen=True, eq=False)
class ExplainedPlan:
    """A plan of a session, and what reads it."""

    names: tuple[str, ...]
    """The names of its queries."""
    output: str | None
    """The stream that it feeds."""
    root: ExplainedOperator
    fed: ExplainedOperator | None
    """The operator of that stream."""

    @property
    def title(self) -> str:
        """The queries that read it.

        >>> ExplainedPlan(tuple("abcde"), None, None, None).title
        'a, b, c and 2 more'
        """
        more = len(self.names) - _NAMES
        return ", ".join(self.names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def explain_session(
    plans: Sequence[ExplainedPlan],
    queries: Iterable[tuple[str, str]],
    format: str = "text",  # noqa: A002 -- the public name
    color: bool = False,
    width: int = 100,
    counts: Mapping[Any, tuple[tuple[int, ...], int, int]] | None = None,
) -> str:
    """Return the plans of a session in a format, as `explain` does for one query.

    `counts` are the rows in, the rows out and the state of operators, which are shown.
    """
    render = RENDERERS[known_name(format, RENDERERS, "format")]
    stages = (("session", session_box(plans, counts)),)
    return render(Explanation(None, stages, False, color, width, queries=tuple(queries)))


def session_box(
    plans: Sequence[ExplainedPlan],
    counts: Mapping[Any, tuple[tuple[int, ...], int, int]] | None = None,
) -> Box:
    """Return the boxes of all plans; an operator that several of them read is drawn once."""
    write, top = plan_writer({}), object()

    def inputs(node: object) -> Iterator[tuple[str, object]]:
        if node is top:
            for plan in plans:
                yield "", plan
        elif isinstance(node, ExplainedPlan):
            yield "", node.root
            if node.fed is not None:
                yield f"feeds <{node.output}>", node.fed
        else:
            yield from (("", below) for below in node.inputs)  # type: ignore[attr-defined]

    def box(node: object) -> Box:
        if node is top:
            queries = _counted(sum(len(p.names) for p in plans), "query", "queries")
            return Box("Session", f"{queries}, {_counted(len(plans), 'plan', 'plans')}")
        if isinstance(node, ExplainedPlan):
            meaning = "The queries that read a plan."
            return Box("Queries", node.title, (("queries", " ".join(node.names)),), meaning=meaning)
        drawn = operator_box(node, write)  # type: ignore[arg-type]
        if counts is None or node not in counts:
            return drawn
        rows_in, rows_out, state = counts[node]
        return replace(drawn, measures=Measures(rows_in, rows_out, None, state=state))

    return build_tree(top, inputs, box)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
