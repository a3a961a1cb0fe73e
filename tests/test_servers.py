"""The databases that the tests are given, and the servers behind them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, inspect, make_url, text
from sqlalchemy.exc import OperationalError

from tests.servers import (
    Database,
    Server,
    ServerUnavailableError,
    fresh_database,
    start_mariadb,
    start_postgresql,
)
from tests.servers import mariadb as mariadb_module
from tests.servers import postgresql as postgresql_module
from tests.servers.database import HAS_CHINESE_ORDER, with_driver
from tests.servers.process import find_program, telling_lines

ROOT = Path(__file__).parent.parent
SERVER_IN_ANOTHER_PROCESS = """
import time
from tests.servers import start_postgresql
print(start_postgresql().url.render_as_string(hide_password=False), flush=True)
time.sleep(60)
"""
RUN_WITHOUT = """
import sys, pytest
from pathlib import Path
from tests.servers import mariadb, mysql
mariadb.FOLDERS.clear()
mysql.UNPACKED = Path("nowhere")
kind = f"keeps and {sys.argv[1]}"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", kind, "tests/test_servers.py"]))
"""
ADVICE = {
    "mariadb": "no mariadbd found: apt-get install mariadb-server",
    "mysql": "no mysqld found: .ci/install-mysql",
}


@pytest.fixture(params=["postgresql", "mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(f"{request.param}_server")
    return found


def test_a_database_is_empty_and_keeps_chinese_text(database: Database) -> None:
    assert inspect(database.engine).get_table_names() == []
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE petition (content VARCHAR(20))"))
        connection.execute(text("INSERT INTO petition VALUES ('电梯停运😀')"))
        assert connection.scalar(text("SELECT content FROM petition")) == "电梯停运😀"


def test_a_url_is_enough_to_reach_the_database(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE petition (content VARCHAR(20))"))
    again = create_engine(database.url)
    assert inspect(again).get_table_names() == ["petition"]
    again.dispose()


def test_a_database_goes_even_while_somebody_uses_it(server: Server) -> None:
    with fresh_database(server) as database:
        guest = create_engine(database.url)
        connection = guest.connect()
        connection.execute(text("CREATE TABLE petition (content VARCHAR(20))"))
        connection.execute(text("SELECT * FROM petition"))
    connection.invalidate()
    connection.close()
    with pytest.raises(OperationalError):
        guest.connect()
    guest.dispose()


def test_two_databases_know_nothing_of_each_other(server: Server) -> None:
    with fresh_database(server) as one, fresh_database(server) as other:
        with one.engine.begin() as connection:
            connection.execute(text("CREATE TABLE petition (content VARCHAR(20))"))
        assert inspect(other.engine).get_table_names() == []


def test_postgresql_sorts_by_a_language_where_it_can_so_that_nothing_rests_on_code_points(
    postgresql_database: Database,
) -> None:
    with postgresql_database.engine.connect() as connection:
        assert connection.scalar(text("SELECT 'a' < 'B'")) is connection.scalar(HAS_CHINESE_ORDER)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p@h/d", "postgresql+psycopg://u:p@h/d"),
        ("mysql://u:p@h/d", "mysql+pymysql://u:p@h/d?charset=utf8mb4"),
        ("mariadb+pymysql://h/?charset=utf8mb4", "mariadb+pymysql://h/?charset=utf8mb4"),
    ],
)
def test_a_server_elsewhere_is_reached_through_the_drivers_of_the_extras(url: str, expected: str) -> None:
    assert with_driver(make_url(url)).render_as_string(hide_password=False) == expected


def test_postgresql_comes_from_the_wheel_where_none_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgresql_module, "INSTALLED", tmp_path)
    server = start_postgresql()
    folder = Path(str(server.url.query["host"]))
    try:
        with fresh_database(server) as database, database.engine.connect() as connection:
            assert connection.scalar(text("SELECT 1")) == 1
    finally:
        server.stop()
    assert not folder.exists()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_server_ends_with_the_process_that_started_it(ending: signal.Signals) -> None:
    command = [sys.executable, "-c", SERVER_IN_ANOTHER_PROCESS]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as owner:
        assert owner.stdout is not None
        url = make_url(owner.stdout.readline().strip())
        engine = create_engine(url)
        assert _answers(engine)
        engine.dispose()
        owner.send_signal(ending)
    deadline = time.monotonic() + 20
    while _answers(engine) and time.monotonic() < deadline:
        engine.dispose()
    assert not _answers(engine)
    engine.dispose()
    folder = Path(str(url.query["host"]))
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not folder.exists()


@pytest.mark.parametrize("kind", ADVICE)
@pytest.mark.parametrize(("ci", "exit_code"), [("", 0), ("true", 1)])
def test_what_is_not_tested_is_said_and_fails_in_ci(
    tmp_path: Path, ci: str, exit_code: int, kind: str
) -> None:
    environment = os.environ | {"PATH": str(tmp_path), "CI": ci}
    environment.pop(f"DB_DEDUP_TEST_{kind.upper()}_URL", None)
    environment.pop("DB_DEDUP_TEST_TURN", None)  # it would leave out the test that is run
    run = subprocess.run(
        [sys.executable, "-c", RUN_WITHOUT, kind],
        check=False, cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    line = f"NOT TESTED: {kind} ({ADVICE[kind]})"
    assert run.returncode == exit_code, run.stdout + run.stderr
    assert line in (run.stdout.splitlines() if not ci else run.stdout)


def _answers(engine: Engine) -> bool:
    try:
        engine.connect().close()
    except OperationalError:
        return False
    return True


def test_what_a_program_said_of_its_error_is_shown_and_not_its_advice() -> None:
    said = "Installing\n[ERROR] InnoDB: no room\n\nPlease check all of the above\n\nbefore\nmailing us\n"
    assert telling_lines(said) == ["[ERROR] InnoDB: no room"]
    assert telling_lines("one\ntwo\nthree\nfour") == ["two", "three", "four"]
    assert telling_lines("") == []


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that the server's own user can reach, too."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize(("failures", "is_up"), [(1, True), (2, False)])
def test_mariadb_is_tried_twice_in_a_fresh_folder(
    failures: int, is_up: bool, public_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, installer = public_folder / "tries", public_folder / "mariadb-install-db"
    found = find_program(installer.name, mariadb_module.FOLDERS)
    tries.touch()
    tries.chmod(0o666)
    installer.write_text(
        f'#!/bin/sh\necho "$@" >> {tries}\n'
        f'[ "$(wc -l < {tries})" -gt {failures} ] && exec {found} "$@"\necho "[ERROR] out of luck"; exit 1\n'
    )
    installer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{public_folder}:{os.environ['PATH']}")
    if is_up:
        start_mariadb().stop()
    else:
        with pytest.raises(ServerUnavailableError, match=r"mariadb-install-db failed: \[ERROR\] out of luck"):
            start_mariadb()
    folders = {line.split("--datadir=")[1].split()[0] for line in tries.read_text().splitlines()}
    assert len(folders) == 2
