"""The index of sketches finds rows by their former texts; the answers are of their present ones."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, create_engine, event, text

from db_dedup import Deduplicator
from db_dedup.config import WatchedTable, watched_table
from db_dedup.store import set_memory
from tests.servers import Database
from tests.worker.test_feature_sets import note, write

_LONG_WORDS = "internationalization institutionalization"


def watched(name: str, segmenter: str = "chars:2") -> WatchedTable:
    settings = {"columns": {"body": {"kind": "text"}}, "order": "received", "frames": False}
    return watched_table(name, {**settings, "segmenter": segmenter})


def scanned(database: Database, settings: WatchedTable, bodies: dict[int, str]) -> Deduplicator:
    name = settings.name
    with database.engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, body TEXT, received INT)"))
        rows = [{"id": key, "body": body} for key, body in bodies.items()]
        connection.execute(text(f"INSERT INTO {name} VALUES (:id, :body, :id)"), rows)
    dedup = Deduplicator(database.engine, settings)
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    return dedup


@pytest.fixture(autouse=True)
def _reads_sets_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)


def test_a_row_with_too_little_text_now_is_in_no_pair(sqlite_database: Database) -> None:
    """Its former text was like the asked one, and its present text is, too."""
    bodies = {key: note(key) for key in range(9)} | {9: f"{_LONG_WORDS} counterrevolutionary"}
    dedup = scanned(sqlite_database, watched("notes", "jieba"), bodies)
    write(dedup, "UPDATE notes SET body = :body WHERE id = 9", body=_LONG_WORDS)
    assert dedup.check({"body": f"{_LONG_WORDS} x"}) == []
    write(dedup, "UPDATE notes SET body = :body WHERE id = 5", body=f"{_LONG_WORDS} x")
    assert [match.row_key for match in dedup.check({"body": f"{_LONG_WORDS} y"})] == ["5"]
    assert dedup.verify().is_right


def test_a_row_of_another_table_with_the_id_of_one_that_is_gone_is_no_match(
    sqlite_database: Database,
) -> None:
    """SQLite gives the greatest id again. The other table has a row with the key and text of a match."""
    others = scanned(sqlite_database, watched("others"), {8: note(20), 9: note(21)})
    # By the id of 37 the row of the other table comes after that of this one.
    bodies = {key: note(max(0, key - 1)) for key in range(34)} | {34: f"{note(0)[2:]}又吗"}
    dedup = scanned(sqlite_database, watched("notes"), bodies)
    write(dedup, "DELETE FROM notes WHERE id = 34")
    write(others, "INSERT INTO others VALUES (0, :body, 0), (500, :body, 500)", body=note(0))
    others.scan(rebuild=True)
    found = dedup.check({"body": f"{note(0)[1:]}又"})
    assert [(match.row_key, match.group_id) for match in found] == [("0", "0"), ("1", "0")]


def test_a_class_whose_first_row_goes_during_a_check_is_found(database: Database) -> None:
    """It is looked up by its canonical row, which is another one after the worker's batch."""
    bodies = {key: note(max(1, key)) for key in range(9)}
    dedup = scanned(database, watched("notes"), bodies)
    asked = {"body": f"{note(1)[1:]}又"}
    assert [match.row_key for match in dedup.check(asked)] == ["0", "1"]
    others = create_engine(database.url)
    theirs = Deduplicator(others, watched("notes"))
    looked_up: list[str] = []

    def delete_first(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if "UNION ALL" in statement and "first" in statement:
            looked_up.append(statement)
            if len(looked_up) == 1:
                write(theirs, "DELETE FROM notes WHERE id = 0")

    event.listen(database.engine, "before_cursor_execute", delete_first)
    try:
        # MySQL's own isolation level shows the state of the first statement.
        assert [match.row_key for match in dedup.check(asked)] in (["1"], ["0", "1"])
    finally:
        event.remove(database.engine, "before_cursor_execute", delete_first)
        others.dispose()
    assert looked_up
    assert [match.row_key for match in dedup.check(asked)] == ["1"]
