"""Hidden variables: those that plans bind and read in addition to the variables of a query.

A hidden variable represents a blank node of a pattern, an aggregate, a timestamp, ... Its fields
identify that. Its name is derived from the fields: plans print it and order columns by it, and it
is the column's name in batches. It starts with a dot, unlike the names of a query's variables.
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
"""A place of a triple pattern (SPARQL 1.1, rule VarOrTerm)."""


class HiddenKind(Enum):
    """The kinds of hidden variables. The value of a kind is the format of its variables' names.

    A format may use the variable's `number` and its places `of`: all places in N-Triples syntax
    (`of`), or only the `name` or the `iri` of the first place.
    """

    @property
    def is_stamp(self) -> bool:
        """Whether the variable is the time of a stream element, which joins do not compare."""
        return False

    def column(self, number: int, of: tuple[VarOrTerm, ...]) -> str:
        """Return the name of a variable of this kind, which is its column's name."""
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
    """A blank node of a pattern, or the node between two parts of a path."""
    AGGREGATE = ".a{number}"
    """The value of an aggregate without a name."""
    PART = ".part{number}"
    """The value of an aggregate over a part of a group."""
    WHOLE = ".whole{number}"
    """The combined value of the parts, of which an aggregate is computed."""
    KEY = ".k{number}"
    """The value of a GROUP BY expression without a name."""
    EXISTS = ".e{number}"
    """The result of an EXISTS."""
    ROW = ".n{number}"
    """The number of a row among equal rows; `number` is that of the volatile call."""
    LEFT_ROW = ".n{number} left"
    """The number of a left row of an OPTIONAL among equal rows."""
    RIGHT_ROW = ".n{number} right"
    """The number of a right row of an OPTIONAL among equal rows."""
    STAMP = ".t {of}"
    """The arguments of `timestamp`: a variable, a variable and a stream, or a triple."""
    START = ".start"
    """The start of an event: getSTARTTIME()."""
    END = ".end"
    """The end of an event: getENDTIME()."""
    DURATION = ".duration"
    """The duration of an event: getDURATION()."""

    @property
    @override
    def is_stamp(self) -> bool:
        return self is PlanKind.STAMP


class Hidden(Variable):
    """A variable that a query cannot name.

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
        """Return (): an expression that reads the variable does not read the places in `of`."""
        return ()

    @override
    def with_parts(self, parts: tuple[Node, ...]) -> Self:
        return self
