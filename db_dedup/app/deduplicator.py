"""The duplicates of one table: the Python API, which the command line calls."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.orm import Session

from db_dedup.app.database import Database
from db_dedup.config import Settings, WatchedTable, watched_table
from db_dedup.engines.embedded.expansion import Expansion
from db_dedup.engines.embedded.lookup import CheckResult, Lookup
from db_dedup.errors import ConfigError, NotScannedError, RecipeDiffersError, UnknownNameError
from db_dedup.jobs.full_scan import FullScan
from db_dedup.jobs.table_view import TableView
from db_dedup.progress import NullProgress, Progress
from db_dedup.records import DuplicatePair, GroupSummary, Match, ScanReport
from db_dedup.store import answers, watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.inspection import check_columns, inspect_table, resolve_key
from db_dedup.store.source import Source
from db_dedup.store.watched_tables import StoredTable


class Deduplicator:
    """Finds the duplicates of one table.

    Args:
        engine: an Engine, a URL, or a `Database`.
        table: the table's name; or its whole settings.
        columns: column name -> weight of its text, `Text()` or `Value()`; left out, the stored recipe counts.
        progress: told how far a scan has come.
        options: any other setting of a table in `dedup.toml`, such as `preset`, `key`, `order`, `where`.
    """

    def __init__(
        self,
        engine: Engine | URL | str | Database,
        table: str | WatchedTable,
        columns: Mapping[str, object] | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> None:
        """Settle what is looked for, and where.

        Raises:
            ConfigError: settings that cannot be used.
        """
        self.database = engine if isinstance(engine, Database) else Database(engine)
        self._progress = progress or NullProgress()
        self._prepared: tuple[StoredTable, Lookup] | None = None
        self._given: WatchedTable | None = None
        if isinstance(table, WatchedTable):
            self._given = table
        elif columns is not None:
            self._given = watched_table(table, {"columns": dict(columns), **options})
        elif options:
            raise ConfigError(f"{', '.join(options)}: settings of a table come with its columns")
        self.name = table.name if isinstance(table, WatchedTable) else table

    def upgrade(self) -> str:
        """Make our tables in the database, or bring them up to date."""
        return self.database.upgrade()

    def scan(self) -> ScanReport:
        """Find every duplicate of the table and switch the views to the new answer."""
        self.database.require_schema()
        database = self.database
        with database.errors_told():
            with database.engine.connect() as connection:
                watched = self._given or self._find_stored(connection).watched
                watched, source = self._source(connection, watched)
            report = FullScan(
                database.engine, database.dialect, database.tables, watched, source, self._progress
            ).run()
            with database.dialect.write_transaction(database.engine) as connection:
                TableView(database.dialect, database.tables, source).refresh(
                    connection, self._find_stored(connection)
                )
        return report

    def check(
        self, record: Mapping[str, object], connection: Connection | Session | None = None
    ) -> list[Match]:
        """Stored rows that this record duplicates, nearest first.

        Args:
            record: column name -> value; what is missing counts as NULL.
            connection: read through this one, which is neither committed nor rolled back.
        """
        return self.check_in_full(record, connection).matches

    def check_in_full(
        self, record: Mapping[str, object], connection: Connection | Session | None = None
    ) -> CheckResult:
        """As `check`, and whether there was too little text to judge."""
        with self.database.errors_told():
            if connection is None:
                with self.database.engine.connect() as own:
                    return self._lookup(own).check(own, record)
            if isinstance(connection, Session):
                connection = connection.connection()
            return self._lookup(connection).check(connection, record)

    def pairs(self, expand: bool = False) -> Iterator[DuplicatePair]:
        """The duplicate pairs; expanded, every pair of rows that the copies and abridged groups imply."""
        with self.database.errors_told(), self.database.engine.connect() as connection:
            stored = self._require_stored(connection)
        return self._read_pairs(stored, expand)

    def _read_pairs(self, stored: StoredTable, expand: bool) -> Iterator[DuplicatePair]:
        with self.database.errors_told(), self.database.engine.connect() as connection:
            if not expand:
                yield from answers.read_pairs(connection, self.database.tables, self.name)
                return
            watched, source = self._source(connection, stored.watched)
            yield from Expansion(watched, self._store(stored), source).pairs(connection)

    def groups(self, limit: int | None = None) -> list[GroupSummary]:
        """The duplicate groups, the largest first."""
        with self.database.errors_told(), self.database.engine.connect() as connection:
            self._require_stored(connection)
            return list(answers.read_groups(connection, self.database.tables, self.name, limit))

    def members(self, group_id: str) -> list[str]:
        """The row keys of a group, the representative first."""
        with self.database.errors_told(), self.database.engine.connect() as connection:
            self._require_stored(connection)
            return answers.read_members(connection, self.database.tables, self.name, group_id)

    def view_statements(self) -> list[str]:
        """The DDL of this table's view, as a scan would run it."""
        with self.database.errors_told(), self.database.engine.connect() as connection:
            stored = self._require_stored(connection)
            _, source = self._source(connection, self._given or stored.watched)
            view = TableView(self.database.dialect, self.database.tables, source)
            dialect = self.database.engine.dialect
            return [f"{str(s.compile(dialect=dialect)).strip()};" for s in view.statements(stored)]

    def _lookup(self, connection: Connection) -> Lookup:
        """Made once, and again when a scan has switched to another recipe."""
        stored = self._require_scanned(connection)
        if self._prepared is None or self._prepared[0] != stored:
            watched, source = self._source(connection, stored.watched)
            self._prepared = stored, Lookup(watched, self._store(stored), source)
        return self._prepared[1]

    def _store(self, stored: StoredTable) -> FingerprintStore:
        return FingerprintStore(self.database.dialect, self.database.tables, stored.id, stored.recipe or 0)

    def _source(self, connection: Connection, watched: WatchedTable) -> tuple[WatchedTable, Source]:
        """The settings with what inspection found filled in, and the reader of the user's table."""
        table = inspect_table(connection, watched.table_name, watched.schema_name)
        check_columns(watched, table)
        key = resolve_key(table, watched.key)
        watched = watched.model_copy(update={"key": tuple(column.name for column in key)})
        return watched, Source(self.database.dialect, table, watched)

    def _find_stored(self, connection: Connection) -> StoredTable:
        """What is stored of the table; UnknownNameError where nothing is."""
        stored = watched_tables.find_table(connection, self.database.tables, self.name)
        if stored is None:
            known = [s.watched.name for s in watched_tables.list_tables(connection, self.database.tables)]
            raise UnknownNameError("watched table", self.name, known)
        return stored

    def _require_stored(self, connection: Connection) -> StoredTable:
        """The stored table, once a scan has finished."""
        if self._prepared is None:
            self.database.require_schema_on(connection)
        stored = watched_tables.find_table(connection, self.database.tables, self.name)
        if stored is None and self._given is None:
            stored = self._find_stored(connection)
        if stored is None or stored.recipe is None:
            raise NotScannedError(f"{self.name!r} has not been scanned yet: run `db-dedup scan {self.name}`")
        return stored

    def _require_scanned(self, connection: Connection) -> StoredTable:
        """As `_require_stored`, and the given settings are those that the scan was made with."""
        stored = self._require_stored(connection)
        if self._given is not None and not _same_settings(self._given, stored.watched):
            raise RecipeDiffersError(
                f"the settings of {self.name!r} differ from those it was scanned with: "
                f"run `db-dedup scan {self.name}`"
            )
        return stored


def open_deduplicator(
    url: str, settings: Settings | None, table: str, progress: Progress | None = None
) -> Deduplicator:
    """The table as the settings file says, or as it is stored where there is no file."""
    if settings is None:
        return Deduplicator(Database(url), table, progress=progress)
    database = Database(url, settings.schema_name, settings.prefix)
    return Deduplicator(database, settings.watched(table), progress=progress)


def _same_settings(given: WatchedTable, stored: WatchedTable) -> bool:
    """Whether both say the same; a key left out says what inspection found."""
    if given.key is None:
        given = given.model_copy(update={"key": stored.key})
    return given == stored
