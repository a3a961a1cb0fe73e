"""Engines, connections and sessions of asyncio, over SQLAlchemy's own bridge.

A connection belongs to its event loop, so a check on one cannot move to another thread. `run_sync` runs it
in a greenlet on the loop: each statement is awaited and lets other tasks go on; only the computing between
two statements, some milliseconds a record, keeps the loop.
"""

from collections.abc import Callable
from typing import TypeGuard, TypeVar

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session

from db_dedup.app.database import Database

AsyncBind = AsyncEngine | AsyncConnection | AsyncSession

_T = TypeVar("_T")


def is_async(given: object) -> TypeGuard[AsyncBind]:
    """Whether it is one of asyncio's."""
    return isinstance(given, AsyncEngine | AsyncConnection | AsyncSession | async_scoped_session)


async def bridged(
    database: Database, given: AsyncBind, work: Callable[[Connection | Session | None], _T]
) -> _T:
    """Run synchronous work on the connection or session; of an engine, on a connection that it lends.

    Args:
        database: whose errors are translated.
        given: never committed nor rolled back, but for the connection of an engine.
        work: gets the synchronous side of what was given.
    """
    with database.errors_told():
        if isinstance(given, AsyncEngine):
            async with given.connect() as connection:
                return await connection.run_sync(work)
        return await given.run_sync(work)
