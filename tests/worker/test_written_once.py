"""What a worker writes of a new or changed row: the row with its sketch, in one statement."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import delete, update

from tests.bands import assert_bands_are_exact
from tests.worker.conftest import body, change, drain_by, is_right, worker_without_scans, write
from tests.worker.watched import Watched

Updates = list[tuple[tuple[str, ...], int]]
"""(columns, how many rows) of each update of the stored rows."""


@pytest.fixture
def updates(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> Updates:
    """The updates of the stored rows, without those of no row."""
    noted: Updates = []
    database = watched.dedup.database
    original = database.dialect.bulk_update

    def bulk_update(connection: Any, table: Any, key: str, columns: Sequence[str], rows: Any) -> None:
        rows = list(rows)
        if rows and table is database.tables.fingerprint:
            noted.append((tuple(columns), len(rows)))
        original(connection, table, key, columns, rows)

    monkeypatch.setattr(type(database.dialect), "bulk_update", staticmethod(bulk_update))
    return noted


def test_new_rows_are_stored_with_their_sketches(watched: Watched, updates: Updates) -> None:
    worker = worker_without_scans(watched)
    write(watched, range(3))
    drain_by(worker)
    assert updates == []
    assert watched.dedup.verify().is_right


def test_a_changed_text_is_one_update(watched: Watched, updates: Updates) -> None:
    worker = worker_without_scans(watched)
    write(watched, range(3))
    drain_by(worker)
    for text in ("nothing that any other row has", "something else that no row has"):
        change(watched, 1, text)
        drain_by(worker)
    assert [count for _, count in updates] == [1, 1]
    assert all({"fingerprint", "sketch", "feature_set"} <= set(columns) for columns, _ in updates)
    assert watched.dedup.verify().is_right


def test_a_new_exact_duplicate_has_no_sketch(watched: Watched) -> None:
    worker = worker_without_scans(watched)
    write(watched, range(12))  # from the ninth on they equal earlier ones of the same batch
    drain_by(worker)
    write(watched, range(12, 14))
    drain_by(worker)
    assert is_right(watched)
    assert watched.dedup.verify().is_right


def test_a_new_row_with_the_new_text_of_a_changed_one_has_no_sketch(watched: Watched) -> None:
    """They are of one batch, and before it no row has their text."""
    worker = worker_without_scans(watched)
    write(watched, range(3))
    drain_by(worker)
    write(watched, (3,))
    change(watched, 0, body(3))
    drain_by(worker)
    assert is_right(watched)
    assert_bands_are_exact(watched.dedup, watched.letters.name)


def test_no_entry_is_left_of_rows_that_are_gone_or_have_another_text(watched: Watched) -> None:
    """A look-up would find the rows in vain, and so would one of another row that gets the id of one."""
    worker = worker_without_scans(watched)
    write(watched, range(4))
    drain_by(worker)
    with watched.dedup.database.engine.begin() as connection:
        connection.execute(delete(watched.letters).where(watched.letters.c.id == 1))
    change(watched, 2, "two words")
    change(watched, 3, "nothing that any other row has")
    drain_by(worker)
    assert assert_bands_are_exact(watched.dedup, watched.letters.name) == 2


def test_a_row_that_becomes_a_copy_by_its_order_alone_has_no_sketch(watched: Watched) -> None:
    """Its text stays, and so would its sketch, while the entries of the sketch are gone."""
    worker = worker_without_scans(watched)
    write(watched, (0, 9))
    drain_by(worker)
    with watched.dedup.database.engine.begin() as connection:
        first = watched.letters.c.id == 0
        connection.execute(update(watched.letters).where(first).values(received=10))
    drain_by(worker)
    assert is_right(watched)
    assert assert_bands_are_exact(watched.dedup, watched.letters.name) == 1


def test_a_row_whose_text_an_earlier_one_gets_has_no_sketch(watched: Watched) -> None:
    worker = worker_without_scans(watched)
    write(watched, (9,))
    drain_by(worker)
    write(watched, (0,))
    drain_by(worker)
    assert is_right(watched)
    assert assert_bands_are_exact(watched.dedup, watched.letters.name) == 1
