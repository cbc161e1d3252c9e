"""Hidden variables: what plans bind and read beside the variables that a query names.

A hidden variable stands for something: a blank node of a pattern, an aggregate, a timestamp. Its
fields state what. Its name is derived from the fields: plans print it and order columns by it, and
batches have it as the name of the column. It starts with a dot, which no written variable can.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import Self

from streamsparql.algebra.node import Node
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, Term
from streamsparql.overriding import override

VarOrTerm = Variable | Term
"""What stands at a place of a triple pattern (SPARQL 1.1, rule VarOrTerm)."""


class HiddenKind(Enum):
    """What hidden variables stand for. The value of a kind is the form of its names.

    A form has the `number` of a variable, and what it is `of`: its places as N-Triples writes them,
    or the `name` of the variable, or the `iri`, that it is of, bare.
    """

    @property
    def is_stamp(self) -> bool:
        """Whether it is the time of a stream element, which is no part of a solution."""
        return False

    def column(self, number: int, of: tuple[VarOrTerm, ...]) -> str:
        """Return the name of a variable of this kind."""
        first = of[0] if of else None
        return str(self.value).format(
            number=number,
            of=" ".join(map(str, of)),
            name=first.name if isinstance(first, Variable) else "",
            iri=first.value if isinstance(first, IRI) else "",
        )


class PlanKind(HiddenKind):
    """The kinds of hidden variables in plans."""

    BLANK = ".b{number}"
    """A blank node of a pattern, or where two parts of a path meet."""
    AGGREGATE = ".a{number}"
    """The value of an aggregate that has no name."""
    KEY = ".k{number}"
    """The value of an expression of GROUP BY that has no name."""
    EXISTS = ".e{number}"
    """The answer of an EXISTS."""
    ROW = ".n{number}"
    """The number of a row among equal ones; its own number is that of the volatile call."""
    LEFT_ROW = ".n{number} left"
    """The same, of the left rows of an OPTIONAL."""
    RIGHT_ROW = ".n{number} right"
    """The same, of the right rows of an OPTIONAL."""
    STAMP = ".t {of}"
    """The arguments of `timestamp`: a variable, a variable and a stream, or a triple."""
    START = ".start"
    """When an event started: getSTARTTIME()."""
    END = ".end"
    """When an event ended: getENDTIME()."""
    DURATION = ".duration"
    """How long an event took: getDURATION()."""

    @property
    @override
    def is_stamp(self) -> bool:
        return self is PlanKind.STAMP


class Hidden(Variable):
    """A variable that no query can write.

    >>> mark, stamp = Hidden(PlanKind.EXISTS, 2), Hidden(PlanKind.STAMP, of=(Variable("x"),))
    >>> mark, stamp, mark.number, stamp.of, stamp.stamp
    (?.e2, ?.t ?x, 2, (?x,), True)
    """

    name: str = field(default="", init=False)
    kind: HiddenKind
    number: int = 0
    of: tuple[VarOrTerm, ...] = ()

    @override
    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.kind.column(self.number, self.of))

    @property
    @override
    def hidden(self) -> bool:
        return True

    @property
    @override
    def stamp(self) -> bool:
        return self.kind.is_stamp

    @override
    def parts(self) -> tuple[Node, ...]:
        """None: an expression that reads it does not read what it is of."""
        return ()

    @override
    def with_parts(self, parts: tuple[Node, ...]) -> Self:
        return self
