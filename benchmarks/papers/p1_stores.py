"""P1, Table 5: look-up and insertion in a table with four block columns, and in documents of blocks.

The table is the product's own, which has P1's columns. The documents need a server that speaks MongoDB's
protocol, named by DB_DEDUP_MONGODB_URL.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from sqlalchemy import Connection

from benchmarks import lookups
from benchmarks.candidates import random_mask
from benchmarks.papers.bucket_documents import BucketDocuments, NoServerError, open_documents
from benchmarks.papers.report import print_finding
from benchmarks.servers import DATABASES, each_database
from db_dedup.app import Database
from db_dedup.flow.candidates.blocks import block_values
from db_dedup.records.fingerprints import RowFingerprint
from db_dedup.sample import generate_petitions
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.lookup import Asked, find_near

RADIUS = 3
ANY, ALL, INSERT = "any similar", "all similar", "insert"
DOCUMENTS = "documents"
_PETITIONS = 100


@dataclass(frozen=True)
class Sizes:
    """Stored fingerprints, and how many are looked up and inserted; a tenth as many come before."""

    fingerprints: int = 30_000
    lookups: int = 1_000


SMALL = Sizes(fingerprints=600, lookups=40)


@dataclass(frozen=True)
class Store:
    """What is measured of each store, of one fingerprint.

    Attributes:
        has_similar: whether any is stored within the radius.
        count_similar: how many are.
        insert: stores it under a name, and commits.
    """

    has_similar: Callable[[int], bool]
    count_similar: Callable[[int], int]
    insert: Callable[[str, int], None]


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print the median microseconds of each store."""
    rows = list(lookups.random_rows(sizes.fingerprints - _PETITIONS, sizes.fingerprints // 50))
    asked = fingerprints_to_ask(rows, sizes.lookups + sizes.lookups // 10)
    print(
        f"{sizes.fingerprints:,} random fingerprints, {RADIUS} bits; {sizes.lookups:,} look-ups, half of "
        "them near a stored one; then as many are inserted, one by one\n"
        "wall-clock microseconds, medians; SQLite waits for the disk after each insertion, the servers do not"
    )
    print(f"{'':<12} {ANY:>12} {ALL:>12} {INSERT:>12} {'found':>9}")
    seconds: dict[str, dict[str, float]] = {}
    for name, url in each_database(databases):
        with closing(Database(url, create=True)) as database:
            stored = generate_petitions(_PETITIONS).petitions
            filled = lookups.Sizes(sizes.fingerprints, _PETITIONS, sizes.fingerprints // 50)
            _, store = lookups.fill(database, stored, filled)
            with database.engine.connect() as connection:
                seconds[name] = measure(name, _of_table(database, store, connection), asked)
    try:
        with open_documents() as documents:
            documents.fill((row.row_key, row.fingerprint or 0) for row in rows)
            seconds[DOCUMENTS] = measure(DOCUMENTS, _of_documents(documents), asked)
    except NoServerError as error:
        print(f"NOT MEASURED: {DOCUMENTS}: {error}")
    _print_verdict(seconds)


def fingerprints_to_ask(rows: Sequence[RowFingerprint], count: int) -> list[int]:
    """Return alternately a fingerprint near a stored one and a random one."""
    rng = np.random.default_rng(RADIUS)
    near = [rows[place].fingerprint or 0 for place in rng.integers(0, len(rows), count).tolist()]
    alone = rng.integers(0, 2**64, count, dtype=np.uint64).tolist()
    both = zip((value ^ int(random_mask(rng, RADIUS)) for value in near), alone, strict=True)
    return [value for pair in both for value in pair][:count]


def measure(name: str, store: Store, asked: Sequence[int]) -> dict[str, float]:
    """Print and return the median microseconds of each operation; the first eleventh warms up."""
    warm = len(asked) // 11
    found: list[int] = []
    works: dict[str, Callable[[int, int], object]] = {
        ANY: lambda _, value: store.has_similar(value),
        ALL: lambda _, value: found.append(store.count_similar(value)),
        INSERT: lambda number, value: store.insert(f"new {number}", value),
    }
    medians = {}
    for what, work in works.items():
        times = []
        for number, value in enumerate(asked):
            start = perf_counter()
            work(number, value)
            times.append(perf_counter() - start)
        medians[what] = float(np.median(times[warm:])) * 1e6
    cells = " ".join(f"{medians[what]:>12,.0f}" for what in works)
    hits = sum(count > 0 for count in found)
    print(f"{name:<12} {cells} {f'{hits}/{len(asked)}':>9}", flush=True)
    return medians


def _of_table(database: Database, store: FingerprintStore, connection: Connection) -> Store:
    """The product's table: one statement answers both questions."""

    def count(fingerprint: int) -> int:
        near = find_near(connection, store, [Asked(fingerprint, block_values(fingerprint, RADIUS))], RADIUS)
        return near.ids.size

    def insert(name: str, fingerprint: int) -> None:
        connection.rollback()  # SQLite: no read must be open beside the write
        with database.dialect.write_transaction(database.engine) as writing:
            digest = fingerprint.to_bytes(8, "big") * 2
            store.insert_rows(writing, [RowFingerprint(name, None, fingerprint, digest)])

    return Store(lambda fingerprint: count(fingerprint) > 0, count, insert)


def _of_documents(documents: BucketDocuments) -> Store:
    return Store(
        lambda fingerprint: documents.has_similar(fingerprint, RADIUS),
        lambda fingerprint: len(documents.find_similar(fingerprint, RADIUS)),
        documents.insert,
    )


def _print_verdict(seconds: dict[str, dict[str, float]]) -> None:
    paper = "documents are faster at look-up than a table of MySQL, and insertion takes about as long"
    table, documents = seconds.get("MariaDB"), seconds.get(DOCUMENTS)
    if table is None or documents is None:
        missing = " and ".join(name for name in ("MariaDB", DOCUMENTS) if name not in seconds)
        print_finding(paper, f"not measured: {missing}", None, "both are needed, side by side")
        return
    look_up, insertion = (table[what] / documents[what] for what in (ALL, INSERT))
    print_finding(
        paper,
        f"the table of MariaDB takes {look_up:.2f} times as long as documents to look up, "
        f"{insertion:.2f} times to insert",
        look_up > 1 and 0.5 < insertion < 2,
        "the table's look-up compares bits in the server; documents are compared in this process",
    )
