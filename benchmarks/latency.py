"""From an application's commit to the pair in the view, while a hundred rows a second come in.

Three programs run at the same time: an application that inserts at a steady pace, each row a near-duplicate
of a stored one; `db-dedup worker`, in its own process with its default settings; and a reader that queries
the view `duplicate_pairs` again and again for the rows that it has not seen there yet. The time of a row runs
from the return of its commit to the first answer that contains it, both by the clock of this process. A row
is in the view before a query shows it, so the times are too long by at most the pause between two queries.
`found_at` cannot be used, because it is taken before the worker's commit.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import perf_counter, sleep
from typing import Final

import numpy as np
from sqlalchemy import insert, select

from benchmarks.datasets import read_articles
from benchmarks.generated_petitions import watched_petitions
from benchmarks.materials import MOST_EDITS, edited
from benchmarks.servers import DATABASES, each_database
from db_dedup.app import Database
from db_dedup.cli.demo import fill, petitions
from db_dedup.sample import Petition, Sample, generate_petitions
from db_dedup.schema.views import fixed_view

LOOK_SECONDS: Final = 0.01

# The oldest come first. To ask for a long backlog at once would take the server's time from the worker.
_KEYS_A_LOOK: Final = 100
_PATIENCE_SECONDS: Final = 20.0
_SHORTEST: Final = 40  # characters: of a shorter text five edits leave no near-duplicate


@dataclass(frozen=True)
class Sizes:
    """How much is stored, how many rows come in a second, and for how long."""

    rows: int = 20_000
    a_second: int = 100
    seconds: int = 60


SMALL: Final = Sizes(500, 50, 2)


def run(
    data: Path | None,
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print p50 and p99 for each database; with data for texts that people wrote, too."""
    print(
        f"{sizes.rows:,} rows, default preset; for {sizes.seconds} s {sizes.a_second} near-duplicates of "
        "them a second, one to five characters edited, a commit each;\n"
        f"the view is looked into every {LOOK_SECONDS * 1e3:.0f} ms, which the times include"
    )
    print(f"{'':<31} {'inserted':>9} {'a second':>9} {'seen':>9} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8}")
    samples = {"made-up petitions": generate_petitions(sizes.rows)}
    if data is not None:
        samples["articles of law"] = with_articles(samples["made-up petitions"], data)
    for what, sample in samples.items():
        for name, url in each_database(databases):
            with closing(Database(url, create=True)) as database:
                prepare(database, sample)
                with worker(url):
                    tell(f"{what:<18} {name}", measure(database, sample.petitions, sizes))


def with_articles(sample: Sample, data: Path) -> Sample:
    """The same rows, with the texts of articles of law and no title."""
    texts = [text for article in read_articles(data) if len(text := str(article["text"])) >= _SHORTEST]
    chosen = Random(1).sample(texts, len(sample.petitions))
    pairs = zip(sample.petitions, chosen, strict=True)
    return Sample([replace(petition, title="", content=text) for petition, text in pairs], [])


def prepare(database: Database, sample: Sample) -> None:
    """Attached, then scanned, as the how-to has it."""
    with database.dialect.write_transaction(database.engine) as connection:
        fill(connection, sample)
    dedup = watched_petitions(database)
    dedup.attach()
    dedup.scan()


@contextmanager
def worker(url: str) -> Iterator[None]:
    """The command, by the stored recipe, until the end."""
    command = [sys.executable, "-m", "db_dedup.cli", "worker", "petitions"]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        environment = os.environ | {"DB_DEDUP_URL": url}
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=said)
        try:
            yield
        finally:
            process.terminate()
            if process.wait():
                said.seek(0)
                print(f"the worker failed: {said.read().decode(errors='replace')}")


@dataclass
class Times:
    """Of each row: that its insert has begun, when its commit returned, when the view first showed it."""

    begun: list[str] = field(default_factory=list)
    committed: dict[str, float] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)


def measure(database: Database, stored: Sequence[Petition], sizes: Sizes) -> Times:
    """Insert a row to warm up, then all others at their pace."""
    times, warm_up, is_over = Times(), Times(), Event()
    rows = near_duplicates(stored, sizes.a_second * sizes.seconds + 1)
    for some, of_them in ((rows[:1], warm_up), (rows[1:], times)):
        watcher = Thread(target=watch, args=(database, of_them, is_over))
        is_over.clear()
        watcher.start()
        try:
            write(database, some, sizes.a_second, of_them)
            await_all(of_them)
        finally:
            is_over.set()
            watcher.join()
    return times


def near_duplicates(stored: Sequence[Petition], count: int) -> list[dict[str, object]]:
    """Stored petitions once more, received later, each with one to five characters edited."""
    names, chance = petitions.columns.keys(), Random(1)
    later = max(petition.created_at for petition in stored) + timedelta(days=1)
    texts = [petition for petition in stored if petition.content]
    characters = sorted({character for petition in texts for character in petition.content or ""})
    found = []
    for i in range(count):
        petition = texts[i % len(texts)]
        row = {name: getattr(petition, name) for name in names}
        row |= {
            "id": len(stored) + 1 + i,
            "content": edited(petition.content or "", 1 + i % MOST_EDITS, characters, chance),
            "created_at": later + timedelta(seconds=i),
        }
        found.append(row)
    return found


def write(database: Database, rows: Sequence[dict[str, object]], a_second: int, times: Times) -> None:
    """Insert and commit row by row, each at its time, or at once if that has passed."""
    start = perf_counter()
    with database.engine.connect() as connection:
        for i, row in enumerate(rows):
            sleep(max(0.0, start + i / a_second - perf_counter()))
            times.begun.append(str(row["id"]))
            with connection.begin():
                connection.execute(insert(petitions), row)
            times.committed[str(row["id"])] = perf_counter()


def watch(database: Database, times: Times, is_over: Event) -> None:
    """Look for the rows that have not been seen, again and again, each time anew."""
    view = fixed_view(database.namespace, "duplicate_pairs")
    is_asked = database.dialect.is_one_of(view.c.key_b, "keys")
    query = select(view.c.key_b).where(view.c.table_name == "petitions", is_asked)
    awaited: list[str] = []
    known = 0
    with database.engine.connect() as connection:
        while not is_over.wait(LOOK_SECONDS):
            new = times.begun[known:]
            known += len(new)
            awaited += new
            with connection.begin():
                shown = set(connection.execute(query, {"keys": awaited[:_KEYS_A_LOOK]}).scalars())
            now = perf_counter()
            times.seen |= dict.fromkeys(shown, now)
            awaited = [key for key in awaited if key not in shown]


def await_all(times: Times) -> None:
    """Until every row was seen, or none for so long that the rest are no duplicates."""
    last, since = -1, perf_counter()
    while len(times.seen) < len(times.begun) and perf_counter() - since < _PATIENCE_SECONDS:
        if len(times.seen) > last:
            last, since = len(times.seen), perf_counter()
        sleep(0.05)


def tell(name: str, times: Times) -> None:
    """One line of the table."""
    committed = sorted(times.committed.values())
    pace = (len(committed) - 1) / (committed[-1] - committed[0])
    took = np.array([times.seen[key] - times.committed[key] for key in times.seen]) * 1e3
    p50, p99, most = np.percentile(took, [50, 99, 100]) if took.size else [np.nan] * 3
    print(
        f"{name:<31} {len(committed):>9,} {pace:>9.0f} {took.size:>9,} {p50:>8.0f} {p99:>8.0f} {most:>8.0f}",
        flush=True,
    )
