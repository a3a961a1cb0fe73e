"""Values of columns that nobody has set: the defaults of the model."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from sqlalchemy import Column, func
from sqlalchemy.orm import Session, sessionmaker

from db_dedup import Deduplicator, DuplicateError, InvalidArgumentError, guard_duplicates
from tests.orm.office import WATER, Channel, Petition, petition

ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def test_values_are_checked_as_they_will_be_stored(
    dedup: Deduplicator, sessions: sessionmaker[Session]
) -> None:
    """A default of the model, and the name of an enumeration's member."""
    by_region = Deduplicator(dedup.database, "petitions", {"content": 1}, within=["region", "channel"])
    by_region.scan()
    by_region.attach()
    by_region.scan()
    guard_duplicates(sessions, Petition, by_region, "block")
    with sessions() as session:
        session.add(petition(WATER, channel=Channel.PHONE))
        session.commit()
        session.add(petition(WATER, channel=Channel.LETTER))
        session.add(petition(WATER, channel=Channel.PHONE, region="城西区"))
        session.commit()
        session.add(petition(WATER, channel=Channel.PHONE))
        with pytest.raises(DuplicateError, match=r"row 2$"):
            session.commit()


@ON_SQLITE
def test_none_is_checked_as_the_default_that_is_stored(
    dedup: Deduplicator, sessions: sessionmaker[Session]
) -> None:
    by_region = Deduplicator(dedup.database, "petitions", {"content": 1}, within=["region"])
    by_region.scan()
    by_region.attach()
    by_region.scan()
    guard_duplicates(sessions, Petition, by_region, "block")
    with sessions() as session:
        session.add(petition(WATER))
        session.commit()
        session.add(petition(WATER, region=None))
        with pytest.raises(DuplicateError, match=r"row 2$"):
            session.commit()


@ON_SQLITE
def test_defaults_that_are_called(
    dedup: Deduplicator, sessions: sessionmaker[Session], caplog: pytest.LogCaptureFixture
) -> None:
    """One is called before the check, so that what is checked is what is stored."""
    by_day = Deduplicator(dedup.database, "petitions", {"content": 1}, within=["received"])
    by_day.scan()
    by_day.attach()
    by_day.scan()
    guard = guard_duplicates(sessions, Petition, by_day, "block")
    column: Any = Petition.__table__.c.received
    days = iter([date(2024, 2, 1), date(2024, 2, 2), date(2024, 2, 1)])
    with sessions() as session:
        column.default = as_default(column, lambda: next(days))
        try:
            for _ in range(2):
                session.add(petition(WATER))
                session.commit()
            session.add(third := petition(WATER))
            with pytest.raises(DuplicateError, match=r"row 2$"):
                session.commit()
            assert third.received == date(2024, 2, 1)
            session.rollback()
            for unknown in (func.current_date(), lambda context: context.get_current_parameters()["x"]):
                column.default = as_default(column, unknown)
                session.add(petition(WATER))
                with pytest.raises(InvalidArgumentError, match="'received' of Petition has a default"):
                    session.commit()
                session.rollback()
            guard.remove()
            guard_duplicates(sessions, Petition, by_day, "report")
            column.default = as_default(column, func.current_date())
            session.add(petition(WATER))
            session.commit()
            assert "were stored without a check" in caplog.text
        finally:
            column.default = None


def as_default(column: Any, given: Any) -> Any:
    return Column("x", column.type, default=given).default
