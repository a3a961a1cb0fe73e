"""A scan that reads a streaming replica of PostgreSQL, with our tables on the primary or elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from db_dedup import Database, Deduplicator
from db_dedup.errors import DatabaseUnavailableError
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.sample import Sample
from tests import servers
from tests.conftest import private_server
from tests.guest.conftest import sample as sample  # noqa: PLC0414 - a fixture
from tests.scan.conftest import COLUMNS, answer, fill_database
from tests.servers import Server, fresh_database, start_postgresql, start_standby

REPLAY_SECONDS = 30.0


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    """Its commits are written at once, so that the place in its log is past all of them."""
    yield from private_server("postgresql", lambda: start_postgresql(synchronous_commit="on"))


@pytest.fixture(scope="module")
def standby(primary: Server) -> Iterator[Server]:
    def start() -> Server:
        return start_standby(primary, max_standby_streaming_delay="0")

    yield from private_server("postgresql", start)


@pytest.fixture
def database(primary: Server, sample: Sample) -> Iterator[servers.Database]:
    """The primary's, with petitions."""
    with fresh_database(primary) as database:
        fill_database(database.engine, sample)
        yield database


@pytest.fixture
def replica(database: servers.Database, standby: Server) -> Iterator[Engine]:
    """The same database on the replica, which has all that the primary has so far."""
    engine = create_engine(standby.url.set(database=database.engine.url.database))
    try:
        catch_up(database, standby)
        yield engine
    finally:
        engine.dispose()


def on_standby(standby: Server, statement: str) -> object:
    engine = create_engine(standby.url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            return connection.scalar(text(statement))
    finally:
        engine.dispose()


def catch_up(database: servers.Database, standby: Server) -> None:
    with database.engine.connect() as connection:
        place = connection.scalar(text("SELECT pg_current_wal_lsn()"))
    deadline = time.monotonic() + REPLAY_SECONDS
    while not on_standby(standby, f"SELECT pg_last_wal_replay_lsn() >= '{place}'"):
        assert time.monotonic() < deadline, "the replica does not follow"
        time.sleep(0.02)


@pytest.fixture
def paused(standby: Server, replica: Engine) -> Iterator[None]:
    """The replica is behind from now on, until the test ends or lets it go on."""
    del replica
    on_standby(standby, "SELECT pg_wal_replay_pause()")
    deadline = time.monotonic() + REPLAY_SECONDS
    while on_standby(standby, "SELECT pg_get_wal_replay_pause_state()") != "paused":
        assert time.monotonic() < deadline, "the replica does not pause"
        time.sleep(0.02)
    yield
    on_standby(standby, "SELECT pg_wal_replay_resume()")


def watch(database: Database) -> Deduplicator:
    return Deduplicator(database, "petitions", COLUMNS, order="created_at")


@pytest.fixture
def on_primary(database: servers.Database) -> Deduplicator:
    dedup = watch(Database(database.engine))
    dedup.upgrade()
    return dedup


def repeat(database: servers.Database, new_id: int) -> None:
    """Insert a copy of a petition on the primary."""
    with database.engine.begin() as connection:
        names = "title, content, region, created_at"
        found = connection.execute(
            text(
                f"INSERT INTO petitions (id, {names}) SELECT :id, {names} FROM petitions ORDER BY id LIMIT 1"
            ),
            {"id": new_id},
        )
        assert found.rowcount == 1


def drain(dedup: Deduplicator) -> None:
    worker = dedup.worker()
    worker._choice.may_prefer_scan = False
    ChangeWorker([worker]).run(threading.Event(), drain=True)


def is_right(dedup: Deduplicator) -> bool:
    """Whether all is right but for the view of the table's rows, which a scan on the primary makes."""
    found = dedup.verify()
    assert [fault for fault in found.drift if "view duplicates_of_petitions" not in fault] == []
    return replace(found, drift=()).is_right


def test_the_answer_is_that_of_the_primary(
    database: servers.Database, replica: Engine, on_primary: Deduplicator, sqlite_store: servers.Database
) -> None:
    on_primary.scan()
    wanted = answer(on_primary)
    assert len(wanted[0]) > 10
    elsewhere = watch(Database(replica, store=sqlite_store.url))
    elsewhere.upgrade()
    elsewhere.scan()
    assert answer(elsewhere) == wanted
    on_primary.database.uninstall()
    apart = watch(Database(replica, store=database.engine))
    apart.upgrade()
    assert apart.scan().rows == 80
    assert answer(apart) == wanted
    assert apart.verify().is_right


@pytest.mark.usefixtures("paused")
def test_changes_that_the_replica_has_not_are_left_to_the_worker(
    database: servers.Database, standby: Server, replica: Engine, primary: Server
) -> None:
    """Attached on the primary, scanned from the replica: the queue has what the replica has not."""
    on_standby(standby, "SELECT pg_wal_replay_resume()")
    on_primary = watch(Database(database.engine))
    on_primary.upgrade()
    on_primary.attach()
    catch_up(database, standby)
    on_standby(standby, "SELECT pg_wal_replay_pause()")
    repeat(database, 1_000)
    report = watch(Database(replica, store=database.engine)).scan()
    assert (report.rows, report.handled_changes) == (80, 0)
    drain(on_primary)
    assert is_right(on_primary)
    assert "1000" in {key for pair in on_primary.pairs() for key in (pair.key_a, pair.key_b)}
    del primary


@pytest.mark.usefixtures("paused")
def test_a_replica_without_the_triggers_is_refused(
    database: servers.Database, standby: Server, replica: Engine
) -> None:
    on_primary = watch(Database(database.engine))
    on_primary.upgrade()
    repeat(database, 1_000)
    on_primary.attach()
    apart = watch(Database(replica, store=database.engine))
    with pytest.raises(
        DatabaseUnavailableError, match=r"'petitions' is attached, but .* is missing"
    ) as caught:
        apart.scan()
    assert caught.value.is_transient
    on_standby(standby, "SELECT pg_wal_replay_resume()")
    catch_up(database, standby)
    assert apart.scan().rows == 81
    drain(on_primary)
    assert is_right(on_primary)


def test_a_conflict_with_recovery_is_named(
    database: servers.Database, standby: Server, replica: Engine
) -> None:
    apart = Database(replica)
    count = text("SELECT count(*) FROM petitions")
    with apart.source_dialect.read_snapshot(replica) as connection:
        assert connection.scalar(count) == 80
        with database.engine.connect() as ours:
            ours.execution_options(isolation_level="AUTOCOMMIT")
            ours.execute(text("DELETE FROM petitions"))
            ours.execute(text("VACUUM petitions"))
        catch_up(database, standby)
        with pytest.raises(SQLAlchemyError) as caught:
            connection.scalar(count)
    error = apart.source_dialect.translate_error(caught.value)
    assert isinstance(error, DatabaseUnavailableError)
    assert "hot_standby_feedback = on" in str(error)
