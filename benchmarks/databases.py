"""The same petitions scanned in SQLite, PostgreSQL and MariaDB: same fingerprints, pairs and groups."""

from pathlib import Path
from time import perf_counter

from sqlalchemy import Engine, create_engine, select

from benchmarks.datasets import PETITIONS, load, read_petitions
from benchmarks.servers import each_database
from db_dedup import Deduplicator, Text
from db_dedup.store.answers import read_groups, read_members

Answer = tuple[frozenset[object], frozenset[object], frozenset[object]]


def run(data: Path | None) -> None:
    """Scan in each database; print what each found and whether all agree."""
    assert data is not None
    rows = read_petitions(data)
    for preset in ("strict", "balanced"):
        answers = {}
        for name, url in each_database():
            engine = create_engine(url)
            load(engine, PETITIONS, rows)
            start = perf_counter()
            answers[name] = scan(engine, preset)
            seconds = perf_counter() - start
            engine.dispose()
            fingerprints, pairs, members = answers[name]
            print(
                f"{preset:<9} {name:<11} {len(fingerprints):,} fingerprints, {len(pairs):,} pairs + copies, "
                f"{len(members):,} rows in groups, {seconds:.1f} s"
            )
        same = len(set(answers.values())) == 1
        print(f"{preset:<9} these databases give {'the same' if same else 'DIFFERENT'} answers")


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
