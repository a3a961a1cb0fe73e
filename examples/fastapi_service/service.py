"""A web service that stores a petition unless it repeats one that is stored: with FastAPI, on any database.

    DB_DEDUP_URL=postgresql://user:password@host/office uvicorn --factory service:from_environment

The table `petitions` is scanned and attached before: `db-dedup scan petitions`, `db-dedup attach petitions`,
and another scan. A worker keeps pairs and groups right.
"""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy import String, Text, create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from db_dedup import Database, DedupError, Deduplicator, Match

ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.1

T = TypeVar("T")


class Base(DeclarativeBase):
    """Of the tables."""


class Petition(Base):
    """A petition as it is stored."""

    __tablename__ = "petitions"

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(200))
    content: Mapped[str] = mapped_column(Text)
    region: Mapped[str | None] = mapped_column(String(50))
    created_at: Mapped[datetime]


Storable = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""PostgreSQL stores no NUL."""


class NewPetition(BaseModel):
    """What comes in."""

    title: Annotated[Storable, Field(max_length=200)]
    content: Storable
    region: Annotated[Storable, Field(max_length=50)] | None = None


class Receipt(BaseModel):
    """What goes back: the number of the petition."""

    id: int


def make_service(url: str, async_url: str) -> FastAPI:
    """The service on one database, which has an URL for drivers with asyncio and one for those without."""
    # PostgreSQL's default, and what lets others wait least on MariaDB and MySQL; SQLite knows other levels.
    level = None if url.startswith("sqlite") else "READ COMMITTED"
    options = {} if level is None else {"isolation_level": level}
    engine, async_engine = create_engine(url, **options), create_async_engine(async_url, **options)
    database = Database(engine)
    dedup = Deduplicator(database, "petitions")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # The first check prepares the segmenter and compiles: not while it keeps the table locked.
        await asyncio.to_thread(dedup.make_ready)
        yield
        engine.dispose()
        await async_engine.dispose()

    service = FastAPI(lifespan=lifespan)
    service.add_exception_handler(DedupError, explain_error)

    @service.post("/petitions", status_code=201)
    def receive(petition: NewPetition) -> Receipt:
        def store() -> int:
            with database.translate_driver_errors(), Session(engine) as session, session.begin():
                refuse(dedup.check(petition.model_dump(), session, block=True))
                session.add(row := row_of(petition))
                session.flush()
                return row.id

        return Receipt(id=retried(store))

    @service.post("/async/petitions", status_code=201)
    async def receive_async(petition: NewPetition) -> Receipt:
        async def store() -> int:
            with database.translate_driver_errors():
                async with AsyncSession(async_engine) as session, session.begin():
                    refuse(await dedup.check(petition.model_dump(), session, block=True))
                    session.add(row := row_of(petition))
                    await session.flush()
                    return row.id

        return Receipt(id=await retried_async(store))

    return service


def row_of(petition: NewPetition) -> Petition:
    """A new row."""
    return Petition(**petition.model_dump(), created_at=datetime.now(UTC).replace(tzinfo=None))


def refuse(matches: list[Match]) -> None:
    """Answer 409 with the petitions that are repeated; the transaction is rolled back."""
    if matches:
        raise HTTPException(409, {"repeats": [match.row_key for match in matches]})


def pauses() -> Iterator[float]:
    """Seconds to wait before the second attempt and those after it, not the same for everybody."""
    for attempt in range(ATTEMPTS - 1):
        yield FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.5)


def retried(work: Callable[[], T]) -> T:
    """Do a whole transaction again where it failed for a reason that passes."""
    for pause in pauses():
        try:
            return work()
        except DedupError as error:
            if not error.is_transient:
                raise
        time.sleep(pause)
    return work()


async def retried_async(work: Callable[[], Awaitable[T]]) -> T:
    """The same without keeping the loop."""
    for pause in pauses():
        try:
            return await work()
        except DedupError as error:
            if not error.is_transient:
                raise
        await asyncio.sleep(pause)
    return await work()


async def explain_error(_: Request, error: Exception) -> JSONResponse:
    """503 where another attempt may succeed, 500 for what an administrator must see to."""
    is_transient = isinstance(error, DedupError) and error.is_transient
    headers = {"Retry-After": "5"} if is_transient else None
    return JSONResponse({"detail": str(error)}, 503 if is_transient else 500, headers)


def from_environment() -> FastAPI:
    """The service on the database of DB_DEDUP_URL, which is PostgreSQL: psycopg serves both ways."""
    url = os.environ["DB_DEDUP_URL"].replace("postgresql://", "postgresql+psycopg://", 1)
    return make_service(url, url)
