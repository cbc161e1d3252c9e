"""Cells of tables for which an expression of their mapping has no value, counted with examples.

SPARQL leaves the variable of `BIND(xsd:integer(?count) AS ?n)` unbound if the cell contains `n/a`,
so the row lacks a triple. That is what the query means, but seldom what its writer wants: these
cells are counted by expression, and the first ones are retained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from streamsparql.text.visible import visible

MAX_EXAMPLES = 3
"""The number of cells of each expression that are retained."""
_MAX_KEYS = 20
"""The number of keys of the first record that a message shows."""


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


class ReadKeys:
    """The keys of records that a mapping reads, and those that a record had, of all files.

    A record may lack a key, whose variable is then unbound: only a key that all lack is suspect.

    >>> keys = ReadKeys()
    >>> keys.start("x.jsonl", ["avgSped", "count"], ["avgSpeed"])
    >>> keys.found.add("count")
    >>> keys.note
    'x.jsonl: no record has the key avgSped, which the mapping reads; the first has avgSpeed'
    """

    def __init__(self) -> None:
        self._read: dict[str, None] = {}
        self.found: set[str] = set()
        """The variables of the keys that a record had."""
        self._table, self._first = "", ""

    def start(self, table: str, read: Iterable[str], first: Collection[str]) -> None:
        """Note the variables that a mapping reads, and the keys of the first record of a table."""
        self._read.update(dict.fromkeys(read))
        if not self._table:
            self._table = table
            self._first = ", ".join([*first][:_MAX_KEYS]) + ", …" * (len(first) > _MAX_KEYS)

    def include(self, other: ReadKeys) -> None:
        """Add what was noted in another part of the same source."""
        self._read.update(other._read)
        self.found |= other.found
        self._table, self._first = self._table or other._table, self._first or other._first

    @property
    def note(self) -> str:
        """A message about the keys that no record had; empty without any."""
        missing = [name for name in self._read if name not in self.found]
        if not missing:
            return ""
        keys = "keys" if len(missing) > 1 else "key"
        return visible(
            f"{self._table}: no record has the {keys} {', '.join(missing)}, which the mapping"
            f" reads; the first has {self._first or 'none'}"
        )


class CellLog:
    """A collector of the failed cells of one stream or graph."""

    def __init__(self) -> None:
        self._keys: dict[str, ReadKeys] = {}
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

    def keys_of(self, table: str) -> ReadKeys:
        """Return the keys of the records of a stream or graph, which may be in several files."""
        return self._keys.setdefault(table, ReadKeys())

    def include(self, other: CellLog) -> None:
        """Add what another log has collected."""
        for table, keys in other._keys.items():
            self.keys_of(table).include(keys)
        for failed in other.failed:
            self.add(failed)
        self.unbound += other.unbound
        self.unsolved += other.unsolved

    def save(self) -> dict[str, Any]:
        """Return the log as JSON.

        >>> log, other = CellLog(), CellLog()
        >>> log.add(FailedCells(("v",), "f(?v)", 2, (CellExample("x", "x.csv", 7, "row"),)))
        >>> other.load(log.save())
        >>> other.failed == log.failed
        True
        """
        keys = {
            table: [[*keys._read], sorted(keys.found), keys._table, keys._first]
            for table, keys in self._keys.items()
        }
        failed = [[*each] for each in self._failed.values()]
        counts = {"unbound": dict(self.unbound), "unsolved": self.unsolved}
        return {"keys": keys, "failed": failed, **counts}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Replace the log by one that `save` returned."""
        self._keys.clear()
        self._failed.clear()
        for table, (read, seen, first_table, first) in saved["keys"].items():
            keys = self.keys_of(table)
            keys._read, keys.found = dict.fromkeys(read), set(seen)
            keys._table, keys._first = first_table, first
        for columns, expression, rows, examples in saved["failed"]:
            cells = tuple(CellExample(*example) for example in examples)
            self.add(FailedCells(tuple(columns), expression, rows, cells))
        self.unbound, self.unsolved = Counter(saved["unbound"]), saved["unsolved"]

    @property
    def without_triples(self) -> str:
        """Why rows have no triples; empty if it is not known."""
        reasons = [f"?{v} is unbound in {count:,}" for v, count in self.unbound.most_common(2)]
        if self.unsolved:
            reasons.append(f"its WHERE clause has no solution for {self.unsolved:,}")
        return visible(", ".join(reasons))

    @property
    def missing_keys(self) -> tuple[str, ...]:
        """Messages about keys that a mapping reads and no record has."""
        return tuple(keys.note for keys in self._keys.values() if keys.note)

    @property
    def empty(self) -> bool:
        """Whether nothing was added."""
        return not (self._failed or self.unbound or self.unsolved or self._keys)

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
