"""What PostgreSQL does to rows in ways of its own, and what the triggers see of it."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import text

from db_dedup import Database as DedupDatabase
from db_dedup import Deduplicator
from db_dedup.dialects.postgresql.triggers import describe_triggers
from db_dedup.dialects.triggers import TriggerTarget
from db_dedup.errors import ConfigError, DatabaseUnavailableError
from db_dedup.jobs.objects.attachment import AttachmentState
from tests.dialects.tables import run
from tests.servers import Database
from tests.triggers.conftest import INSERT, attached, changes, petitions, queued_by, values_of

OTHER_BODY = (
    "CREATE OR REPLACE FUNCTION dedup.queue_petitions_1() RETURNS trigger LANGUAGE plpgsql "
    "AS 'BEGIN RETURN NULL; END'"
)


@pytest.fixture
def database(postgresql_database: Database) -> Database:
    return postgresql_database


def test_truncate_in_all_its_forms(database: Database) -> None:
    run(database, "CREATE TABLE regions (name varchar(20) PRIMARY KEY)", "INSERT INTO regions VALUES ('x')")
    dedup = petitions(database, INSERT, "ALTER TABLE petitions ADD FOREIGN KEY (region) REFERENCES regions")
    for statement in ("TRUNCATE petitions RESTART IDENTITY", "TRUNCATE regions CASCADE"):
        assert queued_by(dedup, database, statement) == [("", "T")], statement


def test_copy(database: Database) -> None:
    dedup = petitions(database)
    with (
        psycopg.connect(database.url.replace("+psycopg", "")) as connection,
        connection.cursor() as cursor,
        cursor.copy("COPY petitions FROM STDIN") as copy,
    ):
        for i in range(1000):
            copy.write_row((i, "信", None, None, "new"))
    assert len(changes(dedup)) == 1000


def test_on_conflict(database: Database) -> None:
    dedup = petitions(database, INSERT)
    insert = "INSERT INTO petitions VALUES (2, '{}', 'x', '2', 'new'), (3, 'c', 'x', '3', 'new') ON CONFLICT "
    assert queued_by(dedup, database, insert.format("z") + "DO NOTHING") == [("3", "I")]
    take = "(id) DO UPDATE SET body = EXCLUDED.body"
    assert queued_by(dedup, database, insert.format("z") + take) == [("2", "U")]
    assert queued_by(dedup, database, insert.format("z") + take) == []


def test_merge(database: Database) -> None:
    if int(values_of(database, "SHOW server_version_num")[0]) < 150000:
        pytest.skip("MERGE came with PostgreSQL 15")
    dedup = petitions(database, INSERT)
    merge = (
        "MERGE INTO petitions AS p "
        "USING (VALUES (1, 'z'), (2, 'gone'), (5, 'e')) AS v (id, body) ON p.id = v.id "
        "WHEN MATCHED AND v.body = 'gone' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET body = v.body "
        "WHEN NOT MATCHED THEN INSERT (id, body) VALUES (v.id, v.body)"
    )
    assert queued_by(dedup, database, merge) == [("1", "U"), ("2", "D"), ("5", "I")]


def test_cascades(database: Database) -> None:
    dedup = petitions(database, INSERT)
    run(
        database,
        "CREATE TABLE offices (name varchar(20) PRIMARY KEY)",
        "INSERT INTO offices VALUES ('x'), ('y')",
        "UPDATE petitions SET region = 'y' WHERE id = 2",
        "ALTER TABLE petitions ADD FOREIGN KEY (region) REFERENCES offices "
        "ON DELETE CASCADE ON UPDATE CASCADE",
    )
    watched = attached(database, "by_region", table="petitions", columns={"region": 1})
    both = queued_by(watched, database, "UPDATE offices SET name = 'z' WHERE name = 'y'")
    assert both == [("2", "U")]
    assert queued_by(dedup, database, "DELETE FROM offices WHERE name = 'x'") == [("1", "D"), ("1", "D")]


def test_sessions_that_replicate(database: Database) -> None:
    dedup = petitions(database)
    with database.engine.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        for statement in (
            INSERT,
            "UPDATE petitions SET body = 'z'",
            "DELETE FROM petitions",
            "TRUNCATE petitions",
        ):
            connection.execute(text(statement))
    assert [operation for _, operation in changes(dedup)] == ["T", "D", "I", "U", "D", "I", "U"]


@pytest.mark.parametrize(
    ("kind", "before", "after", "same"),
    [
        ("json", '{"a": 1}', '{"a": 2}', '{"a": 1}'),
        ("jsonb", '{"a": 1}', '{"a": 2}', '{ "a" : 1 }'),
        ("xml", "<a>1</a>", "<a>2</a>", "<a>1</a>"),
        ("point", "(1,2)", "(1,3)", "(1,2)"),
        ("box", "(0,0),(2,2)", "(0,0),(1,4)", "(2,2),(0,0)"),  # = compares their areas
        ("text[]", "{a,b}", "{a,c}", "{a,b}"),
        ("tsvector", "a b", "a c", "a b"),
        ("bytea", "\\x00ff", "\\x00fe", "\\x00ff"),
    ],
)
def test_columns_without_a_usable_equality(
    database: Database, kind: str, before: str, after: str, same: str
) -> None:
    run(
        database,
        f"CREATE TABLE records (id integer PRIMARY KEY, data {kind}, other integer)",
        f"INSERT INTO records VALUES (1, '{before}', 1)",
    )
    dedup = attached(database, "records", columns={"data": {"kind": "value"}})
    update = "UPDATE records SET data = '{}'"
    assert queued_by(dedup, database, "UPDATE records SET other = 2") == []
    assert queued_by(dedup, database, update.format(same)) == []
    assert queued_by(dedup, database, update.format(after)) == [("1", "U")]
    assert queued_by(dedup, database, "UPDATE records SET data = NULL") == [("1", "U")]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("tstzrange", "[2024-01-01 00:00+00,2024-01-02 00:00+00)"),
        ("timestamptz", "2024-02-29 23:30+00"),
        ("bytea", "a"),
    ],
)
def test_keys_whose_text_depends_on_the_session(database: Database, kind: str, value: str) -> None:
    run(database, f"CREATE TABLE records (id {kind} PRIMARY KEY, body text)")
    dedup = attached(database, "records")
    with database.engine.begin() as connection:
        for setting in ("timezone = 'Asia/Tokyo'", "datestyle = 'German'", "bytea_output = 'escape'"):
            connection.execute(text(f"SET LOCAL {setting}"))
        connection.execute(text(f"INSERT INTO records VALUES ('{value}', 'a')"))
        assert connection.scalar(text("SHOW timezone")) == "Asia/Tokyo"
    queued = changes(dedup)
    dedup.scan()
    scanned = values_of(database, "SELECT row_key FROM dedup.fingerprint")
    if kind != "tstzrange":  # the engine of the test, which scans, writes ranges in its own time zone
        assert queued == [(key, "I") for key in scanned]
    else:
        assert queued == [('["2024-01-01 00:00:00+00","2024-01-02 00:00:00+00")', "I")]


def test_a_composite_key_with_fields_that_are_null(database: Database) -> None:
    run(
        database,
        "CREATE TYPE place AS (region text, number int)",
        "CREATE TABLE petitions (id place PRIMARY KEY, body text)",
    )
    dedup = attached(database)
    insert = "INSERT INTO petitions VALUES ('(,)', 'a'), ('(x,)', 'b')"
    assert queued_by(dedup, database, insert) == [("(,)", "I"), ("(x,)", "I")]
    assert queued_by(dedup, database, "UPDATE petitions SET body = 'c'") == [("(,)", "U"), ("(x,)", "U")]
    assert queued_by(dedup, database, "DELETE FROM petitions") == [("(,)", "D"), ("(x,)", "D")]


def test_disabled_triggers_are_found_and_mended(database: Database) -> None:
    dedup = petitions(database)
    for how, state, words in (
        ("DISABLE TRIGGER dedup_petitions_1_truncate", AttachmentState.DISABLED, "truncate is disabled"),
        ("DISABLE TRIGGER ALL", AttachmentState.DISABLED, "delete is disabled"),
        ("ENABLE TRIGGER dedup_petitions_1_insert", AttachmentState.DISABLED, "does not fire in sessions"),
        (
            "ENABLE REPLICA TRIGGER dedup_petitions_1_insert",
            AttachmentState.DISABLED,
            "fires only in sessions",
        ),
    ):
        run(database, f"ALTER TABLE petitions {how}")
        found = dedup.trigger_state()
        assert found.state is state, how
        assert words in found.differences[0], how
        dedup.attach()
        assert dedup.trigger_state().state is AttachmentState.INTACT
    assert queued_by(dedup, database, INSERT) == [("1", "I"), ("2", "I")]


@pytest.mark.parametrize(
    "change",
    [
        "ALTER FUNCTION dedup.queue_petitions_1() SECURITY INVOKER",
        "ALTER FUNCTION dedup.queue_petitions_1() STRICT",
        "GRANT EXECUTE ON FUNCTION dedup.queue_petitions_1() TO PUBLIC",
        "ALTER FUNCTION dedup.queue_petitions_1() SET search_path = public",
        OTHER_BODY,
    ],
)
def test_an_altered_function_is_found_and_mended(database: Database, change: str) -> None:
    dedup = petitions(database)
    run(database, change)
    assert dedup.trigger_state().state is AttachmentState.ALTERED
    dedup.attach()
    assert dedup.trigger_state().state is AttachmentState.INTACT
    assert queued_by(dedup, database, INSERT) == [("1", "I"), ("2", "I")]


def test_what_the_catalogue_says_does_not_depend_on_the_session(database: Database) -> None:
    dedup = petitions(database)
    with database.engine.begin() as connection:
        for path in ("dedup, public", "public", "pg_catalog, dedup, public"):
            connection.execute(text(f"SET LOCAL search_path = {path}"))
            assert (
                dedup._triggers().attachment(connection).state(connection).state is AttachmentState.INTACT
            ), path
            assert connection.scalar(text("SHOW search_path")) == path


def test_a_column_that_counts_cannot_be_dropped_unnoticed(database: Database) -> None:
    dedup = petitions(database, INSERT)
    for column in ("id", "body"):
        with pytest.raises(Exception, match="depend"):
            run(database, f"ALTER TABLE petitions DROP COLUMN {column}")
    run(database, "ALTER TABLE petitions DROP COLUMN status", "ALTER TABLE petitions DROP COLUMN id CASCADE")
    with pytest.raises(ConfigError, match="no primary key"):
        dedup.attach()
    run(database, "INSERT INTO petitions VALUES ('a', 'x', '1')", "UPDATE petitions SET body = 'z'")


def test_a_scanned_table_is_dropped_only_with_its_view(database: Database) -> None:
    dedup = petitions(database, INSERT)
    dedup.scan()
    with pytest.raises(Exception, match=r"dedup\.duplicates_of_petitions depends on table petitions"):
        run(database, "DROP TABLE petitions")
    run(database, "DROP TABLE petitions CASCADE")


def test_a_renamed_column_does_not_stop_the_user(database: Database) -> None:
    dedup = petitions(database, INSERT, "ALTER TABLE petitions RENAME body TO words", columns={"words": 1})
    run(database, "ALTER TABLE petitions RENAME words TO content")
    assert queued_by(dedup, database, "UPDATE petitions SET content = 'z' WHERE id = 1") == [("1", "U")]
    run(database, "ALTER TABLE petitions RENAME id TO number")
    writes = (
        "INSERT INTO petitions VALUES (9, 'a', 'x', '1')",
        "UPDATE petitions SET content = 'y' WHERE number = 1",
        "DELETE FROM petitions WHERE number = 1",
    )
    assert queued_by(dedup, database, *writes) == 3 * [("", "X")]


def test_two_installations_watch_one_table(database: Database) -> None:
    first = petitions(database)
    second = Deduplicator(DedupDatabase(database.engine, schema="trial"), "petitions", {"body": 1})
    second.upgrade()
    second.attach()
    run(database, INSERT)
    assert changes(first) == changes(second) == [("1", "I"), ("2", "I")]
    second.database.uninstall()
    assert first.trigger_state().state is AttachmentState.INTACT
    assert queued_by(first, database, "DELETE FROM petitions WHERE id = 1") == [("1", "D")]


def test_a_dump_of_the_catalogue_makes_the_triggers_again(database: Database) -> None:
    """As a restored backup does: what the catalogue writes must be readable."""
    dedup = petitions(database)
    (definition,) = values_of(
        database, "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'dedup_petitions_1_update'"
    )
    run(
        database,
        "DROP TRIGGER dedup_petitions_1_update ON petitions",
        definition,
        "ALTER TABLE petitions ENABLE ALWAYS TRIGGER dedup_petitions_1_update",
    )
    assert dedup.trigger_state().state is AttachmentState.INTACT


def test_a_table_in_another_schema(database: Database) -> None:
    run(
        database,
        'CREATE SCHEMA "the office"',
        'CREATE TABLE "the office".petitions (id integer PRIMARY KEY, body text)',
    )
    dedup = attached(database, "petitions", schema="the office")
    assert queued_by(dedup, database, "INSERT INTO \"the office\".petitions VALUES (1, 'a')") == [("1", "I")]
    assert dedup.trigger_state().state is AttachmentState.INTACT
    dedup.detach()
    assert values_of(database, "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal") == [0]


def test_a_function_that_is_dropped_while_its_triggers_are_described(database: Database) -> None:
    """An error that is not transient would end a worker while somebody else attaches the table again."""
    own = petitions(database).database
    target = TriggerTarget("petitions", None, 1, "petitions", own.namespace)
    with own.engine.connect() as connection:
        # The server sees this moment only if the other session commits between two look-ups of one call.
        connection.exec_driver_sql("DELETE FROM pg_proc WHERE proname = 'queue_petitions_1'")
        with pytest.raises(DatabaseUnavailableError, match="meanwhile"), own.translate_driver_errors():
            describe_triggers(connection, target)
