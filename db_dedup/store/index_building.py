"""Make the indexes of the fingerprint table after its rows.

This is faster than random writes to four block indexes. A first scan drops the indexes while the table is
empty and no answer of any table is shown, and makes them again before its answer is shown. If that scan is
killed, the next scan that shows an answer, or an upgrade, makes what is missing. So whoever reads an answer
has the indexes.
"""

import logging
from collections.abc import Callable
from time import sleep
from typing import Final

from sqlalchemy import Connection, Engine, Index, select
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.base import Dialect
from db_dedup.errors import DatabaseUnavailableError, DedupError, ReadOnlyDatabaseError, StatementEndedError
from db_dedup.progress import Progress
from db_dedup.schema.indexes import missing_indexes
from db_dedup.schema.tables import Tables

logger = logging.getLogger(__name__)

_OF_GROUPS: Final = frozenset(("group_id", "group_size", "is_loose", "is_abridged"))

_ATTEMPTS: Final = 30
_PAUSE_SECONDS = 5.0


class _BusyError(Exception):
    """A table is used by another transaction right now."""


def put_off_indexes(engine: Engine, dialect: Dialect, tables: Tables) -> None:
    """Drop the indexes if there are no rows and no answers.

    Best effort: with the indexes the scan is slower, nothing else.
    """
    try:
        with (
            dialect.write_transaction(engine) as connection,
            dialect.schema_lock(connection, tables.namespace),
            dialect.short_lock_wait(connection),
        ):
            if _is_unused(connection, tables):
                for index in sorted(tables.fingerprint.indexes, key=lambda index: str(index.name)):
                    index.drop(connection, checkfirst=True)
    except (SQLAlchemyError, DedupError) as error:
        # This account may not drop them, or another transaction has been reading the empty table for long.
        reason = dialect.translate_error(error) if isinstance(error, SQLAlchemyError) else error
        logger.info("the indexes stay during the scan: %s", reason)


def make_put_off_indexes(
    engine: Engine,
    dialect: Dialect,
    tables: Tables,
    fence: Callable[[Connection], None],
    progress: Progress,
    *,
    before_groups: bool = False,
) -> None:
    """Make the indexes that are missing, each in a transaction of its own.

    If another transaction holds the table, this waits for some seconds, then lets the statements run that
    were waiting behind it, and tries again. Otherwise MariaDB would wait for up to a day, and with it
    everybody who reads an answer.

    Args:
        engine: of our tables.
        dialect: its dialect.
        tables: ours.
        fence: renews the scan's lease at the end of each of these transactions. In SQLite nobody else can
            write while an index is made, the heartbeat neither, and that may take longer than a lease.
        progress: is notified of each index.
        before_groups: leave out the indexes of groups, which are written when the rows get their groups.

    Raises:
        DatabaseUnavailableError: the table is busy for some minutes.
    """
    with engine.connect() as connection:
        missing = _missing(connection, tables, before_groups)
    progress.start("indexes", len(missing))
    if missing and not before_groups:
        _drop_old_versions(engine, dialect, tables, fence)
    for _ in missing:
        for attempt in range(_ATTEMPTS):
            try:
                _make_next(engine, dialect, tables, fence, before_groups)
                break
            except _BusyError as error:
                if attempt + 1 == _ATTEMPTS:
                    raise _given_up(tables, error) from error
                progress.advance(0)
                sleep(_PAUSE_SECONDS)
        progress.advance(1)
    progress.finish()


def _drop_old_versions(
    engine: Engine, dialect: Dialect, tables: Tables, fence: Callable[[Connection], None]
) -> None:
    """Free what the writing of groups has left behind, while there are few indexes and no readers.

    Best effort: otherwise the table stays larger, until the database uses the space for other rows.
    """
    try:
        with (
            dialect.write_transaction(engine) as connection,
            dialect.schema_lock(connection, tables.namespace),
            dialect.short_lock_wait(connection),
        ):
            dialect.drop_old_versions(connection, tables.fingerprint)
            fence(connection)
    except SQLAlchemyError as error:
        logger.info("the table keeps former versions of its rows: %s", dialect.translate_error(error))


def _make_next(
    engine: Engine, dialect: Dialect, tables: Tables, fence: Callable[[Connection], None], before_groups: bool
) -> None:
    with (
        dialect.write_transaction(engine) as connection,
        dialect.schema_lock(connection, tables.namespace),
    ):
        # Another scan may have made some of them meanwhile.
        for index in _missing(connection, tables, before_groups)[:1]:
            _create(connection, dialect, index)
        fence(connection)


def _create(connection: Connection, dialect: Dialect, index: Index) -> None:
    """Make an index.

    Raises:
        _BusyError: another transaction holds the table.
    """
    try:
        with dialect.short_lock_wait(connection):
            index.create(connection)
    except SQLAlchemyError as error:
        translated = dialect.translate_error(error)
        # What ends a statement while it runs is likely to end it again; a read-only server is not busy.
        if not translated.is_transient or isinstance(translated, StatementEndedError | ReadOnlyDatabaseError):
            raise
        raise _BusyError(str(translated)) from error


def _given_up(tables: Tables, error: _BusyError) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        "table {table!r} is busy ({reason}), so that an index cannot be made: end the transaction that has "
        "used it for minutes, then scan again",
        table=tables.fingerprint.name,
        reason=error,
    )


def _missing(connection: Connection, tables: Tables, before_groups: bool) -> list[Index]:
    missing = missing_indexes(connection, tables)
    if not before_groups:
        return missing
    return [index for index in missing if _OF_GROUPS.isdisjoint(index.columns.keys())]


def _is_unused(connection: Connection, tables: Tables) -> bool:
    row, watched = tables.fingerprint, tables.watched_table
    queries = (select(row.c.id), select(watched.c.id).where(watched.c.recipe.is_not(None)))
    return all(connection.execute(query.limit(1)).first() is None for query in queries)
