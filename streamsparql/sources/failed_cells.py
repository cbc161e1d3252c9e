"""Cells of tables for which an expression of their mapping has no value, counted with examples.

SPARQL leaves the variable of `BIND(xsd:integer(?count) AS ?n)` unbound if the cell contains `n/a`,
so the row lacks a triple. That is what the query means, but seldom what its writer wants: these
cells are counted by expression, and the first ones are retained.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from streamsparql.text.visible import visible

MAX_EXAMPLES = 3
"""The number of cells of each expression that are retained."""


class CellExample(NamedTuple):
    """A cell without a value, and its place."""

    value: str
    source: str
    position: int
    unit: str

    def __str__(self) -> str:
        return f"{self.value} in {self.unit} {self.position}"


class FailedCells(NamedTuple):
    """The cells of columns for which an expression has no value.

    >>> print(FailedCells(("v",), "xsd:integer(?v)", 2, (CellExample('"n/a"', "x.csv", 7, "row"),)))
    ?v: xsd:integer(?v) has no value in 2 rows: "n/a" in row 7, …
    """

    columns: tuple[str, ...]
    """The variables that the expression reads."""
    expression: str
    rows: int
    """The number of rows."""
    examples: tuple[CellExample, ...]

    def __str__(self) -> str:
        names = " ".join(f"?{name}" for name in self.columns)
        where = "one row" if self.rows == 1 else f"{self.rows:,} rows"
        shown = ", ".join(map(str, self.examples)) + ", …" * (self.rows > len(self.examples))
        return visible(f"{names}: {self.expression} has no value in {where}: {shown}")


class CellLog:
    """A collector of the failed cells of one stream or graph."""

    def __init__(self) -> None:
        self._failed: dict[tuple[tuple[str, ...], str], FailedCells] = {}

    def add(self, failed: FailedCells) -> None:
        """Add cells that follow those that were added before."""
        key = failed.columns, failed.expression
        before = self._failed.get(key)
        if before is not None:
            examples = (*before.examples, *failed.examples)[:MAX_EXAMPLES]
            failed = failed._replace(rows=before.rows + failed.rows, examples=examples)
        self._failed[key] = failed

    @property
    def failed(self) -> tuple[FailedCells, ...]:
        """The failed cells by expression, in the order in which each failed first."""
        return tuple(self._failed.values())


def merged(logs: Iterable[CellLog]) -> tuple[FailedCells, ...]:
    """Return the failed cells of several streams and graphs.

    >>> merged([CellLog()])
    ()
    """
    together = CellLog()
    for log in logs:
        for failed in log.failed:
            together.add(failed)
    return together.failed
