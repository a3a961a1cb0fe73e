"""Our tables in another database than the user's rows, which are only read."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from db_dedup import Database, Deduplicator
from db_dedup.errors import ConfigError
from db_dedup.sample import Sample
from tests import servers
from tests.guest.readers import reader_of
from tests.scan.conftest import COLUMNS, answer, fill_database, watch
from tests.schema.description import everything
from tests.thorough import MYSQL

PAIRS = [
    ("sqlite", "sqlite"),
    ("postgresql", "sqlite"),
    ("mariadb", "sqlite"),
    ("sqlite", "postgresql"),
    ("postgresql", "mariadb"),
    ("mariadb", "postgresql"),
    pytest.param(("mysql", "sqlite"), marks=pytest.mark.thorough),
    pytest.param(("mariadb", "mysql"), marks=pytest.mark.thorough),
]


@pytest.fixture(params=PAIRS, ids="-".join)
def apart(request: pytest.FixtureRequest, sample: Sample) -> tuple[servers.Database, servers.Database]:
    """The user's database with petitions, and an empty one of some kind for our tables."""
    source, store = request.param
    database: servers.Database = request.getfixturevalue(f"{source}_database")
    fill_database(database.engine, sample)
    return database, request.getfixturevalue(f"{store}_store")


def all_found(dedup: Deduplicator) -> Any:
    return answer(dedup), sorted((p.key_a, p.key_b, p.distance) for p in dedup.pairs(expand=True))


@pytest.fixture(scope="module")
def in_one(tmp_path_factory: pytest.TempPathFactory, sample: Sample) -> Any:
    """What a scan finds with our tables beside the user's."""
    database = Database(f"sqlite:///{tmp_path_factory.mktemp('one') / 'one.db'}", create=True)
    fill_database(database.engine, sample)
    dedup = Deduplicator(database, "petitions", COLUMNS, order="created_at", abridge_above=3)
    dedup.upgrade()
    dedup.scan()
    found = all_found(dedup)
    database.close()
    return found


def look_at(database: servers.Database) -> Any:
    """Everything in a database, the rows of its table included."""
    with database.engine.connect() as connection:
        return everything(connection), connection.execute(text("SELECT * FROM petitions ORDER BY id")).all()


def test_the_answer_is_the_same_and_the_source_is_only_read(
    apart: tuple[servers.Database, servers.Database], in_one: Any, sample: Sample
) -> None:
    source, store = apart
    before = look_at(source)
    with reader_of(source) as url:
        database = Database(url, store=store.url)
        dedup = Deduplicator(database, "petitions", COLUMNS, order="created_at", abridge_above=3)
        dedup.upgrade()
        dedup.scan()
        assert all_found(dedup) == in_one
        dedup.scan()
        assert all_found(dedup) == in_one
        petition = sample.petitions[0]
        record = {"title": petition.title, "content": petition.content}
        (nearest, *_) = Deduplicator(database, "petitions").check(record)
        assert nearest.distance == 0
        assert database.status()[0].rows == len(sample.petitions)
        assert database.uninstall()
        database.close()
    assert look_at(source) == before


def test_a_check_on_a_connection_reads_the_rows_through_it(
    sqlite_database: servers.Database, sqlite_store: servers.Database, sample: Sample
) -> None:
    """A row that the caller has changed, and not committed, is not what was scanned any more."""
    fill_database(sqlite_database.engine, sample)
    dedup = watch(sqlite_database.engine, store=sqlite_store.engine)
    dedup.scan()
    petition = sample.petitions[0]
    record = {"title": petition.title + "了", "content": petition.content}
    found = {match.row_key for match in dedup.check(record)}
    assert str(petition.id) in found
    with Session(sqlite_database.engine) as session:
        session.execute(text("UPDATE petitions SET content = '换了' WHERE id = :id"), {"id": petition.id})
        assert {match.row_key for match in dedup.check(record, session)} == found - {str(petition.id)}
        session.rollback()
        assert {match.row_key for match in dedup.check(record, session)} == found


def test_records_are_checked_together(
    sqlite_database: servers.Database, sqlite_store: servers.Database, sample: Sample
) -> None:
    """Labels, which decide on the pairs among them, are in the store."""
    fill_database(sqlite_database.engine, sample)
    dedup = watch(sqlite_database.engine, store=sqlite_store.engine)
    dedup.scan()
    old = {"title": sample.petitions[0].title, "content": sample.petitions[0].content}
    new = {"title": "路灯", "content": "学校门口的路灯坏了两个月，孩子晚自习回家很不安全，希望尽快修好。"}
    with sqlite_database.engine.connect() as connection:
        found = dedup.check_together(connection, [old, new, new], [None] * 3)
    assert str(sample.petitions[0].id) in [match.row_key for match in found[0].matches]
    assert [result.others for result in found] == [(), (), (1,)]


def test_a_store_in_the_same_place_is_no_store_apart(
    sqlite_database: servers.Database, tmp_path: Path, sample: Sample
) -> None:
    fill_database(sqlite_database.engine, sample)
    assert not Database(sqlite_database.engine, store=sqlite_database.engine).is_apart
    assert not Database(sqlite_database.url, store=sqlite_database.url).is_apart
    assert Database(sqlite_database.url, store=f"sqlite:///{tmp_path / 'other.db'}").is_apart


def test_an_empty_url_is_no_store(sqlite_database: servers.Database) -> None:
    """Our tables would else be made in a database that should only be read."""
    for make in (Database, lambda url, store: Deduplicator(url, "petitions", store=store)):
        with pytest.raises(ConfigError, match="URL cannot be read"):
            make(sqlite_database.engine, store="")


def test_the_store_is_said_once(sqlite_database: servers.Database, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Database\(engine, store"):
        Deduplicator(Database(sqlite_database.engine), "petitions", store=f"sqlite:///{tmp_path / 'a.db'}")


def test_there_is_no_view_to_print(
    sqlite_database: servers.Database, sqlite_store: servers.Database, sample: Sample
) -> None:
    fill_database(sqlite_database.engine, sample)
    dedup = watch(sqlite_database.engine, store=sqlite_store.engine)
    dedup.scan()
    with pytest.raises(ConfigError, match="has no view"):
        dedup.view_statements()


def test_what_a_driver_says_is_told_by_its_own_dialect(
    postgresql_database: servers.Database, sqlite_store: servers.Database, sample: Sample
) -> None:
    fill_database(postgresql_database.engine, sample)
    dedup = watch(postgresql_database.engine, store=sqlite_store.engine, where="no_such_column > 1")
    with pytest.raises(Exception, match="a column is missing"):
        dedup.scan()


@pytest.mark.parametrize("server", ["mariadb", MYSQL])
def test_our_tables_in_another_database_of_the_same_server(
    server: str, in_one: Any, sample: Sample, request: pytest.FixtureRequest
) -> None:
    """One URL, that of our database; the view is there, and nothing is in the user's."""
    source: servers.Database = request.getfixturevalue(f"{server}_database")
    store: servers.Database = request.getfixturevalue(f"{server}_store")
    fill_database(source.engine, sample)
    before = look_at(source)
    office = source.engine.url.database
    dedup = Deduplicator(
        store.engine, "petitions", COLUMNS, schema=office, order="created_at", abridge_above=3
    )
    dedup.upgrade()
    dedup.scan()
    assert all_found(dedup) == in_one
    with store.engine.connect() as connection:
        query = text("SELECT COUNT(*) FROM dedup_duplicates_of_petitions WHERE title <> ''")
        assert connection.scalar(query) == sum(group.size for group in dedup.groups())
    dedup.database.uninstall()
    assert look_at(source) == before
    with store.engine.connect() as connection:
        assert everything(connection) == set()


def test_our_schema_may_have_any_name(postgresql_database: servers.Database, sample: Sample) -> None:
    fill_database(postgresql_database.engine, sample)
    before = look_at(postgresql_database)
    dedup = Deduplicator(Database(postgresql_database.engine, "elsewhere"), "petitions", COLUMNS)
    dedup.upgrade()
    dedup.scan()
    with postgresql_database.engine.connect() as connection:
        assert connection.scalar(text("SELECT COUNT(*) FROM elsewhere.duplicates_of_petitions"))
    dedup.database.uninstall()
    assert look_at(postgresql_database) == before
