"""Wait for a replica before a scan reads its rows, if our tables are in another database.

The database with the rows may be a replica of the one with our tables, and behind it. For an attached table,
two kinds of changes could then be lost for good, because no change in the queue repairs them:

- Changes from before `attach`. So the replica must have the triggers: the table was locked while they were
  made.
- Changes that the worker has handled. A scan that reads the rows as they were before would undo its work. So
  the replica must have the lease of this scan. The lease was committed after everything that the worker has
  done, and the worker writes nothing while a scan holds it.

The triggers write to our tables, so a database that has them has our tables, too.
"""

import time
from typing import Final

from db_dedup.errors import DatabaseUnavailableError
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.objects.attachment import AttachmentState, catalogue_differences, trigger_target
from db_dedup.store import watched_tables
from db_dedup.store.attachments import read_attachment

MOST_WAIT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.2

# Triggers that are disabled or of other settings are mended by the worker, which then scans.
_NOT_YET: Final = (AttachmentState.MISSING, AttachmentState.UNKNOWN, AttachmentState.ALTERED)


def wait_for_replica(context: JobContext, table_id: int, owner: str) -> None:
    """Wait until the database with the rows has all that was done before this scan has taken its lease.

    Nothing is waited for where the table is not attached.

    Args:
        context: of a scan whose rows are in another database than our tables.
        table_id: of the table.
        owner: of the lease, as it is stored.

    Raises:
        DatabaseUnavailableError: it does not have the triggers, this account cannot see them, or it is far
            behind.
    """
    with context.engine.connect() as connection:
        stored = read_attachment(connection, context.tables, table_id)
    if stored.attached_at is None:
        return
    _require_triggers(context, table_id, stored.trigger_digest)
    end = time.monotonic() + MOST_WAIT_SECONDS
    if _has_lease(context, table_id, owner):
        return
    context.progress.start("waiting for the replica", None)
    try:
        while not _has_lease(context, table_id, owner):
            if time.monotonic() >= end:
                raise DatabaseUnavailableError(
                    "{name!r} is attached, and the replica is behind the database with our tables by more "
                    "than {seconds} seconds: scan again when it has caught up",
                    name=context.watched.name,
                    seconds=int(MOST_WAIT_SECONDS),
                )
            context.progress.advance(0)  # by which a scan is stopped
            time.sleep(_PAUSE_SECONDS)
    finally:
        context.progress.finish()


def _has_lease(context: JobContext, table_id: int, owner: str) -> bool:
    with context.source_engine.connect() as connection:
        return watched_tables.lease_owner(connection, context.tables, table_id) == owner


def _require_triggers(context: JobContext, table_id: int, trigger_digest: str | None) -> None:
    target = trigger_target(context.tables.namespace, table_id, context.watched)
    with context.source_engine.connect() as connection:
        found = catalogue_differences(connection, context.source_dialect, target, trigger_digest)
    for state, difference in found:
        if state in _NOT_YET:
            raise DatabaseUnavailableError(
                "{name!r} is attached, but the database with its rows does not show the triggers as they "
                "were made ({difference}): wait until the replica has them, "
                "or run `db-dedup detach {name}` first",
                name=context.watched.name,
                difference=difference,
            )
