"""A batch of checks that block takes one turn, and answers as single ones at the same moment."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, insert

from db_dedup import CheckResult
from db_dedup.errors import InvalidArgumentError
from tests.servers import Database
from tests.worker.conftest import body, count_waiting, drain, is_right, write
from tests.worker.watched import Watched

NEW = range(100, 112)


def record(number: int) -> dict[str, Any]:
    return {"body": body(number), "region": "A", "received": number}


def single_checks(watched: Watched, database: Database, keys: list[int | None]) -> list[CheckResult]:
    """Each in a transaction of its own, of which nothing stays."""
    results = []
    for place, key in enumerate(keys):
        with database.engine.connect() as connection:
            found = watched.dedup.check_in_full(record(place), connection, block=True, row_key=key)
            connection.rollback()
        results.append(found)
    return results


def check_batch(watched: Watched, connection: Connection, keys: list[int | None]) -> list[CheckResult]:
    records = [record(place) for place in range(len(keys))]
    return watched.dedup.check_many(records, connection, block=True, row_keys=keys)


def test_a_batch_answers_as_single_checks_do(database: Database, watched: Watched) -> None:
    """Of rows that are known, that wait in the queue, and that are the record's own."""
    write(watched, (0, 3, 1, 9))
    drain(watched)
    write(watched, (6, 4, 12))
    keys: list[int | None] = [0, None, 3, 6, *NEW[:8]]
    expected = single_checks(watched, database, keys)
    assert any(result.matches for result in expected)
    assert any(not result.matches for result in expected)
    with database.engine.connect() as connection:
        assert check_batch(watched, connection, keys) == expected
        connection.rollback()


def test_what_is_new_is_stored_and_found_from_then_on(database: Database, watched: Watched) -> None:
    write(watched, (0,))
    drain(watched)
    keys: list[int | None] = list(NEW)
    with database.engine.begin() as connection:
        results = check_batch(watched, connection, keys)
        new = [place for place, result in enumerate(results) if not result.matches]
        connection.execute(insert(watched.letters), [{"id": keys[i], **record(i)} for i in new])
    assert 0 < len(new) < len(keys)
    assert count_waiting(watched)
    with database.engine.connect() as connection:
        again = check_batch(watched, connection, [None] * len(keys))
        connection.rollback()
    assert all(again[place].matches for place in new)
    drain(watched)
    assert is_right(watched)


def test_two_records_of_one_row_are_refused(database: Database, watched: Watched) -> None:
    write(watched, (0,))
    with database.engine.connect() as connection:
        with pytest.raises(InvalidArgumentError, match="the same row key"):
            check_batch(watched, connection, [100, 100])
        connection.rollback()
