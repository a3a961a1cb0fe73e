"""The texts that the benchmarks read from the folder given by `--data`."""

import csv
import gzip
from datetime import datetime
from pathlib import Path

from sqlalchemy import Column, DateTime, Engine, Integer, MetaData, String, Table, Text, insert

csv.field_size_limit(1 << 30)

PETITIONS = Table(
    "petitions",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("user_id", String(40)),
    Column("title", String(400)),
    Column("content", Text),
    Column("created_at", DateTime),
)
ARTICLES = Table(
    "articles",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("text", Text),
)


def read_petitions(data: Path) -> list[dict[str, object]]:
    """petitions-gold: 2,173 rows of `PETITIONS`."""
    rows = _read(data / "petitions-gold" / "petitions.csv.gz")
    return [
        {
            "id": int(row["id"]),
            "user_id": row["user_id"],
            "title": row["title"],
            "content": row["content"],
            "created_at": _date(row["created_at"]),
        }
        for row in rows
    ]


def read_gold_pairs(data: Path) -> dict[frozenset[str], str]:
    """The labelled pairs: {id, id} -> V, S, R or D."""
    with (data / "petitions-gold" / "pairs.csv").open(newline="") as file:
        return {frozenset((row["id_a"], row["id_b"])): row["label"] for row in csv.DictReader(file)}


def read_articles(data: Path) -> list[dict[str, object]]:
    """cn-law-articles: 147,288 rows of `ARTICLES`."""
    rows = _read(data / "cn-law-articles" / "articles.csv.gz")
    return [{"id": int(row["id"]), "text": row["text"]} for row in rows]


def read_replies(data: Path) -> list[str]:
    """cofacts-replies-2019: the texts of 24,097 replies."""
    return [row["text"] for row in _read(data / "cofacts-replies-2019" / "replies.csv.gz")]


def load(engine: Engine, table: Table, rows: list[dict[str, object]]) -> None:
    """Make the table and fill it."""
    with engine.begin() as connection:
        table.create(connection)
        for first in range(0, len(rows), 5000):
            connection.execute(insert(table), rows[first : first + 5000])


def _read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _date(text: str) -> datetime:
    for form in ("%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M"):
        try:
            return datetime.strptime(text, form)  # local time, as it was written
        except ValueError:
            continue
    raise ValueError(f"no date: {text!r}")
