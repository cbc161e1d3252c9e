"""Expressions of the syntax tree to expressions of the algebra.

Three things in a written expression are not evaluated where they stand. An EXISTS becomes a hidden
variable that a `Mark` below binds; an aggregate becomes a variable that the `Aggregation` below
binds; a call of RAND, UUID or BNODE needs rows that are told apart. So a translated expression is
`Prepared`: it comes with what the plan below it has to provide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from streamsparql.algebra import expressions as e
from streamsparql.algebra.filter import Mark
from streamsparql.algebra.functions import VOLATILE, cast_function
from streamsparql.algebra.hidden import PlanKind
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import Extend, Number
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import Literal
from streamsparql.algebra.trampoline import Steps
from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context
from streamsparql.translator.timestamps import is_timestamp, stamp

DEEPEST = 150
"""How deep an expression may nest: evaluation recurses, and Python's stack is what it is."""

Exists = Callable[[s.Group], Steps[Plan]]
"""How the pattern of an EXISTS is translated where the expression stands."""

_SYNONYMS = {"URI": "IRI", "ISURI": "ISIRI"}


@dataclass
class Needs:
    """What an expression needs from the plan below it."""

    exists: Exists
    groups: Groups | None = None
    marks: list[tuple[Variable, Plan]] = field(default_factory=list)
    sites: list[int] = field(default_factory=list)


@dataclass
class Groups:
    """The aggregates of a query and their variables, and what their arguments need."""

    below: Needs
    calls: dict[e.Aggregate, Variable] = field(default_factory=dict)


class Prepared(NamedTuple):
    """An expression, and what it needs."""

    expression: Expression
    needs: Needs


def prepare(
    node: s.Expression, context: Context, exists: Exists, groups: Groups | None = None
) -> Steps[Prepared]:
    """The algebra's form of an expression. Without `groups` it has no aggregates."""
    needs = Needs(exists, groups)
    made: Expression = yield _translate(node, needs, context)
    if made.fold(_depth) > DEEPEST:
        raise QueryError(f"this expression nests deeper than {DEEPEST} levels", node.span)
    return Prepared(made, needs)


def prepare_aggregate(
    node: s.AggregateCall, context: Context, groups: Groups
) -> Steps[e.Aggregate]:
    """An aggregate call; what its argument needs is collected in `groups.below`."""
    argument = None
    if node.argument is not None:
        argument = yield _translate(node.argument, groups.below, context)
    return e.Aggregate(node.name, argument, node.distinct, node.separator)


def _translate(node: s.Expression, needs: Needs, context: Context) -> Steps[Expression]:
    match node:
        case s.Var(name):
            return Variable(name)
        case s.Iri():
            return e.Constant(context.names.iri(node))
        case s.Lit():
            return e.Constant(context.names.literal(node))
        case s.Exists(group):
            variable = context.fresh(PlanKind.EXISTS)
            needs.marks.append((variable, (yield needs.exists(group))))
            return variable
        case s.AggregateCall():
            assert needs.groups is not None, "checks.py lets aggregates stand only in groups"
            call = yield prepare_aggregate(node, context, needs.groups)
            if call not in needs.groups.calls:
                needs.groups.calls[call] = context.fresh(PlanKind.AGGREGATE)
            return needs.groups.calls[call]
        case s.Operation("TIMESTAMP") | s.FunctionCall() if is_timestamp(node, context):
            return stamp(node, context)
    args = []
    for arg in node.args:
        args.append((yield _translate(arg, needs, context)))
    if isinstance(node, s.FunctionCall):
        return _call_by_iri(node, tuple(args), context)
    return _operation(node, tuple(args), needs, context)


def _operation(
    node: s.Operation, args: tuple[Expression, ...], needs: Needs, context: Context
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
            if context.dialect.content != "events":
                raise QueryError(
                    f"{name}() reads when an event occurred, and there are no events here",
                    node.span,
                    hint='events are EP-SPARQL\'s; compile with dialect="epsparql"',
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
            f"there is no function {iri}",
            node.function.span,
            hint="functions by IRI are the casts of SPARQL 1.1, such as xsd:integer",
        )
    if len(args) != 1:
        raise QueryError(f"{iri} takes one argument, not {len(args)}", node.span)
    return e.Call(iri, args)


# -- volatile functions ----------------------------------------------------------------------------


def number_rows(
    plan: Plan, number: Variable, context: Context
) -> tuple[Plan, tuple[Variable, ...]]:
    """The plan with its rows told apart, and the columns that tell them apart (R16).

    Hidden columns count, a blank node of the pattern for instance; stamps are no part of a row.

    Rows of a chain of BINDs are numbered once, below it: BNODE("a") is one node for one solution.
    """
    if context.dialect.content == "events":
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
    """The expression with its volatile calls told what makes up a row's identity."""

    def fix(node: Node, parts: list[Node]) -> Node:
        node = node.with_parts(tuple(parts)) if parts else node
        return replace(node, columns=columns) if isinstance(node, e.Volatile) else node

    fixed = expression.fold(fix)
    assert isinstance(fixed, Expression)
    return fixed


def _depth(node: Node, depths: list[int]) -> int:
    """Levels of nesting; a chain such as a + b + c is evaluated without any."""
    chain = isinstance(node, e.Call) and isinstance(node.args[0] if node.args else None, e.Call)
    return max((d + (0 if chain and i == 0 else 1) for i, d in enumerate(depths)), default=1)
