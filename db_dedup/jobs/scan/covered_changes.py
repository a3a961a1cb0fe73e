"""The changes of the queue that a scan makes superfluous.

A change that was committed before a scan reads its first row is part of what the scan reads, and so are the
rows whose pairs were left out while it waited. So it is deleted once the answer of the scan is there. It is
found again by its key: changes of transactions that were open when the scan began have earlier times than
some that were not. If the scan fails, or the process ends before the changes are deleted, the worker handles
them as usual.
"""

import logging
import time
from collections.abc import Sequence

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.batches import number_batches
from db_dedup.dialects.queue import QUEUE_KEY, ChangeKey
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.pace import pace_of
from db_dedup.store import changes
from db_dedup.store.fingerprints import FingerprintStore

logger = logging.getLogger(__name__)

# Some 250 bytes of memory each. The worker handles the others.
_MOST_CHANGES = 1_000_000


def read_covered(context: JobContext, store: FingerprintStore) -> Sequence[ChangeKey]:
    """Return the changes that are committed; the scan has not read its first row yet."""
    with context.engine.connect() as connection:
        return changes.handled_by_scan(connection, context.tables, store.table_id, _MOST_CHANGES)


def delete_covered(context: JobContext, covered: Sequence[ChangeKey]) -> int:
    """Delete these changes in short transactions; after a failure the worker handles what is left.

    Returns:
        How many the scan has handled.
    """
    pace, count = pace_of(context.dialect), 0
    try:
        for some in number_batches(covered, pace.rows):
            if count:
                time.sleep(pace.gap_seconds)
            with context.dialect.write_transaction(context.engine) as connection:
                context.dialect.bulk_delete_keys(connection, context.tables.change, QUEUE_KEY, some)
            count += len(some)
    except SQLAlchemyError as error:
        logger.warning("changes were not deleted: %s", context.dialect.translate_error(error))
    return count
