"""The Python API, as a program uses it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, delete, func, insert, make_url, select, text, update
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from db_dedup import Deduplicator, ScanReport, Text, Value
from db_dedup.cli.demo import fill, petitions
from db_dedup.errors import (
    ConfigError,
    NotScannedError,
    RecipeDiffersError,
    SchemaMissingError,
    UnknownNameError,
)
from db_dedup.sample import Sample, generate_petitions
from tests.servers import Database

COLUMNS = {"title": 2, "content": Text(), "region": Value()}


@pytest.fixture(scope="module")
def sample() -> Sample:
    return generate_petitions(120, seed=5, duplicate_share=0.4)


@pytest.fixture
def filled(database: Database, sample: Sample) -> Database:
    """Petitions, not scanned."""
    return _filled(database, sample)


@pytest.fixture
def sqlite_filled(sqlite_database: Database, sample: Sample) -> Database:
    return _filled(sqlite_database, sample)


def _filled(database: Database, sample: Sample) -> Database:
    with database.engine.begin() as connection:
        fill(connection, sample)
    return database


def scanned(engine: Any, **options: Any) -> Deduplicator:
    dedup = Deduplicator(engine, "petitions", COLUMNS, order="created_at", **options)
    dedup.upgrade()
    dedup.scan()
    return dedup


def first_petition(connection: Connection) -> dict[str, Any]:
    query = select(petitions.c.title, petitions.c.content, petitions.c.region).where(petitions.c.id == 1)
    return connection.execute(query).one()._asdict()


def what_was_found(report: ScanReport) -> ScanReport:
    """Without what depends on the scan before."""
    return replace(
        report,
        seconds=0,
        segmented=0,
        pairs_gained=0,
        pairs_lost=0,
        groups_changed=0,
        frames=None,
        parts=None,
    )


def test_the_report_agrees_with_the_views(filled: Database) -> None:
    with filled.engine.begin() as connection:
        first = connection.execute(select(petitions).where(petitions.c.id == 1)).mappings().one()
        connection.execute(
            insert(petitions), [{**first, "id": 9001}, {**first, "id": 9002, "content": "", "title": ""}]
        )
    dedup = Deduplicator(filled.engine, "petitions", COLUMNS, order="created_at")
    dedup.upgrade()
    report = dedup.scan()
    pairs, groups = list(dedup.pairs()), dedup.groups()
    assert report.rows == 122
    assert report.rows == report.fingerprints + report.too_little_text
    assert report.parts is not None
    assert set(report.parts) == {"reading", "matching", "writing", "other"}
    assert report.parts["reading"] > 0
    assert report.parts["writing"] > 0
    assert sum(report.parts.values()) == pytest.approx(report.seconds, abs=0.1)
    assert report.too_little_text == 1
    assert report.copies >= 1
    assert len(pairs) == report.pairs + report.copies
    assert len(groups) == report.groups
    assert sum(group.size for group in groups) == report.grouped_rows
    assert dedup.groups(limit=3) == groups[:3]
    assert all(a.size >= b.size for a, b in pairwise(groups))
    for group in groups:
        members = dedup.members(group.group_id)
        assert members[0] == group.representative_key == group.group_id
        assert len(set(members)) == group.size
    (status,) = dedup.database.status()
    assert (status.rows, status.pairs, status.groups) == (report.rows, report.pairs, report.groups)
    assert dedup.database.watched_names() == ["petitions"]
    assert what_was_found(dedup.scan()) == what_was_found(report)


def test_an_engine_a_url_and_its_text_are_all_taken(sqlite_filled: Database) -> None:
    expected = list(scanned(sqlite_filled.engine).pairs())
    for place in (sqlite_filled.url, make_url(sqlite_filled.url)):
        dedup = Deduplicator(place, "petitions", COLUMNS, order="created_at")
        assert list(dedup.pairs()) == expected
        dedup.database.close()


def test_without_columns_the_stored_recipe_is_used(filled: Database) -> None:
    given = scanned(filled.engine, preset="strict", radius=5)
    stored = Deduplicator(filled.engine, "petitions")
    assert what_was_found(stored.scan()) == what_was_found(given.scan())
    assert list(stored.pairs(expand=True)) == list(given.pairs(expand=True))
    assert max(pair.distance for pair in stored.pairs()) <= 5
    with filled.engine.connect() as connection:
        record = first_petition(connection)
    assert stored.check(record) == given.check(record) != []


@pytest.mark.parametrize("kind", ["connection", "session"])
def test_a_check_neither_commits_nor_rolls_back(filled: Database, kind: str) -> None:
    """What the caller wrote is still there after a check, and still theirs to take back."""
    dedup = scanned(filled.engine)
    fresh = Deduplicator(filled.engine, "petitions")  # its first check also has to prepare itself
    for checker in (dedup, fresh):
        for keep in (False, True):
            channel = f"{keep}"
            with opened(filled, kind) as caller:
                record = first_petition(as_connection(caller))
                caller.execute(update(petitions).values(channel=channel).where(petitions.c.id == 1))
                found = checker.check(record, caller)
                assert found[0].row_key == "1"
                assert caller.scalar(select(petitions.c.channel).where(petitions.c.id == 1)) == channel
                assert caller.in_transaction()
                (caller.commit if keep else caller.rollback)()
            with filled.engine.begin() as connection:
                query = select(func.count()).where(petitions.c.channel == channel)
                assert connection.scalar(query) == int(keep)
                connection.execute(update(petitions).values(channel="phone").where(petitions.c.id == 1))


def opened(database: Database, kind: str) -> Any:
    return database.engine.connect() if kind == "connection" else Session(database.engine)


def as_connection(caller: Connection | Session) -> Connection:
    return caller.connection() if isinstance(caller, Session) else caller


def test_a_check_opens_no_other_connection(sample: Sample) -> None:
    """In a database in memory there is but one: to give it back would roll back what the caller wrote."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.begin() as connection:
        fill(connection, sample)
    scanned(engine)
    dedup = Deduplicator(engine, "petitions")
    with engine.connect() as connection:
        record = first_petition(connection)
        connection.execute(delete(petitions).where(petitions.c.id > 1))
        assert "1" in {match.row_key for match in dedup.check(record, connection)}
        assert connection.scalar(select(func.count()).select_from(petitions)) == 1
        connection.rollback()
        assert connection.scalar(select(func.count()).select_from(petitions)) == 120
    engine.dispose()


def test_a_check_follows_a_scan_with_another_recipe(sqlite_filled: Database) -> None:
    scanned(sqlite_filled.engine)
    long_lived = Deduplicator(sqlite_filled.engine, "petitions")
    with sqlite_filled.engine.connect() as connection:
        record = first_petition(connection)
    assert {match.distance for match in long_lived.check(record)} >= {0}
    other = Deduplicator(sqlite_filled.engine, "petitions", {"content": 1}, preset="strict")
    other.scan()
    assert (
        long_lived.check({"content": record["content"]}) == other.check({"content": record["content"]}) != []
    )


def test_settings_that_differ_ask_for_a_scan(sqlite_filled: Database) -> None:
    scanned(sqlite_filled.engine)
    other = Deduplicator(sqlite_filled.engine, "petitions", {"content": 1})
    with pytest.raises(RecipeDiffersError, match="db-dedup scan petitions"):
        other.check({})
    assert other.groups()  # the answer that stands can be read all the same
    other.scan()
    other.check({})


@pytest.mark.parametrize("given", [None, {"columns": COLUMNS}])
def test_what_comes_too_early_is_told(sqlite_filled: Database, given: dict[str, Any] | None) -> None:
    dedup = Deduplicator(sqlite_filled.engine, "petitions", **given or {})
    for act in readers(dedup):
        with pytest.raises(SchemaMissingError, match="db-dedup upgrade"):
            act()
    dedup.upgrade()
    for act in readers(dedup):
        with pytest.raises(
            NotScannedError if given else UnknownNameError, match=r"`db-dedup scan petitions`|`db-dedup init`"
        ):
            act()


def readers(dedup: Deduplicator) -> Iterator[Any]:
    yield from (dedup.groups, dedup.pairs, dedup.view_statements)
    yield from (lambda: dedup.check({}), lambda: dedup.members("1"))


def test_wrong_arguments_are_told_at_once(sqlite_filled: Database) -> None:
    engine = sqlite_filled.engine
    with pytest.raises(UnknownNameError, match="did you mean radius"):
        Deduplicator(engine, "petitions", COLUMNS, raduis=3)
    with pytest.raises(ConfigError, match="columns"):
        Deduplicator(engine, "petitions", {})
    with pytest.raises(ConfigError, match=r"columns\.title"):
        Deduplicator(engine, "petitions", {"title": 0})
    with pytest.raises(ConfigError, match="radius"):
        Deduplicator(engine, "petitions", radius=3)
    with pytest.raises(ConfigError, match="cannot be read"):
        Deduplicator("no url", "petitions")


def test_the_pairs_of_a_table_without_duplicates(sqlite_filled: Database) -> None:
    with sqlite_filled.engine.begin() as connection:
        connection.execute(text("DELETE FROM petitions WHERE id > 1"))
    dedup = scanned(sqlite_filled.engine)
    assert (list(dedup.pairs()), list(dedup.pairs(expand=True)), dedup.groups()) == ([], [], [])
    assert dedup.members("1") == []
