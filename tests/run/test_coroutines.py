"""Open queries in coroutines: each row is offered once, whatever is cancelled or raises."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any

import pytest

import streamsparql
from streamsparql.errors import EngineError
from streamsparql.run.rows import Report

S = "http://e/s"
TEXT = (
    f"SELECT ?x (SUM(?n) AS ?sum) FROM STREAM <{S}> WINDOW RANGE 10 SLIDE 5"
    " WHERE { ?x <http://e/p> ?n } GROUP BY ?x"
)
QUERY = streamsparql.compile(TEXT)


def item(n: int) -> tuple[str, str, str, int]:
    number = f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<http://e/{n % 3}>", "<http://e/p>", number, n


ITEMS = [item(n) for n in range(40)]


def shown(row: Any) -> str:
    """Return a row, or a report, as text; the rows of a report are a bag."""
    if isinstance(row, Report):
        return f"{row.instant} {sorted(map(str, row.rows))}"
    return str(row)


def expected(report: Any = None) -> list[str]:
    with QUERY.open(report=report) as live:
        live.push_many(S, ITEMS)
    return list(map(shown, live.rows()))


async def feed(live: Any, random: Random | None = None) -> None:
    """Push all items, with pauses, and close the query."""
    for *triple, t in ITEMS:
        live.push(S, triple, t)
        if random is None or random.random() < 0.5:
            await asyncio.sleep(0)
    live.close()


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    async def limited() -> Any:
        return await asyncio.wait_for(main(), 60)

    return asyncio.run(limited())


# -- iteration ------------------------------------------------------------------------------------


@pytest.mark.parametrize("report", [None, "rstream", "istream"])
def test_rows_arrive_as_other_tasks_push(report: Any) -> None:
    async def main() -> list[str]:
        rows, watermarks = [], set()
        async with QUERY.open(report=report) as live:
            feeding = asyncio.create_task(feed(live))
            async for row in live:
                rows.append(shown(row))
                watermarks.add(live._watermark)
            await feeding
        assert len(watermarks) > 3  # not all at the end
        return rows

    rows = run(main)
    assert sorted(rows) == sorted(expected(report))
    if report is not None:
        assert rows == expected(report)


def test_every_way_of_pushing_wakes_a_reader() -> None:
    async def main() -> None:
        live = QUERY.open()
        for push in (
            lambda: [live.push(S, triple, t) for *triple, t in ITEMS[:12]],
            lambda: live.push_many(S, ITEMS[12:22]),
            lambda: live.push_many(S, iter(ITEMS[22:32])),
            lambda: live.advance(45),
        ):
            waiting = asyncio.ensure_future(anext(live.aiter()))
            await asyncio.sleep(0)
            push()
            assert (await waiting).start < 45
            live.rows()
        live.push(S, item(50)[:3], 50)
        last = asyncio.ensure_future(anext(live.aiter()))
        await asyncio.sleep(0)
        live.close()
        assert (await last).start == 50
        with pytest.raises(StopAsyncIteration):
            await anext(live.aiter())

    run(main)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("report", [None, "rstream"])
def test_cancelled_readers_lose_no_row(seed: int, report: Any) -> None:
    """Readers are cancelled at random; others, `rows` and `to_arrow` return what they left."""
    random = Random(seed)

    async def main() -> tuple[list[str], int]:
        rows: list[str] = []
        tabled = 0
        live = QUERY.open(report=report)
        feeding = asyncio.create_task(feed(live, random))

        async def read(limit: int) -> None:
            async for row in live:
                rows.append(shown(row))
                if (limit := limit - 1) == 0:
                    break
                if random.random() < 0.3:
                    await asyncio.sleep(0)

        while not feeding.done():
            reader = asyncio.create_task(read(random.randint(1, 9)))
            for _ in range(random.randint(0, 4)):
                await asyncio.sleep(0)
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            if random.random() < 0.3:
                rows += map(shown, live.rows())
        await feeding
        if random.random() < 0.5:
            await asyncio.create_task(read(2))
        if report is None and random.random() < 0.5:
            tabled = live.to_arrow().num_rows
        rows += map(shown, live.rows())
        return rows, tabled

    rows, tabled = run(main)
    wanted = expected(report)
    assert len(rows) + tabled == len(wanted)
    assert set(rows) <= set(wanted)
    if not tabled:
        assert sorted(rows) == sorted(wanted)


def test_rows_that_were_left_are_also_in_tables() -> None:
    async def main(report: Any) -> tuple[int, int]:
        live = QUERY.open(report=report)
        live.push_many(S, ITEMS)
        live.close()
        first = await anext(live.aiter())
        rows = 1 if report is None else len(first.rows)  # type: ignore[union-attr]
        return rows, live.to_arrow().num_rows

    for report in (None, "rstream"):
        first, rest = run(partial(main, report))
        assert first + rest == QUERY.run(ITEMS).to_arrow(report=report).num_rows  # type: ignore[arg-type]


def test_readers_share_the_rows() -> None:
    async def main() -> list[list[str]]:
        live = QUERY.open()

        async def read() -> list[str]:
            rows = []
            async for row in live:
                rows.append(shown(row))
                await asyncio.sleep(0)
            return rows

        *rows, _ = await asyncio.gather(read(), read(), feed(live))
        return rows

    one, other = run(main)
    assert one
    assert other
    assert sorted(one + other) == sorted(expected())


def test_reader_raises_the_error_of_a_step_that_another_task_made() -> None:
    async def main() -> None:
        live = QUERY.open()
        reader = asyncio.create_task(anext(live.aiter()))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        live._execution.step = lambda *_, **__: 1 // 0  # type: ignore[method-assign, assignment]
        with pytest.raises(ZeroDivisionError):
            live.advance(50)
        with pytest.raises(EngineError, match="unusable: ZeroDivisionError"):
            await reader

    run(main)


def test_pushing_from_another_thread_while_a_task_waits_is_an_error() -> None:
    errors: list[str] = []

    def push(live: Any, call: Callable[[], Any]) -> None:
        try:
            call()
        except EngineError as error:
            errors.append(str(error))

    async def main() -> None:
        live = QUERY.open()
        reader = asyncio.create_task(anext(live.aiter()))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        for call in (lambda: live.push(S, item(1)[:3], 1), live.close):
            thread = threading.Thread(target=push, args=(live, call))
            thread.start()
            thread.join()
        assert ["in another thread waits" in error for error in errors] == [True, True]
        loop = asyncio.get_running_loop()
        safe = partial(loop.call_soon_threadsafe, live.push_many, S, ITEMS)
        thread = threading.Thread(target=safe)
        thread.start()
        assert (await reader).start == 0
        thread.join()

    run(main)


# -- on_row ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("report", [None, "rstream"])
@pytest.mark.parametrize("slow", [False, True])
def test_coroutine_function_is_awaited_with_each_row_in_order(report: Any, slow: bool) -> None:
    async def main() -> list[str]:
        rows: list[str] = []
        running = 0

        async def on_row(row: Any) -> None:
            nonlocal running
            running += 1
            assert running == 1
            await asyncio.sleep(0.001 if slow else 0)
            rows.append(shown(row))
            running -= 1

        async with QUERY.open(on_row=on_row, report=report) as live:
            await feed(live)
        assert live.rows() == []
        return rows

    plain: list[str] = []
    with QUERY.open(on_row=lambda row: plain.append(shown(row)), report=report) as live:
        for *triple, t in ITEMS:
            live.push(S, triple, t)
    assert run(main) == plain


def test_each_row_is_offered_once_even_if_the_coroutine_raises() -> None:
    async def main() -> tuple[list[str], int]:
        offered: list[str] = []
        raised = 0

        async def on_row(row: Any) -> None:
            await asyncio.sleep(0)
            offered.append(shown(row))
            if len(offered) % 3 == 1:
                raise ValueError(len(offered))

        live = QUERY.open(on_row=on_row)
        calls: list[Callable[[], Any]] = [
            *(partial(live.push, S, triple, t) for *triple, t in ITEMS),
            live.drain,
            partial(live.advance, 90),
            *[live.aclose] * 60,
        ]
        for call in calls:
            try:
                if (result := call()) is not None:
                    await result
            except ValueError:
                raised += 1
            await asyncio.sleep(0)
        return offered, raised

    offered, raised = run(main)
    assert sorted(offered) == sorted(expected())
    assert raised == -(-len(offered) // 3)


def test_error_of_the_coroutine_reaches_drain_and_the_end_of_async_with() -> None:
    async def fails(row: Any) -> None:
        raise ValueError(row.start)

    async def drained() -> None:
        live = QUERY.open(on_row=fails)
        live.push_many(S, ITEMS)
        await live.drain()

    async def left() -> None:
        async with QUERY.open(on_row=fails) as live:
            live.push_many(S, ITEMS[:3])

    for main in (drained, left):
        with pytest.raises(ValueError, match=r"^0$"):
            run(main)


def test_cancelled_drain_does_not_cancel_on_row() -> None:
    async def main() -> list[str]:
        rows: list[str] = []
        gate = asyncio.Event()

        async def on_row(row: Any) -> None:
            await gate.wait()
            rows.append(shown(row))

        live = QUERY.open(on_row=on_row)
        live.push_many(S, ITEMS)
        draining = asyncio.create_task(live.drain())
        await asyncio.sleep(0)
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        assert rows == []
        gate.set()
        await live.aclose()
        return rows

    assert sorted(run(main)) == sorted(expected())


def test_cancelled_task_leaves_async_with_without_waiting() -> None:
    async def main() -> bool:
        async def on_row(row: Any) -> None:
            await asyncio.sleep(3600)

        live = QUERY.open(on_row=on_row)

        async def body() -> None:
            async with live:
                live.push_many(S, ITEMS)
                await asyncio.sleep(3600)

        task = asyncio.create_task(body())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return live.closed

    assert run(main) is True


def test_coroutine_function_may_push_to_another_query() -> None:
    async def main() -> list[int]:
        sums: list[int] = []
        total = streamsparql.compile(
            "SELECT (COUNT(?s) AS ?n) FROM STREAM <t> WINDOW RANGE 10 FIXED { ?x <http://e/sum> ?s }"
        )
        last = total.open(on_row=lambda row: sums.append(int(row["n"])))

        async def on_row(row: Any) -> None:
            last.push("t", (row["x"], "<http://e/sum>", row["sum"]), row.start)
            await asyncio.sleep(0)

        async with QUERY.open(on_row=on_row) as live:
            await feed(live)
        last.close()
        return sums

    assert sum(run(main)) > 0


def test_mistakes_with_coroutines_are_errors() -> None:
    async def on_row(row: Any) -> None: ...

    class Called:
        async def __call__(self, row: Any) -> None: ...

    for function in (on_row, partial(on_row), Called()):
        live = QUERY.open(on_row=function)
        with pytest.raises(EngineError, match="use async with"), live:
            pass
        with pytest.raises(EngineError, match="push items in a running event loop"):
            live.push_many(S, ITEMS)
    live = QUERY.open(on_row=lambda row: on_row(row))
    with pytest.raises(EngineError, match="on_row returned a coroutine; pass the coroutine funct"):
        live.push_many(S, ITEMS)
    with pytest.raises(EngineError, match="rows are passed to on_row; open the query without it"):
        aiter(QUERY.open(on_row=print))

    async def main() -> None:
        async def waits_for_itself(row: Any) -> None:
            await live.drain()

        live = QUERY.open(on_row=waits_for_itself)
        live.push_many(S, ITEMS)
        await live.drain()

    with pytest.raises(EngineError, match="on_row cannot wait for itself"):
        run(main)


# -- sessions -------------------------------------------------------------------------------------


def test_a_session_awaits_the_coroutine_functions_of_its_queries() -> None:
    async def main() -> dict[str, list[str]]:
        rows: dict[str, list[str]] = {"slow": [], "plain": []}

        async def slow(row: Any) -> None:
            await asyncio.sleep(0)
            rows["slow"].append(shown(row))

        async def items() -> Any:
            for one in ITEMS:
                yield one

        async with streamsparql.Session() as session:
            session.register(TEXT, "slow", on_row=slow)
            session.register(TEXT, "plain", on_row=lambda row: rows["plain"].append(shown(row)))
            await session.push_async(S, items())
        return rows

    rows = run(main)
    assert rows["slow"] == rows["plain"]
    assert sorted(rows["slow"]) == sorted(expected())


def test_mistakes_with_coroutines_in_a_session_are_errors() -> None:
    async def on_row(row: Any) -> None: ...

    with streamsparql.Session() as session:
        with pytest.raises(EngineError, match="use async with"):
            session.register(TEXT, on_row=on_row)
        session.register(TEXT)
        with pytest.raises(EngineError, match="pass mapping=; 'auto' maps"):
            session.push_record(S, {"v": 1})
    session = streamsparql.Session()
    session.register(TEXT, on_row=on_row)
    with pytest.raises(EngineError, match="push items in a running event loop"):
        session.push_many(S, ITEMS)
