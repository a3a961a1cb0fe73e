"""The changes of the queue that a scan makes superfluous.

A change that was committed before a scan reads its first row is part of what the scan reads, and so are the
rows whose pairs were left out while it waited. So it is deleted once the answer of the scan is there. It is
found again by its key: changes of transactions that were open when the scan began have earlier times than
some that were not. If the scan fails, or the process ends before the changes are deleted, the worker handles
them as usual.

A scan that reads a replica covers no change: the replica may be behind the queue (`replicas`).
"""

import logging
import time
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.batches import number_batches
from db_dedup.dialects.queue import QUEUE_KEY, ChangeKey
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.pace import pace_of
from db_dedup.jobs.scan.replicas import wait_for_replica
from db_dedup.store import changes
from db_dedup.store.clock import database_now
from db_dedup.store.fingerprints import FingerprintStore

logger = logging.getLogger(__name__)

# Some 250 bytes of memory each. The worker handles the others.
_MOST_CHANGES = 1_000_000


class CoveredChanges(NamedTuple):
    """What was committed before the scan reads its first row.

    Attributes:
        waiting: the changes of the queue.
        table_id: of the table.
        at: the time of the database. Changes whose row could not be named, and that were parked before, are
            covered, too: a scan that finds such a row fails. None where the scan covers nothing.
    """

    waiting: Sequence[ChangeKey]
    table_id: int
    at: datetime | None


def read_covered(context: JobContext, store: FingerprintStore, owner: str) -> CoveredChanges:
    """Return the changes that are committed; the scan has not read its first row yet.

    Args:
        context: of the scan.
        store: its fingerprints.
        owner: of its lease.

    Raises:
        DatabaseUnavailableError: the rows are read from a replica that is behind.
    """
    if context.is_apart:
        wait_for_replica(context, store.table_id, owner)
        return CoveredChanges((), store.table_id, None)
    # In a snapshot no change is seen that is not committed, whatever level of isolation the engine has.
    with context.dialect.read_snapshot(context.engine) as connection:
        waiting = changes.handled_by_scan(connection, context.tables, store.table_id, _MOST_CHANGES)
        return CoveredChanges(waiting, store.table_id, database_now(connection))


def delete_covered(context: JobContext, covered: CoveredChanges) -> int:
    """Delete these changes in short transactions; after a failure the worker handles what is left.

    Returns:
        How many of the queue the scan has handled.
    """
    pace, count = pace_of(context.dialect), 0
    try:
        if covered.at is not None:
            with context.dialect.write_transaction(context.engine) as connection:
                changes.forget_unnamed(connection, context.tables, covered.table_id, covered.at)
        for some in number_batches(covered.waiting, pace.rows):
            if count:
                time.sleep(pace.gap_seconds)
            with context.dialect.write_transaction(context.engine) as connection:
                context.dialect.bulk_delete_keys(connection, context.tables.change, QUEUE_KEY, some)
            count += len(some)
    except SQLAlchemyError as error:
        logger.warning("changes were not deleted: %s", context.dialect.translate_error(error))
    return count
