"""Copy a scanned table of petitions, with its answer, from a SQLite file into another database."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import delete, select

from benchmarks.generated_petitions import watched_petitions
from benchmarks.lookups import vacuum
from db_dedup.app import Database
from db_dedup.cli.demo import petitions
from db_dedup.schema.types import to_signed

_FETCH = 10_000


def copy_store(source: Database, target: Database) -> None:
    """Copy the petitions and all of our tables into an empty database; its planner knows them then.

    The same rows as a scan there would write, but in one pass and without a scan.
    """
    with target.dialect.write_transaction(target.engine) as connection:
        petitions.create(connection)
    watched_petitions(target).scan()  # of an empty table: it makes the view
    ours, theirs = (database.tables.metadata.sorted_tables for database in (source, target))
    pairs = [(petitions, petitions), *zip(ours, theirs, strict=True)]
    with source.engine.connect() as reading, target.dialect.write_transaction(target.engine) as writing:
        for _, other in pairs:
            writing.execute(delete(other))
        for mine, other in pairs:
            names = [name for name, column in mine.c.items() if column.computed is None]
            query = select(*(mine.c[name] for name in names))
            rows = reading.execution_options(yield_per=_FETCH).execute(query)
            target.dialect.bulk_insert(writing, other, names, _signed(rows, names))
    vacuum(target)
    for _, other in pairs:
        target.dialect.refresh_statistics(target.engine, other)


def _signed(rows: Iterable[Sequence[Any]], names: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yield rows as they are inserted: fingerprints are signed in the database."""
    place = names.index("fingerprint") if "fingerprint" in names else None
    for row in rows:
        values = list(row)
        if place is not None and values[place] is not None:
            values[place] = to_signed(values[place])
        yield values
