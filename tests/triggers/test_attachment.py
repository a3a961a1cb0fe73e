"""Triggers made, checked, mended and taken away."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, select, text

from db_dedup import Database as DedupDatabase
from db_dedup import Deduplicator
from db_dedup.errors import (
    ConfigError,
    DatabaseUnavailableError,
    RecipeDiffersError,
    SchemaMissingError,
    UnknownNameError,
)
from db_dedup.jobs.objects.attachment import AttachmentState
from db_dedup.store.attachments import StoredAttachment, read_attachment
from tests.dialects.tables import run
from tests.servers import Database
from tests.triggers.conftest import PETITIONS, attached, changes, petitions, queued_by

INSERT = "INSERT INTO petitions VALUES (1, 'a', 'x', '1', 'new')"
UPDATE = "UPDATE petitions SET body = 'b'"
EVENTS = ("insert", "update", "delete")


def stored(dedup: Deduplicator) -> StoredAttachment:
    with dedup.database.engine.connect() as connection:
        return read_attachment(connection, dedup.database.tables, 1)


def trigger(database: Database, event: str) -> str:
    """The name of a trigger on the first watched table, as `DROP TRIGGER` takes it."""
    return f"dedup_petitions_1_{event}" + (" ON petitions" if database.name == "postgresql" else "")


def triggers(database: Database) -> list[str]:
    query = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal",
        "mariadb": "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()",
    }
    with database.engine.connect() as connection:
        return sorted(connection.execute(text(query[database.name])).scalars())


def test_attach_again_does_nothing(database: Database) -> None:
    dedup = petitions(database)
    first = stored(dedup)
    assert dedup.trigger_state().state is AttachmentState.INTACT
    assert dedup.attach() == []
    assert stored(dedup) == first
    assert first.attached_at is not None


def test_a_dry_run_changes_nothing(database: Database) -> None:
    run(database, PETITIONS)
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    statements = dedup.attach(dry_run=True)
    assert triggers(database) == []
    assert dedup.database.watched_names() == []
    # Until the table is watched it has no number, and 0 stands for it.
    assert [as_if_number_0(statement) for statement in dedup.attach()] == statements
    assert dedup.attach(dry_run=True) == []


def as_if_number_0(statement: str) -> str:
    return re.sub(r"(?<=petitions_)1|\b1(?=,)(?!, 700)", "0", statement)


@pytest.mark.parametrize("event", EVENTS)
def test_a_dropped_trigger_is_found_and_mended(database: Database, event: str) -> None:
    dedup = petitions(database)
    before = stored(dedup)
    run(database, f"DROP TRIGGER {trigger(database, event)}")
    found = dedup.trigger_state()
    assert found.state is AttachmentState.MISSING
    assert found.differences == (f"dedup_petitions_1_{event} is missing",)
    assert dedup.attach() == dedup.trigger_statements()
    assert dedup.trigger_state().state is AttachmentState.INTACT
    # What happened meanwhile was not seen.
    after = stored(dedup)
    assert before.attached_at is not None
    assert after.attached_at is not None
    assert after.attached_at > before.attached_at
    assert queued_by(dedup, database, INSERT, UPDATE, "DELETE FROM petitions") == [
        ("1", "D"),
        ("1", "I"),
        ("1", "U"),
    ]


def test_an_altered_trigger_is_found_and_mended(database: Database) -> None:
    dedup = petitions(database)
    bodies = {
        "sqlite": "AFTER INSERT ON petitions BEGIN SELECT 1; END",
        "mariadb": "AFTER INSERT ON petitions FOR EACH ROW SET @seen = 1",
        "postgresql": "AFTER DELETE ON petitions FOR EACH ROW EXECUTE FUNCTION dedup.queue_petitions_1()",
    }
    name = "dedup_petitions_1_insert"
    run(
        database,
        f"DROP TRIGGER {trigger(database, 'insert')}",
        f"CREATE TRIGGER {name} {bodies[database.name]}",
    )
    if database.name == "postgresql":
        run(database, f"ALTER TABLE petitions ENABLE ALWAYS TRIGGER {name}")
    found = dedup.trigger_state()
    assert (found.state, found.differences) == (
        AttachmentState.ALTERED,
        ("the triggers are not as they were made",),
    )
    dedup.attach()
    assert dedup.trigger_state().state is AttachmentState.INTACT
    assert queued_by(dedup, database, INSERT) == [("1", "I")]


def test_a_scan_with_other_columns_makes_them_anew(database: Database) -> None:
    dedup = petitions(database, INSERT)
    dedup.scan()
    before = stored(dedup)
    wider = Deduplicator(database.engine, "petitions", {"body": 1, "status": 1})
    with pytest.raises(RecipeDiffersError, match="scan"):
        wider.attach()
    wider.scan()
    assert wider.trigger_state().state is AttachmentState.INTACT
    assert queued_by(dedup, database, "UPDATE petitions SET status = 'old'") == [("1", "U")]
    assert stored(dedup) != before
    after = stored(dedup)
    wider.scan()
    assert stored(dedup) == after


def test_a_scan_leaves_triggers_that_somebody_disabled(postgresql_database: Database) -> None:
    """They may have a reason, and the scan's account may have no right to make triggers."""
    dedup = petitions(postgresql_database, INSERT)
    run(postgresql_database, "ALTER TABLE petitions DISABLE TRIGGER ALL")
    dedup.scan()
    assert dedup.trigger_state().state is AttachmentState.DISABLED


def test_a_scan_attaches_nothing(database: Database) -> None:
    run(database, PETITIONS)
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    dedup.scan()
    Deduplicator(database.engine, "petitions", {"status": 1}).scan()
    assert triggers(database) == []


def test_settings_that_fingerprint_the_same_columns_leave_them(database: Database) -> None:
    dedup = petitions(database)
    before = stored(dedup)
    other = Deduplicator(database.engine, "petitions", {"body": 5}, threshold=0.9)
    assert other.attach() == []
    assert stored(dedup) == before


def test_a_table_that_was_never_scanned_is_stored_with_its_settings(database: Database) -> None:
    dedup = petitions(database)
    assert dedup.database.watched_names() == ["petitions"]
    wider = Deduplicator(database.engine, "petitions", {"body": 1, "status": 1})
    assert wider.trigger_state().state is AttachmentState.STALE
    wider.attach()
    assert queued_by(dedup, database, INSERT, "UPDATE petitions SET status = 'old'") == [
        ("1", "I"),
        ("1", "U"),
    ]
    assert Deduplicator(database.engine, "petitions").trigger_state().state is AttachmentState.INTACT


def test_detach(database: Database) -> None:
    dedup = petitions(database)
    other = attached(database, "copy", table="petitions")
    run(database, INSERT)
    assert dedup.detach() == 1
    assert dedup.trigger_state().state is AttachmentState.NOT_ATTACHED
    assert len(triggers(database)) == len(triggers_of(other))
    assert changes(other) == [("1", "I")]
    assert dedup.detach() == 0
    run(database, UPDATE)
    assert changes(other) == [("1", "I"), ("1", "U")]
    assert dedup.attach() == dedup.trigger_statements()


def triggers_of(dedup: Deduplicator) -> list[str]:
    return [
        s for s in dedup.trigger_statements() if s.startswith(("CREATE TRIGGER", "CREATE OR REPLACE TRIGGER"))
    ]


def test_a_table_that_is_gone_can_be_detached(database: Database) -> None:
    dedup = petitions(database, INSERT)
    run(database, UPDATE, "DROP TABLE petitions")
    assert Deduplicator(database.engine, "petitions").detach() == 1
    with pytest.raises(UnknownNameError, match="petitions"):
        dedup.attach()


def test_a_table_that_was_renamed_keeps_no_trigger(database: Database) -> None:
    dedup = petitions(database, INSERT)
    run(database, "ALTER TABLE petitions RENAME TO letters")
    dedup.detach()
    assert triggers(database) == []
    run(database, "UPDATE letters SET body = 'c'")
    assert changes(dedup) == []


def test_uninstall_takes_the_triggers_first(database: Database) -> None:
    dedup = petitions(database)
    attached(database, "copy", table="petitions")
    run(database, "CREATE TABLE letters (id INTEGER NOT NULL PRIMARY KEY, body VARCHAR(200))")
    attached(database, "letters")
    run(database, "DROP TABLE letters")
    names = dedup.database.installed_names()
    assert set(triggers(database)) < set(names)
    assert dedup.database.uninstall() == names
    assert triggers(database) == []
    run(database, INSERT)
    assert dedup.database.installed_names() == []


def test_downgrade_takes_the_triggers_first(database: Database) -> None:
    dedup = petitions(database)
    dedup.database.downgrade("base")
    assert triggers(database) == []
    run(database, INSERT)


def test_a_busy_table_is_left_as_it_is(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("postgresql", "mysql"):
        monkeypatch.setattr(f"db_dedup.dialects.{module}.triggers.TABLE_LOCK_SECONDS", 1)
    run(database, PETITIONS, INSERT)
    dedup = Deduplicator(impatient(database), "petitions", {"body": 1})
    dedup.upgrade()
    with database.engine.begin() as busy:
        busy.execute(text(UPDATE))
        with pytest.raises(DatabaseUnavailableError, match=r"busy|locked") as caught:
            dedup.attach()
    assert caught.value.is_transient
    assert triggers(database) == []
    assert dedup.attach() == dedup.trigger_statements()
    assert dedup.trigger_state().state is AttachmentState.INTACT
    dedup.database.engine.dispose()


def impatient(database: Database) -> Any:
    """An engine whose SQLite sessions wait for no lock."""
    arguments = {"timeout": 0.1} if database.name == "sqlite" else {}
    return create_engine(database.url, connect_args=arguments)


def test_a_view_cannot_be_attached(database: Database) -> None:
    run(database, PETITIONS, "CREATE VIEW open_petitions AS SELECT * FROM petitions")
    dedup = Deduplicator(database.engine, "open_petitions", {"body": 1}, key="id")
    dedup.upgrade()
    with pytest.raises(ConfigError, match="is a view"):
        dedup.attach()
    assert dedup.database.watched_names() == []
    assert dedup.scan().rows == 0


@pytest.mark.parametrize("column", ["id", "amount"])
def test_a_table_without_a_usable_key_cannot_be_attached(database: Database, column: str) -> None:
    run(database, "CREATE TABLE petitions (id INTEGER, amount DOUBLE PRECISION, body VARCHAR(200))")
    options: dict[str, Any] = {"key": column} if column == "amount" else {}
    dedup = Deduplicator(database.engine, "petitions", {"body": 1}, **options)
    dedup.upgrade()
    with pytest.raises(ConfigError, match=r"no primary key|cannot be a key"):
        dedup.attach()
    assert dedup.database.watched_names() == []


def test_without_our_tables_there_is_nothing_to_attach_to(database: Database) -> None:
    run(database, PETITIONS)
    with pytest.raises(SchemaMissingError, match="upgrade"):
        Deduplicator(database.engine, "petitions", {"body": 1}).attach()


def test_tables_of_ours_in_another_database_hear_nothing(database: Database, tmp_path: Path) -> None:
    run(database, PETITIONS)
    apart = DedupDatabase(database.engine, store=f"sqlite:///{tmp_path / 'store.db'}")
    dedup = Deduplicator(apart, "petitions", {"body": 1})
    dedup.upgrade()
    for call in (dedup.attach, dedup.detach, dedup.trigger_state, dedup.trigger_statements):
        with pytest.raises(ConfigError, match="another database"):
            call()
    apart.close()


def test_a_parked_change_is_forgotten_too(sqlite_database: Database) -> None:
    dedup = petitions(sqlite_database)
    dead = dedup.database.tables.dead_change
    values = {
        "row_key": "1",
        "operation": "X",
        "attempts": 1,
        "error": "e",
        "failed_at": stored(dedup).attached_at,
    }
    with sqlite_database.engine.begin() as connection:
        connection.execute(dead.insert(), [{"table_id": 1, **values}, {"table_id": 2, **values}])
    dedup.detach()
    with sqlite_database.engine.connect() as connection:
        assert connection.execute(select(dead.c.table_id)).scalars().all() == [2]
