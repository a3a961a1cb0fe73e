"""Sketches in a full scan: the pairs that they add, and that the stored ones are those of the rows."""

from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from db_dedup import Deduplicator, DuplicatePair
from db_dedup.cli.demo import petitions
from db_dedup.config import watched_table
from db_dedup.engines.embedded.sharing import find_sharing_rows
from db_dedup.sample import Petition, Sample
from db_dedup.store import watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from tests.bands import assert_bands_are_exact, canonical_sketches
from tests.flow.reference import meet, sketches_of
from tests.scan.conftest import COLUMNS, answer, fill_database, watch
from tests.scan.reference import brute_force
from tests.servers import Database
from tests.thorough import quick_first

LAMP = "小区门口的路灯坏了三个月，晚上出行很不安全，希望尽快修好。"
SAME_LAMP = "我们小区门口的路灯坏了三个多月，晚上出行很不安全，希望领导尽快修好。"
WAGES = "公司拖欠三个月工资，老板已经联系不上，请求帮助讨薪。"


def made(database: Database, *contents: str, **options: Any) -> Deduplicator:
    """Petitions 1, 2, ... received one a day, scanned once."""
    with database.engine.begin() as connection:
        petitions.create(connection)
        connection.execute(insert(petitions), [petition(i, text) for i, text in enumerate(contents, 1)])
    dedup = watch(database.engine, **options)
    dedup.scan()
    return dedup


def petition(number: int, content: str) -> dict[str, Any]:
    return {"id": number, "title": "投诉", "content": content, "created_at": datetime(2024, 1, number)}


def change(database: Database, number: int, **values: Any) -> None:
    with database.engine.begin() as connection:
        connection.execute(update(petitions).where(petitions.c.id == number).values(**values))


def brute(database: Database, **options: Any) -> list[DuplicatePair]:
    with database.engine.connect() as connection:
        now = [Petition(**row) for row in connection.execute(select(petitions)).mappings()]
    return brute_force(now, watched_table("petitions", {"columns": COLUMNS, **options}))


def check(dedup: Deduplicator, database: Database) -> list[tuple[str, str]]:
    """The keys of the pairs, which are those of brute force."""
    assert_bands_are_exact(dedup)
    found, _, _ = answer(dedup)
    assert found == brute(database)
    return [(pair.key_a, pair.key_b) for pair in found]


def test_the_stored_sketches_meet_as_those_in_memory_do(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    tables = dedup.database.tables
    sketches = canonical_sketches(dedup)
    with dedup.database.engine.connect() as connection:
        stored = watched_tables.find_table(connection, tables, "petitions")
        assert stored is not None
        store = FingerprintStore(dedup.database.dialect, tables, stored.id, stored.recipe or 0)
        asked = dict(list(sketches.items())[:50])
        sketches_asked = sketches_of([own.tobytes() for own in asked.values()])
        pieces = list(find_sharing_rows(connection, store, sketches_asked))
    met = [pair for p in pieces for pair in zip(p.which.tolist(), p.ids.tolist(), strict=True)]
    own_ids = list(asked)
    assert len(met) == len(set(met))
    assert {(own_ids[which], row_id) for which, row_id in met} == {
        (a, b)
        for a, one in asked.items()
        for b, other in sketches.items()
        if meet(one.tolist(), other.tolist())
    }
    share = sum(
        bool({*one.tolist()} & {*other.tolist()}) for one in asked.values() for other in sketches.values()
    )
    assert share > len(met), "some share a phrase alone"


def test_a_row_may_lose_its_sketch_while_others_look(database: Database) -> None:
    """A look-up reads the entries and then their rows: others may write in between."""
    dedup = made(database, LAMP, WAGES)
    asked = {"title": "投诉", "content": SAME_LAMP}
    row = dedup.database.tables.fingerprint
    assert [match.row_key for match in dedup.check(asked)] == ["1"]
    with database.engine.begin() as connection:
        connection.execute(update(row).where(row.c.row_key == "1").values(sketch_size=None))
    assert dedup.check(asked) == []


@pytest.mark.parametrize(
    "options", quick_first([{}, {"within": "region"}, {"similarity": "none"}, {"radius": 0}])
)
def test_bands_find_what_the_fingerprints_do_not(
    database: Database, sample: Sample, options: dict[str, Any]
) -> None:
    fill_database(database.engine, sample)
    found = {}
    for with_sketches in (False, True):
        dedup = watch(database.engine, sketches=with_sketches, **options)
        dedup.scan()
        found[with_sketches] = answer(dedup)[0]
        assert found[with_sketches] == brute(database, sketches=with_sketches, **options)
        assert bool(assert_bands_are_exact(dedup)) == with_sketches
    added = set(found[True]) - set(found[False])
    assert set(found[False]) < set(found[True])
    given = dedup._access.given
    assert given is not None
    assert all(pair.distance > given.rule.radius for pair in added)
    assert len(added) > 20


def test_another_text(database: Database) -> None:
    dedup = made(database, LAMP, SAME_LAMP, WAGES)
    assert check(dedup, database) == [("1", "2")]
    change(database, 3, content=LAMP + "谢谢")
    change(database, 2, content=WAGES)
    dedup.scan()
    assert check(dedup, database) == [("1", "3")]


@pytest.mark.parametrize("content", quick_first(["", "路", "！！！"]))
def test_too_little_text_has_no_bands(database: Database, content: str) -> None:
    dedup = made(database, LAMP, SAME_LAMP)
    change(database, 2, title="", content=content)
    dedup.scan()
    assert check(dedup, database) == []
    assert assert_bands_are_exact(dedup) == 1


def test_a_row_becomes_a_copy_and_a_copy_the_first(database: Database) -> None:
    dedup = made(database, LAMP, LAMP, SAME_LAMP)
    assert assert_bands_are_exact(dedup) == 2
    change(database, 3, content=LAMP)
    dedup.scan()
    assert check(dedup, database) == [("1", "2"), ("1", "3")]
    assert assert_bands_are_exact(dedup) == 1
    change(database, 1, content=SAME_LAMP)
    dedup.scan()
    assert check(dedup, database) == [("1", "2"), ("2", "3")]
    with database.engine.begin() as connection:
        connection.execute(delete(petitions).where(petitions.c.id == 2))
    dedup.scan()
    assert check(dedup, database) == [("1", "3")]


def test_a_copy_takes_over_from_a_row_that_is_received_later_by_now(database: Database) -> None:
    """None of the texts has changed, so none is segmented: the bands are handed on as they are stored."""
    dedup = made(database, WAGES, LAMP, LAMP, SAME_LAMP)
    change(database, 2, created_at=datetime(2024, 2, 1))
    dedup.scan()
    assert check(dedup, database) == [("3", "2"), ("3", "4")]


def test_deleted_rows_leave_no_bands(database: Database) -> None:
    dedup = made(database, LAMP, SAME_LAMP, WAGES)
    with database.engine.begin() as connection:
        connection.execute(delete(petitions).where(petitions.c.id != 2))
    dedup.scan()
    assert check(dedup, database) == []
    row = dedup.database.tables.fingerprint
    with database.engine.connect() as connection:
        assert connection.execute(select(row.c.row_key)).scalars().all() == ["2"]
    assert assert_bands_are_exact(dedup) == 1


def test_another_recipe_leaves_no_bands_behind(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    for options in ({}, {"segmenter": "chars:2"}, {"preset": "strict"}, {"normaliser": "tweet"}):
        dedup = watch(database.engine, **options)
        dedup.scan()
        assert bool(assert_bands_are_exact(dedup)) == (options != {"preset": "strict"})
        band, row = dedup.database.tables.band, dedup.database.tables.fingerprint
        with database.engine.connect() as connection:
            owners = set(connection.execute(select(band.c.fingerprint_id)).scalars())
            assert owners <= set(connection.execute(select(row.c.id)).scalars())


def test_two_tables_of_the_same_texts(database: Database) -> None:
    """Their rows share every value, and neither table finds or takes away the other's."""
    dedup = made(database, LAMP, SAME_LAMP, WAGES)
    settings = {"columns": COLUMNS, "order": "created_at", "table": "petitions"}
    twice = Deduplicator(dedup.database, watched_table("again", settings))
    twice.scan()
    assert assert_bands_are_exact(dedup) == assert_bands_are_exact(twice, "again") == 3
    record = {"title": "投诉", "content": SAME_LAMP}
    assert [m.row_key for m in dedup.check(record)] == [m.row_key for m in twice.check(record)] == ["2", "1"]
    with database.engine.begin() as connection:
        connection.execute(delete(petitions).where(petitions.c.id == 1))
    twice.scan()
    assert assert_bands_are_exact(twice, "again") == 2
    dedup.scan()
    assert assert_bands_are_exact(dedup) == 2
