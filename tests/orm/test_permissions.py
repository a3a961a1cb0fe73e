"""`allow_duplicate`: an object is stored although it is a duplicate, for a reason."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from db_dedup import (
    Deduplicator,
    DuplicateError,
    FoundDuplicate,
    InvalidArgumentError,
    allow_duplicate,
    found_duplicates,
    guard_duplicates,
)
from tests.orm.office import NOISE, NOISE_AGAIN, Override, Petition, petition

ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def test_a_reason_lets_a_duplicate_through_once(dedup: Deduplicator, sessions: sessionmaker[Session]) -> None:
    """What `on_found` adds is stored by the same flush, in the same transaction."""
    with sessions() as session:

        def record(found: FoundDuplicate) -> None:
            session.add(Override(petition=found.instance, reason=found.reason))

        guard_duplicates(session, Petition, dedup, "block", record)
        session.add(again := petition(NOISE_AGAIN))
        allow_duplicate(again, "another building site")
        session.commit()
        assert [each.reason for each in found_duplicates(session)] == ["another building site"]
        again.body = NOISE_AGAIN + "急"
        with pytest.raises(DuplicateError):
            session.flush()
        session.rollback()
        stored = session.scalars(select(Override)).one()
        assert (stored.petition_id, stored.reason) == (again.id, "another building site")


@ON_SQLITE
def test_a_reason_is_for_the_rows_that_somebody_has_seen(
    dedup: Deduplicator, sessions: sessionmaker[Session]
) -> None:
    told: list[FoundDuplicate] = []
    guard_duplicates(sessions, Petition, dedup, "block", told.append)
    with sessions() as session:
        session.add(again := petition(NOISE_AGAIN))
        with pytest.raises(DuplicateError) as error:
            session.flush()
        allow_duplicate(again, "seen by a clerk", [])
        with pytest.raises(DuplicateError):
            session.flush()
        allow_duplicate(again, "seen by a clerk", error.value.matches)
        session.commit()
    assert [found.reason for found in told] == ["seen by a clerk"]


@ON_SQLITE
def test_a_reason_is_for_all_guards_of_a_model(dedup: Deduplicator, sessions: sessionmaker[Session]) -> None:
    told: list[FoundDuplicate] = []
    for mode in ("report", "block", "block"):
        guard_duplicates(sessions, Petition, dedup, mode, told.append)
    with sessions() as session:
        session.add(again := petition(NOISE_AGAIN))
        allow_duplicate(again, "seen by a clerk")
        session.commit()
        assert [found.reason for found in told] == ["seen by a clerk"] * 3
        again.body = NOISE
        with pytest.raises(DuplicateError):
            session.flush()


@ON_SQLITE
def test_a_reason_holds_until_a_flush_succeeds(dedup: Deduplicator, sessions: sessionmaker[Session]) -> None:
    guard_duplicates(sessions, Petition, dedup, "block", lambda _: None)
    with sessions() as session:
        session.add_all([again := petition(NOISE_AGAIN), wrong := Override(petition_id=1)])
        allow_duplicate(again, "seen by a clerk")
        with pytest.raises(IntegrityError):  # it has no reason
            session.flush()
        session.rollback()
        assert wrong not in session
        session.add(again)
        session.commit()


@ON_SQLITE
def test_a_reason_that_nobody_records_is_refused(
    dedup: Deduplicator, sessions: sessionmaker[Session]
) -> None:
    guard_duplicates(sessions, Petition, dedup, "block")
    with sessions() as session:
        session.add(again := petition(NOISE_AGAIN))
        allow_duplicate(again, "seen")
        with pytest.raises(InvalidArgumentError, match="on_found"):
            session.flush()
    for reason in ("", "  "):
        with pytest.raises(InvalidArgumentError, match="reason"):
            allow_duplicate(again, reason)
    with pytest.raises(InvalidArgumentError, match="mapped class"):
        allow_duplicate("text", "seen")
    with pytest.raises(InvalidArgumentError, match="a match should be a Match"):
        allow_duplicate(again, "seen", ["1"])  # type: ignore[list-item]
