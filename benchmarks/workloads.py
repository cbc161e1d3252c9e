"""What is asked: W1 to W6, and what an answer is when engines are compared.

A pattern of a query is the same for all engines that speak SPARQL; `{constant}` is where the
queries of W6 differ. An answer of any engine is brought to rows of plain values, so that engines
that keep other forms of a number can be compared.
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
"""What is selected, the pattern, and what follows it."""

QUESTIONS = {
    "W1": "pattern + filter",
    "W2": "join of two patterns",
    "W3": "optional",
    "W4": "join with 100k static triples",
    "W5": "count and average by turbine",
    "W6": "K queries that differ in a constant",
}


def sparql(workload: str, constant: int = 0) -> str:
    """The query for an engine without streams: the window is the default graph."""
    select, pattern, after = SELECTS[workload]
    where = pattern.format(constant=constant)
    return f"{PREFIX}SELECT {select} WHERE {{ {where} }}{after}"


def continuous(workload: str, constant: int = 0) -> str:
    """The query for this engine."""
    select, pattern, after = SELECTS[workload]
    where = pattern.format(constant=constant)
    static = f"FROM NAMED <{STATIC}>\n" if workload == "W4" else ""
    window = f"WINDOW RANGE {WIDTH} MS SLIDE {SLIDE} MS"
    source = f"{static}FROM STREAM <{STREAM}> {window}"
    return f"{PREFIX}SELECT {select}\n{source}\nWHERE {{ {where} }}{after}"


Row = tuple[Any, ...]


def value_of(term: str | None) -> Any:
    """A term in N-Triples syntax as a plain value: numbers are floats, IRIs bare strings."""
    if term is None:
        return None
    return float(term[1 : term.index('"', 1)]) if term[0] == '"' else term[1:-1]


def same_rows(one: Iterable[Row], other: Iterable[Row]) -> bool:
    """Whether two bags of rows are the same, but for the last digits of numbers.

    >>> same_rows([("a", 2.0), ("b", None)], [("b", None), ("a", 2.0000000000001)])
    True
    """
    first, second = (sorted(rows, key=_key) for rows in (one, other))
    return len(first) == len(second) and all(map(_same_row, first, second))


def _key(row: Row) -> list[tuple[int, Any]]:
    return [(0, "") if v is None else (1, f"{v:.6f}") if type(v) is float else (2, v) for v in row]


def _same_row(one: Row, other: Row) -> bool:
    return all(
        a == b or (type(a) is float and type(b) is float and isclose(a, b, rel_tol=1e-9))
        for a, b in zip(one, other, strict=True)
    )
