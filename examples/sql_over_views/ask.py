"""Questions to the views in plain SQL: one file for each question, or one for each kind of database.

    python examples/sql_over_views/ask.py                               # sample petitions in a new file
    python examples/sql_over_views/ask.py mariadb://user@host/database  # a scanned table `petitions`

The files are written for a database without schemas. On PostgreSQL our views stand in the schema `dedup`:
`dedup_duplicate...` becomes `dedup.duplicate...`, and that is all that is changed.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine, Row, text

from db_dedup import Database, DedupError, Deduplicator, Text
from db_dedup.cli.demo import fill
from db_dedup.sample import generate_petitions

FOLDER = Path(__file__).parent
MARIADB = "mysql"  # what its files are called: both understand them


@dataclass(frozen=True)
class Answer:
    """What the database said to one file."""

    name: str
    question: str
    columns: Sequence[str]
    rows: Sequence[Row[tuple[object, ...]]]


def main() -> None:
    """Ask the database that is named, or one that is made for it."""
    if len(sys.argv) > 1:
        with closing(Database(sys.argv[1])) as database, database.translate_driver_errors():
            show(database.engine)
        return
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{Path(folder) / 'petitions.db'}", create=True)
        with closing(database):
            scan_sample(database)
            show(database.engine)


def scan_sample(database: Database) -> None:
    """Make sample petitions and find their duplicates."""
    with database.engine.begin() as connection:
        fill(connection, generate_petitions(2000))
    columns = {"title": Text(), "content": Text()}
    dedup = Deduplicator(database, "petitions", columns, order="created_at")
    dedup.upgrade()
    dedup.scan()


def ask(engine: Engine) -> Iterator[Answer]:
    """Put every question to a scanned database."""
    dialect = MARIADB if engine.dialect.name == "mariadb" else engine.dialect.name
    with engine.connect() as connection:
        for path in sorted(FOLDER.glob("*.sql")):
            name, *only_for = path.stem.split(".")
            if only_for not in ([], [dialect]):
                continue
            sql = path.read_text(encoding="utf-8")
            question = " ".join(line[3:] for line in sql.splitlines() if line.startswith("-- "))
            if dialect == "postgresql":
                sql = sql.replace("dedup_duplicate", "dedup.duplicate")
            result = connection.execute(text(sql))
            yield Answer(name, question, list(result.keys()), result.all())


def show(engine: Engine) -> None:
    """Print each answer as a table."""
    console = Console()
    for answer in ask(engine):
        console.print(answer.question, style="bold")
        table = Table(*answer.columns)
        for row in answer.rows:
            table.add_row(*("-" if value is None else str(value) for value in row))
        console.print(table)
        console.print()


if __name__ == "__main__":
    try:
        main()
    except DedupError as error:
        sys.exit(f"error: {error}")
