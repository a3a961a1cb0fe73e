"""Checks on the connections and sessions of asyncio answer as others do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest
from sqlalchemy import delete, insert, make_url, select
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from db_dedup import AsyncBind, Database, DedupError, Deduplicator, Record
from db_dedup.cli.demo import fill, petitions
from db_dedup.sample import Sample
from tests.api.conftest import scan
from tests.servers import Database as Served

ON_BOTH = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
BINDS = ("engine", "connection", "session")


@pytest.fixture
def dedup(database: Served, sample: Sample) -> Deduplicator:
    with database.engine.begin() as connection:
        fill(connection, sample)
    found = scan(Database(database.engine))
    found.attach()
    found.scan()
    return found


@asynccontextmanager
async def opened(dedup: Deduplicator) -> AsyncIterator[AsyncEngine]:
    """An engine of asyncio to the same database: psycopg has both ways, SQLite asks for another driver."""
    url = dedup.database.engine.url
    url = url.set(drivername="sqlite+aiosqlite") if url.get_backend_name() == "sqlite" else url
    engine = create_async_engine(url)
    try:
        yield engine
    finally:
        await engine.dispose()


@asynccontextmanager
async def bound(engine: AsyncEngine, kind: str) -> AsyncIterator[AsyncBind]:
    if kind == "engine":
        yield engine
    elif kind == "connection":
        async with engine.connect() as connection:
            yield connection
    else:
        async with AsyncSession(engine) as session:
            yield session


def run(dedup: Deduplicator, work: Callable[[AsyncEngine], Awaitable[Any]]) -> Any:
    async def within() -> Any:
        async with opened(dedup) as engine:
            return await work(engine)

    return asyncio.run(within())


def records_of(sample: Sample) -> list[Record]:
    return [{"title": p.title, "content": p.content, "region": p.region} for p in sample.petitions[:12]]


@ON_BOTH
def test_a_check_answers_as_a_synchronous_one(dedup: Deduplicator, sample: Sample) -> None:
    records = records_of(sample)

    async def work(engine: AsyncEngine) -> None:
        for kind in BINDS:
            async with bound(engine, kind) as bind:
                assert await dedup.check(records[0], bind) == dedup.check(records[0]) != []
                assert await dedup.check_in_full(records[1], bind) == dedup.check_in_full(records[1])
                assert await dedup.check_many(records, bind) == dedup.check_many(records)

    run(dedup, work)


@ON_BOTH
def test_a_check_that_blocks_works_in_the_transaction_of_a_session(
    dedup: Deduplicator, sample: Sample
) -> None:
    """It sees what the session has not committed, stores the fingerprint, and commits nothing."""
    record = {"title": "建议增设图书馆", "content": "老年大学旁边没有可以看书的地方，希望增设一处。"}
    row = {**record, "id": 9001, "created_at": sample.petitions[0].created_at, "channel": "网站"}

    async def store(session: AsyncSession) -> None:
        assert await dedup.check(record, session, block=True, row_key=9001) == []
        await session.execute(insert(petitions).values(row))
        assert [m.row_key for m in await dedup.check(record, session, block=True)] == ["9001"]

    async def work(engine: AsyncEngine) -> None:
        async with AsyncSession(engine) as session:
            await store(session)
            await session.rollback()
            assert await dedup.check(record, session) == []
        async with AsyncSession(engine) as session, session.begin():
            await store(session)
        async with engine.connect() as connection:
            assert [m.row_key for m in await dedup.check(record, connection, block=True)] == ["9001"]
            await connection.rollback()
        async with engine.begin() as connection:
            await connection.execute(delete(petitions).where(petitions.c.id == 9001))

    run(dedup, work)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_of_two_tasks_one_waits_for_the_other(dedup: Deduplicator, sample: Sample) -> None:
    """While one waits for the lock the loop goes on, or the other could never commit."""
    record = {"title": "建议增设图书馆", "content": "老年大学旁边没有可以看书的地方，希望增设一处。"}
    row = {**record, "created_at": sample.petitions[0].created_at, "channel": "网站"}

    async def store(engine: AsyncEngine, number: int) -> bool:
        async with AsyncSession(engine) as session, session.begin():
            if await dedup.check(record, session, block=True):
                return False
            await asyncio.sleep(0)
            await session.execute(insert(petitions).values(id=number, **row))
            return True

    async def work(engine: AsyncEngine) -> None:
        stored = await asyncio.gather(*(store(engine, 9001 + n) for n in range(4)))
        assert sorted(stored) == [False, False, False, True]

    run(dedup, work)


@ON_BOTH
def test_errors_are_ours(dedup: Deduplicator) -> None:
    async def refused(waiting: Awaitable[object], words: str) -> None:
        with pytest.raises(DedupError, match=words):
            await waiting

    async def work(engine: AsyncEngine) -> None:
        with pytest.raises(DedupError, match="hand over its connection"):
            await dedup.check({"title": "x"}, engine, block=True)
        await refused(dedup.check({"titel": "x"}, engine), "unknown column")
        async with engine.connect() as connection:
            pass
        await refused(dedup.check({"title": "x"}, connection), "is closed|not started")

    run(dedup, work)


@ON_BOTH
def test_of_an_engine_the_url_is_taken_for_scans(dedup: Deduplicator, sample: Sample) -> None:
    async def work(engine: AsyncEngine) -> None:
        ours = Deduplicator(engine, "petitions")
        with closing(ours.database):
            assert not ours.database.engine.dialect.is_async
            assert ours.groups() == dedup.groups()
            assert ours.scan().pairs > 0
            assert await ours.check(records_of(sample)[0], engine) == ours.check(records_of(sample)[0])

    run(dedup, work)


def test_a_store_apart(sqlite_database: Served, sample: Sample, tmp_path: Any) -> None:
    """Our own tables are then read without asyncio."""
    with sqlite_database.engine.begin() as connection:
        fill(connection, sample)
        assert connection.scalar(select(petitions.c.id).limit(1))
    with closing(Database(sqlite_database.engine, store=f"sqlite:///{tmp_path / 'store.db'}")) as database:
        dedup = scan(database)
        record = records_of(sample)[0]

        async def work() -> None:
            engine = create_async_engine(make_url(sqlite_database.url).set(drivername="sqlite+aiosqlite"))
            async with engine.connect() as connection:
                assert await dedup.check(record, connection) == dedup.check(record) != []
            await engine.dispose()

        asyncio.run(work())
