"""SQLite: one file, one writer at a time."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from sqlalchemy import URL, ColumnElement, Connection, Engine, Executable, FromClause, Table
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.base import Capabilities, Dialect, WriteCost, WriteCosts
from db_dedup.dialects.batches import Rows
from db_dedup.dialects.grants import Grants
from db_dedup.dialects.sqlite import bulk, changes, errors, keys, sessions, triggers
from db_dedup.dialects.triggers import FoundTrigger, QueueTrigger, TriggerPlan, TriggerTarget
from db_dedup.errors import ConfigError, DedupError
from db_dedup.records import SourceColumn
from db_dedup.schema.names import Namespace


class SQLiteDialect(Dialect):
    """SQLite 3.31 and later."""

    capabilities: ClassVar = Capabilities(
        has_schemas=False,
        max_name_length=None,
        name_limit_counts_bytes=False,
        snapshot_beside_writes=False,
        hamming_in_sql=False,
        one_writer=True,
    )
    default_driver: ClassVar = "pysqlite"
    write_costs: ClassVar = WriteCosts(WriteCost(268, 25.2), WriteCost(27, 1.7), WriteCost(83, 5.9))

    def engine_url(self, url: URL, create: bool) -> URL:
        """The same; a file must be there unless `create`."""
        return sessions.existing_file(url, create)

    def engine_options(self) -> Mapping[str, Any]:
        """Wait for another writer rather than fail."""
        return sessions.OPTIONS

    def prepare_engine(self, engine: Engine) -> None:
        """Foreign keys on, broken text readable, transactions begun by us alone."""
        sessions.prepare_engine(engine)

    def read_snapshot(self, engine: Engine) -> AbstractContextManager[Connection]:
        """A plain transaction; with a rollback journal it keeps every writer out while it is open."""
        return sessions.read_snapshot(engine)

    def write_transaction(self, engine: Engine) -> AbstractContextManager[Connection]:
        """BEGIN IMMEDIATE: two writers wait for each other instead of failing at their first write."""
        return sessions.write_transaction(engine)

    def reads_beside_writes(self, connection: Connection) -> bool:
        """Only in a file that is in WAL mode."""
        return sessions.is_in_wal_mode(connection)

    def is_shared(self, engine: Engine) -> bool:
        """A database in memory is one connection's own."""
        return not sessions.is_in_memory(engine.url)

    def key_value_text(self, column: SourceColumn, value: object) -> str | None:
        """As SQLAlchemy and the driver store it."""
        return keys.key_value_text(column, value)

    def key_text(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
        """Integers and texts as stored; what has another storage class than it seems to have says so."""
        return keys.key_text(column, value)

    def key_equals(
        self, column: SourceColumn, value: ColumnElement[Any], text: ColumnElement[str]
    ) -> ColumnElement[bool]:
        """Our text is turned into the value that it was made from, of the same storage class."""
        return keys.key_equals(column, value, text)

    def is_found_by_text(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[bool]:
        """Not each real, and in UTF-16 not each blob."""
        return keys.is_found_by_text(column, value)

    def json_array(self, texts: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
        """With json_quote."""
        return keys.json_array(texts)

    def json_item(self, array: ColumnElement[str], index: int) -> ColumnElement[str]:
        """With json_extract."""
        return keys.json_item(array, index)

    def key_list(self, row_keys: Sequence[str]) -> FromClause:
        """With json_each."""
        return keys.key_list(row_keys)

    def readable(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[Any]:  # noqa: ARG002
        """As stored."""
        return value

    def depends_on_session(self, column: SourceColumn, *, is_key: bool) -> bool:  # noqa: ARG002
        """A text that is no valid UTF-8 may be in any of them."""
        return True

    def settled(self, connection: Connection) -> AbstractContextManager[None]:
        """Broken text can be read."""
        return sessions.broken_text_readable(connection)

    def hamming(self, stored: ColumnElement[Any], fingerprint: ColumnElement[int]) -> None:  # noqa: ARG002
        """SQLite has neither XOR nor a count of bits."""
        return

    def bulk_insert(self, connection: Connection, table: Table, columns: Sequence[str], rows: Rows) -> None:
        """One prepared statement, many rows."""
        bulk.bulk_insert(connection, table, columns, rows)

    def bulk_update(
        self, connection: Connection, table: Table, key: str, columns: Sequence[str], rows: Rows
    ) -> None:
        """One prepared statement, many rows."""
        bulk.bulk_update(connection, table, key, columns, rows)

    def bulk_delete(self, connection: Connection, table: Table, key: str, ids: Iterable[int]) -> None:
        """One prepared statement, many rows."""
        bulk.bulk_delete(connection, table, key, ids)

    def refresh_statistics(self, engine: Engine, table: Table) -> None:
        """ANALYZE of that table alone."""
        bulk.refresh_statistics(engine, table)

    def take_changes(
        self, connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
    ) -> list[tuple[str, str]]:
        """By rowid: in a transaction that writes there is no other."""
        return changes.take_changes(connection, queue, table_id, limit, row_key)

    def trigger_names(self, target: TriggerTarget) -> list[str]:
        """The three triggers."""
        return triggers.trigger_names(target)

    def create_triggers(self, plan: TriggerPlan) -> list[str]:
        """Three triggers; each is dropped before it is made."""
        return triggers.create_triggers(self, plan)

    def drop_triggers(self, target: TriggerTarget) -> list[str]:
        """By name."""
        return triggers.drop_triggers(target)

    def describe_triggers(self, connection: Connection, target: TriggerTarget) -> list[FoundTrigger]:
        """From the catalogue table, which keeps the statements."""
        return triggers.describe_triggers(connection, target)

    def queue_triggers(self, connection: Connection, namespace: Namespace) -> list[QueueTrigger]:
        """By what the triggers do."""
        return triggers.queue_triggers(connection, namespace)

    def turn(
        self,
        connection: Connection,
        lock: Executable,
        queue: Table,  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """An UPDATE takes the one right to write, so that nobody else commits."""
        return sessions.turn(connection, lock)

    def grants(self, connection: Connection, wanted: Grants) -> str:  # noqa: ARG002
        """Refused."""
        raise ConfigError(
            "SQLite has no accounts, so there is nothing to grant: whoever may write to the file and its "
            "folder can run every command, and whoever may read the file can read the views"
        )

    def short_lock_wait(self, connection: Connection) -> AbstractContextManager[None]:
        """The busy timeout of the session is short enough."""
        return triggers.short_lock_wait(connection)

    def full_folder(self, engine: Engine) -> str | None:
        """The folder of the file, or that of SQLite's temporary files: whichever has less room."""
        return sessions.fuller_folder(engine.url)

    def translate_error(self, error: SQLAlchemyError) -> DedupError:
        """By SQLite's result code."""
        return errors.translate_error(error)
