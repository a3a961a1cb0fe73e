"""Edited and deleted rows a second that a worker handles in a group whose pairs are not all stored.

Beside made-up petitions there is one large group: each of its rows is an earlier one with some characters
edited. So each is similar to its relatives, and few are similar to the first.
"""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Event
from time import perf_counter
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from benchmarks.cpu import cpu_seconds
from benchmarks.generated_petitions import copy, warm_up, write_sample
from benchmarks.materials import MOST_EDITS, edited
from benchmarks.servers import DATABASES, each_database
from db_dedup import Deduplicator, Text
from db_dedup.app import Database
from db_dedup.cli.demo import petitions
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.jobs.worker.worker_table import Batch

_CHARACTERS: Final = 200
_EDITS_A_REPEAT: Final = 20
_FIRST_CHANGES: Final = 20


@dataclass(frozen=True)
class Sizes:
    """How many petitions, how many rows of the large group, and how many of these are changed at a time."""

    rows: int = 20_000
    group: int = 6_000
    changes: int = 300


SMALL: Final = Sizes(200, 40, 5)


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print a line for each kind of change in each database."""
    print(
        f"{sizes.rows:,} made-up petitions and a group of {sizes.group:,} rows, default preset without "
        f"frames; {sizes.changes:,} rows of the group are changed, then one worker drains the queue"
    )
    print(f"{'':<11} {'change':<8} {'rows/s':>8} {'CPU ms/row':>11} {'batches':>8} {'scans':>6} {'group':>7}")
    with tempfile.TemporaryDirectory() as folder:
        warm_up(f"sqlite:///{folder}/warm_up.db")
        with closing(Database(f"sqlite:///{folder}/sample.db", create=True)) as sample:
            write_sample(sample.engine, sizes.rows)
            with sample.engine.begin() as connection:
                _insert_group(connection, sizes)
            for name, url in each_database(databases):
                with closing(Database(url, create=True)) as database:
                    copy(sample.engine, database.engine)
                    _measure(name, database, sizes)


def _insert_group(connection: Connection, sizes: Sizes) -> None:
    """Insert the rows of the large group; their ids follow those of the petitions."""
    chance = Random(1)
    rows = [dict(row) for row in connection.execute(select(petitions).order_by(petitions.c.id)).mappings()]
    first = min((row for row in rows if row["content"]), key=lambda r: abs(len(r["content"]) - _CHARACTERS))
    characters = sorted({character for row in rows if row["content"] for character in row["content"]})
    texts = [first["content"]]
    while len(texts) < sizes.group:
        texts.append(edited(chance.choice(texts), _EDITS_A_REPEAT, characters, chance))
    last = max(row["id"] for row in rows)
    repeats = [{**first, "id": last + 1 + number, "content": text} for number, text in enumerate(texts)]
    connection.execute(insert(petitions), repeats)


def _measure(name: str, database: Database, sizes: Sizes) -> None:
    dedup = Deduplicator(database, "petitions", {"content": Text()}, order="created_at", frames=False)
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    with database.engine.connect() as connection:
        every = select(petitions.c.id, petitions.c.content).order_by(petitions.c.id.desc())
        texts = {row_id: text for row_id, text in connection.execute(every.limit(sizes.group)) if text}
    worker, chance = dedup.worker(), Random(2)
    _edit(database, texts, chance.sample(sorted(texts), min(_FIRST_CHANGES, sizes.changes)), chance)
    ChangeWorker([worker]).run(Event(), drain=True)  # reads what later batches find in memory
    kinds: dict[str, Callable[..., None]] = {"edited": _edit, "deleted": _delete}
    for kind, change in kinds.items():
        change(database, texts, chance.sample(sorted(texts), sizes.changes), chance)
        batches: list[Batch] = []
        start, cpu_start = perf_counter(), cpu_seconds()
        ChangeWorker([worker], on_batch=batches.append).run(Event(), drain=True)
        seconds, cpu = perf_counter() - start, cpu_seconds() - cpu_start
        scans = sum(batch.is_scan for batch in batches)
        largest = max((group.size for group in dedup.groups(1)), default=0)
        print(
            f"{name:<11} {kind:<8} {sizes.changes / seconds:>8,.0f} {cpu / sizes.changes * 1e3:>11.2f} "
            f"{len(batches):>8} {scans:>6} {largest:>7,}",
            flush=True,
        )


def _edit(database: Database, texts: dict[int, str], ids: Sequence[int], chance: Random) -> None:
    """Edit one to five characters of these rows."""
    characters = sorted({character for text in texts.values() for character in text})
    values = [
        {"of": i, "text": edited(texts[i], 1 + number % MOST_EDITS, characters, chance)}
        for number, i in enumerate(ids)
    ]
    statement = update(petitions).where(petitions.c.id == bindparam("of")).values(content=bindparam("text"))
    with database.dialect.write_transaction(database.engine) as connection:
        connection.execute(statement, values)


def _delete(database: Database, texts: dict[int, str], ids: Sequence[int], _: Random) -> None:
    with database.dialect.write_transaction(database.engine) as connection:
        connection.execute(
            delete(petitions).where(petitions.c.id == bindparam("of")), [{"of": i} for i in ids]
        )
    for row_id in ids:
        del texts[row_id]
