"""What each index of our tables costs in a bulk insert: bytes and microseconds a row."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from sqlalchemy import Index, MetaData, Table, UniqueConstraint, text

from benchmarks.servers import DATABASES, each_database
from db_dedup.app import Database
from db_dedup.flow.candidates.segments import Entries, count_pieces, pack
from db_dedup.records.names import Namespace
from db_dedup.schema.tables import our_tables
from db_dedup.schema.types import to_signed

ROWS = 100_000
RUNS = 5
ALL, NONE = "in all", "itself"

# All bytes that our tables take, with their indexes; they are the only ones that are filled.
_BYTES = {
    "sqlite": "SELECT (page_count - freelist_count) * page_size "
    "FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
    "postgresql": "SELECT pg_total_relation_size('{table}')",
    "mariadb": "SELECT sum(stat_value) * @@innodb_page_size FROM mysql.innodb_index_stats "
    "WHERE database_name = DATABASE() AND table_name = '{table}' AND stat_name = 'size'",
}


@dataclass(frozen=True)
class Cost:
    """Of one bulk insert, or what an index adds to it."""

    bytes: int
    seconds: float


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    rows: int = ROWS,
    runs: int = RUNS,
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print bytes a row and microseconds a row, without indexes, for each of them, and with all."""
    print(
        f"bulk insert of {rows:,} rows, one in ten a copy, one in five in a group: the table itself with\n"
        f"no index but its primary key, and what each one adds to that; medians of {runs} runs in turn"
    )
    print("a row of sketch_segment is one entry here: some 256 of them are in a row of the table")
    print(f"{'':<11} {'table':<14} {'':<20} {'bytes a row':>11} {'us a row':>9} {'% of the time':>14}")
    for name, url in each_database(databases):
        with closing(Database(url, create=True)) as database:
            for table, columns, make_rows in contents(rows):
                costs = measure(database, table, columns, make_rows, runs)
                for what, cost in costs.items():
                    print(
                        f"{name:<11} {short(table.name):<14} {short(what):<20} {cost.bytes / rows:>11.0f} "
                        f"{cost.seconds / rows * 1e6:>9.1f} {cost.seconds / costs[ALL].seconds * 100:>14.0f}"
                    )


def contents(count: int) -> Iterator[tuple[Table, Sequence[str], Callable[[], Iterator[Sequence[Any]]]]]:
    """Each table of ours that grows with the rows, the columns that are written, and its rows."""
    tables = our_tables(Namespace(None, "dedup_"))
    answer = ("copy_of", "group_id", "group_size")
    yield (
        tables.fingerprint,
        ("table_id", "recipe", "row_key", "order_value", "fingerprint", "digest", *answer, "sketch_size"),
        lambda: fingerprint_rows(count),
    )
    yield (
        tables.pair,
        ("id_a", "id_b", "distance", "similarity", "found_at"),
        lambda: pair_rows(count),
    )
    yield tables.band, ("value", "fingerprint_id"), lambda: band_entries(count)
    yield (
        tables.sketch_segment,
        ("table_id", "recipe", "generation", "piece", "part", "packed"),
        lambda: packed_entries(count),
    )
    yield tables.change, ("table_id", "row_key", "operation", "queued_at"), lambda: change_rows(count)


def measure(
    database: Database,
    table: Table,
    columns: Sequence[str],
    make_rows: Callable[[], Iterator[Sequence[Any]]],
    runs: int,
) -> dict[str, Cost]:
    """What the insert costs without indexes, what each of them alone adds, and what all is together."""
    names = names_of(table)
    every = set(names)
    left_out = {name: every - {name} for name in names} | {ALL: set[str]()}
    if names:
        left_out = {NONE: every} | left_out
    costs: dict[str, list[Cost]] = {what: [] for what in left_out}
    for _ in range(runs):
        for what, some in left_out.items():
            costs[what].append(insert_once(database, without(table, some), columns, make_rows()))
    return {what: added(some, costs[NONE]) if what in every else middle(some) for what, some in costs.items()}


def added(more: Sequence[Cost], bare: Sequence[Cost]) -> Cost:
    """What the inserts cost more, each than the bare one of the same round."""
    return middle([Cost(a.bytes - b.bytes, a.seconds - b.seconds) for a, b in zip(more, bare, strict=True)])


def middle(costs: Sequence[Cost]) -> Cost:
    """The medians."""
    return Cost(int(median(cost.bytes for cost in costs)), median(cost.seconds for cost in costs))


def names_of(table: Table) -> list[str]:
    """Its indexes, without the primary key."""
    found: list[Any] = [c for c in table.constraints if isinstance(c, UniqueConstraint)]
    return [str(index.name) for index in [*found, *sorted(table.indexes, key=lambda index: str(index.name))]]


def without(table: Table, names: set[str]) -> Table:
    """The same table but for some indexes."""
    copy = table.to_metadata(MetaData())
    kept: list[Any] = [*copy.indexes, *copy.constraints]
    for item in kept:
        if item.name in names:
            (copy.indexes if isinstance(item, Index) else copy.constraints).discard(item)
    return copy


def insert_once(
    database: Database, table: Table, columns: Sequence[str], rows: Iterator[Sequence[Any]]
) -> Cost:
    """Make the table, fill it in one transaction, and drop it."""
    ready = list(rows)
    with database.dialect.write_transaction(database.engine) as connection:
        table.create(connection)
    before = total_bytes(database, table)
    start = perf_counter()
    with database.dialect.write_transaction(database.engine) as connection:
        database.dialect.bulk_insert(connection, table, columns, ready)
    seconds = perf_counter() - start
    size = total_bytes(database, table) - before
    with database.dialect.write_transaction(database.engine) as connection:
        table.drop(connection)
    return Cost(size, seconds)


def total_bytes(database: Database, table: Table) -> int:
    """What the table and its indexes take."""
    database.dialect.refresh_statistics(database.engine, table)
    query = _BYTES[database.engine.dialect.name].format(table=table.fullname)
    with database.engine.connect() as connection:
        return int(connection.execute(text(query)).scalar_one())


def short(name: str) -> str:
    """Without our prefix."""
    return name.removeprefix("dedup_")


def fingerprint_rows(count: int) -> Iterator[Sequence[Any]]:
    """Of one table and recipe, by ascending key."""
    rng = np.random.default_rng(1)
    fingerprints = rng.integers(0, 2**64, count, dtype=np.uint64).tolist()
    digests = rng.bytes(16 * count)
    for i, fingerprint in enumerate(fingerprints):
        first = i - i % 10 + 1  # the second of each ten rows is a copy of the first
        yield (
            1,
            1,
            str(i),
            f"2024-01-01 {i:012}",
            to_signed(fingerprint),
            digests[16 * i : 16 * i + 16],
            first if i % 10 == 1 else None,
            first if i % 10 <= 1 else None,
            2 if i % 10 == 0 else None,  # the first of a group, its representative, has the size
            40,
        )


def pair_rows(count: int) -> Iterator[Sequence[Any]]:
    """Of rows received at any time."""
    rng = np.random.default_rng(2)
    now = datetime.now(UTC).replace(tzinfo=None)
    others = rng.integers(1, 10 * count, count).tolist()
    for i, other in enumerate(others, 1):
        yield i, other, i % 12, 0.75, now


def band_entries(count: int) -> Iterator[Sequence[Any]]:
    """By ascending value."""
    rng = np.random.default_rng(4)
    values = np.sort(rng.integers(-(2**63), 2**63, count)).tolist()
    return zip(values, rng.integers(1, 10 * count, count).tolist(), strict=True)


def packed_entries(count: int) -> Iterator[Sequence[Any]]:
    """As many entries, packed into pieces, as a scan writes them."""
    rng = np.random.default_rng(4)
    hashes = np.sort(rng.integers(0, 2**32, count, dtype=np.uint32))
    entries = Entries(hashes, rng.integers(1, 10 * count, count))
    return ((1, 1, 1, *part) for part in pack(entries, count_pieces(count)))


def change_rows(count: int) -> Iterator[Sequence[Any]]:
    """As updates of any rows would queue them."""
    now = datetime.now(UTC).replace(tzinfo=None)
    for key in np.random.default_rng(3).permutation(count).tolist():
        yield 1, str(key), "U", now
