"""Cells of tables for which an expression of their mapping has no value, counted with examples.

SPARQL leaves the variable of `BIND(xsd:integer(?count) AS ?n)` unbound if the cell contains `n/a`,
so the row lacks a triple. That is what the query means, but seldom what its writer wants: these
cells are counted by expression, and the first ones are retained.
"""

from __future__ import annotations

from collections import Counter
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
        self.unbound = Counter[str]()
        """The number of rows without triples in which a variable of the template is unbound."""
        self.unsolved = 0
        """The number of rows without triples for which the WHERE clause has no solution."""

    def add(self, failed: FailedCells) -> None:
        """Add cells that follow those that were added before."""
        key = failed.columns, failed.expression
        before = self._failed.get(key)
        if before is not None:
            examples = (*before.examples, *failed.examples)[:MAX_EXAMPLES]
            failed = failed._replace(rows=before.rows + failed.rows, examples=examples)
        self._failed[key] = failed

    def include(self, other: CellLog) -> None:
        """Add what another log has collected."""
        for failed in other.failed:
            self.add(failed)
        self.unbound += other.unbound
        self.unsolved += other.unsolved

    @property
    def without_triples(self) -> str:
        """Why rows have no triples; empty if it is not known."""
        reasons = [f"?{v} is unbound in {count:,}" for v, count in self.unbound.most_common(2)]
        if self.unsolved:
            reasons.append(f"its WHERE clause has no solution for {self.unsolved:,}")
        return visible(", ".join(reasons))

    @property
    def failed(self) -> tuple[FailedCells, ...]:
        """The failed cells by expression, in the order in which each failed first."""
        return tuple(self._failed.values())


def merged(logs: Iterable[CellLog]) -> CellLog:
    """Return the log of several streams and graphs.

    >>> merged([CellLog()]).failed
    ()
    """
    together = CellLog()
    for log in logs:
        together.include(log)
    return together
