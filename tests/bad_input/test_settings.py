"""Settings that the database cannot follow."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from db_dedup import Deduplicator
from db_dedup.errors import ConfigError
from tests.bad_input.conftest import NEAR, OTHER, SAME, refusal, unharmed
from tests.cli.conftest import fail, succeed, write_settings
from tests.dialects.tables import fill
from tests.dialects.tables import run as make
from tests.servers import Database

BROKEN = [
    "region = = 'x'",
    "no_such_column = 1",
    "1 = 1)",
    "(1 = 1",
    "1 = 1) OR (1 = 1",
    "1 = 1; DROP TABLE petitions",
    "region = 'left open",
    "100%",
    ":name",
    "\\",
]


def test_a_where_that_is_no_sql(petitions: Database) -> None:
    succeed("upgrade")
    succeed("scan", "petitions")
    with unharmed(petitions, Deduplicator(petitions.engine, "petitions")):
        for where in BROKEN:
            write_settings(petitions, f"where = '''{where}'''")
            error = fail("scan", "petitions")
            assert isinstance(error, ConfigError), where
            assert error.exit_code == 2
            assert "`where` of 'petitions'" in str(error)


def test_a_where_that_is_blank_chooses_all(petitions: Database) -> None:
    write_settings(petitions, 'where = "  "')
    succeed("upgrade")
    assert succeed("scan", "petitions", "--json").json()["rows"] == 120


WHERES = {
    "body LIKE '%烧烤%'": 2,
    "body LIKE '100%' OR body LIKE '%%'": 3,
    r"body <> 'a:b' AND body <> ':name' AND body <> '\:'": 3,
    "body <> '%(name)s' AND body <> '%s'": 3,
    "1 = 1 -- a remark with 'a quote": 3,
    "id IN (SELECT id FROM petitions WHERE body LIKE '%烧烤%')": 2,
}


def test_percent_signs_and_colons_in_a_where(database: Database) -> None:
    make(database, "CREATE TABLE petitions (id INTEGER PRIMARY KEY, body VARCHAR(200))")
    rows = [{"id": i, "body": body} for i, body in enumerate((SAME, NEAR, OTHER))]
    fill(database, "INSERT INTO petitions VALUES (:id, :body)", rows)
    # In MariaDB a backslash in a text escapes what follows.
    backslash = "\\\\" if database.name == "mariadb" else "\\"
    for condition, count in WHERES.items():
        where = condition.replace("\\", backslash)
        dedup = Deduplicator(database.engine, "petitions", {"body": 1}, where=where)
        dedup.upgrade()
        assert dedup.scan().rows == count
        assert len(dedup.check({"body": NEAR})) == 2


def test_a_where_that_fails_at_a_row_shows_no_text(database: Database) -> None:
    make(database, "CREATE TABLE petitions (id INTEGER PRIMARY KEY, body VARCHAR(200))")
    fill(database, "INSERT INTO petitions VALUES (:id, :body)", [{"id": 1, "body": "王秀兰的来信"}])
    conditions = {
        "postgresql": "CAST(body AS INTEGER) > 1",
        "mariadb": "JSON_VALUE(body, '$.a') > 1 AND EXTRACTVALUE(body, CONCAT('~', body)) = 1",
        "sqlite": "json_extract(body, '$.a') > 1",
    }
    dedup = Deduplicator(database.engine, "petitions", {"body": 1}, where=conditions[database.name])
    dedup.upgrade()
    line = refusal(dedup.scan)
    assert "王秀兰" not in line


@pytest.mark.parametrize(
    ("setting", "good"),
    [('user_dictionary = "words.txt"', "words.txt"), ('stop_words_file = "stop.txt"', "stop.txt")],
)
def test_a_word_list_that_is_not_there(sqlite_petitions: Database, setting: str, good: str) -> None:
    write_settings(sqlite_petitions, setting)
    error = fail("scan", "petitions")
    assert good in str(error)
    assert error.exit_code == 2


def test_an_unknown_segmenter(sqlite_petitions: Database) -> None:
    succeed("upgrade")
    succeed("scan", "petitions")
    with unharmed(sqlite_petitions, Deduplicator(sqlite_petitions.engine, "petitions")):
        for name, words in {"jeiba": "jieba", "chars:0": "chars", "chars:many": "chars", "": "jieba"}.items():
            write_settings(sqlite_petitions, f'segmenter = "{name}"')
            error = fail("scan", "petitions")
            assert words in str(error)
            assert error.exit_code == 2


def test_a_schema_that_is_not_there(petitions: Database) -> None:
    write_settings(petitions, 'schema = "archive"')
    succeed("upgrade")
    error = fail("scan", "petitions")
    assert "\n" not in str(error)
    assert "archive" in str(error) or "petitions" in str(error)


def test_a_schema_or_prefix_of_ours_that_is_too_long(petitions: Database) -> None:
    """A schema cannot be called so; a prefix ends in a hash where names have a limit."""
    settings = Path("dedup.toml").read_text(encoding="utf-8")
    long = "x" * 80
    own = f'schema = "{long}"' if petitions.name == "postgresql" else f'prefix = "{long}"'
    Path("dedup.toml").write_text(settings.replace("[database]", f"[database]\n{own}"), encoding="utf-8")
    with unharmed(petitions):
        if petitions.name == "postgresql":
            assert "63 characters" in str(fail("upgrade"))
        else:
            succeed("upgrade")
            succeed("scan", "petitions")


def test_the_users_tables_are_not_dropped_by_a_where(petitions: Database) -> None:
    """Drivers run one statement at a time."""
    write_settings(petitions, "where = '''1 = 1); DELETE FROM petitions; SELECT (1'''")
    succeed("upgrade")
    with unharmed(petitions):
        fail("scan", "petitions")
    with petitions.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM petitions")) == 120


def test_a_part_of_a_date_is_taken_of_dates_only(database: Database) -> None:
    kind = "VARCHAR(50)" if database.name in ("mariadb", "mysql") else "TEXT"
    make(
        database,
        f"CREATE TABLE petitions (id INTEGER PRIMARY KEY, body VARCHAR(200), region {kind}, received {kind}, "
        f"answered {kind}, year INTEGER, day DATE)",
    )
    rows = [{"id": i, "body": body} for i, body in enumerate((SAME, NEAR, OTHER))]
    insert = "INSERT INTO petitions VALUES (:id, :body, '城东区', '2024-01-31', NULL, 2024, '2024-01-31')"
    fill(database, insert, rows)
    write_settings(database)
    succeed("upgrade")
    for column, fault in (("region", "no date was found"), ("year", "a column of the type INT")):
        within = {"column": column, "by": "month"}
        dedup = Deduplicator(database.engine, "petitions", {"body": 1}, within=within)
        for job in (dedup.scan, dedup.preview, dedup.require_scannable):
            with pytest.raises(
                ConfigError, match=f'column = "{column}", by = "month" .*dates, not .*{fault}'
            ):
                job()
    for column in ("received", "answered", "day"):
        within = {"column": column, "by": "month"}
        dedup = Deduplicator(database.engine, "petitions", {"body": 1}, within=within)
        assert dedup.preview().report.rows == 3
