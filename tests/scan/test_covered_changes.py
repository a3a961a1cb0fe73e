"""A scan deletes the changes that it makes superfluous from the queue, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, select, update

from db_dedup import Deduplicator
from db_dedup.app import Database as OurDatabase
from db_dedup.errors import DedupError
from db_dedup.jobs.scan.full_scan import FullScan
from db_dedup.store import changes
from tests.servers import Database
from tests.thorough import MYSQL
from tests.worker.conftest import body, change, drain, write
from tests.worker.watched import Watched


@pytest.fixture
def watched(database: Database) -> Watched:
    """Nine rows, scanned and attached."""
    watched = Watched.make(database.engine, 0)
    write(watched, range(9))
    drain(watched)
    return watched


def waiting(watched: Watched) -> set[str]:
    ours = watched.dedup.database
    queue = ours.tables.change
    with ours.engine.connect() as connection:
        return set(connection.execute(select(queue.c.row_key)).scalars())


def test_a_scan_handles_what_waits(watched: Watched) -> None:
    change(watched, 3, "another text that is long enough to be judged")
    change(watched, 4, body(5))
    assert waiting(watched) == {"3", "4"}
    watched.dedup.scan()
    assert waiting(watched) == set()
    assert watched.stored() == watched.fresh()


def test_a_change_of_an_open_transaction_stays(watched: Watched, database: Database) -> None:
    """Its time is before that of the change that was committed first."""
    if database.name == "sqlite":
        pytest.skip("SQLite has one writer")
    ours = OurDatabase(database.engine)
    with database.engine.connect() as late:
        rows = watched.letters
        late.execute(update(rows).where(rows.c.id == 3).values(body=body(4)))
        change(watched, 5, body(1))
        watched.dedup.scan()
        late.commit()
    ours.close()
    assert waiting(watched) == {"3"}
    drain(watched)
    assert watched.stored() == watched.fresh()


def test_a_change_during_the_scan_stays(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    change(watched, 3, body(4))
    read = FullScan._read

    def read_then_write(scan: FullScan, *arguments: Any) -> Any:
        found = read(scan, *arguments)
        change(watched, 3, body(5))
        change(watched, 6, body(5))
        return found

    monkeypatch.setattr(FullScan, "_read", read_then_write)
    watched.dedup.scan()
    assert waiting(watched) == {"3", "6"}
    monkeypatch.undo()
    drain(watched)
    assert watched.stored() == watched.fresh()


@pytest.mark.parametrize("database", ["mariadb", MYSQL], indirect=True)
def test_a_change_that_is_committed_during_the_scan_stays_at_any_level_of_isolation(
    watched: Watched, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At READ UNCOMMITTED the server shows it before it is committed."""
    read = FullScan._read
    engine = create_engine(database.url, isolation_level="READ UNCOMMITTED")
    with database.engine.connect() as late:

        def read_then_commit(scan: FullScan, *arguments: Any) -> Any:
            found = read(scan, *arguments)
            late.commit()
            return found

        rows = watched.letters
        late.execute(update(rows).where(rows.c.id == 3).values(body=body(4)))
        with monkeypatch.context() as patch:
            patch.setattr(FullScan, "_read", read_then_commit)
            Deduplicator(engine, watched.letters.name).scan()
    engine.dispose()
    assert waiting(watched) == {"3"}
    drain(watched)
    assert watched.stored() == watched.fresh()


def test_a_scan_that_fails_leaves_the_queue(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    change(watched, 3, body(4))

    def fail(*_: Any) -> Any:
        raise DedupError("on purpose")

    monkeypatch.setattr(FullScan, "_switch", fail)
    with pytest.raises(DedupError, match="on purpose"):
        watched.dedup.scan()
    assert waiting(watched) == {"3"}


def test_changes_with_a_fault_are_left_to_the_worker(watched: Watched) -> None:
    ours = watched.dedup.database
    with ours.engine.begin() as connection:
        table_id = connection.execute(select(ours.tables.watched_table.c.id)).scalar_one()
        too_long = changes.Change("x", changes.KEY_TOO_LONG)
        changes.park(connection, ours.tables, table_id, changes.Change("4", changes.UPDATED), 1, "broken")
        changes.append_changes(
            connection,
            ours.dialect,
            ours.tables,
            table_id,
            [too_long, changes.Change("4", changes.UPDATED), changes.Change("5", changes.UPDATED)],
        )
    watched.dedup.scan()
    assert waiting(watched) == {"x", "4"}


def test_a_scan_forgets_changes_whose_row_could_not_be_named(watched: Watched) -> None:
    """Such a row ends a scan with an error: where a scan is done, there is none any more."""
    ours = watched.dedup.database
    with ours.engine.begin() as connection:
        table_id = connection.execute(select(ours.tables.watched_table.c.id)).scalar_one()
        for change_ in (changes.Change("much too long", changes.KEY_TOO_LONG), changes.Change("4", "U")):
            changes.park(connection, ours.tables, table_id, change_, 1, "broken")
    watched.dedup.scan()
    with ours.engine.connect() as connection:
        assert [c.row_key for c in changes.read_dead(connection, ours.tables, table_id)] == ["4"]


def test_a_change_that_is_parked_during_a_retry(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = watched.dedup.database
    append, other = changes.append_changes, changes.Change("7", "U")

    def append_late(connection: Connection, dialect: Any, tables: Any, table_id: int, *given: Any) -> None:
        changes.park(connection, tables, table_id, other, 1, "broken")
        append(connection, dialect, tables, table_id, *given)

    with ours.engine.begin() as connection:
        table_id = connection.execute(select(ours.tables.watched_table.c.id)).scalar_one()
        changes.park(connection, ours.tables, table_id, changes.Change("4", "U"), 1, "broken")
    monkeypatch.setattr(changes, "append_changes", append_late)
    assert watched.dedup.retry() == 1
    with ours.engine.connect() as connection:
        assert [c.row_key for c in changes.read_dead(connection, ours.tables, table_id)] == ["7"]
