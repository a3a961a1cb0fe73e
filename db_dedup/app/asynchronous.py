"""Engines, connections and sessions of asyncio, over SQLAlchemy's own bridge.

A connection belongs to its event loop, so a check on one cannot move to another thread. `run_sync` runs it
in a greenlet on the loop: each statement is awaited and lets other tasks go on; only the computing between
two statements, some milliseconds a record, keeps the loop.

SQLAlchemy's own asyncio module needs greenlet, which not everybody has: it is never imported from here, since
whoever hands over one of its objects has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from db_dedup.app.arguments import ASYNCIO, is_async_engine
from db_dedup.app.database import Database

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession

    AsyncBind = AsyncEngine | AsyncConnection | AsyncSession
else:

    def __getattr__(name: str) -> Any:
        """`AsyncBind`, when it is first asked for."""
        if name != "AsyncBind":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(ASYNCIO)
        return module.AsyncEngine | module.AsyncConnection | module.AsyncSession


_CLASSES: Final = ("AsyncEngine", "AsyncConnection", "AsyncSession", "async_scoped_session")

_T = TypeVar("_T")


def is_async(given: object) -> TypeGuard[AsyncBind]:
    """Whether it is one of asyncio's."""
    module = sys.modules.get(ASYNCIO)
    return module is not None and isinstance(given, tuple(getattr(module, name) for name in _CLASSES))


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
        if is_async_engine(given):
            async with given.connect() as connection:
                return await connection.run_sync(work)
        bound: Any = given
        result: _T = await bound.run_sync(work)
        return result
