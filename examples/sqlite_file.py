"""Duplicates in a plain SQLite file, from Python: `python examples/sqlite_file.py`.

Makes a file of sample petitions in a temporary folder, scans it, and asks about one more petition before it
would be stored.
"""

import tempfile
from pathlib import Path

from sqlalchemy import Column, DateTime, Integer, MetaData, String, Table, create_engine, insert

from db_dedup import Deduplicator, Text, Value
from db_dedup.sample import generate_petitions

petitions = Table(
    "petitions",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("title", String),
    Column("content", String),
    Column("region", String),
    Column("created_at", DateTime),
)


def main() -> None:
    """Make, scan, ask."""
    with tempfile.TemporaryDirectory() as folder:
        engine = create_engine(f"sqlite:///{Path(folder) / 'petitions.db'}")
        sample = generate_petitions(500).petitions
        rows = [{column.name: getattr(p, column.name) for column in petitions.columns} for p in sample]
        with engine.begin() as connection:
            petitions.create(connection)
            connection.execute(insert(petitions), rows)

        columns = {"title": Text(), "content": Text(), "region": Value()}
        dedup = Deduplicator(engine, "petitions", columns, order="created_at")
        dedup.upgrade()
        report = dedup.scan()
        print(f"{report.rows} petitions, {report.groups} groups of duplicates")
        for group in dedup.groups(limit=3):
            print(f"petition {group.representative_key} came {group.size} times")

        new = {"title": sample[0].title, "content": sample[0].content + " 请尽快处理。", "region": None}
        for match in dedup.check(new):
            print(
                f"already there as {match.row_key}: {match.distance} bits, similarity {match.similarity:.2f}"
            )
        engine.dispose()


if __name__ == "__main__":
    main()
