"""A scan writes what does not depend on pairs in a thread, while it searches for the pairs."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import select

from db_dedup.jobs.scan import full_scan
from db_dedup.jobs.scan.scanned_table import ScannedRows
from db_dedup.jobs.scan.writing_ahead import AheadWriter, StoredIds
from db_dedup.sample import Sample
from db_dedup.store.reader import Reader
from tests.scan.conftest import answer, fill_database, watch
from tests.servers import Database


@pytest.fixture(autouse=True)
def _every_table_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_scan, "_ROWS_WORTH_NEW_INDEXES", 1)


def test_the_answer_is_the_same_however_late_the_thread_is(
    database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pairs are found before the thread begins to write, and the other way round."""
    fill_database(database.engine, sample)
    pairs_found, has_written = threading.Event(), threading.Event()
    find, write = ScannedRows.with_pairs, AheadWriter.write

    def find_first(rows: ScannedRows) -> Any:
        found = find(rows)
        pairs_found.set()
        return found

    def write_last(writer: AheadWriter, *arguments: Any) -> Any:
        assert pairs_found.wait(60)
        return write(writer, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ScannedRows, "with_pairs", find_first)
        patch.setattr(AheadWriter, "write", write_last)
        dedup = watch(database.engine)
        dedup.scan()
        first = answer(dedup)
        assert dedup.verify().is_right
        dedup.database.uninstall()

    def write_first(writer: AheadWriter, *arguments: Any) -> Any:
        try:
            return write(writer, *arguments)
        finally:
            has_written.set()

    def find_last(rows: ScannedRows) -> Any:
        assert has_written.wait(60)
        return find(rows)

    monkeypatch.setattr(ScannedRows, "with_pairs", find_last)
    monkeypatch.setattr(AheadWriter, "write", write_first)
    dedup = watch(database.engine)
    dedup.scan()
    assert answer(dedup) == first
    assert dedup.verify().is_right


def test_an_error_of_the_thread_is_that_of_the_scan(
    sqlite_database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_database(sqlite_database.engine, sample)

    def fail(*_: object) -> None:
        raise RuntimeError("the disk is on fire")

    dedup = watch(sqlite_database.engine)
    with monkeypatch.context() as patch:
        patch.setattr(AheadWriter, "_write_links", fail)
        with pytest.raises(RuntimeError, match="on fire"):
            dedup.scan()
    dedup.scan()
    assert dedup.verify().is_right


def test_the_thread_stops_if_the_search_fails(
    sqlite_database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_database(sqlite_database.engine, sample)
    has_begun, has_failed = threading.Event(), threading.Event()
    write = AheadWriter.write

    def fail(_: ScannedRows) -> None:
        assert has_begun.wait(60)
        has_failed.set()
        raise ValueError("no pairs today")

    def write_slowly(writer: AheadWriter, scanned: ScannedRows, stop: Any) -> Any:
        has_begun.set()
        assert stop.is_set.wait(60)
        return write(writer, scanned, stop)

    dedup = watch(sqlite_database.engine)
    with monkeypatch.context() as patch:
        patch.setattr(ScannedRows, "with_pairs", fail)
        patch.setattr(AheadWriter, "write", write_slowly)
        with pytest.raises(ValueError, match="no pairs"):
            dedup.scan()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("db-dedup-ahead")]
    row = dedup.database.tables.fingerprint.c
    with sqlite_database.engine.connect() as connection:
        assert connection.execute(select(row.id).where(row.copy_of.is_not(None))).first() is None
    dedup.scan()
    assert dedup.verify().is_right


def test_a_row_that_is_not_stored_is_an_error_and_not_another_row() -> None:
    store: Any = SimpleNamespace(ids_and_keys=lambda _: iter([(7, "a"), (9, "gone")]))
    found = StoredIds.read(Reader.of(cast("Any", None)), store, ["a"])
    assert (found[0].tolist(), found[1]) == ([7], [9])
    with pytest.raises(KeyError, match="b"):
        StoredIds.read(Reader.of(cast("Any", None)), store, ["a", "b"])
