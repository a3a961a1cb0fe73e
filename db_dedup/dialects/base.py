"""What every database must be able to do for us, and what it can do beyond that."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    Executable,
    FromClause,
    Select,
    Table,
    and_,
    bindparam,
    inspect,
)
from sqlalchemy.engine import Dialect as SQLDialect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.compiler import DDLCompiler

from db_dedup.dialects.batches import Rows
from db_dedup.dialects.capabilities import Capabilities, ColumnTypes, WriteCosts
from db_dedup.dialects.catalogue import Catalogue
from db_dedup.dialects.grants import Grants
from db_dedup.dialects.jdbc import JdbcAccess
from db_dedup.dialects.keys import key_value_text, refuse_unusable_key
from db_dedup.dialects.leadership import LeaderLock
from db_dedup.dialects.triggers import FoundTrigger, QueueTrigger, TriggerPlan, TriggerTarget
from db_dedup.errors import ConfigError, DedupError
from db_dedup.records import Family, SourceColumn
from db_dedup.records.names import Namespace


class Dialect(Catalogue, ABC):
    """One kind of database. Stateless; `db_dedup.dialects.dialect_for` finds the right one.

    A dialect sets the data first, then names the functions of its folder that do the work.
    """

    capabilities: ClassVar[Capabilities]
    column_types: ClassVar[ColumnTypes]
    default_driver: ClassVar[str]
    engine_options: ClassVar[Mapping[str, Any]]
    """Arguments of `create_engine`."""
    families: ClassVar[Mapping[str, Family]] = {}
    """Name of a type, in capitals -> its family, where SQLAlchemy's class of the type does not say it."""
    write_costs: ClassVar[WriteCosts]
    extra: ClassVar[str | None] = None
    """The optional dependency that brings the driver."""
    unusable_key_types: ClassVar[tuple[str, ...]] = ()
    """Words in the names of types whose values can be written as several texts; floats are always refused."""

    def namespace(self, schema: str, prefix: str) -> Namespace:
        """Return where our tables live: in `schema`, or behind `prefix` where there are no schemas."""
        if self.capabilities.has_schemas:
            return Namespace(schema, "")
        return Namespace(None, prefix)

    # Sessions

    @abstractmethod
    def engine_url(self, url: URL, create: bool) -> URL:
        """Return `url` completed by what our sessions need.

        Raises:
            DatabaseUnavailableError: it names a file that is not there, and `create` is False.
        """

    @abstractmethod
    def prepare_engine(self, engine: Engine) -> None:
        """Make every new session of an engine of ours use our settings."""

    @abstractmethod
    def read_snapshot(
        self, engine: Engine, of: FromClause | None = None
    ) -> AbstractContextManager[Connection]:
        """Return a read-only transaction that sees the database as it is at its first read, also if that
        waits for an ALTER TABLE of the user's table `of`."""

    @contextmanager
    def short_reads(self, engine: Engine) -> Iterator[Connection]:
        """Open a connection for reading; two of its statements may see different states of the database."""
        with engine.connect() as connection, self.settled(connection):
            yield connection

    @abstractmethod
    def write_transaction(self, engine: Engine) -> AbstractContextManager[Connection]:
        """Return a transaction for our writes: committed at the end, rolled back by an exception."""

    def reads_beside_writes(self, connection: Connection) -> bool:  # noqa: ARG002
        """Return whether a snapshot may stay open while we write, in this very database."""
        return self.capabilities.snapshot_beside_writes

    def is_shared(self, engine: Engine) -> bool:  # noqa: ARG002
        """Return whether others can reach this database, too."""
        return True

    @abstractmethod
    def lock_row(
        self, connection: Connection, lock: Executable, queue: Table
    ) -> AbstractContextManager[None]:
        """Lock a row of ours until the caller's transaction ends; within, reads see what is committed by now.

        Args:
            connection: in a transaction of the caller's, which is neither committed nor rolled back.
            lock: the statement that locks; it fails after some seconds.
            queue: our table of changes; those that are not committed are never waited for.

        Raises:
            ConfigError: each statement is committed by itself, so that no lock lasts; or the transaction
                cannot see what was committed after it began.
        """

    # Our schema

    @abstractmethod
    def schema_lock(self, connection: Connection, namespace: Namespace) -> AbstractContextManager[None]:
        """Wait for and hold the right to change our schema, until the commit where DDL is transactional.

        Raises:
            DatabaseUnavailableError: another process holds it for too long.
        """

    @abstractmethod
    def leader_lock(self, engine: Engine, namespace: Namespace) -> LeaderLock:
        """Return the lock that one process of those that use our tables can hold, as their leader."""

    def create_schema(self, name: str, compiler: DDLCompiler) -> str:
        """Return the statement that makes our schema unless it exists; only where dialects have schemas."""
        raise NotImplementedError

    def drop_schema(self, name: str, compiler: DDLCompiler) -> str:
        """Return the statement that drops our schema if we made it and it is empty; as `create_schema`."""
        raise NotImplementedError

    def exact_text(self, length: int | None, dialect: SQLDialect) -> str:  # noqa: ARG002
        """Return the type of a text that compares by its characters: binary, and blanks at its end count.

        Args:
            length: characters; None for any number.
            dialect: SQLAlchemy's, connected or not.
        """
        return f"VARCHAR({length})" if length else "TEXT"

    # Row keys and values

    def row_key(self, columns: Sequence[SourceColumn], alias: FromClause) -> ColumnElement[str]:
        """Return a row's key as text: the plain value of one column, a JSON array of strings of several.

        It is the same whatever the session's settings are, and NULL as soon as one column is.

        Raises:
            ConfigError: a column whose values have no exact text, such as a float.
        """
        for column in columns:
            refuse_unusable_key(column, self.unusable_key_types)
        texts = [self.key_text(column, alias.c[column.name]) for column in columns]
        return texts[0] if len(texts) == 1 else self.json_array(texts)

    def key_matches(
        self, columns: Sequence[SourceColumn], alias: FromClause, row_key: ColumnElement[str]
    ) -> ColumnElement[bool]:
        """Return whether a row of the user's has exactly this key, however their collation compares.

        Our side is converted to the type of each column, so that their index serves.
        """
        parts = [row_key]
        if len(columns) > 1:
            parts = [self.json_item(row_key, i) for i in range(len(columns))]
        pairs = zip(columns, parts, strict=True)
        return and_(*(self.key_equals(column, alias.c[column.name], part) for column, part in pairs))

    def key_value_text(self, column: SourceColumn, value: object) -> str | None:
        """Return one key column for a value of Python's; None where the column takes none of its type."""
        return key_value_text(column, value)

    @abstractmethod
    def key_text(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
        """Return one key column as text."""

    @abstractmethod
    def key_equals(
        self, column: SourceColumn, value: ColumnElement[Any], text: ColumnElement[str]
    ) -> ColumnElement[bool]:
        """Return whether a key column has the value that `key_text` wrote as `text`, not one equal to it."""

    def is_found_by_text(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[bool] | None:
        """Return whether a value of a key column is found by its text; None where every value of it is.

        Only values of types that we do not know are compared.
        """
        if column.family is not Family.OTHER:
            return None
        return self.key_equals(column, value, self.key_text(column, value))

    def bytewise(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        """Return a row key in a form that the database compares and sorts byte by byte."""
        return text

    @abstractmethod
    def json_array(self, texts: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
        """Return a JSON array of strings, without spaces; NULL if one of them is."""

    @abstractmethod
    def json_item(self, array: ColumnElement[str], index: int) -> ColumnElement[str]:
        """Return one string of a JSON array, counted from 0."""

    @abstractmethod
    def key_list(self, row_keys: Sequence[str] = ()) -> FromClause:
        """Return row keys as a table with one column, `row_key`: these, or those of parameter `KEY_LIST`."""

    @abstractmethod
    def readable(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[Any]:
        """Return a column in a form in which the driver can fetch each of its values."""

    def jdbc(self, engine: Engine) -> JdbcAccess:  # noqa: ARG002
        """Return how other machines read through JDBC what our sessions read, tables without a schema too.

        Raises:
            ConfigError: they cannot.
        """
        raise ConfigError("no JDBC driver is known for this database: scan it with the embedded engine")

    def depends_on_session(self, column: SourceColumn, *, is_key: bool) -> bool:  # noqa: ARG002
        """Return whether what is read of a column depends on the session's settings, outside of `settled`."""
        return False

    def settled(self, connection: Connection) -> AbstractContextManager[None]:  # noqa: ARG002
        """Within it, every value is written as in our own sessions, also in a session of the caller's."""
        return nullcontext()

    def is_autocommit(self, connection: Connection) -> bool:  # noqa: ARG002
        """Return whether each statement is a transaction of its own, so that there are no savepoints."""
        return False

    def as_stored(self, connection: Connection, given: Sequence[tuple[SourceColumn, object]]) -> list[object]:  # noqa: ARG002
        """Return values, which are not stored, as they would be read; what its column cannot take stays."""
        return [value for _, value in given]

    # Our tables

    @abstractmethod
    def hamming(
        self, stored: ColumnElement[Any], fingerprint: ColumnElement[int]
    ) -> ColumnElement[int] | None:
        """Return in how many bits two fingerprints, as stored, differ; None if SQL cannot count them."""

    def is_one_of(self, column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
        """Return whether a column of ours has one of the values of a parameter, which is a list."""
        return column.in_(bindparam(parameter, expanding=True))

    def each_of(self, query: Select[Any], column: ColumnElement[Any], parameter: str) -> Select[Any]:
        """Return the query for those rows alone that have one of the values of a list parameter in a column.

        For a column of whole numbers that comes after those of the query's conditions in an index, so that
        each value can be looked up there. The values are distinct `int`s.
        """
        return query.where(self.is_one_of(column, parameter))

    def rows_as_json(self, query: Select[Any], row_id: ColumnElement[int]) -> Select[Any] | None:  # noqa: ARG002
        """Return a query that joins the rows of a query for numbers: a text for each range of ids, in order.

        Return None if the driver decodes values fast, so that joined rows would save nothing. Each row of the
        result is the first and the last id, the number of rows, and these as JSON arrays with commas in
        between, in any order. The server cuts a text that is too long for it. `row_id` is a column of
        positive ids.
        """
        return None

    def in_one_process(self, query: Select[Any]) -> Select[Any]:
        """Return the same query, run by one process only: starting others takes longer than a look-up."""
        return query

    @abstractmethod
    def bulk_insert(self, connection: Connection, table: Table, columns: Sequence[str], rows: Rows) -> None:
        """Insert rows, inside the connection's transaction."""

    @abstractmethod
    def bulk_update(
        self, connection: Connection, table: Table, key: str, columns: Sequence[str], rows: Rows
    ) -> None:
        """Update by key; each row is the key's value, then those of `columns`."""

    @abstractmethod
    def bulk_delete(self, connection: Connection, table: Table, key: str, ids: Iterable[int]) -> None:
        """Delete by key."""

    @abstractmethod
    def bulk_delete_keys(
        self, connection: Connection, table: Table, columns: Sequence[str], keys: Rows
    ) -> None:
        """Delete by the values of all columns of the primary key; a row that is not there is no fault."""

    def drop_old_versions(self, connection: Connection, table: Table) -> None:
        """Free the space of rows that were updated, in the connection's transaction; nobody else may read.

        Only where an UPDATE leaves the former version of a row behind.
        """

    @abstractmethod
    def refresh_statistics(self, engine: Engine, table: Table) -> None:
        """Tell the planner what one of our tables holds now; in a transaction of its own."""

    def view_definition(self, connection: Connection, name: str, schema: str | None) -> str:
        """Return a view's definition by the catalogue, in a form that no setting of the session changes."""
        return str(inspect(connection).get_view_definition(name, schema))

    @abstractmethod
    def take_changes(
        self, connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
    ) -> list[tuple[str, str]]:
        """Delete the oldest changes of a table and give (row key, operation) of each, the oldest first.

        Those that another transaction has just written or holds are passed over, never waited for.

        Args:
            connection: in a transaction at READ COMMITTED.
            queue: our table of changes.
            table_id: the watched table's number.
            limit: how many at most.
            row_key: only of this row; None for all.
        """

    # Triggers on the user's tables

    @abstractmethod
    def trigger_names(self, target: TriggerTarget) -> list[str]:
        """Return what `attach` makes: our triggers, and their function where there is one."""

    @abstractmethod
    def create_triggers(self, plan: TriggerPlan) -> list[str]:
        """Return the statements that make our triggers on a table, in place of any under their names.

        Raises:
            ConfigError: a key column whose values have no exact text.
        """

    @abstractmethod
    def drop_triggers(self, target: TriggerTarget) -> list[str]:
        """Return the statements that drop our triggers; none of these, nor the table, needs to exist."""

    @abstractmethod
    def describe_triggers(self, connection: Connection, target: TriggerTarget) -> list[FoundTrigger]:
        """Return our triggers that exist, as the catalogue shows them now."""

    def missing_right_to_drop(self, connection: Connection, target: TriggerTarget) -> str | None:  # noqa: ARG002
        """Return which right to drop our triggers on a table this account does not have.

        Only where a failed attempt cannot be rolled back; None elsewhere.
        """
        return None

    def fault_of_triggers(self, connection: Connection, target: TriggerTarget) -> str | None:  # noqa: ARG002
        """Return why writes to a table would fail with our triggers on it; None where they would not."""
        return None

    @abstractmethod
    def queue_triggers(self, connection: Connection, namespace: Namespace) -> list[QueueTrigger]:
        """Return every trigger in the database that writes into our queue and that this account can see."""

    def script(self, statements: Sequence[str]) -> str:
        """Return the statements as the database's own command-line client takes them."""
        return "".join(f"{statement};\n" for statement in statements)

    @abstractmethod
    def grants(self, connection: Connection, wanted: Grants) -> str:
        """Return the statements that give each account the least rights that its commands need, as a script.

        Raises:
            ConfigError: the database has no accounts.
        """

    @abstractmethod
    def short_lock_wait(self, connection: Connection) -> AbstractContextManager[None]:
        """Within it, a statement that waits for a busy table fails after some seconds."""

    # Errors

    def full_folder(self, engine: Engine) -> str | None:  # noqa: ARG002
        """Return the folder whose disk is full; None where only the server knows it."""
        return None

    @abstractmethod
    def translate_error(self, error: SQLAlchemyError) -> DedupError:
        """Return the error in one clear line, without texts of rows and without passwords."""
