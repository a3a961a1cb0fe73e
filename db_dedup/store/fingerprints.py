"""Reads and writes of the fingerprint table during a scan."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, and_, delete, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql import ColumnElement

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.batches import batches
from db_dedup.errors import RowKeyError
from db_dedup.schema.tables import Tables
from db_dedup.schema.types import to_signed

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

    def read_ids(self, connection: Connection) -> dict[str, int]:
        """row key -> id of everything stored."""
        table = self.tables.fingerprint
        rows = connection.execute(select(table.c.row_key, table.c.id).where(self.mine)).all()
        return {row_key: row_id for row_key, row_id in rows}  # noqa: C416 - rows are no plain tuples

    def read_heads(self, connection: Connection) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """(int64[n], uint64[n]): ids and fingerprints of the rows that take part in pairs."""
        c = self.tables.fingerprint.c
        query = select(c.id, c.fingerprint).where(self.mine, c.copy_of.is_(None), c.fingerprint.is_not(None))
        rows = connection.execute(query).all()
        return (
            np.fromiter((row[0] for row in rows), np.int64, len(rows)),
            np.fromiter((row[1] for row in rows), np.uint64, len(rows)),
        )

    def read_answer(self, connection: Connection) -> NDArray[np.int64]:
        """int64[n, 6] of the rows in some group: id, copy_of, group_id, is_loose, is_abridged, group_size;
        NULL is -1."""
        table = self.tables.fingerprint
        flags = (table.c.is_loose, table.c.is_abridged, table.c.group_size)
        query = select(table.c.id, table.c.copy_of, table.c.group_id, *flags).where(
            self.mine, or_(table.c.copy_of.is_not(None), table.c.group_id.is_not(None))
        )
        rows = [[-1 if v is None else int(v) for v in row] for row in connection.execute(query)]
        return np.array(rows, np.int64).reshape(-1, 6)

    def delete_rows(self, connection: Connection, ids: Sequence[int]) -> None:
        """Forget rows that are no longer in the user's table."""
        self.dialect.bulk_delete(connection, self.tables.fingerprint, "id", ids)

    def delete_other_recipes(self, connection: Connection) -> None:
        """Forget the table's fingerprints and pairs under every other recipe."""
        fingerprint, pair, band = self.tables.fingerprint, self.tables.pair, self.tables.band
        others = and_(fingerprint.c.table_id == self.table_id, fingerprint.c.recipe != self.recipe)
        ids = select(fingerprint.c.id).where(others)
        if connection.execute(ids.limit(1)).first() is None:
            return  # to find that no band is of them takes a look at every band
        connection.execute(delete(pair).where(pair.c.id_a.in_(ids)))
        connection.execute(delete(band).where(band.c.fingerprint_id.in_(ids)))
        connection.execute(delete(fingerprint).where(others))


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
