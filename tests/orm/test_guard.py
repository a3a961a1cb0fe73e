"""Objects of a guarded model are checked before a session stores them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, func, insert, select
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from db_dedup import (
    ConfigError,
    Deduplicator,
    DuplicateError,
    FoundDuplicate,
    InvalidArgumentError,
    found_duplicates,
    guard_duplicates,
)
from tests.orm.office import (
    BUS,
    NOISE,
    NOISE_AGAIN,
    WATER,
    Letter,
    Override,
    Petition,
    make_letters,
    own_sessions,
    petition,
)
from tests.servers import Database

ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def count(engine: Engine) -> int:
    with engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(Petition)) or 0


def keys(found: list[FoundDuplicate]) -> list[list[str]]:
    return [[match.row_key for match in each.matches] for each in found]


def test_a_duplicate_is_stored_and_reported(
    database: Database, dedup: Deduplicator, sessions: sessionmaker[Session]
) -> None:
    told: list[FoundDuplicate] = []
    guard_duplicates(sessions, Petition, dedup, on_found=told.append)
    with sessions() as session:
        session.add_all([again := petition(NOISE_AGAIN), petition(WATER)])
        session.commit()
        assert found_duplicates(session) == told
        assert [(each.instance, each.others, each.reason) for each in told] == [(again, (), None)]
        assert keys(told) == [["1"]]
        session.add(petition(BUS))
        session.commit()
        assert found_duplicates(session) == []
    assert count(database.engine) == 4


def test_a_duplicate_is_refused_and_the_session_goes_on(
    database: Database, dedup: Deduplicator, sessions: sessionmaker[Session]
) -> None:
    guard_duplicates(sessions, Petition, dedup, "block")
    with sessions() as session:
        session.add(petition(WATER))
        session.flush()
        session.add(again := petition(NOISE_AGAIN))
        with pytest.raises(
            DuplicateError, match=r"^a duplicate was not stored in 'petitions': row 1$"
        ) as error:
            session.commit()
        assert [(each.instance, each.matches[0].row_key) for each in error.value.found] == [(again, "1")]
        assert [match.row_key for match in error.value.matches] == ["1"]
        session.expunge(again)
        session.add(petition(BUS))
        session.commit()
    assert count(database.engine) == 3


def test_flushes_of_one_transaction_see_each_other(
    dedup: Deduplicator, sessions: sessionmaker[Session]
) -> None:
    guard_duplicates(sessions, Petition, dedup, "block")
    with sessions() as session:
        session.add(first := petition(WATER))
        session.flush()
        session.add(petition(WATER, note="again"))
        with pytest.raises(DuplicateError) as error:
            session.flush()
        assert [match.row_key for match in error.value.matches] == [str(first.id)]


def test_objects_of_one_flush_are_compared(dedup: Deduplicator, sessions: sessionmaker[Session]) -> None:
    guard_duplicates(sessions, Petition, dedup, "block")
    with sessions() as session:
        objects = [petition(WATER), petition(BUS), petition(WATER)]
        session.add_all(objects)
        with pytest.raises(DuplicateError, match="an object of the same flush") as error:
            session.flush()
        (found,) = error.value.found
        assert (found.instance, found.matches, found.others) == (objects[2], (), (objects[0],))


def test_edits_are_checked_by_the_watched_columns_alone(
    dedup: Deduplicator, sessions: sessionmaker[Session]
) -> None:
    with sessions() as session, session.begin():
        session.add(again := petition(NOISE_AGAIN))
        session.flush()
        number = again.id
    told: list[FoundDuplicate] = []
    guard_duplicates(sessions, Petition, dedup, "block", told.append)
    with sessions() as session:
        again = session.get_one(Petition, number)
        again.note = "called back"
        session.flush()
        again.body = NOISE_AGAIN + "。"
        with pytest.raises(DuplicateError) as error:
            session.flush()
        assert [match.row_key for match in error.value.matches] == ["1"]
        again.body = WATER
        session.commit()
        again.title = "停水"  # the row is no duplicate of itself
        session.commit()
    assert told == []


def test_a_row_that_goes_or_changes_with_the_flush_is_no_duplicate(
    dedup: Deduplicator, sessions: sessionmaker[Session]
) -> None:
    guard_duplicates(sessions, Petition, dedup, "block")
    with sessions() as session:
        session.delete(session.get_one(Petition, 1))
        session.add(petition(NOISE_AGAIN))
        session.commit()
        second = session.scalars(select(Petition)).one()
        second.body = BUS
        session.add(petition(NOISE))
        session.commit()


@ON_SQLITE
def test_an_edited_object_counts_as_it_will_be(dedup: Deduplicator, sessions: sessionmaker[Session]) -> None:
    guard_duplicates(sessions, Petition, dedup, "block")
    with sessions() as session:
        first = session.get_one(Petition, 1)
        first.body = BUS
        session.add(new := petition(BUS))
        with pytest.raises(DuplicateError) as error:
            session.flush()
        assert [(f.instance, f.others) for f in error.value.found] == [(new, (first,))]


@ON_SQLITE
def test_what_is_rolled_back_is_not_reported(dedup: Deduplicator, sessions: sessionmaker[Session]) -> None:
    guard_duplicates(sessions, Petition, dedup)
    with sessions() as session:
        session.add(kept := petition(NOISE))
        session.flush()
        with session.begin_nested() as inner:
            session.add(petition(NOISE_AGAIN))
            session.flush()
            assert len(found_duplicates(session)) == 2
            inner.rollback()
        assert [found.instance for found in found_duplicates(session)] == [kept]
        with session.begin_nested():
            session.add(petition(NOISE_AGAIN))
        assert len(found_duplicates(session)) == 2
        session.rollback()
        assert found_duplicates(session) == []


def test_a_key_of_the_application_and_a_type_of_its_own(database: Database) -> None:
    letters = make_letters(database.engine)
    sessions = own_sessions(database.engine)
    guard_duplicates(sessions, Letter, letters, "block")
    with sessions() as session:
        session.add(first := Letter(office="north", number=1, content=WATER))
        session.commit()
        session.add(Letter(office="north", number=2, content=WATER))
        with pytest.raises(DuplicateError) as error:
            session.commit()
        assert [match.row_key for match in error.value.matches] == ['["north","1"]']
        session.rollback()
        first.number, first.content = 3, WATER + "。"
        session.commit()


def test_a_failing_check_costs_a_report_and_no_row(
    database: Database,
    dedup: Deduplicator,
    sessions: sessionmaker[Session],
    caplog: pytest.LogCaptureFixture,
) -> None:
    guard_duplicates(sessions, Petition, dedup)
    dedup.database.uninstall()
    with caplog.at_level(logging.WARNING), sessions() as session:
        session.add(petition(NOISE))
        session.commit()
    assert count(database.engine) == 2
    assert "Petition" in caplog.text
    assert "施工" not in caplog.text


def test_a_session_that_commits_each_statement_is_told_as_well(
    database: Database, dedup: Deduplicator
) -> None:
    engine = create_engine(database.url, isolation_level="AUTOCOMMIT")
    with Session(engine) as session:
        guard_duplicates(session, Petition, dedup)
        session.add(petition(NOISE))
        session.commit()
        assert keys(found_duplicates(session)) == [["1"]]
    engine.dispose()


@ON_SQLITE
def test_objects_of_one_flush_are_compared_with_our_tables_elsewhere(
    dedup: Deduplicator, tmp_path: Path
) -> None:
    engine = dedup.database.engine
    apart = Deduplicator(engine, "petitions", {"content": 1}, store=f"sqlite:///{tmp_path / 'store.db'}")
    apart.upgrade()
    apart.scan()
    sessions = own_sessions(engine)
    guard_duplicates(sessions, Petition, apart)
    with sessions() as session:
        session.add_all([first := petition(WATER), again := petition(WATER)])
        session.commit()
        assert [(f.instance, f.others) for f in found_duplicates(session)] == [(again, (first,))]
    apart.database.close()


@ON_SQLITE
def test_a_guard_is_removed(dedup: Deduplicator, sessions: sessionmaker[Session]) -> None:
    blocking = guard_duplicates(sessions, Petition, dedup, "block")
    other = guard_duplicates(sessions, Petition, dedup)
    blocking.remove()
    blocking.remove()
    with sessions() as session, session.begin():
        session.add(petition(NOISE))
        session.flush()
        assert len(found_duplicates(session)) == 1
    other.remove()
    with sessions() as session, session.begin():
        session.add(petition(NOISE))
        session.flush()
        assert found_duplicates(session) == []


@ON_SQLITE
def test_other_sessions_and_statements_are_not_checked(
    database: Database, dedup: Deduplicator, sessions: sessionmaker[Session]
) -> None:
    guard_duplicates(sessions, Petition, dedup, "block")
    with Session(database.engine) as session, session.begin():
        session.add(petition(NOISE))
    with sessions() as session, session.begin():
        session.execute(insert(Petition), [{"title": "反映问题", "body": NOISE}])
        session.bulk_save_objects([petition(NOISE)])
    assert count(database.engine) == 4


@ON_SQLITE
def test_a_registry_of_sessions_and_a_class_of_them(
    database: Database, dedup: Deduplicator, sessions: sessionmaker[Session]
) -> None:
    class OwnSession(Session):
        pass

    guard_duplicates(OwnSession, Petition, dedup, "block")
    with OwnSession(database.engine) as session:
        session.add(petition(NOISE))
        with pytest.raises(DuplicateError):
            session.flush()
    registry = scoped_session(sessions)
    guard_duplicates(registry, Petition, dedup)
    registry.add(petition(NOISE))
    registry.flush()
    assert len(found_duplicates(registry)) == 1
    registry.remove()


@ON_SQLITE
def test_wrong_arguments_are_named(dedup: Deduplicator, sessions: sessionmaker[Session]) -> None:
    wrong = [
        ((Petition, Petition, dedup), "sessions should be a Session"),
        ((sessions, Deduplicator, dedup), "model should be a mapped class, not Deduplicator"),
        ((sessions, "petitions", dedup), "model should be a mapped class"),
        ((sessions, Petition, "petitions"), "dedup should be a Deduplicator"),
        ((sessions, Petition, dedup, "refuse"), "no mode 'refuse'"),
        ((sessions, Petition, dedup, "block", "print"), "on_found should be a function"),
    ]
    for arguments, message in wrong:
        with pytest.raises(InvalidArgumentError, match=message):
            guard_duplicates(*arguments)  # type: ignore[arg-type]


@ON_SQLITE
def test_faults_of_the_model_are_named(dedup: Deduplicator, sessions: sessionmaker[Session]) -> None:
    """They are the programmer's, so they are raised in both modes."""
    guard = guard_duplicates(sessions, Petition, dedup)
    with sessions() as session:
        session.add(Petition(title="a", body=func.upper("a")))
        with pytest.raises(InvalidArgumentError, match="'content' of Petition"):
            session.flush()
    guard.remove()
    guard_duplicates(sessions, Override, dedup)
    with sessions() as session:
        session.add(Override(petition_id=1, reason="seen"))
        with pytest.raises(ConfigError, match="Override maps no column 'title', 'content'"):
            session.flush()
