"""Indexes of the fingerprint table, made after its rows: random writes to four block indexes take far longer.

A first scan drops them while the table is empty and no answer of any table is shown, and makes them before
its answer is shown. So nothing that reads an answer ever meets a table without them, whenever a scan is
killed: whichever scan is the first to show an answer makes what is missing, and so does an upgrade.
"""

import logging
from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, Engine, Index, select
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.base import Dialect
from db_dedup.errors import DedupError
from db_dedup.progress import Progress
from db_dedup.schema.indexes import missing_indexes
from db_dedup.schema.tables import Tables

logger = logging.getLogger(__name__)

_OF_GROUPS: Final = frozenset(("group_id", "group_size", "is_loose", "is_abridged"))


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
        # There is no right to drop them, or somebody has read the empty table for long.
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

    Args:
        engine: of our tables.
        dialect: its dialect.
        tables: ours.
        fence: renews the scan's lease at the end of each of these transactions. In SQLite nobody else can
            write while an index is made, the heartbeat neither, and that may take longer than a lease.
        progress: is notified of each index.
        before_groups: leave out those that would be written again when the rows get their groups.
    """
    with engine.connect() as connection:
        missing = _missing(connection, tables, before_groups)
    progress.start("indexes", len(missing))
    for _ in missing:
        with (
            dialect.write_transaction(engine) as connection,
            dialect.schema_lock(connection, tables.namespace),
        ):
            # Another scan may have made some of them meanwhile.
            for index in _missing(connection, tables, before_groups)[:1]:
                index.create(connection)
            fence(connection)
        progress.advance(1)
    progress.finish()


def _missing(connection: Connection, tables: Tables, before_groups: bool) -> list[Index]:
    missing = missing_indexes(connection, tables)
    if not before_groups:
        return missing
    return [index for index in missing if _OF_GROUPS.isdisjoint(index.columns.keys())]


def _is_unused(connection: Connection, tables: Tables) -> bool:
    row, watched = tables.fingerprint, tables.watched_table
    queries = (select(row.c.id), select(watched.c.id).where(watched.c.recipe.is_not(None)))
    return all(connection.execute(query.limit(1)).first() is None for query in queries)
