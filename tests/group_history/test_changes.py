"""What becomes of groups: merged, split, another representative, gone; by the worker and by a scan."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import text, update

from db_dedup.errors import DatabaseUnavailableError
from db_dedup.store import group_history, watched_tables
from db_dedup.store.clock import database_now
from tests.group_history.recorded import BODIES, LAMPS, NOISE, OTHER_SETTINGS, WATER, Recorded
from tests.servers import Database
from tests.worker.watched import Watched

BY = ("work", "scan")


@pytest.fixture
def recorded(database: Database) -> Recorded:
    """Groups 1 (rows 1, 2, 3) and 4 (rows 4, 5, 6), which the worker has found."""
    found = Recorded(Watched.make(database.engine, 0))
    for number, body in enumerate(BODIES[:6], 1):
        found.write(number, body)
    found.work()
    assert set(found.seen[-1].values()) == {"1", "4"}
    return found


def step(recorded: Recorded, by: str) -> None:
    getattr(recorded, by)()


def now(recorded: Recorded, group_id: str) -> list[tuple[str, int]]:
    return [(group.group_id, group.size) for group in recorded.dedup.group_history(group_id).groups]


def test_groups_that_begin_and_grow_have_no_history(recorded: Recorded) -> None:
    recorded.write(7, LAMPS)
    recorded.work()
    recorded.scan()
    assert recorded.dedup.group_changes() == []
    assert now(recorded, "1") == [("1", 4)]


@pytest.mark.parametrize("by", BY)
def test_merged(recorded: Recorded, by: str) -> None:
    recorded.write(7, f"{LAMPS} {WATER}")
    step(recorded, by)
    (change,) = recorded.dedup.group_changes()
    assert (change.group_id, change.new_group_id, change.kind) == ("4", "1", "merged")
    assert (change.size, change.moved, change.new_size) == (3, 3, 7)
    assert (change.scan is not None) == (by == "scan")
    assert now(recorded, "4") == now(recorded, "1") == [("1", 7)]
    assert recorded.dedup.group_history("1").origins == (change,)


@pytest.mark.parametrize("by", BY)
def test_split_again_both_ids_lead_to_both_groups(recorded: Recorded, by: str) -> None:
    recorded.write(7, f"{LAMPS} {WATER}")
    step(recorded, by)
    recorded.delete(7)
    step(recorded, by)
    *_, last = recorded.noted
    assert {(change[0], change[1], change[2], change[4]) for change in last} == {
        ("1", "1", "split", 3),
        ("1", "4", "split", 3),
    }
    assert now(recorded, "4") == [("1", 3), ("4", 3)]
    assert [change.kind for change in recorded.dedup.group_history("4").changes] == [
        "merged",
        "split",
        "split",
    ]
    assert Counter(recorded.written()) == Counter(change for step in recorded.noted for change in step)


@pytest.mark.parametrize("by", BY)
def test_an_id_is_followed_through_every_change(recorded: Recorded, by: str) -> None:
    """Merged into 1, which is split into 1 and 5; then 1 is deleted, too."""
    recorded.write(7, f"{LAMPS} {WATER}")
    step(recorded, by)
    recorded.delete(4, 7)
    step(recorded, by)
    recorded.delete(1)
    step(recorded, by)
    assert {group for group, _ in now(recorded, "4")} == recorded.expected_groups("4") == {"2", "5"}


@pytest.mark.parametrize("by", BY)
def test_the_representative_is_deleted(recorded: Recorded, by: str) -> None:
    recorded.delete(1)
    step(recorded, by)
    assert recorded.written() == [("1", "2", "new_representative", 3, 2, 2)]
    assert now(recorded, "1") == [("2", 2)]


@pytest.mark.parametrize("by", BY)
def test_the_representative_is_edited_away(recorded: Recorded, by: str) -> None:
    recorded.write(1, NOISE)
    step(recorded, by)
    assert recorded.written() == [("1", "2", "new_representative", 3, 2, 2)]
    assert recorded.dedup.group_history("1").row_group_id is None


@pytest.mark.parametrize("by", BY)
def test_the_representative_is_edited_into_another_group(recorded: Recorded, by: str) -> None:
    """Its id is that of a group again: it leads to the rows of both."""
    recorded.write(1, WATER)
    step(recorded, by)
    assert now(recorded, "1") == [("1", 4), ("2", 2)]
    assert now(recorded, "4") == [("1", 4)]


@pytest.mark.parametrize("by", BY)
def test_an_earlier_row_becomes_the_representative(recorded: Recorded, by: str) -> None:
    recorded.write(8, LAMPS, received=0)
    step(recorded, by)
    assert recorded.written() == [("1", "8", "new_representative", 3, 3, 4)]


@pytest.mark.parametrize("by", BY)
def test_the_whole_group_is_gone(recorded: Recorded, by: str) -> None:
    recorded.delete(4, 5, 6)
    step(recorded, by)
    history = recorded.dedup.group_history("4")
    assert [(change.kind, change.new_group_id) for change in history.changes][-1] == ("ended", None)
    assert history.groups == ()
    assert history.is_known


def test_a_deleted_representative_whose_number_a_new_row_gets(recorded: Recorded) -> None:
    """SQLite gives the number of the last row to the next one, in the same batch."""
    recorded.delete(1, 2, 3)
    recorded.work()
    recorded.write(12, NOISE)
    recorded.write(13, NOISE)
    recorded.work()
    recorded.delete(12)
    recorded.write(11, NOISE, received=1)
    recorded.work()
    assert Counter(recorded.written()) == Counter(change for step in recorded.noted for change in step)
    assert now(recorded, "12") == [("11", 2)]


def test_another_recipe_regroups_all(recorded: Recorded) -> None:
    recorded.switch(OTHER_SETTINGS[0])
    assert {change[2] for change in recorded.noted[-1]} == {"ended"}
    assert Counter(recorded.written()) == Counter(recorded.noted[-1])
    assert {change.scan for change in recorded.dedup.group_changes()} != {None}


@pytest.mark.parametrize("by", BY)
def test_what_is_rolled_back_has_no_history(
    recorded: Recorded, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.delete(1)
    with monkeypatch.context() as patch:

        def fail(*_: object) -> None:
            raise DatabaseUnavailableError("no more")

        # After the history and before the commit, in a batch and in a scan.
        patch.setattr(watched_tables, "bump_answer_version", fail)
        patch.setattr(watched_tables, "serve_recipe", fail)
        with pytest.raises(DatabaseUnavailableError, match="no more"):
            step(recorded, by)
    assert recorded.dedup.group_changes() == []
    step(recorded, by)
    assert now(recorded, "1") == [("2", 2)]


def test_old_changes_are_deleted_by_a_scan(recorded: Recorded) -> None:
    recorded.delete(1)
    recorded.work()
    recorded.delete(4)
    recorded.work()
    database = recorded.dedup.database
    table = database.tables.group_change
    with database.engine.begin() as connection:
        old = database_now(connection) - 2 * group_history.KEPT
        connection.execute(update(table).where(table.c.old_key == "1").values(changed_at=old))
    recorded.scan()
    assert [change.group_id for change in recorded.dedup.group_changes()] == ["4"]
    history = recorded.dedup.group_history("1")
    assert not history.is_known


def test_the_row_of_an_id_without_history_is_found(recorded: Recorded) -> None:
    """As after an upgrade: the group was merged before changes were kept."""
    recorded.write(7, f"{LAMPS} {WATER}")
    recorded.work()
    with recorded.dedup.database.engine.begin() as connection:
        connection.execute(text(f"DELETE FROM {recorded.dedup.database.tables.group_change.fullname}"))
    assert recorded.dedup.group_history("4").row_group_id == "1"


@pytest.mark.parametrize("by", BY)
def test_a_damaged_answer_is_repaired_without_its_history(recorded: Recorded, by: str) -> None:
    """A row is in a group whose representative is not stored: nobody could note its id."""
    fingerprint = recorded.dedup.database.tables.fingerprint
    with recorded.dedup.database.engine.begin() as connection:
        damage = update(fingerprint).where(fingerprint.c.row_key == "2")
        connection.execute(damage.values(group_id=999_999))
    recorded.write(2, NOISE)
    step(recorded, by)
    assert [change for change in recorded.written() if change[0] not in ("1", "4")] == []
    recorded.scan()
    assert recorded.watched.stored() == recorded.watched.fresh()
