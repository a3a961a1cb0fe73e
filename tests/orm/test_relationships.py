"""Foreign keys that a flush copies from related objects, after the check."""

from __future__ import annotations

import logging

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from db_dedup import Deduplicator, DuplicateError, InvalidArgumentError, guard_duplicates
from tests.orm.office import BUS, WATER, Call, Region, make_calls, own_sessions
from tests.servers import Database

ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture
def calls(database: Database) -> Deduplicator:
    return make_calls(database.engine)


@pytest.fixture
def call_sessions(database: Database, calls: Deduplicator) -> sessionmaker[Session]:
    sessions = own_sessions(database.engine)
    guard_duplicates(sessions, Call, calls, "block")
    return sessions


def test_a_new_object_is_checked_by_the_key_of_its_related_object(
    call_sessions: sessionmaker[Session],
) -> None:
    with call_sessions() as session:
        east, west = session.get_one(Region, 1), session.get_one(Region, 2)
        session.add_all([Call(content=WATER, region=east), Call(content=WATER, region=west)])
        session.commit()
        session.add(Call(content=WATER, region_id=2, region=east))  # the object counts, not the number
        with pytest.raises(DuplicateError, match=r"row 1$"):
            session.commit()
        session.rollback()
        session.add(Call(content=WATER, region_id=1, region=None))
        session.commit()
        assert session.scalars(select(Call.region_id).order_by(Call.id)).all() == [1, 2, None]


def test_an_edit_of_the_related_object_is_checked(call_sessions: sessionmaker[Session]) -> None:
    with call_sessions() as session:
        east, west = session.get_one(Region, 1), session.get_one(Region, 2)
        session.add_all([Call(content=WATER, region=east), second := Call(content=WATER, region=west)])
        session.commit()
        second.region = east
        with pytest.raises(DuplicateError, match=r"row 1$"):
            session.commit()
        second.region = None
        session.commit()
        assert second.region_id is None
        second.content, second.region = BUS, east
        session.commit()


@ON_SQLITE
def test_the_same_related_object_again_is_no_change(
    calls: Deduplicator, call_sessions: sessionmaker[Session]
) -> None:
    with Session(calls.database.engine) as session, session.begin():
        session.add_all([Call(content=WATER, region_id=1), Call(content=WATER, region_id=1)])
    with call_sessions() as session:
        again = session.get_one(Call, 2)
        again.region = session.get_one(Region, 1)
        session.commit()


@ON_SQLITE
def test_a_related_object_without_a_key_cannot_be_checked(
    calls: Deduplicator, call_sessions: sessionmaker[Session], caplog: pytest.LogCaptureFixture
) -> None:
    with call_sessions() as session:
        north = Region(name="城北区")
        session.add(Call(content=WATER, region=north))
        with pytest.raises(InvalidArgumentError, match="'region_id' of Call is the key of an object"):
            session.commit()
        session.rollback()
        session.add(north)
        session.flush()
        session.add(Call(content=WATER, region=north))
        session.commit()
    reporting = own_sessions(calls.database.engine)
    guard_duplicates(reporting, Call, calls)
    with caplog.at_level(logging.WARNING), reporting() as session:
        session.add(Call(content=WATER, region=Region(name="城南区")))
        session.commit()
    assert "flush that one first" in caplog.text
