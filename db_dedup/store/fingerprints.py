"""Reads and writes of the fingerprint table, row by row and as a whole."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BigInteger, Connection, Select, Table, and_, func, or_, select, type_coerce
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql import ColumnElement

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.batches import batches, number_batches
from db_dedup.errors import RowKeyError
from db_dedup.records.fingerprints import AnswerColumns, AnswerRow, RowFingerprint, StoredFingerprint
from db_dedup.records.pages import take_lists
from db_dedup.schema.tables import Tables
from db_dedup.schema.types import to_signed
from db_dedup.store.reader import Reader
from db_dedup.store.streams import parts_of
from db_dedup.store.watched_tables import StoredTable

_KEYS_A_QUERY = 5000
_ROWS_A_PART = 10_000
_OF_ANY_TEXT = ("order_value", "fingerprint", "digest", "form")
_WRITTEN = (*_OF_ANY_TEXT, "feature_set")
_WITH_SIZE = (*_WRITTEN, "sketch_size")


class CanonicalRows(NamedTuple):
    """The n rows that can take part in pairs: they have a fingerprint and are no exact duplicates of another.

    Attributes:
        ids: int64[n].
        fingerprints: uint64[n].
    """

    ids: NDArray[np.int64]
    fingerprints: NDArray[np.uint64]


@dataclass(frozen=True)
class FingerprintStore:
    """The fingerprints of one table under one recipe."""

    dialect: Dialect
    tables: Tables
    table_id: int
    recipe: int

    @classmethod
    def serving(cls, dialect: Dialect, tables: Tables, stored: StoredTable) -> Self:
        """Return those of the recipe that serves; before the first finished scan there are none."""
        return cls(dialect, tables, stored.id, stored.recipe or 0)

    @property
    def mine(self) -> ColumnElement[bool]:
        """The condition that a fingerprint belongs to this table and recipe."""
        table = self.tables.fingerprint
        return and_(table.c.table_id == self.table_id, table.c.recipe == self.recipe)

    def is_empty(self, connection: Connection) -> bool:
        """Return whether nothing is stored yet."""
        query = select(self.tables.fingerprint.c.id).where(self.mine).limit(1)
        return connection.execute(query).first() is None

    def is_alone(self, connection: Connection) -> bool:
        """Return whether no other table or recipe has fingerprints."""
        row = self.tables.fingerprint
        recipes = select(func.min(row.c.recipe)), select(func.max(row.c.recipe))
        # Each is one step in an index that begins with (table_id, recipe).
        query = select(
            select(func.min(row.c.table_id)).scalar_subquery(),
            select(func.max(row.c.table_id)).scalar_subquery(),
            *(bound.where(row.c.table_id == self.table_id).scalar_subquery() for bound in recipes),
        )
        own = (self.table_id, self.table_id, self.recipe, self.recipe)
        return tuple(connection.execute(query).one()) == own

    def find_rows(self, connection: Connection, row_keys: Sequence[str]) -> dict[str, StoredFingerprint]:
        """Return what is stored of these rows, by row key."""
        found: dict[str, StoredFingerprint] = {}
        for keys in batches(row_keys, _KEYS_A_QUERY):
            wanted = self.tables.fingerprint.c.row_key.in_(keys)
            found |= dict(map(_stored, connection.execute(self._select().where(wanted))))
        return found

    def read_rows(self, connection: Connection) -> Iterator[tuple[str, StoredFingerprint]]:
        """Yield (row key, what is stored) of every row."""
        for part in parts_of(connection, self._select(), _KEYS_A_QUERY):
            yield from map(_stored, part)

    def put_rows(
        self,
        connection: Connection,
        rows: Sequence[RowFingerprint],
        stored: Mapping[str, StoredFingerprint],
        *,
        with_sketch_sizes: bool = False,
    ) -> None:
        """Insert the rows that are new, update those that have changed, leave the others.

        Raises:
            RowKeyError: two rows have the same key.
        """
        new = [row for row in rows if row.row_key not in stored] if stored else rows
        self.insert_rows(connection, new, with_sketch_sizes=with_sketch_sizes)
        if not stored:
            return
        pairs = ((stored[row.row_key], row) for row in rows if row.row_key in stored)
        changed = [(old, row) for old, row in pairs if not old.is_of(row)]
        self.update_rows(connection, changed, with_sketch_sizes=with_sketch_sizes)

    def insert_rows(
        self, connection: Connection, rows: Sequence[RowFingerprint], *, with_sketch_sizes: bool = False
    ) -> None:
        """Write new rows.

        Raises:
            RowKeyError: two rows have the same key.
        """
        columns = _WITH_SIZE if with_sketch_sizes else _WRITTEN
        self._insert(connection, rows, columns, (_written(row, with_sketch_sizes) for row in rows))

    def insert_texts(
        self, connection: Connection, rows: Sequence[RowFingerprint], sketches: Mapping[str, bytes]
    ) -> None:
        """Write new rows, each with its sketch.

        Args:
            connection: in a transaction.
            rows: the rows.
            sketches: row key -> sketch, of which the segments have nothing; a row that is not here has none.

        Raises:
            RowKeyError: two rows have the same key.
        """
        values = ((*_written(row, False), sketches.get(row.row_key)) for row in rows)
        self._insert(connection, rows, (*_WRITTEN, "sketch"), values)

    def _insert(
        self,
        connection: Connection,
        rows: Sequence[RowFingerprint],
        columns: Sequence[str],
        values: Iterable[tuple[str | int | bytes | None, ...]],
    ) -> None:
        names = ("table_id", "recipe", "row_key", *columns)
        own = (self.table_id, self.recipe)
        written = [(*own, row.row_key, *of_row) for row, of_row in zip(rows, values, strict=True)]
        try:
            self.dialect.bulk_insert(connection, self.tables.fingerprint, names, written)
        except IntegrityError:
            raise _two_rows(rows) from None

    def update_rows(
        self,
        connection: Connection,
        rows: Sequence[tuple[StoredFingerprint | AnswerRow, RowFingerprint]],
        *,
        with_sketch_sizes: bool = False,
    ) -> None:
        """Write changed rows: what is stored of each, and what is to be stored.

        A row whose text has not changed keeps the set of its features, which may not have been computed.
        """
        kept = [] if with_sketch_sizes else [(old, row) for old, row in rows if old.digest == row.digest]
        if kept:
            values = ((old.id, *_of_any_text(row)) for old, row in kept)
            self.dialect.bulk_update(connection, self.tables.fingerprint, "id", _OF_ANY_TEXT, values)
            rows = [(old, row) for old, row in rows if old.digest != row.digest]
        columns = _WITH_SIZE if with_sketch_sizes else _WRITTEN
        changed = ((old.id, *_written(row, with_sketch_sizes)) for old, row in rows)
        self.dialect.bulk_update(connection, self.tables.fingerprint, "id", columns, changed)

    def update_texts(
        self,
        connection: Connection,
        rows: Sequence[tuple[AnswerRow, RowFingerprint]],
        sketches: Mapping[int, bytes],
    ) -> None:
        """Write rows whose text has changed, each with its sketch.

        Args:
            connection: in a transaction.
            rows: what is stored of each, and what is to be stored.
            sketches: id -> sketch; a row that is not here has no sketch.
        """
        columns = (*_WITH_SIZE, "sketch")
        values = ((old.id, *_written(row, False), None, sketches.get(old.id)) for old, row in rows)
        self.dialect.bulk_update(connection, self.tables.fingerprint, "id", columns, values)

    def _select(self) -> Select[Any]:
        c = self.tables.fingerprint.c
        return select(c.row_key, c.id, c.order_value, c.fingerprint, c.digest, c.form).where(self.mine)

    def ids_and_keys(self, reader: Reader) -> Iterator[Sequence[Any]]:
        """Yield (id, row key) of everything stored."""
        c = self.tables.fingerprint.c
        return reader.rows(select(c.id, c.row_key).where(self.mine), c.id)

    def read_ids(self, reader: Reader) -> dict[str, int]:
        """Return row key -> id of everything stored."""
        return {row_key: row_id for row_id, row_key in self.ids_and_keys(reader)}

    def read_canonical_rows(self, reader: Reader) -> CanonicalRows:
        """Return the rows that can take part in pairs."""
        c = self.tables.fingerprint.c
        signed = type_coerce(c.fingerprint, BigInteger)
        query = select(c.id, signed).where(self.mine, c.copy_of.is_(None), c.fingerprint.is_not(None))
        numbers = chain.from_iterable(reader.number_rows(self.dialect, query, c.id))
        ids, values = np.fromiter(numbers, np.int64).reshape(-1, 2).T
        return CanonicalRows(ids.copy(), values.copy().view(np.uint64))

    def read_answer(self, reader: Reader) -> AnswerColumns:
        """Return the columns of the rows in some group; NULL is -1."""
        table = self.tables.fingerprint
        flags = (table.c.is_loose, table.c.is_abridged, table.c.group_size)
        query = select(table.c.id, table.c.copy_of, table.c.group_id, *flags).where(
            self.mine, or_(table.c.copy_of.is_not(None), table.c.group_id.is_not(None))
        )
        parts = [np.empty((len(AnswerColumns._fields), 0), np.int64)]
        for rows in take_lists(reader.number_rows(self.dialect, query, table.c.id), lambda: _ROWS_A_PART):
            found = [[-1 if v is None else int(v) for v in row] for row in rows]
            parts.append(np.array(found, np.int64).T)
        return AnswerColumns(*np.concatenate(parts, axis=1))

    def read_feature_sets(self, connection: Connection, ids: Sequence[int]) -> dict[int, bytes | None]:
        """Return id -> the set of features that is stored of a row, None for a canonical row that has none.

        Exact duplicates of other rows that have none are left out.
        """
        c = self.tables.fingerprint.c
        query = select(c.id, c.feature_set).where(
            self.dialect.is_one_of(c.id, "ids"), or_(c.feature_set.is_not(None), c.copy_of.is_(None))
        )
        return {
            row_id: None if packed is None else bytes(packed)
            for some in number_batches(ids, _KEYS_A_QUERY)
            for row_id, packed in connection.execute(query, {"ids": some})
        }

    def delete_rows(self, connection: Connection, ids: Sequence[int]) -> None:
        """Delete the fingerprints of rows that are no longer in the user's table."""
        self.dialect.bulk_delete(connection, self.tables.fingerprint, "id", ids)

    def other_recipes(self, connection: Connection) -> list["FingerprintStore"]:
        """Return the table's fingerprints under every other recipe that has some, or segments.

        A recipe has segments without fingerprints if all rows were deleted after its scan.
        """
        tables = self.tables
        found: set[int] = set()
        for table in (tables.fingerprint, tables.sketch_index, tables.sketch_segment):
            found |= self._recipes_in(connection, table)
        return [replace(self, recipe=recipe) for recipe in sorted(found - {self.recipe})]

    def _recipes_in(self, connection: Connection, table: Table) -> set[int]:
        # Number after number by the index: to compare all rows with one number would read them all.
        c = table.c
        after = select(c.recipe).where(c.table_id == self.table_id).order_by(c.recipe).limit(1)
        found: set[int] = set()
        last = -1
        while (row := connection.execute(after.where(c.recipe > last)).first()) is not None:
            last = int(row[0])
            found.add(last)
        return found


def _stored(row: Sequence[Any]) -> tuple[str, StoredFingerprint]:
    row_key, row_id, order_value, fingerprint, digest, form = row
    return row_key, StoredFingerprint(row_id, order_value, fingerprint, bytes(digest), form)


def _written(row: RowFingerprint, with_sketch_sizes: bool) -> tuple[str | int | bytes | None, ...]:
    """Return the values of `_WITH_SIZE`, or of `_WRITTEN`."""
    _, order_value, fingerprint, digest, form, sketch_size, feature_set = row
    signed = None if fingerprint is None else to_signed(fingerprint)
    values = (order_value, signed, digest, form, feature_set)
    return (*values, sketch_size) if with_sketch_sizes else values


def _of_any_text(row: RowFingerprint) -> tuple[str | int | bytes | None, ...]:
    signed = None if row.fingerprint is None else to_signed(row.fingerprint)
    return row.order_value, signed, row.digest, row.form


def _two_rows(rows: Sequence[RowFingerprint]) -> RowKeyError:
    key, count = Counter(row.row_key for row in rows).most_common(1)[0]
    if count == 1:
        return RowKeyError("two rows have the same key: name a unique key")
    return RowKeyError("two rows have the same key {row_key!r}: name a unique key", row_key=key[:40])
