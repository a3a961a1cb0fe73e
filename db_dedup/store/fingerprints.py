"""Reads and writes of the fingerprint table during a scan."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, and_, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql import ColumnElement

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.batches import batches
from db_dedup.errors import RowKeyError
from db_dedup.schema.tables import Tables
from db_dedup.schema.types import to_signed
from db_dedup.store.reader import Reader

_KEYS_A_QUERY = 5000
_WRITTEN = ("order_value", "fingerprint", "digest")


class RowFingerprint(NamedTuple):
    """What is stored of a row: its fingerprint is unsigned, None where there is too little text; its bands
    only where they are to be written with it."""

    row_key: str
    order_value: str | None
    fingerprint: int | None
    digest: bytes
    sketch: bytes | None = None


class StoredFingerprint(NamedTuple):
    """The same as it stands in the table, under its number there; with its bands, if it has any."""

    id: int
    order_value: str | None
    fingerprint: int | None
    digest: bytes
    sketch: bytes | None = None

    def is_of(self, row: RowFingerprint) -> bool:
        """Whether the row is as it was stored."""
        return self[1:4] == row[1:4]


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

    def find_rows(self, connection: Connection, row_keys: Sequence[str]) -> dict[str, StoredFingerprint]:
        """What is stored of these rows, by row key."""
        found: dict[str, StoredFingerprint] = {}
        for keys in batches(row_keys, _KEYS_A_QUERY):
            wanted = self.tables.fingerprint.c.row_key.in_(keys)
            found |= dict(map(_stored, connection.execute(self._select().where(wanted))))
        return found

    def read_rows(self, connection: Connection) -> Iterator[tuple[str, StoredFingerprint]]:
        """(row key, what is stored) of every row."""
        return map(_stored, connection.execute(self._select().execution_options(yield_per=_KEYS_A_QUERY)))

    def put_rows(
        self,
        connection: Connection,
        rows: Sequence[RowFingerprint],
        stored: Mapping[str, StoredFingerprint],
        *,
        with_sketches: bool = False,
    ) -> None:
        """Insert the rows that are new, update those that have changed, leave the others.

        Raises:
            RowKeyError: two rows have the same key.
        """
        columns = (*_WRITTEN, "sketch") if with_sketches else _WRITTEN
        self.insert_rows(connection, [row for row in rows if row.row_key not in stored], columns)
        pairs = ((stored[row.row_key], row) for row in rows if row.row_key in stored)
        self.update_rows(connection, [(old.id, row) for old, row in pairs if not old.is_of(row)], columns)

    def insert_rows(
        self, connection: Connection, rows: Sequence[RowFingerprint], columns: Sequence[str] = _WRITTEN
    ) -> None:
        """Write new rows.

        Raises:
            RowKeyError: two rows have the same key.
        """
        own = (self.table_id, self.recipe)
        try:
            self.dialect.bulk_insert(
                connection,
                self.tables.fingerprint,
                ("table_id", "recipe", "row_key", *columns),
                ((*own, row.row_key, *_written(row, columns)) for row in rows),
            )
        except IntegrityError:
            raise _two_rows(rows) from None

    def update_rows(
        self,
        connection: Connection,
        rows: Sequence[tuple[int, RowFingerprint]],
        columns: Sequence[str] = _WRITTEN,
    ) -> None:
        """Write changed rows, each under the id it is stored by."""
        changed = ((row_id, *_written(row, columns)) for row_id, row in rows)
        self.dialect.bulk_update(connection, self.tables.fingerprint, "id", columns, changed)

    def _select(self) -> Select[Any]:
        c = self.tables.fingerprint.c
        return select(c.row_key, c.id, c.order_value, c.fingerprint, c.digest, c.sketch).where(self.mine)

    def read_ids(self, reader: Reader) -> dict[str, int]:
        """row key -> id of everything stored."""
        c = self.tables.fingerprint.c
        return {row[1]: row[0] for row in reader.rows(select(c.id, c.row_key).where(self.mine), c.id)}

    def read_heads(self, connection: Connection) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """(int64[n], uint64[n]): ids and fingerprints of the rows that take part in pairs."""
        c = self.tables.fingerprint.c
        query = select(c.id, c.fingerprint).where(self.mine, c.copy_of.is_(None), c.fingerprint.is_not(None))
        rows = connection.execute(query).all()
        return (
            np.fromiter((row[0] for row in rows), np.int64, len(rows)),
            np.fromiter((row[1] for row in rows), np.uint64, len(rows)),
        )

    def read_answer(self, reader: Reader) -> NDArray[np.int64]:
        """int64[n, 6] of the rows in some group: id, copy_of, group_id, is_loose, is_abridged, group_size;
        NULL is -1."""
        table = self.tables.fingerprint
        flags = (table.c.is_loose, table.c.is_abridged, table.c.group_size)
        query = select(table.c.id, table.c.copy_of, table.c.group_id, *flags).where(
            self.mine, or_(table.c.copy_of.is_not(None), table.c.group_id.is_not(None))
        )
        rows = [[-1 if v is None else int(v) for v in row] for row in reader.rows(query, table.c.id)]
        return np.array(rows, np.int64).reshape(-1, 6)

    def delete_rows(self, connection: Connection, ids: Sequence[int]) -> None:
        """Forget rows that are no longer in the user's table."""
        self.dialect.bulk_delete(connection, self.tables.fingerprint, "id", ids)

    def other_recipes(self, connection: Connection) -> list["FingerprintStore"]:
        """The table's fingerprints under every other recipe that has some."""
        c = self.tables.fingerprint.c
        # Number after number by the index: to compare all rows with one number would read them all.
        after = select(c.recipe).where(c.table_id == self.table_id).order_by(c.recipe).limit(1)
        found: list[int] = []
        last = -1
        while (row := connection.execute(after.where(c.recipe > last)).first()) is not None:
            last = int(row[0])
            found.append(last)
        return [replace(self, recipe=recipe) for recipe in found if recipe != self.recipe]


def _stored(row: Sequence[Any]) -> tuple[str, StoredFingerprint]:
    sketch = None if row[5] is None else bytes(row[5])
    return row[0], StoredFingerprint(row[1], row[2], row[3], bytes(row[4]), sketch)


def _written(row: RowFingerprint, columns: Sequence[str]) -> tuple[str | int | bytes | None, ...]:
    signed = None if row.fingerprint is None else to_signed(row.fingerprint)
    return (row.order_value, signed, row.digest, row.sketch)[: len(columns)]


def _two_rows(rows: Sequence[RowFingerprint]) -> RowKeyError:
    key, count = Counter(row.row_key for row in rows).most_common(1)[0]
    which = f" {key[:40]!r}" if count > 1 else ""
    return RowKeyError(f"two rows have the same key{which}: name a unique key")
