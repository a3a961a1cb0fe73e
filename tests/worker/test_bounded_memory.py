"""A batch of changes needs memory for the changes and the pairs, not for all rows that share a phrase."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from sqlalchemy import text

from db_dedup import Deduplicator, Text
from db_dedup.engines.embedded import candidate_search, sharing
from db_dedup.store import sketch_lookup
from tests.servers import Database
from tests.worker.conftest import is_right, write
from tests.worker.watched import Watched

ROWS, CHANGES = 500, 200
MOST_BYTES = 60 * 2**20
LETTERS = [chr(0x4E00 + i) for i in range(3000)]


def letter(seed: int, length: int) -> str:
    return "".join(random.Random(seed).choices(LETTERS, k=length))


CLOSING = letter(-1, 300)
"""Too small a part of a letter to make two of them duplicates, and all passages of it are proposed."""


def test_rows_that_end_alike(database: Database) -> None:
    with database.engine.begin() as connection:
        kind = "TEXT CHARACTER SET utf8mb4" if database.name == "mariadb" else "TEXT"
        connection.execute(text(f"CREATE TABLE letters (id INTEGER PRIMARY KEY, body {kind})"))
        rows = [{"id": i, "body": letter(i, 700) + CLOSING} for i in range(ROWS)]
        connection.execute(text("INSERT INTO letters VALUES (:id, :body)"), rows)
    dedup = Deduplicator(database.engine, "letters", {"body": Text()}, segmenter="chars:2")
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    with database.engine.begin() as connection:
        changed = [{"id": i, "body": letter(ROWS + i // 2, 700) + CLOSING} for i in range(CHANGES)]
        changed[0]["body"] = f"{letter(ROWS - 1, 700)}{CLOSING}是"
        connection.execute(text("UPDATE letters SET body = :body WHERE id = :id"), changed)
    worker = dedup.worker()
    worker._size.changes = CHANGES
    tracemalloc.start()
    try:
        batch = worker.step()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert batch is not None
    assert batch.changes == CHANGES
    assert peak < MOST_BYTES, f"{peak / 2**20:.0f} MB"
    assert ("0", str(ROWS - 1)) in {(pair.key_a, pair.key_b) for pair in dedup.pairs()}
    assert dedup.verify().is_right


@pytest.mark.parametrize(("entries", "rows"), [(3, 3), (10**6, 5), (10**6, 10**6)])
def test_small_pieces_give_the_same_answer(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, entries: int, rows: int
) -> None:
    """As few entries, rows and pairs at a time as there can be, or as few rows or pairs alone."""
    monkeypatch.setattr(sketch_lookup, "_ENTRIES_A_PIECE", entries)
    monkeypatch.setattr(sketch_lookup, "_SINGLE_ENTRIES_A_PIECE", entries)
    monkeypatch.setattr(sharing, "_PAIRS_A_PIECE", 2)
    monkeypatch.setattr(sharing, "_ROWS_A_PIECE", rows)
    monkeypatch.setattr(candidate_search, "_PAIRS_A_PIECE", 2)
    monkeypatch.setattr(candidate_search, "ROWS_A_BATCH", 2)
    monkeypatch.setattr(candidate_search, "_ASKED_A_SEARCH", 2)
    write(watched, range(20))
    for worker in watched.workers():
        for _ in range(3):
            worker.step()
        write(watched, range(20 + watched_rows(watched), 32 + watched_rows(watched)))
    worker = watched.dedup.worker()
    while worker.step():
        pass
    assert is_right(watched)


def watched_rows(watched: Watched) -> int:
    with watched.dedup.database.engine.connect() as connection:
        return int(connection.scalar(text(f"SELECT count(*) FROM {watched.letters.name}")) or 0)
