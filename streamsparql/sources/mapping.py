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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

from streamsparql.algebra import filter as conditions
from streamsparql.algebra import graph, join, shape
from streamsparql.algebra.expressions import Call, Volatile
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.node import Node
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
    mapping: str | None = field(repr=False)
    """The text of the CONSTRUCT; None if it is guessed from the first rows that are read."""
    header: bool | None = True
    """Whether the first line of CSV has the columns; None: detected."""
    delimiter: str | None = None
    namespace: str | None = field(default=None, repr=False)
    """The namespace of the predicates of a mapping that is guessed."""
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
    mapping: str | os.PathLike[str] | None = None,
    *,
    header: bool | None = None,
    delimiter: str | None = None,
    namespace: str | None = None,
) -> Mapped:
    """Return a source of triples, which a SPARQL CONSTRUCT produces from a table.

    `source` is a path, an open file or "-" of CSV, TSV, JSON lines or Parquet, compressed or not, a
    folder or a list of such files, a table that implements Arrow's protocol, or an iterable of
    records: dicts, or texts of JSON objects. `mapping` is the text of the CONSTRUCT, or the path of
    a file that contains it and ends in `.rq`. Without it, the mapping is guessed from the first
    rows: one node per row, and a predicate per column, in `namespace` or one of the file's name.
    Without a `header` the columns of CSV are ?a, ?b, ?c and so on. `delimiter` separates the values
    of CSV; by default it is detected from the first line.

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
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii()):
        raise SourceError(
            f"a delimiter must be one ASCII character, such as ; or a tab, not {delimiter!r}"
        )
    if mapping is None:
        return _guessed(Mapped(source, None, header, delimiter, namespace))
    if namespace is not None:
        raise SourceError(
            "namespace applies to a mapping that is guessed, not to one that is passed"
        )
    text = os.fspath(mapping)
    if text.endswith(".rq") and "{" not in text:
        try:
            with open(text, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"the mapping {text} cannot be read: {error}") from error
    _check_mapping(text)
    return Mapped(source, text, header is not False, delimiter)


def _guessed(table: Mapped) -> Mapped:
    """Return a table with the mapping that its first rows show, if they can be read twice."""
    from streamsparql.sources.mapped_tables import guessed_table

    return guessed_table(table)


@lru_cache(maxsize=64)  # batches of records are mapped one by one
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
    return _NOT_IN_VARIABLES.sub("_", name.strip().lstrip("?$"))


_NOT_IN_VARIABLES = re.compile(
    "[^A-Za-z0-9_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff]"
)


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
    texts: tuple[str, ...]
    """The variables of the columns whose text it reads, as an argument of a string function."""
    prefixes: Mapping[str, str]
    """The prefixes that its text declares."""


def _repeats(template: Sequence[TriplePattern]) -> bool:
    """Return whether two of the patterns differ only in variables."""
    return any(
        all(x == y or isinstance(x, Variable) or isinstance(y, Variable) for x, y in both)
        for one, other in combinations(template, 2)
        for both in [list(zip(one, other, strict=True))]
    )


def compile_mapping(
    text: str,
    columns: Sequence[str],
    table: str,
    timed: bool,
    more: bool = False,
    stamp: str | None = None,
) -> CompiledMapping:
    """Compile a mapping over these columns, which are passed by their variables.

    If there may be `more` columns, each variable that the mapping does not bind is one. `stamp` is
    the variable of the timestamps; by default it is found by its name.

    >>> text = "CONSTRUCT { ?x <p> ?t } { BIND(IRI(?x1) AS ?x) }"
    >>> compile_mapping(text, ["x1", "t", "u"], "a.csv", True).used
    ('x1', 't')
    >>> compile_mapping("CONSTRUCT { ?x <p> ?y } {}", ["x", "t"], "a", True)
    Traceback (most recent call last):
    streamsparql.sources.mapping.UnknownColumn: a: unknown column ?y in the mapping; it has ?x ?t
    """
    try:
        return _compiled(text, tuple(columns), timed, more, stamp if timed else None)
    except SourceError as error:
        raise type(error)(f"{table}: {error}") from error.__cause__


@lru_cache(maxsize=64)  # an open query compiles it for each batch of records
def _compiled(
    text: str, columns: tuple[str, ...], timed: bool, more: bool, stamp: str | None
) -> CompiledMapping:
    mentioned = set(_VARIABLE.findall(text)) | ({stamp} if stamp else set())
    by_name = timed and stamp is None
    used = [v for v in columns if v in mentioned or (by_name and v.lower() in _NAMED)]
    extra = [v for v in (ROWNUM, STREAM, FILE) if v in mentioned and v not in columns]
    variables = [*used, *extra, ROW_VARIABLE, TABLE_VARIABLE]
    start = parse(text).where
    assert start is not None
    at = start.span.start + 1
    names = " ".join(f"?{v}" for v in variables)
    cells = " ".join("UNDEF" for _ in variables)
    try:
        translation = translate(
            f"{text[:at]} VALUES ({names}) {{ ({cells}) }} {text[at:]}", "streaming"
        )
    except QueryError as error:
        raise SourceError(f"error in its mapping: {error.message}") from error
    plan = translation.plan
    assert isinstance(plan, graph.Construct)
    marker = next(
        node
        for node in plan.walk()
        if isinstance(node, shape.Table) and Variable(ROW_VARIABLE) in node.variables
    )
    unknown = [v for v in dict.fromkeys(_unbound(plan)) if v not in columns]
    possible = [v.name for v in scope(plan.input).possible]
    if stamp and stamp not in possible:
        unknown.append(stamp)
    if unknown and more:
        return _compiled(text, (*columns, *unknown), timed, more, stamp)
    listed = " ".join(f"?{v}" for v in columns) or "no columns"
    if unknown:
        where = "stamp_from" if unknown[0] == stamp else "the mapping"
        raise UnknownColumn(f"unknown column ?{unknown[0]} in {where}; it has {listed}")
    if stamp:
        stamps: tuple[str, ...] = (stamp,)
    else:
        stamps = _stamp_variables(possible, columns) if timed else ()
    if timed and not stamps and more and "timestamp" not in columns:
        return _compiled(text, (*columns, "timestamp"), timed, more, stamp)
    if timed and not stamps:
        raise SourceError(
            "missing timestamp in the mapping; BIND ?timestamp, or ?start and ?end, or name a"
            f" column with stamp_from (--stamp-from); it has {listed}"
        )
    texts = _text_arguments(plan, used)
    table = shape.Table(
        (*marker.variables, *map(text_variable, texts)), ((None,) * (len(variables) + len(texts)),)
    )
    plan = plan.fold(partial(_with_texts, frozenset(texts), marker, table))
    assert isinstance(plan, graph.Construct)
    return CompiledMapping(
        plan.input,
        table,
        plan.template,
        tuple(used),
        tuple(extra),
        stamps,
        _repeats(plan.template),
        tuple(texts),
        translation.names.prefixes,
    )


def text_variable(column: str) -> Variable:
    """Return the variable of the texts of a column's cells; no query can name it.

    >>> text_variable("x")
    ?x (text)
    """
    return Variable(f"{column}{TEXT}")


TEXT = " (text)"
"""What the names of variables of texts end in."""

_STRING_ARGUMENTS = {
    **dict.fromkeys(("IRI", "URI", "STR", "STRDT", "STRLANG", "STRLEN", "SUBSTR", "REPLACE"), 1),
    **dict.fromkeys(("UCASE", "LCASE", "ENCODE_FOR_URI", "REGEX", "BNODE"), 1),
    **dict.fromkeys(("MD5", "SHA1", "SHA256", "SHA384", "SHA512"), 1),
    **dict.fromkeys(("CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER"), 2),
    "CONCAT": None,
}
"""How many of a function's arguments, from the first on, are strings; None: all of them."""


def _strings_of(node: Node) -> tuple[Node, ...]:
    """Return the arguments of a function that are strings."""
    if isinstance(node, Call | Volatile) and isinstance(node.function, str):
        return node.args[: _STRING_ARGUMENTS.get(node.function, 0)]
    return ()


def _text_arguments(plan: Plan, columns: Sequence[str]) -> list[str]:
    """Return the columns that are arguments of string functions."""
    arguments = (arg for node in plan.walk() for arg in _strings_of(node))
    names = {arg.name for arg in arguments if isinstance(arg, Variable)}
    return [name for name in columns if name in names]


def _with_texts(
    columns: frozenset[str], marker: Plan, table: Plan, node: Node, parts: list[Node]
) -> Node:
    """Return a node over its new parts: a string function reads the text of a column's cells."""
    if node == marker:
        return table
    if not parts:
        return node
    strings = len(_strings_of(node))
    if strings:
        parts = [
            text_variable(part.name)
            if k < strings and isinstance(part, Variable) and part.name in columns
            else part
            for k, part in enumerate(parts)
        ]
    return node if tuple(parts) == node.parts() else node.with_parts(tuple(parts))


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
