"""Writes the databases that a version of the program makes, as SQL that the tests can load.

`python -m tests.upgrades.make FOLDER` runs with the version that is checked out. These folders were made so:

- `recipe_1`: release 0.1.0 (revision 0001, recipe version 1), on SQLite 3.40, on PostgreSQL 15 by its
  `pg_dump`, on MariaDB 10.11, and on MySQL 9.7.

Each database has a table with a finished scan, triggers, two labels, three changes that wait, one that was
given up, and the rows of a scan by other settings that was killed. A second table was attached and never
scanned.

Before a change of RECIPE_VERSION, of the definitions' format or of the tables, make a folder of the version
before. A folder that exists never changes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryDirectory
from typing import Any, Final

import pymysql
from sqlalchemy import URL, NullPool, create_engine, make_url

from db_dedup import Deduplicator
from db_dedup.progress import NullProgress
from db_dedup.records import PairLabel
from db_dedup.store import changes, watched_tables
from tests.servers import Database, fresh_database, opened, start_mariadb, start_mysql, start_postgresql
from tests.servers.postgresql import INSTALLED
from tests.upgrades import office
from tests.upgrades.stored import BETWEEN

A_DAY: Final = "2025-03-03"
"""In place of the day on which a fixture is made, so that the killed scan's lease has ended by any clock."""


class Killed(NullProgress):
    """Ends the process when the matching begins."""

    def start(self, step: str, _total: int | None) -> None:
        if step != "fingerprints":
            os._exit(9)


def work(database: Database) -> None:
    """Do what the fixtures are to hold."""
    office.fill(database.engine)
    dedup = Deduplicator(database.engine, "petitions", **office.SETTINGS)
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    labels = [
        PairLabel(*pair, is_duplicate=said)
        for pair, said in ((office.REJECTED, False), (office.CONFIRMED, True))
    ]
    assert dedup.labels().give(labels).kept == 2
    worker = dedup.worker()
    while worker.step():
        pass
    assert office.REJECTED not in {(p.key_a, p.key_b) for p in dedup.pairs()}
    assert office.CONFIRMED in {(p.key_a, p.key_b) for p in dedup.pairs()}
    Deduplicator(database.engine, "notices", **office.NOTICE_SETTINGS).attach()
    _kill_a_scan(database.url)
    office.write(database.engine)
    tables = dedup.database.tables
    with database.engine.begin() as connection:
        stored = watched_tables.find_table(connection, tables, "petitions")
        assert stored is not None
        given_up = changes.Change(office.DEAD, "U")
        changes.park(connection, tables, stored.id, given_up, 3, "made up: it could not be read")


def _kill_a_scan(url: str) -> None:
    command = [sys.executable, "-m", __spec__.name, "--killed", url]
    assert subprocess.run(command, check=False).returncode == 9


def _scan_until_killed(url: str) -> None:
    Deduplicator(url, "petitions", progress=Killed(), **office.OTHER_SETTINGS).scan()


def dump_sqlite(url: URL) -> Iterator[str]:
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        yield from connection.connection.dbapi_connection.iterdump()  # type: ignore[union-attr]


def dump_postgresql(url: URL) -> Iterator[str]:
    program = max(INSTALLED.glob("*/bin/pg_dump"), key=lambda path: int(path.parent.parent.name))
    target = f"host={url.query['host']} user={url.username} dbname={url.database}"
    options = ["--no-owner", "--rows-per-insert=100"]
    done = subprocess.run([program, *options, target], check=True, capture_output=True, text=True)
    lines = (line for line in done.stdout.splitlines() if line and not line.startswith(("--", "\\")))
    yield "\n".join(lines)


def dump_mysql(url: URL) -> Iterator[str]:
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as opened_connection:
        connection: Any = opened_connection.connection.dbapi_connection
        for name in _column(connection, "SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'"):
            yield _rows(connection, f"SHOW CREATE TABLE `{name}`")[0][1]
            yield from _inserts(connection, name)
        views = _column(connection, "SHOW FULL TABLES WHERE Table_type = 'VIEW'")
        for name in views:
            yield _without_definer(_rows(connection, f"SHOW CREATE VIEW `{name}`")[0][1])
        for name in _column(connection, "SHOW TRIGGERS"):
            found = _rows(connection, f"SHOW CREATE TRIGGER `{name}`")[0]
            yield f"SET sql_mode = '{found[1]}'"
            yield _without_definer(found[2])


def _inserts(connection: Any, name: str) -> Iterator[str]:
    shown = _rows(connection, f"SHOW COLUMNS FROM `{name}`")
    columns = ", ".join(f"`{column[0]}`" for column in shown if "GENERATED" not in column[-1])
    rows = _rows(connection, f"SELECT {columns} FROM `{name}`")
    if rows:
        lines = ("(" + ", ".join(map(_literal, row)) + ")" for row in rows)
        yield f"INSERT INTO `{name}` ({columns}) VALUES\n" + ",\n".join(lines)


def _literal(value: Any) -> str:
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(pymysql.converters.escape_item(value, "utf8mb4"))


def _rows(connection: Any, query: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def _column(connection: Any, query: str) -> list[str]:
    return [row[0] for row in _rows(connection, query)]


def _without_definer(statement: str) -> str:
    return re.sub(r" DEFINER=`[^`]*`@`[^`]*`", "", statement)


DUMPS: Final = {
    "sqlite": dump_sqlite,
    "postgresql": dump_postgresql,
    "mariadb": dump_mysql,
    "mysql": dump_mysql,
}


def main(folder: Path) -> None:
    """Write a file for each dialect."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place:
        url = URL.create("sqlite", database=f"{place}/office.db")
        with opened("sqlite", url) as database:
            _make(database, folder)
    for start in (start_postgresql, start_mariadb, start_mysql):
        server = start()
        with fresh_database(server) as database:
            _make(database, folder)
        server.stop()


def _make(database: Database, folder: Path) -> None:
    work(database)
    name = database.engine.dialect.name
    text = BETWEEN.join(DUMPS[name](make_url(database.url)))
    for machine, anywhere in ((f"{datetime.now(UTC):%Y-%m-%d}", A_DAY), (f"'{gethostname()}:", "'office:")):
        text = text.replace(machine, anywhere)
    (folder / f"{name}.sql").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--killed":
        _scan_until_killed(sys.argv[2])
    else:
        main(Path(sys.argv[1]))
