"""MySQL and MariaDB."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count
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
    Table,
    func,
    text,
    type_coerce,
)
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.base import Capabilities, Dialect, WriteCost, WriteCosts
from db_dedup.dialects.batches import Rows
from db_dedup.dialects.grants import Grants
from db_dedup.dialects.mysql import bulk, changes, errors, grants, keys, sessions, triggers
from db_dedup.dialects.triggers import FoundTrigger, QueueTrigger, TriggerPlan, TriggerTarget
from db_dedup.errors import DedupError
from db_dedup.records import Family, SourceColumn
from db_dedup.schema.names import Namespace

_NAMES = """
    SELECT column_name FROM information_schema.columns
    WHERE table_name = :table AND table_schema = COALESCE(:schema, DATABASE()) ORDER BY ordinal_position
"""
_COLLATIONS = """
    SELECT column_name, collation_name FROM information_schema.columns
    WHERE table_name = :table AND table_schema = COALESCE(:schema, DATABASE()) AND collation_name IS NOT NULL
"""


class MySQLDialect(Dialect):
    """MySQL 8.0 and later, MariaDB 10.6 and later."""

    capabilities: ClassVar = Capabilities(
        has_schemas=False,
        max_name_length=64,
        name_limit_counts_bytes=False,
        snapshot_beside_writes=True,
        hamming_in_sql=True,
    )
    default_driver: ClassVar = "pymysql"
    write_costs: ClassVar = WriteCosts(WriteCost(519, 47.3), WriteCost(55, 8.0), WriteCost(115, 26.0))
    extra: ClassVar = "mysql"

    def engine_url(self, url: URL, create: bool) -> URL:  # noqa: ARG002
        """With the character set that holds every text."""
        return sessions.with_charset(url)

    def engine_options(self) -> Mapping[str, Any]:
        """Notice a connection that died while it lay in the pool."""
        return sessions.OPTIONS

    def prepare_engine(self, engine: Engine) -> None:
        """Time zone UTC and a strict, plain SQL mode."""
        sessions.prepare_engine(engine)

    def read_snapshot(self, engine: Engine) -> AbstractContextManager[Connection]:
        """REPEATABLE READ, READ ONLY, from now on."""
        return sessions.read_snapshot(engine)

    def write_transaction(self, engine: Engine) -> AbstractContextManager[Connection]:
        """READ COMMITTED."""
        return sessions.write_transaction(engine)

    def key_text(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
        """Dates in ISO form, a TIMESTAMP in UTC; bytes in lower-case hexadecimal digits."""
        return keys.key_text(column, value)

    def key_equals(
        self, column: SourceColumn, value: ColumnElement[Any], text: ColumnElement[str]
    ) -> ColumnElement[bool]:
        """Our text is converted to the column's type, character set and collation."""
        return keys.key_equals(column, value, text)

    def is_found_by_text(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[bool] | None:
        """Asked of types that we do not know."""
        if column.family is not Family.OTHER:
            return None
        return keys.key_equals(column, value, keys.key_text(column, value))

    def bytewise(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        """As bytes: the collations of texts ignore case or blanks at the end."""
        return keys.bytewise(text)

    def json_array(self, texts: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
        """With JSON_QUOTE."""
        return keys.json_array(texts)

    def json_item(self, array: ColumnElement[str], index: int) -> ColumnElement[str]:
        """With JSON_EXTRACT."""
        return keys.json_item(array, index)

    def key_list(self, row_keys: Sequence[str]) -> FromClause:
        """With JSON_TABLE."""
        return keys.key_list(row_keys)

    def readable(self, column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[Any]:
        """Dates as text, all else as it is."""
        return keys.readable(column, value)

    def depends_on_session(self, column: SourceColumn, *, is_key: bool) -> bool:
        """A key that is a TIMESTAMP is looked up in the session's time zone."""
        return is_key and keys.is_timestamp(column)

    def settled(self, connection: Connection) -> AbstractContextManager[None]:
        """In UTC."""
        return sessions.in_utc(connection)

    def column_names(
        self, connection: Connection, table: str, schema: str | None, found: Sequence[str]
    ) -> Sequence[str]:
        """From the catalogue where a name has a backtick, which inspection doubles."""
        if not any("`" in name for name in found):
            return found
        return list(connection.execute(text(_NAMES), {"table": table, "schema": schema}).scalars())

    def column_collations(self, connection: Connection, table: str, schema: str | None) -> Mapping[str, str]:
        """Of every text column: inspection names only those that differ from their table's."""
        rows = connection.execute(text(_COLLATIONS), {"table": table, "schema": schema})
        return {str(name): str(collation) for name, collation in rows}

    def hamming(self, stored: ColumnElement[Any], fingerprint: ColumnElement[int]) -> ColumnElement[int]:
        """With BIT_COUNT, which takes both sides as 64 plain bits."""
        return func.bit_count(type_coerce(stored, BigInteger).op("^")(fingerprint), type_=Integer)

    def bulk_insert(self, connection: Connection, table: Table, columns: Sequence[str], rows: Rows) -> None:
        """Many rows a statement."""
        bulk.bulk_insert(connection, table, columns, rows)

    def bulk_update(
        self, connection: Connection, table: Table, key: str, columns: Sequence[str], rows: Rows
    ) -> None:
        """From JSON."""
        bulk.bulk_update(connection, table, key, columns, rows)

    def bulk_delete(self, connection: Connection, table: Table, key: str, ids: Iterable[int]) -> None:
        """From a list."""
        bulk.bulk_delete(connection, table, key, ids)

    def refresh_statistics(self, engine: Engine, table: Table) -> None:
        """ANALYZE TABLE."""
        bulk.refresh_statistics(engine, table)

    def take_changes(
        self, connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
    ) -> list[tuple[str, str]]:
        """A locking read, then a DELETE that finds exactly these in the index."""
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
        """From information_schema."""
        return triggers.describe_triggers(connection, target)

    def lacks_right_to_drop(self, connection: Connection, target: TriggerTarget) -> str | None:
        """TRIGGER on the table."""
        return triggers.lacks_right(connection, target)

    def queue_triggers(self, connection: Connection, namespace: Namespace) -> list[QueueTrigger]:
        """By what the triggers do."""
        return triggers.queue_triggers(connection, namespace)

    def script(self, statements: Sequence[str]) -> str:
        """With a delimiter that stands in none of them."""
        end = next("/" * n for n in count(2) if not any("/" * n in statement for statement in statements))
        return "".join([f"DELIMITER {end}\n", *(f"{s}{end}\n" for s in statements), "DELIMITER ;\n"])

    def turn(self, connection: Connection, lock: Executable, queue: Table) -> AbstractContextManager[None]:
        """By locking reads: the transaction may have a snapshot that is older than the lock."""
        return sessions.turn(connection, lock, queue)

    def grants(self, connection: Connection, wanted: Grants) -> str:
        """Those of a template."""
        return grants.grants(connection, wanted)

    def short_lock_wait(self, connection: Connection) -> AbstractContextManager[None]:
        """lock_wait_timeout."""
        return triggers.short_lock_wait(connection)

    def translate_error(self, error: SQLAlchemyError) -> DedupError:
        """By error number."""
        return errors.translate_error(error)
