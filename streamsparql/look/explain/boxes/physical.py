"""The visitor of physical plans: from operators to boxes.

Operators are known here by what they say of themselves, so that explaining a query's other stages
does not load what runs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from streamsparql.algebra.plan import Plan
from streamsparql.algebra.terms import IRI
from streamsparql.display import Description
from streamsparql.look.explain.boxes.box import Box, drawn
from streamsparql.look.explain.boxes.phrases import meaning, with_prefixes
from streamsparql.look.explain.boxes.titles import title
from streamsparql.text.visible import visible
from streamsparql.translator.sparql_text import Writer


class Operator(Protocol):
    """What a picture shows of an operator; `streamsparql.physical` has them."""

    names: tuple[str, ...]
    node: Plan | None

    @property
    def family(self) -> str:
        """The family of nodes that it belongs to, which has a colour."""

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The operators that it reads."""

    @property
    def state(self) -> str:
        """What it remembers, in a line."""

    def facts(self) -> str:
        """What sets it apart from others of its kind."""

    def __hash__(self) -> int: ...


def physical_box(root: Operator, prefixes: Mapping[str, str] | None = None) -> Box:
    """The boxes of a physical plan; an operator that several read is drawn once.

    >>> import streamsparql
    >>> box = physical_box(streamsparql.compile("ASK {}").physical)
    >>> box.kind, box.children[0].kind
    ('Mark', 'Always')
    """
    write = with_prefixes(prefixes or {})
    return drawn(
        root,
        lambda operator: (("", below) for below in operator.inputs),
        lambda operator: operator_box(operator, write),
    )


def operator_box(operator: Operator, write: Writer) -> Box:
    """Return the box of an operator, with nothing below it."""
    note = "" if operator.state.startswith("none") else f"holds {operator.state}"
    return replace(described_box(description_of(operator, write)), note=note)


def described_box(description: Description) -> Box:
    """Return the box of an operator that is known by its description."""
    return Box(
        kind=description.kind,
        title=description.title,
        facts=description.facts,
        family=description.family,
        meaning=description.meaning,
    )


def description_of(operator: Operator, write: Writer) -> Description:
    """Return an operator in a reader's words."""
    kind = type(operator)
    return Description(
        kind.__name__,
        visible(_title(operator, write)),
        computed(operator),
        operator.family,
        meaning(kind),
        tuple(_facts(operator)),
    )


def _title(operator: Operator, write: Writer) -> str:
    """What the logical node says in the query's words, or else what the operator says itself."""
    known = "" if operator.node is None else title(operator.node, write)
    return known or _IRI.sub(lambda found: write.term(IRI(found[1])), operator.facts())


_IRI = re.compile(r"<([^<>\s\"]*)>")


def computed(operator: Operator) -> str:
    """The logical operator that it computes, where that is called otherwise; else nothing."""
    name = type(operator.node).__name__
    return "" if operator.node is None or name == type(operator).__name__ else name


def _facts(operator: Operator) -> Iterator[tuple[str, str]]:
    if computed(operator):
        yield "computes", computed(operator)
    yield "columns", visible(" ".join(operator.names)) or "none"
    if operator.state != "none":
        yield "state", operator.state
