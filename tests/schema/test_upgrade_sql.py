"""What `upgrade --sql` prints, run by the means of each database, gives what `upgrade` makes."""

import sqlite3
from collections.abc import Callable

import psycopg
import pymysql
import pytest
from pymysql.constants import CLIENT
from sqlalchemy import make_url

from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.records.names import Namespace
from db_dedup.schema.migrate import uninstall, upgrade, upgrade_sql
from tests.schema.conftest import is_current, namespace_in
from tests.schema.description import describe, everything
from tests.servers import Database


def run_on_sqlite(url: str, script: str) -> None:
    connection = sqlite3.connect(make_url(url).database or "")
    connection.executescript(script)
    connection.close()


def run_on_postgresql(url: str, script: str) -> None:
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(script.encode())


def run_on_mysql(url: str, script: str) -> None:
    parts = make_url(url)
    given = {
        "host": parts.host,
        "port": parts.port,
        "user": parts.username,
        "password": parts.password,
        "database": parts.database,
        "unix_socket": parts.query.get("unix_socket"),
    }
    connection = pymysql.connect(
        **{name: value for name, value in given.items() if value},
        charset="utf8mb4",
        client_flag=CLIENT.MULTI_STATEMENTS,
        autocommit=True,
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(script)
        while cursor.nextset():
            pass


RUN: dict[str, Callable[[str, str], None]] = {
    "sqlite": run_on_sqlite,
    "postgresql": run_on_postgresql,
    "mariadb": run_on_mysql,
}


@pytest.mark.parametrize("name", ["dedup", '信访 "50%": `a`'])
def test_run_by_hand_it_makes_the_same(database: Database, name: str) -> None:
    namespace = namespace_in(database, name)
    with database.engine.begin() as connection:
        before = everything(connection)
        upgrade(connection, namespace)
        expected, made = describe(connection, namespace), everything(connection)
        uninstall(connection, namespace)
    RUN[database.name](database.url, upgrade_sql(database.url, namespace))
    with database.engine.begin() as connection:
        assert is_current(connection, namespace)
        assert describe(connection, namespace) == expected
        assert everything(connection) == made
        uninstall(connection, namespace)
        assert everything(connection) == before


@pytest.mark.parametrize(
    ("database", "namespace"),
    [
        ("postgresql", Namespace("dedup", "")),
        ("postgresql+psycopg://someone:secret@nowhere/db", Namespace("dedup", "")),
        ("mysql", Namespace(None, "dedup_")),
        ("mysql+pymysql://nowhere/db", Namespace(None, "dedup_")),
        ("mariadb+pymysql://nowhere/db", Namespace(None, "dedup_")),
        ("sqlite:///nowhere/db", Namespace(None, "dedup_")),
    ],
)
def test_it_needs_no_connection(database: str, namespace: Namespace) -> None:
    sql = upgrade_sql(database, namespace)
    assert "duplicate_members" in sql
    assert "secret" not in sql


@pytest.mark.parametrize(
    ("database", "collation"), [("mysql://h/d", "utf8mb4_0900_bin"), ("mariadb://h/d", "utf8mb4_nopad_bin")]
)
def test_the_url_names_the_collation(database: str, collation: str) -> None:
    assert f"COLLATE {collation}" in upgrade_sql(database, Namespace(None, "dedup_"))


def test_an_unknown_database() -> None:
    with pytest.raises(UnknownNameError, match="unknown database 'oracle'"):
        upgrade_sql("oracle", Namespace("dedup", ""))
    with pytest.raises(ConfigError, match="no database URL"):
        upgrade_sql("://", Namespace("dedup", ""))
