"""The status of each watched table, counted from our tables."""

from typing import Final

from sqlalchemy import ColumnElement, Connection, case, func, select

from db_dedup.dialects.base import Dialect
from db_dedup.records import HotBlock, TableStatus
from db_dedup.schema.tables import BLOCK_SHIFTS, Tables
from db_dedup.store.changes import read_dead
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.frames import frame_status
from db_dedup.store.lag import Lag, read_lag
from db_dedup.store.scans import last_finished, past_scans
from db_dedup.store.watched_tables import StoredTable, lease_holder, list_tables

UNKNOWN: Final = "unknown"

_SIZES: Final = {"2": (2, 2), "3-5": (3, 5), "6-20": (6, 20), "21-100": (21, 100), "101+": (101, None)}
_LATEST_SCANS: Final = 5
_LATEST_DEAD: Final = 10
_HOTTEST: Final = 3


def read_status(connection: Connection, dialect: Dialect, tables: Tables) -> list[TableStatus]:
    """Return one entry for each watched table, by name. The state of its triggers is left unknown."""
    lags = read_lag(connection, tables)
    return [
        _status(connection, FingerprintStore(dialect, tables, stored.id, stored.recipe or 0), stored, lag)
        for stored in list_tables(connection, tables)
        if (lag := lags.get(stored.watched.name))
    ]


def _status(connection: Connection, store: FingerprintStore, stored: StoredTable, lag: Lag) -> TableStatus:
    tables, name = store.tables, stored.watched.name
    counts = _counts(connection, store)
    rows, fingerprints = counts["rows"], counts["fingerprints"]
    scanner = lease_holder(connection, tables, name)
    scans = past_scans(connection, tables, stored.id, scanner, _LATEST_SCANS)
    last = scans[0] if scans else None
    finished = last_finished(connection, tables, stored.id)
    return TableStatus(
        table=name,
        is_scanned=stored.recipe is not None,
        recipe_version=None if stored.recipe is None else stored.recipe_version,
        is_outdated=stored.is_outdated,
        rows=rows,
        fingerprints=fingerprints,
        too_little_text=rows - fingerprints,
        too_little_share=round((rows - fingerprints) / rows, 4) if rows else 0.0,
        copies=counts["copies"],
        pairs=_count_pairs(connection, store),
        groups=counts["groups"],
        grouped_rows=counts["grouped_rows"],
        group_sizes={label: counts[label] for label in _SIZES},
        largest_group=counts["largest_group"],
        loose_groups=counts["loose_groups"],
        abridged_groups=counts["abridged_groups"],
        hot_blocks=hot_blocks(connection, store, _HOTTEST),
        queue_length=lag.waiting,
        queue_age_seconds=lag.age_seconds,
        dead_changes=lag.dead,
        latest_dead=tuple(read_dead(connection, tables, stored.id, _LATEST_DEAD)),
        attached_at=stored.attached_at,
        triggers=UNKNOWN,
        trigger_faults=(),
        answer_version=stored.answer_version,
        last_scan_started=last.started_at if last else None,
        last_scan_finished=last.finished_at if last else None,
        last_scan_state=last.state if last else None,
        last_scan_error=last.error if last else None,
        scans=tuple(scans),
        frames=frame_status(connection, tables, stored, None if finished is None else finished.frames),
    )


def _counts(connection: Connection, store: FingerprintStore) -> dict[str, int]:
    """Count all that one pass over the fingerprints gives; a group is counted by its representative."""
    row = store.tables.fingerprint
    size = row.c.group_size
    wanted = {
        "rows": func.count(),
        "fingerprints": func.count(row.c.fingerprint),
        "copies": func.count(row.c.copy_of),
        "groups": func.count(size),
        "grouped_rows": func.coalesce(func.sum(size), 0),
        "largest_group": func.coalesce(func.max(size), 0),
        "loose_groups": _count_where(row.c.is_loose),
        "abridged_groups": _count_where(row.c.is_abridged),
    }
    for label, (smallest, largest) in _SIZES.items():
        wanted[label] = _count_where(size >= smallest if largest is None else size.between(smallest, largest))
    query = select(*(count.label(name) for name, count in wanted.items())).where(store.mine)
    return {name: int(count) for name, count in connection.execute(query).one()._mapping.items()}


def _count_where(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.count(case((condition, 1)))


def _count_pairs(connection: Connection, store: FingerprintStore) -> int:
    pair, row = store.tables.pair, store.tables.fingerprint
    query = select(func.count()).select_from(pair)
    if not _is_alone(connection, store):
        query = query.join(row, row.c.id == pair.c.id_a).where(store.mine)
    return int(connection.execute(query).scalar_one())


def _is_alone(connection: Connection, store: FingerprintStore) -> bool:
    """Return whether no other table or recipe has fingerprints: then all pairs are of this one."""
    row = store.tables.fingerprint
    recipes = select(func.min(row.c.recipe)), select(func.max(row.c.recipe))
    # Each is one step in an index that begins with (table_id, recipe).
    query = select(
        select(func.min(row.c.table_id)).scalar_subquery(),
        select(func.max(row.c.table_id)).scalar_subquery(),
        *(bound.where(row.c.table_id == store.table_id).scalar_subquery() for bound in recipes),
    )
    own = (store.table_id, store.table_id, store.recipe, store.recipe)
    return tuple(connection.execute(query).one()) == own


def hot_blocks(connection: Connection, store: FingerprintStore, count: int) -> tuple[HotBlock, ...]:
    """Return the block values that most rows share, the most frequent first; each column is read by its
    index."""
    found = [
        hot for block in range(1, len(BLOCK_SHIFTS) + 1) for hot in _hottest(connection, store, block, count)
    ]
    return tuple(sorted(found, key=lambda hot: (-hot.rows, hot.block, hot.value))[:count])


def _hottest(connection: Connection, store: FingerprintStore, block: int, count: int) -> list[HotBlock]:
    value = store.tables.fingerprint.c[f"block_{block}"]
    query = (
        select(value, func.count())
        # As a range, so that any planner takes the index that begins with this block.
        .where(store.mine, value >= 0)
        .group_by(value)
        .having(func.count() > 1)
        .order_by(func.count().desc(), value)
        .limit(count)
    )
    return [HotBlock(block, int(shared), int(rows)) for shared, rows in connection.execute(query)]
