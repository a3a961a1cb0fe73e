"""Generated petitions in a table of the user's, for benchmarks of scans, checks and workers."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from multiprocessing import get_context

from sqlalchemy import Engine, select

from db_dedup import Deduplicator, Text
from db_dedup.app import Database
from db_dedup.cli.demo import petitions
from db_dedup.sample import Petition, generate_petitions

_MOST_AT_ONCE = 100_000
_NAMES = tuple(petitions.columns.keys())


def watched_petitions(database: Database) -> Deduplicator:
    """Create our tables, and return the petitions as they are watched with the default preset."""
    dedup = Deduplicator(database, "petitions", {"title": Text(), "content": Text()}, order="created_at")
    dedup.upgrade()
    return dedup


def warm_up(url: str) -> None:
    """Load the dictionaries and compile all kernels, by a scan and a rescan of a few petitions."""
    with closing(Database(url, create=True)) as database:
        write_sample(database.engine, 200)
        dedup = watched_petitions(database)
        dedup.scan()
        dedup.scan()  # a rescan has kernels of its own


def write_sample(engine: Engine, rows: int) -> None:
    """Fill a table with generated petitions, in sets of up to 100,000, each of which has its own seed."""
    sizes = [min(_MOST_AT_ONCE, rows - first) for first in range(0, rows, _MOST_AT_ONCE)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        each = processes.map if len(sizes) > 1 else map
        parts: Iterator[list[Petition]] = each(make_part, range(len(sizes)), sizes)
        write(engine, (_values(petition) for found in parts for petition in found))


def make_part(number: int, size: int) -> list[Petition]:
    """Return one set of petitions; its ids follow those of the set before."""
    found = generate_petitions(size, seed=number + 1).petitions
    return [replace(petition, id=petition.id + number * _MOST_AT_ONCE) for petition in found]


def copy(sample: Engine, target: Engine) -> None:
    """Copy the petitions of one database into another one."""
    with sample.connect() as connection:
        rows = connection.execution_options(yield_per=10_000).execute(select(petitions))
        write(target, map(tuple, rows))


def write(engine: Engine, rows: Iterator[Sequence[object]]) -> None:
    """Make the table of petitions and fill it."""
    dialect = Database(engine).dialect
    with dialect.write_transaction(engine) as connection:
        petitions.create(connection)
        dialect.bulk_insert(connection, petitions, _NAMES, rows)


def _values(petition: Petition) -> tuple[object, ...]:
    return tuple(getattr(petition, name) for name in _NAMES)
