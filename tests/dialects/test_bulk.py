"""Many rows at once: what goes in comes out."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Integer,
    MetaData,
    Table,
    func,
    literal,
    literal_column,
    select,
    text,
)
from sqlalchemy.exc import IntegrityError

from db_dedup.dialects import dialect_for, open_engine
from db_dedup.dialects.sessions import AS_BYTES
from db_dedup.schema.types import Digest, ExactText, Fingerprint, RowId, Timestamp, to_signed, to_unsigned
from tests.dialects.tables import run
from tests.servers import Database

COLUMNS = ("id", "name", "fingerprint", "digest", "similarity", "is_loose", "found_at")


@pytest.fixture
def table(database: Database) -> Table:
    table = Table(
        "our 50% table",
        MetaData(),
        Column("id", RowId, primary_key=True, autoincrement=False),
        Column("name", ExactText(64), unique=True),
        Column("fingerprint", Fingerprint),
        Column("digest", Digest),
        Column("similarity", Double),
        Column("is_loose", Boolean),
        Column("found_at", Timestamp),
    )
    table.create(database.engine)
    return table


def table_of_numbers(database: Database) -> Table:
    table = Table(
        "numbers, 50%",
        MetaData(),
        Column("id", RowId, primary_key=True, autoincrement=False),
        Column("value", BigInteger),
        Column("size", Integer),
    )
    table.create(database.engine)
    return table


def example_rows(count: int) -> list[tuple[Any, ...]]:
    rng = random.Random(5)
    when = datetime(2019, 2, 14, 20, 0, 0, 5)
    return [
        (
            i,
            f"第{i} 'row'\t\\N\n ",
            to_signed(rng.getrandbits(64)),
            rng.randbytes(16),
            rng.random(),
            bool(i % 2),
            when if i % 3 else when.replace(microsecond=0),
        )
        for i in range(count)
    ]


def as_read(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row[:2], None if row[2] is None else to_unsigned(row[2]), *row[3:])


def stored(database: Database, table: Table) -> list[tuple[Any, ...]]:
    with database.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(select(table).order_by(table.c.id))]


def test_insert(database: Database, table: Table) -> None:
    dialect = dialect_for(database.engine)
    rows = [
        *example_rows(2500),
        (2500, None, None, None, None, None, None),
        (2501, "", 0, bytes(16), 0.0, False, None),
    ]
    with dialect.write_transaction(database.engine) as connection:
        dialect.bulk_insert(connection, table, COLUMNS, iter(rows))
    assert stored(database, table) == [as_read(row) for row in rows]


def test_insert_numbers(database: Database) -> None:
    numbers = table_of_numbers(database)
    dialect = dialect_for(database.engine)
    rows = [(i, to_signed(i * 0x9E3779B97F4A7C15 % 2**64), i % 7 or None) for i in range(12_000)]
    with dialect.write_transaction(database.engine) as connection:
        dialect.bulk_insert(connection, numbers, ("id", "value", "size"), iter(rows))
    assert stored(database, numbers) == rows


@pytest.mark.parametrize("value", ["1); DELETE FROM numbers; --", "1", 1.5, float("nan"), True])
def test_only_whole_numbers_are_written_into_a_statement(mariadb_or_mysql: Database, value: Any) -> None:
    numbers = table_of_numbers(mariadb_or_mysql)
    dialect = dialect_for(mariadb_or_mysql.engine)
    with (
        pytest.raises(TypeError, match="not whole numbers"),
        dialect.write_transaction(mariadb_or_mysql.engine) as connection,
    ):
        dialect.bulk_insert(connection, numbers, ("id", "value"), [(1, value)])
    assert stored(mariadb_or_mysql, numbers) == []


def test_nothing_to_do(database: Database, table: Table) -> None:
    dialect = dialect_for(database.engine)
    with dialect.write_transaction(database.engine) as connection:
        dialect.bulk_insert(connection, table, COLUMNS, [])
        dialect.bulk_update(connection, table, "id", COLUMNS[1:], [])
        dialect.bulk_delete(connection, table, "id", [])
        dialect.bulk_delete_keys(connection, table, ("id", "name"), [])
    assert stored(database, table) == []


def test_update(database: Database, table: Table) -> None:
    dialect = dialect_for(database.engine)
    rows = example_rows(2500)
    changed: list[tuple[Any, ...]] = [
        (row[0], f"new {row[0]}", None, row[3][::-1], None, None, None) for row in rows[::2]
    ]
    changed.append((1, "another", -5, rows[1][3], 0.5, not rows[1][5], rows[1][6]))
    with dialect.write_transaction(database.engine) as connection:
        dialect.bulk_insert(connection, table, COLUMNS, rows)
        dialect.bulk_update(connection, table, "id", COLUMNS[1:], iter([*changed, (9999, *rows[0][1:])]))
    expected = {row[0]: row for row in rows} | {row[0]: row for row in changed}
    assert stored(database, table) == [as_read(expected[i]) for i in range(2500)]


def test_sqlite_times_are_as_sqlalchemy_writes_them(sqlite_database: Database) -> None:
    """They are compared as text, so each must have the same width."""
    columns = Column("id", Integer, primary_key=True), Column("found_at", Timestamp)
    table = Table("t", MetaData(), *columns)
    table.create(sqlite_database.engine)
    dialect = dialect_for(sqlite_database.engine)
    when = datetime(2019, 2, 14, 20)
    with dialect.write_transaction(sqlite_database.engine) as connection:
        connection.execute(table.insert().values(id=1, found_at=when))
        dialect.bulk_insert(connection, table, ("id", "found_at"), [(2, when), (3, None)])
        dialect.bulk_update(connection, table, "id", ("found_at",), [(3, when)])
        stored_texts = connection.execute(text("SELECT found_at FROM t")).scalars().all()
    assert stored_texts == ["2019-02-14 20:00:00.000000"] * 3


def test_update_leaves_other_columns(database: Database, table: Table) -> None:
    dialect = dialect_for(database.engine)
    rows = example_rows(3)
    with dialect.write_transaction(database.engine) as connection:
        dialect.bulk_insert(connection, table, COLUMNS, rows)
        dialect.bulk_update(connection, table, "id", ("is_loose",), [(1, False)])
    assert stored(database, table) == [
        as_read(row) for row in [rows[0], (*rows[1][:5], False, rows[1][6]), rows[2]]
    ]


def test_delete(database: Database, table: Table) -> None:
    dialect = dialect_for(database.engine)
    rows = example_rows(2500)
    with dialect.write_transaction(database.engine) as connection:
        dialect.bulk_insert(connection, table, COLUMNS, rows)
        dialect.bulk_delete(connection, table, "id", (i for i in range(3000) if i % 5))
    assert [row[0] for row in stored(database, table)] == list(range(0, 2500, 5))


def test_delete_by_several_columns(database: Database, table: Table) -> None:
    dialect = dialect_for(database.engine)
    rows = example_rows(2500)
    gone = [(row[0], row[1]) for row in rows if row[0] % 5]
    others = [(0, rows[1][1]), (5, "another name"), (9999, rows[5][1])]
    with dialect.write_transaction(database.engine) as connection:
        dialect.bulk_insert(connection, table, COLUMNS, rows)
        dialect.bulk_delete_keys(connection, table, ("id", "name"), iter([*gone, *others]))
    assert [row[0] for row in stored(database, table)] == list(range(0, 2500, 5))


def test_all_in_the_callers_transaction(database: Database, table: Table) -> None:
    dialect = dialect_for(database.engine)
    rows = example_rows(10)
    with dialect.write_transaction(database.engine) as connection:
        dialect.bulk_insert(connection, table, COLUMNS, rows[:5])

    def work_and_fail() -> None:
        with dialect.write_transaction(database.engine) as connection:
            dialect.bulk_insert(connection, table, COLUMNS, rows[5:])
            dialect.bulk_update(connection, table, "id", ("name",), [(1, "changed")])
            dialect.bulk_delete(connection, table, "id", [0])
            assert connection.execute(select(func.count()).select_from(table)).scalar_one() == 9
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work_and_fail()
    assert stored(database, table) == [as_read(row) for row in rows[:5]]


def test_a_refused_row_is_an_error_without_its_values(database: Database, table: Table) -> None:
    dialect = dialect_for(database.engine)
    engine = open_engine(database.url)
    with pytest.raises(IntegrityError) as caught, dialect.write_transaction(engine) as connection:
        dialect.bulk_insert(connection, table, ("id", "name"), [(1, "王秀兰"), (2, "王秀兰")])
    engine.dispose()
    assert "王秀兰" not in str(dialect.translate_error(caught.value))
    assert stored(database, table) == []


def test_refresh_statistics(database: Database, table: Table) -> None:
    run(database, "CREATE TABLE petitions (id INTEGER PRIMARY KEY)", "INSERT INTO petitions VALUES (1)")
    dialect = dialect_for(database.engine)
    with dialect.write_transaction(database.engine) as connection:
        dialect.bulk_insert(connection, table, COLUMNS, example_rows(100))
    dialect.refresh_statistics(database.engine, table)
    query = {
        "sqlite": "SELECT count(DISTINCT tbl) FROM sqlite_stat1",
        "postgresql": "SELECT count(*) FROM pg_stats WHERE tablename = 'our 50% table' AND attname = 'id'",
        "mariadb": "SELECT count(*) FROM information_schema.tables WHERE table_name = 'our 50% table' "
        "AND table_rows = 100",
    }[database.name]
    with database.engine.connect() as connection:
        assert connection.execute(text(query)).scalar_one() == 1


@pytest.mark.parametrize(
    "stored_value", [0, 1, 2**63, 2**64 - 1, 0x8000_0000_0000_0001, 0x1234_5678_9ABC_DEF0]
)
def test_hamming_distance(database: Database, stored_value: int) -> None:
    dialect = dialect_for(database.engine)
    column = literal_column(str(to_signed(stored_value)), BigInteger)
    for other in (0, 1, 2**63, 2**64 - 1, 0xFEDC_BA98_7654_3210, 3):
        distance = dialect.hamming(column, literal(to_signed(other), BigInteger))
        if database.name == "sqlite":
            assert distance is None
            continue
        assert distance is not None
        with database.engine.connect() as connection:
            found = connection.execute(select(distance)).scalar_one()
        assert found == (stored_value ^ other).bit_count()


def test_hamming_distance_of_a_column(database: Database) -> None:
    dialect = dialect_for(database.engine)
    table = Table(
        "f", MetaData(), Column("id", Integer, primary_key=True), Column("fingerprint", Fingerprint)
    )
    table.create(database.engine)
    with dialect.write_transaction(database.engine) as connection:
        dialect.bulk_insert(connection, table, ("id", "fingerprint"), [(1, to_signed(2**63 + 5)), (2, None)])
    distance = dialect.hamming(table.c.fingerprint, literal(4))
    if distance is not None:
        with database.engine.connect() as connection:
            query = select(distance).order_by(table.c.id)
            assert connection.execute(query).scalars().all() == [2, None]


def test_bytes_are_not_read_as_text(database: Database, table: Table) -> None:
    """The rows are the same either way; with psycopg only those of a query that asks for it are binary."""
    rows = [*example_rows(3), (3, None, None, None, None, None, None)]
    engine = open_engine(database.url)
    formats = []
    try:
        with engine.begin() as connection:
            dialect_for(engine).bulk_insert(connection, table, COLUMNS, rows)
            for options in ({}, AS_BYTES, {}):
                result = connection.execute(select(table).order_by(table.c.id).execution_options(**options))
                answer = getattr(result.cursor, "pgresult", None)
                formats.append(answer and answer.fformat(0))
                assert [tuple(row) for row in result] == [as_read(row) for row in rows]
    finally:
        engine.dispose()
    assert formats == ([0, 1, 0] if database.name == "postgresql" else [None] * 3)
