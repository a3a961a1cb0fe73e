"""MySQL and MariaDB."""

from collections.abc import Sequence
from itertools import count
from typing import Any, ClassVar

from sqlalchemy import BigInteger, ColumnElement, Integer, func, type_coerce
from sqlalchemy.engine import Dialect as SQLDialect

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.capabilities import Capabilities, ColumnTypes, WriteCost, WriteCosts
from db_dedup.dialects.keys import dates_as_stored
from db_dedup.dialects.mysql import bulk, catalogue, errors, keys, reading, sessions, triggers
from db_dedup.dialects.mysql import grants as grant_statements
from db_dedup.records import Family


class MySQLDialect(Dialect):
    """MySQL 8.0 and later, MariaDB 10.6 and later."""

    capabilities: ClassVar = Capabilities(
        has_schemas=False,
        max_name_length=64,
        name_limit_counts_bytes=False,
        snapshot_beside_writes=True,
        commits_ddl=True,
        lowers_names="SELECT @@lower_case_table_names = 1",
    )
    column_types: ClassVar = ColumnTypes(
        row_id="BIGINT",
        digest="BINARY(16)",
        sketch="BLOB",
        packed="MEDIUMBLOB",
        timestamp="DATETIME(6)",
        nonce="BIGINT",
        new_nonce="uuid_short() & 9223372036854775807",
        utc_now="UTC_TIMESTAMP(6)",
    )
    default_driver: ClassVar = "pymysql"
    engine_options: ClassVar = sessions.OPTIONS
    extra: ClassVar = "mysql"
    families: ClassVar = {
        "BIT": Family.NUMBER,
        "YEAR": Family.NUMBER,
        "TINYBLOB": Family.BINARY,
        "MEDIUMBLOB": Family.BINARY,
        "LONGBLOB": Family.BINARY,
    }
    write_costs: ClassVar = WriteCosts(
        WriteCost(519, 47.3), WriteCost(11.0, 0.8), WriteCost(115, 26.0), WriteCost(55, 8.0)
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

    key_text = staticmethod(keys.key_text)
    key_equals = staticmethod(keys.key_equals)
    bytewise = staticmethod(keys.bytewise)
    json_array = staticmethod(keys.json_array)
    json_item = staticmethod(keys.json_item)
    key_list = staticmethod(keys.key_list)
    readable = staticmethod(keys.readable)
    depends_on_session = staticmethod(keys.depends_on_session)
    is_autocommit = staticmethod(sessions.is_autocommit)
    as_stored = staticmethod(dates_as_stored)

    column_names = staticmethod(catalogue.column_names)
    column_collations = staticmethod(catalogue.column_collations)
    unique_columns = staticmethod(catalogue.unique_columns)

    each_of = staticmethod(reading.each_of)
    rows_as_json = staticmethod(reading.rows_as_json)
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
    missing_right_to_drop = staticmethod(triggers.missing_right_to_drop)
    fault_of_triggers = staticmethod(triggers.fault_of_triggers)
    queue_triggers = staticmethod(triggers.queue_triggers)
    short_lock_wait = staticmethod(triggers.short_lock_wait)

    grants = staticmethod(grant_statements.grants)
    translate_error = staticmethod(errors.translate_error)

    def exact_text(self, length: int | None, dialect: SQLDialect) -> str:
        """Return a type in UTF-8 with a binary collation that does not pad, by its name on this server."""
        # A mysql:// URL may lead to a MariaDB server, which only the connected dialect knows.
        is_mariadb = getattr(dialect, "is_mariadb", False)
        collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
        base = f"VARCHAR({length})" if length else "LONGTEXT"
        return f"{base} CHARACTER SET utf8mb4 COLLATE {collation}"

    def hamming(self, stored: ColumnElement[Any], fingerprint: ColumnElement[int]) -> ColumnElement[int]:
        """Count by BIT_COUNT, which takes both sides as 64 plain bits."""
        return func.bit_count(type_coerce(stored, BigInteger).op("^")(fingerprint), type_=Integer)

    def script(self, statements: Sequence[str]) -> str:
        """Return a script whose delimiter is part of none of the statements."""
        end = next("/" * n for n in count(2) if not any("/" * n in statement for statement in statements))
        return "".join([f"DELIMITER {end}\n", *(f"{s}{end}\n" for s in statements), "DELIMITER ;\n"])
