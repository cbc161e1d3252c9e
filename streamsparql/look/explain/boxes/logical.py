"""The visitor of logical plans: from operators to boxes.

A plan is a value: operators with equal fields are equal, wherever they are. So equal subplans are
drawn once, and equal plans have equal pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TypeGuard

from streamsparql.algebra.closure import Closure
from streamsparql.algebra.entailment import Entailed, Entailing
from streamsparql.algebra.event import SeqWithout
from streamsparql.algebra.expressions import Call, Volatile
from streamsparql.algebra.filter import AntiJoin, Mark, SemiJoin
from streamsparql.algebra.graph import Describe
from streamsparql.algebra.join import LeftJoin
from streamsparql.algebra.node import Node
from streamsparql.algebra.path import PathExpression
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression
from streamsparql.look.explain.boxes.box import Box, build_tree
from streamsparql.look.explain.boxes.phrases import (
    definition,
    meaning,
    plan_writer,
    with_well_known,
)
from streamsparql.look.explain.boxes.titles import title
from streamsparql.text.visible import visible
from streamsparql.translator.sparql_text import Writer

_EXACT = Writer()


def plan_box(plan: Plan, prefixes: Mapping[str, str] | None = None) -> Box:
    """Return the boxes of a plan; titles shorten IRIs with the prefixes.

    >>> from streamsparql.algebra.shape import UNIT, Distinct
    >>> box = plan_box(Distinct(UNIT))
    >>> box.kind, [(child.kind, child.title) for child in box.children]
    ('Distinct', [('Table', 'no variables: ()')])
    """
    write = plan_writer(with_well_known(prefixes or {}))

    def box(node: Plan) -> Box:
        kind = type(node)
        return Box(
            kind=kind.__name__,
            title=visible(title(node, write)),
            facts=tuple(_facts(node)),
            family=node.family,
            meaning=meaning(kind),
            definition=definition(kind),
        )

    return build_tree(plan, lambda node: _inputs(node, write), box)


def _inputs(plan: Plan, write: Writer) -> list[tuple[str, Plan]]:
    """Return the inputs, with a role where their order does not show it."""
    match plan:
        case LeftJoin(left, right, _, marks):
            patterns = ((write.variable(variable), pattern) for variable, pattern in marks)
            return [("", left), ("", right), *patterns]
        case Mark(variable, rows, pattern):
            return [("", rows), (write.variable(variable), pattern)]
        case SemiJoin(rows, pattern) | AntiJoin(rows, pattern):
            return [("", rows), ("pattern", pattern)]
        case Entailed(triples, schema) | Entailing(_, triples, schema):
            return [("", triples), ("schema", schema)]
        case Describe(_, rows, data):
            return [("", rows), ("data", data)]
        case SeqWithout(left, right, absent):
            return [("", left), ("", right), ("without", absent)]
        case Closure(_, rules, rows):
            return [*(("rule", rule) for rule in rules), ("", rows)]
    return [("", below) for below in plan.inputs]


def _facts(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the parameters that differ from their default, by name."""
    for field in fields(plan):
        value = getattr(plan, field.name)
        if value != field.default and not _is_input(value):
            text = _listed(value) if type(value) is tuple else exact_text(value)
            yield field.name, visible(text)
    inside = [node for expression in plan.expressions for node in expression.walk()]
    calls = [
        f"{node.function} {exact_text((node.site, *node.columns))}"
        for node in inside
        if isinstance(node, Volatile)
    ]
    if calls:
        yield "volatile", ", ".join(calls)
    bases = [exact_text(node.args[1]) for node in inside if _has_base(node)]
    if bases:
        yield "base", ", ".join(bases)


def _has_base(node: Node) -> TypeGuard[Call]:
    """Return whether a call of IRI() has the query's BASE as argument, which titles leave out."""
    return isinstance(node, Call) and node.function == "IRI" and len(node.args) > 1


def _is_input(value: object) -> bool:
    """Return whether a field contains inputs, which are not facts."""
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(item, Plan) for item in value)
    return isinstance(value, Plan)


def exact_text(value: object) -> str:
    """Return the exact text of a parameter: whole IRIs, hidden variables by their names.

    >>> from streamsparql.algebra.terms import IRI
    >>> exact_text(((IRI("a"), None), True, 5))
    '((<a>, none), true, 5)'
    """
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case Expression():
            return _EXACT.expression(value)
        case PathExpression():
            return _EXACT.path(value)
        case tuple():
            return f"({_listed(value)})"
    return str(value)


def _listed(values: tuple[object, ...]) -> str:
    return ", ".join(exact_text(value) for value in values if not isinstance(value, Plan))
