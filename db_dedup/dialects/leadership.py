"""Which of several processes leads: the one that holds a lock that ends with its process.

Nothing depends on there being one leader alone: scans and batches have locks of their own. A second leader,
in the seconds until the first one notices that its session is lost, only does work twice.
"""

import os
import sqlite3
from contextlib import suppress
from typing import Protocol

from sqlalchemy import Connection, Engine, Select, select, text
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.errors import DatabaseError


class LeaderLock(Protocol):
    """A lock that one process holds."""

    def acquire(self) -> bool:
        """Take the lock, and return whether it was free.

        Raises:
            SQLAlchemyError: the database cannot be asked.
        """

    def is_held(self) -> bool:
        """Return whether the lock that was taken is still ours."""

    def release(self) -> None:
        """Give the lock back."""


class SessionLock:
    """A lock of a server's session: it is also free once the server knows that the session has ended."""

    def __init__(self, engine: Engine, acquire: Select[tuple[bool]], release: Select[tuple[bool]]) -> None:
        """Prepare.

        Args:
            engine: of the server.
            acquire: tries to take the lock, and gives whether it did.
            release: gives it back.
        """
        self._engine, self._acquire, self._release = engine, acquire, release
        self._connection: Connection | None = None

    def acquire(self) -> bool:
        """Take the lock in a session of its own."""
        # Without a transaction: one that is open for days keeps the server from removing old rows.
        self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            is_ours = bool(self._connection.scalar(self._acquire))
        except SQLAlchemyError:
            self._end_session()
            raise
        if not is_ours:
            self._end_session()
        return is_ours

    def is_held(self) -> bool:
        """Return whether the session lives."""
        if self._connection is None:
            return False
        try:
            self._connection.scalar(select(text("1")))
        except SQLAlchemyError:
            return False
        return True

    def release(self) -> None:
        """Give the lock back, and end the session, of which the server may know only later."""
        if self._connection is not None:
            with suppress(SQLAlchemyError):
                self._connection.execute(self._release)
            self._end_session()

    def _end_session(self) -> None:
        if self._connection is not None:
            with suppress(SQLAlchemyError):
                self._connection.invalidate()
            self._connection.close()
            self._connection = None


class FileLock:
    """A lock on an empty file beside a SQLite database, by SQLite's own means, which all systems have."""

    def __init__(self, path: str) -> None:
        """Name the file."""
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def acquire(self) -> bool:
        """Take the lock; the file is made if it is not there, and stays."""
        try:
            self._connection = sqlite3.connect(
                self._path, timeout=0, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            self.release()
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise DatabaseError("cannot lock {file}: {reason}", file=self._path, reason=error) from None
            return False
        if not os.access(self._path, os.W_OK):  # SQLite then only reads it, as others can do too
            self.release()
            raise DatabaseError(
                "cannot lock {file}: this account cannot write it. Give it the rights of the SQLite file",
                file=self._path,
            )
        return True

    def is_held(self) -> bool:
        """Return whether the lock was taken; a process keeps it until it ends."""
        return self._connection is not None

    def release(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
