"""Going back to a revision without segments."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect, select, text

from db_dedup.sample import Sample
from db_dedup.store import index_building
from db_dedup.store.changed_rows import mark_changed
from db_dedup.store.segments import find_generation
from tests.scan.conftest import fill_database, watch
from tests.scan.indexes import stored_table
from tests.servers import Database

BEFORE_SEGMENTS = "0005"


class StoppedError(Exception):
    """Ends a scan before its answer is written."""


def fail(*_: object, **__: object) -> None:
    raise StoppedError


@pytest.mark.parametrize("is_finished", [False, True])
def test_no_scan_takes_up_rows_whose_sketches_are_not_stored(
    sqlite_database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch, *, is_finished: bool
) -> None:
    fill_database(sqlite_database.engine, sample)
    dedup = watch(sqlite_database.engine)
    if is_finished:
        dedup.scan()
    else:
        monkeypatch.setattr("db_dedup.jobs.scan.full_scan.AnswerDifference.of", fail)
        with pytest.raises(StoppedError):
            dedup.scan()
    tables = dedup.database.tables
    dedup.database.downgrade(BEFORE_SEGMENTS)
    with sqlite_database.engine.connect() as connection:
        assert connection.execute(select(tables.fingerprint.c.id).limit(1)).first() is not None
        assert set(connection.execute(select(tables.scan.c.recipe_digest)).scalars()) == {""}
        assert connection.execute(text("SELECT recipe FROM dedup_watched_table")).scalars().all() == [None]


@pytest.mark.parametrize("has_changed", [False, True])
def test_an_answer_whose_entries_are_divided_serves_no_earlier_version(
    sqlite_database: Database, sample: Sample, *, has_changed: bool
) -> None:
    """Of a row that has changed a part of the hashes is in the segments alone."""
    fill_database(sqlite_database.engine, sample)
    dedup = watch(sqlite_database.engine)
    dedup.scan()
    database, (_, store) = dedup.database, stored_table(dedup)
    if has_changed:
        with database.dialect.write_transaction(database.engine) as connection:
            generation = find_generation(connection, store)
            assert generation is not None
            mark_changed(connection, store, generation, [1, 2])
    database.downgrade("0016")
    with sqlite_database.engine.connect() as connection:
        recipes = connection.execute(text("SELECT recipe FROM dedup_watched_table")).scalars().all()
    assert recipes == [None if has_changed else store.recipe]
    database.upgrade()
    assert dedup.scan().pairs > 0
    assert dedup.verify().is_right


def test_indexes_that_a_scan_has_put_off_are_made_before(sqlite_database: Database) -> None:
    """An earlier version would never make them."""
    dedup = watch(sqlite_database.engine)
    database = dedup.database
    index_building.put_off_indexes(database.engine, database.dialect, database.tables)
    fingerprint = database.tables.fingerprint
    assert inspect(database.engine).get_indexes(str(fingerprint.name)) == []
    database.downgrade(BEFORE_SEGMENTS)
    later = {database.tables.namespace.name("fingerprint_group_size")}
    found = {index["name"] for index in inspect(database.engine).get_indexes(str(fingerprint.name))}
    assert found == {index.name for index in fingerprint.indexes} - later
