"""The order of changes: of one millisecond, and in a table whose places are used again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import delete, insert, text, update

from db_dedup.store import changes, neighbours
from db_dedup.store.changes import DELETED, INSERTED, SEARCH_AGAIN, UPDATED, Change
from tests.servers import Database
from tests.worker.conftest import (
    body,
    change,
    drain,
    is_right,
    queue_changes,
    table_id,
    worker_without_scans,
    write,
)
from tests.worker.watched import Watched


def replace_row(watched: Watched, number: int, content: str) -> None:
    """Delete a row and insert it again, in one transaction."""
    table = watched.letters
    with watched.dedup.database.engine.begin() as connection:
        connection.execute(delete(table).where(table.c.id == number))
        values = {"id": number, "body": content, "region": "A", "received": number}
        connection.execute(insert(table).values(values))


def take(watched: Watched, limit: int) -> list[Change]:
    database = watched.dedup.database
    with database.dialect.write_transaction(database.engine) as connection:
        number = table_id(watched)
        return changes.take_changes(connection, database.dialect, database.tables, number, limit)


def test_changes_of_a_row_are_taken_in_their_order(watched: Watched) -> None:
    write(watched, range(12))
    take(watched, 1_000)
    for number in range(12):
        replace_row(watched, number, body(number + 1))
    taken = take(watched, 1_000)
    assert len(taken) == 24
    for number in range(12):
        own = [operation for key, operation in taken if key == str(number)]
        assert own == [DELETED, INSERTED]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_changes_in_places_that_became_free_come_last(watched: Watched, database: Database) -> None:
    write(watched, range(400))
    take(watched, 200)
    change_table = watched.dedup.database.tables.change
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"VACUUM {change_table}"))
    write(watched, range(400, 500))
    assert [int(key) for key, _ in take(watched, 1_000)] == list(range(200, 500))


def test_a_row_is_searched_again_whatever_the_order_of_its_changes() -> None:
    for operations in ((UPDATED, DELETED, INSERTED), (UPDATED, INSERTED, DELETED), (SEARCH_AGAIN,)):
        assert changes.searched_again([Change("7", operation) for operation in operations]) == {"7"}
    assert changes.searched_again([Change("7", DELETED)]) == set()


def test_a_row_that_gets_its_stored_text_back_is_found(watched: Watched) -> None:
    """Its pair is left out while its text is another one; deletion and insertion are of one millisecond."""
    write(watched, (0, 1))
    drain(watched)
    one_by_one = watched.dedup.worker(1)
    one_by_one._choice.may_prefer_scan = False
    for _ in range(6):
        change(watched, 1, body(0) + " x")
        change(watched, 0, body(2))
        assert one_by_one.step() is not None
        replace_row(watched, 0, body(0))
        worker_without_scans(watched).step()
        assert is_right(watched)
        change(watched, 1, body(1))
        drain(watched)


def test_a_change_that_leaves_a_canonical_row_as_it_is_loads_no_class(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class may have as many rows as the table."""
    with watched.dedup.database.engine.begin() as connection:
        rows = [{"id": i, "body": body(0), "region": "A", "received": i} for i in range(1, 7)]
        connection.execute(insert(watched.letters), rows)
    write(watched, (9, 12))
    drain(watched)
    asked: list[bytes] = []
    original = neighbours.rows_of_digests

    def rows_of_digests(connection: Any, store: Any, digests: Sequence[bytes]) -> Any:
        asked.extend(digests)
        return original(connection, store, digests)

    monkeypatch.setattr(neighbours, "rows_of_digests", rows_of_digests)
    queue_changes(watched, ["1"])
    drain(watched)
    assert asked == []
    assert is_right(watched)
    with watched.dedup.database.engine.begin() as connection:
        connection.execute(update(watched.letters).where(watched.letters.c.id == 1).values(received=99))
    drain(watched)
    assert len(asked) == 1
    assert is_right(watched)
