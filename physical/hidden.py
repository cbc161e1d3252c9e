"""Hidden columns: those of the hidden variables of a plan, and those that only operators have.

Columns are identified by name. `Hidden.name` writes the name of a column, `variable_of` parses it;
the other functions refer to kinds. Columns with numbers that only a structure interprets, instead
of term ids, have names that begin with `#` (state/parts.py).

*Carried* columns have values of outer rows (lower_exists.py) or of queries that share a plan
(lower_parameters.py): rows are joined on them like on variables.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from streamsparql.algebra.hidden_variables import Hidden, HiddenKind, PlanKind, VarOrTerm
from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.overriding import override


class ColumnKind(HiddenKind):
    """The kinds of hidden columns that only operators have."""

    ARRIVAL = ".t of {iri}"
    """The stamp of a triple on a stream."""
    SINCE = ".since"
    """The start of an event (kernels/occurrences.py)."""
    OUTER_ROW = "..row {number}"
    """The number of the outer row of an EXISTS."""
    OUTER_VALUE = "..row {number} {name}"
    """The value of a variable in the outer row of an EXISTS."""
    ASKED = "..asked {name}"
    """A copy of a variable that a leaf compares with the outer row's."""
    QUERY = "..query"
    """The number of the query, of many that share a plan, that a row belongs to."""
    PARAMETER = "..query {name}"
    """The value of a parameter of the query that a row belongs to."""
    PLACE = ".parameter {name}"
    """The term at the place of a parameter in a pattern."""
    SORT_KEY = ".key {number}"
    """The values of the key of ORDER BY at a place."""
    TIE = ".by {name}"
    """A copy of a variable, which breaks ties of ORDER BY."""
    ARGUMENT = ".argument {number}"
    """The values of an aggregate's argument."""
    WAY_FROM = ".way from"
    """Where a way along a property path begins."""
    WAY_TO = ".way to"
    """Where a way along a property path ends."""
    WAY_VIA = ".way via"
    """Where the two parts of a way meet."""
    NUMBER = ".number"
    """The number that distinguishes equal rows below CONSTRUCT."""
    ANSWER = ".answer"
    """The answer of ASK."""
    PRIVATE = ".{name}"
    """A column that never leaves its operator."""

    @property
    @override
    def is_stamp(self) -> bool:
        return self is ColumnKind.ARRIVAL


_CARRIED = (
    ColumnKind.OUTER_ROW,
    ColumnKind.OUTER_VALUE,
    ColumnKind.ASKED,
    ColumnKind.QUERY,
    ColumnKind.PARAMETER,
)
_ORDERING = (ColumnKind.SORT_KEY, ColumnKind.TIE)

FROM, TO, VIA = (
    Hidden(kind).name for kind in (ColumnKind.WAY_FROM, ColumnKind.WAY_TO, ColumnKind.WAY_VIA)
)
NUMBER = Hidden(ColumnKind.NUMBER).name
SINCE = Hidden(ColumnKind.SINCE).name
ANSWER = Hidden(ColumnKind.ANSWER).name
QUERY = Hidden(ColumnKind.QUERY).name


# -- reading names ---------------------------------------------------------------------------------

_PLACE = re.compile(r'\?\S+|<[^>]*>|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^>]*>)?')
_FIELDS = {
    "number": r"\d+",
    "of": rf"(?:{_PLACE.pattern})(?: (?:{_PLACE.pattern}))*",
    "name": ".+",
    "iri": ".*",
}


@cache
def _pattern(kind: HiddenKind) -> re.Pattern[str]:
    """Return the pattern of the names of a kind."""
    parts = re.split(r"\{(\w+)\}", str(kind.value))
    written = (
        f"(?P<{part}>{_FIELDS[part]})" if k % 2 else re.escape(part) for k, part in enumerate(parts)
    )
    return re.compile("".join(written), re.DOTALL)


@lru_cache(maxsize=4096)
def variable_of(column: str) -> Variable:
    """Return the variable of a column.

    >>> variable_of("x"), variable_of(outer_column(1, ".b0")).of, variable_of(".slot").kind.name
    (?x, (?.b0,), 'PRIVATE')
    """
    if not column.startswith("."):
        return Variable(column)
    return next(
        Hidden(kind, int(match.groupdict().get("number", 0)), _places(match))
        for kind in (*PlanKind, *ColumnKind)
        if (match := _pattern(kind).fullmatch(column))
    )


def _places(match_of_name: re.Match[str]) -> tuple[VarOrTerm, ...]:
    match match_of_name.groupdict():
        case {"of": str(places)}:
            return tuple(map(_place, _PLACE.findall(places)))
        case {"name": str(name)}:
            return (variable_of(name),)
        case {"iri": str(iri)}:
            return (IRI(iri),)
    return ()


def _place(text: str) -> VarOrTerm:
    place = Variable(text[1:]) if text.startswith("?") else parse_term(text)
    assert place is not None, f"not a term: {text}"
    return place


def _kind(column: str) -> HiddenKind | None:
    """Return the kind of a hidden column; None for a variable that the query names."""
    variable = variable_of(column)
    return variable.kind if isinstance(variable, Hidden) else None


# -- the kinds of columns --------------------------------------------------------------------------


def is_hidden(column: str) -> bool:
    """Return whether a column is not a variable that the query names."""
    return column.startswith(".")


@lru_cache(maxsize=4096)
def is_stamp(column: str) -> bool:
    """Return whether a column has stamps, of triples or of a variable."""
    return variable_of(column).stamp


def is_time(column: str) -> bool:
    """Return whether a column has stamps, or the starts of events: joins do not compare these.

    >>> is_time(SINCE), is_time(stamp_column("s")), is_time("x")
    (True, True, False)
    """
    return column == SINCE or is_stamp(column)


def is_triple_stamp(column: str) -> bool:
    """Return whether a column has the stamps of triples on a stream."""
    return _kind(column) is ColumnKind.ARRIVAL


@lru_cache(maxsize=4096)
def is_carried(column: str) -> bool:
    """Return whether a column has values of outer rows."""
    return _kind(column) in _CARRIED


def in_solution(column: str) -> bool:
    """Return whether a column is part of solutions: not carried, not a time, not a sort key.

    >>> [in_solution(name) for name in ("x", ".b0", tie_column("x"), outer_column(1), SINCE)]
    [True, True, False, False, False]
    """
    return not is_time(column) and _kind(column) not in (*_CARRIED, *_ORDERING)


# -- the columns of operators ----------------------------------------------------------------------


def stamp_column(stream: str) -> str:
    """Return the column of the stamps of triples on a stream.

    >>> stamp_column("s"), is_stamp(stamp_column("s"))
    ('.t of s', True)
    """
    return Hidden(ColumnKind.ARRIVAL, of=(IRI(stream),)).name


def outer_column(number: int, name: str = "") -> str:
    """Return the column of the number of an outer row, or of one of its variables.

    >>> outer_column(1), outer_column(1, "x")
    ('..row 1', '..row 1 x')
    """
    if not name:
        return Hidden(ColumnKind.OUTER_ROW, number).name
    return Hidden(ColumnKind.OUTER_VALUE, number, (variable_of(name),)).name


def asked_column(name: str) -> str:
    """Return the column of a copy of a variable that a leaf compares with the outer row."""
    return Hidden(ColumnKind.ASKED, of=(variable_of(name),)).name


def parameter_column(name: str) -> str:
    """Return the carried column of the value of a parameter.

    >>> parameter_column("person"), place_variable("person").name
    ('..query person', '.parameter person')
    """
    return Hidden(ColumnKind.PARAMETER, of=(Variable(name),)).name


def place_variable(name: str) -> Hidden:
    """Return the variable that stands in a pattern for a parameter."""
    return Hidden(ColumnKind.PLACE, of=(Variable(name),))


def sorting_column(place: int) -> str:
    """Return the column of a key of ORDER BY, by its place."""
    return Hidden(ColumnKind.SORT_KEY, place).name


def tie_column(name: str) -> str:
    """Return the column of a copy of a variable, which breaks ties of ORDER BY."""
    return Hidden(ColumnKind.TIE, of=(variable_of(name),)).name


def argument_column(place: int) -> str:
    """Return the column of an argument of an aggregate, by its place."""
    return Hidden(ColumnKind.ARGUMENT, place).name
