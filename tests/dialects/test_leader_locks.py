"""The lock of the instance that leads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from db_dedup.app import Database as Opened
from db_dedup.dialects.leadership import SessionLock
from tests.servers import Database
from tests.sessions import end_sessions
from tests.thorough import MYSQL

ACQUIRE = """
import os, sys
from db_dedup.dialects.leadership import FileLock
from db_dedup.errors import DatabaseError
if os.getuid() == 0:
    os.setuid(65534)  # after the imports: another account may not read the folders of the interpreter
try:
    FileLock(sys.argv[1]).acquire()
except DatabaseError as error:
    print(error)
"""


def test_one_of_two_has_it(database: Database) -> None:
    opened = Opened(database.engine)
    first, second = (opened.dialect.leader_lock(opened.engine, opened.namespace) for _ in range(2))
    assert first.acquire()
    assert not second.acquire()
    assert (first.is_held(), second.is_held()) == (True, False)
    first.release()
    assert not first.is_held()
    assert second.acquire()
    second.release()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no accounts that a process could take")
def test_an_account_that_cannot_write_the_file_is_told_so() -> None:
    """SQLite takes no lock on a file that it can only read, and raises no error."""
    with TemporaryDirectory() as folder:  # pytest's own folders are closed to other accounts
        Path(folder).chmod(0o755)
        file = Path(folder, "leader")
        file.touch(0o444)
        command = [sys.executable, "-c", ACQUIRE, str(file)]
        assert f"cannot lock {file}: this account" in subprocess.check_output(command, text=True)


@pytest.mark.parametrize("database", ["postgresql", "mariadb", MYSQL], indirect=True)
def test_it_is_free_before_the_server_knows_that_the_session_has_ended(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Opened(database.engine)
    first, second = (opened.dialect.leader_lock(opened.engine, opened.namespace) for _ in range(2))
    assert first.acquire()
    with monkeypatch.context() as patched:
        patched.setattr(SessionLock, "_end_session", lambda _: None)
        first.release()
    assert second.acquire()
    second.release()
    first.release()


def test_other_tables_of_ours_have_another(database: Database) -> None:
    for schema, prefix in (("elsewhere", "dedup_"), ("dedup", "elsewhere_")):
        opened = [Opened(database.engine), Opened(database.engine, schema, prefix)]
        locks = [one.dialect.leader_lock(one.engine, one.namespace) for one in opened]
        is_other = opened[0].namespace != opened[1].namespace
        assert [lock.acquire() for lock in locks] == [True, is_other]
        for lock in locks:
            lock.release()


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_it_is_lost_with_its_session(database: Database) -> None:
    opened = Opened(database.engine)
    lock = opened.dialect.leader_lock(opened.engine, opened.namespace)
    assert lock.acquire()
    end_sessions(database)
    assert not lock.is_held()
    lock.release()
