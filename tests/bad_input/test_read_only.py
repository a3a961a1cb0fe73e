"""A database that takes no writes: what was found before is still told, all else is one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import create_engine, make_url, text

from db_dedup.cli.demo import fill
from db_dedup.errors import DatabaseError
from tests.bad_input.conftest import stored_rows
from tests.cli.conftest import fail, run, succeed, write_settings
from tests.servers import Database

READERS = (
    ("groups", "petitions", "--format", "json"),
    ("pairs", "petitions", "--format", "json"),
    ("pairs", "petitions", "--expand", "--format", "json"),
    ("check", "petitions"),
    ("status", "--json"),
    ("sql", "view", "petitions"),
)
WRITERS = (("upgrade",), ("scan", "petitions"), ("uninstall", "--yes"))
PASSWORD = "s3cret"  # noqa: S105 - of a user of this test's own


@contextmanager
def read_only(database: Database, kind: str) -> Iterator[str]:
    """The URL of the same database for one who cannot write there."""
    url = make_url(database.url)
    if database.name == "sqlite":
        yield f"sqlite:///file:{url.database}?uri=true&{kind}"
        return
    user = f"reader_{url.database}"[:30]
    on, off = _statements(database, user)
    administrator = create_engine(database.url, isolation_level="AUTOCOMMIT")
    try:
        with administrator.connect() as connection:
            for statement in on:
                connection.execute(text(statement))
            yield url.set(username=user, password=PASSWORD).render_as_string(hide_password=False)
            for statement in off:
                connection.execute(text(statement))
    finally:
        administrator.dispose()


def _statements(database: Database, user: str) -> tuple[list[str], list[str]]:
    if database.name == "postgresql":
        return [
            f"CREATE ROLE {user} LOGIN SUPERUSER PASSWORD '{PASSWORD}'",
            f"ALTER ROLE {user} SET default_transaction_read_only = on",
        ], [f"DROP ROLE {user}"]
    name = make_url(database.url).database
    return [
        f"CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}'",
        f"GRANT ALL ON {name}.* TO {user}@'%'",
        "SET GLOBAL read_only = 1",
    ], ["SET GLOBAL read_only = 0", f"DROP USER {user}@'%'"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("sqlite", "mode=ro"), ("sqlite", "immutable=1"), ("postgresql", ""), ("mariadb", ""), ("mysql", "")],
)
def test_the_answer_can_be_read_and_not_be_changed(
    name: str, kind: str, request: pytest.FixtureRequest
) -> None:
    database: Database = request.getfixturevalue(f"{name}_database")
    request.getfixturevalue("folder")
    _scan_petitions(database, request)
    record = json.dumps({"title": "关于电梯停运的投诉", "content": "电梯停运已经三天了，没有人来修。"})
    expected = [succeed(*command, stdin=record).stdout for command in READERS]
    before = stored_rows(database.engine)
    with read_only(database, kind) as url:
        for command, stdout in zip(READERS, expected, strict=True):
            told = succeed(*command, "--url", url, stdin=record).stdout
            assert told == stdout
        for command in WRITERS:
            if command == ("upgrade",) and name != "sqlite":
                continue  # there is nothing to do, and a server finds out before it writes
            error = run(*command, "--url", url).error
            assert isinstance(error, DatabaseError), command
            assert "read-only" in str(error)
            assert error.exit_code == 1
            assert PASSWORD not in str(error)
    assert stored_rows(database.engine) == before
    assert [succeed(*command, stdin=record).stdout for command in READERS] == expected
    succeed("scan", "petitions")


@pytest.mark.parametrize("name", ["sqlite", "postgresql", "mariadb", "mysql"])
def test_nothing_can_be_made_there(name: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(f"{name}_database")
    request.getfixturevalue("folder")
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE petitions (id INTEGER PRIMARY KEY, content VARCHAR(200))"))
    with read_only(database, "mode=ro") as url:
        error = fail("upgrade", "--url", url)
        assert "read-only" in str(error)
        assert error.exit_code == 1
        assert "db-dedup upgrade" in str(fail("status", "--url", url))
        proposed = succeed("init", "--url", url, "--dry-run").stdout
        assert "[tables.petitions]" in proposed
        assert PASSWORD not in proposed


def _scan_petitions(database: Database, request: pytest.FixtureRequest) -> None:
    with database.engine.begin() as connection:
        fill(connection, request.getfixturevalue("sample"))
    write_settings(database)
    succeed("upgrade")
    succeed("scan", "petitions")
