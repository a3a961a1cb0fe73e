"""`init` proposes settings that can be used as they stand."""

from __future__ import annotations

import re
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import (
    JSON,
    Column,
    Integer,
    LargeBinary,
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

from db_dedup import Database as DedupDatabase
from db_dedup.app.proposals import Proposals, propose_settings
from db_dedup.cli.init import settings_document
from db_dedup.config import Settings, Text
from db_dedup.errors import ConfigError, UnknownNameError
from tests.cli.conftest import fail, succeed
from tests.servers import Database

FILE = Path("dedup.toml")


def test_texts_are_compared_and_the_rest_is_left_out_with_its_reason(petitions: Database) -> None:
    FILE.unlink()
    result = succeed("init", "--url", petitions.url)
    assert result.stdout == ""
    assert "petitions" in result.stderr
    settings = Settings.from_file(FILE)
    watched = settings.watched("petitions")
    assert list(settings.tables) == ["petitions"]
    assert watched.key == ("id",)
    assert watched.order == "created_at"
    assert watched.columns == {"title": Text(), "content": Text()}
    written = FILE.read_text(encoding="utf-8")
    for name in ("region", "channel", "petitioner", "phone"):
        assert re.search(rf"^# {name}: \w+", written, re.MULTILINE), name
    assert re.search(r"^content = .+ # \d+ characters on average$", written, re.MULTILINE)
    assert settings.url is not None
    assert make_url(settings.url).database == make_url(petitions.url).database
    assert make_url(settings.url).password is None


def test_what_cannot_be_proposed_is_named_with_the_reason(petitions: Database) -> None:
    """A view, a table without a key, one without texts: each is listed, none ends the command."""
    with petitions.engine.begin() as connection:
        connection.execute(text("CREATE VIEW late_letters AS SELECT * FROM petitions"))
        connection.execute(text("CREATE TABLE logbook (entry VARCHAR(200))"))
        connection.execute(text("CREATE TABLE region (id INTEGER PRIMARY KEY, population INTEGER)"))
    result = succeed("init", "--force", "--url", petitions.url)
    written = FILE.read_text(encoding="utf-8")
    assert list(Settings.from_file(FILE).tables) == ["petitions"]
    for name, reason in (
        ("late_letters", "view"),
        ("logbook", "no primary key"),
        ("region", "no column of texts to compare: write the settings by hand to compare others"),
    ):
        for told in (result.stderr, written):
            assert re.search(rf"left out {name}: .*{reason}", told), (name, told)
    assert "key" in str(fail("init", "--dry-run", "--table", "late_letters", "--url", petitions.url))


def test_partitions_are_not_tables_of_their_own(postgresql_database: Database) -> None:
    with postgresql_database.engine.begin() as connection:
        for statement in (
            "CREATE TABLE letters (id int, y int, body text, PRIMARY KEY (id, y)) PARTITION BY RANGE (y)",
            "CREATE TABLE letters_2019 PARTITION OF letters FOR VALUES FROM (2019) TO (2020)",
            "CREATE TABLE letters_late PARTITION OF letters DEFAULT PARTITION BY LIST (id)",
            "CREATE TABLE letters_later PARTITION OF letters_late DEFAULT",
        ):
            connection.execute(text(statement))
        connection.execute(
            text("INSERT INTO letters SELECT n, 2019, repeat('路灯坏了 ', n) FROM generate_series(5, 30) n")
        )
    FILE.unlink(missing_ok=True)
    result = succeed("init", "--url", postgresql_database.url)
    assert list(Settings.from_file(FILE).tables) == ["letters"]
    assert "left out" not in result.stderr


def make_letters(database: Database, name: str = "letters") -> None:
    with database.engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE public.{name} (id integer PRIMARY KEY, body text)"))
        words = "'第' || n || '号楼路灯坏了三个月'"
        connection.execute(text(f"INSERT INTO public.{name} SELECT n, {words} FROM generate_series(1, 9) n"))


def with_search_path(database: Database, path: str) -> str:
    """The URL of sessions that look there for names without a schema."""
    url = make_url(database.url).update_query_dict({"options": f"-csearch_path={path}"})
    return url.render_as_string(hide_password=False)


def test_our_tables_are_not_proposed_where_the_search_path_finds_them(postgresql_database: Database) -> None:
    """As it does for an account that has the name of our schema."""
    make_letters(postgresql_database)
    url = with_search_path(postgresql_database, "dedup,public")
    for command in ("init", "upgrade", "scan"):
        succeed(command, *(["letters"] if command == "scan" else []), "--url", url)
    result = succeed("init", "--dry-run", "--url", url)
    assert re.findall(r"^\[tables\.(\w+)\]", result.stdout, re.MULTILINE) == ["letters"]
    assert "left out" not in result.stderr


@pytest.mark.parametrize("path", ["public,dedup", "dedup,public"])
def test_what_is_not_ours_is_proposed_from_a_schema_that_holds_our_tables(
    postgresql_database: Database, path: str
) -> None:
    """A table of the user's before ours on the search path, and one beside ours."""
    url = with_search_path(postgresql_database, path)
    succeed("upgrade", "--url", url)
    make_letters(postgresql_database, "change")
    with postgresql_database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE dedup.letters AS SELECT * FROM public.change"))
        connection.execute(text("ALTER TABLE dedup.letters ADD PRIMARY KEY (id)"))
    result = succeed("init", "--dry-run", "--url", url)
    expected = ["change", "letters"] if path.startswith("public") else ["letters"]
    assert re.findall(r"^\[tables\.(\w+)\]", result.stdout, re.MULTILINE) == expected


def test_a_name_that_leads_to_one_of_our_tables_is_refused(postgresql_database: Database) -> None:
    make_letters(postgresql_database, "change")
    url = with_search_path(postgresql_database, "dedup,public")
    succeed("upgrade", "--url", url)
    assert_is_told(fail("init", "--dry-run", "--table", "change", "--url", url))
    FILE.write_text("[tables.change]\ncolumns.body = 1\n", encoding="utf-8")
    assert_is_told(fail("scan", "change", "--url", url))
    assert_is_told(fail("sql", "grants", "change", "--url", url))
    FILE.write_text('[tables.change]\nschema = "public"\ncolumns.body = 1\n', encoding="utf-8")
    assert succeed("scan", "change", "--json", "--url", url).json()["rows"] == 9


def assert_is_told(error: Exception) -> None:
    assert "'change' is a table or view of db_dedup" in str(error)
    assert 'schema = "public"' in str(error)


def test_a_table_that_may_not_be_read_stops_nothing(postgresql_database: Database) -> None:
    engine = postgresql_database.engine
    name = f"clerk_{engine.url.database}"
    with engine.begin() as connection:
        connection.execute(text(f"CREATE ROLE {name} LOGIN"))
        connection.execute(text("CREATE TABLE a_secret (id integer PRIMARY KEY, body text)"))
        connection.execute(text("CREATE TABLE letters (id integer PRIMARY KEY, body text)"))
        connection.execute(
            text(
                "INSERT INTO letters SELECT n, '第' || n || '号楼路灯坏了三个月' FROM generate_series(1, 9) n"
            )
        )
        connection.execute(text(f"GRANT SELECT ON letters TO {name}"))
    try:
        url = engine.url.set(username=name).render_as_string(hide_password=False)
        result = succeed("init", "--dry-run", "--url", url)
        assert "[tables.letters]" in result.stdout
        assert re.search("left out a_secret: no right", result.stderr)
    finally:
        engine.dispose()
        with engine.begin() as connection:
            connection.execute(text(f"DROP OWNED BY {name}"))
            connection.execute(text(f"DROP ROLE {name}"))


def test_an_order_column_may_be_part_of_the_key(sqlite_database: Database) -> None:
    with sqlite_database.engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE letters (a INTEGER, received TIMESTAMP, body TEXT, PRIMARY KEY (a, received))")
        )
        connection.execute(
            text("INSERT INTO letters VALUES (1, '2019-02-14 20:00:00', '楼道的路灯坏了三个月没有人来修理')")
        )
    FILE.unlink(missing_ok=True)
    succeed("init", "--url", sqlite_database.url)
    assert Settings.from_file(FILE).watched("letters").order == "received"


def test_an_only_text_is_compared_whatever_its_name(sqlite_database: Database) -> None:
    with sqlite_database.engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE letters (id INTEGER PRIMARY KEY, birth_date DATE, created_text TEXT)")
        )
        connection.execute(
            text("INSERT INTO letters VALUES (1, '1970-02-14', '楼道的路灯坏了三个月没有人来修理')")
        )
    FILE.unlink(missing_ok=True)
    succeed("init", "--url", sqlite_database.url)
    watched = Settings.from_file(FILE).watched("letters")
    assert (watched.order, list(watched.columns)) == (None, ["created_text"])


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
        "postgresql://clerk@db.example/petitions?sslmode=require&sslpassword=s3cret",
        "mysql://clerk@db.example/petitions?ssl_key_password=s3cret",
    ],
)
def test_a_password_stays_out_of_the_file(url: str) -> None:
    document = settings_document(url, Proposals((), ())).as_string()
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


def test_a_table_named_twice_is_proposed_once(sqlite_petitions: Database) -> None:
    succeed("init", "--force", "--url", sqlite_petitions.url, "--table", "petitions", "--table", "petitions")
    assert list(Settings.from_file(FILE).tables) == ["petitions"]


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


def test_a_settings_file_that_is_not_read_is_not_named() -> None:
    assert str(fail("init")) == "no database: give --url or set DB_DEDUP_URL"


def test_no_long_value_is_read_whole(database: Database) -> None:
    attachments = Table(
        "attachments",
        MetaData(),
        Column("id", Integer, primary_key=True),
        Column("scan", LargeBinary(2**24 - 1)),
        Column("form", JSON),
        Column("content", LongText()),
    )
    form = {"pages": ["楼道的路灯坏了三个月没有人来修理"] * 3_000}
    with database.engine.begin() as connection:
        attachments.create(connection)
        for number in range(20):
            content = f"{number}栋楼道的路灯坏了三个月没有人来修理，居民夜里出行十分不便，请尽快处理"
            connection.execute(
                insert(attachments), {"scan": bytes(500_000), "form": form, "content": content}
            )
    with closing(DedupDatabase(database.url)) as opened:
        tracemalloc.start()
        try:
            (proposal,) = propose_settings(opened).tables
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 20_000_000
    assert proposal.chosen == ["content"]
    assert {choice.name: choice.reason for choice in proposal.columns}[
        "form"
    ] == "the same value in every row"
