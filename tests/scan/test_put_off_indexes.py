"""A first scan makes the indexes of the fingerprint table after its rows, and no answer is shown without."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Connection, Index, Integer, Text, cast, func, literal_column, select, update

from db_dedup import Deduplicator
from db_dedup.errors import DatabaseUnavailableError
from db_dedup.jobs.scan import full_scan
from db_dedup.progress import NullProgress
from db_dedup.sample import Sample
from db_dedup.schema.indexes import missing_indexes
from db_dedup.store import index_building
from tests.scan.conftest import fill_database, watch
from tests.servers import Database


class Watching(NullProgress):
    """Counts the missing indexes when a step begins."""

    dedup: Deduplicator

    def __init__(self) -> None:
        self.missing: dict[str, int] = {}

    def start(self, step: str, total: int | None) -> None:  # noqa: ARG002 - part of the protocol
        self.missing[step] = count_missing(self.dedup)


def count_missing(dedup: Deduplicator) -> int:
    with dedup.database.engine.connect() as connection:
        return len(missing_indexes(connection, dedup.database.tables))


def scan_watched(dedup: Deduplicator, progress: Watching) -> dict[str, int]:
    progress.dedup = dedup
    progress.missing = {}
    dedup.scan()
    return progress.missing


@pytest.fixture
def every_table_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_scan, "_ROWS_WORTH_NEW_INDEXES", 1)


@pytest.mark.usefixtures("every_table_is_long")
def test_only_a_first_scan_puts_them_off(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    progress = Watching()
    dedup = watch(database.engine, progress=progress)
    first = scan_watched(dedup, progress)
    # Where an update leaves other indexes alone, those without groups are made while pairs are searched.
    of_groups = 8 if dedup.database.dialect.capabilities.updates_all_indexes else 2
    assert (first["fingerprints"], first["writing the answer"], first["indexes"]) == (8, of_groups, of_groups)
    assert count_missing(dedup) == 0
    assert dedup.verify().is_right
    again = watch(database.engine, progress=progress, preset="strict")
    assert set(scan_watched(again, progress).values()) == {0}


@pytest.mark.usefixtures("every_table_is_long")
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_former_versions_of_rows_take_no_space(database: Database, sample: Sample) -> None:
    """PostgreSQL leaves the former version of each row that got a group where it was."""
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    table, place = dedup.database.tables.fingerprint, cast(literal_column("ctid"), Text)
    pages = cast(func.split_part(func.ltrim(place, "("), ",", 1), Integer)
    with dedup.database.engine.connect() as connection:
        in_groups = select(func.count()).where(table.c.group_id.is_not(None))
        assert connection.execute(in_groups).scalar_one() > 0
        rows = connection.execute(select(pages, func.count()).select_from(table).group_by(pages)).all()
        places = cast(func.split_part(func.rtrim(place, ")"), ",", 2), Integer)
        highest = connection.execute(select(pages, func.max(places)).select_from(table).group_by(pages)).all()
    # The rows of each page are numbered from 1, so a number is left out where a row has been.
    assert sorted(rows) == sorted(highest)


def test_a_small_table_keeps_them(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    progress = Watching()
    assert set(scan_watched(watch(database.engine, progress=progress), progress).values()) == {0}


def test_a_missing_one_is_reported_and_an_upgrade_makes_it(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    gone = next(i for i in dedup.database.tables.fingerprint.indexes if str(i.name).endswith("block_2"))
    with database.engine.begin() as connection:
        gone.drop(connection)
    found = dedup.verify()
    assert not found.is_right
    assert found.drift == (f"the index {gone.name} is missing: `db-dedup upgrade` makes it again",)
    dedup.upgrade()
    assert dedup.verify().is_right


@pytest.mark.usefixtures("every_table_is_long")
def test_the_lease_is_renewed_after_each_of_them(
    sqlite_database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes longer than a lease here, and the heartbeat cannot write meanwhile."""
    fill_database(sqlite_database.engine, sample)
    dedup = watch(sqlite_database.engine)
    watched = dedup.database.tables.watched_table
    ended = datetime(2000, 1, 1)
    make, held = Index.create, []

    def make_slowly(index: Index, connection: Connection) -> None:
        held.append(connection.execute(select(watched.c.lease_until)).scalar_one() != ended)
        make(index, connection)
        connection.execute(update(watched).values(lease_until=ended))

    monkeypatch.setattr(Index, "create", make_slowly)
    dedup.scan()
    assert held == [True] * 8


@pytest.mark.parametrize("database", ["postgresql", "mariadb", "mysql"], indirect=True)
def test_a_transaction_that_never_ends_does_not_keep_everybody_waiting(
    database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB would wait for a day, and readers of the answer behind it."""
    fill_database(database.engine, sample)
    monkeypatch.setattr(full_scan, "_ROWS_WORTH_NEW_INDEXES", 1)
    monkeypatch.setattr(index_building, "_ATTEMPTS", 2)
    monkeypatch.setattr(index_building, "_PAUSE_SECONDS", 0.0)
    for name in ("mysql", "postgresql"):
        monkeypatch.setattr(f"db_dedup.dialects.{name}.triggers.TABLE_LOCK_SECONDS", 1)
    dedup = watch(database.engine)
    dedup.upgrade()
    row = dedup.database.tables.fingerprint
    put_off = index_building.put_off_indexes

    # By the other levels a change of no row locks what is inserted, too.
    weakest = database.engine.execution_options(isolation_level="READ COMMITTED")
    with weakest.connect() as other:

        def putting_off(*arguments: Any) -> None:
            put_off(*arguments)
            other.execute(update(row).values(form=1).where(row.c.id == -1))

        monkeypatch.setattr(full_scan, "put_off_indexes", putting_off)
        with pytest.raises(DatabaseUnavailableError, match="end the transaction that has used it"):
            dedup.scan()
        other.rollback()
        monkeypatch.setattr(full_scan, "put_off_indexes", put_off)
        dedup.scan()
    assert count_missing(dedup) == 0
    assert dedup.verify().is_right
