"""The table of reservations. It is written only under the lock of the watched table, and by releases."""

from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from db_dedup.records.reservations import Reservation
from db_dedup.schema.tables import Tables


def read_live(
    connection: Connection, tables: Tables, table_id: int, now: datetime
) -> list[tuple[int, Reservation]]:
    """Return (number of the recipe, reservation) of all that have not expired, the first to expire first."""
    c = tables.reservation.c
    query = (
        select(c.recipe, c.name, c.expires_at, c.row_key, c.packed)
        .where(c.table_id == table_id, c.expires_at > now)
        .order_by(c.expires_at, c.name)
    )
    return [
        (recipe, Reservation(name, expires_at, row_key, bytes(packed)))
        for recipe, name, expires_at, row_key, packed in connection.execute(query)
    ]


def find_live(
    connection: Connection, tables: Tables, table_id: int, name: str, now: datetime
) -> Reservation | None:
    """Return a reservation that has not expired; None if there is none of this name."""
    live = read_live(connection, tables, table_id, now)
    return next((each for _, each in live if each.name == name), None)


def add(connection: Connection, tables: Tables, table_id: int, recipe: int, added: Reservation) -> None:
    """Store a reservation."""
    connection.execute(
        insert(tables.reservation).values(
            table_id=table_id,
            name=added.name,
            recipe=recipe,
            row_key=added.row_key,
            expires_at=added.expires_at,
            packed=added.packed,
        )
    )


def remove(connection: Connection, tables: Tables, table_id: int, name: str) -> bool:
    """Delete a reservation; return whether there was one."""
    c = tables.reservation.c
    done = connection.execute(delete(tables.reservation).where(c.table_id == table_id, c.name == name))
    return done.rowcount > 0


def remove_expired(connection: Connection, tables: Tables, table_id: int, now: datetime) -> None:
    """Delete the reservations that have expired."""
    c = tables.reservation.c
    connection.execute(delete(tables.reservation).where(c.table_id == table_id, c.expires_at <= now))
