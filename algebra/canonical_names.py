"""Canonical names: plans that differ in the names of variables only become the same plan.

Variables are renamed in the order in which a walk over the plan meets them, hidden ones by kind.
Parameters are renamed likewise, and windows lose their names, which only the text of a query uses.

Some values are functions of the names of variables (SEMANTICS.md, R16): those of RAND and the other
volatile functions, and the blank nodes of a template. The variables of such plans keep their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from streamsparql.algebra.expressions import Volatile
from streamsparql.algebra.graph import Construct
from streamsparql.algebra.hidden_variables import Hidden, HiddenKind, VarOrTerm
from streamsparql.algebra.node import Node
from streamsparql.algebra.parameter import Parameter
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import BlankNode
from streamsparql.algebra.window import Window


class CanonicalPlan(NamedTuple):
    """A plan with canonical names, and the canonical name of each variable and parameter."""

    plan: Plan
    variables: Mapping[str, str]
    parameters: Mapping[str, str]


def canonical(plan: Plan) -> CanonicalPlan:
    """Rename the variables and parameters of a plan in the order in which a walk meets them.

    >>> from streamsparql.algebra.rules.sketch import sketch, triples
    >>> renamed = canonical(triples("?turbine windSpeed ?speed"))
    >>> print(sketch(renamed.plan), dict(renamed.variables))
    ?v1 windSpeed ?v2 {'turbine': 'v1', 'speed': 'v2'}
    """
    names = _Names()
    for operator in plan.operators():
        for part in operator.parts():
            if not isinstance(part, Plan):
                for node in part.walk():
                    names.meet(node)
    if _depends_on_names(plan):
        names.variables = {variable: variable for variable in names.variables}
    renamed: Node = plan.fold(names.renamed)
    assert isinstance(renamed, Plan)
    variables = {old.name: new.name for old, new in names.variables.items()}
    return CanonicalPlan(
        renamed, variables, {old: new.name for old, new in names.parameters.items()}
    )


def _depends_on_names(plan: Plan) -> bool:
    """Return whether values of the result are computed from the names of variables."""
    for operator in plan.operators():
        if isinstance(operator, Construct) and _has_blank_nodes(operator):
            return True
        if any(isinstance(x, Volatile) for each in operator.expressions for x in each.walk()):
            return True
    return False


def _has_blank_nodes(construct: Construct) -> bool:
    return any(isinstance(place, BlankNode) for pattern in construct.template for place in pattern)


class _Names:
    """The new variables and parameters, by the old ones."""

    def __init__(self) -> None:
        self.variables: dict[Variable, Variable] = {}
        self.parameters: dict[str, Parameter] = {}
        self._met: Counter[HiddenKind | None] = Counter()

    def meet(self, node: Node) -> None:
        """Assign the next name to a variable or a parameter that is met for the first time."""
        match node:
            case Hidden() if node not in self.variables:
                for place in node.of:
                    if isinstance(place, Variable):
                        self.meet(place)
                self.variables[node] = self._renumbered(node)
            case Variable() if node not in self.variables:
                self._met[None] += 1
                self.variables[node] = Variable(f"v{self._met[None]}")
            case Parameter(name) if name not in self.parameters:
                self.parameters[name] = Parameter(str(len(self.parameters) + 1))

    def _renumbered(self, hidden: Hidden) -> Hidden:
        number, of = self._met[hidden.kind], tuple(map(self._place, hidden.of))
        if "{number}" not in hidden.kind.value:
            return Hidden(hidden.kind, of=of)
        self._met[hidden.kind] += 1
        return Hidden(hidden.kind, number, of)

    def _place(self, place: VarOrTerm) -> VarOrTerm:
        return self.variables[place] if isinstance(place, Variable) else place

    def renamed(self, node: Node, parts: list[Node]) -> Node:
        """Return a node with new names, over parts that have them."""
        match node:
            case Variable():
                return self.variables[node]
            case Parameter(name):
                return self.parameters[name]
        if any(one is not other for one, other in zip(node.parts(), parts, strict=True)):
            node = node.with_parts(tuple(parts))
        if isinstance(node, Window) and node.name is not None:
            values = {name: node.__dict__[name] for name in node.field_names}
            node = type(node)(**{**values, "name": None})
        return node
