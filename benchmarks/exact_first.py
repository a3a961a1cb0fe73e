"""Was this text stored before? The index of digests beside a Bloom filter and P3's digit trie, both in
memory.

A filter before the look-up saves at most the statement that finds equal rows, and only for texts that are
new. So that statement is also measured as a part of a whole check.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import sysconf
from pathlib import Path
from time import process_time

import numpy as np
from rbloom import Bloom
from sqlalchemy import Connection, select, text

from benchmarks import lookups
from benchmarks.servers import each_database
from db_dedup import Deduplicator
from db_dedup.app import Database
from db_dedup.methods import DigitTrie
from db_dedup.sample import Petition
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.neighbours import canonical_rows

DATABASES = ("SQLite", "PostgreSQL")
RATE = 0.001
BATCH = 256
_TICKS = sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sizes:
    """How much is stored, and how often it is asked.

    Attributes:
        fingerprints: stored rows, those of the petitions included.
        petitions: rows of the user's table.
        lookups: digests that are asked for, half of them stored.
        checks: petitions that are checked, half of them duplicates of a stored one.
    """

    fingerprints: int = 200_000
    petitions: int = 2_000
    lookups: int = 10_240
    checks: int = 200


SMALL = Sizes(3_000, 500, 1_024, 20)


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print CPU microseconds a text, of this process and of the database's server."""
    filled = lookups.Sizes(sizes.fingerprints, sizes.petitions, 0, sizes.lookups, sizes.checks)
    stored, asked = lookups.split_sample(filled)
    print(
        f"{sizes.fingerprints:,} rows; {sizes.lookups:,} digests asked for, half of them stored; "
        f"CPU microseconds a text, one by one and by {BATCH}"
    )
    print(f"{'':<12} {'':<22} {'one':>8} {'batch':>8}")
    for name, url in each_database(databases):
        with closing(Database(url, create=True)) as database:
            dedup, store = lookups.fill(database, stored, filled)
            with database.engine.connect() as connection:
                measure(name, connection, store, sizes)
                report(name, "a whole check", *check_costs(connection, dedup, asked))


def measure(name: str, connection: Connection, store: FingerprintStore, sizes: Sizes) -> None:
    """Look the same digests up in the index, in a Bloom filter and in the trie."""
    cpu = Cpu(connection)
    query = select(store.tables.fingerprint.c.digest).where(store.mine)
    start = cpu.seconds()
    stored = [bytes(digest) for digest in connection.execute(query).scalars()]
    read = cpu.seconds() - start
    bloom = Bloom(len(stored), RATE, _as_number)
    start = cpu.seconds()
    bloom.update(stored)
    added = cpu.seconds() - start
    trie = DigitTrie()
    start = cpu.seconds()
    trie.add_hashes(_halves(stored))
    inserted = cpu.seconds() - start
    print(
        f"{name:<12} built from the stored digests: {read:.1f} s to read them, {added:.1f} s for the filter "
        f"of {bloom.size_in_bits / 8e6:.1f} MB, {inserted:.1f} s for the trie of "
        f"{trie.memory_bytes / 1e6:.0f} MB"
    )
    chance = np.random.default_rng(3)
    half = sizes.lookups // 2
    known = [stored[i] for i in chance.integers(0, len(stored), half).tolist()]
    new = [chance.bytes(16) for _ in range(half)]
    asked = [digest for both in zip(known, new, strict=True) for digest in both]
    false = sum(digest in bloom for digest in new)
    assert all(digest in bloom for digest in known)
    costs: dict[str, Callable[[Sequence[bytes]], object]] = {
        "index of digests": lambda some: canonical_rows(connection, store, sorted(some)),
        "Bloom filter": lambda some: [digest in bloom for digest in some],
        "digit trie": lambda some: trie.add_hashes(_halves(some)),
    }
    for what, look_up in costs.items():
        report(name, what, *(cost(cpu, look_up, asked, size) for size in (1, BATCH)))
    print(f"{name:<12} false positives of the filter: {false} of {half:,} new texts ({RATE:.1%} asked for)")


def cost(
    cpu: "Cpu", look_up: Callable[[Sequence[bytes]], object], asked: Sequence[bytes], size: int
) -> float:
    """CPU microseconds a text, so many at a time; the first tenth of the texts warms up."""
    warm = len(asked) // 10 // BATCH * BATCH
    groups = [asked[first : first + size] for first in range(0, len(asked), size)]
    start = 0.0
    for number, group in enumerate(groups):
        if number * size == warm:
            start = cpu.seconds()
        look_up(group)
    return (cpu.seconds() - start) / (len(asked) - warm) * 1e6


def check_costs(
    connection: Connection, dedup: Deduplicator, asked: Sequence[Petition]
) -> tuple[float, float]:
    """CPU microseconds a record of `check`, one by one and all at once."""
    cpu = Cpu(connection)
    records = [{name: getattr(petition, name) for name in lookups.COLUMNS} for petition in asked]
    warm = len(records) // 11
    for record in records[:warm]:
        dedup.check(record, connection)
    start = cpu.seconds()
    for record in records[warm:]:
        dedup.check(record, connection)
    single = cpu.seconds() - start
    start = cpu.seconds()
    dedup.check_many(records[warm:], connection)
    batch = cpu.seconds() - start
    return single / (len(records) - warm) * 1e6, batch / (len(records) - warm) * 1e6


def report(name: str, what: str, one: float, batch: float) -> None:
    """One line of the table."""
    print(f"{name:<12} {what:<22} {one:>8,.1f} {batch:>8,.1f}")


class Cpu:
    """CPU seconds of this process, and of PostgreSQL's process for a connection (Linux)."""

    def __init__(self, connection: Connection) -> None:
        is_server = connection.dialect.name == "postgresql"
        self._server = connection.execute(text("SELECT pg_backend_pid()")).scalar_one() if is_server else None

    def seconds(self) -> float:
        """User and system time so far."""
        if self._server is None:
            return process_time()
        fields = Path(f"/proc/{self._server}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return process_time() + (int(fields[11]) + int(fields[12])) / _TICKS


def _as_number(digest: bytes) -> int:
    """A digest has 128 bits, which rbloom takes as they are."""
    return int.from_bytes(digest, "little", signed=True)


def _halves(digests: Sequence[bytes]) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """uint64[n]: the first half of each digest."""
    return np.frombuffer(b"".join(digests), np.uint64)[::2].copy()
