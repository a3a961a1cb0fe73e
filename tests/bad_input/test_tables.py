"""Tables with nothing in them, or with nothing that says anything; and names that are not there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from db_dedup import Deduplicator
from db_dedup.errors import NotScannedError, UnknownNameError
from tests.bad_input.conftest import SAME, refusal, unharmed
from tests.cli.conftest import fail, rows, run, succeed, view
from tests.dialects.tables import fill
from tests.dialects.tables import run as make
from tests.servers import Database

URL_TABLE = "CREATE TABLE petitions (id INTEGER PRIMARY KEY, body VARCHAR(200), region VARCHAR(20))"


def watch(database: Database) -> Deduplicator:
    dedup = Deduplicator(database.engine, "petitions", {"body": 1, "region": {"kind": "value"}})
    dedup.upgrade()
    return dedup


NOTHING: dict[str, list[str | None]] = {
    "empty": [],
    "only NULL": [None] * 20,
    "only blanks": ["", " ", "\t\n", "\u3000"] * 5,
    "only punctuation": ["……", "***", "？！", "---"] * 5,
    "one row": [SAME],
}


@pytest.mark.parametrize("kind", NOTHING)
def test_nothing_to_compare(database: Database, kind: str) -> None:
    """Nothing is found, every command says so in peace, and a row that comes later is seen."""
    make(database, URL_TABLE)
    bodies = NOTHING[kind]
    for i, body in enumerate(bodies):
        fill(database, "INSERT INTO petitions VALUES (:id, :body, NULL)", [{"id": i, "body": body}])
    dedup = watch(database)
    with unharmed(database):
        for _ in range(2):
            report = dedup.scan()
            assert (report.rows, report.pairs, report.copies, report.groups) == (len(bodies), 0, 0, 0)
            assert report.too_little_text == (0 if kind == "one row" else len(bodies))
    url = ["--url", database.url]
    assert succeed("groups", "petitions", *url, "--format", "json").json() == []
    assert succeed("pairs", "petitions", *url, "--format", "json").json() == []
    assert succeed("pairs", "petitions", *url, "--format", "json", "--expand").json() == []
    assert rows(database.engine, f"SELECT * FROM {view(database, 'duplicates_of_petitions')}") == []
    assert succeed("status", *url, "--json").json()[0]["rows"] == len(bodies)
    found = succeed("check", "petitions", *url, stdin=json.dumps({"body": SAME})).json()
    assert len(found) == (1 if kind == "one row" else 0)
    later = {"body": SAME}
    fill(
        database,
        "INSERT INTO petitions VALUES (:id, :body, NULL)",
        [{"id": 100 + i, **later} for i in (1, 2)],
    )
    assert dedup.scan().copies == (2 if kind == "one row" else 1)


def test_a_table_that_was_emptied(database: Database) -> None:
    make(database, URL_TABLE)
    body = {"body": SAME}
    fill(database, "INSERT INTO petitions VALUES (:id, :body, NULL)", [{"id": i, **body} for i in range(5)])
    dedup = watch(database)
    assert dedup.scan().copies == 4
    make(database, "DELETE FROM petitions")
    assert dedup.scan().rows == 0
    assert dedup.groups() == []
    assert list(dedup.pairs()) == []


def test_names_that_are_not_there(database: Database) -> None:
    """The nearest names are told, by Python as by the command line."""
    make(database, URL_TABLE)
    watch(database)
    for table, column, meant in (
        ("petition", "body", "petitions"),
        ("petitions", "bodi", "body"),
        ("petitions", "Body ", "body"),
    ):
        line = refusal(Deduplicator(database.engine, table, {column: 1}).scan, UnknownNameError)
        assert f"did you mean {meant}" in line
    for option, name, meant in (
        ("key", "idd", "id"),
        ("order", "ids", "id"),
        ("within", "regions", "region"),
    ):
        options: dict[str, Any] = {option: name}
        dedup = Deduplicator(database.engine, "petitions", {"body": 1}, **options)
        assert f"{name!r}: did you mean {meant}" in refusal(dedup.scan, UnknownNameError)
    elsewhere = Deduplicator(database.engine, "petitions", {"body": 1}, schema="nowhere")
    line = refusal(elsewhere.scan)
    assert "petitions" in line or "nowhere" in line


def test_a_check_of_a_column_that_is_not_there(database: Database) -> None:
    make(database, URL_TABLE)
    watch(database).scan()
    error = fail("check", "petitions", "--url", database.url, stdin='{"bodi": "x"}')
    assert "did you mean body" in str(error)
    assert error.exit_code == 2


def test_our_own_tables_and_views_can_be_watched_by_nobody(database: Database) -> None:
    """What we made is no table of the user's: whatever comes of it, it is one line or a plain scan."""
    make(database, URL_TABLE)
    watch(database).scan()
    schema = "dedup" if database.name == "postgresql" else None
    name = "duplicate_pairs" if schema else "dedup_duplicate_pairs"
    dedup = Deduplicator(database.engine, name, {"key_a": 1}, schema=schema)
    assert "no primary key" in refusal(dedup.scan)


def test_a_table_that_is_gone_keeps_its_answer(database: Database) -> None:
    make(database, URL_TABLE)
    body = {"body": SAME}
    fill(database, "INSERT INTO petitions VALUES (:id, :body, NULL)", [{"id": i, **body} for i in range(5)])
    dedup = watch(database)
    dedup.scan()
    before = succeed("groups", "petitions", "--url", database.url).stdout
    if database.name == "postgresql":  # which would not let go of a table that a view reads
        make(database, f"DROP VIEW {view(database, 'duplicates_of_petitions')}")
    make(database, "DROP TABLE petitions")
    error = fail("scan", "petitions", "--url", database.url)
    assert "petitions" in str(error)
    assert succeed("groups", "petitions", "--url", database.url).stdout == before
    assert succeed("status", "--url", database.url, "--json").json()[0]["copies"] == 4
    assert run("check", "petitions", "--url", database.url, stdin='{"body": "x"}').exit_code in (1, 2)
    make(database, URL_TABLE)
    fill(database, "INSERT INTO petitions VALUES (:id, :body, NULL)", [{"id": i, **body} for i in range(3)])
    assert dedup.scan().copies == 2


def test_a_table_that_was_never_scanned(database: Database) -> None:
    make(database, URL_TABLE)
    watch(database)
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    for action in (dedup.groups, lambda: list(dedup.pairs()), lambda: dedup.check({"body": SAME})):
        assert "db-dedup scan petitions" in refusal(action, NotScannedError)
