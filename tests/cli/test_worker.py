"""`worker` and `retry` on the command line."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from sqlalchemy import text

from db_dedup.errors import NotScannedError, RecipeDiffersError, UnknownNameError
from tests.cli.conftest import fail, rows, run, succeed, view, write_settings
from tests.servers import Database


def insert_copy(database: Database, table: str = "petitions") -> None:
    """One more row, equal to the first."""
    with database.engine.begin() as connection:
        columns = "title, content, region, created_at"
        connection.execute(
            text(f"INSERT INTO {table} (id, {columns}) SELECT 9999, {columns} FROM {table} WHERE id = 1")
        )


def test_the_queue_is_drained(petitions: Database) -> None:
    succeed("upgrade")
    succeed("attach", "petitions")
    first = succeed("worker", "petitions", "--drain")
    assert first.stderr.splitlines()[-1] == "0 changes handled, 0 given up, 1 scan"
    insert_copy(petitions)
    before = signal.getsignal(signal.SIGTERM)
    result = succeed("worker", "petitions", "--drain")
    assert (result.stdout, result.stderr) == ("", "1 change handled, 0 given up, 0 scans\n")
    assert signal.getsignal(signal.SIGTERM) is before
    assert ("1", "9999") in rows(
        petitions.engine, f"SELECT key_a, key_b FROM {view(petitions, 'duplicate_pairs')}"
    )
    succeed("verify", "petitions")


def test_several_tables(petitions: Database) -> None:
    with petitions.engine.begin() as connection:
        connection.execute(text("CREATE TABLE answers (id integer PRIMARY KEY, body varchar(200))"))
    settings = Path("dedup.toml").read_text(encoding="utf-8")
    settings += "\n[tables.answers]\n[tables.answers.columns]\nbody = 1\n"
    Path("dedup.toml").write_text(settings, encoding="utf-8")
    succeed("upgrade")
    for table in ("petitions", "answers"):
        succeed("attach", table)
    succeed("worker", "petitions", "answers", "--drain")
    insert_copy(petitions)
    with petitions.engine.begin() as connection:
        connection.execute(
            text("INSERT INTO answers VALUES (1, 'the lamp is repaired'), (2, 'the lamp is repaired')")
        )
    result = succeed("worker", "petitions", "answers", "--drain")
    assert result.stderr == "3 changes handled, 0 given up, 0 scans\n"
    assert [group["size"] for group in succeed("groups", "answers", "--format", "json").json()] == [2]


def test_what_is_given_up_comes_back(petitions: Database) -> None:
    succeed("upgrade")
    succeed("attach", "petitions")
    succeed("worker", "petitions", "--drain")
    with petitions.engine.begin() as connection:
        dead, change = view(petitions, "dead_change"), view(petitions, "change")
        connection.execute(
            text(f"INSERT INTO {dead} VALUES (1, '1', 'U', 3, 'ValueError', '2026-01-01 00:00:00')")
        )
    result = succeed("retry", "petitions")
    assert (result.stdout, result.stderr) == ("", "1 change of petitions queued again\n")
    assert rows(petitions.engine, f"SELECT row_key FROM {change}") == [("1",)]
    assert rows(petitions.engine, f"SELECT row_key FROM {dead}") == []
    assert succeed("worker", "petitions", "--drain").stderr.startswith("1 change handled, 0 given up")


@pytest.mark.usefixtures("sqlite_petitions")
@pytest.mark.parametrize("command", [["worker", "petitions", "--drain"], ["retry", "petitions"]])
def test_a_table_that_is_not_watched(command: list[str]) -> None:
    succeed("upgrade")
    error = fail(*command)
    assert isinstance(error, UnknownNameError)
    assert "petitions" in str(error)


@pytest.mark.usefixtures("scanned")
def test_a_table_that_is_not_attached() -> None:
    error = fail("worker", "petitions", "--drain")
    assert isinstance(error, NotScannedError)
    assert str(error) == "'petitions' has no triggers: run `db-dedup attach petitions` first"
    assert error.exit_code == 1


def test_settings_that_differ(scanned: Database) -> None:
    succeed("attach", "petitions")
    write_settings(scanned, "min_features = 7")
    error = fail("worker", "petitions", "--drain")
    assert isinstance(error, RecipeDiffersError)
    assert "run `db-dedup scan petitions`" in str(error)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("arguments", [[], ["petitions", "--batch", "0"], ["petitions", "--poll", "0"]])
def test_wrong_usage(arguments: list[str]) -> None:
    assert run("worker", *arguments).exit_code == 2


def test_without_a_file_the_stored_settings_count(scanned: Database) -> None:
    succeed("attach", "petitions")
    Path("dedup.toml").unlink()
    succeed("worker", "petitions", "--drain", "--url", scanned.url)
    insert_copy(scanned)
    succeed("worker", "petitions", "--drain", "--url", scanned.url)
    found = succeed("pairs", "petitions", "--url", scanned.url, "--format", "json").json()
    assert json.dumps(found).count('"9999"') >= 1
