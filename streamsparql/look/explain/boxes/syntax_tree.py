"""The visitor of syntax trees: from the clauses of a query's text to boxes.

Clauses are boxes; terms, expressions, paths and window clauses are text in them. One pass from the
leaves up computes a `SyntaxPiece` for each node: its text, and the boxes below that text, which are
the node itself if it is a clause, or the groups of the EXISTS in an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from streamsparql.algebra import node as algebra
from streamsparql.look.explain.boxes.box import Box
from streamsparql.look.explain.boxes.clauses import clause_text
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
"""The clauses, which have boxes, with the family of the operators that they become."""


class SyntaxPiece(NamedTuple):
    """The contribution of a node to its parent's box: text, and boxes below it."""

    text: str
    boxes: tuple[Box, ...] = ()


def syntax_box(query: s.QueryUnit) -> Box:
    """Return the boxes of a syntax tree.

    >>> from streamsparql.translator.parse import parse
    >>> box = syntax_box(parse("ASK { ?s a <T> }"))
    >>> [(child.kind, child.role) for child in box.children]
    [('AskForm', ''), ('GroupPattern', '')]
    """
    piece: SyntaxPiece = query.fold(_piece)
    return piece.boxes[0]


def _piece(node: algebra.Node, parts: list[SyntaxPiece]) -> SyntaxPiece:
    assert isinstance(node, s.SyntaxNode)
    names = [name for name in node.field_names if name != "span"]
    rest = iter(parts)
    fields = {name: _with_texts(getattr(node, name), rest) for name in names}
    below = tuple(box for part in parts for box in part.boxes)
    if isinstance(node, s.Modifiers) and node == s.Modifiers():
        return SyntaxPiece("")
    if isinstance(node, s.ExistsCall):
        return SyntaxPiece("EXISTS {..}", (replace(below[0], role="EXISTS"),))
    text = clause_text(node, fields)
    if type(node) not in _FAMILIES:
        return SyntaxPiece(text, below)
    kind = type(node)
    box = Box(
        kind=kind.__name__,
        title=visible(text),
        facts=tuple(_facts(fields)),
        children=below,
        family=_FAMILIES[kind],
        meaning=meaning(kind),
    )
    return SyntaxPiece("", (box,))


def _with_texts(value: Any, parts: Iterator[SyntaxPiece]) -> Any:
    """Replace the nodes in a field by their texts."""
    if isinstance(value, algebra.Node):
        return next(parts).text
    if isinstance(value, tuple):
        return tuple(_with_texts(item, parts) for item in value)
    return value


def _facts(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the fields that have a text, by name; clauses have boxes instead."""
    for name, value in fields.items():
        if isinstance(value, tuple):
            value = ", ".join(filter(None, (_item_text(item) for item in value)))
        if value is not None and value != "" and value is not False:
            yield name, visible(str(value).lower() if value is True else str(value))


def _item_text(item: str | tuple[str | None, ...]) -> str:
    return item if isinstance(item, str) else f"({', '.join(x or 'UNDEF' for x in item)})"
