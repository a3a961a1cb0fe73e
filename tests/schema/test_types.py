from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, MetaData, Table, create_engine, func, inspect, select
from sqlalchemy.engine import make_url

from db_dedup.records.fingerprints import BLOCK_SHIFTS
from db_dedup.records.keys import MAX_KEY_LENGTH
from db_dedup.records.names import Namespace
from db_dedup.schema.migrate import upgrade
from db_dedup.schema.tables import our_tables
from db_dedup.schema.types import ExactText, Fingerprint, KeyText, to_signed, to_unsigned
from tests.servers import Database

TOP_BIT = 1 << 63
ALL_BITS = (1 << 64) - 1
fingerprints = st.integers(0, ALL_BITS)


@given(fingerprints)
@example(0)
@example(TOP_BIT - 1)
@example(TOP_BIT)
@example(ALL_BITS)
def test_signed_and_back(fingerprint: int) -> None:
    signed = to_signed(fingerprint)
    assert -TOP_BIT <= signed < TOP_BIT
    assert signed % (1 << 64) == fingerprint
    assert to_unsigned(signed) == fingerprint


def test_fingerprints_and_blocks_come_back_from_the_database(
    database: Database, namespace: Namespace
) -> None:
    table = our_tables(namespace).fingerprint
    with database.engine.begin() as connection:
        upgrade(connection, namespace)

    @settings(max_examples=25)
    @given(st.lists(st.tuples(st.none() | fingerprints, st.booleans()), min_size=1, max_size=40))
    @example(
        [
            (0, False),
            (TOP_BIT - 1, False),
            (TOP_BIT, False),
            (ALL_BITS, False),
            (ALL_BITS, True),
            (None, False),
        ]
    )
    def check(written: list[tuple[int | None, bool]]) -> None:
        rows: list[dict[str, Any]] = [
            {
                "table_id": 1,
                "recipe": 1,
                "row_key": f"{n:03}",
                "fingerprint": fingerprint,
                "digest": bytes(16),
                "copy_of": 1 if is_copy else None,
            }
            for n, (fingerprint, is_copy) in enumerate(written)
        ]
        with database.engine.begin() as connection:
            connection.execute(table.delete())
            connection.execute(table.insert(), rows)
            blocks = [table.c[f"block_{i}"] for i in range(1, 5)]
            found = connection.execute(select(table.c.fingerprint, *blocks).order_by(table.c.row_key)).all()
        assert [tuple(row) for row in found] == [(f, *expected_blocks(f, c)) for f, c in written]

    check()


def expected_blocks(fingerprint: int | None, is_copy: bool) -> tuple[int | None, ...]:
    """The four quarters, the highest first; none for a copy."""
    if fingerprint is None or is_copy:
        return (None,) * 4
    return tuple((fingerprint >> shift) % 65536 for shift in BLOCK_SHIFTS)


def test_keys_are_equal_only_if_they_are_the_same(database: Database) -> None:
    # Case, accents, width, trailing blanks and signs of no weight: all of them make another key.
    keys = [
        "a",
        "A",
        "á",
        "a ",
        "a  ",
        "a\t",
        "ａ",
        "",
        " ",
        "访",
        "访\u200b",
        "ss",
        "ß",
        "1",
        "01",
        "\u0130",
    ]
    table = Table("t", MetaData(), Column("key", KeyText, primary_key=True))
    with database.engine.begin() as connection:
        table.create(connection)
        connection.execute(table.insert(), [{"key": key} for key in keys])
        assert connection.scalar(select(func.count(table.c.key.distinct()))) == len(keys)
        for key in keys:
            assert connection.scalars(select(table.c.key).where(table.c.key == key)).all() == [key]
        in_order = connection.scalars(select(table.c.key).order_by(table.c.key)).all()
    assert in_order == sorted(keys)


def test_the_longest_key_fits_the_index(database: Database, namespace: Namespace) -> None:
    longest = "\U00020000" * MAX_KEY_LENGTH
    table = our_tables(namespace).fingerprint
    with database.engine.begin() as connection:
        upgrade(connection, namespace)
        connection.execute(table.insert().values(table_id=1, recipe=1, row_key=longest, digest=bytes(16)))
        assert connection.scalar(select(table.c.row_key).where(table.c.row_key == longest)) == longest


@pytest.mark.parametrize(
    ("url", "collation"),
    [("mysql+pymysql://", "utf8mb4_0900_bin"), ("mariadb+pymysql://", "utf8mb4_nopad_bin")],
)
def test_without_a_connection_the_url_names_the_collation(url: str, collation: str) -> None:
    dialect = make_url(url).get_dialect()()
    for type_ in (KeyText, ExactText(64), ExactText()):
        assert dialect.type_compiler_instance.process(type_).endswith(f"COLLATE {collation}")


def test_with_a_connection_the_server_names_the_collation(mariadb_or_mysql: Database) -> None:
    engine = create_engine(make_url(mariadb_or_mysql.url).set(drivername="mysql+pymysql"))
    with engine.begin() as connection:
        Table("t", MetaData(), Column("key", KeyText)).create(connection)
        is_mariadb = "MariaDB" in connection.exec_driver_sql("SELECT version()").scalar_one()
        (column,) = inspect(connection).get_columns("t")
    engine.dispose()
    assert engine.dialect.name == "mysql"
    collation: str = column["type"].collation  # type: ignore[attr-defined]
    assert collation == ("utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin")


def test_a_fingerprint_column_takes_null() -> None:
    dialect = make_url("sqlite://").get_dialect()()
    type_ = Fingerprint()
    assert type_.process_bind_param(None, dialect) is None
    assert type_.process_result_value(None, dialect) is None


def test_tables_where_the_server_makes_rows_of_another_format(mariadb_or_mysql: Database) -> None:
    """The formats of former versions take 767 bytes of a key: too few for an index of row keys."""
    with mariadb_or_mysql.engine.begin() as connection:
        before = connection.exec_driver_sql("SELECT @@GLOBAL.innodb_default_row_format").scalar_one()
        connection.exec_driver_sql("SET GLOBAL innodb_default_row_format = compact")
        try:
            upgrade(connection, Namespace(None, "dedup_"))
        finally:
            connection.exec_driver_sql(f"SET GLOBAL innodb_default_row_format = {before}")
