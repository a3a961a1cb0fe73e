"""PostgreSQL: applications that have no rights on our tables, and sessions set up against us."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import create_engine, text

from db_dedup import Deduplicator
from db_dedup.dialects import open_engine
from db_dedup.errors import DatabaseError
from tests.dialects.tables import run
from tests.servers import Database
from tests.triggers.conftest import INSERT, attached, changes, petitions


@pytest.fixture
def database(postgresql_database: Database) -> Database:
    return postgresql_database


@pytest.fixture
def clerk(database: Database) -> Any:
    """An application's role: no rights in our schema, not even to look into it."""
    run(database, "CREATE ROLE dedup_clerk LOGIN")
    yield "dedup_clerk"
    run(database, "DROP OWNED BY dedup_clerk", "DROP ROLE dedup_clerk")


def test_an_application_without_rights_on_ours(database: Database, clerk: str) -> None:
    dedup = petitions(database)
    run(database, f"GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON petitions TO {clerk}")
    engine = create_engine(database.url.replace("postgres@", f"{clerk}@"))
    with engine.begin() as connection:
        # A table of the clerk's own must not catch what is meant for ours.
        connection.execute(text("CREATE TEMPORARY TABLE change (table_id int, row_key text)"))
        connection.execute(text(INSERT))
        connection.execute(text("UPDATE petitions SET body = 'z', id = id + 5"))
        connection.execute(text("TRUNCATE petitions"))
    assert changes(dedup) == [
        ("", "T"), ("1", "D"), ("1", "I"), ("2", "D"), ("2", "I"), ("6", "I"), ("7", "I"),
    ]  # fmt: skip
    with pytest.raises(Exception, match="permission denied"), engine.begin() as connection:
        connection.execute(text("SELECT dedup.queue_petitions_1()"))
    engine.dispose()


NAMESAKES = [
    *(
        f"CREATE FUNCTION namesakes.{head} LANGUAGE plpgsql AS 'BEGIN RAISE ''a namesake''; END'"
        for head in (
            "clock_timestamp() RETURNS timestamptz",
            "encode(bytea, text) RETURNS text",
            "greater(int, int) RETURNS boolean",
            "isfinite(date) RETURNS boolean",
            "isfinite(timestamp) RETURNS boolean",
            '"left"(text, int) RETURNS text',
            "length(text) RETURNS int",
            "rtrim(text, text) RETURNS text",
            "same(text, text) RETURNS boolean",
            "textcat(text, text) RETURNS text",
            "timezone(text, timestamptz) RETURNS timestamp",
            "to_char(timestamp, text) RETURNS text",
            "to_char(timestamptz, text) RETURNS text",
            "to_json(text) RETURNS json",
        )
    ),
    "CREATE OPERATOR namesakes.= (LEFTARG = text, RIGHTARG = text, FUNCTION = namesakes.same)",
    "CREATE OPERATOR namesakes.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = namesakes.same)",
    "CREATE OPERATOR namesakes.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = namesakes.textcat)",
    "CREATE OPERATOR namesakes.> (LEFTARG = int, RIGHTARG = int, FUNCTION = namesakes.greater)",
    "CREATE DOMAIN namesakes.bytea AS pg_catalog.bytea CHECK (false)",
    "CREATE DOMAIN namesakes.text AS pg_catalog.text CHECK (false)",
]


@pytest.mark.parametrize(
    ("kinds", "value", "row_key"),
    [
        (("integer",), "1", "1"),
        (("text",), "'a'", "a"),
        (("bytea",), "'a'", "61"),
        (("boolean",), "true", "1"),
        (("date",), "'2019-02-14'", "2019-02-14"),
        (("timestamp",), "'2019-02-14 20:00'", "2019-02-14 20:00:00"),
        (("timestamptz",), "'2019-02-14 20:00Z'", "2019-02-14 20:00:00"),
        (("integer", "text"), "1, 'a'", '["1","a"]'),
        (("int4range",), "'[1,3)'", "[1,3)"),
    ],
)
def test_namesakes_in_the_session_are_not_called(
    database: Database, kinds: tuple[str, ...], value: str, row_key: str
) -> None:
    """They would have our rights."""
    keys = [f"key_{i}" for i in range(len(kinds))]
    columns = ", ".join(f"{key} {kind}" for key, kind in zip(keys, kinds, strict=True))
    run(
        database,
        f"CREATE TABLE petitions ({columns}, body varchar, PRIMARY KEY ({', '.join(keys)}))",
        "CREATE SCHEMA namesakes",
        *NAMESAKES,
    )
    dedup = attached(database)
    with database.engine.begin() as connection:
        connection.execute(text("SET LOCAL search_path = namesakes, pg_catalog, public"))
        connection.exec_driver_sql(f"INSERT INTO petitions VALUES ({value}, 'x')")
        connection.exec_driver_sql("UPDATE petitions SET body = 'y'")
        connection.exec_driver_sql("DELETE FROM petitions")
        connection.exec_driver_sql("TRUNCATE petitions")
    assert changes(dedup) == [("", "T"), (row_key, "D"), (row_key, "I"), (row_key, "U")]


def test_only_we_may_use_the_function(database: Database, clerk: str) -> None:
    """Or else anybody could queue what never happened."""
    petitions(database)
    run(database, f"GRANT USAGE ON SCHEMA dedup TO {clerk}", f"GRANT CREATE ON SCHEMA public TO {clerk}")
    engine = create_engine(database.url.replace("postgres@", f"{clerk}@"))
    trigger = "CREATE TRIGGER t AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION dedup.queue_petitions_1()"
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE own (id int)"))
    with engine.connect() as connection, pytest.raises(Exception, match="permission denied"):
        connection.execute(text(trigger))
    engine.dispose()


def test_an_account_that_may_only_read_is_told_what_attaching_needs(database: Database, clerk: str) -> None:
    run(
        database,
        'CREATE TABLE "信访 件" (id integer PRIMARY KEY, body text)',
        f"GRANT CREATE ON DATABASE {database.engine.url.database} TO {clerk}",
    )
    engine = open_engine(database.url.replace("postgres@", f"{clerk}@"))
    dedup = Deduplicator(engine, "信访 件", {"body": 1})
    dedup.upgrade()
    with pytest.raises(DatabaseError, match='needed: GRANT SELECT ON "信访 件"'):
        dedup.scan()
    for right in ("SELECT", "TRIGGER"):
        run(database, f'GRANT {right} ON "信访 件" TO {clerk}')
        with pytest.raises(DatabaseError, match="needed: membership in the role that owns 信访 件;"):
            dedup.attach()
    run(database, f'ALTER TABLE "信访 件" OWNER TO {clerk}')
    dedup.attach()
    engine.dispose()


def test_the_owner_of_the_table_makes_partitions(database: Database, clerk: str) -> None:
    """Also where another account made the triggers: each partition gets copies of them."""
    run(
        database,
        "CREATE TABLE petitions (id integer, region text, body text, PRIMARY KEY (id, region)) "
        "PARTITION BY LIST (region)",
        f"ALTER TABLE petitions OWNER TO {clerk}",
        f"GRANT USAGE, CREATE ON SCHEMA public TO {clerk}",
    )
    dedup = attached(database)
    engine = create_engine(database.url.replace("postgres@", f"{clerk}@"))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE north PARTITION OF petitions FOR VALUES IN ('n')"))
        connection.execute(text("INSERT INTO petitions VALUES (1, 'n', 'x')"))
    engine.dispose()
    assert changes(dedup) == [('["1","n"]', "I")]
