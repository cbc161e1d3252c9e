"""What a program reads one by one: rows with their validity, rows of snapshots, reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from streamsparql.errors import escape_controls
from streamsparql.overriding import override
from streamsparql.physical.operator import INFINITY
from streamsparql.rdflib_terms import term
from streamsparql.values.python_values import aware_datetime, python_value


class Row(Mapping[str, Any]):
    """A row of a result and its validity, `[start, end)` in milliseconds.

    `row["x"]` is an rdflib term, `row.value("x")` the Python value; both are None if `?x` is
    unbound. CONSTRUCT and DESCRIBE have rows with `subject`, `predicate` and `object`, ASK one with
    `answer`, which is True or False.

    >>> import streamsparql
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
    >>> (row,) = streamsparql.compile(text).run([("<a>", "<p>", '"1"', 3)])
    >>> row["o"].n3(), row.value("o"), row.start, row.end
    ('"1"', '1', 3, 10)
    """

    __slots__ = ("_index", "_values", "end", "start")

    def __init__(
        self, index: Mapping[str, int], values: tuple[Any, ...], start: int, end: int
    ) -> None:
        self._index, self._values = index, values
        self.start, self.end = start, end

    def __getitem__(self, name: str) -> Any:
        return self._values[self._index[name.removeprefix("?")]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Row):
            return (self.start, self.end) == (other.start, other.end) and dict(self) == dict(other)
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]

    def value(self, name: str) -> Any:
        """Return the Python value of a variable; IRIs and blank nodes are strings.

        >>> from rdflib import Literal, URIRef
        >>> row = Row({"x": 0, "y": 1}, (Literal(7), URIRef("http://example.org/a")), 3, 10)
        >>> row.value("x"), row.value("y")
        (7, 'http://example.org/a')
        """
        return _value(self[name])

    @property
    def start_time(self) -> datetime | None:
        """The start as a datetime in UTC; None after the year 9999."""
        return aware_datetime(self.start)

    @property
    def end_time(self) -> datetime | None:
        """The end as a datetime in UTC; None if the row never ends, or after the year 9999."""
        return aware_datetime(self.end)

    def asdict(self) -> dict[str, Any]:
        """Return a dict of the variables and their terms."""
        return dict(self)

    def __repr__(self) -> str:
        cells = ", ".join(
            f"{name}={getattr(value, 'n3', value.__repr__)()}" for name, value in self.items()
        )
        return escape_controls(f"Row({cells}{', ' if cells else ''}{self._times()})")

    def _times(self) -> str:
        return f"[{self.start}, {'…' if self.end == INFINITY else self.end})"


class Detection(Row):
    """An event: it occurred from `start` to `end`, the instant at which it was detected.

    >>> Detection({}, (), 3, 5)
    Row([3, 5])
    """

    __slots__ = ()

    @override
    def _times(self) -> str:
        return f"[{self.start}, {self.end}]"


class SnapshotRow(dict[str, Any]):
    """A row of a snapshot: rdflib terms by variable, None for unbound ones.

    >>> from rdflib import Literal
    >>> row = SnapshotRow(x=Literal(7), y=None)
    >>> row["x"].n3(), row.value("x"), row.value("y")
    ('"7"^^<http://www.w3.org/2001/XMLSchema#integer>', 7, None)
    """

    def value(self, name: str) -> Any:
        """Return the Python value of a variable; IRIs and blank nodes are strings."""
        return _value(self[name.removeprefix("?")])


class Report(NamedTuple):
    """A report: its instant in milliseconds, and the rows that it shows, a snapshot.

    The rows of SELECT are a list of `SnapshotRow`, those of CONSTRUCT and DESCRIBE an rdflib graph,
    that of ASK is a boolean, or None if the answer has not changed.

    >>> report = Report(1500, [])
    >>> instant, rows = report
    >>> instant, report.time.isoformat()
    (1500, '1970-01-01T00:00:01.500000+00:00')
    """

    instant: int
    rows: Any

    @property
    def time(self) -> datetime | None:
        """The instant as a datetime in UTC; None after the year 9999."""
        return aware_datetime(self.instant)


def _value(value: Any) -> Any:
    """Return the Python value of a cell: an rdflib term, the boolean of an ASK, or None."""
    return value if value is None or isinstance(value, bool) else python_value(term(value))
