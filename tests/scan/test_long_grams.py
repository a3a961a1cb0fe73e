"""Scan, explain, check and worker compare long texts in letters alike."""

import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import text

from db_dedup import Deduplicator, Text
from db_dedup.app import Database
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.records import Decision
from tests.languages import Writer

LENGTHS: Final = (4000, 4000, 4000, 1500, 1500, 300, 300, 120, 120, 70, 70)


def rows_of(name: str) -> list[str]:
    """Distinct documents, then each of them lightly edited."""
    writer = Writer(name)
    texts = [writer.document(length) for length in LENGTHS]
    return [*texts, *(writer.edited(each, 3) for each in texts)]


EXPECTED: Final = {(str(i), str(len(LENGTHS) + i)) for i in range(len(LENGTHS))}


@pytest.fixture(params=["English", "Ukrainian"])
def dedup(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deduplicator]:
    with closing(Database(f"sqlite:///{tmp_path / 'letters.db'}", create=True)) as database:
        with database.engine.begin() as connection:
            connection.execute(text("CREATE TABLE letters (id INTEGER PRIMARY KEY, body TEXT)"))
            rows = [{"id": i, "body": body} for i, body in enumerate(rows_of(request.param))]
            connection.execute(text("INSERT INTO letters VALUES (:id, :body)"), rows)
        dedup = Deduplicator(database, "letters", {"body": Text()})
        dedup.upgrade()
        yield dedup


def scores(dedup: Deduplicator) -> dict[tuple[str, str], float | None]:
    return {(pair.key_a, pair.key_b): pair.similarity for pair in dedup.pairs()}


def test_explain_and_check_say_what_the_scan_says(dedup: Deduplicator) -> None:
    dedup.scan()
    found = scores(dedup)
    assert found.keys() == EXPECTED
    decided_by_long_grams = 0
    for a, b in combinations(map(str, range(2 * len(LENGTHS))), 2):
        explained = dedup.explain(a, b)
        assert explained.agrees
        similarity = explained.similarities["char_overlap"]
        if (a, b) in found:
            assert explained.decision is Decision.DUPLICATE_PAIR
            assert similarity == found[a, b]
            assert similarity <= explained.similarities.get("long_grams", 1)
        elif explained.similarities.get("long_grams") == similarity < explained.similarities["char_jaccard"]:
            decided_by_long_grams += 1
    assert decided_by_long_grams > 3
    first, edited = (body_of(dedup, key) for key in ("0", str(len(LENGTHS))))
    for body, other in ((first, str(len(LENGTHS))), (edited, "0")):
        nearest = {match.row_key: match.similarity for match in dedup.check({"body": body})}
        assert sorted(nearest) == ["0", str(len(LENGTHS))]
        assert nearest[other] == found["0", str(len(LENGTHS))]


def test_the_worker_finds_what_a_scan_finds(dedup: Deduplicator) -> None:
    """Also after a long text has become a short one, and a short one a long one."""
    dedup.scan()
    dedup.attach()
    with dedup.database.engine.begin() as connection:
        connection.execute(text("UPDATE letters SET body = substr(body, 1, 60) WHERE id IN (3, 14)"))
        connection.execute(
            text("UPDATE letters SET body = (SELECT body FROM letters WHERE id = 0) WHERE id = 10")
        )
        connection.execute(text("UPDATE letters SET body = body || ' ' || substr(body, 9, 90) WHERE id = 13"))
        connection.execute(text("DELETE FROM letters WHERE id = 16"))
    ChangeWorker([dedup.worker()]).run(threading.Event(), drain=True)
    found = scores(dedup)
    assert {("3", "14"), ("2", "13")} <= found.keys()
    dedup.scan(rebuild=True)
    assert scores(dedup) == found


def body_of(dedup: Deduplicator, key: str) -> str:
    with dedup.database.engine.connect() as connection:
        return str(connection.scalar(text("SELECT body FROM letters WHERE id = :key"), {"key": key}))
