"""What a stranger has written never commands the terminal of whoever reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from db_dedup import Deduplicator
from tests.bad_input.conftest import NEAR, SAME
from tests.cli.conftest import fail, run, succeed
from tests.dialects.tables import fill
from tests.dialects.tables import run as make
from tests.servers import Database

COMMANDING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""All but the end of a line."""

PARTS = [
    "\x1b]0;owned\x07",
    "\x1b[2J",
    "\x9b31m",
    "\u202egnp",
    "\u2066a",
    "line\rover",
    "a\bb",
    "\x7f",
    "\u2028",
]
COLUMN = "body\x1b[31m"
KEYS = [f"{number}{part}" for number, part in enumerate(PARTS)]


@pytest.fixture
def hostile(database: Database) -> Database:
    """Rows whose keys, texts and column name hold what a terminal obeys."""
    kind = "VARCHAR(50)" if database.name == "mariadb" else "TEXT"
    quoted = database.engine.dialect.identifier_preparer.quote_identifier(COLUMN)
    make(database, f"CREATE TABLE petitions (id {kind} NOT NULL PRIMARY KEY, {quoted} VARCHAR(400))")
    rows = [
        {"id": key, "body": f"{NEAR if number % 2 else SAME}{''.join(PARTS)}"}
        for number, key in enumerate(KEYS)
    ]
    fill(database, "INSERT INTO petitions VALUES (:id, :body)", rows)
    url, column = json.dumps(database.url), json.dumps(COLUMN)
    settings = f"[database]\nurl = {url}\n[tables.petitions.columns]\n{column} = 1\n"
    Path("dedup.toml").write_text(settings, encoding="utf-8")
    succeed("upgrade")
    succeed("scan", "petitions")
    return database


COMMANDS = [
    ["pairs", "petitions"],
    ["pairs", "petitions", "--texts"],
    ["pairs", "petitions", "--texts", "--full"],
    ["groups", "petitions"],
    ["groups", "petitions", "--texts"],
    ["explain", "petitions", KEYS[0], KEYS[1]],
    ["explain", "petitions", KEYS[3], KEYS[5]],
    ["verify", "petitions"],
    ["status"],
    ["label", "petitions"],
    ["label", "petitions", "--list"],
    ["uninstall", "--dry-run"],
]


@pytest.mark.usefixtures("hostile")
def test_nothing_commands_the_terminal() -> None:
    lines = [f"{KEYS[0]},{KEYS[1]},no", "\x1b[1mx,y,no"]
    Path("answers.csv").write_text("\n".join(["key_a,key_b,label", *lines]), encoding="utf-8")
    said = [run("label", "petitions", "--answers", "answers.csv")]
    said += [run(*command, stdin="n\nq\n") for command in COMMANDS]
    for command, result in zip(["answers", *COMMANDS], said, strict=True):
        assert result.error is None, command
        assert result.stdout + result.stderr, command
        assert not COMMANDING.findall(result.stdout + result.stderr), command
    assert not COMMANDING.search(str(fail("explain", "petitions", KEYS[0], "\x1b[2J")))


@pytest.mark.usefixtures("hostile")
def test_a_key_is_shown_by_its_escapes() -> None:
    """So that two keys that differ there do not look alike."""
    shown = succeed("pairs", "petitions").stdout
    for key in KEYS:
        assert "".join(c if c.isprintable() else ascii(c)[1:-1] for c in key) in shown


def test_data_stay_exact(hostile: Database) -> None:
    pairs = succeed("pairs", "petitions", "--format", "json").json()
    assert {pair[side] for pair in pairs for side in ("key_a", "key_b")} == set(KEYS)
    listed = succeed("pairs", "petitions", "--format", "csv").stdout
    assert all(key in listed for key in KEYS if "\r" not in key)
    dedup = Deduplicator(hostile.engine, "petitions", {COLUMN: 1})
    assert sorted(dedup.members(dedup.groups()[0].group_id)) == sorted(KEYS)
