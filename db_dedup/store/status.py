"""Where each watched table stands, counted from our tables."""

from sqlalchemy import Connection, func, select

from db_dedup.dialects.base import Dialect
from db_dedup.records import TableStatus
from db_dedup.schema.tables import Tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.scans import last_scan
from db_dedup.store.watched_tables import StoredTable, list_tables


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
    scan = last_scan(connection, tables, stored.id)
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
        last_scan_started=scan[0] if scan else None,
        last_scan_finished=scan[1] if scan else None,
        last_scan_state=scan[2] if scan else None,
    )
