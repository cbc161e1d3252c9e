"""The syntax tree from reductions of the grammar: one method per rule, named like the rule.

The arguments of a method are the span that the rule covers and the values of its parts. Methods are
stateless, so one `CALLBACKS` table serves all parses.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

from streamsparql.algebra.terms import RDF
from streamsparql.errors import QueryError, Span
from streamsparql.translator import syntax as s
from streamsparql.translator.build_terms import TermBuilder, all_of
from streamsparql.translator.lexer import Token

_MILLISECONDS = {
    "ms": 1,
    "msec": 1,
    "millisecond": 1,
    "s": 1000,
    "sec": 1000,
    "second": 1000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
    "w": 604_800_000,
    "week": 604_800_000,
}
_MAX_DIGITS = 4_000  # the limit of Python's conversion from text to int
_XSD_UNITS = {"D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1000}


class _Described(NamedTuple):
    """A node written together with triples about it: `[ :p ?o ]`, `( 1 2 )`."""

    node: s.GraphTerm
    triples: list[s.TriplePath]


class _Selection(NamedTuple):
    select: s.SelectClause
    operator: str | None


class _Registration(NamedTuple):
    register: s.RegisterClause
    operator: str | None


class _Name(NamedTuple):
    name: str | s.Iri


class _Aggregates(NamedTuple):
    patterns: tuple[s.AggregationPattern, ...]


class _Values(NamedTuple):
    data: s.InlineData | None


class _Row(NamedTuple):
    values: tuple[s.Iri | s.Lit | None, ...]
    span: Span


def _node_and_triples(value: Any) -> tuple[s.GraphTerm, list[s.TriplePath]]:
    return (value.node, value.triples) if isinstance(value, _Described) else (value, [])


def _first(children: tuple[Any, ...], kind: Any) -> Any:
    return next((child for child in children if isinstance(child, kind)), None)


def _integer(token: Token) -> int:
    if len(token.text) > _MAX_DIGITS:
        raise QueryError(f"a number of {len(token.text)} digits is too large", token.span)
    return int(token.text)


class _Builder(TermBuilder):
    # -- the query

    def start(self, span: Span, query: s.QueryUnit) -> s.QueryUnit:
        return query

    def query_unit(self, span: Span, *children: Any) -> s.QueryUnit:
        query: s.QueryUnit = children[-1]
        declarations = sum((c for c in children[:-1] if type(c) is tuple), ())
        for register, operator in all_of(children, _Registration):
            if operator and query.operator and operator != query.operator:
                raise QueryError(
                    f"conflicting operators {operator} and {query.operator}",
                    register.span,
                    hint="write one of them only",
                )
            query = replace(query, register=register, operator=operator or query.operator)
        return replace(query, declarations=declarations, span=span)

    def query(self, span: Span, *children: Any) -> s.QueryUnit:
        query: s.QueryUnit = _first(children, s.QueryUnit)
        sources = (*all_of(children, s.FromClause), *query.sources)
        return replace(query, sources=sources, values=_first(children[1:], _Values).data)

    def prologue(self, span: Span, *declarations: s.Declaration) -> tuple[s.Declaration, ...]:
        return declarations

    def base_decl(self, span: Span, iri: Token) -> s.Declaration:
        return s.Declaration(None, self.iri(iri.span, iri), span=span)

    def prefix_decl(self, span: Span, prefix: Token, iri: Token) -> s.Declaration:
        return s.Declaration(prefix.text[:-1], self.iri(iri.span, iri), span=span)

    def register(self, span: Span, kind: str, *children: Any) -> _Registration:
        name, every = _first(children, _Name), _first(children, s.DurationLiteral)
        register = s.RegisterClause(kind, name.name if name else None, every, span=span)
        return _Registration(register, kind if kind in ("RSTREAM", "ISTREAM", "DSTREAM") else None)

    def registered_name(self, span: Span, name: Token | s.Iri | s.Lit) -> _Name:
        match name:
            case Token():
                return _Name(name.text)
            case s.Lit():
                return _Name(name.lexical)
        return _Name(name)

    def _word(self, span: Span, token: Token) -> str:
        return token.text.upper()

    register_kind = stream_operator = select_modifier = star = distinct = silent = _word
    relation = plus_minus = times = sign = path_mod = event_operator = _word

    def _form(self, span: Span, form: s.Form, children: tuple[Any, ...]) -> s.QueryUnit:
        return s.QueryUnit(
            declarations=(),
            register=None,
            operator=_first(children, str),
            form=form,
            sources=all_of(children, s.FromClause),
            where=_first(children, s.GroupPattern),
            modifiers=_first(children, s.Modifiers),
            values=None,
            span=span,
        )

    def select_query(self, span: Span, select: _Selection, *children: Any) -> s.QueryUnit:
        form = s.SelectForm(select.select, span=select.select.span)
        return replace(self._form(span, form, children), operator=select.operator)

    def select_clause(self, span: Span, *children: Any) -> _Selection:
        words = [child for child in children if isinstance(child, str) and child != "*"]
        operator = next((word for word in words if word.endswith("STREAM")), None)
        modifier = next((word for word in words if not word.endswith("STREAM")), None)
        items = tuple(
            s.SelectItem(child, span=child.span) if isinstance(child, s.Var) else child
            for child in all_of(children, s.SyntaxNode)
        )
        return _Selection(s.SelectClause(items, modifier, span=span), operator)

    def select_as(
        self, span: Span, left: s.SyntaxExpression, right: s.SyntaxExpression
    ) -> s.SelectItem:
        # EP-SPARQL also writes the variable first (SEMANTICS.md R13).
        variable, expression = (right, left) if isinstance(right, s.Var) else (left, right)
        if not isinstance(variable, s.Var):
            raise QueryError(
                "missing variable after AS", right.span, hint="write (expression AS ?variable)"
            )
        return s.SelectItem(variable, expression, variable is left, span=span)

    def select_without_brackets(
        self, span: Span, left: s.SyntaxExpression, right: s.SyntaxExpression
    ) -> s.SelectItem:
        return replace(self.select_as(span, left, right), loose=True)

    def select_bare(
        self, span: Span, call: s.AggregateCall, variable: s.Var | None = None
    ) -> s.BareAggregate:
        return s.BareAggregate(call, variable, span=span)

    def sub_select(self, span: Span, select: _Selection, *children: Any) -> s.SubSelect:
        if select.operator:
            raise QueryError(f"{select.operator} is not allowed in a subquery", span)
        where, modifiers, values = children
        return s.SubSelect(select.select, where, modifiers, values.data, span=span)

    def construct_query(self, span: Span, *children: Any) -> s.QueryUnit:
        template = _first(children, tuple)
        return self._form(span, s.ConstructForm(template, span=span), children)

    def construct_where(self, span: Span, *children: Any) -> s.QueryUnit:
        template = _first(children, tuple) or ()
        block = (s.TriplesBlock(template, span=span),) if template else ()
        form = s.ConstructForm(template, span=span)
        return self._form(span, form, (*children, s.GroupPattern(block, span=span)))

    def describe_query(self, span: Span, *children: Any) -> s.QueryUnit:
        form = s.DescribeForm(all_of(children, s.Var | s.Iri), span=span)
        return replace(self._form(span, form, children), operator=None)

    def ask_query(self, span: Span, *children: Any) -> s.QueryUnit:
        return self._form(span, s.AskForm(span=span), children)

    # -- sources and windows

    def default_graph(self, span: Span, name: s.Iri) -> s.FromClause:
        return s.FromClause(name, named=False, span=span)

    def named_graph(self, span: Span, name: s.Iri) -> s.FromClause:
        return s.FromClause(name, named=True, span=span)

    def default_stream(self, span: Span, name: s.Iri, *rest: Any) -> s.FromClause:
        window = _first(rest, s.WindowClause)
        return s.FromClause(name, named=False, kind="stream", window=window, span=span)

    def named_stream(self, span: Span, name: s.Iri, *rest: Any) -> s.FromClause:
        return replace(self.default_stream(span, name, *rest), named=True)

    def default_bracket(self, span: Span, name: s.Iri, *rest: Any) -> s.FromClause:
        return s.FromClause(
            name,
            named=False,
            kind="bracket",
            window=_first(rest, s.WindowClause),
            window_name=_first(rest, s.Var),
            span=span,
        )

    def named_bracket(self, span: Span, name: s.Iri, *rest: Any) -> s.FromClause:
        return replace(self.default_bracket(span, name, *rest), named=True)

    def named_window(
        self, span: Span, window_name: s.Iri, name: s.Iri, window: s.WindowClause
    ) -> s.FromClause:
        return s.FromClause(
            name, named=True, kind="window", window=window, window_name=window_name, span=span
        )

    def named_window_as(
        self, span: Span, name: s.Iri, window: s.WindowClause, window_name: s.Iri
    ) -> s.FromClause:
        return self.named_window(span, window_name, name, window)

    def window_slide(
        self, span: Span, width: s.DurationLiteral, slide: s.DurationLiteral | None = None
    ) -> s.WindowSlide:
        return s.WindowSlide(width, slide, span=span)

    def window_fixed(self, span: Span, width: s.DurationLiteral) -> s.WindowFixed:
        return s.WindowFixed(width, span=span)

    def window_elems(self, span: Span, count: Token) -> s.WindowElems:
        return s.WindowElems(_integer(count), span=span)

    def window_range(
        self, span: Span, width: s.DurationLiteral, step: s.DurationLiteral | None = None
    ) -> s.WindowRange:
        return s.WindowRange(width, step, span=span)

    def window_tumbling(self, span: Span, width: s.DurationLiteral) -> s.WindowRange:
        return s.WindowRange(width, tumbling=True, span=span)

    def window_rows(self, span: Span, count: Token, step: Token | None = None) -> s.WindowRows:
        return s.WindowRows(_integer(count), _integer(step) if step else None, span=span)

    def window_rows_tumbling(self, span: Span, count: Token) -> s.WindowRows:
        return self.window_rows(span, count, count)

    def window_now(self, span: Span) -> s.WindowNow:
        return s.WindowNow(span=span)

    def window_all(self, span: Span) -> s.WindowAll:
        return s.WindowAll(span=span)

    def window_in_the_past(self, span: Span, *_: Any) -> s.WindowInThePast:
        return s.WindowInThePast(span=span)

    def before(self, span: Span, *_: Any) -> None:
        return None

    def val_spec(self, span: Span, value: Token | s.DurationLiteral) -> s.DurationLiteral:
        return s.DurationLiteral(_integer(value), span=span) if isinstance(value, Token) else value

    def duration(self, span: Span, *tokens: Token) -> s.DurationLiteral:
        total, unit = 0, 1
        for amount, name in zip(tokens[::2], tokens[1::2], strict=True):
            word = name.text.lower()
            length = _MILLISECONDS.get(word) or _MILLISECONDS.get(word.removesuffix("s"))
            if length is None:
                raise QueryError(
                    f"unsupported time unit {name.text}",
                    name.span,
                    hint="the smallest unit is the millisecond",
                )
            total, unit = total + _integer(amount) * length, length
        return s.DurationLiteral(total, unit, span=span)

    def xsd_duration(self, span: Span, value: Token | s.Lit, *kinds: s.Iri) -> s.DurationLiteral:
        for kind in kinds:
            if not kind.value.lower().endswith("duration"):
                raise QueryError(
                    "expected a duration of type xsd:duration", kind.span, hint="write PT10S"
                )
        text = value.text if isinstance(value, Token) else value.lexical
        match = re.fullmatch(
            r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,3})?)S)?)?", text
        )
        amounts = (
            [(g, u) for g, u in zip(match.groups(), "DHMS", strict=True) if g] if match else []
        )
        if not amounts or len(text) > 100:
            raise QueryError(
                f"not a valid duration in days, hours, minutes and seconds: {text:.40}",
                span,
                hint="write for instance PT10S, PT1H30M or P1D; months differ in length",
            )
        parts = [round(float(g) * 1000) if u == "S" else int(g) * _XSD_UNITS[u] for g, u in amounts]
        unit = 1 if "." in text else _XSD_UNITS[amounts[-1][1]]
        return s.DurationLiteral(sum(parts), unit, span=span)

    # -- WHERE and the modifiers

    def where_clause(self, span: Span, group: s.GroupPattern) -> s.GroupPattern:
        return group

    def where_events(
        self, span: Span, event: s.GroupOperand, *filters: s.FilterClause
    ) -> s.GroupPattern:
        return s.GroupPattern((event, *filters), span=span)

    def solution_modifier(self, span: Span, *children: Any) -> s.Modifiers:
        fields: dict[str, Any] = {}
        for child in children:
            if isinstance(child, _Aggregates):
                fields["aggregates"] = fields.get("aggregates", ()) + child.patterns
            else:
                fields.update(child)
        return s.Modifiers(**fields, span=span)

    def aggregate_clause(self, span: Span, *patterns: s.AggregationPattern) -> _Aggregates:
        return _Aggregates(patterns)

    def aggregation_pattern(
        self,
        span: Span,
        variable: s.Var,
        function: s.AggregateCall,
        keys: tuple[s.Var, ...],
        *filters: s.FilterClause,
    ) -> s.AggregationPattern:
        return s.AggregationPattern(variable, function, keys, filters, span=span)

    def aggregation(self, span: Span, name: Token, *rest: Any) -> s.AggregateCall:
        if not all_of(rest, s.SyntaxNode) and name.type != "COUNT":
            raise QueryError(
                f"missing argument of {name.text}",
                span,
                hint=f"write {name.text}(?variable); only COUNT needs no argument",
            )
        return self.aggregate(span, name, *rest)

    def aggregation_keys(self, span: Span, *keys: s.Var) -> tuple[s.Var, ...]:
        return keys

    def group_clause(self, span: Span, *conditions: Any) -> dict[str, Any]:
        keys = (c if isinstance(c, s.GroupKey) else s.GroupKey(c, span=c.span) for c in conditions)
        return {"group": tuple(keys)}

    def group_as(self, span: Span, expression: s.SyntaxExpression, variable: s.Var) -> s.GroupKey:
        return s.GroupKey(expression, variable, span=span)

    def having_clause(self, span: Span, *conditions: s.SyntaxExpression) -> dict[str, Any]:
        return {"having": conditions}

    def order_clause(self, span: Span, *conditions: s.OrderKey) -> dict[str, Any]:
        return {"order": conditions}

    def ascending(self, span: Span, expression: s.SyntaxExpression) -> s.OrderKey:
        return s.OrderKey(expression, span=span)

    def descending(self, span: Span, expression: s.SyntaxExpression) -> s.OrderKey:
        return s.OrderKey(expression, descending=True, span=span)

    def limit_offset(self, span: Span, *clauses: dict[str, Any]) -> dict[str, Any]:
        return {key: value for clause in clauses for key, value in clause.items()}

    def limit_clause(self, span: Span, count: Token) -> dict[str, Any]:
        return {"limit": _integer(count)}

    def offset_clause(self, span: Span, count: Token) -> dict[str, Any]:
        return {"offset": _integer(count)}

    def values_clause(self, span: Span, data: s.InlineData | None = None) -> _Values:
        return _Values(data)

    # -- patterns

    def group_graph_pattern(self, span: Span, *children: Any) -> s.GroupPattern:
        window = _first(children, s.WindowClause)
        elements = tuple(child for child in children if not isinstance(child, s.WindowClause))
        return s.GroupPattern(elements, window, span=span)

    def union(self, span: Span, left: s.GroupOperand, right: s.GroupPattern) -> s.UnionPattern:
        return s.UnionPattern(left, right, span=span)

    def event(
        self, span: Span, left: s.GroupOperand, op: str, right: s.GroupPattern
    ) -> s.EventPattern:
        return s.EventPattern(op, left, right, span=span)

    def optional_graph_pattern(self, span: Span, group: s.GroupPattern) -> s.OptionalPattern:
        return s.OptionalPattern(group, span=span)

    def minus_graph_pattern(self, span: Span, group: s.GroupPattern) -> s.MinusPattern:
        return s.MinusPattern(group, span=span)

    def graph_graph_pattern(
        self, span: Span, name: s.Var | s.Iri, group: s.GroupPattern
    ) -> s.GraphPattern:
        return s.GraphPattern(name, group, span=span)

    def service_graph_pattern(self, span: Span, *children: Any) -> s.ServicePattern:
        return s.ServicePattern(children[-2], children[-1], span=span)

    def stream_graph_pattern(self, span: Span, name: s.Var | s.Iri, *rest: Any) -> s.StreamPattern:
        return s.StreamPattern(name, _first(rest, s.WindowClause), rest[-1], span=span)

    def window_graph_pattern(
        self, span: Span, name: s.Var | s.Iri, group: s.GroupPattern
    ) -> s.WindowPattern:
        return s.WindowPattern(name, group, span=span)

    def filter(self, span: Span, condition: s.SyntaxExpression) -> s.FilterClause:
        return s.FilterClause(condition, span=span)

    def bind(self, span: Span, expression: s.SyntaxExpression, variable: s.Var) -> s.BindClause:
        return s.BindClause(expression, variable, span=span)

    def inline_data_one_var(self, span: Span, variable: s.Var, *values: Any) -> s.InlineData:
        return s.InlineData((variable,), tuple((value,) for value in values), span=span)

    def inline_data_full(self, span: Span, *children: Any) -> s.InlineData:
        names = next((child for child in children if type(child) is tuple), ())
        rows = all_of(children, _Row)
        for row in rows:
            if len(row.values) != len(names):
                raise QueryError(
                    f"expected {len(names)} values in this row, not {len(row.values)}",
                    row.span,
                    hint="write UNDEF where a row has no value",
                )
        return s.InlineData(names, tuple(row.values for row in rows), span=span)

    def var_list(self, span: Span, *variables: s.Var) -> tuple[s.Var, ...]:
        return variables

    def data_row(self, span: Span, *values: Any) -> _Row:
        return _Row(values, span)

    def undef(self, span: Span) -> None:
        return None

    def triples_block(self, span: Span, *subjects: list[s.TriplePath]) -> s.TriplesBlock:
        return s.TriplesBlock(tuple(t for triples in subjects for t in triples), span=span)

    def triples_template(
        self, span: Span, *subjects: list[s.TriplePath]
    ) -> tuple[s.TriplePath, ...]:
        return tuple(t for triples in subjects for t in triples)

    def construct_template(
        self, span: Span, triples: tuple[s.TriplePath, ...] = ()
    ) -> tuple[s.TriplePath, ...]:
        return triples

    def triples_same_subject(
        self, span: Span, subject: Any, properties: Any = ()
    ) -> list[s.TriplePath]:
        node, triples = _node_and_triples(subject)
        return [*triples, *self._triples(node, properties)]

    def _triples(self, subject: s.GraphTerm, properties: Any) -> list[s.TriplePath]:
        triples: list[s.TriplePath] = []
        for verb, objects in properties:
            for value in objects:
                node, about = _node_and_triples(value)
                span = Span(subject.span.start, node.span.end)
                triples += [s.TriplePath(subject, verb, node, span=span), *about]
        return triples

    def property_list_not_empty(self, span: Span, *children: Any) -> list[tuple[Any, Any]]:
        return list(zip(children[::2], children[1::2], strict=True))

    def object_list(self, span: Span, *objects: Any) -> tuple[Any, ...]:
        return objects

    def blank_node_property_list(self, span: Span, properties: Any) -> _Described:
        node = s.Blank(f"[{span.start}", span=span)
        return _Described(node, self._triples(node, properties))

    def collection(self, span: Span, *items: Any) -> _Described:
        first, rest = s.Iri(RDF + "first", span=span), s.Iri(RDF + "rest", span=span)
        cells: list[s.GraphTerm] = [
            s.Blank(f"({span.start}.{i}", span=span) for i in range(len(items))
        ]
        triples: list[s.TriplePath] = []
        for cell, item, after in zip(cells, items, [*cells[1:], self.nil(span)], strict=True):
            node, about = _node_and_triples(item)
            triples += [s.TriplePath(cell, first, node, span=span), *about]
            triples.append(s.TriplePath(cell, rest, after, span=span))
        return _Described(cells[0], triples)

    def nil(self, span: Span) -> s.Iri:
        return s.Iri(RDF + "nil", span=span)

    def verb_a(self, span: Span) -> s.Iri:
        return s.Iri(RDF + "type", span=span)


CALLBACKS = {name: getattr(_Builder(), name) for name in dir(_Builder) if not name.startswith("_")}
