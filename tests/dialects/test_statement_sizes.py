"""No statement is larger than a server accepts, however long texts and keys are."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    bindparam,
    insert,
    select,
    text,
)
from sqlalchemy.types import String

from db_dedup import Deduplicator, Text
from db_dedup.dialects import dialect_for
from db_dedup.dialects.batches import STATEMENT_BYTES, batches, bytes_of, row_batches
from db_dedup.errors import DatabaseError
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.store.number_rows import number_rows
from tests.servers import Database

ROWS = 800
PACKET_BYTES = 1024 * 1024
"""`max_allowed_packet` of old servers, and the least that we work with."""

VALUES = st.one_of(st.text(max_size=40), st.binary(max_size=40), st.integers(), st.none())


@given(st.lists(st.tuples(VALUES, VALUES)), st.integers(1, 9), st.integers(1, 900))
def test_batches_are_bounded_by_items_and_by_bytes(
    items: list[tuple[object, object]], count: int, most_bytes: int
) -> None:
    found = list(batches(items, count, most_bytes=most_bytes))
    assert [item for batch in found for item in batch] == items
    for batch in found:
        assert 1 <= len(batch) <= count
        assert len(batch) == 1 or sum(map(bytes_of, batch)) <= most_bytes


def test_only_columns_of_varying_size_are_measured() -> None:
    table = Table("t", MetaData(), Column("id", Integer), Column("name", String), Column("data", LargeBinary))
    assert [len(b) for b in row_batches(table, ["id"], [(1,)] * 9, 4)] == [4, 4, 1]
    rows: list[tuple[int, str | None, bytes | None]] = [(1, "x" * 100_000, None)] * 4
    assert [len(b) for b in row_batches(table, ["id", "name", "data"], rows, 10)] == [1, 1, 1, 1]
    rows = [(1, None, bytes(100_000))] * 4
    assert [len(b) for b in row_batches(table, ["id", "name", "data"], rows, 10)] == [2, 2]
    assert [len(b) for b in row_batches(table, ["id"], [(1,)] * 9, 10, 96)] == [3, 3, 3]


def test_an_estimate_covers_text_that_is_escaped_twice() -> None:
    """By JSON, then by the driver; 7 bytes of the statement to 4 of the estimate at most."""
    assert 7 * STATEMENT_BYTES // 4 < PACKET_BYTES


@pytest.fixture
def small_packets(database: Database) -> Iterator[Database]:
    """A server that accepts no more than a megabyte at a time, where there is such a limit."""
    limit = "SET GLOBAL max_allowed_packet = {}"
    if database.name not in ("mariadb", "mysql"):
        yield database
        return
    with database.engine.connect() as connection:
        before = connection.scalar(text("SELECT @@GLOBAL.max_allowed_packet"))
        connection.execute(text(limit.format(PACKET_BYTES)))
    database.engine.dispose()
    yield database
    with database.engine.connect() as connection:
        connection.execute(text(limit.format(before)))
    database.engine.dispose()


def test_long_texts_and_long_keys(small_packets: Database) -> None:
    engine = small_packets.engine
    kind = "VARCHAR(700) CHARACTER SET utf8mb4" if small_packets.name == "mariadb" else "VARCHAR(700)"
    rng = random.Random(3)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(4_000)]
    rows = [{"name": f'{i}"{"键" * 690}', "body": " ".join(rng.choices(words, k=90))} for i in range(ROWS)]
    rows += [{"name": f"{i} again", "body": f"{row['body']} or so"} for i, row in enumerate(rows[:20])]
    with engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE files (name {kind} NOT NULL PRIMARY KEY, body VARCHAR(900))"))
    dedup = Deduplicator(engine, "files", {"body": Text()}, segmenter="words")
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO files VALUES (:name, :body)"), rows)
    worker = dedup.worker()
    worker._size.changes = ROWS  # as on a server with several writers
    ChangeWorker([worker]).run(threading.Event(), drain=True)
    assert len(list(dedup.pairs())) == 20
    assert dedup.scan().pairs_gained == 0


def test_a_server_that_takes_less_is_named(mariadb_database: Database) -> None:
    """It would close the connection at a larger statement, and a worker would try again for ever."""
    limit = "SET GLOBAL max_allowed_packet = {}"
    with mariadb_database.engine.connect() as connection:
        before = connection.execute(text("SELECT @@GLOBAL.max_allowed_packet")).scalar_one()
        connection.execute(text(limit.format(PACKET_BYTES // 2)))
        try:
            with pytest.raises(DatabaseError, match="max_allowed_packet is 524,288 bytes") as caught:
                Deduplicator(mariadb_database.url, "files", {"body": Text()}).upgrade()
        finally:
            connection.execute(text(limit.format(before)))
    assert not caught.value.is_transient


def test_a_list_of_keys_is_bounded(small_packets: Database) -> None:
    """Where keys are parameters, and not one text."""
    table = Table("names", MetaData(), Column("name", String(700), primary_key=True))
    table.create(small_packets.engine)
    keys = [f"{i}{'键' * 690}" for i in range(5_000)]
    query = select(table.c.name).where(table.c.name.in_(bindparam("keys", expanding=True)))
    with small_packets.engine.connect() as connection:
        for some in batches(keys, 5_000):
            assert connection.execute(query, {"keys": some}).all() == []


def test_numbers_in_one_text_that_is_larger_than_a_packet(small_packets: Database) -> None:
    """The server cuts it, and only warns."""
    numbers = Column("id", Integer, primary_key=True), Column("value", BigInteger, primary_key=True)
    table = Table("numbers", MetaData(), *numbers)
    table.create(small_packets.engine)
    wanted = [(1_024 + i % 1_000, 2**62 + i) for i in range(50_000)]
    with small_packets.engine.begin() as connection:
        connection.execute(insert(table), [{"id": row_id, "value": value} for row_id, value in wanted])
        read = [*number_rows(connection, dialect_for(small_packets.engine), select(table), table.c.id)]
    assert sum(len(str(row)) for row in wanted) > PACKET_BYTES
    assert sorted(map(tuple, read)) == sorted(wanted)
