"""A check that blocks: of writers of the same text at the same moment, exactly one is told that it is new."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, delete, func, insert, select, text, update

from db_dedup import Deduplicator, Text
from db_dedup.app.blocking_check import BlockingCheck
from db_dedup.errors import ConfigError, InvalidArgumentError, NotScannedError, TableBusyError
from db_dedup.records import Match
from db_dedup.store import watched_tables
from tests.dialects.tables import run
from tests.servers import Database
from tests.worker.child import remove_lock
from tests.worker.conftest import body, count_waiting, dead, drain, is_right, write
from tests.worker.watched import WAYS, Watched

LEVELS = [
    ("sqlite", None),
    ("postgresql", "READ COMMITTED"),
    ("mariadb", "READ COMMITTED"),
    ("mariadb", "REPEATABLE READ"),
    ("mysql", "READ COMMITTED"),
    ("mysql", "REPEATABLE READ"),
]
AT_EACH_LEVEL = pytest.mark.parametrize(("database", "level"), LEVELS, indirect=["database"])
NEW = 5


@contextmanager
def opened(database: Database, level: str | None) -> Iterator[Engine]:
    """An application's engine."""
    engine = create_engine(database.url, **({} if level is None else {"isolation_level": level}))
    yield engine
    engine.dispose()


def row(number: int) -> dict[str, Any]:
    return {"body": body(number), "region": "A", "received": 1}


def store_unless_known(
    watched: Watched, connection: Connection, number: int, key: int, before: Callable[[], object] = bool
) -> list[Match]:
    """What an application does with a new text; something else happens before it writes."""
    told = watched.dedup.check(row(number), connection, block=True)
    before()
    if not told:
        connection.execute(insert(watched.letters).values(id=key, **row(number)))
    return told


def two_writers(watched: Watched, engine: Engine, seconds: float) -> list[list[Match]]:
    """What two writers of the same text are told: the second asks while the first has not committed, which
    waits for the second so long."""
    begun, done = threading.Event(), threading.Event()
    told: list[list[Match]] = []

    def write_second() -> None:
        while True:
            try:
                with engine.begin() as connection:
                    connection.execute(select(func.count()).select_from(watched.letters))
                    begun.set()
                    told.append(store_unless_known(watched, connection, NEW, 102))
                break
            except TableBusyError:  # its snapshot was too old
                continue
        done.set()

    def let_second_ask() -> None:
        second.start()
        assert begun.wait(60)
        done.wait(seconds)

    second = threading.Thread(target=write_second, daemon=True)
    with engine.begin() as connection:
        first = store_unless_known(watched, connection, NEW, 101, let_second_ask)
    second.join()
    return [first, *told]


@AT_EACH_LEVEL
def test_of_two_writers_one_is_told_that_the_text_is_new(
    database: Database, watched: Watched, level: str | None
) -> None:
    write(watched, (0, 3))
    drain(watched)
    with opened(database, level) as engine:
        first, second = two_writers(watched, engine, seconds=0.5)
    assert first == []
    assert [match.row_key for match in second] == ["101"]
    drain(watched)
    assert is_right(watched)
    assert watched.dedup.verify().is_right


@AT_EACH_LEVEL
def test_without_the_lock_both_are_told_so(
    database: Database, watched: Watched, level: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BlockingCheck, "_locked", lambda *_: nullcontext())
    monkeypatch.setattr(watched_tables, "lock_table", watched_tables.lock_table)
    remove_lock()
    with opened(database, level) as engine:
        assert two_writers(watched, engine, seconds=60) == [[], []]
    monkeypatch.undo()
    drain(watched)
    assert is_right(watched)


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_what_is_queued_is_judged_as_the_worker_would(database: Database, number: int) -> None:
    """Whatever waits, the check that blocks finds what a plain one finds once the queue is empty."""
    watched = Watched.make(database.engine, number)
    chance, found = random.Random(number), list[Match]()
    for _ in range(6):
        write_at_random(watched, chance, 12)
        if chance.random() < 0.5:
            drain(watched)
            write_at_random(watched, chance, 6)
        records = [row(n) | {"region": region} for n in range(3) for region in "AB"]
        with database.engine.begin() as connection:
            now = [watched.dedup.check(record, connection, block=True) for record in records]
        drain(watched)
        later = [watched.dedup.check(record) for record in records]
        found += [match for matches in later for match in matches]
        assert list(map(_ungrouped, now)) == list(map(_ungrouped, later))
    assert found


def write_at_random(watched: Watched, chance: random.Random, steps: int) -> None:
    table = watched.letters
    for _ in range(steps):
        key = watched.key(chance.randrange(9))
        is_it = [table.c[name] == value for name, value in key.items()]
        with watched.dedup.database.engine.begin() as connection:
            connection.execute(delete(table).where(*is_it))
            if chance.random() < 0.8:
                values = row(chance.randrange(9)) | {"region": chance.choice("AB")}
                connection.execute(insert(table).values(**key, **values))


def _ungrouped(found: list[Match]) -> list[tuple[Any, ...]]:
    return sorted((match.row_key, match.distance, match.similarity) for match in found)


def test_many_writers_store_each_text_once(database: Database, watched: Watched) -> None:
    told: list[bool] = []

    def write_all(writer: int) -> None:
        numbers = list(range(3))
        random.Random(writer).shuffle(numbers)
        for number in numbers:
            while True:
                try:
                    with database.engine.begin() as connection:
                        told.append(not store_unless_known(watched, connection, number, 10 * writer + number))
                    break
                except TableBusyError:
                    continue

    writers = [threading.Thread(target=write_all, args=(writer,), daemon=True) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(told) == 9 * [False] + 3 * [True]
    drain(watched)
    assert watched.stored() == watched.fresh()
    assert not watched.stored()["pairs"]


# A row key


def test_a_row_key_stores_the_fingerprint_and_leaves_pairs_to_the_worker(
    database: Database, watched: Watched
) -> None:
    with database.engine.begin() as connection:
        assert watched.dedup.check(row(NEW), connection, block=True, row_key="7") == []
        connection.execute(insert(watched.letters).values(id=7, **row(NEW)))
    assert stored_keys(database, watched) == ["7"]
    with database.engine.begin() as connection:
        (found,) = watched.dedup.check(row(NEW + 3), connection, block=True, row_key="8")
        connection.execute(insert(watched.letters).values(id=8, **row(NEW + 3)))
    assert found.row_key == "7"
    assert stored_keys(database, watched) == ["7"]
    assert not watched.stored()["pairs"]
    drain(watched)
    assert is_right(watched)
    assert watched.dedup.verify().is_right


def stored_keys(database: Database, watched: Watched) -> list[str]:
    fingerprint = watched.dedup.database.tables.fingerprint
    with database.engine.connect() as connection:
        return list(connection.execute(select(fingerprint.c.row_key)).scalars())


def test_another_spelling_of_a_key_does_not_stop_later_checks(database: Database, watched: Watched) -> None:
    with database.engine.begin() as connection:
        assert watched.dedup.check(row(NEW), connection, block=True, row_key="007") == []
        connection.execute(insert(watched.letters).values(id=7, **row(NEW)))
    with database.engine.begin() as connection:
        (found,) = watched.dedup.check(row(NEW + 3), connection, block=True)
        connection.execute(insert(watched.letters).values(id=8, **row(NEW + 3)))
    assert found.row_key == "7"
    drain(watched)
    assert (dead(watched), is_right(watched)) == ([], True)


@pytest.mark.parametrize("database", ["sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize("row_key", ["2024-A7", "7", '["A"]', '["A",7]'])
def test_a_text_that_is_no_key_is_refused(database: Database, row_key: str) -> None:
    """It would stand in the queue, where nothing can be read by it."""
    watched = Watched.make(database.engine, 1)
    with database.engine.begin() as connection, pytest.raises(InvalidArgumentError, match="columns"):
        watched.dedup.check(row(NEW), connection, block=True, row_key=row_key)
    with pytest.raises(InvalidArgumentError, match="columns"):
        watched.dedup.reserve(row(NEW), row_key=row_key)
    assert count_waiting(watched) == 0


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("row_key", ["2024-A7", str(2**40)])
def test_a_text_that_the_key_column_cannot_hold_is_refused(
    database: Database, watched: Watched, row_key: str
) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("SET LOCAL timezone = 'Asia/Shanghai'"))
        with pytest.raises(InvalidArgumentError, match=f"no row of 'letters_0' .*: '{row_key}'"):
            watched.dedup.check(row(NEW), connection, block=True, row_key=row_key)
        assert connection.scalar(text("SHOW timezone")) == "Asia/Shanghai"
        assert watched.dedup.check(row(NEW), connection, block=True, row_key=7) == []
    assert (count_waiting(watched), stored_keys(database, watched)) == (1, ["7"])


@pytest.mark.parametrize("commits", [True, False])
def test_a_row_that_is_not_stored_after_all_leaves_nothing(
    database: Database, watched: Watched, commits: bool
) -> None:
    with database.engine.connect() as connection:
        watched.dedup.check(row(NEW), connection, block=True, row_key="7")
        (connection.commit if commits else connection.rollback)()
    assert bool(count_waiting(watched)) is commits
    drain(watched)
    assert stored_keys(database, watched) == []


def test_a_row_is_no_duplicate_of_itself(database: Database, watched: Watched) -> None:
    write(watched, (0, 3))
    drain(watched)
    with database.engine.begin() as connection:
        connection.execute(update(watched.letters).where(watched.letters.c.id == 0).values(body=body(3)))
        (found,) = watched.dedup.check(row(3), connection, block=True, row_key="0")
    assert found.row_key == "3"
    drain(watched)
    assert is_right(watched)


# What is refused


def test_whoever_waits_too_long_is_told(
    database: Database, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("postgresql", "mysql"):
        monkeypatch.setattr(f"db_dedup.dialects.{name}.sessions.ROW_LOCK_SECONDS", 1)
    options: dict[str, Any] = {"connect_args": {"timeout": 0.1}} if database.name == "sqlite" else {}
    impatient = create_engine(database.url, **options)
    record = {"body": body(NEW)}
    with database.engine.begin() as first, impatient.connect() as second:
        assert watched.dedup.check(record, first, block=True) == []
        with pytest.raises(TableBusyError, match=r"'letters_0' is not free for this check .*try again"):
            watched.dedup.check(record, second, block=True)
        second.rollback()
    with impatient.begin() as second:
        assert watched.dedup.check(record, second, block=True) == []
    impatient.dispose()


def test_a_connection_that_commits_each_statement_is_refused(database: Database, watched: Watched) -> None:
    engine = database.engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(ConfigError, match="without AUTOCOMMIT"):
        watched.dedup.check({"body": body(NEW)}, connection, block=True)


def test_a_check_that_blocks_on_a_table_that_was_never_scanned(database: Database) -> None:
    run(database, "CREATE TABLE memos (id INTEGER PRIMARY KEY, body VARCHAR(100))")
    dedup = Deduplicator(database.engine, "memos", {"body": Text()})
    dedup.upgrade()
    with database.engine.begin() as connection, pytest.raises(NotScannedError, match="`db-dedup scan memos`"):
        dedup.check({"body": body(NEW)}, connection, block=True)


def test_what_a_check_that_blocks_needs(watched: Watched) -> None:
    record, dedup = {"body": body(NEW)}, watched.dedup
    with pytest.raises(ConfigError, match="hand over its connection"):
        dedup.check(record, block=True)
    with pytest.raises(ConfigError, match="block=True"):
        dedup.check(record, row_key="1")

    def refused(words: str) -> None:
        with dedup.database.engine.connect() as connection, pytest.raises(NotScannedError, match=words):
            dedup.check(record, connection, block=True)

    dedup.detach()
    refused("run `db-dedup attach letters_0`")
    dedup.attach()
    refused("run `db-dedup scan letters_0`")
