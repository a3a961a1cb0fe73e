"""Where each watched table stands, counted from our tables."""

from dataclasses import replace

from sqlalchemy import Connection, func, select

from db_dedup.dialects.base import Dialect
from db_dedup.records import TableStatus
from db_dedup.schema.tables import Tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.scans import DIED, FAILED, RUNNING, ScanRecord, last_scan
from db_dedup.store.watched_tables import StoredTable, lease_holder, list_tables


def read_status(connection: Connection, dialect: Dialect, tables: Tables) -> list[TableStatus]:
    """One entry for each watched table, by name."""
    return [_status(connection, dialect, tables, stored) for stored in list_tables(connection, tables)]


def _status(connection: Connection, dialect: Dialect, tables: Tables, stored: StoredTable) -> TableStatus:
    row, pair = tables.fingerprint, tables.pair
    store = FingerprintStore(dialect, tables, stored.id, stored.recipe or 0)
    counts = connection.execute(
        select(
            func.count(),
            func.count(row.c.fingerprint),
            func.count(row.c.copy_of),
            func.count(func.distinct(row.c.group_id)),
        ).where(store.mine)
    ).one()
    pairs = connection.execute(
        select(func.count()).select_from(pair).join(row, row.c.id == pair.c.id_a).where(store.mine)
    ).scalar_one()
    scan = _last_scan(connection, tables, stored)
    rows, fingerprints, copies, groups = (int(c) for c in counts)
    return TableStatus(
        table=stored.watched.name,
        is_scanned=stored.recipe is not None,
        rows=rows,
        fingerprints=fingerprints,
        too_little_text=rows - fingerprints,
        copies=copies,
        pairs=int(pairs),
        groups=groups,
        last_scan_started=scan.started_at if scan else None,
        last_scan_finished=scan.finished_at if scan else None,
        last_scan_state=scan.state if scan else None,
        last_scan_error=scan.error if scan else None,
    )


def _last_scan(connection: Connection, tables: Tables, stored: StoredTable) -> ScanRecord | None:
    """The latest scan; one that holds its lease no more has died, though nobody has written it down yet."""
    scan = last_scan(connection, tables, stored.id)
    if scan is None or scan.state != RUNNING:
        return scan
    is_alive = lease_holder(connection, tables, stored.watched.name) == scan.owner
    return scan if is_alive else replace(scan, state=FAILED, error=DIED)
