"""The last steps of a scan, after its answer is written or after an error; a failure undoes nothing."""

import logging
import traceback

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.base import Dialect
from db_dedup.errors import DedupError
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.scan.folding import entries_before_folding, fold
from db_dedup.store import scans, watched_tables
from db_dedup.store.fingerprints import FingerprintStore

logger = logging.getLogger(__name__)


def refresh_statistics(context: JobContext) -> None:
    """Refresh the planner's statistics; a failure leaves them out of date."""
    tables = context.tables
    try:
        for table in (tables.fingerprint, tables.pair, tables.sketch_segment):
            context.dialect.refresh_statistics(context.engine, table)
    except SQLAlchemyError as error:
        logger.warning("statistics not refreshed: %s", context.dialect.translate_error(error))


def fold_index(context: JobContext, store: FingerprintStore) -> None:
    """Fold the single entries of sketches, if they are many; after a failure the worker does it."""
    try:
        with context.engine.connect() as connection:
            stored = watched_tables.find_table(connection, context.tables, context.watched.name)
            is_due = not entries_before_folding(connection, store)
        if stored is not None and is_due:
            fold(context.engine, context.dialect, context.tables, stored)
    except (DedupError, SQLAlchemyError, MemoryError) as error:
        logger.warning("the index of sketches was not folded: %s", _reason(context.dialect, error))


def give_up(context: JobContext, owner: str, error: BaseException) -> None:
    """Record the error and give the lease back; if that fails, the lease runs out by itself."""
    # If a signal interrupts a statement, the traceback refers to the statement, which keeps the transaction
    # of its connection open. On SQLite that would lock out every other writer, also this function.
    traceback.clear_frames(error.__traceback__)
    try:
        reason = _reason(context.dialect, error)
        with context.dialect.write_transaction(context.engine) as connection:
            scans.fail_scan(connection, context.tables, owner, reason)
            watched_tables.drop_lease(connection, context.tables, owner)
    except Exception as second:  # the first error is the one to report
        error.add_note(f"the scan could not be marked as failed: {type(second).__name__}")


def _reason(dialect: Dialect, error: BaseException) -> str:
    """Return why a scan ended: the message of an error of ours, and of any other error its type alone."""
    if isinstance(error, KeyboardInterrupt):
        return f"interrupted by {error}" if str(error) else "interrupted"
    if isinstance(error, SQLAlchemyError):
        error = dialect.translate_error(error)
    return str(error) if isinstance(error, DedupError) else type(error).__name__
