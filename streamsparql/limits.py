"""Limits: bounds of what a query may cost, and the meter that enforces them.

Callers set `Limits`. A `Meter` counts what the computation in progress uses; it is the *active* one
of its thread for the length of a step (`run/guard.py`), so that kernels and functions find it
without a reference to the run. Operators report the rows that they produce block by block, and
loops check the clock, so a limit is met in the middle of a step. Without limits no meter is active,
and each loop asks for it once.

    streamsparql.compile(text, limits=Limits(text=10_000, time=30, memory=1 << 30, rows=1_000_000))

This module imports only `errors`, so that every layer can use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from math import inf
from time import perf_counter
from typing import Protocol, TypeVar

from streamsparql.errors import EngineError, LimitExceeded

_Item = TypeVar("_Item")

LONGEST_STRING = 1 << 24
"""The default limit of the length of strings, in characters."""

_ROW = 3
"""The columns of a row besides its terms: start, end, count."""
_WORD = 8
"""The bytes of a value in a column."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of what a query may cost; None for no bound. A run that exceeds one is an error.

    >>> Limits(rows=1_000, time=2.5)
    Limits(time=2.5, memory=None, state=None, rows=1000, string=16777216, text=None)
    >>> Limits(rows=0)
    Traceback (most recent call last):
    streamsparql.errors.EngineError: limits: rows must be a positive whole number, not 0
    """

    time: float | None = None
    """Seconds: of `compile`, of a run (reading and computing), of each step of an open query."""
    memory: int | None = None
    """Bytes of the rows and terms that a run retains, and of the rows of a step: an estimate."""
    state: int | None = None
    """Rows that all operators retain together, or that one retains in the middle of a step."""
    rows: int | None = None
    """Rows that an operator may produce in one step: those that it emits, or pairs that it tries;
    always as many as it consumes and retained before."""
    string: int | None = LONGEST_STRING
    """Characters of a term that a function builds."""
    text: int | None = None
    """Characters of the text of a query."""

    def __post_init__(self) -> None:
        """Check the values."""
        for field in fields(self):
            value = getattr(self, field.name)
            number = isinstance(value, int | float if field.name == "time" else int)
            if value is None or (number and not isinstance(value, bool) and 0 < value < inf):
                continue
            kind = "number of seconds" if field.name == "time" else "whole number"
            raise EngineError(f"limits: {field.name} must be a positive {kind}, not {value!r}")


def checked_limits(limits: object) -> Limits | None:
    """Return limits that a caller passed; raise an error for another type.

    >>> checked_limits({"rows": 5})
    Traceback (most recent call last):
    streamsparql.errors.EngineError: limits must be a streamsparql.Limits, not {'rows': 5}; \
write Limits(rows=..)
    """
    if limits is None or isinstance(limits, Limits):
        return limits
    raise EngineError(
        f"limits must be a streamsparql.Limits, not {limits!r:.60}; write Limits(rows=..)"
    )


_UNITS = {
    "time": "{:g} s",
    "memory": "{:,} bytes of rows and terms",
    "state": "{:,} rows in the state",
    "rows": "{:,} rows in one step",
    "string": "{:,} characters in a term",
    "text": "{:,} characters in the text of the query",
}


class Bytes(Protocol):
    """A structure that knows its size, such as a term dictionary."""

    @property
    def bytes(self) -> int:
        """The approximate number of bytes."""


class Meter:
    """What a computation uses, against its limits.

    Time is counted while the meter is active. With `per_step`, as for open queries, each step may
    take the whole time.

    >>> meter = Meter(Limits(rows=10))
    >>> meter.begin(consumed=2)
    >>> meter.add_rows(8, 2)
    >>> meter.add_rows(8, 2)
    Traceback (most recent call last):
    streamsparql.errors.LimitExceeded: more than 10 rows in one step; raise the limit with \
Limits(rows=..), on the command line with --row-limit
    """

    def __init__(self, limits: Limits, per_step: bool = False) -> None:
        self.limits, self._per_step = limits, per_step
        self.retained = self.waiting = 0
        """The bytes of the rows that the operators retain, or emitted in this step; those of rows
        before and after the operators."""
        self.terms: Bytes | None = None
        """The dictionary of the run."""
        self._rows = self._new_bytes = 0
        self._most_rows: float = inf
        self._most_retained: float = inf
        self._left = inf if limits.time is None else limits.time
        self._deadline = inf

    # -- time

    def start(self) -> None:
        """Start the clock, at the beginning of a step."""
        if self._per_step:
            self.restart()
        self._deadline = perf_counter() + self._left

    def stop(self) -> None:
        """Stop the clock, at the end of a step."""
        self._left = self._deadline - perf_counter()

    def count_whole_run(self) -> None:
        """Count the time of all steps from now on together, as those of a run."""
        self._per_step = False
        self.restart()

    def restart(self) -> None:
        """Allow the whole time from now on: a wait for more input is not counted."""
        self._left = inf if self.limits.time is None else self.limits.time
        self._deadline = perf_counter() + self._left

    # -- rows and memory

    def begin(self, consumed: int = 0) -> None:
        """Begin the step of an operator, which consumes a number of rows."""
        self._rows = self._new_bytes = 0
        rows, state = self.limits.rows, self.limits.state
        self._most_rows = inf if rows is None else max(rows, consumed)
        self._most_retained = inf if state is None else max(state, consumed)
        self.check()

    def add_rows(self, rows: int, columns: int) -> None:
        """Count rows that are produced, or pairs that are tried, with this number of columns."""
        self._rows += rows
        if self._rows > self._most_rows:
            raise self.exceeded("rows")
        if self._rows > self._most_retained:
            raise self.exceeded("state")
        self._new_bytes += bytes_of_rows(rows, columns)
        self.check()

    def end(self, emitted: int, retained: int) -> None:
        """End the step of an operator; it retained a number of rows before."""
        self._new_bytes = 0
        if emitted > self._most_rows + retained:
            raise self.exceeded("rows")

    def check(self) -> None:
        """Check the time and the memory."""
        if perf_counter() > self._deadline:
            raise self.exceeded("time")
        most = self.limits.memory
        if most is not None:
            terms = 0 if self.terms is None else self.terms.bytes
            if self.retained + self.waiting + self._new_bytes + terms > most:
                raise self.exceeded("memory")

    def checked(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield items; check the time and the memory before each."""
        for item in items:
            self.check()
            yield item

    def exceeded(self, limit: str) -> LimitExceeded:
        """Return the error for a limit that was exceeded."""
        return _exceeded(limit, getattr(self.limits, limit))


def _exceeded(limit: str, value: float) -> LimitExceeded:
    return LimitExceeded(f"more than {_UNITS[limit].format(value)}", limit, value)


def bytes_of_rows(rows: int, columns: int) -> int:
    """Return the size of rows with this number of columns."""
    return _WORD * rows * (columns + _ROW)


_ACTIVE: ContextVar[Meter | None] = ContextVar("meter", default=None)


def active_meter() -> Meter | None:
    """Return the meter of the computation in progress in this thread; None without limits."""
    return _ACTIVE.get()


def activate(meter: Meter | None) -> Meter | None:
    """Make a meter the active one, or None; return the one that was active before."""
    before = _ACTIVE.get()
    if before is not meter:
        _ACTIVE.set(meter)
    return before


@contextmanager
def metered(limits: Limits | None, name: str) -> Iterator[None]:
    """Apply limits to work outside of runs, which messages call by this name."""
    meter = None if limits is None else Meter(limits)
    before = activate(meter)
    try:
        if meter is not None:
            meter.start()
        with naming(lambda: name):
            yield
    finally:
        activate(before)


@contextmanager
def naming(name: Callable[[], str]) -> Iterator[None]:
    """Name the operator, or the phase, in the error of a limit that is exceeded inside."""
    try:
        yield
    except LimitExceeded as error:
        error.inside(name())
        raise


def checked(items: Iterable[_Item]) -> Iterable[_Item]:
    """Return items for a loop; under limits the time and the memory are checked before each.

    >>> items = [1, 2]
    >>> checked(items) is items
    True
    """
    meter = _ACTIVE.get()
    return items if meter is None else meter.checked(items)


def check_rows(rows: int, columns: int) -> None:
    """Count rows that are about to be produced all at once."""
    meter = _ACTIVE.get()
    if meter is not None:
        meter.add_rows(rows, columns)


def check_memory(rows: int, columns: int) -> None:
    """Count rows that are read and retained, with the terms in them."""
    meter = _ACTIVE.get()
    if meter is not None:
        meter.waiting += bytes_of_rows(rows, columns)
        meter.check()


def check_text(size: int) -> None:
    """Check the number of characters of the text of a query."""
    meter = _ACTIVE.get()
    if meter is not None and meter.limits.text is not None and size > meter.limits.text:
        raise meter.exceeded("text")


def fit_at_once(size: int, count: int) -> bool:
    """Return whether this number of strings, of up to this size, may be built without checks.

    >>> fit_at_once(100, 65_536), fit_at_once(1 << 20, 65_536)
    (True, False)
    """
    meter = _ACTIVE.get()
    memory, longest = None, LONGEST_STRING
    if meter is not None:
        memory, longest = meter.limits.memory, meter.limits.string or size
    most = _MOST_AT_ONCE if memory is None else min(_MOST_AT_ONCE, memory // _PART)
    return size * count <= most and size <= longest


_MOST_AT_ONCE = 1 << 30
_PART = 8  # strings that are built at once are copied several times


def check_string(size: int) -> None:
    """Check the number of characters of a term that is about to be built, or was built.

    >>> check_string(1 << 27)
    Traceback (most recent call last):
    streamsparql.errors.LimitExceeded: more than 16,777,216 characters in a term; raise the limit \
with Limits(string=..), on the command line with --string-limit
    """
    meter = _ACTIVE.get()
    most = LONGEST_STRING if meter is None else meter.limits.string
    if most is not None and size > most:
        raise _exceeded("string", most)
