"""A server that takes no writes for a while, as one that was the primary until another took over."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from db_dedup import Deduplicator
from db_dedup.dialects import dialect_for, open_engine
from db_dedup.errors import DedupError, ReadOnlyDatabaseError
from db_dedup.jobs.worker.change_worker import ChangeWorker, LateTable
from db_dedup.jobs.worker.table_worker import TableWorker
from db_dedup.jobs.worker.worker_table import Batch
from tests.servers import Database
from tests.thorough import MYSQL
from tests.worker.conftest import count_waiting, is_right, write
from tests.worker.watched import Watched

PASSWORD = "s3cret"  # noqa: S105 - of an account of this test's own


@dataclass
class Account:
    """An account that a read-only server refuses.

    Attributes:
        url: with which it logs in.
    """

    database: Database
    name: str
    url: str

    def make(self) -> None:
        if self.database.name == "postgresql":
            self._run(f"CREATE ROLE {self.name} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
        else:
            self._run(f"CREATE USER {self.name}@'%' IDENTIFIED BY '{PASSWORD}'")
            self._run(f"GRANT ALL ON {make_url(self.url).database}.* TO {self.name}@'%'")

    def set_read_only(self, is_on: bool) -> None:
        """For sessions that begin later, in PostgreSQL; for all sessions, in the others."""
        if self.database.name == "postgresql":
            value = "on" if is_on else "off"
            self._run(f"ALTER ROLE {self.name} SET default_transaction_read_only = {value}")
        else:
            self._run(f"SET GLOBAL read_only = {int(is_on)}")

    def drop(self) -> None:
        self.set_read_only(False)
        self._run(f"DROP USER {self.name}")

    def _run(self, statement: str) -> None:
        administrator = create_engine(self.database.url, isolation_level="AUTOCOMMIT")
        with administrator.connect() as connection:
            connection.execute(text(statement))
        administrator.dispose()


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found


@pytest.fixture
def account(database: Database) -> Iterator[Account]:
    url = make_url(database.url)
    name = f"mover_{url.database}"[:30]
    logged_in = url.set(username=name, password=PASSWORD).render_as_string(hide_password=False)
    account = Account(database, name, logged_in)
    with ExitStack() as stack:
        account.make()
        stack.callback(account.drop)
        yield account


@contextmanager
def opened(url: str, name: str) -> Iterator[TableWorker]:
    dedup = Deduplicator(url, table=name)
    with closing(dedup.database):
        yield dedup.worker()


@pytest.mark.parametrize("database", ["postgresql", "mariadb", MYSQL], indirect=True)
def test_the_worker_waits_until_it_can_write(database: Database, account: Account) -> None:
    watched = Watched.make(database.engine, 0)
    write(watched, range(6))
    account.set_read_only(True)
    stop = threading.Event()
    told: list[str] = []

    def note_fault(_: str, fault: DedupError | None) -> None:
        told.append("works" if fault is None else type(fault).__name__)
        if fault is not None:
            assert count_waiting(watched) == 6
            account.set_read_only(False)

    def note_batch(_: Batch) -> None:
        stop.set()

    tables = [LateTable("letters_0", partial(opened, account.url, "letters_0"))]
    with ExitStack() as stack:
        stack.callback(tables[0].forget)
        ChangeWorker(tables, 0.01, note_batch, note_fault).run(stop)
    assert told == ["ReadOnlyDatabaseError", "works"]
    assert count_waiting(watched) == 0
    assert is_right(watched)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_pool_replaces_a_session_that_began_read_only(database: Database, account: Account) -> None:
    engine = open_engine(account.url)
    insert = text("INSERT INTO letters VALUES (1)")
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE letters (id INTEGER)"))
    account.set_read_only(True)
    try:
        with engine.connect() as connection, pytest.raises(SQLAlchemyError) as caught:
            connection.execute(insert)
        fault = dialect_for(engine).translate_error(caught.value)
        assert type(fault) is ReadOnlyDatabaseError
        account.set_read_only(False)
        with engine.begin() as connection:
            connection.execute(insert)
    finally:
        engine.dispose()
