"""Rows that change between their first reading and the second one, which fetches the texts of candidates.

With sketches, the first reading computes all that the rule compares, and there is no second one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import combinations
from typing import Any

import pytest
from sqlalchemy import Connection, delete, select, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as petitions_table
from tests.bad_input.conftest import Watcher
from tests.interrupted.conftest import change_recipe, fresh_answer, in_the_file
from tests.scan.conftest import answer
from tests.servers import Database

OTHER_TEXT = "小区门口的路灯已经坏了三个星期，晚上回家的老人什么也看不见，请尽快派人来修理。"


RADIUS = 8


def keys_with_candidates(dedup: Deduplicator) -> set[str]:
    """Every row, copies aside, that another one is proposed for, by brute force on what is stored."""
    row = dedup.database.tables.fingerprint
    with dedup.database.engine.connect() as connection:
        heads = connection.execute(
            select(row.c.row_key, row.c.fingerprint).where(
                row.c.copy_of.is_(None), row.c.fingerprint.is_not(None)
            )
        ).all()
    near = [(a, b) for (a, x), (b, y) in combinations(heads, 2) if (x ^ y).bit_count() <= RADIUS]
    return {key for pair in near for key in pair}


def set_row(connection: Connection, key: str, **values: object) -> None:
    connection.execute(update(petitions_table).where(petitions_table.c.id == int(key)).values(**values))


def row_of(connection: Connection, key: str) -> dict[str, Any]:
    query = select(petitions_table).where(petitions_table.c.id == int(key))
    return dict(connection.execute(query).mappings().one())


def change_text(connection: Connection, candidates: list[str], others: list[str]) -> None:  # noqa: ARG001
    set_row(connection, candidates[0], title="路灯", content=OTHER_TEXT)


def become_blank(connection: Connection, candidates: list[str], others: list[str]) -> None:  # noqa: ARG001
    set_row(connection, candidates[0], title="", content=" ！ ")


def go(connection: Connection, candidates: list[str], others: list[str]) -> None:  # noqa: ARG001
    connection.execute(delete(petitions_table).where(petitions_table.c.id == int(candidates[0])))


def take_another_key(connection: Connection, candidates: list[str], others: list[str]) -> None:  # noqa: ARG001
    """The row under its new key is seen by the next scan; here it is gone."""
    set_row(connection, candidates[0], id=990_000 + int(candidates[0]))


def become_a_copy_of_a_candidate(
    connection: Connection,
    candidates: list[str],
    others: list[str],  # noqa: ARG001
) -> None:
    same = row_of(connection, candidates[-1])
    set_row(connection, candidates[0], title=same["title"], content=same["content"])


def become_a_copy_of_another(connection: Connection, candidates: list[str], others: list[str]) -> None:
    same = row_of(connection, others[0])
    set_row(connection, candidates[0], title=same["title"], content=same["content"])


def come_near_another(connection: Connection, candidates: list[str], others: list[str]) -> None:
    """That one was no candidate: its text must be read now."""
    like = row_of(connection, others[0])
    set_row(connection, candidates[0], title=like["title"], content=like["content"] + "谢谢！")


def be_received_first(connection: Connection, candidates: list[str], others: list[str]) -> None:  # noqa: ARG001
    set_row(connection, candidates[-1], created_at=datetime(1980, 1, 1))


def all_at_once(connection: Connection, candidates: list[str], others: list[str]) -> None:
    for i, change in enumerate((change_text, go, become_a_copy_of_another, come_near_another)):
        change(connection, candidates[i:], others[i:])


CHANGES = [change_text, become_blank, go, take_another_key, become_a_copy_of_a_candidate]
CHANGES += [become_a_copy_of_another, come_near_another, be_received_first, all_at_once]


def rescan_during(dedup: Deduplicator, act: Callable[[], object]) -> None:
    watcher = Watcher(act, "texts of candidates")
    Deduplicator(dedup.database, in_the_file(), progress=watcher).scan()
    assert watcher.has_acted


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_the_answer_is_that_of_the_second_reading(petitions: Database, change: Callable[..., None]) -> None:
    dedup = change_recipe(petitions, f"sketches = false\nradius = {RADIUS}")
    dedup.upgrade()
    dedup.scan()
    candidates = sorted(keys_with_candidates(dedup), key=int)
    copies = {p.key_b for p in dedup.pairs() if p.distance == 0 and p.similarity == 1}
    with petitions.engine.connect() as connection:
        every = map(str, connection.execute(select(petitions_table.c.id)).scalars())
    others = sorted(set(every) - set(candidates) - copies, key=int)

    def act() -> None:
        with petitions.engine.begin() as connection:
            change(connection, candidates, others)

    rescan_during(dedup, act)
    if change is take_another_key:
        assert candidates[0] not in {key for p in dedup.pairs() for key in (p.key_a, p.key_b)}
        dedup.scan()
    assert answer(dedup) == fresh_answer(dedup)
    assert dedup.verify().is_right


def test_a_row_that_changed_before_each_reading_is_written_as_the_second_found_it(
    petitions: Database,
) -> None:
    """First its order, so that it is to be written, but not segmented; then its text."""
    dedup = change_recipe(petitions, f"sketches = false\nradius = {RADIUS}")
    dedup.upgrade()
    dedup.scan()
    first, second, *_ = sorted(keys_with_candidates(dedup), key=int)
    with petitions.engine.begin() as connection:
        for key in (first, second):
            set_row(connection, key, created_at=datetime(1980, 1, 1))

    def act() -> None:
        with petitions.engine.begin() as connection:
            change_text(connection, [first], [])
            go(connection, [second], [])

    rescan_during(dedup, act)
    assert answer(dedup) == fresh_answer(dedup)
    assert dedup.verify().is_right
