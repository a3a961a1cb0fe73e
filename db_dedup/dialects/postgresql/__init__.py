"""PostgreSQL."""

from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    Text,
    any_,
    cast,
    func,
    literal_column,
    select,
    true,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import BIT
from sqlalchemy.engine import Dialect as SQLDialect

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.capabilities import Capabilities, ColumnTypes, WriteCost, WriteCosts
from db_dedup.dialects.postgresql import bulk, catalogue, errors, keys, schema, sessions, triggers, values
from db_dedup.dialects.postgresql import grants as grant_statements
from db_dedup.dialects.postgresql.arrays import array_parameter
from db_dedup.records import Family


class PostgreSQLDialect(Dialect):
    """PostgreSQL 14 and later."""

    capabilities: ClassVar = Capabilities(
        has_schemas=True,
        max_name_length=63,
        name_limit_counts_bytes=True,
        snapshot_beside_writes=True,
        refuses_keys=True,
        updates_all_indexes=True,
    )
    column_types: ClassVar = ColumnTypes(
        row_id="BIGINT",
        digest="BYTEA",
        sketch="BYTEA",
        packed="BYTEA",
        timestamp="TIMESTAMP WITHOUT TIME ZONE",
        nonce="UUID",
        new_nonce="gen_random_uuid()",
        utc_now="clock_timestamp() AT TIME ZONE 'UTC'",
    )
    default_driver: ClassVar = "psycopg"
    engine_options: ClassVar = sessions.OPTIONS
    extra: ClassVar = "postgresql"
    families: ClassVar = {"BIT": Family.TEXT}
    unusable_key_types: ClassVar = ("MONEY", "INTERVAL")
    write_costs: ClassVar = WriteCosts(
        WriteCost(552, 30.4), WriteCost(9.0, 0.5), WriteCost(126, 7.4), WriteCost(84, 2.1)
    )

    engine_url = staticmethod(sessions.engine_url)
    prepare_engine = staticmethod(sessions.prepare_engine)
    jdbc = staticmethod(sessions.jdbc)
    read_snapshot = staticmethod(sessions.read_snapshot)
    write_transaction = staticmethod(sessions.write_transaction)
    settled = staticmethod(sessions.settled)
    lock_row = staticmethod(sessions.lock_row)
    schema_lock = staticmethod(sessions.schema_lock)
    leader_lock = staticmethod(sessions.leader_lock)

    create_schema = staticmethod(schema.create_schema)
    drop_schema = staticmethod(schema.drop_schema)

    key_text = staticmethod(keys.key_text)
    key_equals = staticmethod(keys.key_equals)
    json_array = staticmethod(keys.json_array)
    json_item = staticmethod(keys.json_item)
    key_list = staticmethod(keys.key_list)
    readable = staticmethod(keys.readable)
    depends_on_session = staticmethod(keys.depends_on_session)
    is_autocommit = staticmethod(sessions.is_autocommit)
    as_stored = staticmethod(values.as_stored)

    partition_names = staticmethod(catalogue.partition_names)
    names_found_in = staticmethod(catalogue.names_found_in)
    type_names = staticmethod(catalogue.type_names)

    bulk_insert = staticmethod(bulk.bulk_insert)
    bulk_update = staticmethod(bulk.bulk_update)
    bulk_delete = staticmethod(bulk.bulk_delete)
    bulk_delete_keys = staticmethod(bulk.bulk_delete_keys)
    drop_old_versions = staticmethod(bulk.drop_old_versions)
    refresh_statistics = staticmethod(bulk.refresh_statistics)
    take_changes = staticmethod(bulk.take_changes)

    trigger_names = staticmethod(triggers.trigger_names)
    create_triggers = triggers.create_triggers
    drop_triggers = staticmethod(triggers.drop_triggers)
    describe_triggers = staticmethod(triggers.describe_triggers)
    queue_triggers = staticmethod(triggers.queue_triggers)
    short_lock_wait = staticmethod(triggers.short_lock_wait)

    grants = staticmethod(grant_statements.grants)
    translate_error = staticmethod(errors.translate_error)

    def exact_text(self, length: int | None, dialect: SQLDialect) -> str:
        """Return a type in the collation "C", which compares bytes."""
        return f'{super().exact_text(length, dialect)} COLLATE "C"'

    def hamming(self, stored: ColumnElement[Any], fingerprint: ColumnElement[int]) -> ColumnElement[int]:
        """Count by bit_count."""
        different = type_coerce(stored, BigInteger).op("#")(fingerprint)
        return func.bit_count(cast(different, BIT(64)), type_=Integer)

    def is_one_of(self, column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
        """Pass the values as one array: hundreds of parameters take the driver longer than a look-up."""
        kind = Text() if isinstance(column.type, String) else column.type  # the column brings its collation
        return column == any_(array_parameter(parameter, kind))

    def each_of(self, query: Select[Any], column: ColumnElement[Any], parameter: str) -> Select[Any]:
        """Look up each value by itself: OFFSET prevents the planner from joining in another way.

        Before version 17, if the planner expects that few rows meet the other conditions, it reads all of
        them and compares each with the values. It expects so of a number that its statistics do not have yet.
        """
        values = func.unnest(array_parameter(parameter, column.type)).table_valued("value").render_derived()
        rows = query.where(column == values.c.value).offset(literal_column("0")).lateral()
        return select(*rows.c).select_from(values.join(rows, true()))

    def in_one_process(self, query: Select[Any]) -> Select[Any]:
        """Add a condition that is always true and that only the process of the session may evaluate."""
        return query.where(func.pg_backend_pid() > 0)

    def view_definition(self, connection: Connection, name: str, schema: str | None) -> str:
        """Return the definition as the catalogue writes it, whatever the search path is."""
        with sessions.setting(connection, "search_path", "pg_catalog"):
            return super().view_definition(connection, name, schema)
