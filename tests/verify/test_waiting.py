"""Changes that wait in the queue are a difference only where they change pairs or groups."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, delete, insert, select, text, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as petitions_table
from tests.cli.conftest import run, succeed
from tests.interrupted.conftest import by_settings
from tests.servers import Database
from tests.verify.test_damage import (
    Harm,
    assert_differs,
    change_row,
    invent_a_pair,
    lose_a_pair,
    lose_a_row,
)

RIGHT = "petitions: the answer is what a fresh full scan gives"
OTHER_TEXT = "这里说的是另外一件谁也没有提过的事情，与别的来信都不一样。"
FAR = 900_000


@pytest.fixture
def attached(petitions: Database) -> Deduplicator:
    """Scanned and attached, with an empty queue."""
    succeed("upgrade")
    succeed("attach", "petitions")
    succeed("worker", "petitions", "--drain")
    return by_settings(petitions)


def kinds_of_rows(dedup: Deduplicator) -> tuple[int, int, int]:
    """The keys of a row alone, of a canonical row with an exact duplicate, and of another representative."""
    table = dedup.database.tables.fingerprint
    with dedup.database.engine.connect() as connection:
        rows = connection.execute(select(table).order_by(table.c.id)).all()
    canonical_ids = {row.copy_of for row in rows if row.copy_of is not None}
    alone = next(row.row_key for row in rows if row.group_id is None)
    canonical = next(row for row in rows if row.id in canonical_ids)
    others = (row for row in rows if row.group_id == row.id != canonical.group_id)
    return int(alone), int(canonical.row_key), int(next(others).row_key)


def insert_like(connection: Connection, key: int, new_key: int, **values: str) -> None:
    query = select(petitions_table).where(petitions_table.c.id == key)
    old = connection.execute(query).one()._asdict()
    connection.execute(insert(petitions_table).values({**old, "id": new_key, **values}))


def test_a_row_like_no_other_that_waits_is_no_difference(attached: Deduplicator) -> None:
    alone, *_ = kinds_of_rows(attached)
    with attached.database.engine.begin() as connection:
        insert_like(connection, alone, FAR, title="其他", content=OTHER_TEXT)
    told = run("verify", "petitions")
    waits = "1 change waits in the queue: `db-dedup worker petitions --drain` handles them"
    assert (told.stdout, told.stderr.splitlines(), told.exit_code) == ("", [waits, RIGHT], 0)
    found = attached.verify()
    assert (found.is_right, found.waiting) == (True, 1)


def test_waiting_changes_of_pairs_and_groups_are_a_difference(attached: Deduplicator) -> None:
    """An exact duplicate, another text of a canonical row, a representative less."""
    alone, canonical, representative = kinds_of_rows(attached)
    of = petitions_table.c.id
    with attached.database.engine.begin() as connection:
        insert_like(connection, alone, FAR + 1)
        connection.execute(
            update(petitions_table).where(of == canonical).values(content=OTHER_TEXT[::-1], title="另")
        )
        connection.execute(delete(petitions_table).where(of == representative))
    told = run("verify", "petitions")
    assert told.stderr.endswith("petitions: differs; verify again when the queue is empty\n")
    assert told.exit_code == 1
    assert attached.verify().rows.count == 0
    succeed("worker", "petitions", "--drain")
    assert succeed("verify", "petitions").stderr == f"{RIGHT}\n"


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lose_a_pair, "1 pair gained"),
        (invent_a_pair, "1 pair lost"),
        (lose_a_row, "1 row is not stored as it is now"),
        (change_row("representative", group_size=77), "1 group not the same in both"),
    ],
)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_difference_beside_them_is_found(attached: Deduplicator, harm: Harm, says: str) -> None:
    alone, *_ = kinds_of_rows(attached)
    with attached.database.engine.begin() as connection:
        insert_like(connection, alone, FAR, title="其他", content=OTHER_TEXT)
        harm(connection, attached.database.tables)
    assert_differs(says)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_every_row_of_a_truncated_table_waits(attached: Deduplicator) -> None:
    with attached.database.engine.begin() as connection:
        connection.execute(text("TRUNCATE petitions"))
    found = attached.verify()
    assert (found.rows.count, found.is_right) == (0, False)
