"""What our triggers add to the user's writes: the same writes to two equal tables, one of them attached."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final, NamedTuple

from sqlalchemy import Connection, MetaData, Table, delete, insert, select, text, update

from benchmarks.servers import DATABASES, each_database
from db_dedup import Deduplicator, Text
from db_dedup.app import Database
from db_dedup.cli.demo import petitions
from db_dedup.sample import Petition, generate_petitions

PLAIN: Final = petitions.to_metadata(MetaData(), name="plain")
ATTACHED: Final = petitions.to_metadata(MetaData(), name="attached")

_EMPTY: Final = {"sqlite": "DELETE FROM {0}", "postgresql": "TRUNCATE {0}", "mariadb": "TRUNCATE {0}"}
_TEXTS: Final = 2_000


@dataclass(frozen=True)
class Sizes:
    """How much is written.

    Attributes:
        rows: by each bulk statement.
        statements: of one row each, in one transaction.
        commits: of one row each.
        rounds: medians are of so many.
    """

    rows: int = 100_000
    statements: int = 5_000
    commits: int = 1_000
    rounds: int = 5


SMALL: Final = Sizes(1_000, 100, 20, 2)


class Cost(NamedTuple):
    """Seconds a row of the same write to the table without triggers and to that with ours."""

    plain: float
    attached: float


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print microseconds a row for each kind of write in each database."""
    print(
        f"made-up petitions, title and content watched; {sizes.rows:,} rows a bulk statement, "
        f"{sizes.statements:,} statements in a transaction, {sizes.commits:,} transactions;\n"
        f"medians of {sizes.rounds} rounds, each of which writes to both tables"
    )
    titles = ("plain", "attached", "added", "x plain")
    print("{:<44} {:>9} {:>9} {:>9} {:>8}".format("microseconds a row", *titles))
    for name, url in each_database(databases):
        with closing(Database(url, create=True)) as database:
            sample = generate_petitions(min(sizes.rows, _TEXTS)).petitions
            prepare(database, sample, sizes.rows)
            for what, costs in measure(database, sample, sizes).items():
                tell(f"{name:<11} {what}", costs)


def tell(what: str, costs: Sequence[Cost]) -> None:
    """One line of the table."""
    plain, attached = (median(seconds) * 1e6 for seconds in zip(*costs, strict=True))
    added = median(cost.attached - cost.plain for cost in costs) * 1e6
    ratio = median(cost.attached / cost.plain for cost in costs)
    print(f"{what:<44} {plain:>9.2f} {attached:>9.2f} {added:>9.2f} {ratio:>8.2f}", flush=True)


def prepare(database: Database, sample: Sequence[Petition], rows: int) -> None:
    """A table to copy from, and the two that are written to."""
    first, *names = petitions.columns.keys()
    with database.dialect.write_transaction(database.engine) as connection:
        for table in (petitions, PLAIN, ATTACHED):
            table.create(connection)
        values = (
            (i + 1, *(getattr(sample[i % len(sample)], column) for column in names)) for i in range(rows)
        )
        database.dialect.bulk_insert(connection, petitions, (first, *names), values)
    dedup = Deduplicator(database, ATTACHED.name, {"title": Text(), "content": Text()})
    dedup.upgrade()
    dedup.attach()


def measure(database: Database, sample: Sequence[Petition], sizes: Sizes) -> dict[str, list[Cost]]:
    """Costs of each kind of write, one a round."""
    found: dict[str, list[Cost]] = {}
    for turn in range(sizes.rounds):
        pair = (PLAIN, ATTACHED) if turn % 2 else (ATTACHED, PLAIN)
        seconds = {table.name: write(database, table, sample, sizes) for table in pair}
        for what, plain in seconds[PLAIN.name].items():
            found.setdefault(what, []).append(Cost(plain, seconds[ATTACHED.name][what]))
    return found


def write(database: Database, table: Table, sample: Sequence[Petition], sizes: Sizes) -> dict[str, float]:
    """Seconds a row of each kind of write, one after another."""
    bulk = {
        "bulk insert": insert(table).from_select(petitions.columns.keys(), select(petitions)),
        "bulk update, watched column": update(table).values(title=table.c.title + "!"),
        "bulk update, other column": update(table).values(phone="12345"),
        "bulk delete": delete(table),
    }
    seconds = {}
    empty(database, table)
    for what, statement in bulk.items():
        start = perf_counter()
        with database.engine.begin() as connection:
            connection.execute(statement)
        seconds[what] = (perf_counter() - start) / sizes.rows
    empty(database, table)
    with database.engine.connect() as connection:
        insert_one = inserter(connection, table, sample)
        start = perf_counter()
        with connection.begin():
            for i in range(sizes.statements):
                insert_one(i)
        seconds["insert of a row"] = (perf_counter() - start) / sizes.statements
        start = perf_counter()
        for i in range(sizes.commits):
            with connection.begin():
                insert_one(sizes.statements + i)
        seconds["insert of a row and commit"] = (perf_counter() - start) / sizes.commits
    return seconds


def inserter(connection: Connection, table: Table, sample: Sequence[Petition]) -> Callable[[int], object]:
    """Return a function that inserts the i-th row by the driver alone, without the time of SQLAlchemy."""
    names = ("id", "title", "content", "created_at")
    mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
    marks = ", ".join([mark] * len(names))
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names are ours
    rows = [(petition.title, petition.content, str(petition.created_at)) for petition in sample]
    cursor = connection.connection.cursor()
    return lambda i: cursor.execute(statement, (i + 1, *rows[i % len(rows)]))


def empty(database: Database, table: Table) -> None:
    """Take everything out of a table and of the queue."""
    statement = _EMPTY[database.engine.dialect.name]
    preparer = database.engine.dialect.identifier_preparer
    with database.engine.begin() as connection:
        for each in (table, database.tables.change):
            connection.execute(text(statement.format(preparer.format_table(each))))
