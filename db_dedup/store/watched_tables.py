"""The watched tables: their stored recipe, which recipe serves, and the lease of a running scan."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Self

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Update,
    bindparam,
    insert,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from db_dedup.config import WatchedTable
from db_dedup.errors import OutdatedRecipeError
from db_dedup.records.recipe import RECIPE_VERSION
from db_dedup.schema.definitions import definition_text, read_definition
from db_dedup.schema.tables import Tables
from db_dedup.store.clock import database_now

LEASE: Final = timedelta(seconds=60)
"""A scan that has not renewed its lease for this long counts as dead."""

_LONGEST_LEASE: Final = 2 * LEASE
"""A lease that ends later was taken before the database's clock was set back, and counts as ended. Twice the
time of a lease: a clock is also set back by less, while a scan runs."""

OUTDATED_VIEW: Final = "outdated"
"""Stored in place of the digest of a table's view, if the view was made for a former key or table."""


@dataclass(frozen=True)
class StoredTable:
    """One row of `watched_table`.

    Attributes:
        watched: the settings, their rule resolved.
        recipe_version: of the code that stored them.
        recipe: number of the recipe that serves, None before the first finished scan.
        trigger_digest: of the triggers as the database described them right after they were made.
        attached_at: UTC; None where the table has no triggers of ours.
        answer_version: one more after each change of the answer, whoever made it.
    """

    id: int
    watched: WatchedTable
    recipe_version: int
    recipe: int | None
    recipe_digest: str | None
    view_name: str | None
    view_digest: str | None
    trigger_digest: str | None
    attached_at: datetime | None
    answer_version: int

    def is_alike(self, other: "StoredTable") -> bool:
        """Return whether what was prepared for the other one can be used for this one, too.

        The user's table may have other column types since its triggers were made again.
        """
        return self._prepared_for == other._prepared_for

    @property
    def _prepared_for(self) -> tuple[object, ...]:
        return self.id, self.recipe, self.watched, self.attached_at, self.trigger_digest

    @property
    def is_outdated(self) -> bool:
        """Whether the answer was made by another version of the recipes."""
        return self.recipe is not None and self.recipe_version != RECIPE_VERSION

    def require_current(self) -> Self:
        """Return this table.

        Raises:
            OutdatedRecipeError: what this program computes cannot be compared with what is stored.
        """
        if self.is_outdated:
            raise OutdatedRecipeError(self.watched.name, self.recipe_version, RECIPE_VERSION)
        return self

    def require_known(self) -> Self:
        """Return this table.

        Raises:
            OutdatedRecipeError: a newer version of the program made the answer, and knows more than this one.
        """
        return self.require_current() if self.recipe_version > RECIPE_VERSION else self


def find_table(connection: Connection, tables: Tables, name: str) -> StoredTable | None:
    """Return what is stored of a watched table; None where it is not watched."""
    row = connection.execute(_by_name(tables), {"table_name": name}).one_or_none()
    return None if row is None else _stored(row)


@lru_cache(maxsize=64)
def _by_name(tables: Tables) -> Select[Any]:
    table = tables.watched_table
    return select(table).where(table.c.name == bindparam("table_name"))


def list_tables(connection: Connection, tables: Tables) -> list[StoredTable]:
    """Return every watched table, by name."""
    table = tables.watched_table
    return [_stored(row) for row in connection.execute(select(table).order_by(table.c.name))]


def lock_table(connection: Connection, tables: Tables, name: str) -> tuple[StoredTable | None, str | None]:
    """Lock the table against every other scan and worker until the transaction ends.

    Returns:
        (what is stored of the table, who scans it right now or None).
    """
    table = tables.watched_table
    row = connection.execute(select(table).where(table.c.name == name).with_for_update()).one_or_none()
    if row is None:
        return None, None
    now = database_now(connection)
    is_scanned = row.lease_until is not None and now <= row.lease_until <= now + _LONGEST_LEASE
    return _stored(row), row.lease_owner if is_scanned else None


def lock_rows(connection: Connection, tables: Tables, table_ids: Iterable[int]) -> None:
    """Lock the rows of watched tables until the transaction ends, as every scan and worker does.

    DDL on a user's table or on our view of it must not hold its lock while it waits for such a row: a scan
    holds the row for as long as its last transaction takes, and all who use the table would wait, too.
    """
    table = tables.watched_table
    query = select(table.c.id).where(table.c.id.in_(table_ids)).order_by(table.c.id).with_for_update()
    connection.execute(query).all()


def hold_table(connection: Connection, tables: Tables, name: str) -> StoredTable | None:
    """Return what is stored of a watched table, under a shared lock.

    Until the transaction ends, no scan begins or switches recipes, and no worker writes.
    """
    table = tables.watched_table
    query = select(table).where(table.c.name == name).with_for_update(read=True)
    row = connection.execute(query).one_or_none()
    return None if row is None else _stored(row)


def lock_table_statement(tables: Tables, name: str) -> Update:
    """Return the statement that locks a table against every other scan and worker until its transaction ends.

    It is an UPDATE that changes nothing: in PostgreSQL, a transaction that waits for it with an older
    snapshot then fails, and in SQLite it takes the write lock.
    """
    table = tables.watched_table
    return update(table).where(table.c.name == name).values(answer_version=table.c.answer_version)


def is_unchanged(connection: Connection, tables: Tables, stored: StoredTable) -> bool:
    """Return whether a table's answer has the same version still, and its triggers are the same.

    Whoever changes the settings changes the version, too.
    """
    row = connection.execute(_state_of(tables), {"table_name": stored.watched.name}).one_or_none()
    state = stored.id, stored.answer_version, stored.attached_at, stored.trigger_digest
    return row is not None and tuple(row) == state


@lru_cache(maxsize=64)
def _state_of(tables: Tables) -> Select[Any]:
    c = tables.watched_table.c
    state = select(c.id, c.answer_version, c.attached_at, c.trigger_digest)
    return state.where(c.name == bindparam("table_name"))


def bump_answer_version(connection: Connection, tables: Tables, table_id: int) -> None:
    """Record that the answer has changed: processes that keep parts of it in memory then read it again."""
    table = tables.watched_table
    connection.execute(
        update(table).where(table.c.id == table_id).values(answer_version=table.c.answer_version + 1)
    )


def add_table(connection: Connection, tables: Tables, watched: WatchedTable) -> StoredTable:
    """Return the stored row of a table; add it if there is none."""
    stored = find_table(connection, tables, watched.name)
    if stored is None:
        new = insert(tables.watched_table).values(name=watched.name, definition=definition_of(watched))
        # If two first scans begin at once, the second waits here for the first one's row, and then finds it.
        with suppress(IntegrityError), connection.begin_nested():
            connection.execute(new)
        stored = find_table(connection, tables, watched.name)
        assert stored is not None  # noqa: S101 - it is there now, whoever wrote it
    return stored


def serve_recipe(
    connection: Connection, tables: Tables, table_id: int, watched: WatchedTable, recipe: int
) -> None:
    """Let the views show what this recipe found, from the end of this transaction on.

    The table's own view is joined by the former key to the former table. If either is another one now, the
    view has no rows until it is made again.
    """
    table = tables.watched_table
    former = _stored(connection.execute(select(table).where(table.c.id == table_id)).one())
    connection.execute(
        update(table)
        .where(table.c.id == table_id)
        .values(
            definition=definition_of(watched),
            recipe=recipe,
            recipe_digest=watched.recipe_digest(),
            answer_version=table.c.answer_version + 1,
            view_digest=former.view_digest
            if _names_of_rows(former.watched) == _names_of_rows(watched)
            else OUTDATED_VIEW,
        )
    )


def name_view(connection: Connection, tables: Tables, table_id: int, view_name: str) -> None:
    """Store the name of the view that is about to be made for the table; this locks the table's row.

    It is stored first: where each DDL statement is committed, the process may end after it, and `uninstall`
    finds a view by its stored name.
    """
    table = tables.watched_table
    connection.execute(update(table).where(table.c.id == table_id).values(view_name=view_name))


def set_view(
    connection: Connection, tables: Tables, table_id: int, view_name: str | None, view_digest: str | None
) -> None:
    """Store which view was made for the table, and the digest of its definition."""
    table = tables.watched_table
    connection.execute(
        update(table).where(table.c.id == table_id).values(view_name=view_name, view_digest=view_digest)
    )


def lease_holder(connection: Connection, tables: Tables, name: str) -> str | None:
    """Return who holds the lease on a table; None where it has ended. No lock is waited for."""
    table = tables.watched_table
    return connection.execute(
        select(table.c.lease_owner).where(table.c.name == name, is_held(tables, database_now(connection)))
    ).scalar_one_or_none()


def is_held(tables: Tables, now: datetime) -> ColumnElement[bool]:
    """Return the condition that a lease on a watched table has not ended; NULL where there is none."""
    return tables.watched_table.c.lease_until.between(now, now + _LONGEST_LEASE)


def lease_owner(connection: Connection, tables: Tables, table_id: int) -> str | None:
    """Return who has taken the lease on a table last, unless it was given back."""
    table = tables.watched_table
    return connection.execute(select(table.c.lease_owner).where(table.c.id == table_id)).scalar()


def take_lease(connection: Connection, tables: Tables, table_id: int, owner: str) -> str | None:
    """Take the lease on a table. Return None, or the owner who has it."""
    table = tables.watched_table
    while True:
        now = database_now(connection)
        taken = connection.execute(
            update(table)
            .where(
                table.c.id == table_id,
                or_(
                    table.c.lease_until.is_(None),
                    not_(is_held(tables, now)),
                    table.c.lease_owner == owner,
                ),
            )
            .values(lease_owner=owner, lease_until=now + LEASE)
        )
        if taken.rowcount == 1:
            return None
        holder = connection.execute(select(table.c.lease_owner).where(table.c.id == table_id)).scalar_one()
        if holder is not None:  # else it was dropped between the two statements
            return str(holder)


def renew_lease(
    connection: Connection, tables: Tables, table_id: int, owner: str, answer_version: int | None
) -> bool:
    """Renew the lease of a running scan. Return False where it has lost the lease.

    It also returns False where the answer is no longer of the version given: the lease had ended meanwhile,
    and another process has written.
    """
    table = tables.watched_table
    held = update(table).where(table.c.id == table_id, table.c.lease_owner == owner)
    if answer_version is not None:
        held = held.where(table.c.answer_version == answer_version)
    renewed = connection.execute(held.values(lease_until=database_now(connection) + LEASE))
    return renewed.rowcount == 1


def drop_lease(connection: Connection, tables: Tables, owner: str) -> None:
    """Drop the lease of this owner, if it has one, so that the next scan can begin."""
    table = tables.watched_table
    connection.execute(
        update(table).where(table.c.lease_owner == owner).values(lease_owner=None, lease_until=None)
    )


def definition_of(watched: WatchedTable) -> str:
    """Return settings as they are stored."""
    return definition_text(watched.resolved().model_dump(mode="json", by_alias=True), RECIPE_VERSION)


def _names_of_rows(watched: WatchedTable) -> tuple[object, ...]:
    """Return what tells whether two settings give the same row the same row key."""
    return watched.schema_name, watched.table_name, watched.key


@lru_cache(maxsize=64)
def _settings(definition: str, name: str) -> tuple[WatchedTable, int]:
    """Return the settings of a stored definition, and its `recipe_version`. Cached: each check needs them."""
    settings = read_definition(definition, name)
    del settings["format"]
    recipe_version = settings.pop("recipe_version")
    return WatchedTable.model_validate(settings), recipe_version


def _stored(row: Row[Any]) -> StoredTable:
    watched, recipe_version = _settings(row.definition, row.name)
    return StoredTable(
        row.id,
        watched,
        recipe_version,
        row.recipe,
        row.recipe_digest,
        row.view_name,
        row.view_digest,
        row.trigger_digest,
        row.attached_at,
        row.answer_version,
    )
