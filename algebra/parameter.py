"""Parameters: constants of a query whose values are known later, one value per instance of it.

A parameter stands wherever a constant may stand: in patterns and templates, at the ends of paths,
in VALUES and in expressions. A plan with parameters denotes one plan for each assignment of terms
to them: the plan in which each is replaced by its term (`sharing.bind`). So rules may not assume
anything of a parameter but that it is the same term in all rows.

Definitions never see parameters. So where a plan has terms, a parameter is declared as a term
(`as_term`), and only sharing, lowering and displays distinguish the two.
"""

from __future__ import annotations

from typing import Any

from streamsparql.algebra.node import Node
from streamsparql.algebra.solutions import Expression
from streamsparql.algebra.terms import Term


class Parameter(Expression):
    """A constant whose value is known later: `$name`.

    >>> Parameter("person")
    $person
    """

    name: str

    def __repr__(self) -> str:
        return f"${self.name}"

    __str__ = __repr__


def as_term(parameter: Parameter) -> Term:
    """Return a parameter for a place that is declared as a term."""
    term: Any = parameter
    return term  # type: ignore[no-any-return]


def as_parameter(place: object) -> Parameter | None:
    """Return what is at a place that is declared as a term; None if that is not a parameter.

    >>> as_parameter(as_term(Parameter("person"))), as_parameter("a term")
    ($person, None)
    """
    return place if isinstance(place, Parameter) else None


def parameters_in(node: Node) -> frozenset[str]:
    """Return the names of the parameters of a plan or an expression.

    >>> from streamsparql.algebra.expressions import Call
    >>> parameters_in(Call("+", (Parameter("x"), Parameter("x"))))
    frozenset({'x'})
    """
    return node.fold(_parameters_in, keep="_parameters")


def _parameters_in(node: Node, parts: list[frozenset[str]]) -> frozenset[str]:
    if isinstance(node, Parameter):
        return frozenset((node.name,))
    return parts[0] if len(parts) == 1 else _NONE.union(*parts)


_NONE: frozenset[str] = frozenset()
