"""A query to begin with, over the columns of a mapped table or the predicates of a stream."""

from __future__ import annotations

import re
from collections.abc import Sequence

from streamsparql.sources.column_types import Column

_WINDOWS = (
    (1_000, "1 SECOND"),
    (10_000, "10 SECOND"),
    (60_000, "1 MINUTE"),
    (600_000, "10 MINUTE"),
    (3_600_000, "1 HOUR"),
    (21_600_000, "6 HOUR"),
    (86_400_000, "24 HOUR"),
    (604_800_000, "168 HOUR"),
)
_IDENTIFIER = re.compile(r"(?:^|_)(?:id|nr|no|code|key|uuid|index)(?:_|$)|id$", re.I)
_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
}


def window_for(span: int, count: int) -> str:
    """Return the length of a window: up to twenty cover a span of time, with ten rows in each.

    >>> window_for(86_400_000, 1_000), window_for(86_400_000, 24), window_for(0, 1)
    ('6 HOUR', '24 HOUR', '1 MINUTE')
    """
    if not span:
        return "1 MINUTE"
    least = max(span / 20, 10 * span / count)
    return next((text for size, text in _WINDOWS if size >= least), _WINDOWS[-1][1])


def query_over_columns(
    columns: Sequence[Column], time: Column | None, namespace: str, name: str, span: int
) -> str:
    """Return a query over a table that is mapped with a predicate per column.

    It averages the first measurement, by a column with few values if there is one.
    """
    others = [column for column in columns if column is not time and column.values]
    numbers = [c for c in others if c.kind in ("integer", "double", "decimal")]
    measured = [c for c in numbers if c.varies and not _IDENTIFIER.search(c.name)] or numbers
    groups = [c for c in others if c.kind in ("string", "boolean") and _has_few_values(c)]
    window = window_for(span, max((column.rows for column in columns), default=1))
    clause = f"FROM STREAM <http://example.org/{name}> WINDOW RANGE {window} FIXED\n"
    clause = "" if time is None else clause
    prefix = f"PREFIX : <{namespace}>\n"
    if not measured:
        shown = (others or list(columns))[0].variable
        return f"{prefix}SELECT ?{shown}\n{clause}WHERE {{ ?row :{shown} ?{shown} }}\n"
    value = measured[0].variable
    mean = f"(AVG(?{value}) AS ?mean) (COUNT(*) AS ?rows)"
    if not groups:
        return f"{prefix}SELECT {mean}\n{clause}WHERE {{ ?row :{value} ?{value} }}\n"
    group = groups[0].variable
    return (
        f"{prefix}SELECT ?{group} {mean}\n{clause}"
        f"WHERE {{ ?row :{group} ?{group} ; :{value} ?{value} }}\nGROUP BY ?{group}\n"
    )


def _has_few_values(column: Column) -> bool:
    """Return whether the values of a column name groups of rows."""
    distinct = len(column.examples)
    return 1 < distinct <= max(2, len(column.values) // 4)


def query_over_predicates(predicates: Sequence[str], name: str, window: str | None) -> str:
    """Return a query over a stream in a window, or over a static graph, with these predicates."""
    plain = [iri for iri in predicates if not iri.endswith("#type>")] or list(predicates)
    predicate = plain[0] if plain else "?p"
    prefix = ""
    for short, start in _PREFIXES.items():
        if predicate.startswith(f"<{start}") and re.fullmatch(
            r"\w+", predicate[len(start) + 1 : -1]
        ):
            prefix = f"PREFIX {short}: <{start}>\n"
            predicate = f"{short}:{predicate[len(start) + 1 : -1]}"
            break
    clause = f"FROM STREAM <http://example.org/{name}> WINDOW RANGE {window} FIXED\n"
    clause = "" if window is None else clause
    return f"{prefix}SELECT ?subject ?value\n{clause}WHERE {{ ?subject {predicate} ?value }}\n"
