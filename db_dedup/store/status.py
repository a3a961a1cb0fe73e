"""The status of each watched table, counted from our tables."""

from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, case, func, select, true

from db_dedup.dialects.base import Dialect
from db_dedup.records import TableStatus
from db_dedup.schema.tables import Tables
from db_dedup.store.changes import read_dead
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.frames import frame_status
from db_dedup.store.lag import Lag, read_lag
from db_dedup.store.scans import FINISHED, last_finished, past_scans
from db_dedup.store.watched_tables import StoredTable, lease_holder, list_tables

UNKNOWN: Final = "unknown"

_SIZES: Final = {"2": (2, 2), "3-5": (3, 5), "6-20": (6, 20), "21-100": (21, 100), "101+": (101, None)}
_LATEST_SCANS: Final = 5
_LATEST_DEAD: Final = 10


def read_status(connection: Connection, dialect: Dialect, tables: Tables) -> list[TableStatus]:
    """Return one entry for each watched table, by name. The state of its triggers is left unknown."""
    lags = read_lag(connection, tables)
    return [
        _status(connection, FingerprintStore.serving(dialect, tables, stored), stored, lag)
        for stored in list_tables(connection, tables)
        if (lag := lags.get(stored.watched.name))
    ]


def _status(connection: Connection, store: FingerprintStore, stored: StoredTable, lag: Lag) -> TableStatus:
    tables, name = store.tables, stored.watched.name
    alone = store.is_alone(connection)
    copy_of = tables.fingerprint.c.copy_of
    groups = _count_groups(connection, store)
    mine = true() if alone else store.mine
    rows = _count(connection, store, mine)
    without = _count_rows_without_fingerprint(connection, store)
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
        fingerprints=rows - without,
        too_little_text=without,
        too_little_share=round(without / rows, 4) if rows else 0.0,
        copies=_count(connection, store, mine, copy_of > 0),
        pairs=_count_pairs(connection, store, alone=alone),
        groups=groups.groups,
        grouped_rows=groups.rows,
        group_sizes=groups.sizes,
        largest_group=groups.largest,
        loose_groups=groups.loose,
        abridged_groups=groups.abridged,
        hot_blocks=() if finished is None else finished.hot_blocks,
        queue_length=lag.waiting,
        queue_age_seconds=lag.age_seconds,
        dead_changes=lag.dead,
        latest_dead=tuple(read_dead(connection, tables, stored.id, _LATEST_DEAD)),
        attached_at=stored.attached_at,
        triggers=UNKNOWN,
        trigger_faults=(),
        answer_version=stored.answer_version,
        last_scan_started=last.started_at if last else None,
        last_scan_finished=last.finished_at if last and last.state == FINISHED else None,
        last_scan_state=last.state if last else None,
        last_scan_error=last.error if last else None,
        scans=tuple(scans),
        frames=frame_status(connection, tables, stored, None if finished is None else finished.frames),
    )


def _count_rows_without_fingerprint(connection: Connection, store: FingerprintStore) -> int:
    # Blocks and fingerprint are in one index.
    c = store.tables.fingerprint.c
    return _count(connection, store, store.mine, c.block_1.is_(None), c.fingerprint.is_(None))


def _count(connection: Connection, store: FingerprintStore, *conditions: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(store.tables.fingerprint).where(*conditions)
    return int(connection.execute(query).scalar_one())


class _GroupCounts(NamedTuple):
    groups: int
    rows: int
    largest: int
    loose: int
    abridged: int
    sizes: dict[str, int]


def _count_groups(connection: Connection, store: FingerprintStore) -> _GroupCounts:
    """Count the groups by their representatives; the database gives a row for each size that occurs."""
    c = store.tables.fingerprint.c
    size = c.group_size
    query = (
        select(size, func.count(), _count_where(c.is_loose), _count_where(c.is_abridged))
        .where(store.mine, size > 0)
        .group_by(size)
    )
    found = [tuple(map(int, row)) for row in connection.execute(query)]
    sizes = {
        label: sum(count for size, count, *_ in found if least <= size and (most is None or size <= most))
        for label, (least, most) in _SIZES.items()
    }
    return _GroupCounts(
        groups=sum(count for _, count, *_ in found),
        rows=sum(size * count for size, count, *_ in found),
        largest=max((size for size, *_ in found), default=0),
        loose=sum(loose for *_, loose, _ in found),
        abridged=sum(abridged for *_, abridged in found),
        sizes=sizes,
    )


def _count_where(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.count(case((condition, 1)))


def _count_pairs(connection: Connection, store: FingerprintStore, *, alone: bool) -> int:
    pair, row = store.tables.pair, store.tables.fingerprint
    query = select(func.count()).select_from(pair)
    if not alone:
        query = query.join(row, row.c.id == pair.c.id_a).where(store.mine)
    return int(connection.execute(query).scalar_one())
