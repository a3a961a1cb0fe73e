"""Work that is too much: less is done at a time, and a row that is too much by itself is given up."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, create_engine, event, text

from db_dedup import Deduplicator, Text
from db_dedup.errors import DatabaseUnavailableError
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.jobs.worker.worker_table import Batch
from db_dedup.store import changes, watched_tables
from tests.servers import Database
from tests.worker.conftest import POISON, body, count_waiting, dead, drain, is_right, write
from tests.worker.watched import Watched, wait_for_nobody

ENDS_IT = {
    "postgresql": f"(body NOT LIKE '%{POISON}%' OR pg_terminate_backend(pg_backend_pid()))",
    "mariadb": f"IF(body LIKE '%{POISON}%', SLEEP(60), 0) = 0",
}
"""Conditions that end the connection, or the statement after a time limit, where they read a certain row."""


@pytest.fixture
def limited(database: Database) -> Iterator[Engine]:
    """An engine whose statements may take a moment only."""
    engine = create_engine(database.url)

    def set_limit(connection: Any, _: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION max_statement_time = 1")

    if database.name == "mariadb":
        event.listen(engine, "connect", set_limit)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_a_row_whose_reading_is_ended_by_the_server_is_given_up(database: Database, limited: Engine) -> None:
    # So many that rows are read through the index, and no other row's condition is evaluated.
    others = [
        {"id": 1000 + i, "body": " ".join(f"{i * n * 7919:x}" for n in range(3, 13))} for i in range(2000)
    ]
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE letters (id int PRIMARY KEY, body varchar(900))"))
        connection.execute(text("INSERT INTO letters VALUES (:id, :body)"), others)
    with database.engine.begin() as connection:
        connection.execute(text("ANALYZE" if database.name == "postgresql" else "ANALYZE TABLE letters"))
    dedup = Deduplicator(
        limited, "letters", {"body": Text()}, where=ENDS_IT[database.name], segmenter="words"
    )
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    with database.engine.begin() as connection:
        for number in range(7):
            letter = POISON if number == 4 else body(number)
            connection.execute(
                text("INSERT INTO letters VALUES (:id, :body)"), {"id": number, "body": letter}
            )
    done: list[Batch] = []
    ChangeWorker([dedup.worker()], on_batch=done.append).run(threading.Event(), drain=True)
    assert (sum(batch.changes for batch in done), sum(batch.dead for batch in done)) == (7, 1)
    with database.engine.connect() as connection:
        (given_up,) = changes.read_dead(connection, dedup.database.tables, 1)
    assert (given_up.row_key, given_up.attempts) == ("4", 3)
    assert "the server" in given_up.error
    found = {(pair.key_a, pair.key_b) for pair in dedup.pairs() if len(pair.key_a) == 1}
    assert found == {("0", "3"), ("0", "6"), ("3", "6"), ("2", "5")}


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Memory for the texts of three rows at a time, none of which is poisonous."""
    original = Fingerprinter.fingerprint

    def fingerprint(self: Fingerprinter, rows: Sequence[Sequence[str]], *others: Any, **more: Any) -> Any:
        if len(rows) > 3 or any(POISON in value for row in rows for value in row):
            np.empty(1 << 60, np.int8)
        return original(self, rows, *others, **more)

    monkeypatch.setattr(Fingerprinter, "fingerprint", fingerprint)
    return monkeypatch


def test_a_batch_that_needs_too_much_memory_is_halved(
    watched: Watched, little_memory: pytest.MonkeyPatch
) -> None:
    write(watched, range(0, 27, 2))
    batches = drain(watched)
    assert (sum(batch.changes for batch in batches), sum(batch.dead for batch in batches)) == (14, 0)
    assert max(batch.changes for batch in batches) <= 3
    assert dead(watched) == []
    little_memory.undo()
    assert is_right(watched)


def test_a_row_that_needs_too_much_memory_is_given_up(
    watched: Watched, little_memory: pytest.MonkeyPatch
) -> None:
    write(watched, (0, 3))
    with watched.dedup.database.engine.begin() as connection:
        connection.execute(watched.letters.insert().values(id=99, body=POISON, region="A", received=99))
    drain(watched)
    assert [(d.row_key, d.attempts, d.error) for d in dead(watched)] == [("99", 3, "not enough memory")]
    assert {pair[:2] for pair in watched.stored()["pairs"]} == {("0", "3")}
    little_memory.undo()
    watched.dedup.retry()
    drain(watched)
    assert is_right(watched)


def test_after_a_batch_that_was_too_much_batches_grow_again(
    watched: Watched, little_memory: pytest.MonkeyPatch
) -> None:
    worker = watched.dedup.worker(batch_changes=20)
    worker._size.changes = 20
    write(watched, range(8))
    first = worker.step()
    assert first is not None
    assert first.changes == 2
    little_memory.undo()
    while worker.step():
        pass
    sizes = []
    for _ in range(30):
        sizes.append(worker._size.changes)
        worker._size.learn(worker._size.changes, 0.001, 0.001)
    assert sizes == sorted(sizes)
    assert sizes[-1] == 20


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_a_lock_that_is_not_free_for_long_gives_nothing_up(database: Database, watched: Watched) -> None:
    write(watched, (0, 3))
    engine = create_engine(database.url)
    wait_for_nobody(engine, database.name)
    worker = Deduplicator(engine, watched.letters.name).worker()
    tables = watched.dedup.database.tables
    with database.engine.begin() as connection:
        watched_tables.lock_table(connection, tables, watched.letters.name)
        for _ in range(2):
            with pytest.raises(DatabaseUnavailableError):
                worker.step()
    assert (count_waiting(watched), dead(watched)) == (2, [])
    worker.step()
    assert is_right(watched)
    engine.dispose()
