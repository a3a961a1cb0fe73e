"""What each candidate generator finds and costs, on edited and on quoted texts."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from benchmarks.indexes import total_bytes
from benchmarks.scan_times import write_sample
from benchmarks.servers import DATABASES, each_database
from db_dedup import Deduplicator, Text
from db_dedup.app import Database
from db_dedup.cli.demo import petitions
from db_dedup.config import WatchedTable, watched_table
from db_dedup.flow.candidates.minhash import find_bands
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.sample import generate_petitions

RADIUS: Final = 3
LONGER: Final = (2, 4, 8, 16)
EDITED: Final = (0.02, 0.05, 0.1, 0.15, 0.2)


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes:
        texts: pairs of texts of each kind.
        rows: scanned with and without sketches.
        runs: of each scan, in turn.
    """

    texts: int = 500
    rows: int = 50_000
    runs: int = 3


SMALL: Final = Sizes(40, 300, 1)


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print the share of pairs that each candidate generator finds, then what sketches cost."""
    tell_shares(sizes.texts)
    print(
        f"\nscans of {sizes.rows:,} made-up petitions, three bits and char_overlap 0.57, with sketches and "
        f"without; medians of {sizes.runs} in turn"
    )
    print(f"{'':<11} {'sketches':<9} {'seconds':>8} {'entries a row':>14} {'bytes a row':>12} {'pairs':>9}")
    for name, url in each_database(databases):
        with closing(Database(url, create=True)) as database:
            write_sample(database.engine, sizes.rows)
            tell_costs(name, database, sizes)


def tell_shares(count: int) -> None:
    """One line for each kind of pair."""
    chance = Random(1)
    contents = [petition.content or "" for petition in generate_petitions(4 * count, seed=1).petitions]
    texts = [text for text in dict.fromkeys(contents) if 40 <= len(text) <= 400][:count]
    print(
        f"{len(texts)} made-up texts of 40 to 400 characters, each beside another one: share of the pairs "
        "that are proposed"
    )
    print(f"{'the other one':<46} {'radius 3':>9} {'bands':>7} {'passages':>9} {'any':>6}")
    for times in LONGER:
        others = [quoted(chance, text, contents, times) for text in texts]
        tell_share(f"quotes it and is {times} times as long", texts, others)
    for share in EDITED:
        others = [edited(chance, text, share) for text in texts]
        tell_share(f"has {share:.0%} of its characters changed, anywhere", texts, others)


def quoted(chance: Random, text: str, others: Sequence[str], times: int) -> str:
    """A longer text that holds all of this one."""
    around = ""
    while len(around) < (times - 1) * len(text):
        around += chance.choice(others)
    around = around[: (times - 1) * len(text)]
    place = chance.randrange(len(around) + 1)
    return around[:place] + text + around[place:]


def edited(chance: Random, text: str, share: float) -> str:
    """The text with so many characters replaced by others."""
    characters = list(text)
    for place in chance.sample(range(len(text)), max(1, round(share * len(text)))):
        characters[place] = chr(chance.randrange(0x4E00, 0x9000))
    return "".join(characters)


def tell_share(what: str, texts: Sequence[str], others: Sequence[str]) -> None:
    """Return the share of the pairs that each candidate generator finds."""
    watched = watched_table("petitions", {"columns": {"content": Text()}})
    near, bands, passages = proposed(fingerprinted(watched, texts), fingerprinted(watched, others))
    shares = [float(np.mean(found)) for found in (near, bands, passages, near | bands | passages)]
    print(f"{what:<46} {shares[0]:>9.3f} {shares[1]:>7.3f} {shares[2]:>9.3f} {shares[3]:>6.3f}", flush=True)


def fingerprinted(watched: WatchedTable, texts: Sequence[str]) -> FingerprintedRows:
    """Steps 2 to 4."""
    return Fingerprinter(watched.recipe).fingerprint([(text,) for text in texts])


def proposed(
    first: FingerprintedRows, second: FingerprintedRows
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """(within the radius, a band in common, a passage in common) for each two rows."""
    near = np.bitwise_count(first.fingerprints ^ second.fingerprints) <= RADIUS
    bands = [find_bands(rows.features.starts, rows.features.hashes) for rows in (first, second)]
    same = np.count_nonzero(bands[0] == bands[1], axis=1)
    shared = [
        np.intersect1d(first.sketches.of(i), second.sketches.of(i)).size for i in range(len(first.digests))
    ]
    return near, same > 0, np.array(shared) > same


def file_bytes(database: Database) -> int:
    """What is used of a SQLite file; 0 on a server."""
    if database.engine.dialect.name != "sqlite":
        return 0
    return total_bytes(database, petitions)


def table_bytes(database: Database) -> int:
    """What the fingerprints and the entries of sketches take on a server."""
    return sum(total_bytes(database, table) for table in (database.tables.fingerprint, database.tables.band))


def tell_costs(name: str, database: Database, sizes: Sizes) -> None:
    """A line with sketches and one without."""
    band = database.tables.band
    seconds: dict[bool, list[float]] = {True: [], False: []}
    lines = {}
    for _ in range(sizes.runs):
        for with_sketches in (True, False):
            before = file_bytes(database)
            dedup = Deduplicator(
                database,
                "petitions",
                {"title": Text(), "content": Text()},
                order="created_at",
                sketches=with_sketches,
            )
            dedup.upgrade()
            report = dedup.scan()
            seconds[with_sketches].append(report.seconds)
            used = file_bytes(database) - before or table_bytes(database)
            with database.engine.connect() as connection:
                entries = connection.execute(select(func.count()).select_from(band)).scalar_one()
            lines[with_sketches] = (entries / report.rows, used / report.rows, report.pairs)
            database.uninstall()
    for with_sketches, (entries_a_row, bytes_a_row, pairs) in lines.items():
        print(
            f"{name:<11} {'with' if with_sketches else 'without':<9} {median(seconds[with_sketches]):>8.2f} "
            f"{entries_a_row:>14.1f} {bytes_a_row:>12.0f} {pairs:>9,}",
            flush=True,
        )
