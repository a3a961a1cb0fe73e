"""A table that is watched in one of several ways, and the answer that a full scan would give for it now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Executable,
    Integer,
    MetaData,
    String,
    Table,
    and_,
    column,
    delete,
    event,
    select,
    table,
    text,
    update,
)

from db_dedup import Deduplicator, Text, view_aside
from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.table_scan import EmbeddedScan
from db_dedup.flow.matching.spool import FeatureSpool
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.jobs.scan.scanned_table import ScannedRows
from db_dedup.jobs.worker.table_worker import TableWorker
from db_dedup.progress import NullProgress
from db_dedup.records.frames import NO_FRAMES
from db_dedup.schema.views import fixed_view
from db_dedup.store import watched_tables
from db_dedup.store.frames import serving_frames
from db_dedup.store.inspection import inspect_table
from db_dedup.store.labels import read_rejected
from db_dedup.store.source import Source
from db_dedup.store.watched_tables import StoredTable
from tests.worker.answers import Answer, compared_answer, scanned_answer
from tests.worker.keys import NUMBER, ODD_KEYS, PLAIN_KEYS, Key

WAYS: tuple[dict[str, Any], ...] = (
    {"abridge_above": 3},
    {"preset": "strict", "abridge_above": 2},
    {"preset": "strict", "radius": 11, "within": "region", "order": None},
    {"radius": 11, "similarity": "word_jaccard", "threshold": 0.5, "sketches": False, "abridge_above": 3},
    {"within": "region", "min_features": 7, "abridge_above": 2},
    {"where": "region <> 'C'", "similarity": "none", "radius": 7},
)
"""Settings beside the columns; every other table has a key of two columns."""

WAIT_SECONDS = 2
"""So long a statement of the worker may wait for a lock; it should never wait for the application."""

_OF_PAIRS = ("key_a", "key_b", "distance", "similarity", "kind", "contained_key", "other_place")

Row = tuple[str | None, str, int | None]
"""Body, region, received."""


@dataclass
class Watched:
    """A watched table with what its tests need."""

    letters: Table
    keys: Key
    dedup: Deduplicator
    settings: WatchedTable
    source: Source
    fingerprinter: Fingerprinter

    @classmethod
    def make(cls, engine: Engine, number: int) -> Watched:
        """The table of one of the ways made, scanned empty and attached."""
        return cls.make_with(engine, f"letters_{number}", PLAIN_KEYS[number % 2], WAYS[number])

    @classmethod
    def make_all(cls, engine: Engine) -> list[Watched]:
        """A table of each way, and one of each odd key that the database knows."""
        odd = ODD_KEYS[engine.dialect.name].values()
        return [
            *(cls.make(engine, number) for number in range(len(WAYS))),
            *(cls.make_with(engine, f"odd_{i}", key, WAYS[i % len(WAYS)]) for i, key in enumerate(odd)),
        ]

    @classmethod
    def make_with(cls, engine: Engine, name: str, keys: Key, settings: dict[str, Any]) -> Watched:
        """The table made, scanned empty and attached."""
        if keys.needs:
            with engine.begin() as connection:
                connection.execute(text(keys.needs))
        letters = Table(
            name,
            MetaData(),
            *keys.columns(),
            Column("body", String(400)),
            Column("region", String(9)),
            Column("received", Integer),
        )
        letters.create(engine)
        settings = {"order": "received", "segmenter": "words", "key": tuple(keys.types), **settings}
        dedup = Deduplicator(engine, name, {"body": Text()}, **settings)
        dedup.upgrade()
        dedup.attach()
        dedup.scan()
        with engine.connect() as connection:
            stored = watched_tables.find_table(connection, dedup.database.tables, name)
            assert stored is not None
            source = Source(dedup.database.dialect, inspect_table(connection, name), stored.watched)
        return cls(letters, keys, dedup, stored.watched, source, Fingerprinter(stored.watched.recipe))

    def workers(self) -> list[TableWorker]:
        """Two of them: one asks the database, one keeps the fingerprints in memory."""
        asking, remembering = self.dedup.worker(3), self.dedup.worker(4)
        asking._increments._index_is_worth_loading = lambda *_: False  # type: ignore[method-assign]
        remembering._increments._index_is_worth_loading = lambda *_: True  # type: ignore[method-assign]
        return [asking, remembering]

    def key(self, number: int) -> dict[str, Any]:
        """The key columns of one of the rows that a history may write."""
        return self.keys.of_row(number)

    def at(self, number: int) -> ColumnElement[bool]:
        """The condition that finds one of these rows."""
        return and_(*(self.letters.c[name] == value for name, value in self.keys.address(number).items()))

    def deletion(self, number: int) -> Executable:
        """The statement that deletes one of these rows and waits for no other.

        Without a primary key, MariaDB and MySQL may choose to read the whole table instead of the index:
        they estimate by its entries, and those of deleted rows count until they are purged. Such a DELETE
        waits for the new rows of other transactions; an UPDATE does not. A hint keeps it to the index.
        """
        is_innodb = self.dedup.database.engine.dialect.name in ("mariadb", "mysql")
        if self.keys.is_constrained or not is_innodb:
            return delete(self.letters).where(self.at(number))
        name = self.letters.name
        hinted = f"DELETE {name} FROM {name} FORCE INDEX (ix_{name}_{NUMBER}) WHERE {NUMBER} = :number"
        return text(hinted).bindparams(number=number)

    def row_key(self, number: int) -> str | None:
        """The row key of one of these rows; None where it is not there."""
        database = self.dedup.database
        expression = database.dialect.row_key(self.source.key_columns, self.letters)
        with database.engine.connect() as connection:
            found: str | None = connection.scalar(select(expression).where(self.at(number)))
            return found

    def empty(self) -> None:
        """No rows, and nothing of ours that tells of any."""
        database = self.dedup.database
        tables = database.tables
        with database.engine.begin() as connection:
            connection.execute(delete(self.letters))
            for ours in (
                *(tables.band, tables.pair, tables.fingerprint),
                *(tables.change, tables.dead_change, tables.verdict, tables.group_change),
            ):
                connection.execute(delete(ours))
            version = tables.watched_table.c.answer_version
            connection.execute(update(tables.watched_table).values(answer_version=version + 1))

    def restore(self) -> None:
        """Make the table as it was at first, with the settings that it had."""
        engine = self.dedup.database.engine
        with view_aside(engine, self.letters.name):
            self.letters.drop(engine)
            self.letters.create(engine)
        self.dedup.scan()
        self.dedup.attach()

    def read_stored(self, connection: Connection) -> StoredTable:
        """What is stored of the table now."""
        stored = watched_tables.find_table(connection, self.dedup.database.tables, self.letters.name)
        assert stored is not None
        return stored

    def fresh(self) -> Answer:
        """What a full scan of the rows would find by the settings that serve and the labels that hold."""
        database = self.dedup.database
        with database.engine.connect() as connection:
            stored = self.read_stored(connection)
            watched = stored.watched
            recipe = replace(watched.recipe, frames=serving_frames(connection, database.tables, stored))
            is_first = watched == self.settings and recipe.frames == NO_FRAMES
            fingerprinter = self.fingerprinter if is_first else Fingerprinter(recipe)
            source = Source(database.dialect, inspect_table(connection, self.letters.name), watched)
            rejected = read_rejected(connection, database.tables, stored.id)
            families = [c.family for c in source.key_columns]
            with FeatureSpool(keep_weights=watched.rule.similarity == "cosine") as spool:
                scan = EmbeddedScan(watched, families, spool, fingerprinter)
                for page in source.read_pages(connection):
                    scan.add_page(page, {})
                return scanned_answer(
                    ScannedRows.collected(scan.match(NullProgress(), lambda _: [], rejected)).with_pairs()
                )

    def stored(self) -> Answer:
        """What the four views say, `found_at` aside."""
        with self.dedup.database.engine.connect() as connection:
            pairs = self._shown(connection, "duplicate_pairs", *_OF_PAIRS)
            of_groups = ("group_id", "size", "representative_key", "is_loose", "is_abridged")
            groups = self._shown(connection, "duplicate_groups", *of_groups)
            members = self._shown(connection, "duplicate_members", "group_id", "row_key", "is_representative")
            rows = self._own_rows(connection)
            copies = self._copies(connection)
        links = [pair for pair in pairs if pair[:2] in copies]
        pairs = [pair for pair in pairs if pair[:2] not in copies]
        return compared_answer(pairs, links, groups, members, rows)

    def _shown(self, connection: Connection, base: str, *columns: str) -> list[tuple[Any, ...]]:
        view = fixed_view(self.dedup.database.namespace, base)
        query = select(*(view.c[c] for c in columns)).where(view.c.table_name == self.letters.name)
        return [tuple(row) for row in connection.execute(query)]

    def _own_rows(self, connection: Connection) -> list[tuple[Any, ...]]:
        """(group, its size, is representative, row key) of the view of the table's own rows."""
        database, key = self.dedup.database, self.source.key_columns
        view = table(
            f"{database.namespace.prefix}duplicates_of_{self.letters.name}",
            *map(column, ("group_id", "group_size", "is_representative", *(c.name for c in key))),
            schema=database.namespace.schema,
        )
        row_key = database.dialect.row_key(key, view)
        query = select(view.c.group_id, view.c.group_size, view.c.is_representative, row_key)
        return [(group, size, bool(first), key) for group, size, first, key in connection.execute(query)]

    def _copies(self, connection: Connection) -> set[tuple[Any, ...]]:
        """(key, key of its copy): the view does not tell a link from a pair of the same words in another
        order, of which an abridged group may do without."""
        tables = self.dedup.database.tables
        original, copy = tables.fingerprint.alias("original"), tables.fingerprint.alias("copy")
        stored = self.read_stored(connection)
        query = (
            select(original.c.row_key, copy.c.row_key)
            .join_from(copy, original, original.c.id == copy.c.copy_of)
            .where(original.c.table_id == stored.id, original.c.recipe == stored.recipe)
        )
        return {tuple(row) for row in connection.execute(query)}


def wait_for_nobody(engine: Engine, name: str) -> None:
    """Let every session of an engine fail rather than wait for long."""
    statement = {
        "postgresql": f"SET lock_timeout = '{WAIT_SECONDS}s'",
        "mariadb": f"SET SESSION innodb_lock_wait_timeout = {WAIT_SECONDS}",
    }.get(name)

    def set_up(connection: Any, _: object) -> None:
        if statement:
            with connection.cursor() as cursor:
                cursor.execute(statement)
            connection.commit()

    event.listen(engine, "connect", set_up)
