"""`init` proposes settings that can be used as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import (
    Column,
    Integer,
    MetaData,
    Table,
    column,
    insert,
    inspect,
    make_url,
    select,
    table,
    text,
)
from sqlalchemy import Text as LongText

from db_dedup.cli.init import settings_document
from db_dedup.config import Settings, Text, Value
from db_dedup.errors import ConfigError, UnknownNameError
from tests.cli.conftest import fail, succeed
from tests.servers import Database

FILE = Path("dedup.toml")


def test_long_text_is_text_and_all_else_a_value(petitions: Database) -> None:
    FILE.unlink()
    result = succeed("init", "--url", petitions.url)
    assert result.stdout == ""
    assert "petitions" in result.stderr
    settings = Settings.from_file(FILE)
    watched = settings.watched("petitions")
    assert list(settings.tables) == ["petitions"]
    assert watched.key == ("id",)
    assert watched.order == "created_at"
    assert watched.columns == {
        "title": Text(),
        "content": Text(),
        "region": Value(),
        "channel": Value(),
        "petitioner": Value(),
        "phone": Value(),
    }
    assert settings.url is not None
    assert make_url(settings.url).database == make_url(petitions.url).database
    assert make_url(settings.url).password is None


def test_a_file_that_is_there_is_not_replaced_unasked(sqlite_petitions: Database) -> None:
    before = FILE.read_text(encoding="utf-8")
    error = fail("init", "--url", sqlite_petitions.url)
    assert "--force" in str(error)
    assert FILE.read_text(encoding="utf-8") == before
    printed = succeed("init", "--dry-run", "--url", sqlite_petitions.url).stdout
    assert FILE.read_text(encoding="utf-8") == before
    succeed("init", "--force", "--url", sqlite_petitions.url)
    assert FILE.read_text(encoding="utf-8") == printed != before


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://clerk:s3cret@db.example/petitions",
        "mysql+pymysql://clerk:s3cret@db.example/petitions?charset=utf8mb4",
        "postgresql://clerk@db.example/petitions?password=s3cret",
        "mysql://clerk@db.example/petitions?passwd=s3cret",
    ],
)
def test_a_password_stays_out_of_the_file(url: str) -> None:
    document = settings_document(url, []).as_string()
    assert "s3cret" not in document
    assert "clerk@db.example/petitions" in document
    assert "DB_DEDUP_URL" in document


def test_only_the_tables_asked_for(sqlite_petitions: Database) -> None:
    FILE.unlink()
    with sqlite_petitions.engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE reply (a INTEGER, b TEXT, body TEXT NOT NULL, PRIMARY KEY (a, b))")
        )
        connection.execute(text("CREATE TABLE logbook (entry TEXT)"))
        connection.execute(text("CREATE TABLE region (id INTEGER PRIMARY KEY, population INTEGER)"))
    url = ("--url", sqlite_petitions.url)
    printed = succeed("init", "--dry-run", *url).stdout
    FILE.write_text(printed, encoding="utf-8")
    assert list(Settings.from_file(FILE).tables) == ["petitions", "reply"]
    printed = succeed("init", "--dry-run", "--table", "reply", *url).stdout
    FILE.write_text(printed, encoding="utf-8")
    assert Settings.from_file(FILE).watched("reply").key == ("a", "b")
    assert list(Settings.from_file(FILE).tables) == ["reply"]
    assert succeed("init", "--dry-run", *url, DB_DEDUP_TABLE="reply").stdout == printed
    assert isinstance(fail("init", "--dry-run", "--table", "replies", *url), UnknownNameError)
    assert isinstance(fail("init", "--dry-run", "--table", "logbook", *url), ConfigError)


def test_our_own_tables_are_not_proposed(petitions: Database) -> None:
    succeed("upgrade")
    succeed("scan", "petitions")
    succeed("init", "--force", "--url", petitions.url)
    assert list(Settings.from_file(FILE).tables) == ["petitions"]


def test_awkward_names_survive(sqlite_database: Database) -> None:
    """Quotes, dots, spaces, percent signs, Chinese: from `init` to the view."""
    awkward = Table(
        'a.b "c" 信访',
        MetaData(),
        Column("i d", Integer, primary_key=True),
        Column("内容 'x' 100%", LongText()),
    )
    words = "楼道的路灯坏了三个月没有人来修理，居民夜里出行十分不便，请尽快处理"
    with sqlite_database.engine.begin() as connection:
        awkward.create(connection)
        connection.execute(insert(awkward), [{"内容 'x' 100%": words}] * 2)
    succeed("init", "--url", sqlite_database.url)
    assert list(Settings.from_file(FILE).watched(awkward.name).columns) == ["内容 'x' 100%"]
    succeed("upgrade")
    assert succeed("scan", awkward.name, "--json").json()["copies"] == 1
    assert succeed("groups", awkward.name, "--format", "json").json()[0]["size"] == 2
    statements = succeed("sql", "view", awkward.name).stdout
    own_view = table(f"dedup_duplicates_of_{awkward.name}", column("i d"), column("内容 'x' 100%"))
    with sqlite_database.engine.connect() as connection:
        connection.connection.cursor().executescript(statements)
        assert connection.execute(select(own_view).order_by("i d")).all() == [(1, words), (2, words)]
    succeed("uninstall", "--yes")
    assert inspect(sqlite_database.engine).get_view_names() == []


def test_a_file_that_cannot_be_written_is_told(sqlite_petitions: Database) -> None:
    error = fail("init", "--config", "no/such/folder.toml", "--url", sqlite_petitions.url)
    assert "cannot write" in str(error)
    assert error.exit_code == 2
