"""Terms, paths and expressions from reductions of the grammar: a part of `build`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from streamsparql.algebra.terms import XSD
from streamsparql.errors import Span
from streamsparql.translator import syntax as s
from streamsparql.translator.lexer import Token

_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.S)


def resolve_escapes(text: str) -> str:
    r"""Resolve the escapes of strings, IRIs and local names: ``\n``, ``\u0041``, ``\-``.

    >>> resolve_escapes(r"a\u0041\n\-") == "aA" + chr(10) + "-"
    True
    """
    if "\\" not in text:
        return text
    return _ESCAPE.sub(
        lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else _ESCAPED.get(m[3], m[3]), text
    )


def all_of(children: tuple[Any, ...], kind: Any) -> tuple[Any, ...]:
    """Return the children of a kind, in order."""
    return tuple(child for child in children if isinstance(child, kind))


class TermBuilder:
    """The builder of terms, paths and expressions: a method per grammar rule, named like it."""

    # -- property paths

    def path_alternative(self, span: Span, *paths: s.PropertyPath) -> s.PathOperation:
        return s.PathOperation("|", paths, span=span)

    def path_sequence(self, span: Span, *paths: s.PropertyPath) -> s.PathOperation:
        return s.PathOperation("/", paths, span=span)

    def path_modified(self, span: Span, path: s.PropertyPath, modifier: str) -> s.PathOperation:
        return s.PathOperation(modifier, (path,), span=span)

    def path_inverse(self, span: Span, path: s.PropertyPath) -> s.PathOperation:
        return s.PathOperation("^", (path,), span=span)

    def path_negated(self, span: Span, paths: tuple[s.PropertyPath, ...]) -> s.PathOperation:
        return s.PathOperation("!", paths, span=span)

    def path_negated_property_set(
        self, span: Span, *paths: s.PropertyPath
    ) -> tuple[s.PropertyPath, ...]:
        return paths

    # -- expressions

    def conditional_or_expression(self, span: Span, *args: s.SyntaxExpression) -> s.OperatorCall:
        return s.OperatorCall("||", args, span=span)

    def conditional_and_expression(self, span: Span, *args: s.SyntaxExpression) -> s.OperatorCall:
        return s.OperatorCall("&&", args, span=span)

    def binary(
        self, span: Span, left: s.SyntaxExpression, op: str, right: s.SyntaxExpression
    ) -> s.OperatorCall:
        return s.OperatorCall(op, (left, right), span=span)

    def add_signed(
        self, span: Span, left: s.SyntaxExpression, product: s.SyntaxExpression
    ) -> s.OperatorCall:
        """Build the subtraction of `?x -1 * 2`, in which the lexer reads -1 as a literal."""
        sign, unsigned = _unsigned(product)
        return s.OperatorCall(sign, (left, unsigned), span=span)

    def unary(self, span: Span, sign: str, operand: s.SyntaxExpression) -> s.OperatorCall:
        return s.OperatorCall("!" if sign == "!" else "u" + sign, (operand,), span=span)

    def is_in(
        self, span: Span, value: s.SyntaxExpression, options: tuple[s.SyntaxExpression, ...]
    ) -> s.OperatorCall:
        return s.OperatorCall("IN", (value, *options), span=span)

    def is_not_in(
        self, span: Span, value: s.SyntaxExpression, options: tuple[s.SyntaxExpression, ...]
    ) -> s.OperatorCall:
        return s.OperatorCall("NOT IN", (value, *options), span=span)

    def args(self, span: Span, *children: Any) -> tuple[Any, ...]:
        return children

    def function_call(self, span: Span, function: s.Iri, args: tuple[Any, ...]) -> s.FunctionCall:
        distinct = bool(args) and args[0] == "DISTINCT"
        return s.FunctionCall(function, args[1:] if distinct else args, distinct, span=span)

    def builtin(self, span: Span, name: Token, *args: Any) -> s.OperatorCall:
        return s.OperatorCall(name.text.upper(), args, span=span)

    def builtin_n(self, span: Span, name: Token, args: tuple[Any, ...]) -> s.OperatorCall:
        return s.OperatorCall(name.text.upper(), args, span=span)

    def exists(self, span: Span, group: s.GroupPattern) -> s.ExistsCall:
        return s.ExistsCall(group, span=span)

    def not_exists(self, span: Span, group: s.GroupPattern) -> s.OperatorCall:
        return s.OperatorCall("!", (s.ExistsCall(group, span=span),), span=span)

    def aggregate(self, span: Span, name: Token, *rest: Any) -> s.AggregateCall:
        nodes = all_of(rest, s.SyntaxNode)
        return s.AggregateCall(
            name.text.upper(),
            nodes[0] if nodes else None,
            distinct="DISTINCT" in rest,
            separator=nodes[1].lexical if len(nodes) > 1 else None,
            span=span,
        )

    # -- terms

    def var(self, span: Span, token: Token) -> s.Var:
        return s.Var(token.text[1:], span=span)

    def iri(self, span: Span, token: Token) -> s.Iri:
        if token.type == "IRIREF":
            return s.Iri(resolve_escapes(token.text[1:-1]), span=span)
        prefix, _, local = token.text.partition(":")
        return s.Iri(resolve_escapes(local), prefix, span=span)

    def blank_node(self, span: Span, token: Token) -> s.Blank:
        label = f"[{span.start}" if token.type == "ANON" else token.text[2:]
        return s.Blank(label, span=span)

    def string(self, span: Span, token: Token) -> s.Lit:
        quotes = 3 if token.type.startswith("STRING_LITERAL_LONG") else 1
        return s.Lit(resolve_escapes(token.text[quotes:-quotes]), span=span)

    def lang_literal(self, span: Span, string: s.Lit, tag: Token) -> s.Lit:
        return s.Lit(string.lexical, language=tag.text[1:], span=span)

    def typed_literal(self, span: Span, string: s.Lit, datatype: s.Iri) -> s.Lit:
        return s.Lit(string.lexical, datatype, span=span)

    def numeric_literal(self, span: Span, token: Token) -> s.Lit:
        kind = token.type.partition("_")[0].lower()
        return s.Lit(token.text, s.Iri(XSD + kind, span=span), span=span)

    signed_literal = numeric_literal

    def boolean_literal(self, span: Span, token: Token) -> s.Lit:
        return s.Lit(token.text.lower(), s.Iri(XSD + "boolean", span=span), span=span)


def _unsigned(product: s.SyntaxExpression) -> tuple[str, s.SyntaxExpression]:
    """Return the sign of a product's first literal, and the product without it."""
    first, links = product, list[s.OperatorCall]()
    if isinstance(product, s.OperatorCall):
        first, links = s.operator_chain(product)
    assert isinstance(first, s.Lit), "the grammar puts a signed literal first"
    unsigned: s.SyntaxExpression = replace(first, lexical=first.lexical[1:])
    for link in links:
        unsigned = replace(link, args=(unsigned, link.args[1]))
    return first.lexical[0], unsigned
