"""Cases of other stream engines: the rows that they expect, and those that a query here has.

A case says what its rows are compared with: `rows` of the result, the `final` snapshot, or the rows
of all `reports`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import streamsparql

_TIME = re.compile(r"(\d\d:\d\d:\d\d)(?:\.(\d*?)0*)?(?:Z|\+00:00)?")
_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(?=\d\d:)")


class Answered(NamedTuple):
    """A row of an answer, and the instant of its report, if it is in one."""

    row: Mapping[str, Any]
    instant: int | None = None

    def text(self, column: str, width: int = 0) -> str:
        """Return the text of a column; NULL if it is unbound.

        `@start` and `@end` are those of the report's window, of a width in milliseconds; `ms:x` is
        `?x`, which is in milliseconds, as a time.
        """
        if column.startswith("@"):
            assert self.instant is not None
            return time_text(self.instant - width if column == "@start" else self.instant)
        if column.startswith("ms:"):
            return time_text(int(str(self.row[column.removeprefix("ms:")])))
        term = self.row[column]
        return "NULL" if term is None else str(term)


def answers(query: streamsparql.Query, streams: Mapping[str, Any], answer: str) -> list[Answered]:
    """Run a query over those of the streams that it reads."""
    result = query.run({name: streams[name] for name in query.streams}, max_delay="auto")
    if answer == "rows":
        return [Answered(row) for row in result]
    if answer == "final":
        return [Answered(row) for row in result.snapshot()]
    return reported(result.report())


def reported(reports: Iterable[streamsparql.Report]) -> list[Answered]:
    """Return the rows of reports."""
    return [Answered(row, report.instant) for report in reports for row in report.rows]


def lines(
    rows: Iterable[Answered], columns: Iterable[str], width: int = 0
) -> Counter[tuple[Any, ...]]:
    """Return some columns of rows as lines."""
    names = list(columns)
    return Counter(line(" ".join(row.text(name, width) for name in names)) for row in rows)


def time_text(milliseconds: int) -> str:
    """Return an instant as a text: `2015-07-15 00:00:01.500`, in UTC.

    >>> time_text(1_500)
    '1970-01-01 00:00:01.500'
    """
    seconds, rest = divmod(milliseconds, 1000)
    time = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return time.isoformat(" ") + (f".{rest:03}" if rest else "")


def line(text: str) -> tuple[Any, ...]:
    """Return the parts of a line between blanks: numbers as decimals, times without an offset.

    >>> line("a\\t1.50  2015-07-15T00:00:01.500Z")
    ('a', Decimal('1.5'), '2015-07-15', '00:00:01.5')
    """
    return tuple(_part(part) for part in _DATE_TIME.sub(r"\1 ", text).split())


def _part(text: str) -> Any:
    if time := _TIME.fullmatch(text):
        return f"{time[1]}.{time[2]}" if time[2] else time[1]
    try:
        return Decimal(text).normalize()
    except InvalidOperation:
        return text
