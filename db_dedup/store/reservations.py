"""The table of reservations. It is written only under the lock of the watched table, and by releases."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from db_dedup.records.reservations import Reservation
from db_dedup.schema.tables import Tables


class LiveReservation(NamedTuple):
    """A reservation that has not expired, without what it is compared by.

    Attributes:
        recipe: the number of its recipe.
    """

    recipe: int
    name: str
    row_key: str | None


def list_live(connection: Connection, tables: Tables, table_id: int, now: datetime) -> list[LiveReservation]:
    """Return all reservations that have not expired."""
    c = tables.reservation.c
    query = select(c.recipe, c.name, c.row_key).where(c.table_id == table_id, c.expires_at > now)
    return [LiveReservation(*row) for row in connection.execute(query)]


def read_named(
    connection: Connection, tables: Tables, table_id: int, names: Sequence[str]
) -> list[Reservation]:
    """Return the reservations of these names, the first to expire first."""
    c = tables.reservation.c
    query = (
        select(c.name, c.expires_at, c.row_key, c.packed)
        .where(c.table_id == table_id, c.name.in_(names))
        .order_by(c.expires_at, c.name)
    )
    return [
        Reservation(name, expires_at, row_key, bytes(packed))
        for name, expires_at, row_key, packed in (connection.execute(query) if names else ())
    ]


def find_live(
    connection: Connection, tables: Tables, table_id: int, name: str, now: datetime
) -> Reservation | None:
    """Return a reservation that has not expired; None if there is none of this name."""
    found = read_named(connection, tables, table_id, [name])
    return next((each for each in found if each.expires_at > now), None)


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
