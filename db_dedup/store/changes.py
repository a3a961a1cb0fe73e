"""The queue of changes that triggers append to, and the changes that could not be handled."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, Text, delete, exists, func, insert, literal, select, type_coerce

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.batches import batches
from db_dedup.dialects.queue import ChangeKey
from db_dedup.flow.rows.values import holds_nul, is_encodable
from db_dedup.records import DeadChange
from db_dedup.records.keys import MAX_KEY_LENGTH
from db_dedup.schema.tables import Tables
from db_dedup.store.clock import database_now
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.translation import Phrase

INSERTED: Final = "I"
UPDATED: Final = "U"
DELETED: Final = "D"
TRUNCATED: Final = "T"
KEY_TOO_LONG: Final = "X"
SEARCH_AGAIN: Final = "S"
"""Written by the worker, never by a trigger: pairs of this row were left out, so they are searched
again even if the row is as it is stored."""

_LONGEST_ERROR: Final = 500
_KEYS_A_QUERY: Final = 1000


class Change(NamedTuple):
    """One entry of the queue. Its row is read again when it is handled, so the operation is only a hint."""

    row_key: str
    operation: str

    @property
    def names_a_row(self) -> bool:
        """Whether a row can be found by this entry."""
        return not self.fault and self.operation != TRUNCATED

    @property
    def fault(self) -> str | None:
        """Why no row can be found by this entry; None where one can."""
        if self.operation == KEY_TOO_LONG:
            return Phrase("the row's key cannot be read: it is too long, or a key column was renamed")
        if not is_encodable(self.row_key):
            return Phrase("the row's key is no valid UTF-8 text")
        if holds_nul(self.row_key):
            return Phrase("the row's key holds a NUL character")
        return None


def written(changes: Iterable[Change]) -> set[str]:
    """Return the keys of rows that were written, even if they were deleted before or afterwards.

    It is not certain which change was the last one: the clock may have been set back.
    """
    return {change.row_key for change in changes if change.operation in (INSERTED, UPDATED)}


def searched_again(changes: Sequence[Change]) -> set[str]:
    """Return the keys of rows whose pairs are searched even if the rows are as they are stored.

    Written rows are among them. While such a change waits, the row's text is not the stored one, and pairs
    with the row are left out. If the stored text comes back before the change is handled, only this search
    finds them.
    """
    return {change.row_key for change in changes if change.operation == SEARCH_AGAIN} | written(changes)


def written_among(
    connection: Connection, tables: Tables, table_id: int, dialect: Dialect, row_keys: Sequence[str]
) -> set[str]:
    """Return which of these rows have a write as their last change in the queue."""
    c = tables.change.c
    query = (
        select(c.row_key, c.operation)
        .where(c.table_id == table_id, dialect.is_one_of(c.row_key, "row_keys"))
        .order_by(c.queued_at)
    )
    latest = {
        key: operation
        for some in batches(row_keys, _KEYS_A_QUERY)
        for key, operation in connection.execute(query, {"row_keys": some})
    }
    return {key for key, last in latest.items() if last in (INSERTED, UPDATED)}


def parked_among(
    connection: Connection, tables: Tables, table_id: int, dialect: Dialect, row_keys: Sequence[str]
) -> set[str]:
    """Return which of these rows have a change among the dead ones."""
    c = tables.dead_change.c
    query = select(c.row_key).where(c.table_id == table_id, dialect.is_one_of(c.row_key, "row_keys"))
    return {
        key
        for some in batches(row_keys, _KEYS_A_QUERY)
        for key in connection.execute(query, {"row_keys": some}).scalars()
    }


def take_changes(
    connection: Connection,
    dialect: Dialect,
    tables: Tables,
    table_id: int,
    limit: int,
    row_key: str | None = None,
) -> list[Change]:
    """Delete the oldest changes from the queue and return them in its order; a rollback puts them back.

    Changes that other transactions have locked are left out. A row must be read after its change was taken:
    the read then sees what was committed with the change.

    Args:
        connection: in a transaction at READ COMMITTED.
        dialect: of our database.
        tables: ours.
        table_id: the watched table's number.
        limit: how many at most.
        row_key: only those of this row.
    """
    taken = dialect.take_changes(connection, tables.change, table_id, limit, row_key)
    return [Change(*change) for change in taken]


def append_changes(
    connection: Connection, dialect: Dialect, tables: Tables, table_id: int, changes: Iterable[Change]
) -> None:
    """Add changes to the queue, as a trigger would."""
    now = database_now(connection)
    columns = ("table_id", "row_key", "operation", "queued_at")
    dialect.bulk_insert(connection, tables.change, columns, ((table_id, *c, now) for c in changes))


def append_stored_rows(connection: Connection, store: FingerprintStore) -> None:
    """Add a change for every stored row; whether the row is still there is checked when it is handled."""
    change, row = store.tables.change, store.tables.fingerprint
    stored = select(
        literal(store.table_id), row.c.row_key, literal(DELETED), literal(database_now(connection))
    ).where(store.mine)
    columns = ["table_id", "row_key", "operation", "queued_at"]
    connection.execute(insert(change).from_select(columns, stored))


def count_waiting(
    connection: Connection,
    tables: Tables,
    table_id: int,
    since: datetime | None = None,
    at_most: int | None = None,
) -> int:
    """Count the changes of a table that wait in the queue.

    Args:
        connection: leads to our tables.
        tables: ours.
        table_id: the watched table's number.
        since: count only those queued from this time (UTC) on.
        at_most: stop counting there.
    """
    change = tables.change
    query = select(literal(1)).select_from(change).where(change.c.table_id == table_id).limit(at_most)
    if since is not None:
        query = query.where(change.c.queued_at >= since)
    return int(connection.execute(select(func.count()).select_from(query.subquery())).scalar_one())


def read_waiting(connection: Connection, tables: Tables, table_id: int, limit: int) -> list[Change]:
    """Return some changes of a table that wait in the queue, each once, in no order."""
    c = tables.change.c
    query = select(c.row_key, c.operation).where(c.table_id == table_id).distinct().limit(limit)
    return [Change(*row) for row in connection.execute(query)]


def waiting_keys(connection: Connection, store: FingerprintStore) -> set[str]:
    """Return the keys of the rows with a change in the queue; after a TRUNCATE also every stored row."""
    c = store.tables.change.c
    query = select(c.row_key, c.operation).where(c.table_id == store.table_id).distinct()
    found = [Change(*row) for row in connection.execute(query)]
    keys = {change.row_key for change in found if change.names_a_row}
    if any(change.operation == TRUNCATED for change in found):
        keys.update(row_key for row_key, _ in store.read_rows(connection))
    return keys


def oldest_waiting(connection: Connection, tables: Tables, table_id: int, limit: int) -> list[Change]:
    """Return the oldest changes of a table, without taking them."""
    change = tables.change
    query = (
        select(change.c.row_key, change.c.operation)
        .where(change.c.table_id == table_id)
        .order_by(change.c.queued_at)
        .limit(limit)
    )
    return [Change(*row) for row in connection.execute(query)]


def handled_by_scan(
    connection: Connection, tables: Tables, table_id: int, at_most: int
) -> Sequence[ChangeKey]:
    """Return the keys of the changes, the oldest first, that a scan of all rows handles as well.

    A scan parks nothing, and of the parked changes it deletes only those whose row could not be named. So
    changes with a fault, and those of rows that have a parked one, are left to the worker.
    """
    c, dead = tables.change.c, tables.dead_change.c
    is_parked = exists().where(dead.table_id == c.table_id, dead.row_key == c.row_key)
    query = (
        # As the driver reads it: the value is only compared, by the database.
        select(c.table_id, type_coerce(c.queued_at, Text), c.row_key, c.nonce)
        .where(c.table_id == table_id, c.operation != KEY_TOO_LONG, ~is_parked)
        .order_by(c.queued_at)
        .limit(at_most)
    )
    keys = (tuple(row) for row in connection.execute(query))
    return [key for key in keys if Change(key[2], UPDATED).fault is None]


def park(
    connection: Connection, tables: Tables, table_id: int, change: Change, attempts: int, error: str
) -> None:
    """Move a change to the dead ones, where it stays until it is retried."""
    dead = tables.dead_change
    row_key = change.row_key.encode("utf-8", "backslashreplace").decode()[:MAX_KEY_LENGTH]
    connection.execute(delete(dead).where(dead.c.table_id == table_id, dead.c.row_key == row_key))
    connection.execute(
        insert(dead).values(
            table_id=table_id,
            row_key=row_key,
            operation=change.operation,
            attempts=attempts,
            error=error[:_LONGEST_ERROR],
            failed_at=database_now(connection),
        )
    )


def read_dead(
    connection: Connection, tables: Tables, table_id: int, limit: int | None = None
) -> list[DeadChange]:
    """Return the dead changes, the latest first; at most so many."""
    dead = tables.dead_change
    query = (
        select(dead.c.row_key, dead.c.operation, dead.c.attempts, dead.c.error, dead.c.failed_at)
        .where(dead.c.table_id == table_id)
        .order_by(dead.c.failed_at.desc(), dead.c.row_key)
        .limit(limit)
    )
    return [DeadChange(*row) for row in connection.execute(query)]


def retry_dead(connection: Connection, dialect: Dialect, tables: Tables, table_id: int) -> int:
    """Move the dead changes back to the queue. Return how many there were."""
    dead = read_dead(connection, tables, table_id)
    # Rows that had this one as a candidate while its change was dead were stored without the pair.
    again = (
        Change(c.row_key, c.operation if c.operation in (KEY_TOO_LONG, TRUNCATED) else SEARCH_AGAIN)
        for c in dead
    )
    append_changes(connection, dialect, tables, table_id, again)
    # No others: a worker may have parked some since they were read.
    forget_dead(connection, dialect, tables, table_id, [c.row_key for c in dead], with_unnamed=True)
    return len(dead)


def forget_dead(
    connection: Connection,
    dialect: Dialect,
    tables: Tables,
    table_id: int,
    row_keys: list[str],
    *,
    with_unnamed: bool = False,
) -> None:
    """Delete the dead changes of rows that have been handled since.

    Args:
        connection: leads to our tables.
        dialect: of our database.
        tables: ours.
        table_id: the watched table's number.
        row_keys: of the rows.
        with_unnamed: also those whose key could not be read. What is stored as the key of such a change may
            be the key of another row, since a key that is too long is cut.
    """
    dead = tables.dead_change
    theirs = delete(dead).where(dead.c.table_id == table_id, dialect.is_one_of(dead.c.row_key, "row_keys"))
    if not with_unnamed:
        theirs = theirs.where(dead.c.operation != KEY_TOO_LONG)
    for some in batches(row_keys, _KEYS_A_QUERY):
        connection.execute(theirs, {"row_keys": some})


def forget_unnamed(connection: Connection, tables: Tables, table_id: int, before: datetime) -> None:
    """Delete the dead changes whose key could not be read and that were parked before this time."""
    dead = tables.dead_change.c
    unnamed = delete(tables.dead_change).where(dead.table_id == table_id, dead.operation == KEY_TOO_LONG)
    connection.execute(unnamed.where(dead.failed_at < before))
