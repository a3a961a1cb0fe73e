"""URLs that lead nowhere: one line, the right exit code, never the password."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url

from db_dedup import Deduplicator
from db_dedup.cli.application import run as main
from db_dedup.errors import ConfigError
from tests.bad_input.conftest import refusal
from tests.cli.conftest import fail, succeed
from tests.servers import Database

PASSWORD = "s3cret"  # noqa: S105 - what must not be shown

NO_SERVER = "127.0.0.1:1/x"
MISUSED = {
    f"mysql://clerk:{PASSWORD}@{NO_SERVER}?nonsense=1": "nonsense",
    f"mysql://clerk:{PASSWORD}@{NO_SERVER}?charset=klingon": "charset",
    f"mysql://clerk:{PASSWORD}@{NO_SERVER}?charset=utf8": "charset=utf8mb4",
    f"mariadb://clerk:{PASSWORD}@{NO_SERVER}?charset=latin1": "charset=utf8mb4",
    f"mysql://clerk:{PASSWORD}@{NO_SERVER}?port=abc": "port",
    f"mysql://clerk:{PASSWORD}@{NO_SERVER}?autocommit=1": "must not set autocommit",
    f"mysql://clerk:{PASSWORD}@{NO_SERVER}?cursorclass=dict": "must not set cursorclass",
    f"mysql://clerk@{NO_SERVER}?password={PASSWORD}&connect_timeout=soon": "connect_timeout",
    f"mysql://clerk@{NO_SERVER}?password={PASSWORD}&ssl_ca=/nowhere/ca.pem": "cannot be used: No such file",
    f"mysql://clerk:{PASSWORD}@{NO_SERVER}?ssl_verify_identity=1": "must not set ssl_verify_identity",
    f"mysql://clerk:{PASSWORD}@{NO_SERVER}?ssl_ca=x&ssl_verify_cert=1": "must not set ssl_verify_cert",
    f"mysql://clerk@{NO_SERVER}?passwd={PASSWORD}&nonsense=1": "nonsense",
    f"postgresql://clerk:{PASSWORD}@{NO_SERVER}?nonsense=1": "nonsense",
    f"postgresql://clerk@{NO_SERVER}?password={PASSWORD}&nonsense=1": "nonsense",
    f"postgresql://clerk:{PASSWORD}@{NO_SERVER}?connect_timeout=soon": "connect_timeout",
    f"postgresql://clerk:{PASSWORD}@{NO_SERVER}?prepare_threshold=0": "must not set prepare_threshold",
    f"postgresql://clerk:{PASSWORD}@{NO_SERVER}?autocommit=1": "must not set autocommit",
    f"postgresql+psycopg_async://clerk:{PASSWORD}@{NO_SERVER}": "write postgresql+psycopg",
    f"postgresql://clerk:{PASSWORD}@host:port/x": "cannot be read",
    f"postgresql://clerk:top@{PASSWORD}@{NO_SERVER}": "percent-encoded",
    f"mysql://clerk:top@{PASSWORD}@no-such-host.invalid/x": "percent-encoded",
    f"postgresql://clerk:top@host/{PASSWORD}@{NO_SERVER}": "percent-encoded",
    f"postgresql://clerk:{PASSWORD}@one:1,two:2/x": "cannot be read",
    f"postgresql+psycopg2://clerk:{PASSWORD}@{NO_SERVER}": "write postgresql+psycopg://",
    f"postgresql+asyncpg://clerk:{PASSWORD}@{NO_SERVER}": "write postgresql+psycopg://",
    f"mysql+mysqldb://clerk:{PASSWORD}@{NO_SERVER}": "write mysql+pymysql://",
    f"mariadb+mariadbconnector://clerk:{PASSWORD}@{NO_SERVER}": "write mariadb+pymysql://",
    f"kingbase://clerk:{PASSWORD}@{NO_SERVER}": "KingbaseES is not supported by name",
    f"opengauss+psycopg2://clerk:{PASSWORD}@{NO_SERVER}": "try postgresql://",
    f"dm+dmPython://clerk:{PASSWORD}@{NO_SERVER}": "DM is not supported: export",
    f"oracle+oracledb://clerk:{PASSWORD}@{NO_SERVER}": "Oracle is not supported: export",
    f"postgre://clerk:{PASSWORD}@{NO_SERVER}": "did you mean postgresql",
    "sqlite://": "in memory",
    "sqlite:///:memory:": "in memory",
    "sqlite:///file::memory:?uri=true": "in memory",
    "sqlite:///file:x?mode=memory&uri=true": "in memory",
}
"""URLs that can never work: exit code 2, and a word of what is wrong."""

FAILED = {
    f"mysql://clerk:{PASSWORD}@{NO_SERVER}": "cannot connect",
    f"mysql://clerk@{NO_SERVER}?password={PASSWORD}": "cannot connect",
    f"mysql://clerk:{PASSWORD}@no-such-host.invalid/x": "no-such-host.invalid",
    f"mysql://clerk:{PASSWORD}@127.0.0.1:99999/x": "cannot connect",
    f"postgresql://clerk:{PASSWORD}@{NO_SERVER}": "cannot connect",
    f"postgresql://clerk@{NO_SERVER}?password={PASSWORD}": "cannot connect",
    f"postgresql://clerk:{PASSWORD}@no-such-host.invalid/x": "no-such-host.invalid",
    f"postgresql://clerk:{PASSWORD}@127.0.0.1:99999/x": "port number",
    f"postgresql://clerk:{PASSWORD}@/x?host=/nowhere": "No such file",
    f"postgresql://clerk:{PASSWORD}@{NO_SERVER}?sslmode=maybe": "sslmode",
    f"postgresql:///?service=nowhere&password={PASSWORD}": "nowhere",
    "sqlite:////dev/null": "no database file",
    f"sqlite:///{'x' * 300}": "no database file",
    "sqlite:///a\0b.db": r"a\x00b.db",
    "sqlite:///two\nlines.db": r"two\nlines.db",
    "sqlite:///missing.db": "missing.db",
    "sqlite:///file:missing.db?uri=true": "cannot be opened",
    "sqlite:///file:missing.db?uri=true&mode=ro": "cannot be opened",
}
"""URLs that could work elsewhere, or tomorrow: exit code 1."""


@pytest.mark.parametrize("command", ["upgrade", "status", "init"])
@pytest.mark.parametrize(("url", "words"), [*MISUSED.items(), *FAILED.items()])
def test_a_url_that_leads_nowhere(url: str, words: str, command: str) -> None:
    error = fail(command, "--url", url)
    assert words in str(error)
    assert PASSWORD not in str(error)
    assert error.exit_code == (2 if url in MISUSED else 1)
    assert list(Path().iterdir()) == []  # nothing was made by mistake


def test_a_missing_file_is_named_with_its_folder(folder: Path) -> None:
    """A relative path is one of the current folder, which the user may have left."""
    assert str(fail("status", "--url", "sqlite:///missing.db")) == (
        f"there is no database file {folder.resolve() / 'missing.db'}"
    )


def test_a_url_of_the_settings_file(folder: Path) -> None:
    for url, words in (*MISUSED.items(), *FAILED.items()):
        escaped = url.replace("\0", r"\u0000").replace("\n", r"\n")
        (folder / "dedup.toml").write_text(f'[database]\nurl = "{escaped}"\n', encoding="utf-8")
        error = fail("status")
        assert (words if url.isprintable() else "url has a control character in it") in str(error)
        assert PASSWORD not in str(error)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?nonsense=1", "nonsense"),
        ("?timeout=soon", "timeout"),
        ("?check_same_thread=maybe", "check_same_thread"),
        ("?mode=ro", "mode"),  # says nothing without file: and uri
    ],
)
def test_an_option_that_sqlite_does_not_take(sqlite_petitions: Database, query: str, words: str) -> None:
    error = fail("status", "--url", sqlite_petitions.url + query)
    assert words in str(error)
    assert error.exit_code == 2


@pytest.mark.parametrize("url", [*MISUSED, *FAILED])
def test_a_url_in_the_wrong_place(sqlite_petitions: Database, url: str) -> None:
    """Where the name of a table was meant."""
    succeed("upgrade")
    for arguments in (("scan", url), ("groups", url, "--url", sqlite_petitions.url)):
        error = fail(*arguments)
        assert error.exit_code == 2
        assert PASSWORD not in str(error)


def test_no_error_shows_a_password() -> None:
    for url in (
        "a://b:p@s:s@host/x",
        "a://:pass@host",
        "a://b@host/x?password=pass&c=d",
        "a://h/x?passwd=pass",
    ):
        line = str(ConfigError(f"unknown table {url!r}"))
        assert "s@" not in line.replace("***@", "")
        assert "pass'" not in line
        assert "=pass" not in line
        assert "***" in line


def test_a_folder_is_no_database(folder: Path) -> None:
    assert "no database file" in str(fail("upgrade", "--url", f"sqlite:///{folder}"))
    assert "cannot be opened" in str(fail("upgrade", "--url", f"sqlite:///file:{folder}?uri=true"))


def with_parts(url: str, **parts: str) -> str:
    return make_url(url).set(**parts).render_as_string(hide_password=False)  # type: ignore[arg-type]


def test_a_server_that_knows_neither_user_nor_database(
    postgresql_database: Database, mariadb_or_mysql: Database
) -> None:
    for url in (postgresql_database.url, mariadb_or_mysql.url):
        stranger = with_parts(url, username="stranger", password=PASSWORD)
        nowhere = with_parts(url, database="no_such_database")
        assert "stranger" in (told := str(fail("upgrade", "--url", stranger)))
        assert PASSWORD not in told
        assert "no_such_database" in str(fail("upgrade", "--url", nowhere))


def test_a_url_without_a_database(mariadb_or_mysql: Database, caplog: pytest.LogCaptureFixture) -> None:
    """PostgreSQL takes the database of the account's name."""
    told = str(fail("upgrade", "--url", with_parts(mariadb_or_mysql.url, database="")))
    assert "names no database" in told
    assert caplog.text == "", "the session that is refused is closed twice"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_socket_that_is_not_there() -> None:
    url = f"mysql://clerk:{PASSWORD}@localhost/x?unix_socket=/nowhere/socket"
    told = str(fail("upgrade", "--url", url))
    assert "cannot connect" in told
    assert PASSWORD not in told
    gc.collect()  # pymysql leaves its own socket open when it is refused


def test_a_wrong_password(mariadb_or_mysql: Database) -> None:
    socket = str(make_url(mariadb_or_mysql.url).query["unix_socket"])
    url = URL.create("mysql", "root", host="localhost", query={"unix_socket": socket, "password": PASSWORD})
    told = str(fail("upgrade", "--url", url.render_as_string(hide_password=False)))
    assert "user and password" in told
    assert PASSWORD not in told


def test_python_says_the_same() -> None:
    for url, words in (*MISUSED.items(), *FAILED.items()):
        line = refusal(lambda url=url: Deduplicator(url, "petitions", {"content": 1}).scan())  # type: ignore[misc]
        assert words in line
        assert PASSWORD not in line


@pytest.mark.parametrize("password", [PASSWORD, f"a/{PASSWORD}@b"])
@pytest.mark.parametrize(
    "before", [(), ("pairs",), ("explain", "petitions", "1", "2"), ("scan", "petitions")]
)
def test_a_url_where_none_belongs_is_not_printed(
    before: tuple[str, ...],
    password: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The library of the command line would show what it cannot place."""
    url = f"mysql+pymysql://clerk:{password}@{NO_SERVER}"
    monkeypatch.setattr("sys.argv", ["db-dedup", *before, url])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: a database URL goes after --url or --store-url\n"


@pytest.mark.parametrize("before", ["--url ", "--config=", "--config=x --url=", "see "])
def test_a_url_inside_an_argument_is_not_printed(
    before: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argument = f"{before}postgresql://clerk:{PASSWORD}@{NO_SERVER}"
    monkeypatch.setattr("sys.argv", ["db-dedup", "status", argument])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: a database URL goes after --url or --store-url\n"


@pytest.mark.parametrize("option", ["--url", "--store-url"])
def test_a_url_in_one_argument_with_its_option_is_read(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["db-dedup", "status", f"{option}=mysql://clerk:{PASSWORD}@{NO_SERVER}"])
    with pytest.raises(SystemExit):
        main()
    told = capsys.readouterr().err
    assert "goes after" not in told
    assert PASSWORD not in told


@pytest.mark.parametrize("option", [("--url",), ("--store-url",)])
def test_a_url_behind_its_option_is_read(
    option: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["db-dedup", "status", *option, f"mysql://clerk:{PASSWORD}@{NO_SERVER}"])
    with pytest.raises(SystemExit):
        main()
    told = capsys.readouterr().err
    assert "goes after" not in told
    assert PASSWORD not in told
