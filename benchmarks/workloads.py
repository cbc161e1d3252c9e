"""The workloads W1 to W6, and the comparison of the rows of different engines.

All engines that speak SPARQL run the same patterns; the queries of W6 differ in `{constant}`. The
output of each engine is converted to rows of plain values, since engines differ in the form of
numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isclose
from typing import Any

from turbines import EX, SLIDE, STATIC, STREAM, WIDTH

PREFIX = f"PREFIX : <{EX}>\n"

SELECTS = {
    "W1": ("?t ?v", "?t :WindSpeed ?v FILTER(?v > 22.5)", ""),
    "W2": ("?t ?a ?b", "?t :StrCnt ?a . ?t :StopCnt ?b", ""),
    "W3": ("?t ?a ?b", "?t :StrCnt ?a OPTIONAL {{ ?t :StopCnt ?b }}", ""),
    "W4": (
        "?t ?v ?p",
        f"?t :WindSpeed ?v . GRAPH <{STATIC}> {{{{ ?t :inPark ?p . ?t :model :Model7 }}}}",
        "",
    ),
    "W5": ("?t (COUNT(?v) AS ?c) (AVG(?v) AS ?a)", "?t :WindSpeed ?v", " GROUP BY ?t"),
    "W6": ("?v", ":T{constant} :WindSpeed ?v", ""),
}
"""The SELECT clause, the pattern, and the clauses after it."""

DESCRIPTIONS = {
    "W1": "pattern + filter",
    "W2": "join of two patterns",
    "W3": "optional",
    "W4": "join with 100k static triples",
    "W5": "count and average by turbine",
    "W6": "K queries that differ in a constant",
}


def sparql(workload: str, constant: int = 0) -> str:
    """Return the query for an engine without streams: the window is the default graph."""
    select, pattern, after = SELECTS[workload]
    where = pattern.format(constant=constant)
    return f"{PREFIX}SELECT {select} WHERE {{ {where} }}{after}"


def continuous(workload: str, constant: int = 0) -> str:
    """Return the query for this engine."""
    select, pattern, after = SELECTS[workload]
    where = pattern.format(constant=constant)
    static = f"FROM NAMED <{STATIC}>\n" if workload == "W4" else ""
    window = f"WINDOW RANGE {WIDTH} MS SLIDE {SLIDE} MS"
    source = f"{static}FROM STREAM <{STREAM}> {window}"
    return f"{PREFIX}SELECT {select}\n{source}\nWHERE {{ {where} }}{after}"


Row = tuple[Any, ...]


def value_of(term: str | None) -> Any:
    """Convert a term in N-Triples syntax: literals to floats, IRIs to strings without brackets."""
    if term is None:
        return None
    return float(term[1 : term.index('"', 1)]) if term[0] == '"' else term[1:-1]


def same_rows(one: Iterable[Row], other: Iterable[Row]) -> bool:
    """Return whether two bags of rows are equal, up to the last digits of numbers.

    >>> same_rows([("a", 2.0), ("b", None)], [("b", None), ("a", 2.0000000000001)])
    True
    """
    first, second = (sorted(rows, key=_sort_key) for rows in (one, other))
    return len(first) == len(second) and all(map(_same_row, first, second))


def _sort_key(row: Row) -> list[tuple[int, Any]]:
    return [(0, "") if v is None else (1, f"{v:.6f}") if type(v) is float else (2, v) for v in row]


def _same_row(one: Row, other: Row) -> bool:
    return all(
        a == b or (type(a) is float and type(b) is float and isclose(a, b, rel_tol=1e-9))
        for a, b in zip(one, other, strict=True)
    )
