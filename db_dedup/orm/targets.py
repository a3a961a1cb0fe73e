"""What the events of a session are listened to on: a session, or what makes sessions."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session, scoped_session, sessionmaker

from db_dedup.app.arguments import ASYNCIO
from db_dedup.errors import InvalidArgumentError

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker

    AnySession = Session | scoped_session[Any] | AsyncSession | async_scoped_session[Any]
    Sessions = AnySession | type[Session] | sessionmaker[Any] | async_sessionmaker[Any]
else:

    def __getattr__(name: str) -> Any:
        """Return `AnySession` and `Sessions`, which are made only when they are used."""
        if name not in ("AnySession", "Sessions"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(ASYNCIO)
        one = Session | scoped_session | module.AsyncSession | module.async_scoped_session
        return one if name == "AnySession" else one | type[Session] | sessionmaker | module.async_sessionmaker


def event_target(given: Sessions) -> Any:
    """Return what SQLAlchemy takes as the target of the events of these sessions.

    Of a factory of asyncio only the sessions that it makes from now on are concerned.

    Raises:
        InvalidArgumentError: it is neither a session nor makes any.
    """
    module = sys.modules.get(ASYNCIO)  # never imported here: it needs greenlet
    if module is not None:
        if isinstance(given, module.AsyncSession):
            return given.sync_session
        if isinstance(given, module.async_scoped_session):
            return event_target(given.session_factory)
        if isinstance(given, module.async_sessionmaker):
            return _synchronous_class(given)
    is_class = isinstance(given, type) and issubclass(given, Session)
    if is_class or isinstance(given, Session | sessionmaker | scoped_session):
        return given
    raise InvalidArgumentError(
        "sessions should be a Session of SQLAlchemy, a sessionmaker or one of asyncio, not {given}",
        given=getattr(given, "__name__", type(given).__name__),
    )


def _synchronous_class(factory: async_sessionmaker[Any]) -> Any:
    """Return what makes the synchronous sessions of a factory, and of no other factory."""
    found: Any = factory.kw.get("sync_session_class", factory.class_.sync_session_class)
    if not isinstance(found, type):
        return found  # a sessionmaker, which has a class of its own
    own = type(found.__name__, (found,), {})
    factory.configure(sync_session_class=own)
    return own
