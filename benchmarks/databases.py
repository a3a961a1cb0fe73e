"""The same petitions scanned in SQLite, PostgreSQL and MariaDB: same fingerprints, pairs and groups."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from sqlalchemy import URL, Engine, create_engine, select

from benchmarks.datasets import PETITIONS, load, read_petitions
from db_dedup import Deduplicator, Text
from db_dedup.store.answers import read_groups, read_members
from tests.servers import fresh_database, start_mariadb, start_postgresql

Answer = tuple[frozenset[object], frozenset[object], frozenset[object]]


def run(data: Path | None) -> None:
    """Scan in each database; print what each found and whether all agree."""
    assert data is not None
    rows = read_petitions(data)
    for preset in ("strict", "balanced"):
        answers = {}
        for name, context in (("SQLite", sqlite), ("PostgreSQL", postgresql), ("MariaDB", mariadb)):
            with context() as engine:
                load(engine, PETITIONS, rows)
                start = perf_counter()
                answers[name] = scan(engine, preset)
                seconds = perf_counter() - start
            fingerprints, pairs, members = answers[name]
            print(
                f"{preset:<9} {name:<11} {len(fingerprints):,} fingerprints, {len(pairs):,} pairs + copies, "
                f"{len(members):,} rows in groups, {seconds:.1f} s"
            )
        same = len(set(answers.values())) == 1
        print(f"{preset:<9} the three databases give {'the same' if same else 'DIFFERENT'} answers")


def scan(engine: Engine, preset: str) -> Answer:
    """What one database answers: fingerprints, pairs with their measures, members with their groups."""
    dedup = Deduplicator(
        engine, "petitions", {"title": Text(), "content": Text()}, preset=preset, order="created_at"
    )
    dedup.upgrade()
    dedup.scan()
    table = dedup.database.tables.fingerprint
    with engine.connect() as connection:
        fingerprints = frozenset(map(tuple, connection.execute(select(table.c.row_key, table.c.fingerprint))))
        tables = dedup.database.tables
        members = frozenset(
            (group, key)
            for group in read_groups(connection, tables, "petitions")
            for key in read_members(connection, tables, "petitions", group.group_id)
        )
    return fingerprints, frozenset(dedup.pairs()), members


@contextmanager
def sqlite() -> Iterator[Engine]:
    """An empty file."""
    with tempfile.TemporaryDirectory() as folder:
        engine = create_engine(URL.create("sqlite", database=f"{folder}/petitions.db"))
        yield engine
        engine.dispose()


@contextmanager
def postgresql() -> Iterator[Engine]:
    """A private server."""
    server = start_postgresql()
    try:
        with fresh_database(server) as database:
            yield database.engine
    finally:
        server.stop()


@contextmanager
def mariadb() -> Iterator[Engine]:
    """A private server."""
    server = start_mariadb()
    try:
        with fresh_database(server) as database:
            yield database.engine
    finally:
        server.stop()
