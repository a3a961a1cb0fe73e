"""Duplicates in a plain SQLite file, from Python: `python examples/sqlite_file.py`.

Makes a file of sample petitions in a temporary folder, scans it, and asks about one more petition before it
would be stored.
"""

import tempfile
from pathlib import Path

from sqlalchemy import create_engine, text

from db_dedup import Deduplicator, Text, Value
from db_dedup.sample import generate_petitions

TABLE = (
    "CREATE TABLE petitions (id INTEGER PRIMARY KEY, title TEXT, content TEXT, region TEXT, created_at TEXT)"
)
ROW = "INSERT INTO petitions VALUES (:id, :title, :content, :region, :created_at)"
NAMES = ("id", "title", "content", "region", "created_at")


def main() -> None:
    """Make, scan, ask."""
    with tempfile.TemporaryDirectory() as folder:
        engine = create_engine(f"sqlite:///{Path(folder) / 'petitions.db'}")
        petitions = generate_petitions(500).petitions
        with engine.begin() as connection:
            connection.execute(text(TABLE))
            connection.execute(text(ROW), [{name: getattr(p, name) for name in NAMES} for p in petitions])

        columns = {"title": Text(), "content": Text(), "region": Value()}
        dedup = Deduplicator(engine, "petitions", columns, order="created_at")
        dedup.upgrade()
        report = dedup.scan()
        print(f"{report.rows} petitions, {report.groups} groups of duplicates")
        for group in dedup.groups(limit=3):
            print(f"petition {group.representative_key} came {group.size} times")

        new = {"title": petitions[0].title, "content": petitions[0].content + " 请尽快处理。", "region": None}
        for match in dedup.check(new):
            print(f"already there as {match.row_key}: {match.distance} bits, similarity {match.similarity}")
        engine.dispose()


if __name__ == "__main__":
    main()
