"""A user's database with our tables in it, or with our tables in a database of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.app.arguments import is_async_engine, require, require_text
from db_dedup.app.health import read_health
from db_dedup.dialects import Dialect, dialect_for, open_engine
from db_dedup.errors import ConfigError, DedupError, DiskFullError, SchemaMissingError, TooMuchAtOnceError
from db_dedup.jobs.objects.lock_waits import short_wait
from db_dedup.jobs.objects.trigger_removal import (
    detach,
    lock_watched,
    removable_triggers,
    remove_triggers,
    watched_targets,
)
from db_dedup.records import TableStatus
from db_dedup.schema import migrate
from db_dedup.schema.revisions import head_revision
from db_dedup.schema.tables import our_tables
from db_dedup.schema.views import DropView
from db_dedup.store import watched_tables
from db_dedup.translation import Phrase

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


class Database:
    """A user's database, and where our tables are: in it, or in a database of their own (the store).

    Attributes:
        engine: of our tables.
        source_engine: of the user's rows; the same object unless our tables have a database of their own.
    """

    def __init__(
        self,
        engine: Engine | AsyncEngine | URL | str,
        schema: str = "dedup",
        prefix: str = "dedup_",
        *,
        create: bool = False,
        store: Engine | AsyncEngine | URL | str | None = None,
    ) -> None:
        """Prepare to work in a database, without a query.

        Args:
            engine: an Engine, or a URL to make one of; with a store this database is only read. Of an
                AsyncEngine only the URL is used, to make an Engine with our own driver: all work except
                checks is synchronous. Other arguments of `create_async_engine` are lost.
            schema: of our tables, if the database has schemas.
            prefix: of the names of our tables, if it has none.
            create: let SQLite create a file that does not exist.
            store: the database of our tables, if it is not the user's; SQLite creates its file.

        Raises:
            ConfigError: the URL cannot be read, or its driver is missing.
            InvalidArgumentError: an argument is not what it should be.
        """
        require(schema, str, "schema", Phrase("a name"))
        require(prefix, str, "prefix", Phrase("the beginning of a name"))
        self._own_engines: list[Engine] = []
        self.source_engine = self._opened(engine, create)
        self.source_dialect = dialect_for(self.source_engine)
        self.engine = self.source_engine
        if store is not None and store != engine:
            self.engine = self._opened(store, create=True)
        self.dialect = dialect_for(self.engine)
        self.namespace = self.dialect.namespace(schema, prefix)
        self.tables = our_tables(self.namespace)

    def close(self) -> None:
        """Close the connections of the engines that were made from a URL."""
        for engine in self._own_engines:
            engine.dispose()

    @property
    def is_apart(self) -> bool:
        """Whether our tables are in another database than the user's rows."""
        return self.engine is not self.source_engine

    @contextmanager
    def reading(self, connection: Connection) -> Iterator[Connection]:
        """Yield a connection to the user's rows, for a connection to our tables.

        It is the same connection, unless our tables are in another database.
        """
        if self.is_apart:
            with self.source_dialect.read_snapshot(self.source_engine) as other:
                yield other
        else:
            yield connection

    @contextmanager
    def translate_driver_errors(self) -> Iterator[None]:
        """Re-raise driver errors as DedupError."""
        try:
            yield
        except SQLAlchemyError as error:
            raise self._translated(error) from error
        except MemoryError as error:
            raise TooMuchAtOnceError(Phrase("not enough memory")) from error
        except UnicodeEncodeError:  # a lone surrogate, as of an argument in another encoding
            raise ConfigError("a name or a row key has characters that no database can take") from None

    def upgrade(self) -> str:
        """Make our tables, or update them; return their revision."""
        with (
            self.translate_driver_errors(),
            self.dialect.write_transaction(self.engine) as connection,
            # This waits for another upgrade as long as it takes, but only shortly for users of our tables.
            self.dialect.schema_lock(connection, self.namespace),
            self._short_wait(connection),
        ):
            migrate.upgrade(connection, self.namespace)
        return head_revision()

    def upgrade_sql(self) -> str:
        """Return the SQL that `upgrade` runs on an empty database."""
        return migrate.upgrade_sql(self.engine.dialect.name, self.namespace)

    def downgrade(self, revision: str) -> None:
        """Change our tables back to an older revision, "base" for none; a scan makes the views again."""
        require_text(revision, "revision")
        with self.translate_driver_errors():
            views = self._table_views()
            with (
                self.dialect.write_transaction(self.engine) as connection,
                self.dialect.schema_lock(connection, self.namespace),
            ):
                targets = watched_targets(connection, self.tables)
                removable_triggers(connection, self.dialect, self.namespace, targets)
                lock_watched(connection, self.dialect, self.tables, [t.table_id for t in targets])
                for target in targets:
                    detach(connection, self.dialect, self.tables, target)
                with self._short_wait(connection):
                    for name in views:
                        connection.execute(DropView(name, self.namespace.schema))
                    migrate.downgrade(connection, self.namespace, revision)

    def uninstall(self) -> list[str]:
        """Drop all our objects, triggers first; return the names of `installed_names` that were dropped.

        Raises:
            DatabaseError: a trigger that writes into our queue would remain; nothing has been dropped then.
        """
        with self.translate_driver_errors():
            views = self._table_views()
            with self.dialect.write_transaction(self.engine) as connection:
                # Where each DROP is committed, a worker would else make triggers again in between.
                with self.dialect.schema_lock(connection, self.namespace):
                    targets = watched_targets(connection, self.tables)
                    triggers = remove_triggers(connection, self.dialect, self.tables, targets)
                    with self._short_wait(connection):
                        relations = migrate.uninstall(connection, self.namespace, views)
                return sorted([*triggers, *self._with_schema(relations)])

    def installed_names(self) -> list[str]:
        """Return the names of all objects that `uninstall` drops: our tables, views and triggers.

        The names of tables and views include their schema, if the database has schemas.

        Raises:
            DatabaseError: a trigger that writes into our queue would remain, so `uninstall` would drop
                nothing.
        """
        with self.translate_driver_errors(), self.engine.connect() as connection:
            relations = migrate.installed_names(connection, self.namespace, self._table_views())
            targets = watched_targets(connection, self.tables)
            triggers = removable_triggers(connection, self.dialect, self.namespace, targets)
            return sorted([*triggers, *self._with_schema(relations)])

    def _with_schema(self, relations: Iterable[str]) -> list[str]:
        schema = f"{self.namespace.schema}." if self.namespace.schema else ""
        return [f"{schema}{name}" for name in relations]

    def is_installed(self, connection: Connection) -> bool:
        """Return whether the database has our tables, of any revision."""
        require(connection, Connection, "connection", Phrase("a Connection of SQLAlchemy"))
        with self.translate_driver_errors():
            return self._revision(connection) is not None

    def _revision(self, connection: Connection) -> str | None:
        return migrate.current_revision(connection, self.namespace)

    def require_schema(self) -> None:
        """Raise SchemaMissingError unless our tables exist and have the newest revision."""
        with self.translate_driver_errors(), self.engine.connect() as connection:
            self.require_schema_on(connection)

    def require_schema_on(self, connection: Connection) -> None:
        """Do the same as `require_schema` through this connection."""
        require(connection, Connection, "connection", Phrase("a Connection of SQLAlchemy"))
        with self.translate_driver_errors():
            revision = self._revision(connection)
        if revision is None:
            raise SchemaMissingError(
                "the tables of db_dedup are not in this database: run `db-dedup upgrade`"
            )
        if revision != head_revision():
            raise SchemaMissingError(
                "the tables of db_dedup are of revision {revision}, this program needs {needed}: "
                "run `db-dedup upgrade`",
                revision=revision,
                needed=head_revision(),
            )

    def status(self) -> list[TableStatus]:
        """Return the state of each watched table."""
        self.require_schema()
        with self.translate_driver_errors(), self.engine.connect() as connection:
            return read_health(connection, self.dialect, self.tables)

    def watched_names(self) -> list[str]:
        """Return the names of the watched tables."""
        self.require_schema()
        with self.translate_driver_errors(), self.engine.connect() as connection:
            return [stored.watched.name for stored in watched_tables.list_tables(connection, self.tables)]

    def _opened(self, given: Engine | AsyncEngine | URL | str, create: bool) -> Engine:
        if isinstance(given, Engine):
            return given
        if is_async_engine(given):
            given = given.url.set(drivername=given.url.get_backend_name())
        if isinstance(given, URL):
            given = given.render_as_string(hide_password=False)
        require(given, str, "engine", Phrase("an Engine of SQLAlchemy or a URL"))
        self._own_engines.append(open_engine(str(given), create=create))
        return self._own_engines[-1]

    def _translated(self, error: SQLAlchemyError) -> DedupError:
        translated = self._dialect_of(error).translate_error(error)
        folder = self.dialect.full_folder(self.engine) if isinstance(translated, DiskFullError) else None
        if folder is None:
            return translated
        if self.is_apart:
            return DiskFullError(
                "the disk is full: there is no room in {folder} (our tables are in the store)", folder=folder
            )
        return DiskFullError("the disk is full: there is no room in {folder}", folder=folder)

    def _dialect_of(self, error: SQLAlchemyError) -> Dialect:
        """Return the dialect of the driver that raised the error."""
        cause = getattr(error, "orig", None)
        is_of_source = isinstance(cause, self.source_engine.dialect.loaded_dbapi.Error)
        return self.source_dialect if is_of_source else self.dialect

    def _short_wait(self, connection: Connection) -> AbstractContextManager[None]:
        return short_wait(connection, self.dialect, Phrase("one of our tables or views"))

    def _table_views(self) -> list[str]:
        with self.engine.connect() as connection:
            if not migrate.is_installed(connection, self.namespace) or not self.is_installed(connection):
                return []
            if str(self.tables.watched_table.name) in migrate.missing_tables(connection, self.namespace):
                return []  # an `uninstall` broke off, which drops the views before this table
            stored = watched_tables.list_tables(connection, self.tables)
        return [s.view_name for s in stored if s.view_name]
