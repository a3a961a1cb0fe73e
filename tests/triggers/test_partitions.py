"""Partitioned tables of PostgreSQL: rows that move, and partitions that come and go."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from db_dedup.jobs.objects.attachment import AttachmentState
from tests.dialects.tables import run
from tests.servers import Database
from tests.triggers.conftest import attached, changes, drain, queued_by

COLUMNS = "id integer, region text, body text, PRIMARY KEY (id, region)"
NEAR = "小区门口的路灯坏了三个月，晚上出行很不安全，希望有关部门尽快修好，谢谢。"
OTHER = "学校旁边的工地每天夜里施工，噪音很大，孩子无法休息，请予以查处。"
PARTITIONED = (
    f"CREATE TABLE petitions ({COLUMNS}) PARTITION BY LIST (region)",
    "CREATE TABLE north PARTITION OF petitions FOR VALUES IN ('n')",
    "CREATE TABLE south PARTITION OF petitions FOR VALUES IN ('s')",
)


@pytest.fixture
def database(postgresql_database: Database) -> Database:
    return postgresql_database


def test_partitions(database: Database) -> None:
    run(database, *PARTITIONED)
    dedup = attached(database)
    north, south = '["1","n"]', '["1","s"]'
    assert queued_by(dedup, database, "INSERT INTO petitions VALUES (1, 'n', 'a')") == [(north, "I")]
    assert queued_by(dedup, database, "UPDATE north SET body = 'b'") == [(north, "U")]
    moved = queued_by(dedup, database, "UPDATE petitions SET region = 's'")
    assert moved == [(north, "D"), (south, "I")]
    assert queued_by(dedup, database, "DELETE FROM south") == [(south, "D")]
    assert queued_by(dedup, database, "INSERT INTO south VALUES (1, 's', 'c')") == [(south, "I")]
    assert queued_by(dedup, database, "TRUNCATE petitions") == [("", "T")]


def test_a_partitioned_table_is_scanned_and_handled(database: Database) -> None:
    rows = [f"(1, 'n', '{NEAR}')", f"(2, 's', '{NEAR}！请回复')", f"(3, 's', '{OTHER}')"]
    run(database, *PARTITIONED)
    dedup = attached(database)
    run(database, f"INSERT INTO petitions VALUES {', '.join(rows)}")
    dedup.scan()
    in_both = '["1","n"]', '["2","s"]'
    assert [(pair.key_a, pair.key_b) for pair in dedup.pairs()] == [in_both]
    run(
        database,
        "UPDATE petitions SET region = 'n' WHERE id = 2",
        f"INSERT INTO north VALUES (4, 'n', '{OTHER}')",
    )
    drain(dedup)
    now = [('["1","n"]', '["2","n"]'), ('["3","s"]', '["4","n"]')]
    assert sorted((pair.key_a, pair.key_b) for pair in dedup.pairs()) == now
    assert dedup.verify().is_right
    with database.engine.connect() as connection:
        count = connection.execute(text("SELECT count(*) FROM dedup.duplicates_of_petitions")).scalar()
    assert count == 4


def test_partitions_that_come_later(database: Database) -> None:
    run(database, *PARTITIONED, "CREATE TABLE west (id integer NOT NULL, region text NOT NULL, body text)")
    dedup = attached(database)
    run(
        database,
        "CREATE TABLE east PARTITION OF petitions FOR VALUES IN ('e')",
        "ALTER TABLE petitions ATTACH PARTITION west FOR VALUES IN ('w')",
    )
    assert dedup.trigger_state().state is AttachmentState.INTACT
    replicating = ("INSERT INTO east VALUES (1, 'e', 'a')", "INSERT INTO west VALUES (1, 'w', 'a')")
    with database.engine.begin() as connection:
        for statement in ("SET LOCAL session_replication_role = replica", *replicating):
            connection.execute(text(statement))
    assert changes(dedup) == [('["1","e"]', "I"), ('["1","w"]', "I")]
    run(database, "ALTER TABLE petitions DETACH PARTITION west")
    assert queued_by(dedup, database, "UPDATE west SET body = 'b'", "DROP TABLE west") == []
    assert dedup.trigger_state().state is AttachmentState.INTACT
    dedup.detach()
    assert queued_by(dedup, database, "UPDATE east SET body = 'b'") == []


def test_not_seen_of_partitions(database: Database) -> None:
    """Whole partitions come and go without a row being written; a scan finds out."""
    run(
        database,
        *PARTITIONED,
        "CREATE TABLE west (id integer NOT NULL, region text NOT NULL, body text)",
        "INSERT INTO west VALUES (1, 'w', 'a')",
    )
    dedup = attached(database)
    run(database, "INSERT INTO petitions VALUES (1, 'n', 'a'), (2, 's', 'b')")
    for statement in (
        "ALTER TABLE petitions ATTACH PARTITION west FOR VALUES IN ('w')",
        "TRUNCATE south",
        "ALTER TABLE petitions DETACH PARTITION north",
        "DROP TABLE south",
    ):
        assert queued_by(dedup, database, statement) == [], statement
    assert dedup.scan().rows == 1


def test_a_row_that_moves_and_keeps_its_key(database: Database) -> None:
    """A move is a deletion and an insertion: of one key, where the settings name one without the region."""
    run(database, *PARTITIONED, f"INSERT INTO petitions VALUES (1, 'n', '{NEAR}'), (2, 's', '{NEAR}！')")
    dedup = attached(database, key="id")
    dedup.scan()
    assert [(pair.key_a, pair.key_b) for pair in dedup.pairs()] == [("1", "2")]
    moved = queued_by(dedup, database, "UPDATE petitions SET region = 's' WHERE id = 1")
    assert moved == [("1", "D"), ("1", "I")]
    drain(dedup)
    assert [(pair.key_a, pair.key_b) for pair in dedup.pairs()] == [("1", "2")]
    assert dedup.verify().is_right
    run(database, f"UPDATE petitions SET region = 'n', body = '{OTHER}' WHERE id = 2")
    drain(dedup)
    assert list(dedup.pairs()) == []
    assert dedup.verify().is_right


def test_a_scan_repairs_attached_and_detached_partitions(database: Database) -> None:
    """The partition is itself partitioned; between the scans the worker handles what changes in it."""
    run(
        database,
        *PARTITIONED,
        f"CREATE TABLE west ({COLUMNS}) PARTITION BY RANGE (id)",
        "CREATE TABLE west_low PARTITION OF west FOR VALUES FROM (1) TO (10)",
        "CREATE TABLE west_high PARTITION OF west FOR VALUES FROM (10) TO (20)",
        f"INSERT INTO west VALUES (1, 'w', '{NEAR}！'), (11, 'w', '{OTHER}')",
        f"INSERT INTO petitions VALUES (1, 'n', '{NEAR}')",
    )
    dedup = attached(database)
    dedup.scan()
    run(database, "ALTER TABLE petitions ATTACH PARTITION west FOR VALUES IN ('w')")
    assert not dedup.verify().is_right
    assert dedup.scan().pairs_gained == 1
    run(
        database,
        "UPDATE petitions SET id = 12 WHERE id = 1 AND region = 'w'",
        f"INSERT INTO west_low VALUES (2, 'w', '{OTHER}')",
    )
    drain(dedup)
    now = [('["1","n"]', '["12","w"]'), ('["2","w"]', '["11","w"]')]
    assert sorted((pair.key_a, pair.key_b) for pair in dedup.pairs()) == now
    assert dedup.verify().is_right
    run(database, "ALTER TABLE petitions DETACH PARTITION west", "DELETE FROM west WHERE id = 2")
    assert dedup.scan().pairs_lost == 2
    assert dedup.verify().is_right


def test_one_disabled_partition_is_found(database: Database) -> None:
    run(database, *PARTITIONED)
    dedup = attached(database)
    run(database, "ALTER TABLE north DISABLE TRIGGER dedup_petitions_1_update")
    found = dedup.trigger_state()
    assert found.state is AttachmentState.DISABLED
    assert found.differences == ("trigger dedup_petitions_1_update on public.north is disabled",)
    dedup.attach()
    assert dedup.trigger_state().state is AttachmentState.INTACT
    run(database, "INSERT INTO north VALUES (1, 'n', 'a')")
    assert queued_by(dedup, database, "UPDATE north SET body = 'b'") == [('["1","n"]', "U")]
