"""Sessions of asyncio are guarded as others are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, sessionmaker

from db_dedup import (
    Deduplicator,
    DuplicateError,
    InvalidArgumentError,
    allow_duplicate,
    found_duplicates,
    guard_duplicates,
)
from tests.orm.office import BUS, NOISE, NOISE_AGAIN, Petition, make_office, petition
from tests.servers import Database

ON_BOTH = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def dedup(database: Database) -> Deduplicator:
    return make_office(database.engine)


def run(dedup: Deduplicator, work: Callable[[AsyncEngine], Awaitable[Any]]) -> Any:
    async def within() -> Any:
        url = dedup.database.engine.url
        is_file = url.get_backend_name() == "sqlite"
        engine = create_async_engine(url.set(drivername="sqlite+aiosqlite") if is_file else url)
        try:
            return await work(engine)
        finally:
            await engine.dispose()

    return asyncio.run(within())


@ON_BOTH
def test_a_duplicate_is_reported_or_refused(dedup: Deduplicator) -> None:
    async def work(engine: AsyncEngine) -> None:
        reporting, blocking = async_sessionmaker(engine), async_sessionmaker(engine)
        guard_duplicates(reporting, Petition, dedup)
        guard_duplicates(blocking, Petition, dedup, "block", lambda _: None)
        async with reporting() as session, session.begin():
            session.add(again := petition(NOISE_AGAIN))
            await session.flush()
            assert [found.instance for found in found_duplicates(session)] == [again]
        async with blocking() as session, session.begin():
            session.add(another := petition(NOISE))
            with pytest.raises(DuplicateError):
                await session.flush()
            allow_duplicate(another, "seen")
            session.add(petition(BUS))
            await session.flush()
            again = await session.get_one(Petition, 2)
            await session.refresh(again, ["title"])
            session.expire(again, ["body"])
            again.region = "城西区"  # a watched column, so the text that is not loaded is read
            with pytest.raises(DuplicateError):
                await session.flush()
            session.expire(again)
        async with AsyncSession(engine) as session:
            assert await session.scalar(select(func.count()).select_from(Petition)) == 4

    run(dedup, work)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_of_two_tasks_one_stores_the_text(dedup: Deduplicator) -> None:
    async def store(sessions: async_sessionmaker[AsyncSession]) -> bool:
        try:
            async with sessions() as session, session.begin():
                session.add(petition(BUS))
                await session.flush()
                await asyncio.sleep(0.2)
        except DuplicateError:
            return False
        return True

    async def work(engine: AsyncEngine) -> None:
        sessions = async_sessionmaker(engine)
        guard_duplicates(sessions, Petition, dedup, "block")
        assert sorted(await asyncio.gather(*(store(sessions) for _ in range(3)))) == [False, False, True]

    run(dedup, work)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_whatever_makes_sessions_is_guarded_alone(dedup: Deduplicator) -> None:
    async def found_in(session: AsyncSession) -> int:
        async with session:
            session.add(petition(NOISE))
            await session.flush()
            return len(found_duplicates(session))

    async def work(engine: AsyncEngine) -> None:
        one = AsyncSession(engine)
        guard_duplicates(one, Petition, dedup)
        own_class = async_sessionmaker(engine, sync_session_class=sessionmaker())
        guard_duplicates(own_class, Petition, dedup)
        registry = async_scoped_session(async_sessionmaker(engine), asyncio.current_task)
        guard_duplicates(registry, Petition, dedup)
        for session in (one, own_class(), registry()):
            assert await found_in(session) == 1
        assert await found_in(async_sessionmaker(engine)()) == 0
        assert await found_in(AsyncSession(engine)) == 0
        with pytest.raises(InvalidArgumentError, match="sessions should be"):
            guard_duplicates(AsyncSession, Petition, dedup)  # type: ignore[arg-type]
        with Session(dedup.database.engine) as plain:
            plain.add(petition(NOISE))
            plain.flush()
            assert found_duplicates(plain) == []

    run(dedup, work)
