"""Mappings: any table as a source, its triples made by a SPARQL CONSTRUCT over the columns.

    PREFIX ssn: <http://purl.oclc.org/NET/ssnx/ssn#>
    CONSTRUCT { ?o a ssn:Observation ; ssn:observedBy ?STREAM ; :value ?speed }
    WHERE { BIND(IRI(CONCAT("http://ex.org/observation/", ?_id)) AS ?o)
            BIND(xsd:integer(?avgSpeed) AS ?speed)
            BIND(?TIMESTAMP AS ?timestamp) }

Each row of the table is one solution at the beginning of the WHERE clause, as the tool Tarql has
it. So the clause means what SPARQL says of `{ VALUES (?column ..) { (cell ..) } .. }`, and is
computed like any other: rows become columns of term ids, many at once, our own translator makes the
plan, and our own operators compute it. The template is filled in by arrays. docs/sources.md tells
users what there is to know.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from streamsparql.algebra import filter as conditions
from streamsparql.algebra import graph, join, shape
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Variable
from streamsparql.errors import QueryError, SourceError
from streamsparql.sources.separated import letters
from streamsparql.translator.parse import parse
from streamsparql.translator.syntax import SubSelect
from streamsparql.translator.translate import translate

ROWNUM, STREAM, FILE = "ROWNUM", "STREAM", "FILE"
"""What is bound beside the columns."""
ROW = "streamsparql_row"
"""The variable that tells rows apart, so that it is known which row a solution came of."""
TABLE = "streamsparql_table"
"""The variable that tells tables apart, so that UUID() of a row is that of no row elsewhere."""

_STAMPS = (("timestamp",), ("t",), ("start", "end"))
_NAMED = frozenset(name for names in _STAMPS for name in names)
_VARIABLE = re.compile(r"[?$](\w+)")
_ROW_BY_ROW = (
    *(shape.Table, shape.Extend, shape.Number, shape.Projection, shape.Reduced),
    *(conditions.Filter, join.Join, join.LeftJoin, join.Minus, join.Union),
)
"""What needs no more than a row at a time."""


@dataclass(frozen=True, eq=False)
class Mapped:
    """A table and the mapping that makes triples of its rows: a source. Made by `mapped`."""

    source: Any
    mapping: str = field(repr=False)
    header: bool = True
    delimiter: str | None = None
    now: int = field(default_factory=lambda: time.time_ns() // 1_000_000, repr=False)
    """What NOW() is, in milliseconds: when the source was made, wherever it is read."""

    def over(self, source: Any) -> Mapped:
        """The same mapping of another table."""
        return replace(self, source=source)


def mapped(
    source: Any,
    mapping: str | os.PathLike[str],
    *,
    header: bool = True,
    delimiter: str | None = None,
) -> Mapped:
    """A table of any kind as a source of triples, which a SPARQL CONSTRUCT makes of its columns.

    `source` is a path, an open file or "-" of CSV, TSV, JSON lines or Parquet, packed or not, a
    folder or a list of such files, or a table that speaks Arrow's protocol. `mapping` is the text
    of the CONSTRUCT, or the path of a file with it that ends in `.rq`. Without a `header` the
    columns of CSV are ?a, ?b, ?c and so on. `delimiter` separates the values of CSV; without one
    the first line tells it.

    The value of ?timestamp or ?t, a column or bound by the mapping, is the timestamp of a row's
    triples; with ?start and ?end they are events. ?ROWNUM, ?STREAM and ?FILE are bound, too.

    >>> import io, streamsparql
    >>> table = io.StringIO("sensor,value,t\\nnorth,7,10\\nsouth,,20\\nnorth,9,30\\n")
    >>> source = mapped(table, '''
    ...     CONSTRUCT { ?s <value> ?v } WHERE { BIND(IRI(CONCAT("sensor/", ?sensor)) AS ?s)
    ...         BIND(<http://www.w3.org/2001/XMLSchema#integer>(?value) AS ?v) }''')
    >>> query = streamsparql.compile(
    ...     "SELECT ?s ?v FROM STREAM <s> WINDOW RANGE 5 MS SLIDE { ?s <value> ?v }")
    >>> [(str(row["s"]), int(row["v"]), row.start) for row in query.run(source)]
    [('sensor/north', 7, 10), ('sensor/north', 9, 30)]
    """
    if isinstance(source, Mapped):
        raise SourceError("the source of a mapping is a table, not a mapping")
    text = os.fspath(mapping)
    if text.endswith(".rq") and "{" not in text:
        try:
            with open(text, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"the mapping {text} cannot be read: {error}") from error
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii()):
        raise SourceError(f"a delimiter is one character, such as ; or a tab, not {delimiter!r}")
    _checked(text)
    return Mapped(source, text, header, delimiter)


def _checked(text: str) -> None:
    """An error where a text is no mapping of any table."""
    translation = translate(text, "streaming")
    if translation.form != "construct":
        raise SourceError(f"a mapping is a CONSTRUCT, not a {translation.form.upper()}")
    if translation.syntax.sources:
        raise SourceError("a mapping has no FROM: its table is given beside it")
    where = translation.syntax.where
    assert where is not None
    if not text.startswith("{", where.span.start):
        raise SourceError("a mapping has a template and a WHERE: CONSTRUCT { .. } WHERE { .. }")
    _row_by_row(translation.plan)
    if any(isinstance(element, SubSelect) for element in where.elements):
        raise SourceError("a mapping's WHERE is no SELECT, which would not see the columns")


def _row_by_row(plan: Plan) -> None:
    for node in plan.walk():
        if isinstance(node, Plan) and not isinstance(node, (*_ROW_BY_ROW, graph.Construct)):
            what = _WORDS.get(type(node).__name__, type(node).__name__)
            raise SourceError(
                f"a mapping takes each row by itself, and has no {what}: it is made of BIND,"
                " FILTER, OPTIONAL, UNION, MINUS and VALUES"
            )


_WORDS = {
    "TriplePatternMatching": "triple patterns in its WHERE",
    "Slice": "LIMIT or OFFSET",
    "OrderBy": "ORDER BY",
    "Distinct": "DISTINCT",
    "Aggregation": "GROUP BY or aggregates",
}


def columns_of(names: Sequence[str], table: str) -> dict[str, str]:
    """The columns of a table by their variables.

    What cannot be in a variable's name becomes `_`; a column without a name has a letter.

    >>> columns_of(["wind speed (m/s)", "_id", ""], "table")
    {'wind_speed__m_s_': 'wind speed (m/s)', '_id': '_id', 'c': ''}
    """
    found: dict[str, str] = {}
    for k, name in enumerate(names):
        variable = variable_of(name) or letters(k)
        if variable in found:
            raise SourceError(f"{table}: two columns are ?{variable}: {found[variable]}, {name}")
        found[variable] = name
    return found


def variable_of(name: str) -> str:
    """The variable that a column is: what cannot be in its name becomes `_`.

    >>> variable_of("wind speed (m/s)"), variable_of("?x")
    ('wind_speed__m_s_', 'x')
    """
    return re.sub(r"\W", "_", name.strip().lstrip("?$"))


class UnknownColumn(SourceError):
    """A mapping that reads a column which the table has not."""


@dataclass(frozen=True, eq=False)
class Rules:
    """A mapping over the columns of one table, ready to be computed."""

    plan: Plan
    """What solutions there are."""
    table: shape.Table
    """The node that the rows take the place of."""
    template: tuple[TriplePattern, ...]
    used: tuple[str, ...]
    """The variables of the columns that it reads."""
    beside: tuple[str, ...]
    """Those of ROWNUM, STREAM and FILE."""
    stamps: tuple[str, ...]
    """The variables that tell the time: one, or start and end; none of a graph."""
    repeats: bool
    """Whether two triples of the template may be the same one."""


def _repeats(template: Sequence[TriplePattern]) -> bool:
    """Whether two of the patterns differ in nothing but variables."""
    return any(
        all(x == y or isinstance(x, Variable) or isinstance(y, Variable) for x, y in both)
        for one, other in combinations(template, 2)
        for both in [list(zip(one, other, strict=True))]
    )


def rules_of(
    text: str, columns: Sequence[str], table: str, timed: bool, more: bool = False
) -> Rules:
    """A mapping over these columns, by their variables.

    Where there may be `more` columns, what the mapping does not bind itself is one.

    >>> text = "CONSTRUCT { ?x <p> ?t } { BIND(IRI(?x1) AS ?x) }"
    >>> rules_of(text, ["x1", "t", "u"], "a.csv", True).used
    ('x1', 't')
    >>> rules_of("CONSTRUCT { ?x <p> ?y } {}", ["x", "t"], "a", True)
    Traceback (most recent call last):
    streamsparql.sources.mapping.UnknownColumn: a has no column for ?y of the mapping: it has ?x ?t
    """
    mentioned = set(_VARIABLE.findall(text))
    used = [v for v in columns if v in mentioned or (timed and v.lower() in _NAMED)]
    beside = [v for v in (ROWNUM, STREAM, FILE) if v in mentioned and v not in columns]
    given = [*used, *beside, ROW, TABLE]
    start = parse(text).where
    assert start is not None
    at = start.span.start + 1
    names, cells = " ".join(f"?{v}" for v in given), " ".join("UNDEF" for _ in given)
    try:
        plan = translate(
            f"{text[:at]} VALUES ({names}) {{ ({cells}) }} {text[at:]}", "streaming"
        ).plan
    except QueryError as error:
        raise SourceError(f"{table}, its mapping: {error.message}") from error
    assert isinstance(plan, graph.Construct)
    marker = next(
        node
        for node in plan.walk()
        if isinstance(node, shape.Table) and Variable(ROW) in node.variables
    )
    unknown = [v for v in dict.fromkeys(_unbound(plan)) if v not in columns]
    if unknown and more:
        return rules_of(text, [*columns, *unknown], table, timed, more)
    if unknown:
        listed = " ".join(f"?{v}" for v in columns) or "none"
        raise UnknownColumn(
            f"{table} has no column for ?{unknown[0]} of the mapping: it has {listed}"
        )
    possible = [v.name for v in scope(plan.input).possible]
    stamps = _stamps(possible, columns) if timed else ()
    if timed and not stamps and more and "timestamp" not in columns:
        return rules_of(text, [*columns, "timestamp"], table, timed, more)
    if timed and not stamps:
        raise SourceError(
            f"{table}: the mapping gives no timestamp: BIND one as ?timestamp (or ?start and ?end)"
        )
    repeats = _repeats(plan.template)
    return Rules(plan.input, marker, plan.template, tuple(used), tuple(beside), stamps, repeats)


def _unbound(plan: Plan) -> Iterator[str]:
    """The variables that nothing binds."""
    bound = {v for node in plan.walk() if isinstance(node, Plan) for v in scope(node).possible}
    for node in plan.walk():
        if isinstance(node, Variable) and node not in bound and not node.hidden:
            yield node.name


def _stamps(possible: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """What tells the time: what the mapping binds before what the table has."""
    made = [v for v in possible if v not in columns]
    lower = {v.lower(): v for v in reversed(possible) if v in columns}
    for offered in ({v: v for v in made}, {v: v for v in possible}, lower):
        for names in _STAMPS:
            if all(name in offered for name in names):
                return tuple(offered[name] for name in names)
    return ()
