"""A scan holds the row of a watched table for long: nobody locks the host's table while they wait for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest
from sqlalchemy import Engine, text

from db_dedup import Deduplicator, view_aside
from db_dedup.errors import DatabaseUnavailableError
from db_dedup.jobs.objects.table_view import TableView
from db_dedup.sample import Sample
from db_dedup.store.inspection import inspect_table
from db_dedup.store.source import Source
from db_dedup.store.watched_tables import find_table
from tests.scan.conftest import fill_database, watch
from tests.servers import Database

WAITING = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
USE = (
    "LOCK TABLE petitions IN ROW EXCLUSIVE MODE NOWAIT",
    "LOCK TABLE dedup.duplicates_of_petitions IN ACCESS SHARE MODE NOWAIT",
)


def set_view_aside(dedup: Deduplicator) -> None:
    with view_aside(dedup.database.engine, "petitions"):
        pass


def make_view_again(dedup: Deduplicator) -> None:
    database = dedup.database
    with database.engine.begin() as connection:
        connection.execute(text("ALTER TABLE petitions ADD COLUMN closed_at timestamp"))
    with database.engine.begin() as connection:
        stored = find_table(connection, database.tables, "petitions")
        assert stored is not None
        source = Source(database.dialect, inspect_table(connection, "petitions"), stored.watched)
        TableView(database.dialect, database.tables, source).refresh(connection, stored)


DDL: dict[str, Callable[[Deduplicator], object]] = {
    "detach": Deduplicator.detach,
    "downgrade": lambda dedup: dedup.database.downgrade("base"),
    "uninstall": lambda dedup: dedup.database.uninstall(),
    "view_aside": set_view_aside,
}


@pytest.fixture
def attached(postgresql_database: Database, sample: Sample) -> Deduplicator:
    fill_database(postgresql_database.engine, sample)
    dedup = watch(postgresql_database.engine)
    dedup.scan()
    dedup.attach()
    return dedup


@pytest.mark.parametrize("kind", [*DDL, "view"])
def test_the_host_s_table_can_be_used_meanwhile(attached: Deduplicator, kind: str) -> None:
    engine = attached.database.engine
    with ThreadPoolExecutor() as pool, engine.connect() as scan:
        scan.execute(text("SELECT * FROM dedup.watched_table FOR UPDATE"))
        result = pool.submit({**DDL, "view": make_view_again}[kind], attached)
        wait_until_one_waits(engine)
        try:
            for statement in USE:
                with engine.begin() as host:
                    host.execute(text(statement))
        finally:
            scan.rollback()
            result.result(60)


@pytest.mark.parametrize("kind", DDL)
def test_the_wait_ends(attached: Deduplicator, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("db_dedup.dialects.postgresql.triggers.TABLE_LOCK_SECONDS", 1)
    with attached.database.engine.connect() as scan:
        scan.execute(text("SELECT * FROM dedup.watched_table FOR UPDATE"))
        with pytest.raises(DatabaseUnavailableError, match="busy"):
            DDL[kind](attached)
    assert not attached.verify().drift


def wait_until_one_waits(engine: Engine) -> None:
    with engine.connect() as connection:
        while not connection.scalar(WAITING):
            connection.rollback()
            sleep(0.02)
