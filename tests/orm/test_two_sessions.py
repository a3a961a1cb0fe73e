"""Of sessions that store the same text at the same moment, exactly one succeeds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, func, select
from sqlalchemy.orm import Session, sessionmaker

from db_dedup import Deduplicator, DuplicateError, TableBusyError, guard_duplicates
from db_dedup.app.blocking_check import BlockingCheck
from db_dedup.store import watched_tables
from tests.orm.office import NOISE, Petition, make_office, own_sessions, petition
from tests.servers import Database
from tests.worker.child import remove_lock

LEVELS = [
    ("sqlite", None),
    ("postgresql", "READ COMMITTED"),
    ("mariadb", "READ COMMITTED"),
    ("mariadb", "REPEATABLE READ"),
]
AT_EACH_LEVEL = pytest.mark.parametrize(("database", "level"), LEVELS, indirect=["database"])
NEW = "西城区一处井盖缺失，晚上没有路灯，行人很容易跌落，已经有老人受伤，请尽快补上井盖。"
SESSIONS = 4


def guarded(engine: Engine, dedup: Deduplicator) -> sessionmaker[Session]:
    sessions = own_sessions(engine)
    guard_duplicates(sessions, Petition, dedup, "block")
    return sessions


def opened(database: Database, level: str | None) -> Engine:
    return create_engine(database.url, **({} if level is None else {"isolation_level": level}))


def stored(sessions: sessionmaker[Session], text: str, before: Callable[[], object] = bool) -> bool:
    """Whether a session could store a petition; something else happens before it commits."""
    while True:
        try:
            with sessions() as session, session.begin():
                session.add(petition(text))
                session.flush()
                before()
        except DuplicateError:
            return False
        except TableBusyError:
            continue
        return True


def at_once(works: list[Callable[[], bool]]) -> list[bool]:
    """What functions return that run at the same moment."""
    together, told = threading.Barrier(len(works)), list[bool]()

    def run(work: Callable[[], bool]) -> None:
        together.wait()
        told.append(work())

    threads = [threading.Thread(target=run, args=[work], daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


@AT_EACH_LEVEL
def test_one_of_many_sessions_stores_the_text(database: Database, level: str | None) -> None:
    """Each has another small edit of it."""
    dedup, engine = make_office(database.engine), opened(database, level)
    sessions = guarded(engine, dedup)
    told = at_once([lambda i=i: stored(sessions, NEW + "！" * i) for i in range(SESSIONS)])  # type: ignore[misc]
    assert sorted(told) == [False] * (SESSIONS - 1) + [True]
    with engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(Petition)) == 2
    engine.dispose()


@AT_EACH_LEVEL
def test_the_second_session_waits_for_the_first(database: Database, level: str | None) -> None:
    dedup, engine = make_office(database.engine), opened(database, level)
    assert two_sessions(guarded(engine, dedup), seconds=0.5) == [True, False]
    engine.dispose()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_without_the_lock_both_store_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    dedup = make_office(database.engine)
    monkeypatch.setattr(BlockingCheck, "_locked", lambda *_: nullcontext())
    monkeypatch.setattr(watched_tables, "lock_table", watched_tables.lock_table)
    remove_lock()
    assert two_sessions(guarded(database.engine, dedup), seconds=60) == [True, True]


def two_sessions(sessions: sessionmaker[Session], seconds: float) -> list[Any]:
    """Whether two sessions could store a text: the second tries while the first has not committed, which
    waits for the second so long."""
    done, told = threading.Event(), list[bool]()

    def store_second() -> None:
        told.append(stored(sessions, NEW))
        done.set()

    second = threading.Thread(target=store_second, daemon=True)

    def let_second_try() -> None:
        second.start()
        done.wait(seconds)

    first = stored(sessions, NEW, let_second_try)
    second.join()
    return [first, *told]


def test_a_known_text_is_refused_everywhere(sqlite_database: Database) -> None:
    dedup = make_office(sqlite_database.engine)
    assert not stored(guarded(sqlite_database.engine, dedup), NOISE)
