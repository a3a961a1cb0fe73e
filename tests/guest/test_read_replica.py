"""A scan that reads a streaming replica of PostgreSQL, with our tables on the primary or elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from db_dedup import Database, Deduplicator
from db_dedup.errors import DatabaseError, DatabaseUnavailableError
from db_dedup.jobs.scan import replicas
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.progress import NullProgress, Progress
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
    """It waits for a query less long than a test waits for it, and longer than a scan here takes."""
    yield from private_server("postgresql", lambda: start_standby(primary, max_standby_streaming_delay="10s"))


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
            found = connection.execute(text(statement))
            return found.scalar() if found.returns_rows else None
    finally:
        engine.dispose()


def catch_up(database: servers.Database, standby: Server) -> None:
    with database.engine.connect() as connection:
        place = connection.scalar(text("SELECT pg_current_wal_lsn()"))
    deadline = time.monotonic() + REPLAY_SECONDS
    while not on_standby(standby, f"SELECT pg_last_wal_replay_lsn() >= '{place}'"):
        assert time.monotonic() < deadline, "the replica does not follow"
        time.sleep(0.02)


def pause(standby: Server) -> None:
    """Let the replica be behind from now on."""
    on_standby(standby, "SELECT pg_wal_replay_pause()")
    deadline = time.monotonic() + REPLAY_SECONDS
    while on_standby(standby, "SELECT pg_get_wal_replay_pause_state()") != "paused":
        assert time.monotonic() < deadline, "the replica does not pause"
        time.sleep(0.02)


def resume(standby: Server) -> None:
    on_standby(standby, "SELECT pg_wal_replay_resume()")


@pytest.fixture
def paused(standby: Server, replica: Engine) -> Iterator[None]:
    """The replica is behind from now on, until the test ends or lets it go on."""
    del replica
    pause(standby)
    yield
    resume(standby)


def watch(database: Database, progress: Progress | None = None, **options: Any) -> Deduplicator:
    return Deduplicator(database, "petitions", COLUMNS, order="created_at", progress=progress, **options)


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


def attach(database: servers.Database, standby: Server) -> Deduplicator:
    """Attach the table on the primary, and let the replica have the triggers."""
    dedup = watch(Database(database.engine))
    dedup.upgrade()
    dedup.attach()
    catch_up(database, standby)
    return dedup


class CallsAt(NullProgress):
    """Calls a function when a step begins, once."""

    def __init__(self, step: str, call: Callable[[], object]) -> None:
        self._step, self._call = step, call
        self.is_called = False

    def start(self, step: str, total: int | None) -> None:
        del total
        if step == self._step and not self.is_called:
            self.is_called = True
            self._call()


def test_changes_that_the_replica_has_not_are_left_to_the_worker(
    database: servers.Database, standby: Server, replica: Engine
) -> None:
    """A row is inserted on the primary when the scan has begun: the queue has what the replica has not."""
    on_primary = attach(database, standby)

    def fall_behind() -> None:
        pause(standby)
        repeat(database, 1_000)

    try:
        apart = Database(replica, store=database.engine)
        report = watch(apart, CallsAt("fingerprints", fall_behind)).scan()
    finally:
        resume(standby)
    assert (report.rows, report.handled_changes) == (80, 0)
    drain(on_primary)
    assert is_right(on_primary)
    assert "1000" in {key for pair in on_primary.pairs() for key in (pair.key_a, pair.key_b)}


@pytest.mark.parametrize("options", [{}, {"threshold": 0.6}])
def test_a_scan_waits_until_the_replica_has_what_the_worker_has_handled(
    database: servers.Database, standby: Server, replica: Engine, options: dict[str, Any]
) -> None:
    """Else it would write former rows back, and no change would be left that repairs them."""
    on_primary = attach(database, standby)
    on_primary.scan()
    catch_up(database, standby)
    pause(standby)
    try:
        repeat(database, 1_000)
        with database.engine.begin() as connection:
            connection.execute(text("DELETE FROM petitions WHERE id = 3"))
            connection.execute(
                text(
                    "UPDATE petitions SET content = (SELECT content FROM petitions WHERE id = 8) WHERE id = 5"
                )
            )
        drain(on_primary)
        assert is_right(on_primary)
        resuming = CallsAt("waiting for the replica", lambda: resume(standby))
        apart = watch(Database(replica, store=database.engine), resuming, **options)
        apart.scan()
    finally:
        resume(standby)
    assert is_right(watch(Database(database.engine), **options))
    assert resuming.is_called


@pytest.mark.usefixtures("replica")
def test_a_replica_that_stays_behind_is_refused(
    database: servers.Database, standby: Server, replica: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "MOST_WAIT_SECONDS", 0.0)
    on_primary = attach(database, standby)
    apart = watch(Database(replica, store=database.engine))
    pause(standby)
    try:
        with pytest.raises(DatabaseUnavailableError, match="the replica is behind") as caught:
            apart.scan()
    finally:
        resume(standby)
    assert caught.value.is_transient
    assert on_primary.scan().rows == 80, "the lease was given back"


def test_the_account_that_reads_the_replica_needs_one_grant_more(
    database: servers.Database, standby: Server, replica: Engine
) -> None:
    on_primary = attach(database, standby)
    with database.engine.begin() as connection:
        connection.execute(text("CREATE ROLE replica_reader LOGIN"))
        connection.execute(text("GRANT SELECT ON petitions TO replica_reader"))
        connection.execute(text("GRANT USAGE ON SCHEMA dedup TO replica_reader"))
    reader = create_engine(replica.url.set(username="replica_reader"))
    try:
        apart = watch(Database(reader, store=database.engine))
        catch_up(database, standby)
        with pytest.raises(DatabaseError, match=r"GRANT SELECT ON dedup\.watched_table"):
            apart.scan()
        with database.engine.begin() as connection:
            connection.execute(text("GRANT SELECT ON dedup.watched_table TO replica_reader"))
        catch_up(database, standby)
        assert apart.scan().rows == 80
    finally:
        reader.dispose()
        with database.engine.begin() as connection:
            connection.execute(text("DROP OWNED BY replica_reader"))
            connection.execute(text("DROP ROLE replica_reader"))
    assert is_right(on_primary)


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
    resume(standby)
    catch_up(database, standby)
    assert apart.scan().rows == 81
    drain(on_primary)
    assert is_right(on_primary)


@pytest.fixture
def impatient(standby: Server, replica: Engine) -> Iterator[None]:
    """The replica ends a query at once that does not let it replay changes."""
    del replica
    on_standby(standby, "ALTER SYSTEM SET max_standby_streaming_delay = 0")
    on_standby(standby, "SELECT pg_reload_conf()")
    yield
    on_standby(standby, "ALTER SYSTEM RESET max_standby_streaming_delay")
    on_standby(standby, "SELECT pg_reload_conf()")


@pytest.mark.usefixtures("impatient")
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
