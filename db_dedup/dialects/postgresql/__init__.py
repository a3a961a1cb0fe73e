"""PostgreSQL."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    Executable,
    FromClause,
    Integer,
    Select,
    String,
    Table,
    Text,
    any_,
    cast,
    func,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import BIT
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.base import Capabilities, Dialect, WriteCost, WriteCosts
from db_dedup.dialects.batches import Rows
from db_dedup.dialects.grants import Grants
from db_dedup.dialects.postgresql import (
    bulk,
    changes,
    errors,
    grants,
    keys,
    partitions,
    sessions,
    triggers,
    values,
)
from db_dedup.dialects.postgresql.arrays import array_parameter
from db_dedup.dialects.triggers import FoundTrigger, QueueTrigger, TriggerPlan, TriggerTarget
from db_dedup.errors import DedupError
from db_dedup.records import Family, SourceColumn
from db_dedup.schema.names import Namespace


class PostgreSQLDialect(Dialect):
    """PostgreSQL 14 and later."""

    capabilities: ClassVar = Capabilities(
        has_schemas=True,
        max_name_length=63,
        name_limit_counts_bytes=True,
        snapshot_beside_writes=True,
        hamming_in_sql=True,
    )
    default_driver: ClassVar = "psycopg"
    write_costs: ClassVar = WriteCosts(WriteCost(550, 30.4), WriteCost(84, 2.1), WriteCost(126, 7.4))
    extra: ClassVar = "postgresql"
    unusable_key_types: ClassVar = ("MONEY", "INTERVAL")

    def engine_url(self, url: URL, create: bool) -> URL:  # noqa: ARG002
        """The same; options that take no text are refused."""
        return sessions.checked_url(url)

    def engine_options(self) -> Mapping[str, Any]:
        """Notice a connection that died while it lay in the pool."""
        return sessions.OPTIONS

    def prepare_engine(self, engine: Engine) -> None:
        """Time zone UTC, ISO dates and the like."""
        sessions.prepare_engine(engine)

    def read_snapshot(self, engine: Engine) -> AbstractContextManager[Connection]:
        """REPEATABLE READ, READ ONLY."""
        return sessions.read_snapshot(engine)

    def write_transaction(self, engine: Engine) -> AbstractContextManager[Connection]:
        """READ COMMITTED."""
        return sessions.write_transaction(engine)

    def key_text(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
        """Dates in ISO form, with a zone in UTC; bytes in lower-case hexadecimal digits."""
        return keys.key_text(column, value)

    def key_equals(
        self, column: SourceColumn, value: ColumnElement[Any], text: ColumnElement[str]
    ) -> ColumnElement[bool]:
        """Our text is cast to the column's type."""
        return keys.key_equals(column, value, text)

    def is_found_by_text(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[bool] | None:
        """Asked of types that we do not know."""
        if column.family is not Family.OTHER:
            return None
        return keys.key_equals(column, value, keys.key_text(column, value))

    def json_array(self, texts: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
        """With to_json."""
        return keys.json_array(texts)

    def json_item(self, array: ColumnElement[str], index: int) -> ColumnElement[str]:
        """With json_array_element_text."""
        return keys.json_item(array, index)

    def key_list(self, row_keys: Sequence[str]) -> FromClause:
        """With unnest."""
        return keys.key_list(row_keys)

    def readable(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[Any]:
        """Numbers, booleans and bytes as they are, all else as text."""
        return keys.readable(column, value)

    def partition_names(self, connection: Connection) -> set[str]:
        """From the catalogue."""
        return partitions.partition_names(connection)

    def depends_on_session(self, column: SourceColumn, *, is_key: bool) -> bool:  # noqa: ARG002
        """A range, an array or a composite may hold a date or a float."""
        return keys.depends_on_session(column)

    def settled(self, connection: Connection) -> AbstractContextManager[None]:
        """Time zone, styles and digits as in our own sessions."""
        return sessions.settled(connection)

    def as_stored(self, connection: Connection, given: Sequence[tuple[SourceColumn, object]]) -> list[object]:
        """Through the database where only that knows the type."""
        return values.as_stored(connection, given)

    def column_types(self, connection: Connection, table: str, schema: str | None) -> Mapping[str, str]:
        """From the catalogue, with their schemas."""
        return values.column_types(connection, table, schema)

    def hamming(self, stored: ColumnElement[Any], fingerprint: ColumnElement[int]) -> ColumnElement[int]:
        """With bit_count."""
        different = type_coerce(stored, BigInteger).op("#")(fingerprint)
        return func.bit_count(cast(different, BIT(64)), type_=Integer)

    def is_one_of(self, column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
        """As one array: hundreds of parameters take the driver longer than a look-up."""
        kind = Text() if isinstance(column.type, String) else column.type  # the column brings its collation
        return column == any_(array_parameter(parameter, kind))

    def in_one_process(self, query: Select[Any]) -> Select[Any]:
        """By a condition, always true, that only the session's own process may judge."""
        return query.where(func.pg_backend_pid() > 0)

    def bulk_insert(self, connection: Connection, table: Table, columns: Sequence[str], rows: Rows) -> None:
        """COPY."""
        bulk.bulk_insert(connection, table, columns, rows)

    def bulk_update(
        self, connection: Connection, table: Table, key: str, columns: Sequence[str], rows: Rows
    ) -> None:
        """From arrays."""
        bulk.bulk_update(connection, table, key, columns, rows)

    def bulk_delete(self, connection: Connection, table: Table, key: str, ids: Iterable[int]) -> None:
        """From an array."""
        bulk.bulk_delete(connection, table, key, ids)

    def refresh_statistics(self, engine: Engine, table: Table) -> None:
        """ANALYZE."""
        bulk.refresh_statistics(engine, table)

    def take_changes(
        self, connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
    ) -> list[tuple[str, str]]:
        """In one statement, by ctid."""
        return changes.take_changes(connection, queue, table_id, limit, row_key)

    def view_definition(self, connection: Connection, name: str, schema: str | None) -> str:
        """As the catalogue writes it, whatever the search path."""
        with sessions.setting(connection, "search_path", "pg_catalog"):
            return super().view_definition(connection, name, schema)

    def trigger_names(self, target: TriggerTarget) -> list[str]:
        """The four triggers and the function."""
        return triggers.trigger_names(target)

    def create_triggers(self, plan: TriggerPlan) -> list[str]:
        """One function, four triggers."""
        return triggers.create_triggers(self, plan)

    def drop_triggers(self, target: TriggerTarget) -> list[str]:
        """With the function, and by name."""
        return triggers.drop_triggers(target)

    def describe_triggers(self, connection: Connection, target: TriggerTarget) -> list[FoundTrigger]:
        """As the catalogue writes them, whatever the search path."""
        return triggers.describe_triggers(connection, target)

    def queue_triggers(self, connection: Connection, namespace: Namespace) -> list[QueueTrigger]:
        """By what the functions of the triggers do."""
        return triggers.queue_triggers(connection, namespace)

    def turn(
        self,
        connection: Connection,
        lock: Executable,
        queue: Table,  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """At READ COMMITTED, where each statement sees what is committed; any other level is refused."""
        return sessions.turn(connection, lock)

    def grants(self, connection: Connection, wanted: Grants) -> str:
        """Those of a template; the owner of the table is looked up."""
        return grants.grants(connection, wanted)

    def short_lock_wait(self, connection: Connection) -> AbstractContextManager[None]:
        """lock_timeout."""
        return triggers.short_lock_wait(connection)

    def translate_error(self, error: SQLAlchemyError) -> DedupError:
        """By SQLSTATE."""
        return errors.translate_error(error)
