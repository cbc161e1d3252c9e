"""Sharing: what queries that differ in constants have in common, and how to put the constants back.

The *skeleton* of a plan has a parameter in place of each constant, and canonical names, so queries
that differ only in constants and in the names of variables have the same skeleton. Equal constants
of a plan are one parameter, so a skeleton also says which constants are equal.

    ?t :windSpeed ?v . FILTER(?v > 20)      ?v1 :windSpeed ?v2 . FILTER(?v2 > $1)    $1 = 20
    ?x :windSpeed ?y . FILTER(?y > 25)      ?v1 :windSpeed ?v2 . FILTER(?v2 > $1)    $1 = 25

Law: a plan of the algebra is a function of its constants. For terms c of the parameters p,
`bind(skeleton, c)` is the plan that has the terms, and the snapshots of the skeleton joined with a
table of terms are, row by row of the table, those of the bound plans (physical/lowering).

Constants that are lifted: subjects and objects of patterns and templates, ends of paths, cells of
VALUES, and constants in expressions. Others determine the shape of a plan, or what a source must
deliver: predicates, names of graphs and streams, windows, LIMIT, flags of regular expressions.
Nothing is lifted below a window that counts elements, since each query would count its own, nor in
DESCRIBE and in plans about events. A time window commutes with matching (SEMANTICS.md, R6), so it
is moved below the pattern first.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple

from streamsparql.algebra import expressions as e
from streamsparql.algebra import group, shape
from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.canonical_names import canonical
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.event import Detect
from streamsparql.algebra.graph import Construct, Describe
from streamsparql.algebra.hidden_variables import VarOrTerm
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.parameter import Parameter, as_term, parameters_in
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, TRUE, Literal, Term
from streamsparql.algebra.window import TimeWindow, Window


class Skeleton(NamedTuple):
    """A plan with parameters for its constants, and with canonical names."""

    plan: Plan
    constants: Mapping[str, Term]
    """The constants of the original plan, by the names of their parameters."""
    variables: Mapping[str, str]
    """The canonical names of the variables."""
    named: Mapping[str, str]
    """The canonical names of the parameters that the original plan had already."""


def skeleton(plan: Plan) -> Skeleton:
    """Return the skeleton of a plan.

    >>> from streamsparql.algebra.rules.sketch import sketch, triples
    >>> shared = skeleton(triples("turbine7 windSpeed ?speed"))
    >>> print(sketch(shared.plan), {name: str(term) for name, term in shared.constants.items()})
    $1 windSpeed ?v1 {'1': '<turbine7>'}
    """
    lifted: dict[str, Term] = {}
    plan = _windows_below_matchings(plan)
    if not any(isinstance(node, _NOT_LIFTED) for node in plan.operators()):
        plan = _plan(plan.fold(_Lifting(lifted).of))
    renamed = canonical(plan)
    constants = {new: lifted[old] for old, new in renamed.parameters.items() if old in lifted}
    named = {old: new for old, new in renamed.parameters.items() if old not in lifted}
    return Skeleton(renamed.plan, constants, renamed.variables, named)


def bind(plan: Plan, terms: Mapping[str, Term]) -> Plan:
    """Return a plan with terms in place of parameters; others remain.

    >>> from streamsparql.algebra.rules.sketch import sketch, triples
    >>> shared = skeleton(triples("turbine7 windSpeed ?speed"))
    >>> print(sketch(bind(shared.plan, {"1": IRI("turbine8")})))
    turbine8 windSpeed ?v1
    """

    def place(one: VarOrTerm) -> VarOrTerm:
        return terms.get(one.name, one) if isinstance(one, Parameter) else one

    def value(one: Node) -> Node:
        known = isinstance(one, Parameter) and one.name in terms
        return e.Constant(terms[one.name]) if known else one  # type: ignore[attr-defined]

    def bound(node: Node, parts: list[Node]) -> Node:
        node = node if isinstance(node, Parameter) else _over(node, parts)
        if isinstance(node, _PLACED):
            return _with_places(node, place)
        return _over(node, [value(part) for part in node.parts()])

    return _plan(plan.fold(bound)) if parameters_in(plan) & terms.keys() else plan


def with_parameters(plan: Plan, names: Container[str]) -> Plan:
    """Return a plan in which these variables are parameters: constants, whatever their place.

    >>> from streamsparql.algebra.rules.sketch import sketch, triples
    >>> print(sketch(with_parameters(triples("?person at ?place"), ["person"])))
    $person at ?place
    """

    def is_parameter(node: object) -> bool:
        return isinstance(node, Variable) and not node.hidden and node.name in names

    def of(node: Node, parts: list[Node]) -> Node:
        match node:
            case Variable(name) if is_parameter(node):
                return Parameter(name)
            case e.Bound(variable) if is_parameter(variable):
                return e.Constant(TRUE)
            case shape.Projection(variables, _):
                kept = tuple(v for v in variables if not is_parameter(v))
                return shape.Projection(kept, _plan(parts[-1]))
            case shape.Slice(offset, limit, columns):
                kept = tuple(v for v in columns if not is_parameter(v))
                return shape.Slice(offset, limit, kept, _plan(parts[-1]))
            case shape.OrderBy(keys, columns):
                kept = tuple(v for v in columns if not is_parameter(v))
                replaced = (_expression(part) for part in parts[: len(keys)])
                down = (descending for _, descending in keys)
                pairs = tuple(zip(replaced, down, strict=True))
                return shape.OrderBy(pairs, kept, _plan(parts[-1]))
            case e.Volatile(function, args, columns, site):
                kept = tuple(v for v in columns if not is_parameter(v))
                replaced_args = tuple(map(_expression, parts[: len(args)]))
                return e.Volatile(function, replaced_args, kept, site)
        return _over(node, parts)

    return _plan(plan.fold(of))


def is_shareable(plan: Plan) -> bool:
    """Return whether one plan can compute a plan with parameters for many assignments.

    >>> from streamsparql.algebra.rules.sketch import triples
    >>> is_shareable(triples("?x p ?y")), is_shareable(Describe((), shape.UNIT, shape.UNIT))
    (True, False)
    """
    for node in plan.operators():
        if isinstance(node, _NOT_LIFTED) or (isinstance(node, Window) and parameters_in(node)):
            return False
    return True


_NOT_LIFTED = (Describe, Detect, Closure)
_PLACED = (TriplePatternMatching, Path, shape.Table, Construct, Describe)
"""The operators with terms among their parameters."""


class _Lifting:
    """The lifting of the constants of a plan; `lifted` are the constants by parameter name."""

    def __init__(self, lifted: dict[str, Term]) -> None:
        self._lifted = lifted

    def of(self, node: Node, parts: list[Node]) -> Node:
        """Return a node over lifted parts, with its own constants lifted."""
        if isinstance(node, Window):
            return node
        changed = [
            self._value(part) if _is_liftable(node, k) else part for k, part in enumerate(parts)
        ]
        node = _over(node, changed)
        return (
            _with_places(node, self._place, ends_only=True) if isinstance(node, _PLACED) else node
        )

    def _value(self, part: Node) -> Node:
        return self._parameter(part.term) if isinstance(part, e.Constant) else part

    def _place(self, place: VarOrTerm) -> VarOrTerm:
        return as_term(self._parameter(place)) if isinstance(place, IRI | Literal) else place

    def _parameter(self, term: Term) -> Parameter:
        name = str(term)  # no name that a query can write
        self._lifted[name] = term
        return Parameter(name)


_FIXED_ARGUMENTS = {"REGEX": 2, "REPLACE": 3, "IRI": 1, "URI": 1}
"""The first argument of some functions that is part of the function: flags, the query's BASE."""


def _is_liftable(node: Node, k: int) -> bool:
    """Return whether a constant that is the k-th part of a node may become a parameter."""
    match node:
        case e.Call(str() as function):
            return k < _FIXED_ARGUMENTS.get(function, k + 1)
        case e.Volatile() | shape.OrderBy() | e.Aggregate() | group.Aggregation():
            return False
    return True


def _with_places(
    node: Node, change: Callable[[VarOrTerm], VarOrTerm], ends_only: bool = False
) -> Node:
    """Return an operator with changed terms; with `ends_only`, predicates remain."""

    def changed(pattern: TriplePattern) -> TriplePattern:
        subject, predicate, value = pattern
        middle = predicate if ends_only else change(predicate)
        return TriplePattern(change(subject), middle, change(value))

    match node:
        case TriplePatternMatching(pattern, source, stamps):
            new = changed(pattern)
            return node if new == pattern else TriplePatternMatching(new, source, stamps)
        case Path(subject, path, value, source):
            ends = change(subject), change(value)
            if ends == (subject, value):
                return node
            return Path(ends[0], path, ends[1], source)
        case shape.Table(variables, rows):
            cells: Any = tuple(tuple(x if x is None else change(x) for x in row) for row in rows)
            return node if cells == rows else shape.Table(variables, cells)
        case Construct(template, rows):
            patterns = tuple(map(changed, template))
            return node if patterns == template else Construct(patterns, rows)
        case Describe(resources, rows, data):
            described: Any = tuple(map(change, resources))
            return node if described == resources else Describe(described, rows, data)
    raise AssertionError(node)


def _windows_below_matchings(plan: Plan) -> Plan:
    """Return a plan whose time windows over a matching of a stream are below the matching."""

    def of(node: Node, parts: list[Node]) -> Node:
        node = _over(node, parts)
        match node:
            case TimeWindow(input=TriplePatternMatching(pattern, AccessStream() as stream, stamps)):
                return TriplePatternMatching(pattern, node.with_inputs(stream), stamps)
        return node

    return _plan(plan.fold(of))


def _over(node: Node, parts: list[Node]) -> Node:
    """Return a node over other parts; itself if they are the same objects."""
    if all(one is other for one, other in zip(node.parts(), parts, strict=True)):
        return node
    return node.with_parts(tuple(parts))


def _plan(node: Node) -> Plan:
    assert isinstance(node, Plan)
    return node


def _expression(node: Node) -> Expression:
    assert isinstance(node, Expression)
    return node
