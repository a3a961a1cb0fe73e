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
from db_dedup.jobs.lock_waits import short_wait
from db_dedup.jobs.trigger_removal import detach, removable_triggers, remove_triggers, watched_targets
from db_dedup.records import TableStatus
from db_dedup.schema import migrate
from db_dedup.schema.locks import schema_lock
from db_dedup.schema.tables import our_tables
from db_dedup.schema.views import DropView
from db_dedup.store import watched_tables

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


class Database:
    """A user's database, and where our tables are: in it, or in a database of their own (the store).

    Attributes:
        engine: leads to our tables.
        source_engine: leads to the user's rows; the same object unless the store is apart.
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
        """Prepare to work in a database; nothing is asked of it yet.

        Args:
            engine: an Engine, or a URL to make one of; where there is a store, it is only read. Scans and all
                else but checks are synchronous: of an AsyncEngine the URL is taken, and an Engine with our
                own driver made of it, without what `create_async_engine` was given besides.
            schema: of our tables, where the database has schemas.
            prefix: of their names, where it has none.
            create: let SQLite make a file that is not there.
            store: the database of our tables, if not the user's; SQLite makes its file.

        Raises:
            ConfigError: the URL cannot be read, or its driver is missing.
            InvalidArgumentError: an argument is not what it should be.
        """
        require(schema, str, "schema", "a name")
        require(prefix, str, "prefix", "the beginning of a name")
        self._own_engines: list[Engine] = []
        self.source_engine = self._opened(engine, create)
        self.source_dialect = dialect_for(self.source_engine)
        is_apart = store is not None and store != engine
        self.engine = self._opened(store, create=True) if store and is_apart else self.source_engine
        self.dialect = dialect_for(self.engine)
        self.namespace = self.dialect.namespace(schema, prefix)
        self.tables = our_tables(self.namespace)

    def close(self) -> None:
        """Give back the connections of the engines that are ours."""
        for engine in self._own_engines:
            engine.dispose()

    @property
    def is_apart(self) -> bool:
        """Our tables are in another database than the user's rows."""
        return self.engine is not self.source_engine

    @contextmanager
    def reading(self, connection: Connection) -> Iterator[Connection]:
        """A connection to the user's rows: this one, which leads to our tables, unless they are apart."""
        if self.is_apart:
            with self.source_dialect.read_snapshot(self.source_engine) as other:
                yield other
        else:
            yield connection

    @contextmanager
    def errors_told(self) -> Iterator[None]:
        """Whatever the driver says becomes one clear line of ours."""
        try:
            yield
        except SQLAlchemyError as error:
            raise self._translated(error) from error
        except MemoryError as error:
            raise TooMuchAtOnceError("not enough memory") from error
        except UnicodeEncodeError:  # a lone surrogate, as of an argument in another encoding
            raise ConfigError("a name or a row key has characters that no database can take") from None

    def upgrade(self) -> str:
        """Make our tables, or bring them up to date. Gives their revision."""
        with (
            self.errors_told(),
            self.dialect.write_transaction(self.engine) as connection,
            # Another upgrade is waited for as long as it takes, the users of our tables are not.
            schema_lock(connection, self.namespace),
            self._short_wait(connection),
        ):
            migrate.upgrade(connection, self.namespace)
        return migrate.head_revision()

    def upgrade_sql(self) -> str:
        """The SQL that `upgrade` runs on an empty database."""
        return migrate.upgrade_sql(self.engine.dialect.name, self.namespace)

    def downgrade(self, revision: str) -> None:
        """Take our tables back to an older revision, "base" for none; a scan makes the tables' views anew."""
        require_text(revision, "revision")
        with self.errors_told():
            views = self._table_views()
            with self.dialect.write_transaction(self.engine) as connection:
                targets = watched_targets(connection, self.tables)
                removable_triggers(connection, self.dialect, self.namespace, targets)
                for target in targets:
                    detach(connection, self.dialect, self.tables, target)
                with self._short_wait(connection):
                    for name in views:
                        connection.execute(DropView(name, self.namespace.schema))
                    migrate.downgrade(connection, self.namespace, revision)

    def uninstall(self) -> list[str]:
        """Drop everything of ours, triggers first. Gives the `installed_names` that are gone.

        Raises:
            DatabaseError: a trigger would be left that writes into our queue; nothing has been dropped then.
        """
        with self.errors_told():
            views = self._table_views()
            with self.dialect.write_transaction(self.engine) as connection:
                targets = watched_targets(connection, self.tables)
                triggers = remove_triggers(connection, self.dialect, self.namespace, targets)
                with self._short_wait(connection):
                    relations = migrate.uninstall(connection, self.namespace, views)
                return sorted([*triggers, *self._with_schema(relations)])

    def installed_names(self) -> list[str]:
        """The names of our tables, views and triggers in the database: what `uninstall` drops; of tables and
        views with their schema, where the database has schemas.

        Raises:
            DatabaseError: a trigger would be left that writes into our queue, so that it would drop nothing.
        """
        with self.errors_told(), self.engine.connect() as connection:
            relations = migrate.installed_names(connection, self.namespace, self._table_views())
            targets = watched_targets(connection, self.tables)
            triggers = removable_triggers(connection, self.dialect, self.namespace, targets)
            return sorted([*triggers, *self._with_schema(relations)])

    def _with_schema(self, relations: Iterable[str]) -> list[str]:
        schema = f"{self.namespace.schema}." if self.namespace.schema else ""
        return [f"{schema}{name}" for name in relations]

    def is_installed(self, connection: Connection) -> bool:
        """Whether there are tables of ours, of whatever revision."""
        require(connection, Connection, "connection", "a Connection of SQLAlchemy")
        with self.errors_told():
            return self._revision(connection) is not None

    def _revision(self, connection: Connection) -> str | None:
        return migrate.current_revision(connection, self.namespace)

    def require_schema(self) -> None:
        """Raise SchemaMissingError unless our tables are there and up to date."""
        with self.errors_told(), self.engine.connect() as connection:
            self.require_schema_on(connection)

    def require_schema_on(self, connection: Connection) -> None:
        """As `require_schema`, through this connection."""
        require(connection, Connection, "connection", "a Connection of SQLAlchemy")
        with self.errors_told():
            revision = self._revision(connection)
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
            return read_health(connection, self.dialect, self.tables)

    def watched_names(self) -> list[str]:
        """The tables watched so far."""
        self.require_schema()
        with self.errors_told(), self.engine.connect() as connection:
            return [stored.watched.name for stored in watched_tables.list_tables(connection, self.tables)]

    def _opened(self, given: Engine | AsyncEngine | URL | str, create: bool) -> Engine:
        if isinstance(given, Engine):
            return given
        if is_async_engine(given):
            given = given.url.set(drivername=given.url.get_backend_name())
        if isinstance(given, URL):
            given = given.render_as_string(hide_password=False)
        require(given, str, "engine", "an Engine of SQLAlchemy or a URL")
        self._own_engines.append(open_engine(str(given), create=create))
        return self._own_engines[-1]

    def _translated(self, error: SQLAlchemyError) -> DedupError:
        told = self._dialect_of(error).translate_error(error)
        folder = self.dialect.full_folder(self.engine) if isinstance(told, DiskFullError) else None
        if folder is None:
            return told
        whose = " (our tables are in the store)" if self.is_apart else ""
        return DiskFullError(f"the disk is full: there is no room in {folder}{whose}")

    def _dialect_of(self, error: SQLAlchemyError) -> Dialect:
        """Whose words these are: the driver that raised them tells."""
        cause = getattr(error, "orig", None)
        is_of_source = isinstance(cause, self.source_engine.dialect.loaded_dbapi.Error)
        return self.source_dialect if is_of_source else self.dialect

    def _short_wait(self, connection: Connection) -> AbstractContextManager[None]:
        return short_wait(connection, self.dialect, "one of our tables or views")

    def _table_views(self) -> list[str]:
        with self.engine.connect() as connection:
            if not migrate.is_installed(connection, self.namespace) or not self.is_installed(connection):
                return []
            stored = watched_tables.list_tables(connection, self.tables)
        return [s.view_name for s in stored if s.view_name]
