"""Which rows may be stored in another way than they are now, because a change waits in the queue."""

from sqlalchemy import Connection

from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.store.changes import waiting_keys
from db_dedup.store.fingerprints import FingerprintStore


def unsettled_keys(connection: Connection, store: FingerprintStore, scanned: ScannedTable) -> set[str]:
    """Return the keys of rows that have a change in the queue, and of their exact duplicates.

    Which of the exact duplicates is the canonical row, with the pairs and the sketch, depends on all of them.
    Exact duplicates by the stored text count as well as those by the present text.
    """
    waiting = waiting_keys(connection, store)
    if not waiting:
        return waiting
    stored = [(row_key, row.digest) for row_key, row in store.read_rows(connection)]
    present = zip(scanned.row_keys, map(bytes, scanned.table.digests), strict=True)
    rows = [*stored, *present]
    digests = {digest for row_key, digest in rows if row_key in waiting} - {NO_FEATURES_DIGEST}
    return waiting | {row_key for row_key, digest in rows if digest in digests}
