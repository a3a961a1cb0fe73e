"""PostgreSQL names no right that is missing: it is read from the statement."""

import pytest

from db_dedup.dialects.postgresql.rights import needed_grant

DENIED = "permission denied for "


@pytest.mark.parametrize(
    ("message", "statement", "needed"),
    [
        ("table petitions", "SELECT id FROM petitions", "SELECT ON petitions"),
        ("table pair", 'SELECT 1 FROM "d x".pair AS pair', 'SELECT ON "d x".pair'),
        ("view duplicate_pairs", "SELECT 1 FROM dedup.duplicate_pairs", "SELECT ON dedup.duplicate_pairs"),
        ("table pair", "INSERT INTO dedup.pair (a) VALUES (1)", "INSERT ON dedup.pair"),
        ("table scan", "INSERT INTO d.scan (a) VALUES (1) RETURNING d.scan.id", "SELECT, INSERT ON d.scan"),
        ("table fingerprint", "COPY dedup.fingerprint (a) FROM STDIN", "INSERT ON dedup.fingerprint"),
        ("table scan", "UPDATE dedup.scan SET a = 1 WHERE b = 2", "SELECT, UPDATE ON dedup.scan"),
        ("table pair", "DELETE FROM d.pair WHERE a IN (SELECT 1 FROM d.x)", "SELECT, DELETE ON d.pair"),
        ("table change", "DELETE FROM d.change USING (SELECT 1 FROM d.change FOR UPDATE SKIP LOCKED) AS a",
         "SELECT, UPDATE, DELETE ON d.change"),
        ("table x", "DELETE FROM dedup.pair WHERE a IN (SELECT 1 FROM dedup.x)", "SELECT ON dedup.x"),
        ("table own", "CREATE VIEW dedup.v AS SELECT 1 FROM own", "SELECT ON own"),
        ("schema dedup", "SELECT 1 FROM dedup.pair", "USAGE ON SCHEMA dedup"),
        ("schema dedup", "CREATE VIEW dedup.v AS SELECT 1", "USAGE, CREATE ON SCHEMA dedup"),
        ("sequence scan_id_seq", "INSERT INTO dedup.scan (a) VALUES (1)", "USAGE ON SEQUENCE scan_id_seq"),
        ("database office", "DO $$ BEGIN CREATE SCHEMA dedup; END $$", "CREATE ON DATABASE office"),
    ],
)  # fmt: skip
def test_the_grant_is_named(message: str, statement: str, needed: str) -> None:
    assert needed_grant(DENIED + message, statement) == f" (needed: GRANT {needed})"


@pytest.mark.parametrize(
    ("message", "statement"),
    [
        ("must be owner of view duplicates_of_petitions", "DROP VIEW duplicates_of_petitions"),
        (DENIED + "table change", "UPDATE petitions SET title = ''"),  # a trigger's doing
        (DENIED + "language plperlu", "CREATE FUNCTION f() ..."),
        (DENIED + "table petitions", ""),
    ],
)
def test_where_it_cannot_be_told_nothing_is_said(message: str, statement: str) -> None:
    assert needed_grant(message, statement) == ""
