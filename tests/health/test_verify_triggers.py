"""`verify` says what is wrong with the triggers, and what mends it."""

from __future__ import annotations

from db_dedup import Deduplicator
from tests.cli.conftest import run, succeed
from tests.health.conftest import do, drop_a_trigger
from tests.servers import Database

ALTERED = {
    "sqlite": "AFTER INSERT ON petitions BEGIN SELECT 1; END",
    "mariadb": "AFTER INSERT ON petitions FOR EACH ROW SET @seen = 1",
    "postgresql": "AFTER DELETE ON petitions FOR EACH ROW EXECUTE FUNCTION dedup.queue_petitions_1()",
}


def drift(dedup: Deduplicator) -> tuple[str, ...]:
    """What drifted, after the check that each difference of the triggers is told."""
    found = dedup.verify().drift
    told = tuple(
        f"{d}: `db-dedup attach petitions` makes them again" for d in dedup.trigger_state().differences
    )
    assert found == told
    return found


def test_triggers_as_they_were_made(dedup: Deduplicator) -> None:
    assert drift(dedup) == ()
    assert dedup.verify().is_right
    succeed("verify", "petitions")


def test_a_trigger_that_is_gone(dedup: Deduplicator, database: Database) -> None:
    drop_a_trigger(database)
    assert drift(dedup) == (
        "dedup_petitions_1_insert is missing: `db-dedup attach petitions` makes them again",
    )
    result = run("verify", "petitions")
    assert result.exit_code == 1
    assert "dedup_petitions_1_insert is missing" in result.stderr
    succeed("attach", "petitions")
    assert drift(dedup) == ()
    succeed("verify", "petitions")


def test_a_trigger_that_somebody_altered(dedup: Deduplicator, database: Database) -> None:
    drop_a_trigger(database)
    do(database, f"CREATE TRIGGER dedup_petitions_1_insert {ALTERED[database.name]}")
    assert drift(dedup)
    assert run("verify", "petitions").exit_code == 1
    succeed("attach", "petitions")
    assert drift(dedup) == ()


def test_a_trigger_that_is_disabled(postgresql_database: Database) -> None:
    do(postgresql_database, "CREATE TABLE petitions (id INT PRIMARY KEY, title TEXT)")
    dedup = Deduplicator(postgresql_database.engine, "petitions", {"title": 1})
    dedup.upgrade()
    dedup.scan()
    dedup.attach()
    do(postgresql_database, "ALTER TABLE petitions DISABLE TRIGGER dedup_petitions_1_insert")
    assert "dedup_petitions_1_insert" in drift(dedup)[0]


def test_of_a_table_that_is_not_attached_nothing_is_said(dedup: Deduplicator) -> None:
    dedup.detach()
    assert dedup.verify().drift == ()
