"""A statement of the host writes the whole table anew while we are about to read it.

In PostgreSQL a snapshot from before the end of such a statement finds no row in the table.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, make_url, text

from db_dedup import Deduplicator, Text
from db_dedup.config import WatchedTable
from db_dedup.dialects import dialect_for, open_engine
from db_dedup.sample import Sample
from db_dedup.store.inspection import inspect_table
from db_dedup.store.source import Source
from tests.guest.test_held_rows import WAITING
from tests.scan.conftest import answer, fill_database, watch
from tests.servers import Database

Read = Callable[[Source, Engine], Iterator[Sized]]

WRITTEN_ANEW = pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE petitions ADD COLUMN number uuid DEFAULT gen_random_uuid()",),
        (
            "CREATE TABLE other AS SELECT * FROM petitions",
            "TRUNCATE petitions",
            "INSERT INTO petitions SELECT * FROM other",
        ),
    ],
    ids=["alter", "truncate"],
)


def write_anew(connection: Connection, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.execute(text(statement))


def commit_once_waited_for(connection: Connection, waiter: Connection) -> None:
    while not waiter.scalar(WAITING):
        waiter.rollback()
        sleep(0.01)
    connection.commit()


@WRITTEN_ANEW
@pytest.mark.parametrize(
    ("finds_nothing_new", "reading"),
    [(lambda dedup: dedup.scan().rows > 0, "pages"), (lambda dedup: dedup.verify().is_right, "snapshot")],
    ids=["scan", "verify"],
)
def test_a_command_reads_all_rows(
    postgresql_database: Database,
    sample: Sample,
    statements: tuple[str, ...],
    finds_nothing_new: Callable[[Deduplicator], bool],
    reading: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, read = postgresql_database.engine, getattr(Source, reading)
    fill_database(engine, sample)
    dedup = watch(engine)
    dedup.scan()
    stored = answer(dedup)

    with engine.connect() as host, engine.connect() as waiter, ThreadPoolExecutor(1) as threads:

        def read_beside(self: Source, *given: Any) -> Any:
            monkeypatch.undo()
            write_anew(host, statements)
            threads.submit(commit_once_waited_for, host, waiter)
            return read(self, *given)

        monkeypatch.setattr(Source, reading, read_beside)
        assert finds_nothing_new(dedup)
    assert answer(dedup) == stored


@WRITTEN_ANEW
@pytest.mark.parametrize("name", ["petitions", "newest"])
@pytest.mark.parametrize("of", [Source.pages, Source.row_keys], ids=["rows", "keys"])
def test_a_snapshot_of_a_table_or_view_has_all_rows(
    postgresql_database: Database, sample: Sample, statements: tuple[str, ...], name: str, of: Read
) -> None:
    engine = postgresql_database.engine
    fill_database(engine, sample)
    with engine.begin() as connection:
        connection.execute(text("CREATE VIEW newest AS SELECT * FROM petitions"))
    source = source_of(engine, name)
    with engine.connect() as host, engine.connect() as waiter, ThreadPoolExecutor(1) as threads:
        write_anew(host, statements)
        threads.submit(commit_once_waited_for, host, waiter)
        assert sum(map(len, of(source, engine))) == len(sample.petitions)


def test_a_table_of_which_some_columns_may_be_read(postgresql_database: Database, sample: Sample) -> None:
    """LOCK TABLE asks for more rights than a query needs."""
    engine, name = postgresql_database.engine, f"reader_{secrets.token_hex(4)}"
    fill_database(engine, sample)
    source = source_of(engine, "petitions")
    with engine.begin() as connection:
        connection.execute(text(f"CREATE ROLE {name}"))
        connection.execute(text(f"GRANT SELECT (id, title) ON petitions TO {name}"))
    reader = open_engine(
        make_url(postgresql_database.url)
        .update_query_dict({"options": f"-c role={name}"})
        .render_as_string(hide_password=False)
    )
    assert sum(map(len, source.pages(reader))) == len(sample.petitions)
    reader.dispose()
    with engine.begin() as connection:
        connection.execute(text(f"DROP OWNED BY {name}"))
        connection.execute(text(f"DROP ROLE {name}"))


def source_of(engine: Engine, name: str) -> Source:
    with engine.connect() as connection:
        table = inspect_table(connection, name)
    watched = WatchedTable(name=name, columns={"title": Text()}, key=("id",))
    return Source(dialect_for(engine), table, watched)
