"""SQLite: one file, one writer at a time."""

from functools import lru_cache
from typing import Any, ClassVar, Never

from sqlalchemy import ColumnElement, Connection, Integer, Select, bindparam, func, select

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.capabilities import Capabilities, ColumnTypes, WriteCost, WriteCosts
from db_dedup.dialects.grants import Grants
from db_dedup.dialects.keys import JsonList
from db_dedup.dialects.sqlite import bulk, errors, keys, sessions, triggers
from db_dedup.errors import ConfigError


class SQLiteDialect(Dialect):
    """SQLite 3.31 and later."""

    capabilities: ClassVar = Capabilities(
        has_schemas=False,
        max_name_length=None,
        name_limit_counts_bytes=False,
        snapshot_beside_writes=False,
        one_writer=True,
    )
    column_types: ClassVar = ColumnTypes(
        row_id="INTEGER",  # no other type is numbered by the database
        digest="BLOB",
        sketch="BLOB",
        packed="BLOB",
        timestamp="DATETIME",
        nonce="BIGINT",
        new_nonce="random()",
        utc_now="strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'",
    )
    default_driver: ClassVar = "pysqlite"
    engine_options: ClassVar = sessions.OPTIONS
    write_costs: ClassVar = WriteCosts(
        WriteCost(270, 25.2), WriteCost(8.2, 0.5), WriteCost(83, 5.9), WriteCost(27, 1.7)
    )

    engine_url = staticmethod(sessions.engine_url)
    prepare_engine = staticmethod(sessions.prepare_engine)
    jdbc = staticmethod(sessions.jdbc)
    read_snapshot = staticmethod(sessions.read_snapshot)
    short_reads = staticmethod(sessions.short_reads)
    write_transaction = staticmethod(sessions.write_transaction)
    reads_beside_writes = staticmethod(sessions.reads_beside_writes)
    is_shared = staticmethod(sessions.is_shared)
    settled = staticmethod(sessions.settled)
    lock_row = staticmethod(sessions.lock_row)
    schema_lock = staticmethod(sessions.schema_lock)
    leader_lock = staticmethod(sessions.leader_lock)
    full_folder = staticmethod(sessions.full_folder)

    key_value_text = staticmethod(keys.key_value_text)
    key_text = staticmethod(keys.key_text)
    key_equals = staticmethod(keys.key_equals)
    is_found_by_text = staticmethod(keys.is_found_by_text)
    json_array = staticmethod(keys.json_array)
    json_item = staticmethod(keys.json_item)
    key_list = staticmethod(keys.key_list)
    readable = staticmethod(keys.readable)
    depends_on_session = staticmethod(keys.depends_on_session)

    bulk_insert = staticmethod(bulk.bulk_insert)
    bulk_update = staticmethod(bulk.bulk_update)
    bulk_delete = staticmethod(bulk.bulk_delete)
    bulk_delete_keys = staticmethod(bulk.bulk_delete_keys)
    refresh_statistics = staticmethod(bulk.refresh_statistics)
    take_changes = staticmethod(bulk.take_changes)

    trigger_names = staticmethod(triggers.trigger_names)
    create_triggers = triggers.create_triggers
    drop_triggers = staticmethod(triggers.drop_triggers)
    describe_triggers = staticmethod(triggers.describe_triggers)
    queue_triggers = staticmethod(triggers.queue_triggers)
    short_lock_wait = staticmethod(triggers.short_lock_wait)

    translate_error = staticmethod(errors.translate_error)

    def hamming(self, stored: ColumnElement[Any], fingerprint: ColumnElement[int]) -> None:  # noqa: ARG002
        """Return None: SQLite has neither XOR nor a count of bits."""
        return

    def is_one_of(self, column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
        """Pass numbers as one JSON array: to make hundreds of parameters takes longer than a look-up."""
        if not isinstance(column.type, Integer):
            return super().is_one_of(column, parameter)
        return column.in_(_numbers(parameter))

    def grants(self, connection: Connection, wanted: Grants) -> Never:  # noqa: ARG002
        """Refuse: SQLite has no accounts."""
        raise ConfigError(
            "SQLite has no accounts, so there is nothing to grant: whoever may write to the file and its "
            "folder can run every command, and whoever may read the file can read the views"
        )


@lru_cache(maxsize=64)
def _numbers(parameter: str) -> Select[Any]:
    """Return a query for the numbers of a parameter; building it takes as long as a look-up."""
    array = bindparam(parameter, type_=JsonList())
    return select(func.json_each(array).table_valued("value", name=f"dedup_{parameter}").c.value)
