"""After an exception a run says so, or its answer is right: it is never partial without an error.

The random tests raise an exception in each kind of call, and then ask again: at the n-th line of
the package, as a Ctrl-C could, by a signal, in a source, in `on_row`.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from support.spark_in_process import Session

import streamsparql
from streamsparql.errors import EngineError, SourceError
from streamsparql.run.live import Live

S = "http://e/s"
TEXT = (
    "SELECT ?x (SUM(?n) AS ?sum) FROM STREAM <http://e/s> WINDOW RANGE 10 SLIDE 5"
    " WHERE { ?x <http://e/p> ?n } GROUP BY ?x"
)
QUERY = streamsparql.compile(TEXT)
CHUNK = 65_536
PACKAGE = str(Path(streamsparql.__file__).parent)


def item(n: int) -> tuple[str, str, str, int]:
    number = f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<http://e/{n % 3}>", "<http://e/p>", number, n


class FailsOnce:
    """Items that can be read again; the first reading fails in the middle."""

    def __init__(self, items: list[Any], error: BaseException, at: int) -> None:
        self.items, self.error, self.at = items, error, at
        self.readings = 0

    def __iter__(self) -> Iterator[Any]:
        self.readings += 1
        for k, one in enumerate(self.items):
            if self.readings == 1 and k == self.at:
                raise self.error
            yield one


def raising(items: list[Any], error: BaseException) -> Iterator[Any]:
    yield from items
    raise error


def bag(rows: Iterable[Any]) -> list[str]:
    return sorted(map(str, rows))


# -- results --------------------------------------------------------------------------------------

REQUESTS = {
    "table": lambda result: bag(result.to_arrow().to_pylist()),
    "rows": bag,
    "snapshot": lambda result: bag(result.snapshot(7)),
    "rejects": lambda result: (result.late, result.rejected),
    "reports": lambda result: bag(result.to_arrow(report="rstream").to_pylist()),
    "pairs": lambda result: [(t, bag(rows)) for t, rows in result.report(every=5)],
}


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("error", [ValueError("no more"), KeyboardInterrupt()])
def test_result_that_failed_is_computed_again_from_sources_that_can_be_read_again(request_, error):
    items = [item(n) for n in range(40)]
    wanted = REQUESTS[request_](QUERY.run({S: items}))
    for first in REQUESTS.values():
        source = FailsOnce(items, error, 20)
        result = QUERY.run({S: source})
        with pytest.raises(type(error)):
            first(result)
        assert REQUESTS[request_](result) == wanted
        assert source.readings == 2


@pytest.mark.parametrize("request_", REQUESTS)
def test_result_that_failed_raises_its_error_again_if_a_source_is_read_once(request_):
    items = [item(n) for n in range(40)]
    result = QUERY.run({S: raising(items, ValueError("no more"))})
    for _ in range(2):
        with pytest.raises(ValueError, match="no more"):
            REQUESTS[request_](result)
    result = QUERY.run({S: raising(items, KeyboardInterrupt())})
    with pytest.raises(KeyboardInterrupt):
        REQUESTS[request_](result)
    for later in REQUESTS.values():
        with pytest.raises(EngineError, match=r"incomplete: KeyboardInterrupt .* only once"):
            later(result)


def test_result_of_spark_that_failed_is_computed_again_or_raises_its_error_again():
    items = [item(n) for n in range(40)]
    wanted = QUERY.run({S: items}, engine="spark", spark=Session()).to_arrow()
    source = FailsOnce(items, KeyboardInterrupt(), 20)
    result = QUERY.run({S: source}, engine="spark", spark=Session())
    with pytest.raises(KeyboardInterrupt):
        result.to_arrow()
    assert result.to_arrow().equals(wanted)
    result = QUERY.run({S: raising(items, ValueError("no more"))}, engine="spark", spark=Session())
    for ask in REQUESTS.values():
        with pytest.raises(ValueError, match="no more"):
            ask(result)


def test_strict_result_raises_its_first_reject_again():
    items: list[Any] = [item(1)] * CHUNK + [("<a>", "<p>", "soon")]
    for source in (items, iter(items)):
        result = QUERY.run({S: source}, strict=True)
        for ask in REQUESTS.values():
            with pytest.raises(SourceError, match=f"item {CHUNK + 1}: "):
                ask(result)


# -- open queries ---------------------------------------------------------------------------------

CALLS = {
    "push": lambda live: live.push(S, item(1)[:3], 90),
    "push_many": lambda live: live.push_many(S, [item(91)]),
    "advance": lambda live: live.advance(95),
    "rows": lambda live: live.rows(),
    "to_arrow": lambda live: live.to_arrow(),
    "to_pandas": lambda live: live.to_pandas(),
    "snapshot": lambda live: live.snapshot(),
    "next row": lambda live: asyncio.run(anext_of(live)),
    "late": lambda live: live.late,
    "rejected": lambda live: live.rejected,
    "watermark": lambda live: live.watermark,
    "stats": lambda live: live.stats(),
    "close": lambda live: live.close(),
}


async def anext_of(live: Live[Any]) -> Any:
    return await anext(live.aiter())


@pytest.mark.parametrize("call", CALLS)
def test_open_query_is_unusable_after_an_exception_in_the_middle_of_a_step(call):
    live = QUERY.open()
    live.push_many(S, [item(n) for n in range(20)])
    execution = live._execution
    step, execution.step = execution.step, lambda *_, **__: 1 // 0
    with pytest.raises(ZeroDivisionError):
        live.rows()
    execution.step = step
    for _ in range(2):
        with pytest.raises(EngineError, match=r"unusable: ZeroDivisionError .* ended a step"):
            CALLS[call](live)
    assert repr(live).startswith("<Live: unusable")


def failing(live: Live[Any]) -> Live[Any]:
    live._execution.step = lambda *_, **__: 1 // 0  # type: ignore[method-assign, assignment]
    live.push(S, item(1)[:3], 1)
    return live


def test_end_of_a_with_statement_shows_the_first_error():
    with pytest.raises(ZeroDivisionError), failing(QUERY.open()) as live:
        live.rows()
    assert live.closed
    live = failing(QUERY.open())
    with pytest.raises(EngineError, match="unusable"), live, suppress(ZeroDivisionError):
        live.rows()


def test_errors_of_arguments_leave_an_open_query_usable():
    live = QUERY.open()
    for wrong in (lambda: live.push("x", item(1)[:3], 1), lambda: live.push_many(S, 5)):
        with pytest.raises((EngineError, SourceError)):
            wrong()
    live.push_many(S, [item(1), item(2)])
    assert live.stats().items.accepted == 2


@pytest.mark.parametrize("report", [None, "rstream"])
def test_each_row_is_passed_to_on_row_once_even_if_it_raises(report):
    wanted: list[Any] = []
    items = [item(n) for n in range(60)]
    with QUERY.open(on_row=wanted.append, report=report) as live:
        live.push_many(S, items)
    offered: list[Any] = []

    def sometimes(row: Any) -> None:
        offered.append(row)
        if len(offered) % 3 == 1:
            raise ValueError(len(offered))

    live = QUERY.open(on_row=sometimes, report=report)
    raised = 0
    for call in [lambda: live.push_many(S, items), *[live.close] * len(wanted)]:
        try:
            call()
        except ValueError as error:
            assert error.args == (len(offered),)
            raised += 1
    assert list(map(str, offered)) == list(map(str, wanted))
    assert raised == -(-len(wanted) // 3)


@pytest.mark.parametrize("error", [ValueError("no more"), KeyboardInterrupt()])
@pytest.mark.parametrize("table", [False, True])
def test_items_before_the_error_of_a_source_are_pushed_and_counted(error, table):
    items = [item(n) for n in range(40)]
    with QUERY.open() as live:
        live.push_many(S, items)
    wanted = bag(live.rows())
    live = QUERY.open()
    source: Any = raising(items[:25], error)
    if table:
        columns = zip(*items[:25], strict=True)
        names = ("subject", "predicate", "object", "timestamp")
        batch = pa.record_batch(list(map(pa.array, columns)), names)
        source = pa.RecordBatchReader.from_batches(batch.schema, raising([batch], error))
    with pytest.raises(type(error)) as raised:
        live.push_many(S, source)
    assert raised.value.__notes__[-1] == f"<{S}>: 25 items were read before this error"
    assert live.stats().items.accepted == 25
    live.push_many(S, items[25:])
    live.close()
    assert bag(live.rows()) == wanted


# -- an exception at any line ---------------------------------------------------------------------


class Signal(BaseException):
    """An exception that may come anywhere, such as KeyboardInterrupt."""


@contextmanager
def raised_at(line: int) -> Iterator[list[int]]:
    """Raise a `Signal` at this executed line of the package; yield a counter of its lines."""
    count = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            count[0] += 1
            if count[0] == line:
                raise Signal
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


@contextmanager
def signalled_after(seconds: float) -> Iterator[None]:
    """Raise a `Signal` in the handler of a signal that arrives about then.

    No garbage is collected meanwhile: what is raised in a callback of that is only reported.
    """

    def handle(*_: object) -> None:
        raise Signal

    before = signal.signal(signal.SIGALRM, handle)
    gc.disable()
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        gc.enable()
        signal.signal(signal.SIGALRM, before)


def lines_of(call: Callable[[], object]) -> int:
    call()  # what is computed once per process is not counted
    with raised_at(-1) as count:
        call()
    return count[0]


@cache
def lines_of_request(name: str, once: bool) -> int:
    items = [item(n) for n in range(30)]
    return lines_of(lambda: REQUESTS[name](QUERY.run({S: iter(items) if once else items})))


def check_result(name: str, once: bool, raising: AbstractContextManager[object]) -> None:
    items = [item(n) for n in range(30)]
    result = None
    with suppress(Signal), raising:
        result = QUERY.run({S: iter(items) if once else items})
        REQUESTS[name](result)
    for again, request in REQUESTS.items() if result else ():
        wanted = request(QUERY.run({S: items}))
        try:
            assert request(result) == wanted, (name, again)
        except EngineError:
            assert once


def failing_at(place: int, items: list[Any]) -> Iterator[Any]:
    for k, one in enumerate(items):
        if k == place:
            raise Signal
        yield one


def script(
    live: Live[Any], items: list[Any], rows: list[Any], place: int = -1, mode: str = "rows"
) -> list[Callable[[], object]]:
    """Return calls that push the items and read the rows; a source may raise."""
    return [
        lambda: live.push_many(S, failing_at(place, items[:9])),
        lambda: rows.extend(live.rows()),
        *(lambda one=one: live.push(S, one[:3], one[3]) for one in items[9:12]),
        lambda: live.stats() if mode == "report" else live.snapshot(),
        lambda: live.push_many(S, items[12:20]),
        lambda: rows.extend(live.rows()),
        lambda: live.advance(20),
        lambda: live.late,
        lambda: live.push_many(S, failing_at(place - 20, items[20:])),
        lambda: live.close(),
        lambda: rows.extend(live.rows()),
    ]


def opened(mode: str, place: int = -1) -> tuple[Live[Any], list[Any]]:
    """Open a query; return it and the list of rows that `on_row` adds to, and where it raises."""
    rows: list[Any] = []

    def on_row(row: Any) -> None:
        rows.append(row)
        if len(rows) == place:
            raise Signal

    if mode == "on_row":
        return QUERY.open(on_row=on_row), rows
    return QUERY.open(report="istream" if mode == "report" else None), rows


@cache
def lines_of_script(mode: str) -> int:
    def run() -> None:
        live, rows = opened(mode)
        for call in script(live, [item(n) for n in range(30)], rows, mode=mode):
            call()

    return lines_of(run)


def check_live(
    mode: str, raising: AbstractContextManager[object], row: int = -1, place: int = -1
) -> None:
    items = [item(n) for n in range(30)]
    live, rows = opened(mode, row)
    calls = script(live, items, rows, place, mode)
    ends = {0: 9, **{k: k + 8 for k in range(2, 5)}, 6: 20, 10: 30}
    done: list[Callable[[], object]] = []
    try:
        with raising:
            for call in calls:
                call()
                done.append(call)
    except Signal:
        stopped = len(done)
        try:
            before = max((end for k, end in ends.items() if k < stopped), default=0)
            for call in calls[stopped + (stopped in ends) :]:
                call()
            read = live.stats().items.read
        except EngineError as error:
            assert "unusable" in str(error)
            return
        pushed = items
        if stopped in ends:
            after = items[ends[stopped] :]
            pushed = [*items[: read - len(after)], *after]
            assert before <= read - len(after) <= ends[stopped]
        check, wanted = opened(mode)
        check.push_many(S, pushed)
        check.close()
        wanted += check.rows()
        assert bag(rows) == bag(wanted), (mode, stopped)


EXAMPLES = pytest.mark.parametrize("examples", [30, pytest.param(2_000, marks=pytest.mark.long)])
MODES = ["rows", "on_row", "report"]


@EXAMPLES
def test_result_interrupted_at_any_line_is_right_or_raises(examples):
    random = Random(7)
    for _ in range(examples):
        name, once = random.choice([*REQUESTS]), random.random() < 0.3
        line = random.randint(1, lines_of_request(name, once))
        check_result(name, once, raised_at(line))


@EXAMPLES
def test_open_query_interrupted_at_any_line_is_right_or_unusable(examples):
    random = Random(7)
    for _ in range(examples):
        mode = random.choice(MODES)
        check_live(mode, raised_at(random.randint(1, lines_of_script(mode))))


@EXAMPLES
def test_result_interrupted_by_a_signal_is_right_or_raises(examples):
    random = Random(7)
    for _ in range(examples):
        name, once = random.choice([*REQUESTS]), random.random() < 0.3
        check_result(name, once, signalled_after(random.uniform(1e-5, 0.01)))


@EXAMPLES
def test_open_query_interrupted_by_a_signal_is_right_or_unusable(examples):
    random = Random(7)
    for _ in range(examples):
        check_live(random.choice(MODES), signalled_after(random.uniform(1e-5, 0.02)))


@pytest.mark.parametrize("place", range(30))
def test_open_query_is_right_after_a_source_or_on_row_raised(place):
    for mode in MODES:
        check_live(mode, nullcontext(), place=place)
    check_live("on_row", nullcontext(), row=place)
