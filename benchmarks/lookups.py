"""One-row look-ups and checks among a million fingerprints, beside a primary-key SELECT in the same run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, func, insert, select, text

from benchmarks.candidates import fingerprints, random_mask
from benchmarks.servers import DATABASES, each_database
from db_dedup import Deduplicator, Text
from db_dedup.app import Database
from db_dedup.cli.demo import petitions
from db_dedup.dialects.batches import batches
from db_dedup.flow.candidates.blocks import block_values
from db_dedup.records.fingerprints import RowFingerprint
from db_dedup.sample import Petition, generate_petitions
from db_dedup.store import watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.lookup import Asked, find_near

RADII = (3, 7, 11)
COLUMNS = ("title", "content")
_Asked = TypeVar("_Asked")


@dataclass(frozen=True)
class Sizes:
    """How much is stored, and how often it is asked.

    Attributes:
        fingerprints: in our table, those of the petitions included.
        petitions: rows of the user's table.
        planted: random fingerprints that have another one near.
        lookups: timed for each radius; a tenth as many come before, to warm up.
        checks: likewise, of petitions that are not in the table.
    """

    fingerprints: int = 1_000_000
    petitions: int = 20_000
    planted: int = 20_000
    lookups: int = 1_000
    checks: int = 300


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print p50 and p99 for each database."""
    stored, asked = split_sample(sizes)
    print(
        f"{sizes.fingerprints:,} fingerprints: {len(stored):,} of made-up petitions, the others random; "
        f"look-ups: {sizes.lookups:,} for each radius, half of them near a stored one\n"
        f"check: {len(asked)} petitions, half of them duplicates of a stored one, default preset, "
        "segmentation included\n"
        "primary key: SELECT of one fingerprint by id, after each of them on the same connection"
    )
    print(f"{'':<11} {'':<10} {'found':>7} {'p50 us':>9} {'p99 us':>9} {'x primary key':>14}")
    for name, url in each_database(databases):
        with closing(Database(url, create=True)) as database:
            start = perf_counter()
            dedup, store = fill(database, stored, sizes)
            filled = perf_counter() - start
            for radius in RADII:
                report(name, f"radius {radius}", time_lookups(database, store, radius, sizes.lookups))
            report(name, "check", time_checks(dedup, store, asked))
        print(f"{name}: filled in {filled:.0f} s")


def split_sample(sizes: Sizes) -> tuple[list[Petition], list[Petition]]:
    """Return (petitions to store, petitions to check); every second of these duplicates a stored one."""
    sample = generate_petitions(sizes.petitions + 4 * sizes.checks)
    later = {pair.id_b: pair.id_a for pair in sample.pairs}
    half = (sizes.checks + sizes.checks // 10) // 2
    repeats = [p for p in sample.petitions if p.id in later and later[p.id] not in later][:half]
    alone = [p for p in sample.petitions if p.id not in later][-half:]
    asked = [petition for both in zip(repeats, alone, strict=True) for petition in both]
    left_out = {petition.id for petition in asked}
    return [p for p in sample.petitions if p.id not in left_out][: sizes.petitions], asked


def fill(
    database: Database, stored: Sequence[Petition], sizes: Sizes
) -> tuple[Deduplicator, FingerprintStore]:
    """Scan the petitions, then put random fingerprints beside theirs."""
    names = petitions.columns.keys()
    with database.dialect.write_transaction(database.engine) as connection:
        petitions.create(connection)
        rows = [{name: getattr(petition, name) for name in names} for petition in stored]
        connection.execute(insert(petitions), rows)
    dedup = Deduplicator(database, "petitions", dict.fromkeys(COLUMNS, Text()), order="created_at")
    dedup.upgrade()
    dedup.scan()
    with database.engine.connect() as connection:
        table = watched_tables.find_table(connection, database.tables, "petitions")
    assert table is not None
    assert table.recipe is not None
    store = FingerprintStore(database.dialect, database.tables, table.id, table.recipe)
    for batch in batches(random_rows(sizes.fingerprints - len(stored), sizes.planted), 50_000):
        with database.dialect.write_transaction(database.engine) as connection:
            store.insert_rows(connection, batch)
    database.dialect.refresh_statistics(database.engine, database.tables.fingerprint)
    vacuum(database)
    return dedup, store


def random_rows(count: int, planted: int) -> Iterator[RowFingerprint]:
    """Fingerprints whose row keys no petition has."""
    rng = np.random.default_rng(1)
    digests = rng.bytes(16 * count)
    for i, value in enumerate(fingerprints(rng, count, planted).tolist()):
        yield RowFingerprint(str(10_000_000 + i), None, value, digests[16 * i : 16 * i + 16])


def vacuum(database: Database) -> None:
    """Vacuum, as autovacuum does within a minute: before it, PostgreSQL also reads the table of an index."""
    if database.engine.dialect.name != "postgresql":
        return
    visible = text("SELECT relallvisible >= relpages FROM pg_class WHERE oid = 'dedup.fingerprint'::regclass")
    with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        for _ in range(60):  # the latest commits may not have reached the disk yet
            connection.execute(text("VACUUM (INDEX_CLEANUP ON) dedup.fingerprint"))
            if connection.execute(visible).scalar_one():
                return
            sleep(0.5)
    raise RuntimeError("another session holds up VACUUM")


def time_lookups(database: Database, store: FingerprintStore, radius: int, count: int) -> "Times":
    """Times of `find_near`, the choice of block values included."""
    with database.engine.connect() as connection:
        asked = fingerprints_to_ask(connection, store, radius, count + count // 10)

        def look_up(fingerprint: int) -> bool:
            asked = [Asked(fingerprint, block_values(fingerprint, radius))]
            return bool(find_near(connection, store, asked, radius).ids.size)

        return time_beside_primary_key(connection, store, look_up, asked)


def fingerprints_to_ask(
    connection: Connection, store: FingerprintStore, radius: int, count: int
) -> list[int]:
    """Return alternately a fingerprint near a stored one and a random one."""
    rng = np.random.default_rng(radius)
    table = store.tables.fingerprint
    query = select(table.c.fingerprint).where(store.mine).order_by(table.c.digest).limit(count)
    near = [stored ^ int(random_mask(rng, radius)) for stored in connection.execute(query).scalars()]
    alone = rng.integers(0, 2**64, count, dtype=np.uint64).tolist()
    return [fingerprint for both in zip(near, alone, strict=True) for fingerprint in both][:count]


def time_checks(dedup: Deduplicator, store: FingerprintStore, asked: Sequence[Petition]) -> "Times":
    """Times of `Deduplicator.check`, on the connection that it is handed."""
    with dedup.database.engine.connect() as connection:
        records = [{name: getattr(petition, name) for name in COLUMNS} for petition in asked]
        return time_beside_primary_key(
            connection, store, lambda record: bool(dedup.check(record, connection)), records
        )


@dataclass(frozen=True)
class Times:
    """Microseconds of each call and of the primary-key SELECT after it; how many calls found something."""

    found: int
    microseconds: NDArray[np.float64]
    primary_key: NDArray[np.float64]


def time_beside_primary_key(
    connection: Connection, store: FingerprintStore, call: Callable[[_Asked], bool], asked: Sequence[_Asked]
) -> Times:
    """Call with each of `asked` in turn; the first eleventh of them warms up."""
    table = store.tables.fingerprint
    last = connection.execute(select(func.max(table.c.id))).scalar_one()
    ids = np.random.default_rng(2).integers(1, last + 1, len(asked)).tolist()
    by_id = select(table.c.fingerprint).where(table.c.id == bindparam("id"))
    found, marks = [], []
    for argument, row_id in zip(asked, ids, strict=True):
        start = perf_counter()
        found.append(call(argument))
        middle = perf_counter()
        connection.execute(by_id, {"id": row_id}).all()
        marks.append((middle - start, perf_counter() - middle))
    warm = len(asked) // 11
    times = np.array(marks[warm:]) * 1e6
    return Times(sum(found[warm:]), times[:, 0], times[:, 1])


def report(name: str, what: str, times: Times) -> None:
    """One line of the table."""
    p50, p99 = np.percentile(times.microseconds, [50, 99])
    ratio = p50 / np.median(times.primary_key)
    found = f"{times.found}/{times.microseconds.size}"
    print(f"{name:<11} {what:<10} {found:>7} {p50:>9,.0f} {p99:>9,.0f} {ratio:>14.1f}")
