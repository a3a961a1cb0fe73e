"""What cannot work is told in one clear line, with the way out."""

from __future__ import annotations

import importlib.abc
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from db_dedup.engines.embedded.table_scan import EmbeddedScan
from db_dedup.errors import (
    DatabaseError,
    MissingExtraError,
    NotScannedError,
    SchemaMissingError,
    UnknownNameError,
)
from tests.cli.conftest import fail, run, succeed, write_settings
from tests.servers import Database
from tests.thorough import MYSQL

ONE = '{"content": "电梯停运"}'
READERS = [
    ("groups", "petitions"),
    ("pairs", "petitions", "--format", "csv"),
    ("check", "petitions"),
    ("sql", "view", "petitions"),
]


@pytest.mark.parametrize("command", [*READERS, ("scan", "petitions"), ("status",)], ids=" ".join)
def test_not_upgraded_yet(sqlite_petitions: Database, command: Sequence[str]) -> None:
    for arguments in (command, (*command, "--url", sqlite_petitions.url)):
        error = fail(*arguments, stdin=ONE)
        assert isinstance(error, SchemaMissingError)
        assert error.exit_code == 1
        assert "db-dedup upgrade" in str(error)


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_not_scanned_yet(sqlite_petitions: Database, command: Sequence[str]) -> None:
    assert sqlite_petitions.name == "sqlite"
    succeed("upgrade")
    error = fail(*command, stdin=ONE)
    assert isinstance(error, NotScannedError)
    assert error.exit_code == 1
    assert "db-dedup scan petitions" in str(error)


@pytest.mark.parametrize("command", [*READERS, ("scan", "petitions")], ids=" ".join)
def test_an_unknown_watched_table(scanned: Database, command: Sequence[str]) -> None:
    misspelt = ["petitons" if word == "petitions" else word for word in command]
    with_file = fail(*misspelt, stdin=ONE)
    Path("dedup.toml").unlink()
    without = fail(*misspelt, "--url", scanned.url, stdin=ONE)
    for error in (with_file, without):
        assert isinstance(error, UnknownNameError)
        assert error.exit_code == 2
        assert "'petitons': did you mean petitions?" in str(error)
    # Who gives another database, in a folder that has a file, has to learn where the names come from.
    assert "unknown table of the settings" in str(with_file)
    assert "unknown watched table" in str(without)


def test_a_table_or_column_that_the_database_does_not_have(petitions: Database) -> None:
    succeed("upgrade")
    for setting, expected in {
        'table = "petition"': "'petition': did you mean petitions",
        'order = "created"': "'created': did you mean created_at",
        'key = "uid"': "'uid': did you mean",
        'within = "regions"': "'regions': did you mean region",
    }.items():
        write_settings(petitions, setting if "order" not in setting else "")
        if "order" in setting:
            old = Path("dedup.toml").read_text(encoding="utf-8")
            Path("dedup.toml").write_text(old.replace('order = "created_at"', setting), encoding="utf-8")
        error = fail("scan", "petitions")
        assert expected in str(error)
        assert error.exit_code == 2
    with petitions.engine.begin() as connection:
        connection.execute(text("ALTER TABLE petitions RENAME COLUMN content TO body"))
    write_settings(petitions)
    assert "unknown column of table 'petitions': 'content'" in str(fail("scan", "petitions"))


def test_no_key(sqlite_database: Database) -> None:
    with sqlite_database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE petitions (title TEXT, content TEXT, created_at TEXT)"))
    write_settings(sqlite_database)
    succeed("upgrade")
    error = fail("scan", "petitions")
    assert "has no primary key" in str(error)
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (None, "db-dedup init"),
        (b"[tables", "dedup.toml is no valid TOML"),
        (b"\xff", "dedup.toml is not UTF-8"),
        (b"[table.petitions]", "did you mean tables"),
        (b"[database]\nuri = 'sqlite://'", "did you mean url"),
        (b"[tables.petitions]\npresett = 'strict'", "did you mean preset"),
        (b"[tables.petitions]\nuser_dict = 'words'", "user_dictionary"),
        (
            b"[tables.petitions]\npreset = 'lax'\n[tables.petitions.columns]\na = 1",
            '"strict" or "balanced" or "tweet"',
        ),
        (b"[tables.petitions.columns]\na = { wieght = 2 }", "did you mean weight"),
        (b"[tables.petitions.columns]\na = { kind = 'txt' }", '"text" or "value"'),
        (b"[tables.petitions.columns]\ntext = { weight = 0 }", "columns.text.weight"),
        (b"[tables.petitions]\nkey = 'id'", "columns"),
        (b"", "no database: give --url"),
    ],
)
def test_a_faulty_settings_file(document: bytes | None, expected: str) -> None:
    if document is not None:
        Path("dedup.toml").write_bytes(document)
    error = fail("status")
    assert error.exit_code == 2
    assert expected in str(error)


@pytest.mark.parametrize(
    "url",
    ["no url", "oracle://clerk:s3cret@host/x", "sqlite:///a.db?s3cret=x&mode", "postgresql+nodriver://a:s3cret@b/c",
     "postgresql://clerk:s3cret@host:port/x", "://s3cret"],
)  # fmt: skip
def test_a_wrong_url_is_told_without_the_password(url: str) -> None:
    error = fail("status", "--url", url)
    assert "s3cret@" not in str(error)
    assert ":s3cret" not in str(error)


def test_a_database_that_is_not_there(sqlite_database: Database, tmp_path: Path) -> None:
    assert sqlite_database.name == "sqlite"
    missing = tmp_path / "missing.db"
    for command in ("upgrade", "status", "init"):
        error = fail(command, "--url", f"sqlite:///{missing}")
        assert error.exit_code == 1
        assert "missing.db" in str(error)
    assert not missing.exists()


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", MYSQL])
def test_a_server_without_such_a_database(kind: str, request: pytest.FixtureRequest) -> None:
    database = request.getfixturevalue(f"{kind}_database")
    url = make_url(database.url).set(database="no_such_thing", password="s3cret")  # noqa: S106
    error = fail("upgrade", "--url", url.render_as_string(hide_password=False))
    assert isinstance(error, DatabaseError)
    assert error.exit_code == 1
    assert "s3cret" not in str(error)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("no database at all, just words and words and words\n" * 100)
    error = fail("upgrade", "--url", f"sqlite:///{tmp_path / 'letter.txt'}")
    assert "no SQLite database" in str(error)


class _Hidden(importlib.abc.MetaPathFinder):
    """Makes a package look as if it were not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:  # noqa: ARG002
        if fullname.partition(".")[0] == self.name:
            raise ModuleNotFoundError(f"No module named {self.name!r}", name=self.name)


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [("postgresql://host/x", "psycopg", "postgresql"), ("mysql://host/x", "pymysql", "mysql")],
)
def test_a_missing_driver_names_the_extra(
    url: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Hidden(module), *sys.meta_path])
    error = fail("status", "--url", url)
    assert isinstance(error, MissingExtraError)
    assert error.exit_code == 2
    assert f'pip install "db-dedup[{extra}]"' in str(error)


def test_a_scan_that_is_stopped_says_what_stands(
    sqlite_petitions: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while matching: the scan has failed, its lease is free, the last answer is there."""
    write_settings(sqlite_petitions)
    succeed("upgrade")
    succeed("scan", "petitions")
    before = succeed("groups", "petitions").stdout

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(EmbeddedScan, "match", interrupt)
        stopped = run("scan", "petitions")
    assert stopped.exit_code == 130
    assert "the last complete answer, if there is one, is kept" in stopped.stderr
    assert succeed("groups", "petitions").stdout == before
    assert json.loads(succeed("status", "--json").stdout)[0]["last_scan_state"] == "failed"
    succeed("scan", "petitions")
