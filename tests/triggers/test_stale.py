"""Triggers that miss changes are noticed: after a switch that died, where somebody dropped or disabled one,
or where a host's migration was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest
from sqlalchemy import create_engine, make_url, text

from db_dedup import Database as DedupDatabase
from db_dedup import Deduplicator, view_aside
from db_dedup.app.table_triggers import TableTriggers
from db_dedup.errors import DatabaseUnavailableError, TriggerError
from db_dedup.jobs.objects.attachment import AttachmentState
from db_dedup.jobs.worker.change_worker import ChangeWorker
from tests.dialects.tables import run
from tests.servers import Database
from tests.thorough import MYSQL
from tests.triggers.conftest import PETITIONS, attached, petitions
from tests.triggers.test_attachment import impatient, stored, trigger

ROWS = (
    "INSERT INTO petitions VALUES (1, 'the street lamp is broken again', 'x', '1', 'it is dark at night'), "
    "(2, 'the street lamp is broken again', 'x', '2', 'quite other words')"
)
UNSEEN = "UPDATE petitions SET status = 'it is dark at night' WHERE id = 2"
"""What triggers for the narrow settings do not see."""


class KilledError(BaseException):
    """The process has died here."""


@pytest.fixture
def narrow(database: Database) -> Deduplicator:
    """Attached and scanned; only one column counts."""
    dedup = petitions(database, ROWS)
    dedup.scan()
    return dedup


def wide(narrow: Deduplicator) -> Deduplicator:
    """The same table by settings that count another column, too."""
    return Deduplicator(narrow.database, "petitions", {"body": 1, "status": 1})


def scan_and_die(dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan whose process dies after the switch, before it makes the triggers."""

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(TableTriggers, "follow_settings", die)
        with pytest.raises(KilledError):
            dedup.scan()


def drain(dedup: Deduplicator) -> int:
    """Work until nothing is queued; gives how many scans it took."""
    done: list[bool] = []
    worker = ChangeWorker([dedup.worker()], on_batch=lambda batch: done.append(batch.is_scan))
    worker.run(threading.Event(), drain=True)
    return sum(done)


def check_blocking(dedup: Deduplicator) -> list[str]:
    with dedup.database.engine.begin() as connection:
        record = {"body": "the street lamp is broken again", "status": "it is dark at night"}
        return sorted(match.row_key for match in dedup.check(record, connection, block=True))


def assert_noticed(dedup: Deduplicator, words: str) -> None:
    """A check that blocks refuses, and the worker mends what is wrong."""
    with pytest.raises(TriggerError, match=rf"miss changes \(.*{words}.*run `db-dedup attach petitions`"):
        check_blocking(dedup)
    assert drain(dedup) == 1
    assert dedup.trigger_state().state is AttachmentState.INTACT
    assert dedup.verify().is_right
    assert check_blocking(dedup) == ["1", "2"]


def test_a_switch_that_died_before_the_triggers_were_made(
    database: Database, narrow: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    dedup = wide(narrow)
    scan_and_die(dedup, monkeypatch)
    assert stored(dedup).trigger_digest is None
    (entry,) = dedup.database.status()
    assert entry.triggers == "stale"
    run(database, UNSEEN)
    assert not dedup.verify().is_right
    assert_noticed(dedup, "other settings")


def test_a_running_worker_notices_the_switch(
    database: Database, narrow: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Deduplicator(narrow.database, "petitions").worker()
    assert worker.step() is None or worker.step() is None
    dedup = wide(narrow)
    scan_and_die(dedup, monkeypatch)
    run(database, UNSEEN)
    batch = worker.step()
    assert batch is not None
    assert batch.is_scan
    assert dedup.verify().is_right


def test_the_next_scan_makes_them_too(
    database: Database, narrow: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    dedup = wide(narrow)
    scan_and_die(dedup, monkeypatch)
    run(database, UNSEEN)
    dedup.scan()
    assert dedup.trigger_state().state is AttachmentState.INTACT
    assert dedup.verify().is_right


def test_settings_that_need_the_same_triggers_mark_nothing(
    narrow: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan_and_die(Deduplicator(narrow.database, "petitions", {"body": 5}, threshold=0.9), monkeypatch)
    assert stored(narrow).trigger_digest is not None
    assert Deduplicator(narrow.database, "petitions").trigger_state().state is AttachmentState.INTACT


def test_triggers_planned_before_a_switch_are_not_taken_for_right(narrow: Deduplicator) -> None:
    """Attaching began by the old settings, and ends after the switch to the new ones."""
    database = narrow.database
    with database.engine.connect() as connection:
        late = narrow._triggers().attachment(connection)
    wide(narrow).scan()
    with (
        pytest.raises(DatabaseUnavailableError, match="switched 'petitions' to other settings"),
        database.dialect.write_transaction(database.engine) as connection,
    ):
        late.attach(connection)
    drain(Deduplicator(database, "petitions"))
    assert wide(narrow).verify().is_right
    assert wide(narrow).trigger_state().state is AttachmentState.INTACT


@pytest.mark.parametrize("database", ["postgresql", "mariadb", MYSQL], indirect=True)
def test_a_scan_whose_table_is_busy_has_finished_and_says_so(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has no such moment: whoever keeps the triggers from being made keeps the switch away, too."""
    for module in ("postgresql", "mysql"):
        monkeypatch.setattr(f"db_dedup.dialects.{module}.triggers.TABLE_LOCK_SECONDS", 1)
    dedup = petitions(database, ROWS)
    dedup.scan()
    again = wide(Deduplicator(DedupDatabase(impatient(database)), "petitions"))
    with database.engine.begin() as busy:
        busy.execute(text("UPDATE petitions SET region = 'y' WHERE id = 1"))
        with pytest.raises(
            DatabaseUnavailableError, match=r"has finished .*triggers.* busy .*`db-dedup attach petitions`"
        ):
            again.scan()
    (entry,) = dedup.database.status()
    assert entry.last_scan_state == "finished"
    run(database, UNSEEN)
    assert_noticed(again, "other settings")
    again.database.engine.dispose()


def test_a_dropped_trigger(database: Database, narrow: Deduplicator) -> None:
    run(database, f"DROP TRIGGER {trigger(database, 'update')}", UNSEEN.replace("status", "body"))
    with pytest.raises(TriggerError, match="dedup_petitions_1_update is missing"):
        check_blocking(narrow)
    assert drain(narrow) == 1
    assert narrow.verify().is_right


@pytest.mark.parametrize("how", ["ALL", "dedup_petitions_1_update"])
def test_a_disabled_trigger(postgresql_database: Database, how: str) -> None:
    dedup = petitions(postgresql_database, ROWS)
    dedup.scan()
    run(
        postgresql_database,
        f"ALTER TABLE petitions DISABLE TRIGGER {how}",
        UNSEEN.replace("status", "body"),
    )
    with pytest.raises(TriggerError, match=r"dedup_petitions_1_update is disabled"):
        check_blocking(dedup)
    assert drain(dedup) == 1
    assert dedup.verify().is_right


def test_a_running_worker_looks_again_from_time_to_time(
    database: Database, narrow: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = narrow.worker()
    while worker.step() is not None:
        pass
    run(database, f"DROP TRIGGER {trigger(database, 'update')}")
    assert worker.step() is None
    monkeypatch.setattr("db_dedup.jobs.worker.trigger_guard._SECONDS_BETWEEN_LOOKS", 0.0)
    batch = worker.step()
    assert batch is not None
    assert batch.is_scan
    assert narrow.trigger_state().state is AttachmentState.INTACT


KILLED_MIGRATION = """
import os, signal, sys
from sqlalchemy import create_engine
from db_dedup import view_aside
with view_aside(create_engine(sys.argv[1]), "petitions"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_migration_of_the_host_that_was_killed(database: Database, narrow: Deduplicator) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED_MIGRATION, database.url], check=False)
    assert killed.returncode == -signal.SIGKILL
    run(database, UNSEEN.replace("status", "body"))
    with pytest.raises(TriggerError, match=r"is missing"):
        check_blocking(narrow)
    assert drain(narrow) == 1
    assert narrow.verify().is_right


def test_a_worker_waits_for_a_migration_of_the_host(mariadb_database: Database) -> None:
    """There each statement of the migration is committed, so that the worker sees the triggers missing."""
    dedup = petitions(mariadb_database, ROWS)
    dedup.scan()
    done = threading.Event()

    def work() -> None:
        drain(dedup)
        done.set()

    worker = threading.Thread(target=work, daemon=True)
    with mariadb_database.engine.connect() as connection:
        with view_aside(connection, "petitions"):
            worker.start()
            assert not done.wait(1.0)
            assert dedup.trigger_state().state is AttachmentState.MISSING
            connection.execute(text("ALTER TABLE petitions DROP COLUMN region"))
        connection.commit()
    worker.join()
    run(mariadb_database, "UPDATE petitions SET body = 'something else' WHERE id = 1")
    drain(dedup)
    assert dedup.verify().is_right


def test_a_worker_never_undoes_a_detach(database: Database, narrow: Deduplicator) -> None:
    worker = narrow.worker()
    run(database, f"DROP TRIGGER {trigger(database, 'update')}")
    narrow._triggers().detach(narrow._access.find_stored)
    assert narrow._triggers().mend() == []
    assert narrow.trigger_state().state is AttachmentState.NOT_ATTACHED
    del worker


def test_a_worker_without_the_right_names_the_command(postgresql_database: Database) -> None:
    dedup = petitions(postgresql_database, ROWS)
    dedup.scan()
    run(
        postgresql_database,
        f"DROP TRIGGER {trigger(postgresql_database, 'update')}",
        "CREATE ROLE dedup_test_worker LOGIN",
        "GRANT ALL ON SCHEMA dedup TO dedup_test_worker",
        "GRANT ALL ON ALL TABLES IN SCHEMA dedup TO dedup_test_worker",
        "GRANT SELECT ON petitions TO dedup_test_worker",
    )
    engine = create_engine(make_url(postgresql_database.url).set(username="dedup_test_worker"))
    try:
        with pytest.raises(
            TriggerError, match=r"update is missing.*must be owner.*`db-dedup attach petitions`"
        ):
            drain(Deduplicator(engine, "petitions"))
    finally:
        engine.dispose()
        run(postgresql_database, "DROP OWNED BY dedup_test_worker", "DROP ROLE dedup_test_worker")


def test_hidden_triggers_are_taken_for_sound(mariadb_database: Database) -> None:
    """An account without the right TRIGGER cannot see them; nobody can disable one there."""
    run(mariadb_database, PETITIONS, ROWS)
    attached(mariadb_database).scan()
    name = make_url(mariadb_database.url).database
    run(
        mariadb_database,
        "CREATE USER dedup_test_checker",
        f"GRANT SELECT ON {name}.* TO dedup_test_checker",
        f"GRANT UPDATE ON {name}.dedup_watched_table TO dedup_test_checker",
    )
    engine = create_engine(make_url(mariadb_database.url).set(username="dedup_test_checker", password=None))
    try:
        assert check_blocking(Deduplicator(engine, "petitions")) == ["1", "2"]
    finally:
        engine.dispose()
        run(mariadb_database, "DROP USER dedup_test_checker")
