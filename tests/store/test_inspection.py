"""What inspection says of the user's tables."""

from __future__ import annotations

import pytest

from db_dedup.config import watched_table
from db_dedup.dialects import dialect_for
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.records import Family
from db_dedup.records.names import Namespace
from db_dedup.store.inspection import Relations, check_columns, inspect_table, list_relations, resolve_key
from tests.dialects.tables import inspected, run
from tests.servers import Database

FAMILIES = {
    "INTEGER": Family.NUMBER,
    "DECIMAL(10,2)": Family.NUMBER,
    "DOUBLE PRECISION": Family.NUMBER,
    "VARCHAR(20)": Family.TEXT,
    "TEXT": Family.TEXT,
    "DATE": Family.DATE,
    "TIMESTAMP": Family.DATE,
    "TIME": Family.TIME,
    "JSON": Family.OTHER,
}
OWN_FAMILIES = {
    "sqlite": {"BOOLEAN": Family.BOOLEAN, "BLOB": Family.BINARY, "DATETIME": Family.DATE, "": Family.OTHER},
    "postgresql": {
        "boolean": Family.BOOLEAN,
        "bytea": Family.BINARY,
        "uuid": Family.UUID,
        "timestamptz": Family.DATE,
        "jsonb": Family.OTHER,
        "text[]": Family.OTHER,
        "mood": Family.TEXT,
        "reference": Family.TEXT,
        "bit(8)": Family.TEXT,
        "point": Family.OTHER,
    },
    "mariadb": {
        "TINYINT(1)": Family.NUMBER,
        "BINARY(4)": Family.BINARY,
        "LONGBLOB": Family.BINARY,
        "DATETIME(6)": Family.DATE,
        "YEAR": Family.NUMBER,
        "BIT(8)": Family.NUMBER,
        "ENUM('a')": Family.TEXT,
        "LONGTEXT": Family.TEXT,
        "GEOMETRY": Family.OTHER,
    },
}


def test_families(database: Database) -> None:
    if database.name == "postgresql":
        run(database, "CREATE TYPE mood AS ENUM ('calm')", "CREATE DOMAIN reference AS varchar(20)")
    families = FAMILIES | OWN_FAMILIES[database.name]
    if database.engine.dialect.name == "mariadb":
        families["JSON"] = Family.TEXT  # there it is another name of LONGTEXT
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(families))
    run(database, f"CREATE TABLE petitions (id INTEGER PRIMARY KEY, {columns})")
    found = {column.name: column.family for column in inspected(database).columns}
    assert {kind: found[f"c{i}"] for i, kind in enumerate(families)} == families


def test_columns_in_their_order(database: Database) -> None:
    run(
        database,
        "CREATE TABLE petitions (region VARCHAR(20) NOT NULL, id INTEGER NOT NULL, title VARCHAR(50), "
        "PRIMARY KEY (id, region))",
    )
    table = inspected(database)
    assert [column.name for column in table.columns] == ["region", "id", "title"]
    assert table.primary_key == ("id", "region")
    assert table.column("title").is_nullable
    assert table.column("title").max_length == 50
    assert not table.is_view


def test_unknown_table_names_the_nearest(database: Database) -> None:
    run(
        database,
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY)",
        "CREATE VIEW recent AS SELECT * FROM petitions",
    )
    with database.engine.connect() as connection:
        with pytest.raises(UnknownNameError, match="'petition': did you mean petitions"):
            inspect_table(connection, "petition")
        with pytest.raises(UnknownNameError, match="recent"):
            inspect_table(connection, "recents")


def test_view_has_no_key_of_its_own(database: Database) -> None:
    run(
        database,
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY, title VARCHAR(50))",
        "CREATE VIEW recent AS SELECT id, title FROM petitions",
    )
    view = inspected(database, "recent")
    assert view.is_view
    with pytest.raises(ConfigError, match=r'no primary key.*key = \["id"\]'):
        resolve_key(view, None)
    assert [column.name for column in resolve_key(view, ("id",))] == ["id"]


def test_a_key_that_names_a_column_twice(sqlite_database: Database) -> None:
    run(sqlite_database, "CREATE TABLE petitions (id INTEGER PRIMARY KEY)")
    with pytest.raises(ConfigError, match=r"'petitions'.*'id' more than once"):
        resolve_key(inspected(sqlite_database), ("id", "id"))


def test_materialised_view(postgresql_database: Database) -> None:
    run(
        postgresql_database,
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY)",
        "CREATE MATERIALIZED VIEW recent AS SELECT id FROM petitions",
    )
    assert inspected(postgresql_database, "recent").is_view


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("number INTEGER NOT NULL UNIQUE", ("number",)),
        ("number INTEGER UNIQUE", ()),
        ("number INTEGER NOT NULL", ()),
        ("number INTEGER NOT NULL UNIQUE, other INTEGER NOT NULL UNIQUE", ()),
        ("number INTEGER NOT NULL UNIQUE, other INTEGER UNIQUE", ("number",)),
        ("number INTEGER NOT NULL, day DATE NOT NULL, UNIQUE (day, number)", ("day", "number")),
    ],
)
def test_the_only_unique_columns_stand_in_for_a_primary_key(
    database: Database, rest: str, expected: tuple[str, ...]
) -> None:
    run(database, f"CREATE TABLE petitions (title VARCHAR(50), {rest})")
    table = inspected(database)
    assert table.primary_key == expected
    if not expected:
        with pytest.raises(ConfigError, match="no primary key"):
            resolve_key(table, None)


def test_unique_index(database: Database) -> None:
    run(
        database,
        "CREATE TABLE petitions (number INTEGER NOT NULL, title VARCHAR(50))",
        "CREATE UNIQUE INDEX by_number ON petitions (number)",
    )
    assert inspected(database).primary_key == ("number",)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_partial_or_computed_unique_index_is_no_key(request: pytest.FixtureRequest, kind: str) -> None:
    database: Database = request.getfixturevalue(f"{kind}_database")
    run(
        database,
        "CREATE TABLE petitions (number INTEGER NOT NULL, title VARCHAR(50) NOT NULL)",
        "CREATE UNIQUE INDEX part ON petitions (number) WHERE number > 5",
        "CREATE UNIQUE INDEX computed ON petitions (lower(title))",
    )
    assert inspected(database).primary_key == ()


def test_configured_key(database: Database) -> None:
    run(database, "CREATE TABLE petitions (id INTEGER PRIMARY KEY, title VARCHAR(50))")
    table = inspected(database)
    assert [column.name for column in resolve_key(table, ("title", "id"))] == ["title", "id"]
    with pytest.raises(UnknownNameError, match=r"'tittle'.*title"):
        resolve_key(table, ("tittle",))


@pytest.mark.parametrize(
    "settings",
    [
        {"columns": {"tittle": 1}},
        {"columns": {"title": 1}, "order": "tittle"},
        {"columns": {"title": 1}, "key": "tittle"},
        {"columns": {"title": 1}, "within": ["tittle"]},
    ],
)
def test_every_column_of_the_settings_must_be_there(
    sqlite_database: Database, settings: dict[str, object]
) -> None:
    run(sqlite_database, "CREATE TABLE petitions (id INTEGER PRIMARY KEY, title VARCHAR(50))")
    with pytest.raises(UnknownNameError, match=r"'petitions'.*'tittle': did you mean title"):
        check_columns(watched_table("petitions", settings), inspected(sqlite_database))


def test_tables_of_another_schema(postgresql_database: Database) -> None:
    run(
        postgresql_database,
        'CREATE SCHEMA "the office"',
        'CREATE TABLE "the office".petitions (id INTEGER PRIMARY KEY)',
    )
    with postgresql_database.engine.connect() as connection:
        assert inspect_table(connection, "petitions", "the office").schema == "the office"
        with pytest.raises(UnknownNameError):
            inspect_table(connection, "petitions")


def test_our_tables_and_views_are_not_listed(database: Database) -> None:
    run(
        database,
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY)",
        "CREATE TABLE dedup_pair (id INTEGER PRIMARY KEY)",
        "CREATE VIEW recent AS SELECT * FROM petitions",
        "CREATE VIEW dedup_groups AS SELECT * FROM petitions",
    )
    dialect = dialect_for(database.engine)
    with database.engine.connect() as connection:
        listed = list_relations(connection, dialect, Namespace(None, "dedup_"))
        assert listed == Relations(["petitions"], ["recent"])
        beside_a_schema = list_relations(connection, dialect, Namespace("dedup", ""))
        assert beside_a_schema == Relations(["dedup_pair", "petitions"], ["dedup_groups", "recent"])


def test_mariadb_collations(mariadb_or_mysql: Database) -> None:
    run(
        mariadb_or_mysql,
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY, a VARCHAR(5), b VARCHAR(5) COLLATE utf8mb4_bin) "
        "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
    )
    found = {column.name: column.collation for column in inspected(mariadb_or_mysql).columns}
    assert found == {"id": None, "a": "utf8mb4_unicode_ci", "b": "utf8mb4_bin"}


@pytest.mark.parametrize("key", ["PRIMARY KEY", "UNIQUE"])
def test_a_key_without_overlaps_has_the_columns_of_its_period(mariadb_database: Database, key: str) -> None:
    run(
        mariadb_database,
        "CREATE TABLE petitions (id INTEGER NOT NULL, since DATE NOT NULL, `un``til` DATE NOT NULL, "
        "begun TIMESTAMP(6) GENERATED ALWAYS AS ROW START, ended TIMESTAMP(6) GENERATED ALWAYS AS ROW END, "
        "PERIOD FOR SYSTEM_TIME (begun, ended), PERIOD FOR valid (since, `un``til`), "
        f"{key} (id, valid WITHOUT OVERLAPS), body VARCHAR(20)) WITH SYSTEM VERSIONING",
        "INSERT INTO petitions (id, since, `un``til`) VALUES (1, '2020-01-01', '2020-02-01'), "
        "(1, '2020-02-01', '2020-03-01')",
    )
    assert sorted(inspected(mariadb_database).primary_key) == ["id", "since", "un`til"]


def test_tables_that_differ_only_in_case_have_their_own_columns(mariadb_or_mysql: Database) -> None:
    """On a server that keeps them apart, as all do on Linux; MariaDB 10.11 joined their keys."""
    run(
        mariadb_or_mysql,
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY, `a``b` TEXT COLLATE utf8mb4_bin)",
        "CREATE TABLE Petitions (id INTEGER PRIMARY KEY, `a``b` TEXT COLLATE utf8mb4_unicode_ci, c TEXT)",
    )
    found = [inspected(mariadb_or_mysql, name) for name in ("petitions", "Petitions")]
    assert [table.primary_key for table in found] == [("id",), ("id",)]
    assert [column.name for column in found[0].columns] == ["id", "a`b"]
    assert [column.name for column in found[1].columns] == ["id", "a`b", "c"]
    assert [table.columns[1].collation for table in found] == ["utf8mb4_bin", "utf8mb4_unicode_ci"]
