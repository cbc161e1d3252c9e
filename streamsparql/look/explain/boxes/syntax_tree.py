"""The visitor of syntax trees: from what a query's text says to boxes.

Clauses are boxes; terms, expressions, paths and window clauses are text in them. One pass from the
leaves up makes of each node a `Piece`: its text, and the boxes that hang below that text, which are
the node itself where it is a clause, or the groups of the EXISTS in an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from streamsparql.algebra import node as algebra
from streamsparql.look.explain.boxes.box import Box
from streamsparql.look.explain.boxes.clauses import written
from streamsparql.look.explain.boxes.phrases import meaning
from streamsparql.text.visible import visible
from streamsparql.translator import syntax as s

_FAMILIES: dict[type[s.SyntaxNode], str] = {
    s.QueryUnit: "shape",
    s.RegisterClause: "group",
    s.SelectForm: "shape",
    s.ConstructForm: "graph",
    s.DescribeForm: "graph",
    s.AskForm: "graph",
    s.FromClause: "access",
    s.GroupPattern: "group",
    s.TriplesBlock: "match",
    s.TriplePath: "match",
    s.UnionPattern: "join",
    s.EventPattern: "event",
    s.OptionalPattern: "join",
    s.MinusPattern: "join",
    s.GraphPattern: "access",
    s.ServicePattern: "access",
    s.StreamPattern: "window",
    s.WindowPattern: "window",
    s.FilterClause: "filter",
    s.BindClause: "shape",
    s.InlineData: "shape",
    s.SubSelect: "shape",
    s.Modifiers: "shape",
}
"""The clauses, which have boxes, by what they lead to."""


class Piece(NamedTuple):
    """What a node is in its parent's box: text, and boxes below it."""

    text: str
    boxes: tuple[Box, ...] = ()


def syntax_box(query: s.QueryUnit) -> Box:
    """The boxes of a syntax tree.

    >>> from streamsparql.translator.parse import parse
    >>> box = syntax_box(parse("ASK { ?s a <T> }"))
    >>> [(child.kind, child.role) for child in box.children]
    [('AskForm', ''), ('GroupPattern', '')]
    """
    piece: Piece = query.fold(_piece)
    return piece.boxes[0]


def _piece(node: algebra.Node, parts: list[Piece]) -> Piece:
    assert isinstance(node, s.SyntaxNode)
    names = [name for name in node.field_names if name != "span"]
    rest = iter(parts)
    fields = {name: _filled(getattr(node, name), rest) for name in names}
    below = tuple(box for part in parts for box in part.boxes)
    if isinstance(node, s.Modifiers) and node == s.Modifiers():
        return Piece("")
    if isinstance(node, s.ExistsCall):
        return Piece("EXISTS {..}", (replace(below[0], role="EXISTS"),))
    text = written(node, fields)
    if type(node) not in _FAMILIES:
        return Piece(text, below)
    kind = type(node)
    box = Box(
        kind=kind.__name__,
        title=visible(text),
        facts=tuple(_facts(fields)),
        children=below,
        family=_FAMILIES[kind],
        meaning=meaning(kind),
    )
    return Piece("", (box,))


def _filled(value: Any, parts: Iterator[Piece]) -> Any:
    """The same value around the texts of its nodes."""
    if isinstance(value, algebra.Node):
        return next(parts).text
    if isinstance(value, tuple):
        return tuple(_filled(item, parts) for item in value)
    return value


def _facts(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields that say something beside the boxes below."""
    for name, value in fields.items():
        if isinstance(value, tuple):
            value = ", ".join(filter(None, (_row(item) for item in value)))
        if value is not None and value != "" and value is not False:
            yield name, visible(str(value).lower() if value is True else str(value))


def _row(item: str | tuple[str | None, ...]) -> str:
    return item if isinstance(item, str) else f"({', '.join(x or 'UNDEF' for x in item)})"
