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

from benchmarks.generated_petitions import write_sample
from benchmarks.indexes import total_bytes
from benchmarks.servers import DATABASES, each_database
from db_dedup import Deduplicator, Text
from db_dedup.app import Database
from db_dedup.cli.demo import petitions
from db_dedup.config import watched_table
from db_dedup.flow.candidates.generators import HASH_GENERATORS, SIMHASH, RowHashes
from db_dedup.flow.candidates.sketches import least_in_common, share_enough_each
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.text.compared import compared_columns
from db_dedup.sample import generate_petitions

RADIUS: Final = 3
LONGER: Final = (2, 4, 8, 16)
EDITED: Final = (0.02, 0.05, 0.1, 0.15, 0.2)
COLUMNS: Final = {
    SIMHASH: "radius 3",
    **dict(zip((each.name for each in HASH_GENERATORS), ("bands", "passages", "grams"), strict=True)),
    "any": "any",
}
"""Candidate generator -> title of its column."""


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
    print(f"{'the other one':<46} " + " ".join(f"{title:>9}" for title in COLUMNS.values()))
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
    """Print the share of the pairs that each candidate generator finds."""
    found = proposed(texts, others)
    shares = [float(np.mean(found[name])) for name in COLUMNS]
    print(f"{what:<46} " + " ".join(f"{share:>9.3f}" for share in shares), flush=True)


def proposed(texts: Sequence[str], others: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """Return by candidate generator, and for "any" of them, bool[n]: which of n pairs of texts it proposes.

    A generator that needs a share of common hashes is counted as if the pair had no others in common.
    """
    count = len(texts)
    recipe = watched_table("petitions", {"columns": {"content": Text()}}).recipe
    fingerprinter = Fingerprinter(recipe)
    rows = [(text,) for text in (*texts, *others)]
    done = fingerprinter.fingerprint(rows)
    columns = compared_columns(recipe.columns, recipe.normaliser, rows)
    left = np.arange(count, dtype=np.int32)
    right = left + np.int32(count)
    least = least_in_common(np.minimum(done.sketches.counts[left], done.sketches.counts[right]))
    near = np.bitwise_count(done.fingerprints[left] ^ done.fingerprints[right]) <= RADIUS
    found = {SIMHASH: near, "any": near | share_enough_each(done.sketches, left, right)}
    for generator, hashes in fingerprinter.hashes_by_generator(columns).items():
        common = [
            np.intersect1d(hashes_of(hashes, i), hashes_of(hashes, i + count)).size for i in range(count)
        ]
        found[generator.name] = np.array(common) >= (1 if generator.one_is_enough else least)
    return found


def hashes_of(hashes: RowHashes, row: int) -> NDArray[np.uint64]:
    """Return the hashes of a row without their lowest bits, which do not belong to them."""
    return hashes.values[hashes.starts[row] : hashes.starts[row + 1]] >> np.uint64(1)


def file_bytes(database: Database) -> int:
    """What is used of a SQLite file; 0 on a server."""
    if database.engine.dialect.name != "sqlite":
        return 0
    return total_bytes(database, petitions)


def table_bytes(database: Database) -> int:
    """What the fingerprints and the entries of sketches take on a server."""
    ours = database.tables
    return sum(total_bytes(database, table) for table in (ours.fingerprint, ours.band, ours.sketch_segment))


def tell_costs(name: str, database: Database, sizes: Sizes) -> None:
    """A line with sketches and one without."""
    entry_count = func.coalesce(func.sum(database.tables.sketch_index.c.entry_count), 0)
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
                entries = connection.execute(select(entry_count)).scalar_one()
            lines[with_sketches] = (entries / report.rows, used / report.rows, report.pairs)
            database.uninstall()
    for with_sketches, (entries_a_row, bytes_a_row, pairs) in lines.items():
        print(
            f"{name:<11} {'with' if with_sketches else 'without':<9} {median(seconds[with_sketches]):>8.2f} "
            f"{entries_a_row:>14.1f} {bytes_a_row:>12.0f} {pairs:>9,}",
            flush=True,
        )
