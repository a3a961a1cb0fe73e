"""Labels given, changed and withdrawn while a scan switches to another recipe: each applies afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    Column,
    Engine,
    MetaData,
    String,
    Table,
    create_engine,
    delete,
    event,
    insert,
    text,
    update,
)
from sqlalchemy import Text as LongText

from db_dedup import Deduplicator, Text
from db_dedup.errors import DatabaseUnavailableError
from db_dedup.progress import NullProgress
from db_dedup.records import PairLabel
from tests.labels.test_verdicts import LAMP, WATER, make, pairs, reject, reopened
from tests.servers import Database

OTHER: dict[str, Any] = {"columns": {"title": Text(), "body": Text()}}
SHORT_WAITS: dict[str, dict[str, Any]] = {
    "sqlite": {"timeout": 0.1},
    "postgresql": {"options": "-c lock_timeout=100"},
    "mariadb": {"init_command": "SET innodb_lock_wait_timeout = 1"},
}


class BeforeTheSwitch(NullProgress):
    """Does something when all is read and matched, right before the scan's last transaction."""

    def __init__(self, do: Callable[[], object]) -> None:
        self._do = do

    def start(self, step: str, _total: int | None) -> None:
        if step == "writing the answer":
            self._do()


@contextmanager
def once_rows_were_read(engine: Engine, do: Callable[[], object]) -> Iterator[list[int]]:
    """Does something once, as soon as a connection that has read letters is given back. Gives how often."""
    has_read, done = [False], [0]

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        has_read[0] |= "letters" in statement

    def act(*_: Any) -> None:
        if has_read[0] and not done[0]:
            done[0] += 1
            do()

    event.listen(engine, "after_cursor_execute", note)
    event.listen(engine, "checkin", act)
    try:
        yield done
    finally:
        event.remove(engine, "after_cursor_execute", note)
        event.remove(engine, "checkin", act)


def scan_by_other_settings(database: Database) -> None:
    engine = create_engine(database.url)
    reopened(engine, **OTHER).scan()
    engine.dispose()


def end_the_lease(dedup: Deduplicator) -> None:
    """As of a scan whose process stood still for a minute."""
    watched = dedup.database.tables.watched_table
    with dedup.database.engine.begin() as connection:
        connection.execute(update(watched).values(lease_until=datetime(2020, 1, 1)))


def standing(dedup: Deduplicator) -> set[tuple[frozenset[str], bool]]:
    return {(frozenset((v.key_a, v.key_b)), v.is_duplicate) for v in dedup.labels().stored()}


REJECTED = {(frozenset("56"), False)}


def test_a_switch_after_the_digests_were_computed(database: Database) -> None:
    dedup = make(database.engine)
    dedup.scan()
    with once_rows_were_read(database.engine, lambda: scan_by_other_settings(database)) as done:
        assert reject(dedup, "5", "6").kept == 1
    assert done == [1]
    assert standing(dedup) == REJECTED
    other = reopened(database.engine, **OTHER)
    other.scan()
    assert ("5", "6") not in pairs(other)


def test_a_switch_before_a_withdrawal_is_written(database: Database) -> None:
    dedup = make(database.engine)
    dedup.scan()
    reject(dedup, "5", "6")
    with once_rows_were_read(database.engine, lambda: scan_by_other_settings(database)) as done:
        assert dedup.labels().withdraw("5", "6").faults == ()
    assert done == [1]
    assert standing(dedup) == set()
    other = reopened(database.engine, **OTHER)
    other.scan()
    assert ("5", "6") in pairs(other)


def test_no_scan_begins_while_a_label_is_written(database: Database) -> None:
    dedup = make(database.engine)
    dedup.scan()
    impatient = create_engine(database.url, connect_args=SHORT_WAITS[database.name])
    other = Deduplicator(impatient, "letters", OTHER["columns"], segmenter="words")
    refused = []

    def scan(_: Any, __: Any, statement: str, *___: Any) -> None:
        if statement.startswith("INSERT") and "verdict" in statement:
            with pytest.raises(DatabaseUnavailableError) as error:
                other.scan()
            refused.append(error.value)

    event.listen(database.engine, "before_cursor_execute", scan)
    assert reject(dedup, "5", "6").kept == 1
    event.remove(database.engine, "before_cursor_execute", scan)
    assert len(refused) == 1
    other.scan()
    assert standing(dedup) == REJECTED
    assert ("5", "6") not in pairs(other)
    impatient.dispose()


def test_a_label_given_right_before_the_switch(database: Database) -> None:
    """Both recipes have the same triggers: the worker takes the label's changes, and does not scan."""
    dedup = make(database.engine, **OTHER)
    dedup.attach()
    dedup.scan()

    def label() -> None:
        end_the_lease(dedup)
        assert reject(dedup, "5", "6").is_queued

    engine = create_engine(database.url)
    progress = BeforeTheSwitch(label)
    other = Deduplicator(engine, "letters", OTHER["columns"], progress, segmenter="words", within="title")
    other.scan()
    assert standing(other) == REJECTED
    assert ("5", "6") in pairs(other)
    worker = reopened(engine, **OTHER, within="title").worker()
    while batch := worker.step():
        assert not batch.is_scan
    assert ("5", "6") not in pairs(other)
    assert other.verify().is_right
    engine.dispose()


@pytest.mark.parametrize(("said", "expected"), [(None, set()), (True, {(frozenset("56"), True)})])
def test_a_word_taken_back_right_before_the_switch(
    database: Database, said: bool | None, expected: set[tuple[frozenset[str], bool]]
) -> None:
    dedup = make(database.engine)
    dedup.scan()
    reject(dedup, "5", "6")

    def take_back() -> None:
        end_the_lease(dedup)
        if said is None:
            dedup.labels().withdraw("5", "6")
        else:
            dedup.labels().give([PairLabel("5", "6", said)])

    engine = create_engine(database.url)
    other = Deduplicator(
        engine, "letters", OTHER["columns"], segmenter="words", progress=BeforeTheSwitch(take_back)
    )
    other.scan()
    assert standing(other) == expected
    reopened(engine, **OTHER).scan()
    assert ("5", "6") in pairs(other)
    engine.dispose()


def test_a_label_given_right_before_the_switch_of_a_store_apart(
    sqlite_database: Database, tmp_path: Path
) -> None:
    make(sqlite_database.engine)
    store = f"sqlite:///{tmp_path / 'store.db'}"
    dedup = Deduplicator(sqlite_database.url, "letters", {"body": Text()}, segmenter="words", store=store)
    dedup.upgrade()
    dedup.scan()

    def label() -> None:
        end_the_lease(dedup)
        reject(dedup, "5", "6")

    progress = BeforeTheSwitch(label)
    other = Deduplicator(sqlite_database.url, "letters", OTHER["columns"], progress, store, segmenter="words")
    with closing(dedup.database), closing(other.database):
        other.scan()
        assert standing(other) == REJECTED


def test_an_answer_to_a_question_of_the_former_recipe(database: Database) -> None:
    dedup = make(database.engine)
    dedup.scan()
    question = dedup.labels().questions(1)[0]
    label = PairLabel(question.key_a, question.key_b, is_duplicate=False)
    scan_by_other_settings(database)
    given = dedup.labels().give([label], question.judged)
    assert given.kept == 0
    assert "the settings have changed since they were shown: run `db-dedup label letters`" in given.faults[0]
    assert standing(dedup) == set()
    again = reopened(database.engine, **OTHER).labels().questions(1)[0]
    label = PairLabel(again.key_a, again.key_b, is_duplicate=False)
    assert dedup.labels().give([label], again.judged).kept == 1
    assert len(standing(dedup)) == 1


def test_a_label_of_a_key_that_is_none_any_more(postgresql_database: Database) -> None:
    """Of a row that is gone, when the key was a text."""
    engine = postgresql_database.engine
    letters = Table(
        "letters", MetaData(), Column("id", String(9), primary_key=True), Column("body", LongText)
    )
    with engine.begin() as connection:
        letters.create(connection)
        connection.execute(text("ALTER TABLE letters ADD title text DEFAULT 'to you'"))
        bodies = {"1": LAMP, "A12": f"{LAMP} today", "5": WATER, "6": f"{WATER} at all"}
        connection.execute(insert(letters), [{"id": key, "body": body} for key, body in bodies.items()])
    dedup = reopened(engine)
    dedup.scan()
    assert reject(dedup, "1", "A12").kept == reject(dedup, "5", "6").kept == 1
    with engine.begin() as connection:
        connection.execute(delete(letters).where(letters.c.id == "A12"))
        connection.execute(text("DROP VIEW dedup.duplicates_of_letters"))
        connection.execute(text("ALTER TABLE letters ALTER id TYPE integer USING id::integer"))
    other = reopened(engine, **OTHER)
    other.scan()
    assert ("5", "6") not in pairs(other)
    assert standing(other) >= REJECTED


def test_no_question_is_asked_if_none_is_wanted(sqlite_database: Database) -> None:
    dedup = make(sqlite_database.engine)
    dedup.scan()
    assert dedup.labels().questions(0) == []
    assert len(dedup.labels().questions(2)) == 2
