"""Sessions for coroutines: the rows of a plain session, whatever is cancelled or fails."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

import streamsparql
from streamsparql.errors import EngineError, QuerySyntaxError, SourceError

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

TEXT = "SELECT ?s ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }"
ITEMS = [(f"<{k % 3}>", "<p>", k, k) for k in range(200)]


def expected(text: str = TEXT) -> list[Any]:
    session = streamsparql.Session()
    query = session.register(text)
    session.run({"s": ITEMS})
    return query.rows()


def test_rows_are_those_of_a_session() -> None:
    async def main() -> list[Any]:
        async with streamsparql.AsyncSession() as session:
            query = await session.register(TEXT, "q")
            reader = asyncio.create_task(_all(query))
            for item in ITEMS[:50]:
                await session.push("s", item[:3], item[3])
            await session.push_many("s", ITEMS[50:])
        return await reader

    assert asyncio.run(main()) == expected()


async def _all(query: Any) -> list[Any]:
    return [row async for row in query]


def test_several_readers_share_the_rows_of_a_query() -> None:
    async def main() -> list[Any]:
        async with streamsparql.AsyncSession() as session:
            query = await session.register(TEXT)
            readers = [asyncio.create_task(_all(query)) for _ in range(3)]
            await session.push_many("s", ITEMS)
        return [row for reader in readers for row in await reader]

    rows = asyncio.run(main())
    assert sorted(rows, key=lambda row: (row.start, str(row))) == sorted(
        expected(), key=lambda row: (row.start, str(row))
    )


@pytest.mark.parametrize("seed", range(10))
def test_cancelled_tasks_lose_nothing(seed: int) -> None:
    """Readers are cancelled at random moments; pushes that are cancelled are pushed."""
    chance = random.Random(seed)

    async def main() -> list[Any]:
        rows: list[Any] = []

        async def read(query: Any) -> None:
            async for row in query:
                rows.append(row)

        async with streamsparql.AsyncSession() as session:
            query = await session.register(TEXT)
            at = 0
            while at < len(ITEMS):
                reader = asyncio.create_task(read(query))
                count = chance.randrange(1, 20)
                pushing = asyncio.create_task(session.push_many("s", ITEMS[at : at + count]))
                at += count
                for _ in range(chance.randrange(5)):
                    await asyncio.sleep(0)
                if chance.random() < 0.5:
                    pushing.cancel()
                reader.cancel()
                await asyncio.gather(reader, pushing, return_exceptions=True)
                if chance.random() < 0.3:
                    rows += await query.rows()
        rows += await query.rows()
        return rows

    # a push that is cancelled before it began is not made; all others are, once
    rows = asyncio.run(main())
    assert [row for row in expected() if row in rows] == rows


def test_rows_that_a_cancelled_task_asked_for_are_the_next_ones() -> None:
    async def main() -> list[Any]:
        rows: list[Any] = []
        async with streamsparql.AsyncSession() as session:
            query = await session.register(TEXT)
            for at in range(0, len(ITEMS), 20):
                await session.push_many("s", ITEMS[at : at + 20])
                reading = asyncio.create_task(query.rows())
                await asyncio.sleep(0)
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
                if at % 3:
                    rows += await query.rows()
        return rows + await query.rows()

    assert asyncio.run(main()) == expected()


def test_a_query_is_registered_though_the_task_is_cancelled() -> None:
    async def main() -> None:
        async with streamsparql.AsyncSession() as session:
            registering = asyncio.create_task(session.register(TEXT, "q"))
            await asyncio.sleep(0)
            registering.cancel()
            await asyncio.gather(registering, return_exceptions=True)
            await session.stats()
            assert [*session.queries] == ["q"]
            leaving = asyncio.create_task(session.unregister("q"))
            await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            await session.stats()
            assert not session.queries

    asyncio.run(main())


def test_errors_reach_the_caller_and_leave_the_session_usable() -> None:
    async def main() -> list[Any]:
        async with streamsparql.AsyncSession() as session:
            with pytest.raises(QuerySyntaxError):
                await session.register("SELECT")
            with pytest.raises(EngineError, match="on_row is not an option"):
                await session.register(TEXT, on_row=print)
            query = await session.register(TEXT, "q")
            with pytest.raises(SourceError):
                await session.push("s", ("<a>", "<p>"), 1)
            with pytest.raises(EngineError, match="unknown stream"):
                await session.push("t", ("<a>", "<p>", 1), 1)
            with pytest.raises(EngineError, match="registered as 'q' already"):
                await session.register(TEXT, "q")
            await session.push("s", ("<a>", "<p>", 1), 1)
            await session.advance(5)
            assert (await session.stats()).items.accepted == 1
            assert "1 query, 1 plan" in await session.explain()
            await query.close()
            assert not session.queries
            return [row async for row in query]

    (row,) = asyncio.run(main())
    assert (row.start, row.value("o")) == (1, 1)


def test_what_is_not_open_is_refused() -> None:
    session = streamsparql.AsyncSession()
    with pytest.raises(EngineError, match="use async with"):
        asyncio.run(session.push("s", ("<a>", "<p>", 1), 1))

    async def open_and_leave() -> None:
        async with session:
            pass
        with pytest.raises(EngineError, match="closed"):
            await session.push("s", ("<a>", "<p>", 1), 1)
        with pytest.raises(EngineError, match="opened already"):
            await session.__aenter__()

    asyncio.run(open_and_leave())


def test_instances_have_rows_with_their_keys() -> None:
    async def main() -> list[Any]:
        async with streamsparql.AsyncSession() as session:
            query = await session.register(
                "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { $who <p> ?o }"
            )
            one, two = await query.add(who="<1>"), await query.add(who="<2>")
            await session.push_many("s", ITEMS[:3])
            await query.remove(one)
            await session.advance(30)
            return [(key - two, row.value("o")) async for key, row in _until_closed(session, query)]

    assert sorted(asyncio.run(main())) == [(-1, 1), (0, 2)]


async def _until_closed(session: Any, query: Any) -> Any:
    await session.close()
    async for element in query:
        yield element


def test_an_asynchronous_source_is_pushed_as_it_arrives() -> None:
    async def source() -> Any:
        for item in ITEMS:
            if not item[3] % 7:
                await asyncio.sleep(0)
            yield item

    async def main() -> list[Any]:
        async with streamsparql.AsyncSession() as session:
            query = await session.register(TEXT)
            await session.push_many("s", source())
        return await query.rows()

    assert asyncio.run(main()) == expected()


def test_a_step_that_fails_ends_readers_with_the_error() -> None:
    async def main() -> None:
        limits = streamsparql.Limits(state=5)
        async with streamsparql.AsyncSession(limits=limits) as session:
            query = await session.register(
                "SELECT ?s FROM STREAM <s> WINDOW RANGE 1 HOUR FIXED { ?s <p> ?o . ?s <p> ?q }"
            )
            reader = asyncio.create_task(_all(query))
            await asyncio.sleep(0)
            await session.push_many("s", ITEMS)
            with pytest.raises(streamsparql.LimitExceeded):
                await reader
            with pytest.raises(EngineError, match="unusable"):
                await session.advance(500)
            raise streamsparql.EngineError("the end")

    with pytest.raises(EngineError, match="the end"):
        asyncio.run(main())
