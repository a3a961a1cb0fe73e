"""How the command line is told of a store, what it says about it, and that no password comes out."""

import json
from pathlib import Path

import pytest
from sqlalchemy import make_url

from db_dedup.cli.commands import load_command
from db_dedup.sample import Sample
from tests.cli.conftest import TABLE_SETTINGS, fail, run, succeed
from tests.guest.readers import account, reader_of
from tests.scan.conftest import fill_database
from tests.servers import Database

SOURCE_SECRET, STORE_SECRET = "quelle-1", "lager-2"
COMMANDS = (
    "upgrade",
    "scan petitions",
    "status",
    "groups petitions",
    "init --dry-run",
    "uninstall --dry-run",
    "sql upgrade",
    "sql view petitions",
)
WITH_FLAG = (
    "upgrade", "uninstall", "scan", "verify", "pairs", "groups", "explain", "check", "status", "sql",
)  # fmt: skip
pytestmark = pytest.mark.usefixtures("folder")


def write(url: str, store_url: str | None) -> None:
    store = "" if store_url is None else f"store_url = {json.dumps(store_url)}\n"
    settings = f"[database]\nurl = {json.dumps(url)}\n{store}{TABLE_SETTINGS.format(settings='')}"
    Path("dedup.toml").write_text(settings, encoding="utf-8")


def tables_in(path: str) -> bool:
    return Path(path).exists() and b"dedup_fingerprint" in Path(path).read_bytes()


@pytest.fixture
def source(sqlite_database: Database, sample: Sample) -> str:
    fill_database(sqlite_database.engine, sample)
    return sqlite_database.url


def test_the_flag_comes_before_the_variable_and_that_before_the_file(source: str) -> None:
    write(source, "sqlite:///file.db")
    succeed("upgrade")
    assert tables_in("file.db")
    succeed("upgrade", DB_DEDUP_STORE_URL="sqlite:///variable.db")
    assert tables_in("variable.db")
    succeed("upgrade", "--store-url", "sqlite:///flag.db", DB_DEDUP_STORE_URL="sqlite:///nothing.db")
    assert tables_in("flag.db")
    assert not Path("nothing.db").exists()
    assert b"dedup_" not in Path(make_url(source).database or "").read_bytes()


def test_every_command_works_and_the_scan_says_what_is_lost(source: str) -> None:
    write(source, "sqlite:///store.db")
    succeed("upgrade")
    scan = succeed("scan", "petitions")
    (line,) = [line for line in scan.stderr.splitlines() if "in another database" in line]
    assert "no view" in line
    assert "triggers" in line
    assert "check" in line
    pairs = succeed("pairs", "petitions", "--format", "json").json()
    expanded = succeed("pairs", "petitions", "--expand", "--format", "json").json()
    assert len(expanded) >= len(pairs) > 0
    succeed("verify", "petitions")
    succeed("explain", "petitions", pairs[0]["key_a"], pairs[0]["key_b"])
    groups = succeed("groups", "petitions", "--format", "json").json()
    assert succeed("status", "--json").json()[0]["groups"] == len(groups) > 0
    record = json.dumps({"title": "关于停水", "content": "小区停水三天没有人管，请尽快处理"})
    assert isinstance(succeed("check", "petitions", stdin=record).json(), list)
    assert "has no view" in str(fail("sql", "view", "petitions"))
    assert "dedup_fingerprint" in succeed("uninstall", "--yes").stdout
    assert "not in this database" in str(fail("status"))


def test_without_a_file_the_stored_recipe_is_used(source: str) -> None:
    write(source, "sqlite:///store.db")
    succeed("upgrade")
    succeed("scan", "petitions")
    expected = succeed("pairs", "petitions", "--expand", "--format", "csv").stdout
    Path("dedup.toml").unlink()
    urls = {"DB_DEDUP_URL": source, "DB_DEDUP_STORE_URL": "sqlite:///store.db"}
    assert succeed("pairs", "petitions", "--expand", "--format", "csv", **urls).stdout == expected


@pytest.mark.parametrize("command", WITH_FLAG)
def test_a_command_that_takes_a_url_takes_that_of_a_store(command: str) -> None:
    assert "--store-url" in {option for p in load_command(command).params for option in p.opts}


def test_no_password_comes_out(
    postgresql_database: Database, mariadb_store: Database, sample: Sample
) -> None:
    """Neither in what commands print, nor in what they say when either database refuses."""
    fill_database(postgresql_database.engine, sample)
    with reader_of(postgresql_database, SOURCE_SECRET) as url, account(mariadb_store, STORE_SECRET) as store:
        write(url, store)
        said = [run(*words.split()) for words in COMMANDS]
        assert [r.exit_code for r in said[:4]] == [0] * 4
        for broken in (
            (url, store.replace("/dedup_test", "/no_such")),
            (url.replace("/dedup_test", "/no_such"), store),
            (url, store + "&wrong=1"),
            (url + "&wrong=1", store),
            (url, store.replace("mariadb+", "maria+")),
            (url, store.replace(STORE_SECRET, STORE_SECRET + "x")),
            (url, f"{store}&passwd={STORE_SECRET}&wrong=1"),
        ):
            write(*broken)
            result = run("scan", "petitions")
            assert result.error is not None, result
            said.append(result)
    for result in said:
        told = f"{result.stdout}{result.stderr}{result.error!r}{result.error}"
        assert SOURCE_SECRET not in told
        assert STORE_SECRET not in told
