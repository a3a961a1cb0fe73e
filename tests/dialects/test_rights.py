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
        ("schema X y", 'SELECT 1 FROM "X y".pair', 'USAGE ON SCHEMA "X y"'),
        ("table 信访 件", 'SELECT 1 FROM "信访 件"', 'SELECT ON "信访 件"'),
        ('table Odd "T" 5%', 'SELECT %(n)s FROM "X y"."Odd ""T"" 5%%"', 'SELECT ON "X y"."Odd ""T"" 5%"'),
        ("table user", 'INSERT INTO "user" (a) VALUES (1)', 'INSERT ON "user"'),
        ("table pair", "INSERT INTO repair.pair (a) SELECT 1 FROM au_pair", "INSERT ON repair.pair"),
        ("sequence Scan_id_seq", "INSERT INTO d.scan (a) VALUES (1)", 'USAGE ON SEQUENCE "Scan_id_seq"'),
        ("sequence scan_id_seq", "INSERT INTO dedup.scan (a) VALUES (1)", "USAGE ON SEQUENCE scan_id_seq"),
        ("database Office", "DO $$ BEGIN CREATE SCHEMA dedup; END $$", 'CREATE ON DATABASE "Office"'),
        ("database office", "DO $$ BEGIN CREATE SCHEMA dedup; END $$", "CREATE ON DATABASE office"),
    ],
)  # fmt: skip
def test_the_grant_is_named(message: str, statement: str, needed: str) -> None:
    assert needed_grant(DENIED + message, statement) == f" (needed: GRANT {needed})"


@pytest.mark.parametrize("message", [f"{DENIED}table odd T", "must be owner of table odd T"])
@pytest.mark.parametrize(
    "statement",
    [
        'CREATE OR REPLACE TRIGGER t AFTER INSERT ON d."odd T"\nFOR EACH ROW EXECUTE FUNCTION dedup.f()',
        'ALTER TABLE ONLY d."odd T" ENABLE ALWAYS TRIGGER t',
    ],
)
def test_triggers_need_the_rights_of_the_owner(message: str, statement: str) -> None:
    """With the right TRIGGER alone they cannot be set to fire always."""
    needed = needed_grant(message, statement)
    assert needed.startswith(" (needed: membership in the role that owns odd T; ")
    assert "`db-dedup sql grants TABLE --part attacher`" in needed


def test_a_policy_that_hides_rows_needs_an_account_that_sees_all() -> None:
    refusal = 'query would be affected by row-level security policy for table "petitions"'
    assert "BYPASSRLS" in needed_grant(refusal, "SELECT id FROM petitions")


@pytest.mark.parametrize(
    ("message", "statement"),
    [
        ("must be owner of view duplicates_of_petitions", "DROP VIEW duplicates_of_petitions"),
        ("must be owner of table pair", "ALTER TABLE d.pair ADD COLUMN a INTEGER"),
        (DENIED + "table pair", "INSERT INTO d.repair (a) SELECT 1 FROM au_pair"),
        (DENIED + "table change", "UPDATE petitions SET title = ''"),  # a trigger's doing
        (DENIED + "language plperlu", "CREATE FUNCTION f() ..."),
        (DENIED + "table petitions", ""),
    ],
)
def test_where_it_cannot_be_told_nothing_is_said(message: str, statement: str) -> None:
    assert needed_grant(message, statement) == ""
