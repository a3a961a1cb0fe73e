"""The second proposer in a full scan: which pairs it adds, and that the stored bands are those of the rows."""

from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions
from db_dedup.config import watched_table
from db_dedup.sample import Petition, Sample
from tests.bands import bands_are_exact
from tests.scan.conftest import COLUMNS, answer, fill_database, watch
from tests.scan.reference import brute_force
from tests.servers import Database

TEXTS = (
    "小区门口的路灯坏了三个月，晚上出行很不安全，希望尽快修好。",
    "小区门口的路灯坏了两个多月，夜里出行不安全，希望有关部门尽快修好。",
    "公司拖欠三个月工资，老板已经联系不上，请求帮助讨薪。",
)


def petition(number: int, content: str, day: int) -> dict[str, Any]:
    return {"id": number, "title": "投诉", "content": content, "created_at": datetime(2024, 1, day)}


def rows_now(database: Database) -> list[Petition]:
    with database.engine.connect() as connection:
        return [Petition(**row) for row in connection.execute(select(petitions)).mappings()]


def brute(database: Database, **options: Any) -> list[Any]:
    return brute_force(rows_now(database), watched_table("petitions", {"columns": COLUMNS, **options}))


def write(database: Database, *rows: dict[str, Any]) -> Deduplicator:
    with database.engine.begin() as connection:
        petitions.create(connection)
        connection.execute(insert(petitions), list(rows))
    return watch(database.engine)


def test_bands_find_what_the_fingerprints_do_not(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    found = {}
    for bands in (False, True):
        dedup = watch(database.engine, bands=bands)
        dedup.scan()
        found[bands], _, _ = answer(dedup)
        assert found[bands] == brute(database, bands=bands)
        bands_are_exact(dedup)
    added = set(found[True]) - set(found[False])
    assert set(found[False]) < set(found[True])
    assert all(pair.distance > 3 for pair in added)
    assert len(added) > 20


def test_a_copy_becomes_the_head(database: Database) -> None:
    """The row received first of equal ones is received later by now: another has its bands, unread."""
    dedup = write(database, petition(1, TEXTS[0], 1), petition(2, TEXTS[0], 2), petition(3, TEXTS[1], 3))
    dedup.scan()
    with database.engine.begin() as connection:
        later = update(petitions).where(petitions.c.id == 1).values(created_at=datetime(2024, 2, 1))
        connection.execute(later)
    dedup.scan()
    bands_are_exact(dedup)
    found, _, _ = answer(dedup)
    assert [(p.key_a, p.key_b) for p in found] == [("2", "1"), ("2", "3")]
    assert found == brute(database)
