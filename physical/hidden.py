"""Hidden columns: the names that plans give to what is no variable of a query.

A query's variables are words. The names here begin with a dot, which no query can write, and after
it with a word of their own, so that no two meanings collide. The translator has hidden variables
too: a dot, one letter, and a number (`.b0` a blank node, `.e0` an EXISTS, `.t ?x` a stamp).

What begins with `.t` is a stamp and nothing else may: stamps are left out of what makes rows
compatible, and merge by `max`. What begins with `..` is carried along (lower_exists.py): joined on
like a variable, though it is none. Columns that never leave an operator are named beside it.
"""

from __future__ import annotations

STAMP = ".t"
"""How the names of stamps begin: of variables, as the translator has it, and of triples."""

_OF_TRIPLE = STAMP + " of "

CARRIED = ".."
"""How the names of columns begin that a pattern carries of the outer rows that ask for it."""

FROM, TO, VIA = ".way from", ".way to", ".way via"
"""The ends of a way along a property path, and where its two parts meet."""

NUMBER = ".number"
"""What tells equal rows apart below CONSTRUCT."""

ANSWER = ".answer"
"""What ASK says."""

_KEY, _TIE, _ARGUMENT = ".key ", ".by ", ".argument "


def stamp_column(stream: str) -> str:
    """The stamp of a triple on a stream.

    >>> stamp_column("s"), is_stamp(stamp_column("s"))
    ('.t of s', True)
    """
    return _OF_TRIPLE + stream


def is_stamp(name: str) -> bool:
    """Whether a column carries timestamp(), of a triple or of a variable."""
    return name.startswith(STAMP)


def is_triple_stamp(name: str) -> bool:
    """Whether a column is the stamp of a triple on some stream."""
    return name.startswith(_OF_TRIPLE)


def outer_column(asking: int, name: str = "") -> str:
    """The number of the outer row that asks, or with a name the value of a variable in it.

    >>> outer_column(1), outer_column(1, "x")
    ('..row 1', '..row 1 x')
    """
    return f"{CARRIED}row {asking}" + (f" {name}" if name else "")


def asked_column(name: str) -> str:
    """A copy of a variable that a leaf compares with the outer row's."""
    return f"{CARRIED}asked {name}"


def sorting_column(place: int) -> str:
    """The values of the key of ORDER BY at this place."""
    return f"{_KEY}{place}"


def tie_column(name: str) -> str:
    """A copy of a variable, which breaks ties of ORDER BY."""
    return f"{_TIE}{name}"


def argument_column(place: int) -> str:
    """The values of an aggregate's argument."""
    return f"{_ARGUMENT}{place}"


def in_solution(name: str) -> bool:
    """Whether a column is part of solutions: neither carried, nor a stamp, nor there for an order.

    >>> [in_solution(name) for name in ("x", ".b0", tie_column("x"), outer_column(1))]
    [True, True, False, False]
    """
    return not name.startswith((STAMP, CARRIED, _KEY, _TIE))
