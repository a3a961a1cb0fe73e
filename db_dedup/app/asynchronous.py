"""Engines, connections and sessions of asyncio, by SQLAlchemy's `run_sync`.

A connection belongs to its event loop, so a check on it cannot run in another thread. `run_sync` runs the
check in a greenlet on the loop: other tasks run while a statement waits for the database. Only the computing
between two statements, some milliseconds a record, blocks the loop.

SQLAlchemy's asyncio module needs greenlet, which may not be installed. So this module never imports it: a
caller who passes one of its objects has imported it already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

from sqlalchemy import Connection

from db_dedup.app.arguments import ASYNCIO, is_async_engine
from db_dedup.app.database import Database

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
    from sqlalchemy.orm import Session

    AsyncBind = AsyncEngine | AsyncConnection | AsyncSession
else:

    def __getattr__(name: str) -> Any:
        """Return `AsyncBind`, which is made only when it is used."""
        if name != "AsyncBind":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(ASYNCIO)
        return module.AsyncEngine | module.AsyncConnection | module.AsyncSession


_CLASSES: Final = ("AsyncEngine", "AsyncConnection", "AsyncSession", "async_scoped_session")

_T = TypeVar("_T")


def is_async(given: object) -> TypeGuard[AsyncBind]:
    """Return whether it is an engine, connection or session of asyncio."""
    module = sys.modules.get(ASYNCIO)
    return module is not None and isinstance(given, tuple(getattr(module, name) for name in _CLASSES))


async def bridged(
    database: Database, given: AsyncBind, work: Callable[[Connection | Session | None], _T]
) -> _T:
    """Run synchronous work on a connection or session of asyncio; an engine lends a connection for it.

    Args:
        database: translates the errors of the driver.
        given: the engine, connection or session. A connection or session is never committed or rolled back.
        work: gets the synchronous connection or session.
    """
    with database.translate_driver_errors():
        if is_async_engine(given):
            async with given.connect() as connection:
                return await connection.run_sync(work)
        bound: Any = given
        result: _T = await bound.run_sync(work)
        return result
