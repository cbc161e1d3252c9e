"""Mappings: any table as a source; a SPARQL CONSTRUCT over its columns produces the triples.

    PREFIX ssn: <http://purl.oclc.org/NET/ssnx/ssn#>
    CONSTRUCT { ?o a ssn:Observation ; ssn:observedBy ?STREAM ; :value ?speed }
    WHERE { BIND(IRI(CONCAT("http://ex.org/observation/", ?_id)) AS ?o)
            BIND(xsd:integer(?avgSpeed) AS ?speed)
            BIND(?TIMESTAMP AS ?timestamp) }

Each row of the table is one solution at the beginning of the WHERE clause, as in the tool Tarql. So
the clause means the same as `{ VALUES (?column ..) { (cell ..) } .. }` in SPARQL, and is evaluated
like any other: rows become columns of term ids, in batches, the translator creates the plan, and
the engine's operators evaluate it. The template is filled in by arrays. docs/sources.md documents
mappings for users.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
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
"""The variables that are bound in addition to the columns."""
ROW_VARIABLE = "streamsparql_row"
"""The variable that tells rows apart: it maps each solution to its row."""
TABLE_VARIABLE = "streamsparql_table"
"""The variable that tells tables apart: UUID() of a row differs from that of any row elsewhere."""

_STAMPS = (("timestamp",), ("t",), ("start", "end"))
_NAMED = frozenset(name for names in _STAMPS for name in names)
_VARIABLE = re.compile(r"[?$](\w+)")
_ROW_BY_ROW = (
    *(shape.Table, shape.Extend, shape.Number, shape.Projection, shape.Reduced),
    *(conditions.Filter, join.Join, join.LeftJoin, join.Minus, join.Union),
)
"""The plan nodes that read one row at a time."""


@dataclass(frozen=True, eq=False)
class Mapped:
    """A source: a table, and the mapping of its rows to triples. `mapped` returns it."""

    source: Any
    mapping: str = field(repr=False)
    header: bool = True
    delimiter: str | None = None
    now: int = field(default_factory=lambda: time.time_ns() // 1_000_000, repr=False)
    """The value of NOW(), in milliseconds: when the source was created."""
    reading: int = field(default=0, repr=False)
    """The number of mapped tables of the stream that were read before, whose new terms differ."""

    def over(self, source: Any) -> Mapped:
        """Return the same mapping of another table."""
        return replace(self, source=source)

    def after(self, reading: int) -> Mapped:
        """Return the same source, read after this number of other tables of its stream."""
        return replace(self, reading=reading)


def mapped(
    source: Any,
    mapping: str | os.PathLike[str],
    *,
    header: bool = True,
    delimiter: str | None = None,
) -> Mapped:
    """Return a source of triples, which a SPARQL CONSTRUCT produces from a table.

    `source` is a path, an open file or "-" of CSV, TSV, JSON lines or Parquet, compressed or not, a
    folder or a list of such files, or a table that implements Arrow's protocol. `mapping` is the
    text of the CONSTRUCT, or the path of a file that contains it and ends in `.rq`. Without a
    `header` the columns of CSV are ?a, ?b, ?c and so on. `delimiter` separates the values of CSV;
    by default it is detected from the first line.

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
        raise SourceError("the source of a mapping must be a table, not a mapping")
    text = os.fspath(mapping)
    if text.endswith(".rq") and "{" not in text:
        try:
            with open(text, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"the mapping {text} cannot be read: {error}") from error
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii()):
        raise SourceError(
            f"a delimiter must be one ASCII character, such as ; or a tab, not {delimiter!r}"
        )
    _check_mapping(text)
    return Mapped(source, text, header, delimiter)


def _check_mapping(text: str) -> None:
    """Raise an error for a text that is not a mapping of any table."""
    translation = translate(text, "streaming")
    if translation.form != "construct":
        raise SourceError(f"a mapping must be a CONSTRUCT, not a {translation.form.upper()}")
    if translation.syntax.sources:
        raise SourceError("a mapping cannot have FROM: its table is a separate argument")
    where = translation.syntax.where
    assert where is not None
    if not text.startswith("{", where.span.start):
        raise SourceError("a mapping needs a template and a WHERE: CONSTRUCT { .. } WHERE { .. }")
    _check_row_by_row(translation.plan)
    if any(isinstance(element, SubSelect) for element in where.elements):
        raise SourceError("a mapping's WHERE cannot be a SELECT, which would not see the columns")


def _check_row_by_row(plan: Plan) -> None:
    for node in plan.walk():
        if isinstance(node, Plan) and not isinstance(node, (*_ROW_BY_ROW, graph.Construct)):
            construct = _CONSTRUCTS.get(type(node).__name__, type(node).__name__)
            raise SourceError(
                f"a mapping reads one row at a time and cannot use {construct}; it can use BIND,"
                " FILTER, OPTIONAL, UNION, MINUS and VALUES"
            )


_CONSTRUCTS = {
    "TriplePatternMatching": "triple patterns in its WHERE",
    "Slice": "LIMIT or OFFSET",
    "OrderBy": "ORDER BY",
    "Distinct": "DISTINCT",
    "Aggregation": "GROUP BY or aggregates",
}


def columns_by_variable(names: Sequence[str], table: str) -> dict[str, str]:
    """Return the columns of a table by their variables.

    Characters that a variable cannot contain become `_`; an unnamed column is named by a letter.

    >>> columns_by_variable(["wind speed (m/s)", "_id", ""], "table")
    {'wind_speed__m_s_': 'wind speed (m/s)', '_id': '_id', 'c': ''}
    """
    columns: dict[str, str] = {}
    for k, name in enumerate(names):
        variable = variable_of_column(name) or letters(k)
        if variable in columns:
            raise SourceError(
                f"{table}: the columns {columns[variable]} and {name} are both ?{variable}"
            )
        columns[variable] = name
    return columns


def variable_of_column(name: str) -> str:
    """Return the variable of a column: characters that it cannot contain become `_`.

    >>> variable_of_column("wind speed (m/s)"), variable_of_column("?x")
    ('wind_speed__m_s_', 'x')
    """
    return re.sub(r"\W", "_", name.strip().lstrip("?$"))


class ReadKeys:
    """The keys of JSON objects that a mapping reads, and those that an object had, of all files.

    An object may lack a key, whose variable is then unbound: only a key that all lack is suspect.

    >>> keys = ReadKeys()
    >>> keys.add("x.jsonl", ["avgSped", "count"], ["avgSpeed"])
    >>> keys.found("count")
    >>> keys.warning()
    'x.jsonl: no object has the key avgSped, which the mapping reads; the first has avgSpeed'
    """

    def __init__(self) -> None:
        self._missing: dict[str, None] = {}
        self._found: set[str] = set()
        self._table, self._first = "", ""

    def add(self, table: str, missing: Iterable[str], first: Sequence[str]) -> None:
        """Note the variables that the first object of a table lacks, and the keys that it has."""
        self._missing.update(dict.fromkeys(missing))
        if not self._table:
            self._table = table
            self._first = ", ".join(first[:_MOST_KEYS]) + ", .." * (len(first) > _MOST_KEYS)
        self._found.update(map(variable_of_column, first))

    def found(self, variable: str) -> None:
        """Note that an object has the key of a variable."""
        self._found.add(variable)

    def warning(self) -> str:
        """Return a message about the keys that no object had; empty without any."""
        missing = [name for name in self._missing if name not in self._found]
        if not missing:
            return ""
        keys = "keys" if len(missing) > 1 else "key"
        return (
            f"{self._table}: no object has the {keys} {', '.join(missing)}, which the mapping"
            f" reads; the first has {self._first or 'none'}"
        )


_MOST_KEYS = 20


class UnknownColumn(SourceError):
    """Raised for a mapping that reads a column which the table lacks."""


@dataclass(frozen=True, eq=False)
class CompiledMapping:
    """A mapping over the columns of one table, ready to be evaluated."""

    plan: Plan
    """The plan of the WHERE clause."""
    table: shape.Table
    """The node that the rows replace."""
    template: tuple[TriplePattern, ...]
    used: tuple[str, ...]
    """The variables of the columns that it reads."""
    extra: tuple[str, ...]
    """Those of ROWNUM, STREAM and FILE that it reads."""
    stamps: tuple[str, ...]
    """The variables of the timestamps: one, or start and end; empty for a graph."""
    repeats: bool
    """Whether two triples of the template may be equal."""


def _repeats(template: Sequence[TriplePattern]) -> bool:
    """Return whether two of the patterns differ only in variables."""
    return any(
        all(x == y or isinstance(x, Variable) or isinstance(y, Variable) for x, y in both)
        for one, other in combinations(template, 2)
        for both in [list(zip(one, other, strict=True))]
    )


def compile_mapping(
    text: str, columns: Sequence[str], table: str, timed: bool, more: bool = False
) -> CompiledMapping:
    """Compile a mapping over these columns, which are passed by their variables.

    If there may be `more` columns, each variable that the mapping does not bind is one.

    >>> text = "CONSTRUCT { ?x <p> ?t } { BIND(IRI(?x1) AS ?x) }"
    >>> compile_mapping(text, ["x1", "t", "u"], "a.csv", True).used
    ('x1', 't')
    >>> compile_mapping("CONSTRUCT { ?x <p> ?y } {}", ["x", "t"], "a", True)
    Traceback (most recent call last):
    streamsparql.sources.mapping.UnknownColumn: a: unknown column ?y in the mapping; it has ?x ?t
    """
    mentioned = set(_VARIABLE.findall(text))
    used = [v for v in columns if v in mentioned or (timed and v.lower() in _NAMED)]
    extra = [v for v in (ROWNUM, STREAM, FILE) if v in mentioned and v not in columns]
    variables = [*used, *extra, ROW_VARIABLE, TABLE_VARIABLE]
    start = parse(text).where
    assert start is not None
    at = start.span.start + 1
    names = " ".join(f"?{v}" for v in variables)
    cells = " ".join("UNDEF" for _ in variables)
    try:
        plan = translate(
            f"{text[:at]} VALUES ({names}) {{ ({cells}) }} {text[at:]}", "streaming"
        ).plan
    except QueryError as error:
        raise SourceError(f"{table}: error in its mapping: {error.message}") from error
    assert isinstance(plan, graph.Construct)
    marker = next(
        node
        for node in plan.walk()
        if isinstance(node, shape.Table) and Variable(ROW_VARIABLE) in node.variables
    )
    unknown = [v for v in dict.fromkeys(_unbound(plan)) if v not in columns]
    if unknown and more:
        return compile_mapping(text, [*columns, *unknown], table, timed, more)
    if unknown:
        listed = " ".join(f"?{v}" for v in columns) or "no columns"
        raise UnknownColumn(
            f"{table}: unknown column ?{unknown[0]} in the mapping; it has {listed}"
        )
    possible = [v.name for v in scope(plan.input).possible]
    stamps = _stamp_variables(possible, columns) if timed else ()
    if timed and not stamps and more and "timestamp" not in columns:
        return compile_mapping(text, [*columns, "timestamp"], table, timed, more)
    if timed and not stamps:
        raise SourceError(
            f"{table}: missing timestamp in the mapping; BIND ?timestamp, or ?start and ?end"
        )
    repeats = _repeats(plan.template)
    return CompiledMapping(
        plan.input, marker, plan.template, tuple(used), tuple(extra), stamps, repeats
    )


def _unbound(plan: Plan) -> Iterator[str]:
    """Yield the variables that are read and never bound."""
    bound = {v for node in plan.walk() if isinstance(node, Plan) for v in scope(node).possible}
    for node in plan.walk():
        if isinstance(node, Variable) and node not in bound and not node.hidden:
            yield node.name


def _stamp_variables(possible: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the variables of the timestamps; those that the mapping binds take precedence."""
    bound = [v for v in possible if v not in columns]
    lower = {v.lower(): v for v in reversed(possible) if v in columns}
    for candidates in ({v: v for v in bound}, {v: v for v in possible}, lower):
        for names in _STAMPS:
            if all(name in candidates for name in names):
                return tuple(candidates[name] for name in names)
    return ()
