"""What `status` says of a table, held against counts of the tests' own."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, insert, make_url, select, update

from db_dedup import Database as OurDatabase
from db_dedup import Deduplicator
from db_dedup.config import watched_table
from db_dedup.records import HotBlock, TableStatus
from db_dedup.schema.types import to_unsigned
from tests.cli.conftest import run, succeed
from tests.health.conftest import do, drop_a_trigger
from tests.servers import Database

SIZES = {"2": range(2, 3), "3-5": range(3, 6), "6-20": range(6, 21), "21-100": range(21, 101)}


def status_of(dedup: Deduplicator) -> TableStatus:
    (found,) = dedup.database.status()
    return found


def now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def test_rows_and_groups(dedup: Deduplicator) -> None:
    found = status_of(dedup)
    groups = dedup.groups()
    sizes = [group.size for group in groups]
    assert (found.table, found.is_scanned, found.rows, found.fingerprints) == ("petitions", True, 150, 147)
    assert (found.too_little_text, found.too_little_share) == (3, 0.02)
    assert (found.groups, found.grouped_rows, found.largest_group) == (len(sizes), sum(sizes), max(sizes))
    assert {label: sum(size in span for size in sizes) for label, span in SIZES.items()} == {
        label: count for label, count in found.group_sizes.items() if label in SIZES
    }
    assert sum(found.group_sizes.values()) == len(sizes) > 0
    assert found.loose_groups == sum(group.is_loose for group in groups)
    assert found.copies > 0
    assert found.pairs + found.copies == len(list(dedup.pairs()))


def test_sizes_and_flags_are_those_of_the_groups(dedup: Deduplicator) -> None:
    """Of groups as large and as odd as no sample has them."""
    row = dedup.database.tables.fingerprint
    sizes = [2, 3, 5, 6, 20, 21, 100, 101, 5000]
    with dedup.database.engine.begin() as connection:
        connection.execute(update(row).values(group_size=None, is_loose=None, is_abridged=None))
        for size, row_id in zip(
            sizes, connection.scalars(select(row.c.id).limit(len(sizes))).all(), strict=True
        ):
            values = {"group_size": size, "is_loose": size > 5, "is_abridged": size > 1000}
            connection.execute(update(row).where(row.c.id == row_id).values(values))
    found = status_of(dedup)
    assert found.group_sizes == {"2": 1, "3-5": 2, "6-20": 2, "21-100": 2, "101+": 2}
    assert (found.groups, found.grouped_rows, found.largest_group) == (9, sum(sizes), 5000)
    assert (found.loose_groups, found.abridged_groups) == (6, 1)


def test_hot_blocks_are_the_values_that_most_rows_share(dedup: Deduplicator) -> None:
    row = dedup.database.tables.fingerprint
    with dedup.database.engine.connect() as connection:
        originals = connection.scalars(select(row.c.fingerprint).where(row.c.copy_of.is_(None))).all()
    counted = Counter(
        (4 - shift, to_unsigned(value) >> 16 * shift & 0xFFFF)
        for value in originals
        if value is not None
        for shift in range(4)
    )
    hottest = sorted((-rows, block, value) for (block, value), rows in counted.items())[:3]
    assert status_of(dedup).hot_blocks == tuple(HotBlock(b, v, -rows) for rows, b, v in hottest)


def test_queue_and_dead_changes(dedup: Deduplicator) -> None:
    tables, queued_at = dedup.database.tables, now() - timedelta(hours=2)
    with dedup.database.engine.begin() as connection:
        for number in range(12):
            values = {"table_id": 1, "row_key": str(number), "operation": "U"}
            failed_at = queued_at + timedelta(seconds=number)
            connection.execute(insert(tables.change).values(**values, queued_at=failed_at))
            dead = {"attempts": 3, "error": f"no. {number}", "failed_at": failed_at}
            connection.execute(insert(tables.dead_change).values(**values, **dead))
    found = status_of(dedup)
    assert (found.queue_length, found.dead_changes) == (12, 12)
    assert found.queue_age_seconds is not None
    assert 7200 <= found.queue_age_seconds < 7200 + 600
    assert [(c.row_key, c.error) for c in found.latest_dead] == [
        (str(n), f"no. {n}") for n in range(11, 1, -1)
    ]


def test_nothing_waits(dedup: Deduplicator) -> None:
    found = status_of(dedup)
    assert (found.queue_length, found.queue_age_seconds, found.dead_changes, found.latest_dead) == (
        0,
        None,
        0,
        (),
    )


def test_scans(dedup: Deduplicator, database: Database) -> None:
    reports = [dedup.scan() for _ in range(4)]
    do(database, "DELETE FROM petitions WHERE id = 150")
    reports.append(dedup.scan())
    found = status_of(dedup)
    assert [scan.rows for scan in found.scans] == [149, 150, 150, 150, 150]
    assert [(s.pairs_gained, s.pairs_lost, s.groups_changed) for s in reversed(found.scans)] == [
        (r.pairs_gained, r.pairs_lost, r.groups_changed) for r in reports
    ]
    assert {scan.state for scan in found.scans} == {"finished"}
    assert all(scan.seconds > 0 for scan in found.scans)
    assert (found.last_scan_started, found.last_scan_finished) == (
        found.scans[0].started_at,
        found.scans[0].finished_at,
    )
    assert found.answer_version == 6


def test_a_scan_whose_process_died_has_failed(dedup: Deduplicator) -> None:
    scan = dedup.database.tables.scan
    values = {"table_id": 1, "recipe": 1, "recipe_digest": "", "owner": "elsewhere:1:2", "started_at": now()}
    with dedup.database.engine.begin() as connection:
        connection.execute(insert(scan).values(**values, state="running"))
    found = status_of(dedup)
    assert [(s.state, s.rows) for s in found.scans] == [("failed", None), ("finished", 150)]
    assert (found.last_scan_state, found.last_scan_error) == (
        "failed",
        "the scan process died before it could record an error",
    )


def test_a_scan_that_failed_has_not_finished(dedup: Deduplicator) -> None:
    """When it ended stands in the list of scans."""
    scan = dedup.database.tables.scan
    values = {"table_id": 1, "recipe": 1, "recipe_digest": "", "owner": "elsewhere:1:2", "state": "failed"}
    with dedup.database.engine.begin() as connection:
        connection.execute(insert(scan).values(**values, started_at=now(), finished_at=now()))
    found = status_of(dedup)
    assert (found.last_scan_state, found.last_scan_finished) == ("failed", None)
    assert found.scans[0].finished_at is not None


def test_a_table_that_was_attached_only(dedup: Deduplicator) -> None:
    other = Deduplicator(
        dedup.database, watched_table("others", {"table": "petitions", "columns": {"title": 1}})
    )
    other.attach()
    (found,) = [entry for entry in dedup.database.status() if entry.table == "others"]
    assert (found.is_scanned, found.rows, found.groups, found.scans) == (False, 0, 0, ())
    assert (found.too_little_share, found.hot_blocks) == (0.0, ())
    assert (found.triggers, found.answer_version) == ("intact", 0)
    assert found.attached_at is not None


def test_triggers(dedup: Deduplicator, database: Database) -> None:
    assert (status_of(dedup).triggers, status_of(dedup).trigger_faults) == ("intact", ())
    drop_a_trigger(database)
    found = status_of(dedup)
    assert (found.triggers, found.trigger_faults) == ("missing", ("dedup_petitions_1_insert is missing",))
    dedup.detach()
    found = status_of(dedup)
    assert (found.triggers, found.trigger_faults, found.attached_at) == ("not attached", (), None)


def test_a_table_that_is_gone(dedup: Deduplicator, database: Database) -> None:
    do(database, "DROP TABLE petitions" + (" CASCADE" if database.name == "postgresql" else ""))
    found = status_of(dedup)
    assert found.triggers == "unknown"
    assert "petitions" in " ".join(found.trigger_faults)
    assert found.rows == 150


def test_triggers_that_are_hidden_are_not_called_missing(mariadb_or_mysql: Database) -> None:
    name = make_url(mariadb_or_mysql.url).database
    do(mariadb_or_mysql, "CREATE TABLE petitions (id INT PRIMARY KEY, title TEXT)")
    owner = Deduplicator(mariadb_or_mysql.engine, "petitions", {"title": 1})
    owner.upgrade()
    owner.scan()
    owner.attach()
    do(mariadb_or_mysql, "CREATE USER dedup_looker", f"GRANT SELECT ON {name}.* TO dedup_looker")
    engine = create_engine(make_url(mariadb_or_mysql.url).set(username="dedup_looker", password=None))
    try:
        (found,) = OurDatabase(engine).status()
    finally:
        engine.dispose()
        do(mariadb_or_mysql, "DROP USER dedup_looker")
    assert found.triggers == "unknown"
    assert found.trigger_faults == (
        "no right to see the triggers of 'petitions' (needed: GRANT TRIGGER ON petitions)",
    )


def test_the_command(dedup: Deduplicator, database: Database) -> None:
    tables = dedup.database.tables
    with dedup.database.engine.begin() as connection:
        values = {"table_id": 1, "row_key": "77", "operation": "U", "attempts": 3, "failed_at": now()}
        connection.execute(insert(tables.dead_change).values(**values, error="a broken row"))
    drop_a_trigger(database)
    (as_json,) = succeed("status", "--json").json()
    assert (as_json["dead_changes"], as_json["latest_dead"][0]["error"]) == (1, "a broken row")
    assert as_json["scans"][0]["rows"] == as_json["rows"] == 150
    assert as_json["triggers"] == "missing"
    shown = succeed("status").stdout
    for word in (
        "petitions",
        "2.00%",
        "missing",
        "dedup_petitions_1_insert is missing",
        "finished",
        "hot_block",
    ):
        assert word in shown
    assert max(map(len, shown.splitlines())) <= 120
    assert "a broken row" not in shown
    assert "a broken row" in succeed("status", "--dead").stdout


def test_no_table_is_watched(sqlite_database: Database) -> None:
    OurDatabase(sqlite_database.engine).upgrade()
    result = run("status", "--url", sqlite_database.url)
    assert (result.exit_code, result.stdout, result.stderr.strip()) == (0, "", "no table is watched yet")


@pytest.mark.parametrize("kind", ["status", "verify"])
def test_json_is_one_document(dedup: Deduplicator, kind: str) -> None:
    assert dedup.name == "petitions"
    assert succeed(*([kind] if kind == "status" else [kind, "petitions"]), "--json").json()


def test_pairs_of_another_recipe_are_not_counted(dedup: Deduplicator) -> None:
    pairs = status_of(dedup).pairs
    row, pair = dedup.database.tables.fingerprint, dedup.database.tables.pair
    with dedup.database.engine.begin() as connection:
        table_id, recipe = connection.execute(select(row.c.table_id, row.c.recipe).limit(1)).one()
        others = [
            {
                "id": 10**6 + i,
                "table_id": table_id,
                "recipe": recipe + 1,
                "row_key": str(i),
                "digest": bytes(16),
            }
            for i in range(2)
        ]
        connection.execute(insert(row), others)
        between = {"id_a": 10**6, "id_b": 10**6 + 1, "distance": 0, "found_at": now()}
        connection.execute(insert(pair).values(between))
    assert status_of(dedup).pairs == pairs
