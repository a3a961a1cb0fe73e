"""The tables we watch: their stored recipe, which one serves, and the lease of the scan at work."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Self

from sqlalchemy import Connection, Row, Update, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from db_dedup.config import RECIPE_VERSION, WatchedTable
from db_dedup.errors import OutdatedRecipeError
from db_dedup.schema.definitions import definition_text, read_definition
from db_dedup.schema.tables import Tables
from db_dedup.store.clock import database_now

LEASE: Final = timedelta(seconds=60)
"""A scan that has not renewed its lease for so long counts as dead."""


@dataclass(frozen=True)
class StoredTable:
    """One row of `watched_table`.

    Attributes:
        watched: the settings, their rule resolved.
        recipe_version: of the code that stored them.
        recipe: number of the recipe that serves, None before the first finished scan.
        trigger_digest: of the triggers as the database told them right after they were made.
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
        """Whether what was prepared for the other one serves for this one, too."""
        return (self.id, self.recipe, self.watched) == (other.id, other.recipe, other.watched)

    @property
    def is_outdated(self) -> bool:
        """Whether the answer was made by another version of the recipes."""
        return self.recipe is not None and self.recipe_version != RECIPE_VERSION

    def require_current(self) -> Self:
        """The same.

        Raises:
            OutdatedRecipeError: what this program computes cannot be compared with what is stored.
        """
        if self.is_outdated:
            raise OutdatedRecipeError(self.watched.name, self.recipe_version, RECIPE_VERSION)
        return self

    def require_known(self) -> Self:
        """The same.

        Raises:
            OutdatedRecipeError: a newer version of the program made the answer, and knows more than this one.
        """
        return self.require_current() if self.recipe_version > RECIPE_VERSION else self


def find_table(connection: Connection, tables: Tables, name: str) -> StoredTable | None:
    """What is stored of a watched table."""
    table = tables.watched_table
    row = connection.execute(select(table).where(table.c.name == name)).one_or_none()
    return None if row is None else _stored(row)


def list_tables(connection: Connection, tables: Tables) -> list[StoredTable]:
    """Every watched table, by name."""
    table = tables.watched_table
    return [_stored(row) for row in connection.execute(select(table).order_by(table.c.name))]


def lock_table(connection: Connection, tables: Tables, name: str) -> tuple[StoredTable | None, str | None]:
    """Keep every other matcher of the table out until the transaction ends.

    Returns:
        (what is stored of the table, who scans it right now or None).
    """
    table = tables.watched_table
    row = connection.execute(select(table).where(table.c.name == name).with_for_update()).one_or_none()
    if row is None:
        return None, None
    is_scanned = row.lease_until is not None and row.lease_until >= database_now(connection)
    return _stored(row), row.lease_owner if is_scanned else None


def hold_table(connection: Connection, tables: Tables, name: str) -> StoredTable | None:
    """What is stored of a watched table. Until the transaction ends, no scan begins or switches recipes, and
    no worker writes; others may hold the table as well."""
    table = tables.watched_table
    query = select(table).where(table.c.name == name).with_for_update(read=True)
    row = connection.execute(query).one_or_none()
    return None if row is None else _stored(row)


def take_turn(tables: Tables, name: str) -> Update:
    """The statement that keeps every other matcher of a table out until its transaction ends.

    An update, if only in name: in PostgreSQL whoever waits for it with an older snapshot then fails, and in
    SQLite it takes the right to write.
    """
    table = tables.watched_table
    return update(table).where(table.c.name == name).values(answer_version=table.c.answer_version)


def count_answer(connection: Connection, tables: Tables, table_id: int) -> None:
    """The answer has changed: whoever keeps some of it in memory must read it again."""
    table = tables.watched_table
    connection.execute(
        update(table).where(table.c.id == table_id).values(answer_version=table.c.answer_version + 1)
    )


def add_table(connection: Connection, tables: Tables, watched: WatchedTable) -> StoredTable:
    """The stored row of a table, made if there is none."""
    stored = find_table(connection, tables, watched.name)
    if stored is None:
        new = insert(tables.watched_table).values(name=watched.name, definition=definition_of(watched))
        # Of two first scans at once the second waits here for the first one's row, and then finds it.
        with suppress(IntegrityError), connection.begin_nested():
            connection.execute(new)
        stored = find_table(connection, tables, watched.name)
        assert stored is not None  # noqa: S101 - it is there now, whoever wrote it
    return stored


def serve_recipe(
    connection: Connection, tables: Tables, table_id: int, watched: WatchedTable, recipe: int
) -> None:
    """From the end of this transaction on, the views show what this recipe found."""
    table = tables.watched_table
    connection.execute(
        update(table)
        .where(table.c.id == table_id)
        .values(
            definition=definition_of(watched),
            recipe=recipe,
            recipe_digest=watched.recipe_digest(),
            answer_version=table.c.answer_version + 1,
        )
    )


def set_view(
    connection: Connection, tables: Tables, table_id: int, view_name: str | None, view_digest: str | None
) -> None:
    """Remember which view was made for the table, and the digest of its definition."""
    table = tables.watched_table
    connection.execute(
        update(table).where(table.c.id == table_id).values(view_name=view_name, view_digest=view_digest)
    )


def lease_holder(connection: Connection, tables: Tables, name: str) -> str | None:
    """Who holds the lease on a table, if it has not ended. Waits for nobody."""
    table = tables.watched_table
    return connection.execute(
        select(table.c.lease_owner).where(
            table.c.name == name, table.c.lease_until >= database_now(connection)
        )
    ).scalar_one_or_none()


def take_lease(connection: Connection, tables: Tables, table_id: int, owner: str) -> str | None:
    """Become the one scan of this table. Returns None, or who holds it."""
    table = tables.watched_table
    while True:
        now = database_now(connection)
        taken = connection.execute(
            update(table)
            .where(
                table.c.id == table_id,
                or_(table.c.lease_until.is_(None), table.c.lease_until < now, table.c.lease_owner == owner),
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
    """Say that the scan is alive. False where it has lost its lease, or where the answer is no longer of the
    version that it found, if one is given: its lease had ended, and somebody else has been at work."""
    table = tables.watched_table
    held = update(table).where(table.c.id == table_id, table.c.lease_owner == owner)
    if answer_version is not None:
        held = held.where(table.c.answer_version == answer_version)
    renewed = connection.execute(held.values(lease_until=database_now(connection) + LEASE))
    return renewed.rowcount == 1


def drop_lease(connection: Connection, tables: Tables, owner: str) -> None:
    """Let the next scan begin, where this owner holds a lease."""
    table = tables.watched_table
    connection.execute(
        update(table).where(table.c.lease_owner == owner).values(lease_owner=None, lease_until=None)
    )


def definition_of(watched: WatchedTable) -> str:
    """Settings as they are stored."""
    return definition_text(watched.resolved().model_dump(mode="json", by_alias=True), RECIPE_VERSION)


def _stored(row: Row[Any]) -> StoredTable:
    settings = read_definition(row.definition, row.name)
    del settings["format"]
    recipe_version = settings.pop("recipe_version")
    return StoredTable(
        row.id,
        WatchedTable.model_validate(settings),
        recipe_version,
        row.recipe,
        row.recipe_digest,
        row.view_name,
        row.view_digest,
        row.trigger_digest,
        row.attached_at,
        row.answer_version,
    )
