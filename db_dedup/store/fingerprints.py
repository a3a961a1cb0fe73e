"""Reads and writes of the fingerprint table during a scan."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, and_, delete, or_, select
from sqlalchemy.sql import ColumnElement

from db_dedup.dialects.base import Dialect
from db_dedup.schema.tables import Tables

_KEYS_A_QUERY = 5000


@dataclass(frozen=True)
class FingerprintStore:
    """The fingerprints of one table under one recipe."""

    dialect: Dialect
    tables: Tables
    table_id: int
    recipe: int

    @property
    def mine(self) -> ColumnElement[bool]:
        """The condition that a fingerprint belongs to this table and recipe."""
        table = self.tables.fingerprint
        return and_(table.c.table_id == self.table_id, table.c.recipe == self.recipe)

    def is_empty(self, connection: Connection) -> bool:
        """Whether nothing is stored yet."""
        query = select(self.tables.fingerprint.c.id).where(self.mine).limit(1)
        return connection.execute(query).first() is None

    def find_rows(
        self, connection: Connection, row_keys: Sequence[str]
    ) -> dict[str, tuple[int, bytes, str | None, int | None]]:
        """row key -> (id, digest, order value, fingerprint as stored) of the rows that are there."""
        table = self.tables.fingerprint
        found = {}
        for first in range(0, len(row_keys), _KEYS_A_QUERY):
            keys = row_keys[first : first + _KEYS_A_QUERY]
            query = select(
                table.c.row_key, table.c.id, table.c.digest, table.c.order_value, table.c.fingerprint
            ).where(self.mine, table.c.row_key.in_(keys))
            for row in connection.execute(query):
                found[row[0]] = (row[1], bytes(row[2]), row[3], row[4])
        return found

    def insert_rows(
        self, connection: Connection, rows: Sequence[tuple[str, str | None, int | None, bytes]]
    ) -> None:
        """Write (row key, order value, signed fingerprint, digest) of new rows."""
        self.dialect.bulk_insert(
            connection,
            self.tables.fingerprint,
            ("table_id", "recipe", "row_key", "order_value", "fingerprint", "digest"),
            ((self.table_id, self.recipe, *row) for row in rows),
        )

    def update_rows(
        self, connection: Connection, rows: Sequence[tuple[int, str | None, int | None, bytes]]
    ) -> None:
        """Write (id, order value, signed fingerprint, digest) of changed rows."""
        self.dialect.bulk_update(
            connection, self.tables.fingerprint, "id", ("order_value", "fingerprint", "digest"), rows
        )

    def read_ids(self, connection: Connection) -> dict[str, int]:
        """row key -> id of everything stored."""
        table = self.tables.fingerprint
        rows = connection.execute(select(table.c.row_key, table.c.id).where(self.mine)).all()
        return {row_key: row_id for row_key, row_id in rows}  # noqa: C416 - rows are no plain tuples

    def read_answer(self, connection: Connection) -> NDArray[np.int64]:
        """int64[n, 5] of the rows in some group: id, copy_of, group_id, is_loose, is_abridged; NULL is -1."""
        table = self.tables.fingerprint
        flags = (table.c.is_loose, table.c.is_abridged)
        query = select(table.c.id, table.c.copy_of, table.c.group_id, *flags).where(
            self.mine, or_(table.c.copy_of.is_not(None), table.c.group_id.is_not(None))
        )
        rows = [[-1 if v is None else int(v) for v in row] for row in connection.execute(query)]
        return np.array(rows, np.int64).reshape(-1, 5)

    def delete_rows(self, connection: Connection, ids: Sequence[int]) -> None:
        """Forget rows that are no longer in the user's table."""
        self.dialect.bulk_delete(connection, self.tables.fingerprint, "id", ids)

    def delete_other_recipes(self, connection: Connection) -> None:
        """Forget the table's fingerprints and pairs under every other recipe."""
        fingerprint, pair = self.tables.fingerprint, self.tables.pair
        others = and_(fingerprint.c.table_id == self.table_id, fingerprint.c.recipe != self.recipe)
        ids = select(fingerprint.c.id).where(others)
        connection.execute(delete(pair).where(pair.c.id_a.in_(ids)))
        connection.execute(delete(fingerprint).where(others))
