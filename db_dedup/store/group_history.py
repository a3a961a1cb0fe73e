"""The history of groups: what has become of ids that are no longer those of their groups.

It is written in the transaction that changes the answer, under the version that the answer gets by it. The
chain from an old id follows these versions, so that it does not depend on clocks.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, cast

from sqlalchemy import Connection, Row, and_, delete, func, select

from db_dedup.dialects.batches import batches
from db_dedup.records import GroupSummary
from db_dedup.records.group_history import ChangeCount, ChangedGroup, ChangeKind, GroupChange, GroupHistory
from db_dedup.schema.tables import Tables
from db_dedup.schema.types import UtcNow
from db_dedup.store.clock import database_now
from db_dedup.store.fingerprints import FingerprintStore

KEPT: Final = timedelta(days=3 * 366)
"""How long changes are kept. Somebody may have written an old id into a file of a case, and most cases are
closed within this time."""
ORIGINS_SHOWN: Final = 100
_KEYS_A_QUERY: Final = 500
_COLUMNS: Final = ("table_id", "answer_version", "place", *ChangedGroup._fields, "scan_id", "changed_at")


def write_changes(
    connection: Connection, store: FingerprintStore, changes: Sequence[ChangedGroup], scan: int | None = None
) -> None:
    """Write what has become of groups, before the version of the answer is incremented.

    Args:
        connection: in the transaction that writes the answer.
        store: of the table.
        changes: of its groups.
        scan: the number of the scan; None for the worker.
    """
    if not changes:
        return
    watched = store.tables.watched_table
    query = select(watched.c.answer_version, UtcNow()).where(watched.c.id == store.table_id)
    version, now = connection.execute(query).one()
    rows = ((store.table_id, version + 1, place, *change, scan, now) for place, change in enumerate(changes))
    store.dialect.bulk_insert(connection, store.tables.group_change, _COLUMNS, rows)


def drop_old_changes(connection: Connection, store: FingerprintStore) -> None:
    """Delete the changes of a table that are older than `KEPT`."""
    table = store.tables.group_change
    oldest = database_now(connection) - KEPT
    connection.execute(delete(table).where(table.c.table_id == store.table_id, table.c.changed_at < oldest))


def read_latest(connection: Connection, tables: Tables, table_id: int, limit: int) -> list[GroupChange]:
    """Return the latest changes of a table, the latest first."""
    c = tables.group_change.c
    query = select(tables.group_change).where(c.table_id == table_id)
    rows = connection.execute(query.order_by(c.answer_version.desc(), c.place).limit(limit))
    return list(map(_change, rows))


def count_changes(connection: Connection, tables: Tables, table_id: int, scans: int) -> list[ChangeCount]:
    """Return how many ids the worker and each of the last scans changed, the latest first.

    Args:
        connection: to our tables.
        tables: ours.
        table_id: the watched table's number.
        scans: at most so many entries.
    """
    c = tables.group_change.c
    query = (
        # A split group has an entry for each of its parts.
        select(c.scan_id, c.kind, func.max(c.changed_at), func.count(c.old_key.distinct()))
        .where(c.table_id == table_id)
        .group_by(c.scan_id, c.kind, c.answer_version)
    )
    found: dict[int | None, ChangeCount] = {}
    for scan, kind, at, count in connection.execute(query):
        before = found.get(scan, ChangeCount(scan, at, {}))
        ids = {**before.ids, kind: before.ids.get(kind, 0) + int(count)}
        found[scan] = ChangeCount(scan, max(before.last_at, at), ids)
    return sorted(found.values(), key=lambda counted: counted.last_at, reverse=True)[:scans]


def read_history(connection: Connection, store: FingerprintStore, group_id: str) -> GroupHistory:
    """Return what has become of an id, and by which changes.

    Args:
        connection: in a transaction that reads one state of our tables.
        store: the table, and the recipe that serves.
        group_id: the id.
    """
    chain = _Chain(connection, store)
    chain.follow(group_id)
    groups = _read_groups(connection, store, {group_id, *chain.ends})
    changes = [_change(row) for _, row in sorted(chain.rows.items())]
    origins = _read_origins(connection, store, group_id)
    row_group_id = _read_group_of_row(connection, store, group_id)
    return GroupHistory(group_id, tuple(groups), tuple(changes), origins, row_group_id)


class _Chain:
    """Follows an id through the changes.

    Attributes:
        rows: (version of the answer, place) -> the changes that were followed.
        ends: ids that no later change took away.
    """

    def __init__(self, connection: Connection, store: FingerprintStore) -> None:
        self._connection, self._store = connection, store
        self._of_key: dict[str, list[Row[Any]]] = {}
        self.rows: dict[tuple[int, int], Row[Any]] = {}
        self.ends: set[str] = set()

    def follow(self, group_id: str) -> None:
        """Follow an id from each of the times at which a group had it: when it was noted is not known."""
        self._load({group_id})
        reached = self._take(self._of_key[group_id])
        done: set[tuple[str, int]] = set()
        while reached:
            done |= reached
            self._load({key for key, _ in reached})
            reached = {step for key, version in reached for step in self._next(key, version)} - done

    def _next(self, key: str, version: int) -> set[tuple[str, int]]:
        """Return what became of a group after a version of the answer: (new id, version) of each part."""
        later = [row for row in self._of_key[key] if row.answer_version > version]
        if not later:
            self.ends.add(key)
        return self._take(row for row in later if row.answer_version == later[0].answer_version)

    def _take(self, rows: Iterable[Row[Any]]) -> set[tuple[str, int]]:
        reached = set()
        for row in rows:
            self.rows[row.answer_version, row.place] = row
            if row.new_key is not None:
                reached.add((row.new_key, row.answer_version))
        return reached

    def _load(self, keys: set[str]) -> None:
        """Read all changes of these ids that are not read yet, the earliest first."""
        table = self._store.tables.group_change
        new = sorted(keys.difference(self._of_key))
        self._of_key |= {key: [] for key in new}
        for some in batches(new, _KEYS_A_QUERY):
            query = select(table).where(table.c.table_id == self._store.table_id, table.c.old_key.in_(some))
            for row in self._connection.execute(query.order_by(table.c.answer_version, table.c.place)):
                self._of_key[row.old_key].append(row)


def _read_origins(connection: Connection, store: FingerprintStore, key: str) -> tuple[GroupChange, ...]:
    """Return the latest changes that brought rows of other groups to the group of a key."""
    c = store.tables.group_change.c
    is_origin = and_(c.table_id == store.table_id, c.new_key == key, c.old_key != key)
    query = select(store.tables.group_change).where(is_origin)
    rows = connection.execute(query.order_by(c.answer_version.desc(), c.place).limit(ORIGINS_SHOWN))
    return tuple(map(_change, rows))


def _read_group_of_row(connection: Connection, store: FingerprintStore, row_key: str) -> str | None:
    row = store.tables.fingerprint
    first = row.alias("first")
    query = select(first.c.row_key).join(row, row.c.group_id == first.c.id)
    return connection.execute(query.where(store.mine, row.c.row_key == row_key)).scalar()


def _read_groups(connection: Connection, store: FingerprintStore, keys: set[str]) -> list[GroupSummary]:
    """Return the groups of today among these ids, the largest first."""
    c = store.tables.fingerprint.c
    found: list[GroupSummary] = []
    for some in batches(sorted(keys), _KEYS_A_QUERY):
        query = select(c.row_key, c.group_size, c.is_loose, c.is_abridged)
        query = query.where(store.mine, c.row_key.in_(some), c.group_size > 0)
        for key, size, is_loose, is_abridged in connection.execute(query):
            found.append(GroupSummary(key, int(size), key, bool(is_loose), bool(is_abridged)))
    return sorted(found, key=lambda group: (-group.size, group.group_id))


def read_keys(connection: Connection, store: FingerprintStore, ids: Iterable[int]) -> Mapping[int, str]:
    """Return id -> row key of stored rows."""
    c = store.tables.fingerprint.c
    query = select(c.id, c.row_key).where(store.dialect.is_one_of(c.id, "ids"))
    found: dict[int, str] = {}
    for some in batches(sorted(ids), _KEYS_A_QUERY):
        found |= {row.id: row.row_key for row in connection.execute(query, {"ids": some})}
    return found


def _change(row: Row[Any]) -> GroupChange:
    return GroupChange(
        group_id=row.old_key,
        new_group_id=row.new_key,
        kind=cast("ChangeKind", row.kind),
        size=int(row.old_size),
        moved=int(row.moved),
        new_size=None if row.new_size is None else int(row.new_size),
        changed_at=row.changed_at,
        scan=None if row.scan_id is None else int(row.scan_id),
    )
