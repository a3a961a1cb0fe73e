"""What a scan of given rows finds, as any user would run it: on a SQLite file, by the Deduplicator."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from shutil import copy

from sqlalchemy import Column, Integer, MetaData, Table, Text

from benchmarks.datasets import load
from benchmarks.scores import Pair
from db_dedup import Deduplicator
from db_dedup.app import Database
from db_dedup.config import WatchedTable, watched_table


def fill(file: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Make a SQLite file with one table, `texts`, whose keys are the rows' numbers."""
    columns = (Column(name, Text) for name in rows[0])
    table = Table("texts", MetaData(), Column("id", Integer, primary_key=True, autoincrement=False), *columns)
    with closing(Database(f"sqlite:///{file}", create=True)) as database:
        load(database.engine, table, [{"id": number, **row} for number, row in enumerate(rows)])


def watch(columns: Mapping[str, object], **settings: object) -> WatchedTable:
    """Settings for the table of such a file."""
    return watched_table("texts", {"columns": dict(columns), **settings})


def scan_copy(source: Path, watched: WatchedTable, *, expand: bool = True) -> set[Pair]:
    """Scan a copy of the file and read the pairs; expanded, all that copies and abridged groups imply."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Database(f"sqlite:///{copy(source, folder)}")) as database,
    ):
        dedup = Deduplicator(database, watched)
        dedup.upgrade()
        dedup.scan()
        return {_numbers(pair.key_a, pair.key_b) for pair in dedup.pairs(expand=expand)}


def _numbers(key_a: str, key_b: str) -> Pair:
    a, b = sorted((int(key_a), int(key_b)))
    return a, b
