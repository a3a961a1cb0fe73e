"""What the commands say where something is not as the user thinks: which, why, and what mends it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from db_dedup import Database as OurDatabase
from db_dedup import Deduplicator
from db_dedup.config import watched_table
from db_dedup.errors import (
    ConfigError,
    FaultyTablesError,
    RecipeDiffersError,
    TableGoneError,
    UnknownNameError,
)
from db_dedup.plurals import counted
from tests.cli.conftest import fail, rows, run, succeed, view, write_settings
from tests.dialects.tables import run as do
from tests.servers import Database

_OPINION = '{"title": "停水", "content": "小区停水三天，没有人来处理。"}'


def test_settings_that_differ_are_named_with_both_values(scanned: Database) -> None:
    write_settings(scanned, 'threshold = 0.6\nwithin = "region"')
    settings = Path("dedup.toml").read_text(encoding="utf-8").replace("title = 1", "title = 3")
    Path("dedup.toml").write_text(settings, encoding="utf-8")
    error = fail("check", "petitions", stdin=_OPINION)
    assert isinstance(error, RecipeDiffersError)
    assert "columns.title.weight (stored: 1, given: 3)" in str(error)
    assert "threshold (stored: 0.57, given: 0.6)" in str(error)
    assert "within (stored: none, given: region)" in str(error)
    for same in ("radius", "content", "key", "order"):
        assert same not in str(error)
    assert "`db-dedup scan petitions`" in str(error)
    assert "threshold（已存：0.57，现在：0.6）、within（已存：无，现在：region）" in error.in_language("zh")


def test_a_column_and_a_list_of_words_that_differ_are_named(scanned: Database) -> None:
    Path("words.txt").write_text("停水\n停电\n", encoding="utf-8")
    write_settings(scanned, 'user_dictionary = "words.txt"')
    with Path("dedup.toml").open("a", encoding="utf-8") as file:
        file.write('region = { kind = "value", weight = 2 }\n')
    line = str(fail("check", "petitions", stdin=_OPINION))
    assert "columns.region.kind (stored: none, given: value)" in line
    assert "user_dictionary (stored: none, given: 2 words" in line


def test_init_of_a_view_says_what_to_write(sqlite_petitions: Database) -> None:
    do(sqlite_petitions, "CREATE VIEW recent AS SELECT * FROM petitions")
    error = fail("init", "--table", "recent", "--force", "--url", sqlite_petitions.url)
    assert isinstance(error, ConfigError)
    assert "'recent' is a view" in str(error)
    assert "[tables.recent]" in str(error)
    assert 'key = ["id"]' in str(error)


@pytest.mark.usefixtures("scanned")
def test_undoing_an_answer_says_which_and_how_many_are_kept() -> None:
    lines = succeed("pairs", "petitions", "--format", "csv").stdout.splitlines()[1:]
    pairs = [line.split(",")[:2] for line in lines if not line.endswith(",0,1.0")][:2]
    answers = [f"{a},{b},{said}" for (a, b), said in zip(pairs, ("no", "yes"), strict=True)]
    Path("answers.csv").write_text("\n".join(["key_a,key_b,label", *answers]), encoding="utf-8")
    assert "2 labels stored" in succeed("label", "petitions", "--answers", "answers.csv").stderr
    (a, b), (c, d) = pairs
    first = succeed("label", "petitions", "--undo", a, b).stderr
    assert f"label removed: rows '{a}' and '{b}' are no duplicates" in first
    assert "1 label is stored now" in first
    again = run("label", "petitions", "--undo", a, b)
    assert again.exit_code == 1
    assert "removed" not in again.stderr
    assert "1 label is stored now" in again.stderr
    last = succeed("label", "petitions", "--undo", c, d).stderr
    assert f"rows '{c}' and '{d}' are duplicates" in last
    assert "0 labels are stored now" in last


def test_a_dropped_table_is_said_to_be_gone(scanned: Database) -> None:
    others = [f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)" for name in ("meters", "logins", "orders")]
    do(scanned, *others, "DROP TABLE petitions")
    commands = ("scan", "verify", "worker", "attach")
    errors = [fail(command, "petitions") for command in commands]
    errors += [fail("explain", "petitions", "1", "2"), fail("check", "petitions", stdin=_OPINION)]
    for error in errors:
        assert isinstance(error, TableGoneError)
        assert "'petitions' was scanned and is no longer in the database" in str(error)
        assert "db-dedup uninstall" in str(error)
        assert "renamed" not in str(error)
    succeed("detach", "petitions")
    succeed("uninstall", "--yes")


def test_the_triggers_of_a_dropped_table_are_gone_with_it(scanned: Database) -> None:
    succeed("attach", "petitions")
    do(scanned, "DROP TABLE petitions")
    (entry,) = succeed("status", "--json").json()
    assert "'petitions' was scanned and is no longer in the database" in entry["trigger_faults"][0]


def test_a_renamed_table_is_found_by_its_near_name(scanned: Database) -> None:
    do(scanned, "ALTER TABLE petitions RENAME TO petitions_2024")
    assert "(renamed? there is petitions_2024)" in str(fail("scan", "petitions"))


def test_a_name_that_is_like_none_gets_no_suggestion(scanned: Database) -> None:
    do(scanned, "CREATE TABLE meters (id INTEGER PRIMARY KEY)")
    write_settings(scanned, 'table = "zzz"')
    assert str(fail("scan", "petitions")) == "unknown table 'zzz'"
    assert isinstance(fail("status", "orders"), UnknownNameError)


def test_uninstall_names_the_version_table_in_full(petitions: Database) -> None:
    if petitions.name == "postgresql":
        do(petitions, "CREATE TABLE alembic_version (version_num VARCHAR(32))")
    succeed("upgrade")
    result = succeed("uninstall", "--dry-run")
    ours = view(petitions, "alembic_version")
    names = result.stdout.splitlines()
    assert ours in names
    assert "alembic_version" not in names
    assert view(petitions, "duplicate_pairs") in names
    assert f"{ours} is db-dedup's own" in result.stderr
    with closing(OurDatabase(petitions.url)) as database:
        assert sorted(names) == database.installed_names()
    succeed("uninstall", "--yes")
    if petitions.name == "postgresql":
        do(petitions, "DROP TABLE alembic_version")


def test_status_of_one_table(scanned: Database) -> None:
    with closing(OurDatabase(scanned.url)) as database:
        Deduplicator(
            database, watched_table("others", {"table": "petitions", "columns": {"title": 1}})
        ).scan()
    assert [entry["table"] for entry in succeed("status", "--json").json()] == ["others", "petitions"]
    assert [entry["table"] for entry in succeed("status", "petitions", "--json").json()] == ["petitions"]
    both = succeed("status", "petitions", "others", "--json").json()
    assert [entry["table"] for entry in both] == ["petitions", "others"]
    assert "did you mean petitions?" in str(fail("status", "petition"))


def test_a_worker_with_a_store_says_why_not(scanned: Database, folder: Path) -> None:
    store = f"sqlite:///{folder / 'store.db'}"
    for arguments, environment in ((("--store-url", store), {}), ((), {"DB_DEDUP_STORE_URL": store})):
        error = run("worker", "petitions", "--drain", *arguments, **environment).error
        assert isinstance(error, ConfigError)
        assert "the triggers write each change into a queue there" in str(error)
        assert "db-dedup schedule" in str(error)
    url = f"[database]\nurl = {json.dumps(scanned.url)}\nstore_url = {json.dumps(store)}\n"
    Path("dedup.toml").write_text(f"{url}[tables.petitions.columns]\ntitle = 1\n", encoding="utf-8")
    assert "a queue there" in str(fail("worker", "petitions"))


@pytest.mark.usefixtures("scanned")
def test_a_table_in_a_pipe_is_as_wide_as_columns_says() -> None:
    wide = succeed("status", COLUMNS="").stdout.splitlines()
    narrow = succeed("status", COLUMNS="60").stdout.splitlines()
    assert max(map(len, wide)) > 60
    assert max(map(len, narrow)) <= 60
    assert len(narrow) > len(wide)


def test_one_is_said_in_the_singular(sqlite_database: Database) -> None:
    body = "小区已经连续三天停水，没有人来处理，请有关部门尽快解决居民用水的问题。"
    do(
        sqlite_database,
        "CREATE TABLE letters (id INTEGER PRIMARY KEY, body TEXT)",
        f"INSERT INTO letters VALUES (1, '{body}'), (2, '{body}'), (3, '路灯坏了很久，没有人来修理。')",
    )
    url = json.dumps(sqlite_database.url)
    Path("dedup.toml").write_text(f"[database]\nurl = {url}\n[tables.letters.columns]\nbody = 1\n")
    succeed("upgrade")
    assert (
        "1 duplicate group with 2 rows: 0 pairs and 1 exact duplicate\n" in succeed("scan", "letters").stderr
    )
    do(sqlite_database, f"INSERT INTO letters VALUES (4, '{body}一定')")
    succeed("scan", "letters")
    assert "1 pair gained, 0 lost, 1 group changed" in succeed("status").stdout


def test_amounts() -> None:
    assert [counted(n, "row") for n in (0, 1, 2, 1234)] == ["0 rows", "1 row", "2 rows", "1,234 rows"]
    assert counted(1, "copy", "copies") == "1 copy"
    assert counted(2, "copy", "copies") == "2 copies"


def test_sqlite_has_no_accounts(scanned: Database) -> None:
    error = fail("sql", "grants", "petitions")
    assert isinstance(error, ConfigError)
    assert "SQLite has no accounts" in str(error)
    assert "`db-dedup sql grants TABLE`" in str(fail("sql", "grants", "--url", scanned.url))


def test_the_version_table_of_another_program_is_not_ours(petitions: Database) -> None:
    """Not even under our name."""
    theirs = view(petitions, "alembic_version")
    schema = ["CREATE SCHEMA dedup"] if petitions.name == "postgresql" else []
    make = [f"CREATE TABLE {theirs} (version_num VARCHAR(32))", f"INSERT INTO {theirs} VALUES ('ae1027a6')"]
    do(petitions, *schema, *make)
    for arguments in (("--dry-run",), ("--yes",)):
        result = succeed("uninstall", *arguments)
        assert (result.stdout, result.stderr) == ("", "nothing of db_dedup is in this database\n")
    assert rows(petitions.engine, f"SELECT * FROM {theirs}") == [("ae1027a6",)]


def test_a_drained_worker_promises_no_retry_of_a_table_that_it_leaves(scanned: Database) -> None:
    with closing(OurDatabase(scanned.url)) as database:
        other = watched_table("others", {"table": "petitions", "columns": {"title": 1}})
        Deduplicator(database, other).scan()
    succeed("attach", "petitions")
    Path("dedup.toml").unlink()
    result = run("worker", "petitions", "others", "--drain", "--url", scanned.url)
    assert "others: 'others' has no triggers" in result.stderr
    assert "trying again" not in result.stderr
    assert isinstance(result.error, FaultyTablesError)
