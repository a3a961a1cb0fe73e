"""The sets of features are those of the stored texts, and rule candidates out before their texts are read."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from sqlalchemy import select, text

from db_dedup import Deduplicator
from db_dedup.config import watched_table
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.stored_rows import sets_of
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.store.source import Source
from tests.servers import Database

_PHRASE = "特此投诉，请有关部门尽快调查处理并将结果书面答复本人，谢谢。"
_NOTES = watched_table(
    "notes",
    {
        "columns": {"body": {"kind": "text"}},
        "order": "received",
        "frames": False,
        "segmenter": "chars:2",
    },
)


def note(number: int) -> str:
    """A text of its own that ends as all others do."""
    chance = Random(number)
    return "".join(chr(chance.randrange(0x4E00, 0x9000)) for _ in range(150)) + _PHRASE


@pytest.fixture
def dedup(sqlite_database: Database) -> Deduplicator:
    """Thirty notes, scanned and attached."""
    with sqlite_database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, received INT)"))
        rows = [{"id": i, "body": note(i), "received": i} for i in range(30)]
        connection.execute(text("INSERT INTO notes VALUES (:id, :body, :received)"), rows)
    dedup = Deduplicator(sqlite_database.engine, _NOTES)
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    return dedup


def write(dedup: Deduplicator, statement: str, **values: Any) -> None:
    with dedup.database.engine.begin() as connection:
        connection.execute(text(statement), values)
    ChangeWorker([dedup.worker()]).run(threading.Event(), drain=True)


def stored_sets(dedup: Deduplicator) -> dict[str, bytes | None]:
    c = dedup.database.tables.fingerprint.c
    with dedup.database.engine.connect() as connection:
        return {row.row_key: row.feature_set for row in connection.execute(select(c.row_key, c.feature_set))}


def computed_sets(dedup: Deduplicator) -> dict[str, bytes | None]:
    with dedup.database.engine.connect() as connection:
        rows = [(str(key), body) for key, body in connection.execute(text("SELECT id, body FROM notes"))]
    done = Fingerprinter(_NOTES.recipe).fingerprint([(body,) for _, body in rows])
    sets = sets_of(done)
    return dict(zip((key for key, _ in rows), sets, strict=True))


def test_each_row_has_the_set_of_its_text(dedup: Deduplicator) -> None:
    assert stored_sets(dedup) == computed_sets(dedup)
    assert None not in stored_sets(dedup).values()
    before = stored_sets(dedup)["1"]
    write(dedup, "UPDATE notes SET body = :body WHERE id = 1", body=note(100))
    assert stored_sets(dedup) == computed_sets(dedup)
    assert stored_sets(dedup)["1"] != before
    write(dedup, "UPDATE notes SET received = 99 WHERE id = 2")
    write(dedup, "INSERT INTO notes VALUES (50, :body, 50)", body=note(101))
    assert stored_sets(dedup) == computed_sets(dedup)
    write(dedup, "UPDATE notes SET body = 'short' WHERE id = 3")
    assert stored_sets(dedup)["3"] == b"\x07\x00"  # a short row: the number of its features alone


def test_of_equal_rows_the_canonical_one_has_the_set(sqlite_database: Database) -> None:
    """By the order column that is not the first one that the scan reads, here."""
    engine = sqlite_database.engine
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, received INT)"))
        received = {1: 5, 2: 3, 3: None, 4: 1, 5: 4, 6: 1}
        rows = [{"id": i, "body": note(7), "received": value} for i, value in received.items()]
        connection.execute(text("INSERT INTO notes VALUES (:id, :body, :received)"), rows)
    dedup = Deduplicator(engine, _NOTES)
    dedup.upgrade()
    dedup.scan()
    assert [key for key, packed in stored_sets(dedup).items() if packed is not None] == ["4"]
    c = dedup.database.tables.fingerprint.c
    with engine.connect() as connection:
        canonical = select(c.row_key, c.sketch_size).where(c.copy_of.is_(None))
        assert [(row[0], row[1] > 0) for row in connection.execute(canonical)] == [("4", True)]


def test_texts_that_share_a_phrase_alone_are_not_read(
    dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = Source.read_rows

    def read_rows(self: Source, connection: Any, row_keys: Iterable[str]) -> Any:
        keys = list(row_keys)
        read.extend(keys)
        return original(self, connection, keys)

    monkeypatch.setattr(Source, "read_rows", read_rows)
    assert dedup.check({"body": note(200)}) == []
    assert len(read) <= 3
    read.clear()
    assert [match.row_key for match in dedup.check({"body": f"{note(7)[1:]}又"})] == ["7"]
    assert "7" in read
    assert len(read) <= 4
    without = "UPDATE dedup_fingerprint SET feature_set = NULL"
    with dedup.database.engine.begin() as connection:
        connection.execute(text(without))
    read.clear()
    assert dedup.check({"body": note(200)}) == []
    assert len(read) == 30
