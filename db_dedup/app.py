"""The one place that picks dialect, engine and settings; and the Python API."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from db_dedup.config import Settings, WatchedTable, watched_table
from db_dedup.dialects import dialect_for, open_engine
from db_dedup.engines.embedded.expansion import Expansion
from db_dedup.engines.embedded.lookup import CheckResult, Lookup
from db_dedup.errors import (
    ConfigError,
    NotScannedError,
    RecipeDiffersError,
    SchemaMissingError,
    UnknownNameError,
)
from db_dedup.jobs.full_scan import FullScan
from db_dedup.jobs.table_view import TableView
from db_dedup.progress import NullProgress, Progress
from db_dedup.records import DuplicatePair, GroupSummary, Match, ScanReport, TableStatus
from db_dedup.schema import migrate
from db_dedup.schema.tables import our_tables
from db_dedup.schema.views import DropView
from db_dedup.store import answers, status, watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.inspection import check_columns, inspect_table, list_tables, resolve_key
from db_dedup.store.source import Source
from db_dedup.store.suggestion import Suggestion, suggest
from db_dedup.store.watched_tables import StoredTable


class Database:
    """A user's database with our tables in it."""

    def __init__(
        self,
        engine: Engine | URL | str,
        schema: str = "dedup",
        prefix: str = "dedup_",
        *,
        create: bool = False,
    ) -> None:
        """Prepare to work in a database; nothing is asked of it yet.

        Args:
            engine: an Engine, or a URL to make one of.
            schema: of our tables, where the database has schemas.
            prefix: of their names, where it has none.
            create: let SQLite make a file that is not there.

        Raises:
            ConfigError: the URL cannot be read, or its driver is missing.
        """
        if isinstance(engine, URL):
            engine = engine.render_as_string(hide_password=False)
        self._owns_engine = isinstance(engine, str)
        self.engine = open_engine(engine, create=create) if isinstance(engine, str) else engine
        self.dialect = dialect_for(self.engine)
        self.namespace = self.dialect.namespace(schema, prefix)
        self.tables = our_tables(self.namespace)

    def close(self) -> None:
        """Give back the connections, if the engine is ours."""
        if self._owns_engine:
            self.engine.dispose()

    @contextmanager
    def errors_told(self) -> Iterator[None]:
        """Whatever the driver says becomes one clear line of ours."""
        try:
            yield
        except SQLAlchemyError as error:
            raise self.dialect.translate_error(error) from error

    def upgrade(self) -> str:
        """Make our tables, or bring them up to date. Gives their revision."""
        with self.errors_told(), self.dialect.write_transaction(self.engine) as connection:
            migrate.upgrade(connection, self.namespace)
        return migrate.head_revision()

    def upgrade_sql(self) -> str:
        """The SQL that `upgrade` runs on an empty database."""
        return migrate.upgrade_sql(self.engine.dialect.name, self.namespace)

    def downgrade(self, revision: str) -> None:
        """Take our tables back to an older revision, "base" for none; a scan makes the tables' views anew."""
        with self.errors_told():
            views = self._table_views()
            with self.dialect.write_transaction(self.engine) as connection:
                for name in views:
                    connection.execute(DropView(name, self.namespace.schema))
                migrate.downgrade(connection, self.namespace, revision)

    def uninstall(self) -> list[str]:
        """Drop everything of ours. Gives the names of what is gone."""
        with self.errors_told():
            views = self._table_views()
            with self.dialect.write_transaction(self.engine) as connection:
                return migrate.uninstall(connection, self.namespace, views)

    def installed_names(self) -> list[str]:
        """The names of our tables and views that stand in the database."""
        with self.errors_told(), self.engine.connect() as connection:
            return migrate.installed_names(connection, self.namespace, self._table_views())

    def suggest(self, names: Sequence[str] | None = None) -> list[Suggestion]:
        """Settings for the tables of these names (None: every table that has a key and a text)."""
        with self.errors_told(), self.engine.connect() as connection:
            chosen = names or list_tables(connection, self.namespace)
            found = [suggest(connection, inspect_table(connection, name)) for name in chosen]
        return [suggestion for suggestion in found if suggestion is not None]

    def require_schema(self) -> None:
        """Raise SchemaMissingError unless our tables are there and up to date."""
        with self.errors_told(), self.engine.connect() as connection:
            self.require_schema_on(connection)

    def require_schema_on(self, connection: Connection) -> None:
        """As `require_schema`, through this connection."""
        revision = migrate.current_revision(connection, self.namespace)
        if revision is None:
            raise SchemaMissingError(
                "the tables of db_dedup are not in this database: run `db-dedup upgrade`"
            )
        if revision != migrate.head_revision():
            raise SchemaMissingError(
                f"the tables of db_dedup are of revision {revision}, this program needs "
                f"{migrate.head_revision()}: run `db-dedup upgrade`"
            )

    def status(self) -> list[TableStatus]:
        """Where each watched table stands."""
        self.require_schema()
        with self.errors_told(), self.engine.connect() as connection:
            return status.read_status(connection, self.dialect, self.tables)

    def watched_names(self) -> list[str]:
        """The tables watched so far."""
        self.require_schema()
        with self.errors_told(), self.engine.connect() as connection:
            return [stored.watched.name for stored in watched_tables.list_tables(connection, self.tables)]

    def _table_views(self) -> list[str]:
        with self.engine.connect() as connection:
            if migrate.current_revision(connection, self.namespace) is None:
                return []
            stored = watched_tables.list_tables(connection, self.tables)
        return [s.view_name for s in stored if s.view_name]


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
