"""What MariaDB and MySQL do to rows in ways of their own, and what the triggers see of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine, text

from db_dedup import Deduplicator
from db_dedup.errors import ConfigError, DatabaseError
from db_dedup.jobs.objects.attachment import AttachmentState
from tests.conftest import private_server
from tests.dialects.tables import run
from tests.servers import Database, Server, fresh_database, start_mysql
from tests.triggers.conftest import INSERT, PETITIONS, attached, changes, petitions, queued_by, values_of


@pytest.fixture
def database(mariadb_or_mysql: Database) -> Database:
    return mariadb_or_mysql


def test_insert_in_all_its_forms(database: Database) -> None:
    dedup = petitions(database, INSERT)
    rows = "petitions VALUES (2, 'z', 'x', '2', 'new'), (3, 'c', 'x', '3', 'new')"
    assert queued_by(dedup, database, f"INSERT IGNORE INTO {rows}") == [("3", "I")]
    update = f"INSERT INTO {rows} ON DUPLICATE KEY UPDATE body = VALUES(body)"
    assert queued_by(dedup, database, update) == [("2", "U")]
    assert queued_by(dedup, database, f"REPLACE INTO {rows}") == [
        ("2", "D"),
        ("2", "I"),
        ("3", "D"),
        ("3", "I"),
    ]


def test_replace_that_displaces_another_row(database: Database) -> None:
    dedup = petitions(database, INSERT, "CREATE UNIQUE INDEX one ON petitions (received)")
    displacing = "REPLACE INTO petitions VALUES (9, 'z', 'x', '2', 'new')"
    assert queued_by(dedup, database, displacing) == [("2", "D"), ("9", "I")]


def test_not_seen_cascades(database: Database) -> None:
    """The engine writes the rows below the triggers; a scan finds out."""
    run(
        database,
        "CREATE TABLE offices (name varchar(20) PRIMARY KEY)",
        "INSERT INTO offices VALUES ('x'), ('y')",
    )
    foreign = "ALTER TABLE petitions ADD FOREIGN KEY (region) REFERENCES offices (name) "
    dedup = petitions(
        database, INSERT, foreign + "ON DELETE CASCADE ON UPDATE CASCADE", columns={"region": 1}
    )
    assert queued_by(dedup, database, "UPDATE offices SET name = 'z' WHERE name = 'x'") == []
    assert queued_by(dedup, database, "DELETE FROM offices WHERE name = 'z'") == []
    assert dedup.scan().rows == 0


def test_not_seen_truncate(database: Database) -> None:
    dedup = petitions(database, INSERT)
    assert queued_by(dedup, database, "TRUNCATE petitions") == []
    assert dedup.scan().rows == 0


def test_not_seen_restore_of_the_table(database: Database) -> None:
    """A dump creates the triggers after the rows, and then they are as they were made."""
    dedup = petitions(database, INSERT)
    assert dedup.scan().rows == 2
    with database.engine.connect() as connection:
        names = connection.scalars(text("SHOW TRIGGERS LIKE 'petitions'")).all()
        triggers = [connection.execute(text(f"SHOW CREATE TRIGGER {name}")).one()[2] for name in names]
    assert len(triggers) == 3
    restore = ("DROP TABLE petitions", PETITIONS, "INSERT INTO petitions VALUES (1, 'old', 'x', '1', 'new')")
    assert queued_by(dedup, database, *restore, *triggers) == []
    assert dedup.trigger_state().state is AttachmentState.INTACT
    assert dedup.scan().rows == 1


def test_not_seen_partitions(database: Database) -> None:
    run(
        database,
        "CREATE TABLE petitions (id int PRIMARY KEY, body text) PARTITION BY RANGE (id) "
        "(PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN MAXVALUE)",
        "INSERT INTO petitions VALUES (1, 'a'), (11, 'b')",
    )
    dedup = attached(database)
    assert queued_by(dedup, database, "UPDATE petitions SET body = 'c'") == [("1", "U"), ("11", "U")]
    for what in ("TRUNCATE PARTITION low", "DROP PARTITION high"):
        assert queued_by(dedup, database, f"ALTER TABLE petitions {what}") == [], what
    assert dedup.scan().rows == 0


@pytest.mark.parametrize("change", ["RENAME COLUMN body TO content", "DROP COLUMN body, ADD content text"])
def test_a_column_dropped_or_renamed_beneath_us_stops_the_user(database: Database, change: str) -> None:
    """Nothing in MariaDB says so before; the documentation does. Detaching sets the table free."""
    dedup = petitions(database)
    run(database, f"ALTER TABLE petitions {change}")
    with pytest.raises(Exception, match="Unknown column"):
        run(
            database,
            "INSERT INTO petitions VALUES (1, 'a', 'x', '1', 'new')",
            "UPDATE petitions SET content = 'b'",
        )
    Deduplicator(database.engine, "petitions").detach()
    run(database, "UPDATE petitions SET content = 'b'")
    assert changes(dedup) == []


def test_columns_of_other_kinds(database: Database) -> None:
    kinds = {
        "json": ('{"a": 1}', '{"a": 2}'),
        "enum('a', 'A ', 'b') COLLATE utf8mb4_bin": ("a", "b"),
        "varbinary(20)": ("a", "A"),
        "timestamp NULL": ("2024-01-01 00:00:00", "2024-01-01 00:00:01"),
        "bit(8)": ("a", "b"),
        "varchar(20) CHARACTER SET latin1": ("ae", "æ"),
        "varchar(20) CHARACTER SET gbk": ("信", "访"),
        "date": ("2024-02-28", "2024-02-29"),
    }
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds))
    run(
        database,
        f"CREATE TABLE records (id int PRIMARY KEY, {columns}, place point, "
        f"upper_c0 varchar(20) AS (UPPER(c0)) VIRTUAL, other int)",
    )
    watched = [*(f"c{i}" for i in range(len(kinds))), "place"]
    dedup = attached(database, "records", columns={name: {"kind": "value"} for name in watched})
    with database.engine.begin() as connection:
        connection.execute(text("INSERT INTO records (id, place) VALUES (1, POINT(1, 2))"))
    assert queued_by(dedup, database, "UPDATE records SET other = 2, place = POINT(1, 2)") == []
    assert queued_by(dedup, database, "UPDATE records SET place = POINT(1, 3)") == [("1", "U")]
    for i, values in enumerate(kinds.values()):
        for value in values:
            assert queued_by(dedup, database, f"UPDATE records SET c{i} = '{value}'") == [("1", "U")], value
            assert queued_by(dedup, database, f"UPDATE records SET c{i} = '{value}'") == [], value


def test_a_key_that_is_the_zero_date(database: Database) -> None:
    run(
        database,
        "CREATE TABLE petitions (at timestamp NOT NULL PRIMARY KEY, body text)",
        "INSERT INTO petitions VALUES ('2019-02-14', 'a')",
    )
    dedup = attached(database)
    zero = "1970-01-01 00:00:00"
    inserting = "INSERT IGNORE INTO petitions VALUES ('0000-00-00', 'b')"
    assert queued_by(dedup, database, inserting) == [(zero, "I")]
    updating = "UPDATE IGNORE petitions SET body = 'c' WHERE body = 'b'"
    assert queued_by(dedup, database, updating) == [(zero, "U")]
    assert queued_by(dedup, database, "DELETE FROM petitions WHERE body = 'c'") == [(zero, "D")]


def test_generated_columns(database: Database) -> None:
    for kind in ("VIRTUAL", "STORED"):
        table = f"records_{kind}"
        run(
            database,
            f"CREATE TABLE {table} (id int PRIMARY KEY, name varchar(9), "
            f"big varchar(9) AS (UPPER(name)) {kind})",
        )
        dedup = attached(database, table, columns={"big": 1})
        written = queued_by(dedup, database, f"INSERT INTO {table} (id, name) VALUES (1, 'a')")
        assert written == [("1", "I")]
        assert queued_by(dedup, database, f"UPDATE {table} SET name = 'A'") == []
        assert queued_by(dedup, database, f"UPDATE {table} SET name = 'b'") == [("1", "U")]


def test_an_application_without_rights_on_ours(database: Database) -> None:
    dedup = petitions(database)
    name = database.engine.url.database
    run(
        database,
        f"CREATE USER {name}@localhost",
        f"GRANT INSERT, UPDATE, SELECT ON petitions TO {name}@localhost",
    )
    engine = create_engine(database.engine.url.set(username=name))
    with engine.begin() as connection:
        connection.execute(text(INSERT))
    engine.dispose()
    assert changes(dedup) == [("1", "I"), ("2", "I")]
    run(database, f"DROP USER {name}@localhost")


def test_the_user_s_lock_wait_is_put_back(database: Database) -> None:
    run(database, "CREATE TABLE petitions (id int PRIMARY KEY, body text)")
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    with dedup.database.dialect.write_transaction(database.engine) as connection:
        connection.execute(text("SET SESSION lock_wait_timeout = 77"))
        dedup._triggers().attachment(connection, add=True).attach(connection)
        assert connection.scalar(text("SELECT @@SESSION.lock_wait_timeout")) == 77


def test_a_half_made_attachment_is_found_and_mended(database: Database) -> None:
    """Each statement commits: what was made before an attempt broke off stands."""
    run(database, "CREATE TABLE petitions (id int PRIMARY KEY, body text)")
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    with database.engine.connect() as connection:
        attachment = dedup._triggers().attachment(connection, add=True)
        attachment.statements = [*attachment.statements[:-1], "CREATE TRIGGER"]
        with pytest.raises(Exception, match="syntax"):
            attachment.attach(connection)
    found = dedup.trigger_state()
    assert found.state is AttachmentState.MISSING
    assert found.differences[0] == "dedup_petitions_1_delete is missing"
    assert "dedup_petitions_1_insert" in dedup.database.installed_names()
    dedup.attach()
    assert dedup.trigger_state().state is AttachmentState.INTACT


def test_a_table_in_another_database(database: Database) -> None:
    other = f"{database.engine.url.database}_x"
    run(
        database,
        f"CREATE DATABASE {other}",
        f"CREATE TABLE {other}.petitions (id int PRIMARY KEY, body text)",
    )
    try:
        dedup = Deduplicator(database.engine, "petitions", {"body": 1}, schema=other)
        dedup.upgrade()
        for dry_run in (True, False):
            with pytest.raises(ConfigError, match=r"another database.*from time to time"):
                dedup.attach(dry_run=dry_run)
        assert values_of(
            database, "SELECT COUNT(*) FROM dedup_watched_table WHERE attached_at IS NOT NULL"
        ) == [0]
    finally:
        run(database, f"DROP DATABASE {other}")


def test_a_refused_attempt_to_attach_leaves_the_table_as_it_was(database: Database) -> None:
    """An account without SUPER is refused by each server with a binary log: its scans must not fail then."""
    rights = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, CREATE VIEW, SHOW VIEW"
    run(database, PETITIONS, INSERT, "CREATE USER untriggered", f"GRANT {rights} ON * TO untriggered")
    engine = create_engine(database.engine.url.set(username="untriggered", password=None))
    try:
        dedup = Deduplicator(engine, "petitions", {"body": 1})
        dedup.upgrade()
        with pytest.raises(DatabaseError, match="GRANT TRIGGER"):
            dedup.attach()
        assert dedup.trigger_state().state is AttachmentState.NOT_ATTACHED
        assert dedup.scan().rows == 2
        assert dedup.verify().is_right
    finally:
        engine.dispose()
        run(database, "DROP USER untriggered")


def test_a_table_without_transactions(database: Database) -> None:
    dedup = petitions(database, "ALTER TABLE petitions ENGINE = MyISAM", INSERT)
    assert queued_by(dedup, database, "UPDATE petitions SET body = 'c' WHERE id = 1") == [("1", "U")]


@pytest.fixture
def server_with_gtids() -> Iterator[Server]:
    settings = {"skip-log-bin": "0", "log-bin": "log", "enforce-gtid-consistency": "ON"}
    yield from private_server("mysql", lambda: start_mysql(settings))


@pytest.mark.thorough
def test_a_table_without_transactions_beside_gtids(server_with_gtids: Server) -> None:
    """MySQL would refuse each statement that writes to it and, by a trigger, to our queue."""
    with fresh_database(server_with_gtids) as database:
        run(database, f"{PETITIONS} ENGINE = MyISAM", INSERT)
        dedup = Deduplicator(database.engine, "petitions", {"body": 1})
        dedup.upgrade()
        with pytest.raises(ConfigError, match=r"MyISAM.*enforce_gtid_consistency"):
            dedup.attach()
        run(database, "UPDATE petitions SET body = 'c'", "ALTER TABLE petitions ENGINE = InnoDB")
        dedup.attach()
        assert queued_by(dedup, database, "DELETE FROM petitions WHERE id = 1") == [("1", "D")]
