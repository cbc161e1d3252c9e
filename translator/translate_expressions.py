"""The translation of expressions, from the syntax tree to the algebra.

Three constructs of an expression need columns of the plan below. An EXISTS becomes a hidden
variable that a `Mark` binds; an aggregate becomes a variable that the `Aggregation` binds; a call
of RAND, UUID or BNODE needs numbers that distinguish equal rows. So the result is a
`PreparedExpression`: the expression, and the columns that the plan below it must provide.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import NamedTuple

from streamsparql.algebra import expressions as e
from streamsparql.algebra.filter import Mark
from streamsparql.algebra.functions import FUNCTIONS, VOLATILE, cast_function
from streamsparql.algebra.hidden_variables import PlanKind
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import Extend, Number
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.algebra.xsd.casts import CAST_TARGETS
from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context
from streamsparql.translator.sparql_text import Writer
from streamsparql.translator.timestamps import is_timestamp, stamp_variable

PatternTranslator = Callable[[s.GroupPattern], Plan]
"""A function that translates the pattern of an EXISTS, in the scope of the expression."""

_SYNONYMS = {"URI": "IRI", "ISURI": "ISIRI"}


@dataclass
class Needs:
    """The needs of an expression: EXISTS marks, and call sites of volatile functions."""

    exists: PatternTranslator
    groups: Groups | None = None
    marks: list[tuple[Variable, Plan]] = field(default_factory=list)
    sites: list[int] = field(default_factory=list)


@dataclass
class Groups:
    """The aggregates of a query with their variables, and the needs of their arguments."""

    below: Needs
    calls: dict[e.Aggregate, Variable] = field(default_factory=dict)


class PreparedExpression(NamedTuple):
    """An expression, and its needs from the plan below it."""

    expression: Expression
    needs: Needs


def prepare_expression(
    node: s.SyntaxExpression,
    context: Context,
    exists: PatternTranslator,
    groups: Groups | None = None,
) -> PreparedExpression:
    """Translate an expression. It may contain aggregates if `groups` is not None."""
    needs = Needs(exists, groups)
    return PreparedExpression(_translate(node, needs, context), needs)


def prepare_aggregate(node: s.AggregateCall, context: Context, groups: Groups) -> e.Aggregate:
    """Translate an aggregate call; add the needs of its argument to `groups.below`."""
    argument = None
    if node.argument is not None:
        argument = _translate(node.argument, groups.below, context)
    return e.Aggregate(node.name, argument, node.distinct, node.separator)


def _translate(node: s.SyntaxExpression, needs: Needs, context: Context) -> Expression:
    match node:
        case s.Var(name):
            return Variable(name)
        case s.Iri():
            return e.Constant(context.names.iri(node))
        case s.Lit():
            return e.Constant(context.names.literal(node))
        case s.ExistsCall(group):
            variable = context.fresh(PlanKind.EXISTS)
            needs.marks.append((variable, needs.exists(group)))
            return variable
        case s.AggregateCall():
            assert needs.groups is not None, "checks.py rejects aggregates without groups"
            call = prepare_aggregate(node, context, needs.groups)
            if call not in needs.groups.calls:
                needs.groups.calls[call] = context.fresh(PlanKind.AGGREGATE)
            return needs.groups.calls[call]
        case s.OperatorCall("TIMESTAMP") | s.FunctionCall() if is_timestamp(node, context):
            return stamp_variable(node, context)
        case s.FunctionCall(_, args):
            translated = [_translate(arg, needs, context) for arg in args]
            return _call_by_iri(node, tuple(translated), context)
        case s.OperatorCall(op) if op in s.ARITHMETIC:
            first, links = s.operator_chain(node)
            left = _translate(first, needs, context)
            for link in links:
                left = e.Call(link.op, (left, _translate(link.args[1], needs, context)))
            return left
        case s.OperatorCall(_, args):
            translated = [_translate(arg, needs, context) for arg in args]
            return _operation(node, tuple(translated), needs, context)


def _operation(
    node: s.OperatorCall, args: tuple[Expression, ...], needs: Needs, context: Context
) -> Expression:
    match node.op, args:
        case "||", _:
            return e.Or(args)
        case "&&", _:
            return e.And(args)
        case "!", (arg,):
            return e.Not(arg)
        case "IN", (arg, *options):
            return e.In(arg, tuple(options))
        case "NOT IN", (arg, *options):
            return e.Not(e.In(arg, tuple(options)))
        case "BOUND", (Variable() as variable,):
            return e.Bound(variable)
        case "IF", (condition, then, otherwise):
            return e.If(condition, then, otherwise)
        case "COALESCE", _:
            return e.Coalesce(args)
        case ("GETDURATION" | "GETSTARTTIME" | "GETENDTIME") as name, ():
            if not context.dialect.has_events:
                raise QueryError(
                    f"{name}() needs events, but {context.dialect.title} has no events",
                    node.span,
                    hint='compile with dialect="epsparql"',
                )
            return e.OCCURRENCE[name]
        case name, _ if name in VOLATILE:
            needs.sites.append(context.site())
            return e.Volatile(name, args, (), needs.sites[-1])
        case "IRI" | "URI", (arg,) if context.names.base:
            return e.Call("IRI", (arg, e.Constant(Literal(context.names.base))))
    return e.Call(_SYNONYMS.get(node.op, node.op), args)


def _call_by_iri(
    node: s.FunctionCall, args: tuple[Expression, ...], context: Context
) -> Expression:
    iri = context.names.iri(node.function)
    function = cast_function(iri)
    if function is None:
        raise UnsupportedFeature(
            f"unknown function {iri}",
            node.function.span,
            hint=_function_hint(iri, context),
        )
    if len(args) != 1:
        raise QueryError(f"{iri} takes one argument, not {len(args)}", node.span)
    return e.Call(iri, args)


_OTHER_TYPES = {"number": "decimal", "numeric": "decimal", "timestamp": "dateTime"}
"""Names of types elsewhere, with the types here."""


def _function_hint(iri: IRI, context: Context) -> str:
    """Return the function that an unknown one resembles by the last part of its name."""
    name = re.split(r"[/#:]", iri.value)[-1]
    if iri.value.startswith(XSD):
        known = {cast.value.removeprefix(XSD): cast for cast in sorted(CAST_TARGETS, key=str)}
        kind = _OTHER_TYPES.get(name, name)
        if near := get_close_matches(kind, known, 1, 0.6):
            write = Writer({"xsd": XSD, **context.names.prefixes})
            return f"did you mean {write.iri(known[near[0]])}?"
    builtin = re.sub(r"[^A-Z0-9]", "", name.upper())
    if builtin in FUNCTIONS:
        return f"did you mean {builtin}? Functions of SPARQL have no IRI"
    return "the functions with IRIs are the casts of SPARQL 1.1, such as xsd:integer"


# -- volatile functions ----------------------------------------------------------------------------


def number_rows(
    plan: Plan, number: Variable, context: Context
) -> tuple[Plan, tuple[Variable, ...]]:
    """Assign numbers to equal rows; return the plan and the columns that identify a row (R16).

    These include hidden columns, such as a blank node of the pattern, but not stamps. Rows of a
    chain of BINDs are numbered once, below the chain: BNODE("a") is one node per solution.
    """
    if context.dialect.has_events:
        return plan, tuple(dict.fromkeys((*_identity(plan), *e.OCCURRENCE.values())))
    below = plan
    while isinstance(below, Extend | Mark):
        below = below.input
    if isinstance(below, Number):
        return plan, (*_identity(below.input), below.variable)
    return Number(number, plan), (*_identity(plan), number)


def _identity(plan: Plan) -> tuple[Variable, ...]:
    return tuple(variable for variable in scope(plan).possible if not variable.stamp)


def fix_columns(expression: Expression, columns: tuple[Variable, ...]) -> Expression:
    """Return the expression; its volatile calls read the columns that identify a row."""

    def fix(node: Node, parts: list[Node]) -> Node:
        node = node.with_parts(tuple(parts)) if parts else node
        return replace(node, columns=columns) if isinstance(node, e.Volatile) else node

    fixed = expression.fold(fix)
    assert isinstance(fixed, Expression)
    return fixed
