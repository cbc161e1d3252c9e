"""The visitor of physical plans: from operators to boxes.

Operators are known here by a protocol, so that explaining the other stages of a query does not
load the engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import IRI
from streamsparql.display import Description
from streamsparql.look.explain.boxes.box import Box, build_tree
from streamsparql.look.explain.boxes.phrases import (
    meaning,
    plan_writer,
    with_units,
    with_well_known,
)
from streamsparql.look.explain.boxes.titles import title
from streamsparql.text.visible import visible
from streamsparql.translator.sparql_text import Writer


class ExplainedOperator(Protocol):
    """The part of an operator that is explained; those of `streamsparql.physical` have it."""

    names: tuple[str, ...]
    node: Plan | None

    @property
    def family(self) -> str:
        """The family of nodes that it belongs to, which has a colour."""

    @property
    def shown_inputs(self) -> tuple[ExplainedOperator, ...]:
        """The operators that are drawn below it."""

    @property
    def state(self) -> str:
        """The state that it retains between steps, in one line; "none" for a stateless operator."""

    @property
    def reason(self) -> str:
        """Why it computes its node, if another operator could."""

    def facts(self) -> str:
        """Return the parameters as text, if the operator has no logical node."""

    def __hash__(self) -> int: ...


def physical_box(root: ExplainedOperator, prefixes: Mapping[str, str] | None = None) -> Box:
    """Return the boxes of a physical plan; an operator with several readers is drawn once.

    >>> import streamsparql
    >>> box = physical_box(streamsparql.compile("ASK {}").physical)
    >>> box.kind, box.children[0].kind
    ('Mark', 'Always')
    """
    write = plan_writer(with_well_known(prefixes or {}))
    return build_tree(
        root,
        lambda operator: (("", below) for below in operator.shown_inputs),
        lambda operator: operator_box(operator, write),
    )


def operator_box(operator: ExplainedOperator, write: Writer) -> Box:
    """Return the box of an operator, without its inputs."""
    note = "" if operator.state.startswith("none") else f"state: {operator.state}"
    return replace(described_box(description_of(operator, write)), note=note)


def described_box(description: Description) -> Box:
    """Return the box of a description of an operator."""
    return Box(
        kind=description.kind,
        title=description.title,
        facts=description.facts,
        family=description.family,
        meaning=description.meaning,
        reason=dict(description.facts).get(_REASON, ""),
    )


_REASON = "reason"


def description_of(operator: ExplainedOperator, write: Writer) -> Description:
    """Return the description of an operator: its class, parameters and meaning, for readers."""
    kind = type(operator)
    return Description(
        kind.__name__,
        visible(_title(operator, write)),
        logical_kind(operator),
        operator.family,
        meaning(kind),
        tuple(_facts(operator)),
    )


def _title(operator: ExplainedOperator, write: Writer) -> str:
    """Return the title of the logical node, else the operator's own parameters; and its bound."""
    text = "" if operator.node is None else title(operator.node, write)
    text = text or _IRI.sub(lambda match: write.term(IRI(match[1])), operator.facts())
    within: int = getattr(operator, "within", INFINITY)
    bound = f"within {with_units(within)}" if within < INFINITY else ""
    return ", ".join(part for part in (text, bound) if part)


_IRI = re.compile(r"<([^<>\s\"]*)>")


def logical_kind(operator: ExplainedOperator) -> str:
    """Return the name of the logical node, or an empty string if the operator has the same name."""
    name = type(operator.node).__name__
    return "" if operator.node is None or name == type(operator).__name__ else name


def _facts(operator: ExplainedOperator) -> Iterator[tuple[str, str]]:
    if logical_kind(operator):
        yield "computes", logical_kind(operator)
    yield "columns", visible(" ".join(operator.names)) or "none"
    if operator.state != "none":
        yield "state", operator.state
    if operator.reason:
        yield _REASON, operator.reason
