"""Times of one `check` among made-up petitions, by the kind of text that is asked for.

Three kinds of texts are checked in turn: a stored petition with one to five characters edited; a new
petition; and a new petition that ends with the set phrases of a stored one.

The petitions are scanned once, in SQLite, and the tables are copied into the other databases. If the variable
DB_DEDUP_BENCHMARK_STORES names a folder, the scanned file stays there and is used the next time: the scan of
a million rows takes much longer than the checks.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Final

import numpy as np
from sqlalchemy import Engine, func, select

from benchmarks.generated_petitions import make_part, warm_up, watched_petitions, write_sample
from benchmarks.materials import MOST_EDITS, edited
from benchmarks.servers import DATABASES, each_database
from benchmarks.store_copy import copy_store
from db_dedup import Deduplicator
from db_dedup.app import Database
from db_dedup.cli.demo import petitions

KINDS: Final = ("edited", "of its own", "set phrases")
_ENDING: Final = 60
_UNSTORED_PART: Final = 999
_WARM_UP_SHARE: Final = 10

Record = dict[str, str]


@dataclass(frozen=True)
class Sizes:
    """How many petitions are stored, and how many texts are asked for; a tenth as many before, to warm up."""

    rows: int = 20_000
    checks: int = 600


SMALL: Final = Sizes(300, 12)


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print p50 and p99 of each kind, and of all, for each database."""
    with _store_folder() as folder:
        file = Path(folder) / f"checks-{sizes.rows}.db"
        if not file.exists():
            _scan(f"sqlite:///{file}", sizes.rows)
        _measure(file, sizes, databases)


@contextmanager
def _store_folder() -> Iterator[str]:
    """Yield the folder of scanned stores; without the variable one that is deleted afterwards."""
    kept = os.environ.get("DB_DEDUP_BENCHMARK_STORES")
    if kept:
        yield kept
        return
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def _scan(url: str, rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        warm_up(f"sqlite:///{folder}/warm_up.db")
    with closing(Database(url, create=True)) as database:
        write_sample(database.engine, rows)
        watched_petitions(database).scan()


def _measure(file: Path, sizes: Sizes, databases: Sequence[str]) -> None:
    print(
        f"{sizes.rows:,} made-up petitions, default preset; {sizes.checks:,} checks on one connection, "
        "segmentation included; found: of these, those with a duplicate",
        flush=True,
    )
    print(f"{'':<11} {'':<12} {'found':>9} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8}")
    with closing(Database(f"sqlite:///{file}")) as store:
        warm = len(KINDS) * (1 + sizes.checks // (_WARM_UP_SHARE * len(KINDS)))
        asked = texts_to_ask(store.engine, warm + sizes.checks)
        for name, url in each_database(databases):
            if name == "SQLite":
                report(name, *time_checks(watched_petitions(store), asked, sizes.checks))
                continue
            with closing(Database(url, create=True)) as database:
                start = perf_counter()
                copy_store(store, database)
                print(f"{name}: copied in {perf_counter() - start:.0f} s", flush=True)
                report(name, *time_checks(watched_petitions(database), asked, sizes.checks))


def texts_to_ask(sample: Engine, count: int) -> list[Record]:
    """So many records, one of each kind after another."""
    chance = Random(1)
    with sample.connect() as connection:
        last = connection.execute(select(func.max(petitions.c.id))).scalar_one()
        ids = chance.sample(range(1, last + 1), min(last, 2 * count))
        query = select(petitions.c.title, petitions.c.content).where(petitions.c.id.in_(ids[:900]))
        stored = [(title or "", text) for title, text in connection.execute(query) if text]
    own = [(each.title or "", each.content) for each in make_part(_UNSTORED_PART, 2 * count) if each.content]
    characters = sorted({character for _, text in stored for character in text})
    found = []
    for i in range(count):
        (title, text), (own_title, own_text) = stored[i % len(stored)], own[i % len(own)]
        kinds = (
            (title, edited(text, 1 + i % MOST_EDITS, characters, chance)),
            (own_title, own_text),
            (own_title, own_text[:-_ENDING] + text[-_ENDING:]),
        )
        chosen = kinds[i % len(KINDS)]
        found.append({"title": chosen[0], "content": chosen[1]})
    return found


def time_checks(dedup: Deduplicator, asked: Sequence[Record], count: int) -> tuple[list[bool], list[float]]:
    """Return for each of the last `count` records whether it has a duplicate, and the milliseconds."""
    found, times = [], []
    with dedup.database.engine.connect() as connection:
        for record in asked:
            start = perf_counter()
            found.append(bool(dedup.check(record, connection)))
            times.append((perf_counter() - start) * 1e3)
    return found[-count:], times[-count:]


def report(name: str, found: Sequence[bool], times: Sequence[float]) -> None:
    """A line for each kind, and one for all."""
    number = np.arange(len(times)) % len(KINDS)
    for kind, chosen in [*((kind, number == i) for i, kind in enumerate(KINDS)), ("all", number >= 0)]:
        own = np.array(times)[chosen]
        p50, p99, most = np.percentile(own, [50, 99, 100])
        share = f"{np.count_nonzero(np.array(found)[chosen])}/{own.size}"
        print(f"{name:<11} {kind:<12} {share:>9} {p50:>8.1f} {p99:>8.1f} {most:>8.1f}", flush=True)
